//! Processes as they were seen in one look.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::TaskMark;

/// One process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    /// Its process id.
    pub(super) pid: u32,
    /// The process id of its parent.
    pub(super) parent: u32,
    /// Its session.
    pub(super) session: u32,
    /// Its process group.
    pub(super) group: u32,
    /// When it was started, in ticks since the boot.
    pub(super) started_ticks: u64,
    /// What its environment says.
    pub(super) environment: Environment,
    /// The paths of its control groups, within their hierarchies.
    pub(super) groups: Vec<String>,
}

/// What the environment of a process says, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Environment {
    /// It is empty, or cannot be read: nothing is known. A process that is about to execute its program has an empty one.
    Unknown,
    /// This host may not read it.
    Hidden {
        /// The users that the process is, or may become: real, effective and saved. Empty if that is not known either.
        users: BTreeSet<u32>,
    },
    /// It was read.
    Read {
        /// The task that it names.
        task: Option<TaskMark>,
        /// The directory that a plugin, or a helper that it started, was given for its sockets.
        sockets: Option<String>,
        /// The mark of the host whose plugin handed this environment down.
        owner: Option<String>,
    },
}

impl Process {
    pub(super) fn task(&self) -> Option<&TaskMark> {
        match &self.environment {
            Environment::Unknown | Environment::Hidden { .. } => None,
            Environment::Read { task, .. } => task.as_ref(),
        }
    }
}

/// All processes of one look, by their ids.
pub(super) type Processes = BTreeMap<u32, Process>;

/// What a process holds open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    /// Its process id.
    pub(super) pid: u32,
    /// The paths of the sockets that it holds.
    pub(super) sockets: Vec<String>,
}
