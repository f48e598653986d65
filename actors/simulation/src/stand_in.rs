//! A port of the [kernel](callboard_actors::kernel) without a runtime: one thread, no clock, nothing that blocks.
//!
//! It does nothing by itself: a search or a simulator decides when a write settles, when a store is read, when a call
//! returns and when a step crashes. The rules are those of the kernel, as in production.

mod parts;
mod port;

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

pub use self::parts::{Disk, Left, Refusal, Rules, Settlement};
use callboard_actors::kernel::{CallLost, Event, Kernel, Machine, StopMode};
use callboard_actors::shell::Recorded;
use callboard_actors::vocabulary::{Moment, Timestamp};

use self::port::{Around, StandInPort, StandInTerms};
use super::law_checker::LawChecker;
use super::tamper::Tamper;

/// The epoch of the first life.
const FIRST_EPOCH: u64 = 1;

/// An actor without a runtime: a machine with the rules of the kernel around it, and nothing else.
#[derive(Debug)]
pub struct StandIn<M: Machine, S, W> {
    kernel: Kernel<M, StandInTerms>,
    around: Around<M>,
    /// The store that takes changes.
    pub store: S,
    /// The law checker that observes everything.
    pub checker: W,
}

/// A value that never changes, and so is not part of the state.
#[derive(Clone, Copy, Default)]
pub(super) struct Constant<T>(pub(super) T);

impl<T> Debug for Constant<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Constant")
    }
}

impl<T> Hash for Constant<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T> std::ops::Deref for Constant<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A count that is not part of the state: states are equal whatever its value.
#[derive(Clone, Copy, Default)]
pub(super) struct Count(pub(super) u64);

impl Debug for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Count")
    }
}

impl Hash for Count {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Everything except effects that have left and were not taken yet, as in a copy.
impl<M, S, W> Hash for StandIn<M, S, W>
where
    M: Machine<Ask: Hash, Answer: Hash, Call: Hash, Timer: Hash, Change: Hash, News: Hash, View: Hash> + Hash,
    S: Hash,
    W: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.kernel, &self.around, &self.store, &self.checker).hash(state);
    }
}

impl<M, S, W> Clone for StandIn<M, S, W>
where
    M: Machine<Ask: Clone> + Clone,
    S: Clone,
    W: Clone,
{
    /// Copies everything except effects that have left and were not taken yet.
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone(),
            around: self.around.without_left(),
            store: self.store.clone(),
            checker: self.checker.clone(),
        }
    }
}

impl<M: Machine, S: Disk<M>, W: LawChecker<M>> StandIn<M, S, W> {
    /// An actor that has just been started and reads its store. It has one subscriber from the beginning.
    pub fn begin(config: M::Config, store: S, checker: W, rules: Rules) -> Self {
        let kernel = Kernel::new(config, rules.limits(), FIRST_EPOCH);
        let mut begun = Self { kernel, around: Around::default(), store, checker };
        begun.drive(Moment::default(), Event::Subscribed(()));
        begun
    }

    /// Adds a fault between the machine and its world.
    #[must_use]
    pub fn tampered_with(mut self, tamper: Option<Rc<dyn Tamper<M>>>) -> Self {
        self.around.tamper = tamper;
        self
    }

    /// The fault between the machine and its world.
    pub(crate) fn tamper(&self) -> Option<Rc<dyn Tamper<M>>> {
        self.around.tamper.clone()
    }

    fn drive(&mut self, moment: Moment, event: Event<M, StandInTerms>) {
        let Self { kernel, around, store, checker } = self;
        kernel.handle(event, &mut StandInPort { moment, around, store, checker });
        assert!(!self.around.broken, "the model of the disk of {} crashed over a write", M::KIND);
        while let Some((number, lost)) = self.around.lost.pop_front() {
            self.returned(moment, number, Err(lost));
        }
    }

    // === The observable state ===

    /// The machine, while it lives.
    pub const fn machine(&self) -> Option<&M> {
        self.kernel.machine()
    }

    /// Whether it waits for its store to be read: [`loaded`](Self::loaded) continues.
    pub const fn is_loading(&self) -> bool {
        self.kernel.is_loading()
    }

    /// The time until which it leaves its store alone: [`wake`](Self::wake) continues.
    pub const fn pauses_until(&self) -> Option<Timestamp> {
        self.kernel.pauses_until()
    }

    /// Whether the actor has ended.
    pub const fn has_ended(&self) -> bool {
        self.kernel.has_ended()
    }

