//! A stand-in for the shell: one thread, no runtime, no clock, nothing that waits.
//!
//! It keeps the rules of the shell (gates, failed writes, crashes, rebuilds, questions that are asked again) with the shell's
//! own outbox and timers, and does nothing of itself: a search or a simulator says when a write has settled, when a store was
//! read, when a call comes back and when a step crashes. `actors/tests/registry/stand_in.rs` plays the same histories through
//! both and compares what leaves.

mod parts;
mod stepping;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use self::parts::{AfterSettling, Item, Phase, Said};
pub use self::parts::{Books, Left, Refusal, Rules, Settlement};
use super::tamper::Tamper;
use super::witness::Witness;
use crate::shell::{
    AskId, CallKey, CallLost, Effect, Effects, Ending, Input, Machine, Outbox, StopMode, Ticket, Timers,
    Written,
};
use crate::vocabulary::{BackoffState, Moment, RestartHistory, Timestamp};

/// One actor without an actor: a machine with the rules of the shell around it, and nothing else.
#[derive(Debug)]
pub struct StandIn<M: Machine, S, W> {
    config: Constant<M::Config>,
    rules: Rules,
    /// Where changes go.
    pub books: S,
    /// Who sees everything.
    pub witness: W,
    tamper: Option<Rc<dyn Tamper<M>>>,
    phase: Phase<M>,
    effects: Effects<M>,
    outbox: Outbox<(u64, Item<M>)>,
    left: Vec<Left<M>>,
    timers: Timers<M::Timer>,
    calls: BTreeMap<u64, (CallKey, M::Call)>,
    calls_ever: u64,
    published: u64,
    asked: u64,
    unfinished: BTreeMap<AskId, Said<M::Ask>>,
    again: BTreeMap<AskId, Said<M::Ask>>,
    deferred: VecDeque<Said<M::Ask>>,
    ticket: Ticket,
    /// The last write that was to settle later, and the last one that has.
    written_through: u64,
    durable_through: u64,
    failed_epoch: Option<u64>,
    restarts: RestartHistory,
    pauses: BackoffState,
    is_fuse_lit: bool,
    steps: Count,
}

/// Something that never changes, and so is no part of the state of things.
#[derive(Clone, Copy, Default)]
pub(super) struct Constant<T>(pub(super) T);

impl<T> Debug for Constant<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Constant")
    }
}

impl<T> std::ops::Deref for Constant<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A count that is no part of the state of things: two states are the same whatever it is.
#[derive(Clone, Copy, Default)]
pub(super) struct Count(pub(super) u64);

impl Debug for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Count")
    }
}

impl<M, S, W> Clone for StandIn<M, S, W>
where
    M: Machine<Ask: Clone> + Clone,
    S: Clone,
    W: Clone,
{
    /// Copies the whole, but for what has left and was not heard.
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            rules: self.rules,
            books: self.books.clone(),
            witness: self.witness.clone(),
            tamper: self.tamper.clone(),
            phase: self.phase.clone(),
            effects: Effects::default(),
            outbox: self.outbox.clone(),
            left: Vec::new(),
            timers: self.timers.clone(),
            calls: self.calls.clone(),
            calls_ever: self.calls_ever,
            published: self.published,
            asked: self.asked,
            unfinished: self.unfinished.clone(),
            again: self.again.clone(),
            deferred: self.deferred.clone(),
            ticket: self.ticket,
            written_through: self.written_through,
            durable_through: self.durable_through,
            failed_epoch: self.failed_epoch,
            restarts: self.restarts.clone(),
            pauses: self.pauses,
            is_fuse_lit: self.is_fuse_lit,
            steps: self.steps,
        }
    }
}

impl<M: Machine, S: Books<M>, W: Witness<M>> StandIn<M, S, W> {
    /// An actor that has just been started and reads its store.
    pub fn begin(config: M::Config, books: S, witness: W, rules: Rules) -> Self {
        Self {
            config: Constant(config),
            rules,
            books,
            witness,
            tamper: None,
            phase: Phase::Loading,
            effects: Effects::default(),
            outbox: Outbox::default(),
            left: Vec::new(),
            timers: Timers::default(),
            calls: BTreeMap::new(),
            calls_ever: 0,
            published: 0,
            asked: 0,
            unfinished: BTreeMap::new(),
            again: BTreeMap::new(),
            deferred: VecDeque::new(),
            ticket: Ticket { epoch: 1, sequence: 0 },
            written_through: 0,
            durable_through: 0,
            failed_epoch: None,
            restarts: RestartHistory::default(),
            pauses: BackoffState::default(),
            is_fuse_lit: false,
            steps: Count::default(),
        }
    }

    /// Puts something between the machine and its world that makes it wrong.
    #[must_use]
    pub fn tampered_with(self, tamper: Option<Rc<dyn Tamper<M>>>) -> Self {
        Self { tamper, ..self }
    }

    // === What the world may know ===

    /// The machine, while it lives.
    pub const fn machine(&self) -> Option<&M> {
        match &self.phase {
            Phase::Running(machine) => Some(machine),
            Phase::Loading | Phase::Settling(_) | Phase::Pausing(_) | Phase::Ended => None,
        }
    }

    /// Whether it waits for its store to be read: [`loaded`](Self::loaded) goes on.
    pub const fn is_loading(&self) -> bool {
        matches!(self.phase, Phase::Loading)
    }

