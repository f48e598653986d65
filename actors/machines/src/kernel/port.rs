//! The interface of a kernel: its events, its output, and its port.

use std::fmt::Debug;
use std::time::Duration;

use super::context::StepContext;
use super::machine::{CallLost, Ending, Input, Machine, StopMode, StopStep, Ticket, Written};
use crate::vocabulary::{Backoff, Moment, RestartBudget, Timestamp};

/// The types that a kernel carries for its port and never inspects.
pub trait Terms<M: Machine> {
    /// The caller, as the port identifies it.
    type Asker;
    /// A new subscriber.
    type Reader;
    /// An answer in flight. A simulation shares it, so that its state can be copied.
    type Answer: From<M::Answer>;
    /// A snapshot in flight.
    type View: From<M::View>;
}

/// The events of a kernel.
pub enum Event<M: Machine, T: Terms<M>> {
    /// A question arrived.
    Asked {
        /// The message.
        ask: M::Ask,
        /// The caller.
        asker: T::Asker,
    },
    /// The actor is asked to end.
    StopRequested(StopMode),
    /// There is a new subscriber: it receives a snapshot first, then all news.
    Subscribed(T::Reader),
    /// Subscribers that lag request a new snapshot.
    Resync,
    /// The journal requests a snapshot, in its place among the news.
    Describe,
    /// The store was read, or could not be.
    Loaded(Result<M::Image, String>),
    /// The requested pause is over.
    Woken,
    /// A call returned. A call that is no longer awaited has no effect.
    Returned {
        /// The number of the call.
        number: u64,
        /// Its result.
        outcome: Result<M::Outcome, CallLost>,
    },
    /// The store reports its progress. Progress in epochs before the actor's own belongs to a former actor.
    Settled {
        /// The epoch of the writes.
        epoch: u64,
        /// The last of them.
        through: u64,
        /// Whether they are on disk. If not, neither are later ones of the same epoch.
        outcome: Result<(), String>,
    },
    /// The disk has become sick for this reason, or is sound again. Its writes are not lost: they settle when it is sound.
    Disk(Option<String>),
    /// Time has passed: every timer that is due runs, except a timer that is set for this instant meanwhile.
    TimersDue,
    /// Makes the actor crash, as if a step had panicked.
    Crash(&'static str),
    /// Makes the actor give up.
    GiveUp(&'static str),
}

/// One item of output. The writes that it depends on are on disk.
pub enum Outgoing<M: Machine, T: Terms<M>> {
    /// An answer. There is no asker if the machine answers a question that was not asked, or that it has answered before.
    Answer {
        /// The recipient.
        asker: Option<T::Asker>,
        /// The answer.
        answer: T::Answer,
    },
    /// News for every subscriber.
    News {
        /// Their number in the order of all news; the first is 1.
        number: u64,
        /// The news.
        news: M::News,
    },
    /// A new subscriber is served from now on.
    Attach {
        /// The subscriber.
        reader: T::Reader,
        /// The number of news published before.
        number: u64,
        /// Its first snapshot.
        view: T::View,
    },
    /// A new snapshot for a subscriber that is served already.
    Snapshot {
        /// The subscriber, as named by [`Port::due`].
        reader: u64,
        /// The number of news published before.
        number: u64,
        /// The snapshot.
        view: T::View,
    },
    /// A snapshot for the journal.
    Described {
        /// The number of news published before.
        number: u64,
        /// The snapshot of the actor.
        view: T::View,
    },
    /// Requests a call, in the order of all output; it returns as [`Event::Returned`] with this number.
    Call {
        /// The number of the call.
        number: u64,
        /// The deadline.
        deadline: Duration,
        /// The call.
        call: M::Call,
    },
    /// A call is not made; it returns as lost, in a later event.
    Lost {
        /// The number of the call.
        number: u64,
        /// The reason.
        lost: CallLost,
    },
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// The step that handled it crashed, with this message.
    Crashed(&'a str),
    /// The write before its answer is lost with this error and handed over again, or waits for a disk that is sick for this reason.
    NotDurable(&'a str),
    /// The store refused the write before its answer with this error. It is never written.
    NotWritten(&'a str),
    /// The disk is sick for this reason, and the machine did not receive the question.
    NotBegun(&'a str),
}

/// One event of an actor. An event that follows from a step carries the number of that step, also if it waited behind a gate.
#[derive(Debug)]
pub enum JournalEntry<'a, M: Machine> {
    /// The machine was built from its store, for the first time or again.
    Built {
        /// Whether it was built before.
        is_rebuilt: bool,
    },
    /// Its store could not be read.
    LoadFailed {
        /// The error of the store.
        error: &'a str,
    },
    /// The machine took a step.
    Stepped {
        /// The number of the step, among those of this actor; the first is 1.
        step: u64,
        /// The input.
        input: &'a Input<M>,
        /// The number of effects.
        effects: usize,
    },
    /// A call is made.
    Called {
        /// The step that requested it.
        step: u64,
        /// The number of the call, among those of this actor.
        number: u64,
        /// The call.
        call: &'a M::Call,
    },
    /// It wrote a change. Later output waits as the [`Gate`](super::Gate) requires.
    Writing {
        /// The step that wrote.
        step: u64,
        /// The number of the write, among those of this actor.
        write: u64,
    },
    /// Its writes up to this one are on disk, and the output that waited for them may leave.
    OnDisk {
        /// The number of the last of them.
        through: u64,
    },
    /// Its writes are lost, and the output that waited for them is refused.
    WriteFailed {
        /// The error of the store.
        error: &'a str,
    },
    /// It publishes news.
    Published {
        /// The step that published them.
        step: u64,
        /// Their number in the order of all its news.
        number: u64,
        /// The news.
        news: &'a M::News,
    },
    /// A step of it panicked.
    Crashed {
        /// The input.
        input: &'a dyn Debug,
        /// The message of the panic.
        message: &'a str,
    },
    /// A call of a former life of its machine returned; it has no effect.
    Stale {
        /// The outcome of the call.
        outcome: &'a dyn Debug,
    },
    /// It ended.
    Ended {
        /// How it ended.
        ending: &'a Ending,
        /// Whether a write was still pending, so that the output that waited for it never leaves.
        is_waiting: bool,
    },
}

/// Limits of one actor.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The number of crashes and failed loads that lead to a rebuild; one more ends the actor.
    pub budget: RestartBudget,
    /// The pause before the store is used again after a failed write or load.
    pub rebuild_backoff: Backoff,
    /// The limit of concurrent calls; further calls are queued.
    pub calls_running_max: usize,
    /// The limit of queued calls; one more is lost as busy.
    pub calls_waiting_max: usize,
}

/// The environment of one kernel.
pub trait Port<M: Machine, T: Terms<M>> {
    /// The present time.
    fn now(&mut self) -> Timestamp;

    /// A new random number.
    fn random(&mut self) -> u64;

    /// Filters the input of the machine; `None` drops it. For faults that are injected on purpose.
    fn hear(&mut self, input: Input<M>) -> Option<Input<M>> {
        Some(input)
    }

    /// Has the machine take a step.
    ///
    /// # Errors
    /// If the step is made to crash on purpose; it is treated as a panic with this message.
    fn step(&mut self, machine: &mut M, input: &Input<M>, cx: &mut StepContext<M>) -> Result<(), String> {
        machine.step(input, cx);
        Ok(())
    }

    /// Receives a machine that has just been built.
    fn built(&mut self, moment: Moment, machine: &M) {
        let _ = (moment, machine);
    }

    /// Hands a change to the store. Order is kept.
    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written;

    /// Reads the store, after all that was handed to it; [`Event::Loaded`] follows, once for the last request. The port must catch a panic
    /// of the store during the read; it counts as a failed load.
    fn load(&mut self);

    /// Pauses the use of the store; [`Event::Woken`] follows.
    fn pause(&mut self, pause: Duration);

    /// Sends output. Every write up to `behind` is on disk.
    fn send(&mut self, outgoing: Outgoing<M, T>, behind: u64);

    /// Notifies an asker that there is no answer.
    fn refuse(&mut self, asker: T::Asker, refusal: Refusal<'_>);

    /// A question was taken and has no answer yet: it no longer counts as in flight.
    fn set_aside(&mut self, asker: &mut T::Asker) {
        let _ = asker;
    }

    /// The subscribers that need a new snapshot: those that lag, or all.
    fn due(&mut self, everyone: bool) -> Vec<u64>;

    /// The next call that returned as soon as it was made. The machine receives its outcome before any other event.
    fn take_returned(&mut self) -> Option<(u64, Result<M::Outcome, CallLost>)> {
        None
    }

    /// Gives up all calls that were made.
    fn abandon_calls(&mut self);

    /// Records an event, in the order of events. Output is recorded before it leaves, so that a receiver of
    /// it cannot record an event before it.
    fn note(&mut self, entry: JournalEntry<'_, M>);

    /// Whether the journal wants a snapshot of a machine that has just been built.
    fn is_followed(&self) -> bool {
        false
    }

    /// Receives the longest time that the end takes, after a request to stop was handled.
    fn stops_within(&mut self, within: Duration) {
        let _ = within;
    }

    /// Receives the things that the machine has stopped during its shutdown, right before it ends.
    fn stopped(&mut self, steps: Vec<StopStep>) {
        let _ = steps;
    }

    /// Ends the actor.
    fn end(&mut self, ending: Ending);
}
