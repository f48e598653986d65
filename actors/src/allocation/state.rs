//! What the supervisor of one allocation knows. Data only.

use std::time::Duration;

use super::messages::{
    AllocationNews, AllocationPhase, AllocationSpec, AllocationStatus, AllocationStopped, Listener,
    PrepareError, TaskEventKind,
};
use super::neighbours::{RegisterOutcome, RetiredOutcome};
use super::paths::Plan;
use crate::csi::{Answer, CallError, Cause, Rpc, SocketFile};
use crate::registry::{Deregister, Deregistered, Register};
use crate::shell::{AskError, AskId};
use crate::vocabulary::{Attempt, Backoff, BackoffState, Generation, Health, Identity, Timestamp};

/// How patient the supervisor of an allocation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationOptions {
    /// Pauses between looks at the place of a socket that is waited for. They begin anew with each new socket (REG-10).
    pub look_pauses: Backoff,
    /// Pauses between probes of a plugin that is not ready yet; looks go on meanwhile.
    pub probe_pauses: Backoff,
    /// How long connecting to the plugin may take, and as long again one question to it.
    pub call_deadline: Duration,
    /// How long a refused permission must last to be believed: a plugin may just be changing the mode of its new socket.
    pub denial_patience: Duration,
    /// How long the registry may take for one answer.
    pub registry_deadline: Duration,
    /// Pauses before the registry is asked again.
    pub registry_pauses: Backoff,
    /// How often the health of a registered plugin is looked at.
    pub round: Duration,
    /// How far rounds are spread, in percent of a round to either side.
    pub round_jitter_percent: u32,
    /// How long calls in flight may take to end when an allocation stops (A4).
    pub retire_deadline: Duration,
    /// How long work on directories may take.
    pub directory_deadline: Duration,
    /// How long stopping may take up to the removal of the directory.
    pub stop_deadline: Duration,
}

impl Default for AllocationOptions {
    fn default() -> Self {
        let pauses = |first, longest| Backoff {
            first: Duration::from_millis(first),
            longest: Duration::from_millis(longest),
            jitter_percent: 10,
            reset_after: Duration::from_secs(3_600),
        };
        Self {
            look_pauses: pauses(50, 450),
            probe_pauses: pauses(50, 2_000),
            call_deadline: Duration::from_secs(5),
            denial_patience: Duration::from_millis(120),
            registry_deadline: Duration::from_secs(10),
            registry_pauses: pauses(100, 5_000),
            round: Duration::from_secs(30),
            round_jitter_percent: 10,
            retire_deadline: Duration::from_secs(10),
            directory_deadline: Duration::from_secs(5),
            stop_deadline: Duration::from_secs(15),
        }
    }
}

/// What was known of the task when this supervisor came into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// It has not been started in this run of the host. What the registry remembers from before is left alone (R2).
    NotStarted,
    /// It runs.
    Running,
    /// It ran and has ended.
    Exited,
    /// It is being stopped for good.
    Leaving,
}

/// What a supervisor of an allocation is born with.
#[derive(Debug, Clone)]
pub struct AllocationConfig {
    /// The workload.
    pub spec: AllocationSpec,
    /// Its paths.
    pub plan: Plan,
    /// Limits and pauses.
    pub options: AllocationOptions,
    /// What the task was doing.
    pub task: Task,
    /// The health that was told last, so that a new supervisor does not tell it again.
    pub health: Health,
}

/// What is called beside the mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationCall {
    /// Make the directories, and see to a socket that is there.
    MakeDirectories(Listener),
    /// Look what is at the place of the socket, without connecting.
    FindSocket,
    /// Connect and ask one question.
    Ask(Rpc),
    /// Register.
    Register(Register),
    /// Deregister.
    Deregister(Deregister),
    /// Ask how the instances find the plugin.
    AskHealth,
    /// Wait until no instance talks to it.
    AwaitRetired,
    /// Remove the socket and its directory.
    RemoveDirectory,
}

