//! What a pure machine is: messages and time in, effects out.

use std::any::Any;
use std::fmt::{self, Debug};
use std::time::Duration;

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
    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>);

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
    /// End what Callboard started, and say goodbye for it.
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
    #[error("{0} calls wait already; this one was not made")]
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
    /// It is to end. It ends itself with [`Effects::stop`] when its business is in order.
    StopRequested(StopMode),
}

/// What waits until a write is on disk, of all that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gate {
    /// Nothing: a crash may take the write back without harm.
    Nothing,
    /// Answers that are promises, and calls that await the disk.
    Promises,
    /// Everything that leaves the actor: what leaves next rests on it.
    Everything,
}

/// One thing to be done.
#[derive(Debug)]
pub enum Effect<M: Machine> {
    /// Write this; of what follows, so much waits until it is on disk.
    Persist(Gate, M::Change),
    /// Answer a question.
    Reply(AskId, M::Answer),
    /// Tell every subscriber.
    Publish(M::News),
    /// Make a call beside the mailbox.
    Call {
        /// Whom it belongs to.
        key: CallKey,
        /// How long it may take.
        deadline: Duration,
        /// What to call.
        call: M::Call,
    },
    /// Wake the machine at this time. Timers are not visible outside, so they do not wait behind a gate.
    StartTimer(M::Timer, Timestamp),
    /// Do not wake it after all.
    CancelTimer(M::Timer),
    /// End the actor in this way, after everything before this has left.
    Stop(Ending),
}

/// Collects what a step wants done.
#[derive(Debug)]
pub struct Effects<M: Machine> {
    list: Vec<Effect<M>>,
}

impl<M: Machine> Default for Effects<M> {
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

impl<M: Machine> Effects<M> {
    /// Writes a change; everything after it waits until it is on disk, and never happens if the write fails.
    pub fn persist(&mut self, change: M::Change) {
        self.write(Gate::Everything, change);
    }

    /// Writes a change for which nothing waits.
    pub fn record(&mut self, change: M::Change) {
        self.write(Gate::Nothing, change);
    }

    /// Writes a change for which so much of what follows waits.
    pub fn write(&mut self, gate: Gate, change: M::Change) {
        self.list.push(Effect::Persist(gate, change));
    }

    /// Answers a question.
    pub fn reply(&mut self, id: AskId, answer: impl Into<M::Answer>) {
        self.list.push(Effect::Reply(id, answer.into()));
    }

    /// Tells every subscriber.
    pub fn publish(&mut self, news: M::News) {
        self.list.push(Effect::Publish(news));
    }

    /// Makes a call beside the mailbox, with a deadline.
    pub fn call(&mut self, key: CallKey, deadline: Duration, call: M::Call) {
        self.list.push(Effect::Call { key, deadline, call });
    }

    /// Wakes the machine at a time; a timer that runs already is set anew.
    pub fn start_timer(&mut self, timer: M::Timer, at: Timestamp) {
        self.list.push(Effect::StartTimer(timer, at));
    }

    /// Stops a timer; one that does not run is no fault.
    pub fn cancel_timer(&mut self, timer: M::Timer) {
        self.list.push(Effect::CancelTimer(timer));
    }

    /// Ends the actor after everything before this has left.
    pub fn stop(&mut self) {
        self.list.push(Effect::Stop(Ending::Normal));
    }

    /// Gives up: ends the actor as [`Ending::Failed`], so that its parent decides what next.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.list.push(Effect::Stop(Ending::Failed(reason.into())));
    }

    /// What was collected so far, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Effect<M>] {
        &self.list
    }

    /// Takes all effects out, in order, leaving the collection empty.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect<M>> + '_ {
        self.list.drain(..)
    }

    /// Adds effects to what was collected.
    pub fn extend(&mut self, effects: Vec<Effect<M>>) {
        self.list.extend(effects);
    }

    /// Forgets what was collected: a step that crashed has no effects.
    pub fn clear(&mut self) {
        self.list.clear();
    }
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

/// Whose turn a write is: the writes of an actor are numbered by `sequence`. When one of them is lost, so are the later ones of the
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
    /// It failed at once.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rings when its time has come.
    #[derive(Debug)]
    struct Bell;

    impl Machine for Bell {
        const KIND: &'static str = "bell";
        type Config = ();
        type Image = ();
        type Ask = Never;
        type Answer = Never;
        type Call = Never;
        type Outcome = Never;
        type Timer = u8;
        type Change = Never;
        type News = &'static str;
        type View = ();

        fn restore((): &(), (): (), _: Moment) -> Self {
            Self
        }

        fn step(&mut self, _: Moment, _: &Input<Self>, effects: &mut Effects<Self>) {
            effects.publish("ding");
            effects.cancel_timer(7);
        }

        fn view(&self) {}
    }

    #[test]
    fn effects_are_kept_in_their_order_until_they_are_taken_or_forgotten() {
        let moment = Moment { now: Timestamp::default(), random: 0 };
        let mut effects = Effects::default();
        Bell::restore(&(), (), moment).step(moment, &Input::Resumed, &mut effects);
        effects.extend(vec![Effect::Publish("dong")]);
        let told = [Effect::Publish("ding"), Effect::CancelTimer(7), Effect::<Bell>::Publish("dong")];
        assert_eq!(format!("{:?}", effects.as_slice()), format!("{told:?}"));
        effects.clear();
        assert!(effects.as_slice().is_empty());
        effects.stop();
        assert_eq!(effects.drain().count(), 1);
        assert_eq!(effects.drain().count(), 0);
    }
}
