//! What goes into a kernel and what comes out of it.

use std::fmt::Debug;
use std::time::Duration;

use super::context::StepContext;
use super::machine::{CallLost, Ending, Input, Machine, StopMode, StopStep, Ticket, Written};
use crate::vocabulary::{Backoff, Moment, RestartBudget, Timestamp};

/// The types that a kernel carries for its port and never looks into.
pub trait Terms<M: Machine> {
    /// The caller, as the port finds it again.
    type Asker;
    /// A new subscriber.
    type Reader;
    /// An answer on its way. A simulation shares it, so that its state can be copied.
    type Answer: From<M::Answer>;
    /// A snapshot on its way.
    type View: From<M::View>;
}

/// What can happen to a kernel.
pub enum Event<M: Machine, T: Terms<M>> {
    /// A question came in.
    Asked {
        /// What was said.
        ask: M::Ask,
        /// Who said it.
        asker: T::Asker,
    },
    /// The actor is asked to end.
    StopRequested(StopMode),
    /// There is a new subscriber: a snapshot first, then all news.
    Subscribed(T::Reader),
    /// Subscribers that fell behind want a new snapshot.
    Resync,
    /// The journal is to have a snapshot, in its place among the news.
    Describe,
    /// The store was read, or could not be.
    Loaded(Result<M::Image, String>),
    /// The pause that was asked for is over.
    Woken,
    /// A call came back. One that is not waited for any more has no effect.
    Returned {
        /// Which one.
        number: u64,
        /// What came of it.
        outcome: Result<M::Outcome, CallLost>,
    },
    /// The store tells how far it has come. What it tells of epochs before the actor's own is of a former actor.
    Settled {
        /// Of which epoch the writes are.
        epoch: u64,
        /// The last of them.
        through: u64,
        /// Whether they are on disk. If not, neither are later ones of the same epoch.
        outcome: Result<(), String>,
    },
    /// The disk has become sick for this reason, or is sound again. Its writes are not lost: they settle when it is sound.
    Disk(Option<String>),
    /// Time has passed: every timer that is due runs, except what is set for this instant meanwhile.
    TimersDue,
    /// The actor is made to crash, as over a step that panics.
    Crash(&'static str),
    /// The actor is made to give up.
    GiveUp(&'static str),
}

/// Something that leaves. What it rests on is on disk.
pub enum Outgoing<M: Machine, T: Terms<M>> {
    /// An answer. There is no asker if the machine answers a question that was not asked, or that it has answered before.
    Answer {
        /// Whom it is for.
        asker: Option<T::Asker>,
        /// The answer.
        answer: T::Answer,
    },
    /// News for every subscriber.
    News {
        /// Their place in the order of all news; the first is 1.
        number: u64,
        /// The news.
        news: M::News,
    },
    /// A new subscriber is served from now on.
    Attach {
        /// Who.
        reader: T::Reader,
        /// How many news were published before.
        number: u64,
        /// What they see first.
        view: T::View,
    },
    /// A new snapshot for a subscriber that is served already.
    Snapshot {
        /// Which one, as [`Port::due`] named it.
        reader: u64,
        /// How many news were published before.
        number: u64,
        /// What they see.
        view: T::View,
    },
    /// A snapshot for the journal.
    Described {
        /// How many news were published before.
        number: u64,
        /// What the actor holds.
        view: T::View,
    },
    /// A call is to be made, in the order of all that leaves; it comes back as [`Event::Returned`] with this number.
    Call {
        /// Names it.
        number: u64,
        /// How long it may take.
        deadline: Duration,
        /// What to call.
        call: M::Call,
    },
    /// A call is not made; it comes back as lost, in a later event.
    Lost {
        /// Names it.
        number: u64,
        /// Why.
        lost: CallLost,
    },
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// The step that took it crashed, with these words.
    Crashed(&'a str),
    /// The write in front of its answer is lost with this error and handed over again, or waits for a disk that is sick for this reason.
    NotDurable(&'a str),
    /// The store refused the write in front of its answer with this error. It is never written.
    NotWritten(&'a str),
    /// The disk is sick for this reason, and the machine did not hear of the question.
    NotBegun(&'a str),
}

/// One thing that happened to an actor. What follows from a step carries the number of that step, also if it waited behind a gate.
#[derive(Debug)]
pub enum JournalEntry<'a, M: Machine> {
    /// It was built from its store, for the first time or anew.
    Built {
        /// Whether it had lived before.
        is_rebuilt: bool,
    },
    /// Its store could not be read.
    LoadFailed {
        /// What the store said.
        error: &'a str,
    },
    /// Its machine took a step.
    Stepped {
        /// The number of the step, among those of this actor; the first is 1.
        step: u64,
        /// What came in.
        input: &'a Input<M>,
        /// How many effects came of it.
        effects: usize,
    },
    /// A call is made.
    Called {
        /// The step that wanted it.
        step: u64,
        /// Names it among the calls of this actor.
        number: u64,
        /// What is called.
        call: &'a M::Call,
    },
    /// It wrote a change. What follows waits as its [`Gate`](super::Gate) says.
    Writing {
        /// The step that wrote.
        step: u64,
        /// The number of the write, among those of this actor.
        write: u64,
    },
    /// Its writes up to this one are on disk, and what waited behind them may leave.
    OnDisk {
        /// The number of the last of them.
        through: u64,
    },
    /// Its writes are lost, and what waited behind them is refused.
    WriteFailed {
        /// What the store said.
        error: &'a str,
    },
    /// News leave it.
    Published {
        /// The step that told them.
        step: u64,
        /// Their place in the order of all its news.
        number: u64,
        /// The news.
        news: &'a M::News,
    },
    /// A step of it panicked.
    Crashed {
        /// Over which input.
        input: &'a dyn Debug,
        /// What the panic said.
        message: &'a str,
    },
    /// A call of a former life of its machine came back, which has no effect.
    Stale {
        /// What came of the call.
        outcome: &'a dyn Debug,
    },
    /// It ended.
    Ended {
        /// In which way.
        ending: &'a Ending,
        /// Whether a write was still on its way, so that what waited behind it never leaves.
        is_waiting: bool,
    },
}

/// Limits of one actor.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many crashes and failed loads are mended; one more ends the actor.
    pub budget: RestartBudget,
    /// How long the store is left alone after a failed write or load.
    pub rebuild_backoff: Backoff,
    /// How many calls run at once; further ones wait for their turn.
    pub calls_running_max: usize,
    /// How many calls may wait; one more is lost as busy.
    pub calls_waiting_max: usize,
}

/// The world of one kernel.
pub trait Port<M: Machine, T: Terms<M>> {
    /// The present time.
    fn now(&mut self) -> Timestamp;

    /// A new random number.
    fn random(&mut self) -> u64;

    /// What the machine is to hear; `None` keeps the input from it. For faults that are put in on purpose.
    fn hear(&mut self, input: Input<M>) -> Option<Input<M>> {
        Some(input)
    }

    /// Has the machine take a step.
    ///
    /// # Errors
    /// When the step is made to crash on purpose; it is treated as a panic with these words.
    fn step(&mut self, machine: &mut M, input: &Input<M>, cx: &mut StepContext<M>) -> Result<(), String> {
        machine.step(input, cx);
        Ok(())
    }

    /// Hears of a machine that has just been built.
    fn built(&mut self, moment: Moment, machine: &M) {
        let _ = (moment, machine);
    }

    /// Hands a change to the store. Order is kept.
    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written;

    /// Has the store read, behind all that was handed to it; [`Event::Loaded`] follows, once for the last time that this was asked. A panic in a store that is read is the port's to catch, and is a load that failed.
    fn load(&mut self);

    /// Has the store left alone for so long; [`Event::Woken`] follows.
    fn pause(&mut self, pause: Duration);

    /// Lets something leave. Every write up to `behind` is on disk.
    fn send(&mut self, outgoing: Outgoing<M, T>, behind: u64);

    /// Tells an asker that there is no answer.
    fn refuse(&mut self, asker: T::Asker, refusal: Refusal<'_>);

    /// A question was taken and has no answer yet: it does not count as in flight any more.
    fn set_aside(&mut self, asker: &mut T::Asker) {
        let _ = asker;
    }

    /// The subscribers for whom a new snapshot is of use: those that fell behind, or all.
    fn due(&mut self, everyone: bool) -> Vec<u64>;

    /// The next call of which the outcome was there as soon as it was made. The machine hears of it before anything else that happens.
    fn take_returned(&mut self) -> Option<(u64, Result<M::Outcome, CallLost>)> {
        None
    }

    /// Gives up all calls that were made.
    fn abandon_calls(&mut self);

    /// Writes down what happens, in the order in which it does. What leaves is noted before it leaves, so that a receiver of
    /// it cannot write a line in front of it.
    fn note(&mut self, entry: JournalEntry<'_, M>);

    /// Whether the journal wants a snapshot of a machine that has just been built.
    fn is_followed(&self) -> bool {
        false
    }

    /// Hears how long the end takes at most, after a request to stop was handled.
    fn stops_within(&mut self, within: Duration) {
        let _ = within;
    }

    /// Hears what the machine has stopped on its way down, right before it ends.
    fn stopped(&mut self, steps: Vec<StopStep>) {
        let _ = steps;
    }

    /// Ends the actor.
    fn end(&mut self, ending: Ending);
}