/// What comes back.
#[derive(Debug, Clone)]
pub enum AllocationOutcome {
    /// From [`AllocationCall::MakeDirectories`].
    Made(Result<(), PrepareError>),
    /// From [`AllocationCall::FindSocket`].
    Found(Result<SocketFile, Cause>),
    /// From [`AllocationCall::Ask`].
    Answered(Result<Answer, CallError>),
    /// From [`AllocationCall::Register`].
    Registered(RegisterOutcome),
    /// From [`AllocationCall::Deregister`].
    Deregistered(Result<Deregistered, AskError>),
    /// From [`AllocationCall::AskHealth`].
    Health(Result<Vec<Health>, AskError>),
    /// From [`AllocationCall::AwaitRetired`].
    Retired(RetiredOutcome),
    /// From [`AllocationCall::RemoveDirectory`]: what was left, and why.
    Removed(Vec<String>),
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllocationTimer {
    /// The next look at the place of the socket.
    Look,
    /// The end of the plugin's time to become ready.
    HealthTimeout,
    /// The next try with the registry.
    Registry,
    /// The next round.
    Round,
    /// The next try to learn that calls have ended.
    Retire,
    /// The end of patience with stopping.
    StopDeadline,
}

/// The supervisor of one allocation.
#[derive(Debug, Clone)]
pub struct Allocation {
    pub(super) config: AllocationConfig,
    /// The last number that was given to a call.
    pub(super) attempts: Attempt,
    /// Which start of the task this is.
    pub(super) start: Generation,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) health: Health,
    pub(super) last_event: String,
    pub(super) preparing: Option<Preparing>,
    pub(super) sign_in: SignIn,
    /// What was published last.
    pub(super) told: Option<AllocationStatus>,
    /// What this step wants to tell beside the status.
    pub(super) news: Vec<AllocationNews>,
}

/// Where it has got to.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    Prepared,
    Waiting(Waiting),
    Registering,
    Registered(Watch),
    AwaitingRestart,
    Stopping(Stopping),
    Ended,
}

impl Phase {
    pub(super) const fn shown(&self) -> AllocationPhase {
        match self {
            Self::Prepared => AllocationPhase::Prepared,
            Self::Waiting(Waiting { file: None, .. }) => AllocationPhase::AwaitingSocket,
            Self::Waiting(Waiting { file: Some(_), .. }) => AllocationPhase::Probing,
            Self::Registering => AllocationPhase::Registering,
            Self::Registered(_) => AllocationPhase::Registered,
            Self::AwaitingRestart => AllocationPhase::AwaitingRestart,
            Self::Stopping(_) | Self::Ended => AllocationPhase::Stopping,
        }
    }
}

/// Directories are being made for these.
#[derive(Debug, Clone)]
pub(super) struct Preparing {
    pub(super) attempt: Attempt,
    pub(super) askers: Vec<AskId>,
}

/// The time between the start of the task and its first ready answer (A2).
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// The socket that was seen last.
    pub(super) file: Option<SocketFile>,
    pub(super) looks: BackoffState,
    pub(super) probes: BackoffState,
    /// Before this no question is asked again.
    pub(super) probe_after: Timestamp,
    pub(super) denied_since: Option<Timestamp>,
    pub(super) under_way: Option<Errand>,
    pub(super) tries: u32,
    pub(super) first_cause: Option<String>,
    pub(super) last_cause: Option<String>,
}

/// A call that was made while waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errand {
    pub(super) attempt: Attempt,
    pub(super) began: Timestamp,
    pub(super) rpc: Option<Rpc>,
}

/// The rounds after registration (A3).
#[derive(Debug, Clone, Default)]
pub(super) struct Watch {
    pub(super) under_way: Option<Attempt>,
    /// Pauses between rounds until the plugin is known to be healthy or not.
    pub(super) looks: BackoffState,
}

/// The way out (A4).
#[derive(Debug, Clone)]
pub(super) struct Stopping {
    pub(super) askers: Vec<AskId>,
    pub(super) stage: Stage,
    pub(super) report: AllocationStopped,
    /// Whether the host itself stops: then what could not be done is left to its next start.
    pub(super) is_last: bool,
}

/// How far stopping has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Deregistering,
    Retiring {
        attempt: Attempt,
    },
    Removing {
        attempt: Attempt,
    },
    /// All that is left to do is the deregistration that was not possible in time: as long as the registry knows of us, work
    /// is routed to a plugin that is gone.
    Owing,
}

/// What the registry is to know of us, and what it does know. One message is under way at a time, so that none overtakes.
#[derive(Debug, Clone)]
pub(super) struct SignIn {
    pub(super) wish: Wish,
    pub(super) standing: Standing,
    pub(super) under_way: Option<(Attempt, Wish)>,
    pub(super) is_pausing: bool,
    pub(super) pauses: BackoffState,
    pub(super) trouble: Option<String>,
}

/// What the registry is to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// Whatever it knows: the task has not been started in this run of the host.
    LeaveAlone,
    /// That this plugin serves.
    In(Identity),
    /// Nothing of us.
    Out,
}

/// What the registry knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    Unknown,
    In(Identity),
    Out,
}

/// An event in the making.
pub(super) struct Event {
    pub(super) kind: TaskEventKind,
    pub(super) message: String,
}
