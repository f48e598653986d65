//! What a pure machine is: messages and time in, effects out.

use std::any::Any;
use std::fmt::{self, Debug};
use std::time::Duration;

use super::context::StepContext;
use crate::vocabulary::{Attempt, Generation, Moment, Timestamp};

/// A machine decides and does nothing: it names no runtime, clock, socket, database or random source. The shell runs it
/// inside an actor; a test or a search can step it by hand.
pub trait Machine: Sized + Debug + 'static {
    /// The word for this kind of actor in logs, notices and the tree.
    const KIND: &'static str;
    /// What it is born with, and born with again after a crash.
    type Config: Clone + 'static;
    /// What its store holds of it; `()` for a machine that stores nothing.
    type Image: 'static;
    /// Everything that can be said to it, made by [`conversation!`](crate::conversation!).
    type Ask: Debug + Send + 'static;
    /// The answers, one variant for each kind of question.
    type Answer: Debug + Send + 'static;
    /// Work beside the mailbox.
    type Call: Clone + Debug + Send + 'static;
    /// What comes back from that work.
    type Outcome: Debug + Send + 'static;
    /// What it waits for. A timer started twice runs once, at the later setting.
    type Timer: Clone + Ord + Debug + 'static;
    /// What is written in one piece. It is kept until it is on disk.
    type Change: Clone + Debug + 'static;
    /// The notifications of subscribers, one by one.
    type News: Clone + Debug + Send + Sync + 'static;
    /// What a subscriber gets first, and again after it fell behind.
    type View: Debug + Send + Sync + 'static;

    /// Builds the machine from what is on disk. Called at the start and after every crash or failed write; right after it
    /// comes [`Input::Resumed`].
    fn restore(config: &Self::Config, image: Self::Image, moment: Moment) -> Self;

    /// Takes one input and says what is to be done. Effects leave in the order given here.
    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>);

    /// The whole of what subscribers may know, as of the last step.
    fn view(&self) -> Self::View;

    /// Whether the answer to this is a promise, which a crash must not take back: it leaves when everything that was persisted before
    /// is on disk. An answer that only tells what is known, or that something has ended, waits for no disk.
    fn is_promise(_ask: &Self::Ask) -> bool {
        true
    }

    /// Whether a sick disk refuses this promise before the machine hears of it. Of other promises the machine hears, and their answer
    /// is refused if it would have to wait.
    fn is_new_promise(&self, _ask: &Self::Ask) -> bool {
        false
    }

    /// Whether this call is made only when everything that was persisted before is on disk. One that ends something, or that a crash
    /// may take back without harm, waits for no disk.
    fn awaits_disk(_call: &Self::Call) -> bool {
        true
    }

    /// Whether it may be built from what a sick disk has not taken yet, so that it lives on after a crash (SHELL-1A). One that acts on
    /// what it reads as on something that is on disk waits until it is.
    fn reads_ahead() -> bool {
        false
    }

    /// Adds a later change to an earlier one, so that both are one, in which the last state of each row counts. A sick disk may take
    /// neither for days, and one that called both lost may have taken both: then the earlier one, handed over again alone, would undo the
    /// later one there. False if they stay apart: for a machine that writes little while it gives no promises, and that reads a
    /// mixture of both as safely as either.
    fn merge(_earlier: &mut Self::Change, _later: &Self::Change) -> bool {
        false
    }

    /// Whether it is built again after a crash. One that holds what cannot be taken up again, such as a connection, ends instead
    /// ([`Ending::Panicked`]), and its parent decides what next.
    fn is_rebuilt() -> bool {
        true
    }

    /// How long it takes at most from now until it has ended, all its own limits included. Asked right after each step that took
    /// a request to stop, also after a rebuild; a supervisor that permits it waits until the last moment given. `None` for a
    /// machine whose end takes no longer than its parent knows.
    fn stops_within(&self) -> Option<Duration> {
        None
    }

    /// What it has stopped on its way down, in the order in which it ended, for the report of its supervisor. Asked when it ends.
    fn stop_steps(&self) -> Vec<StopStep> {
        Vec::new()
    }
}

