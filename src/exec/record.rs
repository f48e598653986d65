//! What is kept of a task, as it is written.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::faults::SupervisorHang;

/// What the driver tells a supervisor to run. It travels through a pipe and is on no disk, since an environment holds secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskOrder {
    /// The command: a path, or a name that is looked for in the task's own `PATH`.
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
    /// Its whole environment.
    pub(super) environment: BTreeMap<String, String>,
    /// The files or FIFOs for its output.
    pub(super) stdout: PathBuf,
    pub(super) stderr: PathBuf,
    /// Where and as whom it runs.
    pub(super) context: TaskContext,
}

/// Where and as whom a task runs: what a command beside it has to know too. None of it is secret, so it is kept in the record
/// of the task, and a driver that recovers the task needs no configuration for it (T150, TH092).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskContext {
    /// Its working directory.
    pub(super) directory: PathBuf,
    /// As whom it runs, if not as the driver.
    pub(super) user: Option<TaskUser>,
    /// The network namespace it runs in, if not the driver's.
    #[serde(default)]
    pub(super) network: Option<PathBuf>,
}

/// What a supervisor is born with.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Errand {
    pub(super) order: TaskOrder,
    /// The random word that the environment of every process of the task is to hold. The driver chooses it, and so can end
    /// what a supervisor has begun that does not answer.
    pub(super) tag: String,
    /// The control groups that the processes of the task are to be in.
    pub(super) groups: Vec<PathBuf>,
    /// Where the supervisor is to hang, in tests.
    pub(super) hang: Option<SupervisorHang>,
}

/// Shows neither arguments nor environment, which may hold secrets.
impl fmt::Debug for TaskOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOrder").field("command", &self.command).finish_non_exhaustive()
    }
}

/// The numbers of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// The other groups it is in.
    #[serde(default)]
    pub(super) groups: Vec<u32>,
}

/// What a supervisor answers to its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OrderAnswer {
    /// The task runs, and this is on disk.
    Started(Box<TaskRecord>),
    /// It could not be started, and nothing is left.
    Failed(NotStarted),
}

/// Why a task could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NotStarted {
    pub(super) reason: String,
    /// Whether trying again can help.
    pub(super) recoverable: bool,
}

/// A process that cannot be mistaken for another: numbers are used again, but not with the same start time in the same boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    /// When it was started, in ticks since the boot.
    pub(super) start_ticks: u64,
}

/// The state of a task, as its supervisor writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    /// The boot of the machine in which the numbers of the processes hold.
    pub(super) boot_id: String,
    pub(super) supervisor: ProcessIdentity,
    pub(super) task: ProcessIdentity,
    /// A random word in the environment of every process of the task.
    pub(super) tag: String,
    /// The digest of the order, by which the same task is recognised.
    pub(super) digest: String,
    /// Where and as whom it runs; missing in records of earlier versions.
    #[serde(default)]
    pub(super) context: Option<TaskContext>,
    /// The control groups that its processes are in.
    #[serde(default)]
    pub(super) groups: Vec<PathBuf>,
    /// Since the Unix epoch.
    pub(super) started_at: Duration,
    pub(super) ended: Option<TaskEnd>,
}

/// How and when a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskEnd {
    pub(super) status: EndStatus,
    /// Whether the kernel ended it for want of memory. False is also what is told where nobody knows.
    #[serde(default)]
    pub(super) oom_killed: bool,
    /// Since the Unix epoch.
    pub(super) at: Duration,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EndStatus {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody has seen how (EVT-05).
    Unknown(String),
}

impl EndStatus {
    /// What it is in words.
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

/// What a host keeps for the driver: where the state of the task is, and who it was.
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
                EndStatus::Unknown("the machine was started anew".to_owned()),
                "exited, status unknown: the machine was started anew",
            ),
        ];
        for (end, told) in ends {
            assert_eq!(end.told(), told);
        }
    }
}
