//! The state of a supervisor.

use std::collections::BTreeSet;
use std::time::Duration;

use super::messages::{ChildDescription, ChildEnding, StopOutcome};
use super::spec::{ChildSpec, Plan};
use crate::kernel::{AskId, CallKey, Ending, StopMode, StopStep};
use crate::vocabulary::{Attempt, BackoffState, Generation, RestartHistory, Timestamp};

/// The limit of callers that wait for one kind of answer.
pub(super) const WAITERS_MAX: usize = 1_024;

/// How the supervisor stops children for its own reasons: their leftovers serve their next life.
pub(super) const OWN_STOP_MODE: StopMode = StopMode::Detach;

/// Why a child is down during its requested restart.
pub(super) const STOPPED_FOR_A_RESTART: &str = "it was stopped for a restart";
/// Why a child is down that is restarted with another one.
pub(super) const A_SIBLING_FELL: &str = "a sibling fell";

/// The supervisor as a pure machine.
#[derive(Debug, Clone, Hash)]
pub struct Supervisor {
    pub(super) plan: Plan,
    pub(super) phase: Phase,
    pub(super) children: Vec<Child>,
    /// The groups of children that are being stopped and restarted. No child belongs to two of them.
    pub(super) group_restarts: Vec<GroupRestart>,
    pub(super) last_restart: RestartNumber,
    pub(super) last_attempt: Attempt,
    pub(super) history: RestartHistory,
    pub(super) awaiting_start: Vec<AskId>,
    pub(super) awaiting_restart: Vec<(usize, AskId)>,
    pub(super) describing: Option<Describing>,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum Phase {
    /// It has just been built and asks which children live: they survive its crash.
    FindingChildren { key: CallKey },
    /// Not every child has run yet.
    Opening,
    /// All children have been started.
    Open,
    /// It stops everything, and starts nothing.
    Closing(Closing),
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Closing {
    pub(super) cause: ClosingCause,
    pub(super) mode: StopMode,
    pub(super) begun: Timestamp,
    pub(super) endings: Vec<ChildEnding>,
    pub(super) askers: Vec<AskId>,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum ClosingCause {
    Asked,
    StartFailed { child: String, reason: String },
    Escalated { reason: String },
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Child {
    pub(super) phase: ChildPhase,
    pub(super) life: Generation,
    pub(super) has_run: bool,
    pub(super) restarts: u64,
    pub(super) backoff: BackoffState,
    /// The last reason why it fell or was stopped, until it runs again.
    pub(super) fall: Option<Fall>,
}

/// Why a child does not run.
#[derive(Debug, Clone, Hash)]
pub(super) struct Fall {
    pub(super) reason: String,
    /// Whether it ended normally, or was stopped in order.
    pub(super) in_order: bool,
}

impl Fall {
    /// It fell.
    pub(super) fn of(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), in_order: false }
    }

    /// It ended or was stopped in order.
    pub(super) fn in_order(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), in_order: true }
    }

    /// It ended by itself.
    pub(super) fn ended(ending: &Ending) -> Self {
        Self { reason: ending.to_string(), in_order: *ending == Ending::Normal }
    }
}

#[derive(Debug, Clone, Hash)]
pub(super) enum ChildPhase {
    /// It is not yet known whether it lives; or it lives and the operation on it was cut off.
    Unseen,
    /// It does not run, and its turn has not come yet.
    Waiting,
    Starting {
        key: CallKey,
    },
    Running {
        key: CallKey,
    },
    Stopping {
        key: CallKey,
        mode: StopMode,
        /// Whether no further life follows.
        is_final: bool,
        begun: Timestamp,
    },
    /// It ended and is not restarted, according to its restart type.
    Ended,
    /// It could not be ended, so its slot must not be reused.
    Stuck {
        reason: String,
    },
    /// The shutdown has finished with it.
    Closed,
}

/// The number of a group restart.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RestartNumber(pub(super) u64);

