//! The messages and the news of an allocation's supervisor.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::conversation;
use crate::vocabulary::{
    AllocationId, FailoverPolicy, Health, PluginKey, PluginName, Role, SocketPath, TaskName, Timestamp,
};

/// The file system isolation of a workload: decides which path `CSI_ENDPOINT` names (A1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// It sees the host's own paths.
    None,
    /// It is confined to a directory of the host; the socket directory is bind-mounted into it.
    Chroot,
    /// Its root is an image; the socket directory is bind-mounted into it.
    Image,
}

/// When the host is asked to restart a plugin that was ready once. A plugin that is not ready within its health timeout is restarted
/// in any case (A2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestartWhen {
    /// Never. It may become healthy again by itself.
    Never,
    /// It has been unhealthy for this long without a break: it hangs, it fails, or it reports that it is not ready. The request is
    /// repeated each time that this duration has passed again.
    UnhealthyFor(Duration),
}

impl fmt::Display for RestartWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::UnhealthyFor(time) => write!(f, "unhealthy-for {time:?}"),
        }
    }
}

/// The specification of one plugin workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationSpec {
    /// The allocation.
    pub allocation: AllocationId,
    /// The task that runs the plugin process.
    pub task: TaskName,
    /// The name of the plugin.
    pub plugin: PluginName,
    /// The halves of the plugin that it serves.
    pub role: Role,
    /// The mount point of the socket directory inside the workload; ignored without isolation.
    pub socket_mount_dir: PathBuf,
    /// The directory inside the workload where volumes are staged and published. `/local/csi` by default.
    pub volume_mount_dir: PathBuf,
    /// The timeout from the start of the plugin to its first ready answer. 30 s by default.
    pub health_timeout: Duration,
    /// When the host is asked to restart a plugin that was ready once. Never by default: the host waits for its recovery.
    pub restart_when: RestartWhen,
    /// The file system isolation.
    pub isolation: Isolation,
    /// The user's own environment: a `CSI_ENDPOINT` in it takes precedence (SEC-04), and the socket is expected there.
    pub environment: BTreeMap<String, String>,
    /// How the active allocation of its plugin is chosen, if set; see [`Register::policy`](crate::registry::Register::policy).
    pub policy: Option<FailoverPolicy>,
}

impl AllocationSpec {
    /// A spec with the default values.
    #[must_use]
    pub fn new(allocation: AllocationId, task: TaskName, plugin: PluginName, role: Role) -> Self {
        Self {
            allocation,
            task,
            plugin,
            role,
            socket_mount_dir: PathBuf::from("/csi"),
            volume_mount_dir: PathBuf::from("/local/csi"),
            health_timeout: Duration::from_secs(30),
            restart_when: RestartWhen::Never,
            isolation: Isolation::None,
            environment: BTreeMap::new(),
            policy: None,
        }
    }

    /// The plugins that it serves: a monolith is two.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginKey> {
        let types = self.role.plugin_types();
        types.iter().map(|kind| PluginKey::new(*kind, self.plugin.clone())).collect()
    }
}

/// The mount propagation of a bind mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// None.
    Private,
    /// In both directions (`rshared`).
    Bidirectional,
}

/// A directory that the host must bind-mount into the workload (C178).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mount {
    /// The path on the host.
    pub host_path: PathBuf,
    /// The path inside the workload.
    pub task_path: PathBuf,
    /// The mount propagation.
    pub propagation: Propagation,
}

/// The context that a workload needs to start. Deterministic: the same for the same spec (A1, RES-02).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskContext {
    /// Environment variables to set, except those that the user has set.
    pub environment: BTreeMap<String, String>,
    /// Bind mounts. Without isolation both paths of each mount are equal, and only list what the task must access.
    pub mounts: Vec<Mount>,
    /// The path of its socket on the host.
    pub socket: SocketPath,
}

/// Why a workload cannot be prepared. Partial work was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PrepareError {
    /// The allocation exists with another spec; stop it first.
    #[error("allocation {allocation} exists with other contents ({difference}); stop it first")]
    SpecChanged {
        /// The allocation.
        allocation: AllocationId,
        /// The field that differs.
        difference: &'static str,
    },
    /// The allocation is being stopped.
    #[error("allocation {allocation} is being stopped; prepare it again when it is gone")]
    Stopping {
        /// The allocation.
        allocation: AllocationId,
    },
    /// A process listens on its socket already.
    #[error(
        "a process listens on {socket} already; stop it, adopt it (AdoptAllocation), or start this allocation under another id"
    )]
    SocketInUse {
        /// The socket.
        socket: SocketPath,
    },
    /// The user's own `CSI_ENDPOINT` is invalid.
    #[error("CSI_ENDPOINT of allocation {allocation}: {reason}")]
    Endpoint {
        /// The allocation.
        allocation: AllocationId,
        /// The problem.
        reason: String,
    },
    /// A directory cannot be created while its file system is full, read-only, fails, or gives no answer.
    #[error("cannot make {path} for allocation {allocation}: {reason}")]
    Disk {
        /// The allocation.
        allocation: AllocationId,
        /// The path of the directory.
        path: PathBuf,
        /// The error of the system, and the remedy.
        reason: String,
    },
    /// A directory cannot be created, for a reason that does not depend on its disk.
    #[error("cannot make {path} for allocation {allocation}: {reason}")]
    Directory {
        /// The allocation.
        allocation: AllocationId,
        /// The path of the directory.
        path: PathBuf,
        /// The error of the system, and the remedy.
        reason: String,
    },
    /// Its supervisor crashed repeatedly over this, or too many callers ask for it at once.
    #[error("the supervisor of allocation {allocation} could not answer: {reason}")]
    Failed {
        /// The allocation.
        allocation: AllocationId,
        /// The last error.
        reason: String,
    },
    /// The limit of allocations is reached.
    #[error("limit of {held} allocations reached")]
    Full {
        /// The number of allocations.
        held: usize,
    },
}

