//! Reports about one process, and the messages of its owner to its actor.

use std::time::Duration;

use super::name::{ProcessName, ProcessTag};
use super::record::digest;
use super::spec::{Lifetime, ProcessSpec, Reach};
use crate::conversation;
use crate::goplugin::Handshake;
use crate::vocabulary::Timestamp;

/// A process that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Launched {
    /// Its name.
    pub name: ProcessName,
    /// The tag of its launch.
    pub tag: ProcessTag,
    /// Its PID, which is also the id of its process group.
    pub pid: u32,
    /// Its start time.
    pub started_at: Timestamp,
    /// Its handshake, if one was required.
    pub handshake: Option<Handshake>,
    /// Whether an earlier run of the host started it. Its exit code will then be unknown, since it is not a child of this host.
    pub is_adopted: bool,
    /// Identifies the spec that it was launched from, as [on record](super::ProcessRecord::spec_digest). `None` if unknown.
    pub spec_digest: Option<[u8; 32]>,
}

impl Launched {
    /// Whether it was launched from this spec, or from an unknown one.
    #[must_use]
    pub fn is_of(&self, spec: &ProcessSpec) -> bool {
        self.spec_digest.is_none_or(|known| known == digest(spec, self.tag))
    }
}

/// The phase of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessPhase {
    /// Its intent is on disk; it is about to be spawned (PRC-09).
    Intended,
    /// It has a record of an earlier run of the host; the process is being searched and verified (PRC-01).
    Recalled,
    /// It runs, and its handshake is pending.
    Spawned,
    /// It runs.
    Ready,
    /// It was asked to stop.
    Stopping,
    /// It has ended; its leftover process group is being ended (PRC-03).
    Clearing,
    /// It has ended, and nothing is left to do.
    Ended,
}

impl ProcessPhase {
    /// The phase as a word.
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

/// Output of a process that was not logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dropped {
    /// Lines over the rate limit of the log (LOG-03).
    pub lines: u64,
    /// Bytes that were never read: the process wrote faster than its reader, or no host was running.
    pub bytes: u64,
}

/// The state of one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessReport {
    /// Its name.
    pub name: ProcessName,
    /// The tag of its launch.
    pub tag: ProcessTag,
    /// Its PID, once it has one.
    pub pid: Option<u32>,
    /// Its phase.
    pub phase: ProcessPhase,
    /// When this phase began.
    pub since: Timestamp,
    /// Its start time; before the spawn, the time of the intent.
    pub started_at: Timestamp,
    /// Whether it ends with the host.
    pub lifetime: Lifetime,
    /// Which descendants end with it.
    pub reach: Reach,
    /// Whether an earlier run of the host started it.
    pub is_adopted: bool,
    /// Whether an earlier run of the host left it, and it is still being searched for, or ended.
    pub is_unsettled: bool,
    /// Lines of its output over the rate limit of the log (LOG-03).
    pub lines_dropped: u64,
    /// Bytes of its output that were never read, since they exceeded the backlog limit.
    pub bytes_dropped: u64,
}

/// Ends the process: SIGTERM to its group, and after the grace SIGKILL to everything that must end with it. If repeated, the
/// shorter grace applies. The result is published as news.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndProcess {
    /// The grace.
    pub grace: Duration,
}

conversation! {
    /// The messages of a process actor; only its owner sends them.
    pub enum ProcessAsk -> ProcessAnswer {
        EndProcess => (),
    }
}