/// A group of children that is being stopped and restarted.
#[derive(Debug, Clone, Hash)]
pub(super) struct GroupRestart {
    pub(super) number: RestartNumber,
    pub(super) reason: RestartReason,
    /// The members that are not restarted yet.
    pub(super) members: BTreeSet<usize>,
    pub(super) step: RestartStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RestartReason {
    /// The first start of the children in this life of the supervisor.
    Opening,
    /// A child fell.
    Fallen,
    /// A requested restart.
    Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RestartStep {
    /// Members are stopped one by one, the last one first. Then follows the pause.
    Stopping { pause: Duration },
    /// The timer of the pause runs.
    Pausing,
    /// Members are started one by one, the first one first, and leave the group restart when they run.
    Starting,
}

/// A pending description of all children, and its callers.
#[derive(Debug, Clone, Hash)]
pub(super) struct Describing {
    pub(super) key: CallKey,
    pub(super) askers: Vec<AskId>,
}

/// The calls of a supervisor. A child is identified by its index in the plan.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// Check which children live.
    FindChildren,
    /// Start a child, and wait until it is ready.
    StartChild {
        /// Its index.
        child: usize,
    },
    /// Watch a child until it ends.
    AwaitEnd {
        /// Its index.
        child: usize,
    },
    /// Cancel a start in progress, ask the child to stop, wait, and kill it at the deadline.
    StopChild {
        /// Its index.
        child: usize,
        /// Whether it ends the things that it started, or leaves them running.
        mode: StopMode,
        /// The deadline before it is killed.
        deadline: Duration,
        /// Whether no further life follows: its leftovers after a kill or after giving up are then ended, too.
        is_final: bool,
    },
    /// Let all children describe themselves.
    DescribeChildren {
        /// The timeout for each.
        within: Duration,
    },
}

/// The outcomes of the calls.
#[doc(hidden)]
#[derive(Debug)]
pub enum Outcome {
    /// Of [`Call::FindChildren`], in order of index.
    Found(Vec<FoundChild>),
    /// Of [`Call::StartChild`].
    Started {
        /// Its index.
        child: usize,
        /// The error, if any.
        result: Result<(), String>,
    },
    /// Of [`Call::AwaitEnd`].
    Ended {
        /// Its index.
        child: usize,
        /// How it ended.
        ending: Ending,
    },
    /// Of [`Call::StopChild`].
    Stopped {
        /// Its index.
        child: usize,
        /// The result.
        outcome: StopOutcome,
        /// The things that it stopped during its shutdown, and its leftovers.
        below: Vec<StopStep>,
    },
    /// Of [`Call::DescribeChildren`], in order of index.
    Described {
        /// The supervisor's own vitals.
        own: crate::kernel::Vitals,
        /// The descriptions of the children, with their own children.
        children: Vec<ChildSeen>,
    },
}

/// The state of a child for the tree.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChildSeen {
    /// Its description; `None` if it gave none in time.
    pub description: Option<ChildDescription>,
    /// How long its stop may still take before it is killed, which is known without its description; `None` if it is not being stopped.
    pub stops_within: Option<Duration>,
}

/// The state of a child that a starting supervisor finds.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FoundChild {
    /// It was never ready, and does not live.
    Absent,
    /// It is ready.
    Alive,
    /// It lives, but the operation on it was cut off: its start or its stop.
    CutOff {
        /// Whether it was ever ready.
        has_run: bool,
    },
    /// It was ready, and was stopped.
    Stopped {
        /// Whether it ended normally and within its time.
        in_order: bool,
    },
    /// It ended, and that was not handled yet.
    Ended(Ending),
}

/// The timers of a supervisor.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// The pause of a group restart.
    Pause(RestartNumber),
}

impl Supervisor {
    pub(super) fn spec_of(&self, child: usize) -> &ChildSpec {
        &self.plan.children[child]
    }

    pub(super) fn name_of(&self, child: usize) -> String {
        self.plan.children[child].name.clone()
    }

    /// A call key that is unique in this life of the supervisor.
    pub(super) fn next_key(&mut self, life: Generation) -> CallKey {
        self.last_attempt = self.last_attempt.next();
        CallKey { generation: life, attempt: self.last_attempt }
    }
}