/// The result of stopping an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationStopped {
    /// Whether it was registered and has been deregistered.
    pub deregistered: bool,
    /// The remaining cleanup: files left in the socket directory, calls that did not end in time.
    pub remarks: Vec<String>,
}

/// The phase of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationPhase {
    /// Its directories exist and its task does not run.
    Prepared,
    /// Its task runs, and its socket does not exist yet.
    AwaitingSocket,
    /// Its socket exists, and it is not ready yet.
    Probing,
    /// It is ready and being registered.
    Registering,
    /// It is registered.
    Registered,
    /// It was not ready in time, and the host was asked to restart its task.
    AwaitingRestart,
    /// It is being stopped.
    Stopping,
}

impl AllocationPhase {
    /// The phase as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::AwaitingSocket => "awaiting-socket",
            Self::Probing => "probing",
            Self::Registering => "registering",
            Self::Registered => "registered",
            Self::AwaitingRestart => "awaiting-restart",
            Self::Stopping => "stopping",
        }
    }
}

/// The status of one allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationStatus {
    /// The allocation.
    pub allocation: AllocationId,
    /// Its task.
    pub task: TaskName,
    /// The name of its plugin.
    pub plugin: PluginName,
    /// The halves of the plugin that it serves.
    pub role: Role,
    /// Its phase.
    pub phase: AllocationPhase,
    /// Its last known health.
    pub health: Health,
    /// The path of its socket.
    pub socket: SocketPath,
    /// When this phase began.
    pub since: Timestamp,
    /// Its last event.
    pub last_event: String,
}

impl AllocationStatus {
    /// The content without times: of two statuses with equal content only one is published.
    pub(crate) fn says(&self) -> (AllocationPhase, &Health, &str) {
        (self.phase, &self.health, &self.last_event)
    }
}

/// An event for the owner of the workload, among its task's events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskEvent {
    /// The allocation.
    pub allocation: AllocationId,
    /// The task.
    pub task: TaskName,
    /// The kind of event.
    pub kind: TaskEventKind,
    /// A message for people, with the root cause.
    pub message: String,
}

/// The kinds of [`TaskEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskEventKind {
    /// The plugin became healthy.
    Healthy,
    /// The plugin became unhealthy.
    Unhealthy,
    /// The plugin was not ready in time.
    NotReadyInTime,
    /// Its socket cannot be used, and waiting would not help (SEC-03).
    SocketRefused,
    /// The cleanup after a stop was incomplete.
    StoppedWithRemarks,
}

impl TaskEventKind {
    /// The kind as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
            Self::NotReadyInTime => "not-ready-in-time",
            Self::SocketRefused => "socket-refused",
            Self::StoppedWithRemarks => "stopped-with-remarks",
        }
    }
}

/// Requests the directories and the context of the task before its start. Removes the registration of a former task.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MakeReady {
    /// How to handle a process that listens on the socket already.
    pub listener: Listener,
}

/// How to interpret a process that listens on the socket before the task has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listener {
    /// The socket is taken: the task must not start (SEC-02).
    Refused,
    /// It is the task itself, which has survived its host.
    Welcome,
}

/// The task's process runs: wait for its socket.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoteStart;

/// The task's process has ended: deregister.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NoteExit {
    /// How it ended.
    pub how: String,
}

/// Ends the supervision gracefully (A4); the actor ends right after the answer.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StopSupervision;

/// Queries the present status.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribeAllocation;

/// The instance of the allocation has news of its plugin: the allocation asks for it at once, not with its next round (A3).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoteHealth;

/// The disk takes writes again: a registration that was not acknowledged because of the disk is retried at once, not after its pause.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoteDisk;

conversation! {
    /// The messages of an allocation's supervisor.
    #[derive(Clone, Hash)]
    pub enum AllocationAsk -> #[derive(Hash)] AllocationAnswer {
        MakeReady => Result<TaskContext, PrepareError>,
        NoteStart => (),
        NoteExit => (),
        NoteHealth => (),
        NoteDisk => (),
        StopSupervision => AllocationStopped,
        DescribeAllocation => AllocationStatus,
    }
}

/// The news of an allocation's supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AllocationNews {
    /// Its phase, its health or its last event changed.
    Changed(AllocationStatus),
    /// An event of its task.
    Task(TaskEvent),
    /// The host is asked to restart its task, once per start (A2, HLT-02).
    RestartRequested {
        /// The reason.
        reason: String,
    },
}
