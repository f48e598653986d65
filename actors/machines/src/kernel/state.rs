//! The state of a kernel, and its public queries.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::calls::Calls;
use super::context::StepContext;
use super::kept::Kept;
use super::machine::{AskId, CallKey, Ending, Machine, Ticket};
use super::outbox::Outbox;
use super::phase::{Deferred, Phase, Unfinished};
use super::port::{Limits, Port, Terms};
use super::timers::Timers;
use crate::vocabulary::{BackoffState, Moment, RestartHistory, Timestamp};

/// A machine with the rules of an actor around it.
pub struct Kernel<M: Machine, T: Terms<M>> {
    pub(super) config: M::Config,
    pub(super) limits: Limits,
    pub(super) phase: Phase<M>,
    pub(super) cx: StepContext<M>,
    /// Promises, calls that await the disk, and the end.
    pub(super) promises: Outbox<Waiting<Item<M, T>>>,
    /// Everything else that leaves.
    pub(super) told: Outbox<Waiting<Item<M, T>>>,
    /// Why the disk is sick, if it is.
    pub(super) sick: Option<String>,
    pub(super) calls: Calls<M>,
    pub(super) timers: Timers<M::Timer>,
    /// Subscribers that have seen nothing yet.
    pub(super) unattached: Vec<T::Reader>,
    pub(super) published: u64,
    pub(super) asked: u64,
    /// The inputs that the present machine has not finished, in the order in which it received them.
    pub(super) unfinished: BTreeMap<AskId, Unfinished<M, T>>,
    /// The inputs that a former machine had not finished and the present one has not received again.
    pub(super) again: BTreeMap<AskId, Unfinished<M, T>>,
    pub(super) deferred: VecDeque<Deferred<M, T>>,
    pub(super) ticket: Ticket,
    /// The last write that settles later.
    pub(super) written_through: u64,
    /// The last of them that promises wait for.
    pub(super) promised_through: u64,
    /// The last of them that everything waits for.
    pub(super) told_through: u64,
    /// The first epoch of this actor: writes of earlier epochs belong to a former actor.
    pub(super) first_epoch: u64,
    pub(super) failed_epoch: Option<u64>,
    /// Changes that are not on disk yet, in their order. If they are lost they are handed over again.
    pub(super) kept: Kept<M::Change>,
    /// The last write that was handed over and not lost since.
    pub(super) handed_through: u64,
    /// When lost writes are handed over again. Nothing is handed over before.
    pub(super) hands_again_at: Option<Timestamp>,
    pub(super) restarts: RestartHistory,
    pub(super) pauses: BackoffState,
    pub(super) was_built: bool,
    pub(super) steps: StepNumber,
    /// The number of items put into the outboxes so far.
    pub(super) ordered: StepNumber,
}

/// A number that only grows, as that of a step. It is recorded and decides nothing, so it is not part of the hashed state.
#[derive(Clone, Copy, Default)]
pub(super) struct StepNumber(pub(super) u64);

impl Debug for StepNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepNumber")
    }
}

impl Hash for StepNumber {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// An item that waits to leave.
#[derive(Debug, Clone, Hash)]
pub(super) struct Waiting<I> {
    /// The last write that it waits for.
    pub(super) behind: u64,
    /// The step that it follows from.
    pub(super) step: StepNumber,
    /// Its place in the order of both outboxes.
    pub(super) order: StepNumber,
    pub(super) item: I,
}

/// One item of output.
#[derive(Debug, Clone, Hash)]
pub(super) enum Item<M: Machine, T: Terms<M>> {
    /// An answer; the caller may be gone.
    Answer(Option<T::Asker>, T::Answer),
    /// News for all subscribers.
    News(M::News),
    /// A new subscriber, with its first snapshot.
    Attach(T::Reader, T::View),
    /// A snapshot for a subscriber.
    Snapshot(u64, T::View),
    /// A snapshot for the journal.
    Description(T::View),
    /// A requested call.
    Call(CallKey, Duration, M::Call),
    /// The end.
    Stop(Ending),
}

impl<M: Machine, T: Terms<M>> Kernel<M, T> {
    /// A kernel whose first life has this epoch. Call [`begin`](Self::begin) next.
    pub fn new(config: M::Config, limits: Limits, first_epoch: u64) -> Self {
        Self {
            config,
            limits,
            phase: Phase::Loading,
            cx: StepContext::new(Moment::default()),
            promises: Outbox::default(),
            told: Outbox::default(),
            sick: None,
            calls: Calls::default(),
            timers: Timers::default(),
            unattached: Vec::new(),
            published: 0,
            asked: 0,
            unfinished: BTreeMap::new(),
            again: BTreeMap::new(),
            deferred: VecDeque::new(),
            ticket: Ticket { epoch: first_epoch, sequence: 0 },
            written_through: 0,
            promised_through: 0,
            told_through: 0,
            first_epoch,
            failed_epoch: None,
            kept: Kept::default(),
            handed_through: 0,
            hands_again_at: None,
            restarts: RestartHistory::default(),
            pauses: BackoffState::default(),
            was_built: false,
            steps: StepNumber::default(),
            ordered: StepNumber::default(),
        }
    }

