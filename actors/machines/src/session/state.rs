//! What a session remembers.

use super::calls::Step;
use super::config::SessionConfig;
use super::pinging::Pings;
use super::service::Service;
use super::status::{SessionHealth, SessionStage, SessionStatus};
use crate::kernel::{OneCall, StopMode};
use crate::process::{Launched, ProcessTag};
use crate::vocabulary::{BackoffState, Folded, Moment, Recent, Timestamp};

/// What comes after the end of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// Another one.
    Anew,
    /// Nothing.
    Leave,
}

/// How far the end of its process has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// It is not known yet whether there is one.
    Recalling,
    /// Calls in flight may end.
    Draining,
    /// It is being asked politely.
    ShutdownAnswer,
    /// It was asked politely, and may take its time.
    Leaving,
    /// It is being ended by signals.
    Stopping,
}

/// Where a session stands. `T` are the steps of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase<T> {
    /// A step upwards is being made.
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
    /// It is over.
    Gone,
}

/// What was done over the connection that there is.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Reading {
    pub(super) is_pinged: bool,
    pub(super) is_identified: bool,
    pub(super) is_configured: bool,
    /// How many steps of its service.
    pub(super) own_steps: usize,
}

impl Reading {
    /// What is to be done next.
    fn next<S: Service>(&self) -> Step<S::Step> {
        match self {
            Self { is_pinged: false, .. } => Step::Ping,
            Self { is_identified: false, .. } => Step::Identify,
            Self { is_configured: false, .. } => Step::Configure,
            Self { own_steps, .. } => S::STEPS.get(*own_steps).map_or(Step::Watch, |step| Step::Own(*step)),
        }
    }
}

/// What is known of the connection.
#[derive(Debug, Clone, Hash)]
pub(super) enum Link {
    /// There is none, or it is of no use.
    Down,
    /// It is open, to this launch, and this was done over it.
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
    /// The step that is under way, or whatever else leads from this phase to the next.
    pub(super) call: OneCall,
    pub(super) pings: Pings,
    pub(super) backoff: BackoffState,
    /// How many failures in a row there were without an answer.
    pub(super) silent_failures: u32,
    /// Whether a restart was requested, and it is not known yet that nothing of it runs. What is found until then is ended.
    pub(super) is_restart_due: bool,
    pub(super) troubles: Recent,
    /// How it is to end, once that has begun.
    pub(super) stop: Option<StopMode>,
}

impl<S: Service> Session<S> {
    /// A session that has not begun, with what is known of the service.
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

    /// What is known of the plugin.
    #[must_use]
    pub const fn status(&self) -> &SessionStatus {
        &self.status
    }

    /// What was learned of its service.
    #[must_use]
    pub const fn service(&self) -> &S {
        &self.service
    }

    /// What went wrong lately (EVT-04).
    #[must_use]
    pub fn troubles(&self) -> &[Folded] {
        self.troubles.entries()
    }

    /// What the plugin is at.
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

    /// Whether it is over: its machine is to stop when it has reported that.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Gone)
    }

    /// What is to be done next over the connection, or to get one.
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
