//! The state of a session.

use super::calls::Step;
use super::config::SessionConfig;
use super::pinging::Pings;
use super::service::Service;
use super::status::{SessionHealth, SessionStage, SessionStatus};
use crate::kernel::{OneCall, StopMode};
use crate::process::{Launched, ProcessTag};
use crate::vocabulary::{BackoffState, Folded, Moment, Recent, Timestamp};

/// The next action after the end of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// Restart.
    Anew,
    /// Nothing.
    Leave,
}

/// The progress of the end of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// It is not known yet whether there is a process.
    Recalling,
    /// Calls in flight may end.
    Draining,
    /// The shutdown request is pending.
    ShutdownAnswer,
    /// It received the shutdown request, and may use its grace.
    Leaving,
    /// It is being ended by signals.
    Stopping,
}

/// The phase of a session. `T` are the steps of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase<T> {
    /// A step towards serving is in progress.
    Starting(Step<T>),
    /// The next fingerprint is awaited.
    Watching,
    /// A fingerprint came, and the next is not read yet.
    Resting,
    /// Something failed; a timer tries again.
    Pausing,
    /// Its program is refused. It is launched again when the program has changed, or when a restart is requested.
    Refused,
    /// Its process is being ended since the time given.
    Ending(Ending, Then, Timestamp),
    /// It has ended.
    Gone,
}

/// The progress over the present connection.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Reading {
    pub(super) is_pinged: bool,
    pub(super) is_identified: bool,
    pub(super) is_configured: bool,
    /// The number of completed steps of its service.
    pub(super) own_steps: usize,
}

impl Reading {
    /// The next step.
    fn next<S: Service>(&self) -> Step<S::Step> {
        match self {
            Self { is_pinged: false, .. } => Step::Ping,
            Self { is_identified: false, .. } => Step::Identify,
            Self { is_configured: false, .. } => Step::Configure,
            Self { own_steps, .. } => S::STEPS.get(*own_steps).map_or(Step::Watch, |step| Step::Own(*step)),
        }
    }
}

/// The state of the connection.
#[derive(Debug, Clone, Hash)]
pub(super) enum Link {
    /// There is none, or it is unusable.
    Down,
    /// It is open, to this launch, with this progress.
    Up(ProcessTag, Reading),
}

/// A session with one plugin: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Session<S: Service> {
    pub(super) config: SessionConfig,
    pub(super) service: S,
    pub(super) phase: Phase<S::Step>,
    pub(super) process: Option<Launched>,
    pub(super) link: Link,
    pub(super) status: SessionStatus,
    /// The step in progress, or any other call that leads from this phase to the next.
    pub(super) call: OneCall,
    pub(super) pings: Pings,
    pub(super) backoff: BackoffState,
    /// The number of consecutive failures without an answer.
    pub(super) silent_failures: u32,
    /// Whether a restart was requested, and it is not known yet that none of its processes runs. A process found until then is ended.
    pub(super) is_restart_due: bool,
    pub(super) troubles: Recent,
    /// How it is to end, once the end has begun.
    pub(super) stop: Option<StopMode>,
}

impl<S: Service> Session<S> {
    /// A session that has not begun, with the initial state of the service.
    #[must_use]
    pub fn new(config: SessionConfig, service: S, moment: Moment) -> Self {
        Self {
            config,
            service,
            phase: Phase::Starting(Step::Recall),
            process: None,
            link: Link::Down,
            status: SessionStatus::of_nothing_yet(moment.now),
            call: OneCall::default(),
            pings: Pings::default(),
            backoff: BackoffState::default(),
            silent_failures: 0,
            is_restart_due: false,
            troubles: Recent::default(),
            stop: None,
        }
    }

    /// The state of the plugin.
    #[must_use]
    pub const fn status(&self) -> &SessionStatus {
        &self.status
    }

    /// The state of its service.
    #[must_use]
    pub const fn service(&self) -> &S {
        &self.service
    }

    /// The recent problems (EVT-04).
    #[must_use]
    pub fn troubles(&self) -> &[Folded] {
        self.troubles.entries()
    }

    /// The stage of the plugin.
    #[must_use]
    pub const fn stage(&self) -> SessionStage {
        match self.phase {
            Phase::Starting(Step::Recall) => SessionStage::Recalling,
            Phase::Starting(Step::Launch) => SessionStage::Launching,
            Phase::Starting(_) => SessionStage::Connecting,
            Phase::Watching | Phase::Resting => SessionStage::Watching,
            Phase::Pausing => SessionStage::Pausing,
            Phase::Refused => SessionStage::Refused,
            Phase::Ending(..) => SessionStage::Stopping,
            Phase::Gone => SessionStage::Gone,
        }
    }

    /// Whether it has ended: its machine must stop after it has reported that.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Gone)
    }

    /// The next step over the connection, or to get one.
    pub(super) fn next_step(&self) -> Step<S::Step> {
        match &self.link {
            Link::Down => Step::Dial,
            Link::Up(_, reading) => reading.next::<S>(),
        }
    }

    pub(super) fn set_health(&mut self, moment: Moment, health: SessionHealth, reason: String) {
        if self.status.health != health {
            self.status.since = moment.now;
        }
        self.status.health = health;
        self.status.reason = reason;
    }
}
