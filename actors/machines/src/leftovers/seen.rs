//! A snapshot of processes.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::TaskMark;

/// A process, as observed.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// The PID of its parent.
    pub parent: u32,
    /// Its session.
    pub session: u32,
    /// Its process group.
    pub group: u32,
    /// Its start time, in ticks since the boot.
    pub started_ticks: u64,
    /// The known content of its environment.
    pub environment: Environment,
    /// The paths of its cgroups, within their hierarchies.
    pub groups: Vec<String>,
}

/// The relevant content of a process's environment.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// It is empty, or cannot be read. A process in the middle of an `exec` has an empty one.
    Unknown,
    /// This host has no permission to read it.
    Hidden {
        /// The users that the process is, or may become: real, effective and saved. Empty if unknown.
        users: BTreeSet<u32>,
    },
    /// It was read.
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
    /// The task that its environment names.
    #[must_use]
    pub const fn task(&self) -> Option<&TaskMark> {
        match &self.environment {
            Environment::Unknown | Environment::Hidden { .. } => None,
            Environment::Read { task, .. } => task.as_ref(),
        }
    }
}

/// All processes of one snapshot, by PID.
#[doc(hidden)]
pub type Processes = BTreeMap<u32, Process>;

/// The properties that distinguish a helper of a driver from other processes.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its PID.
    pub pid: u32,
    /// The paths of its open sockets.
    pub sockets: Vec<String>,
    /// Its command line.
    pub command: Vec<u8>,
}