    /// Until when it leaves its store alone: [`wake`](Self::wake) goes on.
    pub const fn pauses_until(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Pausing(until) => Some(until),
            Phase::Loading | Phase::Running(_) | Phase::Settling(_) | Phase::Ended => None,
        }
    }

    /// Whether it is over.
    pub const fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// When its next timer is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Whether a call is still waited for.
    pub fn awaits(&self, call: u64) -> bool {
        self.calls.contains_key(&call)
    }

    /// The calls that are waited for.
    pub fn calls(&self) -> impl Iterator<Item = (u64, &M::Call)> + '_ {
        self.calls.iter().map(|(number, (_, call))| (*number, call))
    }

    /// Whether something waits for the disk before it leaves.
    pub const fn is_waiting(&self) -> bool {
        self.outbox.is_waiting()
    }

    /// How many steps its machines have taken, crashes included.
    pub const fn steps(&self) -> u64 {
        self.steps.0
    }

    /// Somebody subscribes: a snapshot leaves when everything before it has. Before the machine lives nothing is done, since
    /// it begins with a snapshot.
    pub fn subscribe(&mut self) {
        if let Phase::Running(machine) = &self.phase {
            let view = Rc::new(machine.view());
            self.push(Item::Snapshot(view));
            self.flush();
        }
    }

    /// Takes what has left since this was asked before.
    pub fn take_left(&mut self, into: &mut Vec<Left<M>>) {
        into.append(&mut self.left);
    }

    // === What comes in ===

    /// Somebody says something.
    pub fn ask(&mut self, moment: Moment, asker: u64, ask: M::Ask) {
        self.hear(moment, Said::Question { asker, asked_at: moment.now, ask });
    }

    /// Somebody wants it to end.
    pub fn request_stop(&mut self, moment: Moment, mode: StopMode) {
        self.hear(moment, Said::Stop(mode));
    }

    fn hear(&mut self, moment: Moment, said: Said<M::Ask>) {
        match self.phase {
            Phase::Running(_) => self.handle(moment, None, said),
            Phase::Loading | Phase::Settling(_) | Phase::Pausing(_) => self.deferred.push_back(said),
            Phase::Ended => {}
        }
    }

    fn handle(&mut self, moment: Moment, again: Option<AskId>, said: Said<M::Ask>) {
        let id = again.unwrap_or_else(|| {
            self.asked += 1;
            AskId::new(self.asked)
        });
        match said {
            Said::Question { asker, asked_at, ask } => {
                self.step(moment, Input::Asked { id, asked_at, ask }, Some(asker));
            }
            Said::Stop(mode) => {
                self.unfinished.retain(|_, other| !matches!(other, Said::Stop(other) if *other == mode));
                self.unfinished.insert(id, Said::Stop(mode));
                self.step(moment, Input::StopRequested(mode), None);
            }
        }
    }

    /// A call comes back. One that is not waited for any more has no effect.
    pub fn returned(&mut self, moment: Moment, number: u64, outcome: Result<M::Outcome, CallLost>) {
        if let Some((key, call)) = self.calls.remove(&number) {
            self.step(moment, Input::Returned { key, call, outcome }, None);
        }
    }

    /// Time has passed: whatever is due by now runs, except what is set for this instant meanwhile.
    pub fn timers_due(&mut self, moment: Moment) {
        let mark = self.timers.settings();
        while matches!(self.phase, Phase::Running(_)) {
            let Some(timer) = self.timers.pop_due(moment.now, mark) else { break };
            self.step(moment, Input::Elapsed(timer), None);
        }
    }

    /// The next step will crash when all of its work is done and before any of it has left.
    pub const fn light_fuse(&mut self) {
        self.is_fuse_lit = true;
    }

    /// Whether its next step will crash.
    pub const fn is_fuse_lit(&self) -> bool {
        self.is_fuse_lit
    }

    /// The disk tells how far it has come.
    pub fn settled(&mut self, moment: Moment, settled: Settlement) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        if settled.is_written {
            self.durable_through = self.durable_through.max(settled.through);
            self.outbox.settle(settled.through);
            self.flush();
            self.go_on_if_settled(moment);
        } else if self.failed_epoch < Some(settled.epoch) {
            self.failed_epoch = Some(self.ticket.epoch);
            self.abandon_life(AfterSettling::Pause);
            let behind = self.outbox.take_all();
            self.written_through = self.durable_through;
            self.refuse(behind);
            self.go_on_if_settled(moment);
        }
    }

    /// The pause is over.
    pub fn wake(&mut self) {
        if matches!(self.phase, Phase::Pausing(_)) {
            self.phase = Phase::Loading;
        }
    }

    /// The store could not be read.
    pub fn load_failed(&mut self, moment: Moment) {
        if self.restarts.charge(&self.rules.budget, moment.now) {
            self.pause(moment);
        } else {
            self.end(Ending::BudgetSpent("the store cannot be read".to_owned()));
        }
    }

    /// The store was read: the machine is built, resumes, and hears what waits.
    pub fn loaded(&mut self, moment: Moment, image: M::Image) {
        let image = match &self.tamper {
            Some(tamper) => tamper.image(image),
            None => image,
        };
        let machine = M::restore(&self.config, image, moment);
        self.witness.rebuilt(moment, &machine);
        self.phase = Phase::Running(machine);
        self.again.append(&mut self.unfinished);
        self.step(moment, Input::Resumed, None);
        self.subscribe();
        while matches!(self.phase, Phase::Running(_)) {
            let next = self.again.pop_first().map(|(id, said)| (Some(id), said));
            let Some((id, said)) = next.or_else(|| Some((None, self.deferred.pop_front()?))) else { break };
            self.handle(moment, id, said);
        }
    }
}

impl<M: Machine<Image = ()>, S: Books<M>, W: Witness<M>> StandIn<M, S, W> {
    /// What has left since this was asked before. An actor that keeps nothing is built at once where it waits for that.
    pub fn leaving(&mut self, moment: Moment) -> Vec<Left<M>> {
        if self.is_loading() {
            self.loaded(moment, ());
        }
        std::mem::take(&mut self.left)
    }
}
