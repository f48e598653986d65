//! The messages and notifications of a supervisor.

use std::fmt;
use std::time::Duration;

use crate::conversation;
use crate::kernel::{Ending, StopMode, StopStep, Vitals};

/// Waits until all children run. Answered at once if they do.
#[derive(Debug, Clone, Copy, Hash)]
pub struct AwaitStarted;

/// Why not all children run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StartError {
    /// This child could not be started; those before it were rolled back (S2).
    #[error("{child} did not start, so everything before it was stopped again: {reason}")]
    Child {
        /// The name of the child.
        child: String,
        /// The reason.
        reason: String,
    },
    /// The restart budget is exhausted; all children have been stopped.
    #[error("the supervisor gave up: {reason}")]
    GaveUp {
        /// The child that fell last, and why.
        reason: String,
    },
    /// The supervisor was asked to stop.
    #[error("the supervisor was asked to stop")]
    Stopping,
    /// Too many callers wait for this already.
    #[error("{limit} callers already wait for the start")]
    TooManyWaiting {
        /// The limit.
        limit: usize,
    },
}

/// Restarts one child, independent of the strategy and without charge to the budget. A pending restart is done at once.
/// Answered when the child runs.
#[derive(Debug, Clone, Hash)]
pub struct RestartChild {
    /// The name of the child.
    pub name: String,
}

/// Why a requested restart failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RestartError {
    /// There is no such child.
    #[error("there is no child {name:?}")]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// It could not be started; the supervisor retries as after any fall.
    #[error("{name} did not start: {reason}")]
    NotStarted {
        /// The name of the child.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The supervisor is stopping, and starts nothing.
    #[error("the supervisor is stopping")]
    Stopping,
    /// Too many callers already wait for a restart.
    #[error("{limit} callers already wait for a restart")]
    TooManyWaiting {
        /// The limit.
        limit: usize,
    },
}

/// Queries the tree of actors below this supervisor. For a child that times out, the tree shows the state known to its supervisor.
#[derive(Debug, Clone, Copy, Hash)]
pub struct DescribeTree;

/// One actor of the tree, with its children.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TreeNode {
    /// Its name among its siblings.
    pub name: String,
    /// Its kind: supervisor, registry, instance and so on.
    pub kind: String,
    /// Its state in a few words: "waiting to be started", "starting", "running", "not answering", "waiting to be restarted", "stopping",
    /// "stuck", "ended", or "unknown".
    pub state: String,
    /// How many times it was restarted.
    pub restarts: u64,
    /// The number of its steps that panicked; `None` if it is unknown.
    pub crashes: Option<u64>,
    /// The number of messages it has accepted and not yet handled; `None` if it is unknown.
    pub mailbox_depth: Option<usize>,
    /// The reason for its state; may be empty.
    pub message: String,
    /// How long its stop may still take, all its limits included; `None` if it is not being stopped.
    pub stops_within: Option<Duration>,
    /// The time until its process gets SIGKILL if it has not ended by then, zero once that is due; `None` if no process is being ended.
    pub kills_within: Option<Duration>,
    /// The parts of it that have already ended, while the rest is being stopped.
    pub ended: Vec<StopStep>,
    /// Its children, in the order of their start.
    pub children: Vec<TreeNode>,
}

/// The description of a child for the tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChildDescription {
    /// The counters of its actor.
    pub vitals: Vitals,
    /// Its own children.
    pub children: Vec<TreeNode>,
    /// Why it does not list its children, although it was asked to.
    pub silence: Option<String>,
}

/// Stops every child in reverse order, each within its own deadline, and then the supervisor itself, after this has been
/// answered (S2, S3). From this moment on nothing is started. A second shutdown joins the first; of two modes
/// [`StopMode::Stop`] wins.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Shutdown {
    /// Whether to end what the children started, or to leave it running for the next start.
    pub mode: StopMode,
}

/// Why a shutdown sends no report. The shutdown proceeds nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ShutdownError {
    /// Too many callers already wait for the report.
    #[error("the supervisor is stopping, and {limit} callers already wait for the report")]
    TooManyWaiting {
        /// The limit.
        limit: usize,
    },
}

/// The outcome of a shutdown (S3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShutdownReport {
    /// Each child once, in the order in which they ended.
    pub children: Vec<ChildEnding>,
    /// The total duration.
    pub took: Duration,
}