    /// The time at which its next timer is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.kernel.next_timer()
    }

    /// Whether the actor waits for this call.
    pub fn awaits(&self, call: u64) -> bool {
        self.kernel.awaits(call)
    }

    /// The calls in flight.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &M::Call)> + '_ {
        self.kernel.calls()
    }

    /// Whether an effect waits for the disk before it leaves.
    pub const fn is_waiting(&self) -> bool {
        self.kernel.is_waiting()
    }

    /// Whether its disk is sick, by its last notification.
    pub fn is_sick(&self) -> bool {
        self.kernel.sick().is_some()
    }

    /// The number of steps of its machines, crashes included.
    pub const fn steps(&self) -> u64 {
        self.around.steps.0
    }

    /// Whether its next step will crash.
    pub const fn crashes_next(&self) -> bool {
        self.around.crashes_next
    }

    /// Takes the effects that have left since the last call.
    pub fn take_left(&mut self, into: &mut Vec<Left<M>>) {
        into.append(&mut self.around.left);
    }

    /// Turns its journal on.
    pub fn begin_noting(&mut self) {
        self.around.entries.get_or_insert_default();
    }

    /// The journal entries since the last call. Empty if the journal is off.
    pub fn take_entries(&mut self) -> Vec<Recorded> {
        self.around.entries.as_mut().map(std::mem::take).unwrap_or_default()
    }

    // === Inputs ===

    /// A subscriber subscribes: a snapshot leaves after all earlier effects. Does nothing before the machine lives, since
    /// the machine begins with a snapshot.
    pub fn subscribe(&mut self) {
        if self.machine().is_some() {
            self.drive(Moment::default(), Event::Resync);
        }
    }

    /// A message arrives.
    pub fn ask(&mut self, moment: Moment, asker: u64, ask: M::Ask) {
        self.drive(moment, Event::Asked { ask, asker });
    }

    /// The actor is requested to stop.
    pub fn request_stop(&mut self, moment: Moment, mode: StopMode) {
        self.drive(moment, Event::StopRequested(mode));
    }

    /// A call returns. Without effect if the actor no longer waits for it.
    pub fn returned(&mut self, moment: Moment, number: u64, outcome: Result<M::Outcome, CallLost>) {
        self.drive(moment, Event::Returned { number, outcome });
    }

    /// Time has passed: all timers due by now run, except those that are set meanwhile for this instant.
    pub fn timers_due(&mut self, moment: Moment) {
        self.drive(moment, Event::TimersDue);
    }

    /// The next step will crash after it has done all of its work and before any effect of it has left.
    pub const fn crash_next_step(&mut self) {
        self.around.crashes_next = true;
    }

    /// The disk reports the progress of writes.
    pub fn settled(&mut self, moment: Moment, settled: Settlement) {
        let Settlement { epoch, through, is_written } = settled;
        if is_written {
            self.around.durable_through = self.around.durable_through.max(through);
        }
        while let Some(left) = self.around.no_longer_held() {
            self.checker.left(&left, true);
            self.around.left.push(left);
        }
        let outcome = if is_written { Ok(()) } else { Err("the disk failed".to_owned()) };
        self.drive(moment, Event::Settled { epoch, through, outcome });
    }

    /// The disk becomes sick, or is sound again.
    pub fn disk(&mut self, moment: Moment, is_sick: bool) {
        self.drive(moment, Event::Disk(is_sick.then(|| "the disk hangs".to_owned())));
    }

    /// The pause is over.
    pub fn wake(&mut self) {
        self.drive(Moment::default(), Event::Woken);
    }

    /// The store could not be read.
    pub fn load_failed(&mut self, moment: Moment) {
        self.drive(moment, Event::Loaded(Err("the store cannot be read".to_owned())));
    }

    /// The store was read: the machine is built, resumes, and receives the waiting messages.
    pub fn loaded(&mut self, moment: Moment, image: M::Image) {
        let image = match &self.around.tamper {
            Some(tamper) => tamper.image(image),
            None => image,
        };
        self.drive(moment, Event::Loaded(Ok(image)));
    }
}

impl<M: Machine<Image = ()>, S: Disk<M>, W: LawChecker<M>> StandIn<M, S, W> {
    /// The effects that have left since the last call. An actor without a store is built at once when it waits for its store.
    pub fn leaving(&mut self, moment: Moment) -> Vec<Left<M>> {
        if self.is_loading() {
            self.loaded(moment, ());
        }
        std::mem::take(&mut self.around.left)
    }
}
