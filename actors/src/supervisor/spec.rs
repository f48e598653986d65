//! What a supervisor is told of its children and of its own manners.

use std::sync::Arc;
use std::time::Duration;

use crate::shell::Ending;
use crate::vocabulary::{Backoff, RestartBudget};

/// Whether a child is started again after it has ended, in the words of OTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    Permanent,
    /// Only after an end that was not [`Ending::Normal`].
    Transient,
    /// Never; nor is it started again when the strategy has stopped it.
    Temporary,
}

impl Restart {
    /// Whether a child of this type that ended in this way is started again.
    #[must_use]
    pub fn is_due_after(self, ending: &Ending) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => *ending != Ending::Normal,
            Self::Temporary => false,
        }
    }
}

/// Which siblings share the fate of a child that has to be started again, in the words of OTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// None.
    OneForOne,
    /// All: the others are stopped in reverse order, then all are started in order.
    OneForAll,
    /// Those that were started after it.
    RestForOne,
}

/// One child, as the deciding side knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildSpec {
    /// Its name among its siblings.
    pub name: String,
    /// What it is, for the tree: registry, supervisor and so on.
    pub kind: String,
    /// Whether it is started again.
    pub restart: Restart,
    /// How long it may take until it is up; then the start has failed.
    pub start_deadline: Duration,
    /// How long it may take to end in its own time; then it is killed. For a child that is a supervisor this must cover
    /// the deadlines of all its children.
    pub stop_deadline: Duration,
    /// How long it may take at most when it says that it needs longer than `stop_deadline`
    /// ([`Machine::stops_within`](crate::shell::Machine::stops_within)). Zero by default: it may not.
    pub stop_longest: Duration,
    /// How long to wait before it is started again.
    pub backoff: Backoff,
}

impl ChildSpec {
    /// A permanent child, with ten seconds to start, five to stop, and the usual backoff.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            restart: Restart::Permanent,
            start_deadline: Duration::from_secs(10),
            stop_deadline: Duration::from_secs(5),
            stop_longest: Duration::ZERO,
            backoff: Backoff::default(),
        }
    }
}

/// The manners of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupervisorSpec {
    /// Who shares the fate of a fallen child.
    pub strategy: Strategy,
    /// How many restarts it bears; one more and it stops everything and gives up, so that its own parent decides (OTP's
    /// intensity and period).
    pub budget: RestartBudget,
    /// How long the children may take to describe themselves for the tree. A supervisor below another one needs a shorter
    /// time than that one.
    pub describe_deadline: Duration,
}

impl Default for SupervisorSpec {
    /// One-for-one with the usual budget, and one second for descriptions.
    fn default() -> Self {
        Self {
            strategy: Strategy::OneForOne,
            budget: RestartBudget::default(),
            describe_deadline: Duration::from_secs(1),
        }
    }
}

/// Everything that the machine is born with.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The supervisor's own name, for the tree.
    pub name: String,
    /// Its manners.
    pub spec: SupervisorSpec,
    /// Its children, in the order in which they are started.
    pub children: Arc<[ChildSpec]>,
}