/// One thing that was stopped (S3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StopStep {
    /// What, with its kind: `process/NAME`.
    pub what: String,
    /// How it ended, in words.
    pub ending: String,
    /// How long that took.
    pub took: Duration,
    /// Whether it was to end and may still be there.
    pub is_left: bool,
}

/// Marks the place of a type that a machine has no use for: no value of it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Never {}

/// Names one question that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(u64);

impl AskId {
    /// Wraps a number; the shell gives each question its own.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// How an actor is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopMode {
    /// End what Callboard started, and deregister it.
    Stop,
    /// Leave everything in place for the next start of the host.
    Detach,
}

impl StopMode {
    /// Which of two orders counts: to detach never weakens an order to stop, whichever came first.
    #[must_use]
    pub const fn stronger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stop, _) | (_, Self::Stop) => Self::Stop,
            (Self::Detach, Self::Detach) => Self::Detach,
        }
    }
}

/// Whom a call belongs to. It comes back unchanged, so that a late outcome can be told from a current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CallKey {
    /// The generation the call was made for.
    pub generation: Generation,
    /// Which try it was.
    pub attempt: Attempt,
}

/// Why a call has no outcome of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CallLost {
    /// It took longer than its deadline and was given up. Whether it took effect is unknown (C015).
    #[error("no answer within {0:?}")]
    DeadlineExceeded(Duration),
    /// The code that made it panicked.
    #[error("the call crashed: {0}")]
    Crashed(String),
    /// Too many calls of this actor wait for their turn.
    #[error("{0} calls already wait; this call was not made")]
    Busy(usize),
}

/// Everything that can happen to a machine.
#[derive(Debug)]
pub enum Input<M: Machine> {
    /// It has just been built from disk. Whatever was under way must be asked for again.
    Resumed,
    /// A message came.
    Asked {
        /// By this the answer finds its way.
        id: AskId,
        /// When it was first asked: a question that is asked again of a rebuilt machine has waited since then.
        asked_at: Timestamp,
        /// What was said.
        ask: M::Ask,
    },
    /// A call came back.
    Returned {
        /// Whom it belongs to.
        key: CallKey,
        /// What was called.
        call: M::Call,
        /// What came of it.
        outcome: Result<M::Outcome, CallLost>,
    },
    /// A timer ran out.
    Elapsed(M::Timer),
    /// It is to end. It ends itself with [`StepContext::stop`] when its business is in order.
    StopRequested(StopMode),
}

/// How an actor ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ending {
    /// By its own decision, with its business in order.
    Normal,
    /// A panic outside of any step, or of a machine that is not built again; otherwise one within a step is caught.
    Panicked(String),
    /// It crashed more often than its budget allows; this is the last panic or error.
    BudgetSpent(String),
    /// It gave up, and says why.
    Failed(String),
    /// It was ended by force.
    Killed,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("it ended normally"),
            Self::Panicked(message) => write!(f, "it panicked: {message}"),
            Self::BudgetSpent(message) => write!(f, "it crashed too often: {message}"),
            Self::Failed(reason) => write!(f, "it gave up: {reason}"),
            Self::Killed => f.write_str("it was killed"),
        }
    }
}

/// The number of a write: the writes of an actor are numbered by `sequence`. When one of them is lost, so are the later ones of the
/// same `epoch`, since they were decided on top of it; all of them are handed over again, in their order and in the next epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Grows each time writes are lost or the machine is rebuilt, and with each actor that is started. No two actors of a process share one, so
    /// that what a former actor of the same owner still had on its way is never taken for a write of the present one.
    pub epoch: u64,
    /// Grows with each write of an actor.
    pub sequence: u64,
}

/// What became of a write that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It is as safe as it will get.
    Now,
    /// The store will tell.
    Later,
    /// It failed at once. It is not handed over again, and the caller that waits for it hears that it is never written.
    Failed(String),
}

/// What a panic said, if it said anything.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
