//! The stored state of a task.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::faults::SupervisorHang;

/// The driver's order to a supervisor. It is sent through a pipe and never stored, since an environment holds secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskOrder {
    /// The command: a path, or a name to look up in the task's own `PATH`.
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    /// The files or FIFOs for its output.
    pub(super) stdout: PathBuf,
    pub(super) stderr: PathBuf,
    pub(super) context: TaskContext,
}

/// The directory, user, network and mounts of a task, also used for commands beside it. It contains no secrets, so it is stored in the
/// record, and a driver that recovers the task does not need the configuration (T150, TH092).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskContext {
    pub(super) directory: PathBuf,
    /// Its user, if not the driver's.
    pub(super) user: Option<TaskUser>,
    /// Its network namespace, if not the driver's.
    #[serde(default)]
    pub(super) network: Option<PathBuf>,
    /// The mounts for this task alone. A record of an earlier version has none, and the digest of an order without mounts is unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) mounts: Vec<BoundMount>,
}

/// A file or directory of the host that a task also finds at another path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BoundMount {
    pub(super) host_path: PathBuf,
    pub(super) task_path: PathBuf,
    pub(super) read_only: bool,
}

/// The input of a supervisor.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SupervisorInput {
    pub(super) order: TaskOrder,
    /// The random tag for the environment of each process of the task. The driver uses it to kill the processes of a hanging supervisor.
    pub(super) tag: String,
    /// The control groups for the processes of the task.
    pub(super) groups: Vec<PathBuf>,
    /// Where the supervisor hangs, in tests.
    pub(super) hang: Option<SupervisorHang>,
}

/// Omits arguments and environment, which may hold secrets.
impl fmt::Debug for TaskOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOrder").field("command", &self.command).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Its supplementary groups.
    #[serde(default)]
    pub(super) groups: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OrderAnswer {
    /// The task runs, and this record is on disk.
    Started(Box<TaskRecord>),
    /// It was not started, and nothing is left.
    Failed(NotStarted),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NotStarted {
    pub(super) reason: String,
    /// Whether a retry can help.
    pub(super) recoverable: bool,
}

/// A unique identity of a process: process ids are reused, but not with the same start time in the same boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    /// The start time, in ticks since the boot.
    pub(super) start_ticks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    /// The boot for which the process ids are valid.
    pub(super) boot_id: String,
    pub(super) supervisor: ProcessIdentity,
    pub(super) task: ProcessIdentity,
    /// The random tag in the environment of each process of the task.
    pub(super) tag: String,
    /// The digest of the order, by which a repeated start is recognised.
    pub(super) digest: String,
    /// Missing in records of earlier versions.
    #[serde(default)]
    pub(super) context: Option<TaskContext>,
    /// Its control groups.
    #[serde(default)]
    pub(super) groups: Vec<PathBuf>,
    /// Since the Unix epoch.
    pub(super) started_at: Duration,
    pub(super) ended: Option<TaskEnd>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskEnd {
    pub(super) status: EndStatus,
    /// Whether the kernel killed it for lack of memory; also false if that is unknown.
    #[serde(default)]
    pub(super) oom_killed: bool,
    /// Since the Unix epoch.
    pub(super) at: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EndStatus {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// Unknown, for this reason (EVT-05).
    Unknown(String),
}

impl EndStatus {
    pub(super) fn told(&self) -> String {
        match self {
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => match super::signals::name(*signal) {
                Some(name) => format!("exited by signal {signal} ({name})"),
                None => format!("exited by signal {signal}"),
            },
            Self::Unknown(why) => format!("exited, status unknown: {why}"),
        }
    }
}

/// The driver state that a host stores: the place of the task's state, and its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DriverState {
    pub(super) place: PathBuf,
    pub(super) record: TaskRecord,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_shows_its_command_and_no_secret() {
        let secret = || "secret".to_owned();
        let order = TaskOrder {
            command: "backup".to_owned(),
            arguments: vec![secret()],
            environment: BTreeMap::from([(secret(), secret())]),
            ..TaskOrder::default()
        };
        assert_eq!(format!("{order:?}"), "TaskOrder { command: \"backup\", .. }");
    }

    #[test]
    fn how_a_task_ended_is_said_in_words_evt_05() {
        let ends = [
            (EndStatus::Code(3), "exited with code 3"),
            (EndStatus::Signal(9), "exited by signal 9 (SIGKILL)"),
            (EndStatus::Signal(64), "exited by signal 64"),
            (
                EndStatus::Unknown("the machine was rebooted".to_owned()),
                "exited, status unknown: the machine was rebooted",
            ),
        ];
        for (end, told) in ends {
            assert_eq!(end.told(), told);
        }
    }
}
