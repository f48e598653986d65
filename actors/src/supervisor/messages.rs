//! What can be said to a supervisor, and what it says.

use std::fmt;
use std::time::Duration;

use super::Supervisor;
use crate::conversation;
use crate::shell::{Ending, StopMode, Vitals};

/// Waits until every child runs that is to run. Answered at once when it is so already.
#[derive(Debug, Clone, Copy)]
pub struct AwaitStarted;

/// Why the children do not all run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// This child could not be started; those before it have been stopped again (S2).
    #[error("{child} did not start, so everything before it was stopped again: {reason}")]
    Child {
        /// Its name.
        child: String,
        /// What went wrong.
        reason: String,
    },
    /// Children fell too often; all have been stopped.
    #[error("the supervisor gave up: {reason}")]
    GaveUp {
        /// Who fell last, and why.
        reason: String,
    },
    /// The supervisor was asked to stop.
    #[error("the supervisor was asked to stop")]
    Stopping,
    /// Too many wait for this already.
    #[error("{limit} callers wait for the start already")]
    TooManyWaiting {
        /// How many may.
        limit: usize,
    },
}

/// Stops one child if it runs, and starts it, without regard to the strategy and without a charge to the budget. A child that
/// waits for its restart anyway is started at once. Answered when it runs.
#[derive(Debug, Clone)]
pub struct RestartChild {
    /// Its name.
    pub name: String,
}

/// Why a child was not started again as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// There is no such child.
    #[error("there is no child {name:?}")]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// It could not be started; the supervisor goes on trying as it would after any fall.
    #[error("{name} did not start: {reason}")]
    NotStarted {
        /// Its name.
        name: String,
        /// What went wrong.
        reason: String,
    },
    /// The supervisor stops, and starts nothing any more.
    #[error("the supervisor is stopping")]
    Stopping,
    /// Too many wait for a restart already.
    #[error("{limit} callers wait for a restart already")]
    TooManyWaiting {
        /// How many may.
        limit: usize,
    },
}

/// Asks for the tree of actors from here downwards. A child that does not describe itself in time is shown with what is known
/// of it here.
#[derive(Debug, Clone, Copy)]
pub struct DescribeTree;

/// One actor of the tree, and those that it supervises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    /// Its name among its siblings.
    pub name: String,
    /// What it is: supervisor, registry, instance and so on.
    pub kind: String,
    /// What it does, in a word or a few: "starting", "running", "waiting to be restarted", "stopping", "ended".
    pub state: String,
    /// How many times it was started again.
    pub restarts: u64,
    /// How many of its steps ended in a panic; `None` if it did not say.
    pub crashes: Option<u64>,
    /// How many messages it has accepted and not yet handled; `None` if it did not say.
    pub mailbox_depth: Option<usize>,
    /// Why it is in this state; empty if there is nothing to say.
    pub message: String,
    /// What it supervises, in the order in which they are started.
    pub children: Vec<TreeNode>,
}

/// What a child says of itself for the tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChildDescription {
    /// What can be seen of its actor.
    pub vitals: Vitals,
    /// What it supervises itself.
    pub children: Vec<TreeNode>,
}

/// Stops every child in reverse order, each within its own deadline, and then the supervisor itself, after this has been
/// answered (S2, S3). From this moment on nothing is started any more. Said a second time, it joins the first; of two
/// modes [`StopMode::Stop`] wins.
#[derive(Debug, Clone, Copy)]
pub struct Shutdown {
    /// Whether to end what the children started, or to leave it for the next start.
    pub mode: StopMode,
}

/// Why a shutdown is not reported. It takes place all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShutdownError {
    /// Too many wait for the report already.
    #[error("the supervisor is stopping, and {limit} callers wait for the report already")]
    TooManyWaiting {
        /// How many may.
        limit: usize,
    },
}

/// How everything ended (S3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Each child once, in the order in which they ended.
    pub children: Vec<ChildEnding>,
    /// How long it took in all.
    pub took: Duration,
}

impl ShutdownReport {
    /// The children that did not end in order. Something that was to end may be left of them; each says what it knows.
    pub fn not_in_order(&self) -> impl Iterator<Item = &ChildEnding> {
        self.children.iter().filter(|child| !child.ending.is_in_order())
    }
}

/// How one child ended (S3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnding {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub ending: StopOutcome,
    /// How long that took from the moment it was asked to.
    pub took: Duration,
}

/// What came of stopping a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopOutcome {
    /// It ended in its own time, with its business in order.
    Stopped,
    /// It did not end within its deadline and was killed.
    Killed {
        /// The deadline.
        deadline: Duration,
    },
    /// It ended within its deadline, but not in order.
    Crashed {
        /// In which way.
        reason: String,
    },
    /// It had ended before it was its turn, or its start had failed.
    EndedBefore {
        /// In which way.
        reason: String,
    },
    /// It had never run.
    NotStarted,
    /// It did not even end when it was killed, or it is not known whether it did.
    Stuck {
        /// What is known.
        reason: String,
    },
}

impl StopOutcome {
    /// Whether nothing of the child can be left that was to end: it stopped in order, or there was nothing to stop.
    #[must_use]
    pub const fn is_in_order(&self) -> bool {
        match self {
            Self::Stopped | Self::EndedBefore { .. } | Self::NotStarted => true,
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
            Self::EndedBefore { reason } => write!(f, "had ended before: {reason}"),
            Self::NotStarted => f.write_str("had not been started"),
            Self::Stuck { reason } => write!(f, "could not be ended: {reason}"),
        }
    }
}

/// Something that happened to the children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorNews {
    /// A child runs.
    ChildStarted {
        /// Its name.
        name: String,
        /// How many times it has been started again, this time included.
        restarts: u64,
    },
    /// A child could not be started.
    ChildStartFailed {
        /// Its name.
        name: String,
        /// What went wrong.
        reason: String,
    },
    /// A child ended without having been asked to.
    ChildEnded {
        /// Its name.
        name: String,
        /// In which way.
        ending: Ending,
    },
    /// A child fell and is to be started again.
    ChildRestarting {
        /// Its name.
        name: String,
        /// How long after everything that shares its fate has ended.
        pause: Duration,
    },
    /// The supervisor stopped a child.
    ChildStopped(ChildEnding),
    /// The supervisor gives up: it stops everything and leaves the rest to its own parent.
    Escalated {
        /// Who fell last, and why.
        reason: String,
    },
}

conversation! {
    /// What is said to a supervisor.
    #[derive(Clone)]
    pub enum SupervisorAsk -> SupervisorAnswer for Supervisor {
        AwaitStarted => Result<(), StartError>,
        RestartChild => Result<(), RestartError>,
        DescribeTree => TreeNode,
        Shutdown => Result<ShutdownReport, ShutdownError>,
    }
}
