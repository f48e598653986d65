//! The interface of a pure machine: messages and time in, effects out.

use std::any::Any;
use std::fmt::{self, Debug};
use std::time::Duration;

use super::context::StepContext;
use crate::vocabulary::{Attempt, Generation, Moment, Timestamp};

/// A machine decides and does nothing: it names no runtime, clock, socket, database or random source. The shell runs it
/// inside an actor; a test or a search can step it by hand.
pub trait Machine: Sized + Debug + 'static {
    /// The name of this kind of actor in logs, notices and the tree.
    const KIND: &'static str;
    /// The configuration with which it is built, and rebuilt after a crash.
    type Config: Clone + 'static;
    /// The state that its store holds; `()` for a machine that stores nothing.
    type Image: 'static;
    /// Its messages, defined by [`conversation!`](crate::conversation!).
    type Ask: Debug + Send + 'static;
    /// The answers, one variant for each kind of question.
    type Answer: Debug + Send + 'static;
    /// Work beside the mailbox.
    type Call: Clone + Debug + Send + 'static;
    /// The outcome of that work.
    type Outcome: Debug + Send + 'static;
    /// Its timers. A timer started twice runs once, at the later setting.
    type Timer: Clone + Ord + Debug + 'static;
    /// A unit of change that is written atomically. It is kept until it is on disk.
    type Change: Clone + Debug + 'static;
    /// One notification for subscribers.
    type News: Clone + Debug + Send + Sync + 'static;
    /// The snapshot that a subscriber receives first, and again after a lag.
    type View: Debug + Send + Sync + 'static;

    /// Builds the machine from its state on disk. Called at the start and after every crash or failed write;
    /// [`Input::Resumed`] follows immediately.
    fn restore(config: &Self::Config, image: Self::Image, moment: Moment) -> Self;

    /// Handles one input and requests effects. Effects leave in the order given here.
    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>);

    /// The complete state that subscribers may see, as of the last step.
    fn view(&self) -> Self::View;

    /// Whether the answer to this is a promise, which a crash must not take back: it leaves when everything that was persisted before
    /// is on disk. An answer that only reports known state, or that something has ended, does not wait for the disk.
    fn is_promise(_ask: &Self::Ask) -> bool {
        true
    }

    /// Whether a sick disk refuses this promise before the machine receives it. Other promises reach the machine, and their answer
    /// is refused if it would have to wait.
    fn is_new_promise(&self, _ask: &Self::Ask) -> bool {
        false
    }

    /// Whether this call is made only after everything that was persisted before is on disk. A call that ends something, or that a crash
    /// may take back without harm, does not wait for the disk.
    fn awaits_disk(_call: &Self::Call) -> bool {
        true
    }

    /// Whether it may be built from changes that a sick disk has not taken yet, so that it survives a crash (SHELL-1A). A machine that
    /// relies on what it reads being on disk waits until it is.
    fn reads_ahead() -> bool {
        false
    }

    /// Adds a later change to an earlier one, so that both are one, in which the last state of each row counts. A sick disk may take
    /// neither for days, and a disk that reported both as lost may have taken both: then the earlier one, handed over again alone, would
    /// undo the later one there. False if they must stay separate: for a machine that writes little while it gives no promises, and that
    /// reads a mixture of both as safely as either.
    fn merge(_earlier: &mut Self::Change, _later: &Self::Change) -> bool {
        false
    }

    /// Whether it is rebuilt after a crash. A machine with state that cannot be restored, such as a connection, ends instead
    /// ([`Ending::Panicked`]), and its parent decides how to continue.
    fn is_rebuilt() -> bool {
        true
    }

    /// The longest time from now until it has ended, all its own limits included. Asked right after each step that handled
    /// a request to stop, also after a rebuild; a supervisor that permits it waits until the last moment given. `None` for a
    /// machine that needs no longer to end than its parent knows.
    fn stops_within(&self) -> Option<Duration> {
        None
    }

    /// The things that it stopped during its shutdown, in the order in which they ended, for its supervisor's report. Asked when it ends.
    fn stop_steps(&self) -> Vec<StopStep> {
        Vec::new()
    }
}

/// One thing that was stopped (S3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StopStep {
    /// The stopped object, with its kind: `process/NAME`.
    pub what: String,
    /// How it ended, in words.
    pub ending: String,
    /// How long that took.
    pub took: Duration,
    /// Whether it should have ended and may still be there.
    pub is_left: bool,
}

/// Marks the place of a type that a machine does not use: no value of it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Never {}

/// Identifies one question that waits for its answer.
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
    /// Which of two requests counts: a request to detach never weakens a request to stop, whichever came first.
    #[must_use]
    pub const fn stronger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Stop, _) | (_, Self::Stop) => Self::Stop,
            (Self::Detach, Self::Detach) => Self::Detach,
        }
    }
}

/// Identifies a call. It is returned unchanged, so that a stale outcome can be distinguished from a current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CallKey {
    /// The generation that the call was made for.
    pub generation: Generation,
    /// The attempt.
    pub attempt: Attempt,
}

/// Why a call has no outcome.
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

/// The inputs of a machine.
#[derive(Debug)]
pub enum Input<M: Machine> {
    /// It has just been built from disk. Pending work must be requested again.
    Resumed,
    /// A message came.
    Asked {
        /// Identifies the question to answer.
        id: AskId,
        /// When it was first asked: a question that is asked again after a rebuild has waited since then.
        asked_at: Timestamp,
        /// The message.
        ask: M::Ask,
    },
    /// A call returned.
    Returned {
        /// The key of the call.
        key: CallKey,
        /// The call.
        call: M::Call,
        /// Its result.
        outcome: Result<M::Outcome, CallLost>,
    },
    /// A timer elapsed.
    Elapsed(M::Timer),
    /// A request to end. The machine ends itself with [`StepContext::stop`] when its work is finished.
    StopRequested(StopMode),
}

/// How an actor ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ending {
    /// By its own decision, with its work finished.
    Normal,
    /// A panic outside of any step, or of a machine that is not rebuilt; any other panic within a step is caught.
    Panicked(String),
    /// It crashed more often than its budget allows; this is the last panic or error.
    BudgetSpent(String),
    /// It gave up, for this reason.
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
    /// Grows each time writes are lost or the machine is rebuilt, and with each actor that is started. No two actors of a process share an
    /// epoch, so that a pending write of a former actor of the same owner is never taken for a write of the present one.
    pub epoch: u64,
    /// Grows with each write of an actor.
    pub sequence: u64,
}

/// The result of a write that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It is as safe as it can be.
    Now,
    /// The store reports the result later.
    Later,
    /// It failed at once. It is not handed over again, and the caller that waits for it is refused, since it is never written.
    Failed(String),
}

/// The message of a panic, if it has one.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
