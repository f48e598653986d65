//! The configuration of a supervisor and of its children.

use std::sync::Arc;
use std::time::Duration;

use crate::kernel::Ending;
use crate::vocabulary::{Backoff, RestartBudget};

/// Whether a child is restarted after it has ended, as in OTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Restart {
    /// Always.
    Permanent,
    /// Only after an end that was not [`Ending::Normal`].
    Transient,
    /// Never; also not after the strategy has stopped it.
    Temporary,
}

impl Restart {
    /// Whether a child of this type is restarted after this ending.
    #[must_use]
    pub fn is_due_after(self, ending: &Ending) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => *ending != Ending::Normal,
            Self::Temporary => false,
        }
    }
}

/// Which siblings are restarted together with a child, as in OTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No siblings.
    OneForOne,
    /// All siblings: the others are stopped in reverse order, then all are started in order.
    OneForAll,
    /// The siblings that were started after it.
    RestForOne,
}

/// The specification of one child, as plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildSpec {
    /// Its name among its siblings.
    pub name: String,
    /// Its kind, for the tree: registry, supervisor and so on.
    pub kind: String,
    /// Whether it is restarted.
    pub restart: Restart,
    /// The deadline to become ready; after it the start has failed.
    pub start_deadline: Duration,
    /// The deadline for a graceful stop; after it the child is killed. For a child that is a supervisor this must cover the
    /// deadlines of all its children.
    pub stop_deadline: Duration,
    /// The limit for the bound that a child may request beyond `stop_deadline`
    /// ([`Machine::stops_within`](crate::kernel::Machine::stops_within)). Zero by default, which permits none.
    pub stop_longest: Duration,
    /// Whether things that it started can outlive it when it is killed or gives up. Then a shutdown also stops this child if it does
    /// not run, so that its leftovers are ended and reported in its turn.
    pub may_leave: bool,
    /// The backoff before its restart.
    pub backoff: Backoff,
}

impl ChildSpec {
    /// A permanent child, with ten seconds to start, five to stop, and the default backoff.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            restart: Restart::Permanent,
            start_deadline: Duration::from_secs(10),
            stop_deadline: Duration::from_secs(5),
            stop_longest: Duration::ZERO,
            may_leave: false,
            backoff: Backoff::default(),
        }
    }
}

/// The configuration of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SupervisorSpec {
    /// Which siblings are restarted together with a fallen child.
    pub strategy: Strategy,
    /// The number of restarts that it permits; at one more it gives up, so that its own parent decides (OTP's intensity and period).
    pub budget: RestartBudget,
    /// The timeout for the children to describe themselves for the tree. Nested supervisors need shorter ones.
    pub describe_deadline: Duration,
}

impl Default for SupervisorSpec {
    /// One-for-one with the default budget, and one second for descriptions.
    fn default() -> Self {
        Self {
            strategy: Strategy::OneForOne,
            budget: RestartBudget::default(),
            describe_deadline: Duration::from_secs(1),
        }
    }
}

/// The configuration of the machine.
#[derive(Debug, Clone, Hash)]
pub struct Plan {
    /// The supervisor's own name, for the tree.
    pub name: String,
    /// Its own configuration.
    pub spec: SupervisorSpec,
    /// Its children, in the order of their start.
    pub children: Arc<[ChildSpec]>,
}
