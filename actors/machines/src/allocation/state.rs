//! The state of an allocation's supervisor. Data only.

use std::time::Duration;

use super::messages::{
    AllocationNews, AllocationPhase, AllocationSpec, AllocationStatus, AllocationStopped, Listener,
    PrepareError, TaskEventKind,
};
use super::neighbours::{RegisterOutcome, RetiredOutcome};
use super::paths::Plan;
use crate::AskError;
use crate::csi::{Answer, CallError, Cause, Rpc, SocketFile};
use crate::kernel::AskId;
use crate::registry::{Deregister, Deregistered, Register};
use crate::vocabulary::{Attempt, Backoff, BackoffState, Generation, Health, Identity, Timestamp};

/// The options of an allocation's supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllocationOptions {
    /// The pauses between checks for an expected socket. They are reset for each new socket (REG-10).
    pub look_pauses: Backoff,
    /// The pauses between probes of a plugin that is not ready yet; checks for the socket continue meanwhile.
    pub probe_pauses: Backoff,
    /// The timeout for connecting to the plugin, and the same again for one request.
    pub call_deadline: Duration,
    /// Whether an answer with a harmless deviation from the specification is refused. False by default.
    pub strict: bool,
    /// How long a permission error must last before it is final: a plugin may be changing the mode of its new socket.
    pub denial_timeout: Duration,
    /// The deadline of one message to the registry.
    pub registry_deadline: Duration,
    /// The pauses before a retry with the registry.
    pub registry_pauses: Backoff,
    /// The interval of health checks of a registered plugin.
    pub round: Duration,
    /// The jitter of rounds, in percent of a round to either side.
    pub round_jitter_percent: u32,
    /// The timeout for calls in flight when an allocation stops (A4).
    pub retire_deadline: Duration,
    /// The deadline of work on directories.
    pub directory_deadline: Duration,
    /// The timeout for stopping, up to the removal of the directory.
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
            strict: false,
            denial_timeout: Duration::from_millis(120),
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

/// The state of the task when this supervisor was started.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// It has not been started in this run of the host. A restored registration is left alone (R2).
    NotStarted,
    /// It runs.
    Running,
    /// It ran and has ended.
    Exited,
    /// It is being stopped.
    Leaving,
}

/// The configuration of an allocation's supervisor.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct AllocationConfig {
    /// The workload.
    pub spec: AllocationSpec,
    /// Its paths.
    pub plan: Plan,
    /// The options.
    pub options: AllocationOptions,
    /// The state of the task.
    pub task: Task,
    /// The health that was published last, so that a new supervisor does not repeat it.
    pub health: Health,
}

/// The calls of an allocation's supervisor.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AllocationCall {
    /// Create the directories, and handle an existing socket.
    MakeDirectories(Listener),
    /// Check the place of the socket, without connecting.
    FindSocket,
    /// Connect and make one request.
    Ask(Rpc),
    /// Register.
    Register(Register),
    /// Deregister.
    Deregister(Deregister),
    /// Query the health that the instances know.
    AskHealth,
    /// Wait until no instance talks to it.
    AwaitRetired,
    /// Remove the socket and its directory.
    RemoveDirectory,
}

/// The outcomes of the calls.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum AllocationOutcome {
    /// Of [`AllocationCall::MakeDirectories`].
    Made(Result<(), PrepareError>),
    /// Of [`AllocationCall::FindSocket`].
    Found(Result<SocketFile, Cause>),
    /// Of [`AllocationCall::Ask`].
    Answered(Result<Answer, CallError>),
    /// Of [`AllocationCall::Register`].
    Registered(RegisterOutcome),
    /// Of [`AllocationCall::Deregister`].
    Deregistered(Result<Deregistered, AskError>),
    /// Of [`AllocationCall::AskHealth`].
    Health(Result<Vec<Health>, AskError>),
    /// Of [`AllocationCall::AwaitRetired`].
    Retired(RetiredOutcome),
    /// Of [`AllocationCall::RemoveDirectory`]: what could not be removed, and why.
    Removed(Vec<String>),
}

