//! What is said of one plugin workload, to its supervisor and by it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::state::Allocation;
use crate::conversation;
use crate::vocabulary::{AllocationId, Health, PluginKey, PluginName, Role, SocketPath, TaskName, Timestamp};

/// How a workload sees the file system: decides which path `CSI_ENDPOINT` names (A1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// It sees the host's own paths.
    None,
    /// It is confined to a directory of the host, into which the socket directory is mounted.
    Chroot,
    /// It has a root of its own from an image, into which the socket directory is mounted.
    Image,
}

/// Everything a host says of one plugin workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationSpec {
    /// The allocation.
    pub allocation: AllocationId,
    /// Its task whose process is the plugin.
    pub task: TaskName,
    /// The name of the plugin.
    pub plugin: PluginName,
    /// Which halves of it.
    pub role: Role,
    /// The directory inside the workload where its socket directory is mounted; meaningless without isolation.
    pub socket_mount_dir: PathBuf,
    /// The directory inside the workload below which volumes are staged and published. `/local/csi` by default.
    pub volume_mount_dir: PathBuf,
    /// How long the plugin may take from its start to its first ready answer. 30 s by default.
    pub health_timeout: Duration,
    /// How the workload sees the file system.
    pub isolation: Isolation,
    /// The user's own environment: a `CSI_ENDPOINT` in it wins (SEC-04), and then the socket is looked for where it says.
    pub environment: BTreeMap<String, String>,
}

impl AllocationSpec {
    /// A spec with the usual defaults.
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
            isolation: Isolation::None,
            environment: BTreeMap::new(),
        }
    }

    /// The plugins that it serves: a monolith is two.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginKey> {
        let types = self.role.plugin_types();
        types.iter().map(|kind| PluginKey::new(*kind, self.plugin.clone())).collect()
    }
}

/// How mounts made on one side of a bind mount show on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Not at all.
    Private,
    /// Both ways (`rshared`).
    Bidirectional,
}

/// One directory that the host is to mount into the workload (C178).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// On the host.
    pub host_path: PathBuf,
    /// Inside the workload.
    pub task_path: PathBuf,
    /// How mounts pass.
    pub propagation: Propagation,
}

/// All that a workload needs to be started. Asked for again it is the same again (A1, RES-02).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// What to set in its environment; does not repeat what the user set.
    pub environment: BTreeMap<String, String>,
    /// What to mount. Without isolation both paths of each mount are the same, and it only says what the task must be able
    /// to see.
    pub mounts: Vec<Mount>,
    /// Where its socket will be, as the host sees it.
    pub socket: SocketPath,
}

/// Why a workload cannot be prepared. Nothing was left half-done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The allocation exists with another spec; stop it first.
    #[error("allocation {allocation} exists with other contents ({difference}); stop it first")]
    SpecChanged {
        /// Which allocation.
        allocation: AllocationId,
        /// The field that differs.
        difference: &'static str,
    },
    /// The allocation is being stopped.
    #[error("allocation {allocation} is being stopped; prepare it again when it is gone")]
    Stopping {
        /// Which allocation.
        allocation: AllocationId,
    },
    /// Something listens on its socket already.
    #[error("a process listens on {socket} already; stop it, or start this allocation under another id")]
    SocketInUse {
        /// The socket.
        socket: SocketPath,
    },
    /// The user's own `CSI_ENDPOINT` cannot be used.
    #[error("CSI_ENDPOINT of allocation {allocation}: {reason}")]
    Endpoint {
        /// Which allocation.
        allocation: AllocationId,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory cannot be made.
    #[error("cannot make {path} for allocation {allocation}: {reason}")]
    Directory {
        /// Which allocation.
        allocation: AllocationId,
        /// What was to be made.
        path: PathBuf,
        /// What the system said, and what to do.
        reason: String,
    },
    /// Its supervisor failed over this again and again, or too many ask for the same at once.
    #[error("the supervisor of allocation {allocation} could not answer: {reason}")]
    Failed {
        /// Which allocation.
        allocation: AllocationId,
        /// What it failed of.
        reason: String,
    },
    /// There are too many allocations.
    #[error("{held} allocations are held and no more are taken")]
    Full {
        /// How many there are.
        held: usize,
    },
}

/// What became of stopping an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationStopped {
    /// Whether it was registered and was deregistered.
    pub deregistered: bool,
    /// What could not be put in order, if anything: files left in the socket directory, calls that did not end in time.
    pub remarks: Vec<String>,
}

/// Where an allocation has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationPhase {
    /// Its directories are made and its task does not run.
    Prepared,
    /// Its task runs, and its socket is not there yet.
    AwaitingSocket,
    /// Its socket is there, and it does not say ready yet.
    Probing,
    /// It is ready and being registered.
    Registering,
    /// It is registered.
    Registered,
    /// It took too long, and the host was asked to restart its task.
    AwaitingRestart,
    /// It is being stopped.
    Stopping,
}

impl AllocationPhase {
    /// The word for it.
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

/// One allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationStatus {
    /// Which allocation.
    pub allocation: AllocationId,
    /// Its task.
    pub task: TaskName,
    /// The name of its plugin.
    pub plugin: PluginName,
    /// Which halves of it.
    pub role: Role,
    /// Where it has got to.
    pub phase: AllocationPhase,
    /// Its health as last seen.
    pub health: Health,
    /// Where its socket is.
    pub socket: SocketPath,
    /// Since when it has been in this phase.
    pub since: Timestamp,
    /// The last thing worth telling.
    pub last_event: String,
}

impl AllocationStatus {
    /// What it says beside its times: two reports that agree in this tell the same.
    pub(crate) fn says(&self) -> (AllocationPhase, &Health, &str) {
        (self.phase, &self.health, &self.last_event)
    }
}

/// Something that the owner of the workload should see among its task's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEvent {
    /// Which allocation.
    pub allocation: AllocationId,
    /// Which task.
    pub task: TaskName,
    /// What kind of thing.
    pub kind: TaskEventKind,
    /// A sentence for people, with the true cause.
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
    /// Something could not be put in order while stopping.
    StoppedWithRemarks,
}

/// Asks for the directories and the context of the task before it starts. Whatever ran before has ended: its registration
/// leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MakeReady {
    /// What to do about a process that listens on the socket already.
    pub listener: Listener,
}

/// What a process that listens on the socket before the task has started means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// The socket is taken: the task must not start (SEC-02).
    Refused,
    /// It is the task itself, which outlived its host.
    Welcome,
}

/// Says that the task's process runs: wait for its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteStart;

/// Says that the task's process has ended: deregister.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteExit {
    /// How it ended.
    pub how: String,
}

/// Ends the supervision in order (A4); the actor ends right after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignOff;

/// Asks for the present status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribeAllocation;

conversation! {
    /// What is said to the supervisor of one allocation.
    #[derive(Clone)]
    pub enum AllocationAsk -> AllocationAnswer for Allocation {
        MakeReady => Result<TaskContext, PrepareError>,
        NoteStart => (),
        NoteExit => (),
        SignOff => AllocationStopped,
        DescribeAllocation => AllocationStatus,
    }
}

/// What the supervisor of one allocation tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationNews {
    /// Its phase, its health or its last event changed.
    Changed(AllocationStatus),
    /// An event of its task.
    Task(TaskEvent),
    /// The host is asked to restart its task, once per start (A2, HLT-02).
    RestartRequested {
        /// Why.
        reason: String,
    },
}