    /// Begins the life of the actor: reads its store.
    pub fn begin(&mut self, port: &mut impl Port<M, T>) {
        port.load();
    }

    /// The machine, while there is one.
    pub const fn machine(&self) -> Option<&M> {
        match &self.phase {
            Phase::Running(machine) => Some(machine),
            Phase::Loading | Phase::Settling(_) | Phase::Pausing(_) | Phase::Ended => None,
        }
    }

    /// Whether it waits for its store to be read.
    pub const fn is_loading(&self) -> bool {
        matches!(self.phase, Phase::Loading)
    }

    /// The end of the pause in which it does not use its store.
    pub const fn pauses_until(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Pausing(until) => Some(until),
            Phase::Loading | Phase::Running(_) | Phase::Settling(_) | Phase::Ended => self.hands_again_at,
        }
    }

    /// Whether it has ended.
    pub const fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// When its next timer is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Postpones the timers that were set by then: the process was paused for this long since. The order stays.
    pub fn postpone_timers(&mut self, set_by: Timestamp, by: Duration) {
        self.timers.postpone(set_by, by);
    }

    /// Whether a call is still awaited.
    pub fn awaits(&self, call: u64) -> bool {
        self.calls.awaits(call)
    }

    /// The calls in flight, by number.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &M::Call)> + '_ {
        self.calls.iter()
    }

    /// Whether a write that was handed over is not on disk yet.
    pub const fn is_waiting(&self) -> bool {
        self.written_through > self.promises.durable_through()
    }

    /// Why the disk is sick, if it is.
    pub fn sick(&self) -> Option<&str> {
        self.sick.as_deref()
    }
}

// === Copies and pictures of the whole state, for searches ===

impl<M: Machine, T: Terms<M>> Clone for Kernel<M, T>
where
    M: Machine<Ask: Clone> + Clone,
    T: Terms<M, Asker: Clone, Reader: Clone, Answer: Clone, View: Clone> + Clone,
{
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            limits: self.limits,
            phase: self.phase.clone(),
            cx: StepContext::new(Moment::default()),
            promises: self.promises.clone(),
            told: self.told.clone(),
            sick: self.sick.clone(),
            calls: self.calls.clone(),
            timers: self.timers.clone(),
            unattached: self.unattached.clone(),
            published: self.published,
            asked: self.asked,
            unfinished: self.unfinished.clone(),
            again: self.again.clone(),
            deferred: self.deferred.clone(),
            ticket: self.ticket,
            written_through: self.written_through,
            promised_through: self.promised_through,
            told_through: self.told_through,
            first_epoch: self.first_epoch,
            failed_epoch: self.failed_epoch,
            kept: self.kept.clone(),
            handed_through: self.handed_through,
            hands_again_at: self.hands_again_at,
            restarts: self.restarts.clone(),
            pauses: self.pauses,
            was_built: self.was_built,
            steps: self.steps,
            ordered: self.ordered,
        }
    }
}

/// Everything that decides the later behaviour of the kernel; constant parts are left out.
impl<M, T> Hash for Kernel<M, T>
where
    M: Machine<Ask: Hash, Call: Hash, Timer: Hash, Change: Hash, News: Hash> + Hash,
    T: Terms<M, Asker: Hash, Reader: Hash, Answer: Hash, View: Hash> + Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.phase, &self.promises, &self.told, &self.sick).hash(state);
        (&self.calls, &self.timers, &self.unattached).hash(state);
        (self.published, self.asked, &self.unfinished, &self.again, &self.deferred).hash(state);
        (self.ticket, self.written_through, self.promised_through, self.told_through).hash(state);
        (self.failed_epoch, &self.kept, self.handed_through, self.hands_again_at).hash(state);
        (&self.restarts, self.pauses, self.was_built).hash(state);
    }
}

/// Everything that decides the later behaviour of the kernel; constant parts are left out.
impl<M, T> Debug for Kernel<M, T>
where
    M: Machine,
    T: Terms<M, Asker: Debug, Reader: Debug, Answer: Debug, View: Debug> + Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("phase", &self.phase)
            .field("promises", &self.promises)
            .field("told", &self.told)
            .field("sick", &self.sick)
            .field("calls", &self.calls)
            .field("timers", &self.timers)
            .field("unattached", &self.unattached)
            .field("published", &self.published)
            .field("asked", &self.asked)
            .field("unfinished", &self.unfinished)
            .field("again", &self.again)
            .field("deferred", &self.deferred)
            .field("ticket", &self.ticket)
            .field("written_through", &self.written_through)
            .field("promised_through", &self.promised_through)
            .field("told_through", &self.told_through)
            .field("failed_epoch", &self.failed_epoch)
            .field("kept", &self.kept)
            .field("handed_through", &self.handed_through)
            .field("hands_again_at", &self.hands_again_at)
            .field("restarts", &self.restarts)
            .field("pauses", &self.pauses)
            .field("was_built", &self.was_built)
            .finish_non_exhaustive()
    }
}