impl ShutdownReport {
    /// The children that did not end in order. Parts that should have ended may remain; each gives its reason.
    pub fn not_in_order(&self) -> impl Iterator<Item = &ChildEnding> {
        self.children.iter().filter(|child| !child.ending.is_in_order() || child.leaves_something())
    }
}

/// The end of one child (S3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildEnding {
    /// The name of the child.
    pub name: String,
    /// How it ended.
    pub ending: StopOutcome,
    /// The things that it stopped itself, in the order in which they ended, followed by its leftovers, if it did not end in order.
    pub below: Vec<StopStep>,
    /// The time from the stop request to its end.
    pub took: Duration,
}

impl ChildEnding {
    /// First the things that it stopped, then its own end, as `parent/name`.
    #[must_use]
    pub fn steps(&self, parent: &str) -> Vec<StopStep> {
        let own = StopStep {
            what: format!("{parent}/{}", self.name),
            ending: self.ending.to_string(),
            took: self.took,
            is_left: !self.ending.is_in_order(),
        };
        self.below.iter().cloned().chain([own]).collect()
    }

    fn leaves_something(&self) -> bool {
        self.below.iter().any(|step| step.is_left)
    }
}

/// The outcome of stopping a child.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StopOutcome {
    /// It stopped gracefully and in order.
    Stopped,
    /// It did not end within its deadline and was killed.
    Killed {
        /// The deadline.
        deadline: Duration,
    },
    /// It ended within its deadline, but not in order.
    Crashed {
        /// How it ended.
        reason: String,
    },
    /// It had ended before its turn, or its start had failed.
    EndedBefore {
        /// How it ended.
        reason: String,
        /// Whether it had ended normally and is not restarted, or had been stopped in order for a restart. Otherwise it had fallen, as a
        /// permanent child that ends has, and the things that it had started were not stopped in order.
        in_order: bool,
    },
    /// It had never run.
    NotStarted,
    /// It did not end even after a kill, or it is unknown whether it did.
    Stuck {
        /// The known facts.
        reason: String,
    },
}

impl StopOutcome {
    /// Whether nothing can remain of the child that should have ended: it stopped in order, or there was nothing to stop.
    #[must_use]
    pub const fn is_in_order(&self) -> bool {
        match self {
            Self::Stopped | Self::NotStarted => true,
            Self::EndedBefore { in_order, .. } => *in_order,
            Self::Killed { .. } | Self::Crashed { .. } | Self::Stuck { .. } => false,
        }
    }
}

impl fmt::Display for StopOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped in time"),
            Self::Killed { deadline } => write!(f, "killed, since it had not ended within {deadline:?}"),
            Self::Crashed { reason } => write!(f, "did not stop in order: {reason}"),
            Self::EndedBefore { reason, in_order: true } => write!(f, "had ended before: {reason}"),
            Self::EndedBefore { reason, in_order: false } => {
                write!(f, "had failed before, and was not stopped in order: {reason}")
            }
            Self::NotStarted => f.write_str("had not been started"),
            Self::Stuck { reason } => write!(f, "could not be ended: {reason}"),
        }
    }
}

/// The notifications of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SupervisorNews {
    /// A child runs.
    ChildStarted {
        /// The name of the child.
        name: String,
        /// How many times it has been restarted, this time included.
        restarts: u64,
    },
    /// A child could not be started.
    ChildStartFailed {
        /// The name of the child.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A child ended by itself.
    ChildEnded {
        /// The name of the child.
        name: String,
        /// How it ended.
        ending: Ending,
    },
    /// A child fell and will be restarted.
    ChildRestarting {
        /// The name of the child.
        name: String,
        /// The pause, which begins when all children that are restarted with it have ended.
        pause: Duration,
    },
    /// The supervisor stopped a child.
    ChildStopped(ChildEnding),
    /// The supervisor gives up: it stops everything and escalates to its own parent.
    Escalated {
        /// The child that fell last, and why.
        reason: String,
    },
}

conversation! {
    /// The messages of a supervisor.
    #[derive(Clone, Hash)]
    pub enum SupervisorAsk -> #[derive(Hash)] SupervisorAnswer {
        AwaitStarted => Result<(), StartError>,
        RestartChild => Result<(), RestartError>,
        DescribeTree => TreeNode,
        Shutdown => Result<ShutdownReport, ShutdownError>,
    }
}
