//! The observed effects of an event in a simulated host: typed, for pictures; and as lines of a trace.

use std::any::Any;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use callboard_actors::kernel::{Ending, Machine};
use callboard_actors::shell::Recorded;

use super::law_checker::LawChecker;
use super::stand_in::{Disk, Left, Refusal, StandIn};

/// One observed effect of an event.
#[derive(Debug, Clone)]
pub enum Observed {
    /// An effect left an actor.
    Left {
        /// The actor, as a trace names it: `registry`, `a7`.
        actor: String,
        /// The effect, as code.
        code: String,
        /// The answer to a question of the host, if the effect is one.
        answer: Option<Answer>,
    },
    /// An actor wrote an entry to its journal.
    Noted {
        /// The actor, by its name in a host: `registry`, `allocation a7`.
        actor: String,
        /// The entry.
        entry: Recorded,
    },
}

/// The answer to a question of the host.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The actor answered: a value of [`Machine::Answer`] of its own type.
    Given(Rc<dyn Any>),
    /// It was refused without an answer of the machine.
    Refused(Refusal),
}

/// A trace is not part of a state: the same state can be reached with different traces.
impl Hash for Observed {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Observed {
    /// An effect that is not an answer to the host.
    pub(super) fn left(actor: &str, left: &dyn Debug) -> Self {
        Self::Left { actor: actor.to_owned(), code: format!("{left:?}"), answer: None }
    }

    /// The same; an answer to one of these askers is an answer to the host.
    pub(super) fn left_to<M: Machine<Answer: 'static>>(
        actor: &str,
        left: &Left<M>,
        is_host: impl Fn(u64) -> bool,
    ) -> Self {
        let answer = match left {
            Left::Answer(Some(asker), answer) if is_host(*asker) => {
                Some(Answer::Given(Rc::<M::Answer>::clone(answer)))
            }
            Left::Refused(asker, refusal) if is_host(*asker) => Some(Answer::Refused(*refusal)),
            Left::Answer(..)
            | Left::Refused(..)
            | Left::News(..)
            | Left::Snapshot(..)
            | Left::Call { .. }
            | Left::Ended(_) => None,
        };
        Self::Left { actor: actor.to_owned(), code: format!("{left:?}"), answer }
    }

    /// The journal entries of an actor since the last call. The first call turns its journal on.
    pub(super) fn noted<M: Machine, S: Disk<M>, W: LawChecker<M>>(
        actor: &str,
        of: &mut StandIn<M, S, W>,
    ) -> impl Iterator<Item = Self> {
        let noted = |entry| Self::Noted { actor: actor.to_owned(), entry };
        of.begin_noting();
        of.take_entries().into_iter().map(noted)
    }

    /// An actor has ended by force.
    pub(super) const fn killed(actor: String) -> Self {
        Self::Noted { actor, entry: Recorded::Ended { ending: Ending::Killed, is_waiting: false } }
    }

    /// Its line in a trace. Journal entries have none: a trace contains only effects that leave.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Left { actor, code, .. } => Some(format!("{actor}: {code}")),
            Self::Noted { .. } => None,
        }
    }
}
