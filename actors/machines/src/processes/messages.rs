//! The messages and notifications of the owner of the processes.

use std::sync::Arc;
use std::time::Duration;

use crate::conversation;
use crate::process::{
    LaunchError, Launched, ProcessEnding, ProcessName, ProcessNews, ProcessReport, ProcessSpec, ProcessTag,
};
use crate::vocabulary::Attempt;

/// Starts a process under a name. Answered when it is ready: when its handshake is read or, without one, when it runs; or
/// when the launch has failed and the process is ended and reaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaunchProcess {
    /// The name.
    pub name: ProcessName,
    /// The spec. Shared, since a caller may launch it again.
    pub spec: Arc<ProcessSpec>,
}

/// Queries the process of this name that an earlier run of the host may have left. Answered when that is settled: it is
/// adopted, ended or gone. A process that this run launched is answered in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecallProcess {
    /// The name.
    pub name: ProcessName,
}

/// The result of a recall.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Recalled {
    /// It runs, is proven to be the recorded one (PRC-01), and is ours again.
    Proven(Launched),
    /// It has ended or was ended, or the recorded process no longer exists. Launch it again (RES-07).
    Ended {
        /// How it ended, if known.
        ending: Option<Box<ProcessEnding>>,
        /// Why it is no longer ours.
        reason: String,
    },
    /// No process of this name is known.
    Unknown,
}

/// Why a recall has no result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RecallError {
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for processes; ask again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Ends a process: SIGTERM to its group, and after the grace SIGKILL to everything that must end with it (SHD-07). Answered
/// when it is reaped and nothing is left. A shutdown request over its own protocol is the caller's job, before this.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StopProcess {
    /// The name.
    pub name: ProcessName,
    /// Only this launch; a later one of the same name is not touched. `None` stops any.
    pub tag: Option<ProcessTag>,
    /// The grace between SIGTERM and SIGKILL. If repeated, the shorter one applies.
    pub grace: Duration,
}

/// Waits for the end of one launch. If it has ended and its ending is still remembered, it is answered at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AwaitEnd {
    /// The name.
    pub name: ProcessName,
    /// The tag of the launch.
    pub tag: ProcessTag,
}

/// Why a process is not stopped or waited for. Harmless: it does not run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoSuchProcess {
    /// No process of this name or launch runs, and no ending of such a process is remembered.
    #[error("no process {name}{} runs", tag.map_or_else(String::new, |tag| format!(" with tag {tag}")))]
    Unknown {
        /// The name.
        name: ProcessName,
        /// The tag of the request.
        tag: Option<ProcessTag>,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for processes; ask again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Lists all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListProcesses;

/// Queries one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DescribeProcess {
    /// The name.
    pub name: ProcessName,
}

/// The news of a process actor for the owner. From any other sender it has no effect.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessReported {
    /// The life of the actor; late news of an earlier life are ignored.
    pub life: Attempt,
    /// The name of the process.
    pub name: ProcessName,
    /// The news.
    pub news: ProcessNews,
}

conversation! {
    /// The messages of the owner of the processes.
    #[derive(Clone, Hash)]
    pub enum ProcessesAsk -> #[derive(Hash)] ProcessesAnswer {
        LaunchProcess => Result<Launched, LaunchError>,
        RecallProcess => Result<Recalled, RecallError>,
        StopProcess => Result<ProcessEnding, NoSuchProcess>,
        AwaitEnd => Result<ProcessEnding, NoSuchProcess>,
        ListProcesses => Vec<ProcessReport>,
        DescribeProcess => Option<ProcessReport>,
        ProcessReported => (),
    }
}

/// The notifications of the owner of the processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProcessesNews {
    /// A process was added, or its phase has changed.
    Changed(ProcessReport),
    /// A process has ended: reaped, and nothing of it is left.
    Ended(ProcessEnding),
    /// A record of an earlier run was removed; no process was touched: the recorded one is not ours (PRC-01, RES-07).
    Retired {
        /// The name.
        name: ProcessName,
        /// The tag of the launch.
        tag: ProcessTag,
        /// The mismatch.
        reason: String,
    },
    /// All leftovers of earlier runs are settled: adopted, ended or retired.
    Settled,
}

/// The view that subscribers receive as a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ProcessesView {
    /// All processes, ordered by name.
    pub reports: Vec<ProcessReport>,
    /// Whether all leftovers of earlier runs are settled.
    pub settled: bool,
}
