//! What is told of one process.

use super::name::{ProcessName, ProcessTag};
use super::spec::{Lifetime, Reach};
use crate::goplugin::Handshake;
use crate::vocabulary::Timestamp;

/// A process that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// What it is called.
    pub name: ProcessName,
    /// Which launch it is.
    pub tag: ProcessTag,
    /// Its process id, which is also that of its group.
    pub pid: u32,
    /// When it was started.
    pub started_at: Timestamp,
    /// What it said in its handshake, if one was wanted.
    pub handshake: Option<Handshake>,
    /// Whether an earlier run of the host started it. Its exit code will not be known then, since it is no child of ours.
    pub is_adopted: bool,
}

/// What a process is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessPhase {
    /// Its intent is on disk; it is about to be spawned (PRC-09).
    Intended,
    /// An earlier run of the host left its record; what it points at is being looked at (PRC-01).
    Recalled,
    /// It runs, and has not said its handshake.
    Spawned,
    /// It runs.
    Ready,
    /// It was asked to end.
    Stopping,
    /// It has ended; what it left of its group is being ended (PRC-03).
    Clearing,
    /// It is over.
    Ended,
}

impl ProcessPhase {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Recalled => "recalled",
            Self::Spawned => "spawned",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::Clearing => "clearing",
            Self::Ended => "ended",
        }
    }
}

/// What of a process's output was not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Lines that were read and not logged, since there were too many of them (LOG-03).
    pub lines: u64,
    /// Bytes that were never read: the process wrote faster than it was read, or nobody was there to read.
    pub bytes: u64,
}

/// One process as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport {
    /// What it is called.
    pub name: ProcessName,
    /// Which launch it is.
    pub tag: ProcessTag,
    /// Its process id, once it has one.
    pub pid: Option<u32>,
    /// What it is at.
    pub phase: ProcessPhase,
    /// Since when.
    pub since: Timestamp,
    /// When it was started; for one that is about to be, when that was decided.
    pub started_at: Timestamp,
    /// What happens to it when the host dies.
    pub lifetime: Lifetime,
    /// How much ends with it.
    pub reach: Reach,
    /// Whether an earlier run of the host started it.
    pub is_adopted: bool,
    /// Lines of its output that were not logged, since there were too many of them (LOG-03).
    pub lines_dropped: u64,
    /// Bytes of its output that were never read, since more came than may wait on disk.
    pub bytes_dropped: u64,
}
