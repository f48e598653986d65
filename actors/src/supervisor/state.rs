//! What a supervisor knows.

use std::collections::BTreeSet;
use std::time::Duration;

use super::messages::{ChildDescription, ChildEnding, StopOutcome};
use super::spec::{ChildSpec, Plan};
use crate::shell::{AskId, CallKey, Ending, StopMode};
use crate::vocabulary::{Attempt, BackoffState, Generation, RestartHistory, Timestamp};

/// How many callers may wait for one kind of answer.
pub(super) const WAITERS_MAX: usize = 1_024;

/// How the supervisor stops children of its own accord: what they leave behind serves their next life.
pub(super) const OWN_ACCORD: StopMode = StopMode::Detach;

/// Why a child is down that somebody wanted started again.
pub(super) const STOPPED_FOR_A_RESTART: &str = "it was stopped for a restart";
/// Why a child is down that shares the fate of another one.
pub(super) const A_SIBLING_FELL: &str = "a sibling fell";

/// The supervisor as a pure machine.
#[derive(Debug, Clone)]
pub struct Supervisor {
    pub(super) plan: Plan,
    pub(super) phase: Phase,
    pub(super) children: Vec<Child>,
    /// What is being done with some of the children. No child belongs to two of them.
    pub(super) courses: Vec<Course>,
    pub(super) last_course: CourseNumber,
    pub(super) last_attempt: Attempt,
    pub(super) history: RestartHistory,
    pub(super) awaiting_start: Vec<AskId>,
    pub(super) awaiting_restart: Vec<(usize, AskId)>,
    pub(super) describing: Option<Describing>,
}

/// Where the supervisor is.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// It has just been built and asks which children live: after a crash of its own they may.
    TakingStock { key: CallKey },
    /// Not every child has run yet.
    Opening,
    /// All children have been started.
    Open,
    /// It stops everything, and nothing is started any more.
    Closing(Closing),
}

/// A shutdown under way.
#[derive(Debug, Clone)]
pub(super) struct Closing {
    pub(super) cause: ClosingCause,
    pub(super) mode: StopMode,
    pub(super) begun: Timestamp,
    pub(super) endings: Vec<ChildEnding>,
    pub(super) askers: Vec<AskId>,
}

/// Why everything is stopped.
#[derive(Debug, Clone)]
pub(super) enum ClosingCause {
    Asked,
    StartFailed { child: String, reason: String },
    Escalated { reason: String },
}

/// One child.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) phase: ChildPhase,
    pub(super) life: Generation,
    pub(super) has_run: bool,
    pub(super) restarts: u64,
    pub(super) backoff: BackoffState,
    /// How it fell last, or why it was stopped, until it runs again.
    pub(super) fall: Option<String>,
}

/// Where a child is.
#[derive(Debug, Clone)]
pub(super) enum ChildPhase {
    /// Nobody has looked yet whether it lives, or it lives and what was being done with it was cut off.
    Unseen,
    /// It does not run, and its turn has not come.
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
        begun: Timestamp,
    },
    /// It ended and stays so, as its restart type wants.
    Ended,
    /// It could not be ended, so nothing may take its place.
    Stuck {
        reason: String,
    },
    /// The shutdown has dealt with it.
    Closed,
}

/// Numbers the courses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct CourseNumber(pub(super) u64);

/// A group of children on its way down and up again.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub(super) number: CourseNumber,
    pub(super) reason: CourseReason,
    /// Those that are not yet where the course brings them.
    pub(super) members: BTreeSet<usize>,
    pub(super) step: CourseStep,
}

/// Why there is a course.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CourseReason {
    /// The children are started for the first time in this life of the supervisor.
    Opening,
    /// A child fell.
    Fallen,
    /// Somebody asked for it.
    Asked,
}

/// How far a course has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CourseStep {
    /// Members are stopped one by one, the last one first. Then follows the pause.
    Stopping { pause: Duration },
    /// Its timer runs.
    Pausing,
    /// Members are started one by one, the first one first, and leave the course when they run.
    Starting,
}

/// A look at all children that is under way, and who waits for it.
#[derive(Debug, Clone)]
pub(super) struct Describing {
    pub(super) key: CallKey,
    pub(super) askers: Vec<AskId>,
}

/// What the supervisor has done for it. A child is named by its place in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Look which children live.
    TakeStock,
    /// Start a child, and wait until it is up.
    StartChild {
        /// Its place.
        child: usize,
    },
    /// Watch a child until it ends.
    AwaitEnd {
        /// Its place.
        child: usize,
    },
    /// Call a start back if one is under way, ask the child to end, wait, and kill it at the deadline.
    StopChild {
        /// Its place.
        child: usize,
        /// What it is to do with what it started.
        mode: StopMode,
        /// How long to wait before it is killed.
        deadline: Duration,
    },
    /// Let all children describe themselves.
    DescribeChildren {
        /// How long each may take.
        within: Duration,
    },
}

/// What comes back.
#[derive(Debug)]
pub enum Outcome {
    /// To [`Call::TakeStock`], in order of place.
    Stock(Vec<Standing>),
    /// To [`Call::StartChild`].
    Started {
        /// Its place.
        child: usize,
        /// What went wrong, if anything.
        result: Result<(), String>,
    },
    /// To [`Call::AwaitEnd`].
    Ended {
        /// Its place.
        child: usize,
        /// In which way.
        ending: Ending,
    },
    /// To [`Call::StopChild`].
    Stopped {
        /// Its place.
        child: usize,
        /// What came of it.
        outcome: StopOutcome,
    },
    /// To [`Call::DescribeChildren`], in order of place; `None` stands for those that did not answer.
    Described {
        /// The supervisor's own vitals.
        own: crate::shell::Vitals,
        /// Those of the children, and what is below them.
        children: Vec<Option<ChildDescription>>,
    },
}

/// What is found of a child when stock is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has never been up, and does not live.
    Absent,
    /// It is up.
    Alive,
    /// It lives, but what was being done with it was cut off: its start, or its end.
    CutOff {
        /// Whether it was ever up.
        has_run: bool,
    },
    /// It was up, and does not live since somebody stopped it.
    Stopped,
    /// It ended and nobody has heard of it.
    Ended(Ending),
}

/// What a supervisor waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The pause of a course.
    Pause(CourseNumber),
}

impl Supervisor {
    pub(super) fn spec_of(&self, child: usize) -> &ChildSpec {
        &self.plan.children[child]
    }

    pub(super) fn name_of(&self, child: usize) -> String {
        self.plan.children[child].name.clone()
    }

    /// A key that no call has had before in this life of the supervisor.
    pub(super) fn next_key(&mut self, life: Generation) -> CallKey {
        self.last_attempt = self.last_attempt.next();
        CallKey { generation: life, attempt: self.last_attempt }
    }
}

/// In words, how an actor ended.
pub(super) fn ending_in_words(ending: &Ending) -> String {
    match ending {
        Ending::Normal => "it ended normally".to_owned(),
        Ending::Panicked(message) => format!("it panicked: {message}"),
        Ending::BudgetSpent(message) => format!("it crashed too often: {message}"),
        Ending::Failed(reason) => format!("it gave up: {reason}"),
        Ending::Killed => "it was killed".to_owned(),
    }
}
