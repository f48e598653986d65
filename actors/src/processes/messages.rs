//! What can be said to the owner of the processes, and what it says.

use std::sync::Arc;
use std::time::Duration;

use super::state::Processes;
use crate::conversation;
use crate::process::{
    LaunchError, Launched, ProcessEnding, ProcessName, ProcessNews, ProcessReport, ProcessSpec, ProcessTag,
};
use crate::vocabulary::Attempt;

/// Starts a process under a name. Answered when it is ready: when its handshake is read or, where none is wanted, when it
/// runs; or when the launch has failed and whatever had started is ended and reaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchProcess {
    /// Under which name.
    pub name: ProcessName,
    /// What is run, and how. Shared, since whoever launches it may have to do so again.
    pub spec: Arc<ProcessSpec>,
}

/// Asks what became of the process of this name that an earlier run of the host may have left. Answered when that is settled:
/// nothing that was left is unowned then. A process that this run launched is answered for in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallProcess {
    /// Which name.
    pub name: ProcessName,
}

/// What became of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recalled {
    /// It runs, is proven to be the one that was recorded (PRC-01), and is ours again.
    Proven(Launched),
    /// It has ended or was ended, or what was recorded is not there any more. Launch it afresh (RES-07).
    Ended {
        /// How it ended, as far as anybody knows.
        ending: Option<Box<ProcessEnding>>,
        /// Why it is not ours any more.
        reason: String,
    },
    /// No process of this name is known.
    Unknown,
}

/// Why it cannot be said what became of a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecallError {
    /// Too many wait already.
    #[error("{waiting} others wait for processes already; ask again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// Ends a process: SIGTERM to its group, and after the grace SIGKILL to all that is to end with it (SHD-07). Answered when it
/// is reaped and nothing is left. A polite request over its own protocol comes before this and is the caller's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopProcess {
    /// Which name.
    pub name: ProcessName,
    /// Only this launch; a later one of the same name is not touched. `None` stops whichever there is.
    pub tag: Option<ProcessTag>,
    /// How long it may take to end by itself. Asked again, the shorter time holds.
    pub grace: Duration,
}

/// Waits for the end of one launch. One that has ended is answered for at once, as long as its ending is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitEnd {
    /// Which name.
    pub name: ProcessName,
    /// Which launch.
    pub tag: ProcessTag,
}

/// Why a process is not stopped or waited for. Harmless: nothing of it runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchProcess {
    /// None of this name, or of this launch, runs, and how one ended is not remembered either.
    #[error("no process {name}{} runs", tag.map_or_else(String::new, |tag| format!(" with tag {tag}")))]
    Unknown {
        /// Which name.
        name: ProcessName,
        /// Which launch was asked for.
        tag: Option<ProcessTag>,
    },
    /// Too many wait already.
    #[error("{waiting} others wait for processes already; ask again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// Asks for every process that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListProcesses;

/// Asks for one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeProcess {
    /// Which name.
    pub name: ProcessName,
}

/// Says what a process actor tells. Said by those actors themselves; from anyone else it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReported {
    /// Which life of which actor says so: what an earlier one says late changes nothing.
    pub life: Attempt,
    /// Of which process.
    pub name: ProcessName,
    /// What it says.
    pub news: ProcessNews,
}

conversation! {
    /// What is said to the owner of the processes.
    #[derive(Clone)]
    pub enum ProcessesAsk -> ProcessesAnswer for Processes {
        LaunchProcess => Result<Launched, LaunchError>,
        RecallProcess => Result<Recalled, RecallError>,
        StopProcess => Result<ProcessEnding, NoSuchProcess>,
        AwaitEnd => Result<ProcessEnding, NoSuchProcess>,
        ListProcesses => Vec<ProcessReport>,
        DescribeProcess => Option<ProcessReport>,
        ProcessReported => (),
    }
}

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessesNews {
    /// A process came, or what it is at has changed.
    Changed(ProcessReport),
    /// A process has ended: reaped, and nothing of it is left.
    Ended(ProcessEnding),
    /// A record of an earlier run was retired without touching any process: what it points at is not ours (PRC-01, RES-07).
    Retired {
        /// Which name.
        name: ProcessName,
        /// Which launch.
        tag: ProcessTag,
        /// What does not fit.
        reason: String,
    },
    /// What was left by earlier runs is settled: adopted, ended or retired, every one of it.
    Settled,
}

/// Everything subscribers may know of the processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessesView {
    /// Each process that there is, by name.
    pub reports: Vec<ProcessReport>,
    /// Whether what was left by earlier runs is settled.
    pub settled: bool,
}
