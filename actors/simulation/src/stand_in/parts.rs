//! The types of the stand-in, and its output.

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::kernel::{Ending, Limits, Machine, Ticket, Written};
use callboard_actors::shell::AskError;
use callboard_actors::vocabulary::{Backoff, RestartBudget};

/// Takes the changes of a machine.
pub trait Disk<M: Machine> {
    /// Takes a change; see [`Port::write`](callboard_actors::kernel::Port::write).
    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written;
}

/// The progress of the writes of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The epoch.
    pub epoch: u64,
    /// The last write that this concerns.
    pub through: u64,
    /// Whether they are on disk. If not, neither are later ones of the same epoch.
    pub is_written: bool,
}

/// The reason why a question received no answer of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The step that took it crashed.
    Crashed,
    /// The write in front of its answer is lost and will be retried, or waits for a sick disk.
    NotDurable,
    /// The disk refused the write in front of its answer, which is never written.
    NotWritten,
    /// The disk is sick, and the machine did not receive the question.
    NotBegun,
}

impl Refusal {
    /// The error that the asker of this actor receives.
    pub(crate) fn into_error(self, kind: &str) -> AskError {
        let actor = kind.to_owned();
        match self {
            Self::Crashed => AskError::Crashed { actor, message: "a step crashed".to_owned() },
            Self::NotDurable | Self::NotBegun => AskError::NotDurable {
                actor,
                error: "the disk failed".to_owned(),
                is_begun: self == Self::NotDurable,
            },
            Self::NotWritten => AskError::NotWritten { actor, error: "the disk refused it".to_owned() },
        }
    }
}

/// An effect that left, for the world.
#[derive(Debug)]
pub enum Left<M: Machine> {
    /// The answer to this asker. `None` means that no caller waited for it, or no longer does.
    Answer(Option<u64>, Rc<M::Answer>),
    /// This asker is refused.
    Refused(u64, Refusal),
    /// The notification with this number.
    News(u64, M::News),
    /// The whole view, after this number of notifications.
    Snapshot(u64, Rc<M::View>),
    /// A call is to be made; it returns under this number.
    Call {
        /// The number of the call.
        number: u64,
        /// The time limit of the call.
        deadline: Duration,
        /// The call.
        call: M::Call,
    },
    /// The actor has ended.
    Ended(Ending),
}

impl<M: Machine> Clone for Left<M> {
    fn clone(&self) -> Self {
        match self {
            Self::Answer(asker, answer) => Self::Answer(*asker, Rc::clone(answer)),
            Self::Refused(asker, refusal) => Self::Refused(*asker, *refusal),
            Self::News(number, news) => Self::News(*number, news.clone()),
            Self::Snapshot(number, view) => Self::Snapshot(*number, Rc::clone(view)),
            Self::Call { number, deadline, call } => {
                Self::Call { number: *number, deadline: *deadline, call: call.clone() }
            }
            Self::Ended(ending) => Self::Ended(ending.clone()),
        }
    }
}

/// The rules with which a stand-in is set up.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How many crashes are recovered.
    pub budget: RestartBudget,
    /// How long to pause after a failed write or load.
    pub pause: Backoff,
}

impl Rules {
    /// The same as limits of a kernel; calls have none.
    pub(super) const fn limits(self) -> Limits {
        Limits {
            budget: self.budget,
            rebuild_backoff: self.pause,
            calls_running_max: usize::MAX,
            calls_waiting_max: usize::MAX,
        }
    }
}

impl Default for Rules {
    /// Crashes are always recovered; pauses are those of the shell, without jitter.
    fn default() -> Self {
        Self {
            budget: RestartBudget { limit: u32::MAX, window: Duration::from_secs(1) },
            pause: Backoff {
                first: Duration::from_millis(10),
                longest: Duration::from_secs(1),
                jitter_percent: 0,
                reset_after: Duration::from_secs(5),
            },
        }
    }
}