/// The timers of an allocation's supervisor.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationTimer {
    /// The next check for the socket.
    Look,
    /// The health timeout of the plugin.
    HealthTimeout,
    /// The next retry with the registry.
    Registry,
    /// The next round.
    Round,
    /// The next retry of waiting for calls in flight.
    Retire,
    /// The timeout for stopping.
    StopDeadline,
}

/// The supervisor of one allocation.
#[derive(Debug, Clone, Hash)]
pub struct Allocation {
    pub(super) config: AllocationConfig,
    /// The number of the last call.
    pub(super) attempts: Attempt,
    pub(super) start: Generation,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) health: Health,
    pub(super) last_event: String,
    pub(super) preparing: Option<Preparing>,
    pub(super) registration_state: RegistrationState,
    /// The status that was published last.
    pub(super) told: Option<AllocationStatus>,
    /// The news of this step beside the status.
    pub(super) news: Vec<AllocationNews>,
}

#[derive(Debug, Clone, Hash)]
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

#[derive(Debug, Clone, Hash)]
pub(super) struct Preparing {
    pub(super) attempt: Attempt,
    pub(super) askers: Vec<AskId>,
}

/// The phase between the start of the task and its first ready answer (A2).
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Waiting {
    /// The socket that was found last.
    pub(super) file: Option<SocketFile>,
    pub(super) looks: BackoffState,
    pub(super) probes: BackoffState,
    /// No probe before this time.
    pub(super) probe_after: Timestamp,
    pub(super) denied_since: Option<Timestamp>,
    pub(super) under_way: Option<PendingCall>,
    pub(super) tries: u32,
    pub(super) first_cause: Option<String>,
    pub(super) last_cause: Option<String>,
}

/// The pending call of this phase.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct PendingCall {
    pub(super) attempt: Attempt,
    pub(super) began: Timestamp,
    pub(super) rpc: Option<Rpc>,
}

/// The health rounds after registration (A3).
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Watch {
    pub(super) under_way: Option<Attempt>,
    /// Whether its instance has had news since the last question.
    pub(super) has_news: bool,
    /// Whether the last question was for news, and no answer has come since.
    pub(super) owes_question: bool,
    /// The pauses between rounds until the plugin is known to be healthy or not.
    pub(super) looks: BackoffState,
    /// Since when it is known to be unhealthy without a break, or when a restart was asked for last.
    pub(super) unhealthy_since: Option<Timestamp>,
    /// The health before its instance began to reconnect. The health after that is an event only if it differs.
    pub(super) before: Option<Health>,
}

/// The stop in progress (A4).
#[derive(Debug, Clone, Hash)]
pub(super) struct Stopping {
    pub(super) askers: Vec<AskId>,
    pub(super) stage: Stage,
    pub(super) report: AllocationStopped,
    /// Whether the host itself stops: then failed cleanup is left to its next start.
    pub(super) is_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Deregistering,
    Retiring {
        attempt: Attempt,
    },
    Removing {
        attempt: Attempt,
    },
    /// Only the deregistration remains, which was not possible in time: until it succeeds, work is routed to a plugin that is gone.
    Owing,
}

/// The desired and the actual state in the registry. One message is pending at a time, to keep the order.
#[derive(Debug, Clone, Hash)]
pub(super) struct RegistrationState {
    pub(super) desired: Desired,
    pub(super) actual: ActualState,
    pub(super) under_way: Option<(Attempt, Desired)>,
    pub(super) is_pausing: bool,
    pub(super) pauses: BackoffState,
    pub(super) trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Desired {
    /// Unchanged: the task has not been started in this run of the host.
    LeaveAlone,
    /// Registered with this identity.
    In(Identity),
    Out,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ActualState {
    Unknown,
    In(Identity),
    Out,
}

pub(super) struct Event {
    pub(super) kind: TaskEventKind,
    pub(super) message: String,
}
