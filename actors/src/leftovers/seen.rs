//! A snapshot of processes.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::TaskMark;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) session: u32,
    pub(super) group: u32,
    /// Its start time, in ticks since the boot.
    pub(super) started_ticks: u64,
    pub(super) environment: Environment,
    /// The paths of its cgroups, within their hierarchies.
    pub(super) groups: Vec<String>,
}

/// The relevant content of a process's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Environment {
    /// It is empty, or cannot be read. A process in the middle of an `exec` has an empty one.
    Unknown,
    /// This host has no permission to read it.
    Hidden {
        /// The users that the process is, or may become: real, effective and saved. Empty if unknown.
        users: BTreeSet<u32>,
    },
    Read {
        /// The task that it names.
        task: Option<TaskMark>,
        /// The socket directory that was assigned to a plugin, or to a helper that it started.
        sockets: Option<String>,
        /// The owner id of the host of the plugin that passed this environment on.
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

/// All processes of one snapshot, by PID.
pub(super) type Processes = BTreeMap<u32, Process>;

/// The open sockets of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) sockets: Vec<String>,
}
