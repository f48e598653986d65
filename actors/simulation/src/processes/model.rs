//! The owner of the processes with its disk, the processes, and the actors that start, watch and end them.
//!
//! Carries out the effects of the owner; the world decides when messages arrive, and with which result.

mod carrying;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use callboard_actors::process::{ProcessName, ProcessTag};
use callboard_actors::processes::{
    AwaitEnd, ProcessReported, Processes, ProcessesAsk, ProcessesOptions, ProcessesOutcome,
};
use callboard_actors::shell::{Message, StopMode};
use callboard_actors::vocabulary::{Attempt, Moment, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{Verdict, Violation};
use super::super::observed::Observed;
use super::super::stand_in::{Count, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::writes::Outcome;
use super::disk::ProcessesDisk;
use super::environment::Environment;
use super::laws::ProcessesLaws;

type Owner = StandIn<Processes, ProcessesDisk, ProcessesLaws>;

/// The asker of messages without an awaited answer: reports of actors about their processes.
const NO_ASKER: u64 = 0;

/// The owner, its surroundings, and the messages between them.
#[derive(Debug, Clone, Hash)]
pub(in super::super) struct ProcessesModel {
    pub(super) owner: Owner,
    tamper: Option<Rc<dyn Tamper<Processes>>>,
    pub(super) environment: Environment,
    /// How many lives the owner has had; each starts with other random numbers.
    lives: u64,
    sweep: Option<(u64, Vec<ProcessTag>)>,
    await_endings: Option<u64>,
    /// The mode in which the host ends, and since when.
    pub(super) stopped: Option<(StopMode, Timestamp)>,
    askers: u64,
    /// The callers that wait for an answer, each with the launch whose end it waits for.
    unanswered: BTreeMap<u64, Option<ProcessTag>>,
    /// The callers among them that wait for a launch, which a sick disk delays.
    pub(super) launching: BTreeSet<u64>,
    /// The effects that left, as a trace shows them, if a trace is made.
    pub(in super::super) told: Option<Vec<Observed>>,
    steps_before: Count,
    pub(super) verdict: Verdict,
}

impl ProcessesModel {
    /// An owner that has just been started, and nothing was ever launched.
    pub(in super::super) fn vacant(tamper: Option<Rc<dyn Tamper<Processes>>>) -> Self {
        Self::new(ProcessesDisk::default(), Environment::default(), tamper)
    }

    /// An owner that has just been started, and reads this disk.
    pub(super) fn new(
        disk: ProcessesDisk,
        environment: Environment,
        tamper: Option<Rc<dyn Tamper<Processes>>>,
    ) -> Self {
        Self {
            owner: owner(disk, ProcessesLaws::default(), tamper.clone()),
            tamper,
            environment,
            lives: 0,
            sweep: None,
            await_endings: None,
            stopped: None,
            askers: NO_ASKER,
            unanswered: BTreeMap::new(),
            launching: BTreeSet::new(),
            told: None,
            steps_before: Count::default(),
            verdict: Verdict::NONE,
        }
    }

    const fn moment(&self, now: Timestamp) -> Moment {
        Moment { now, random: self.lives << 36 }
    }

    /// The first law that was broken by any part of the model.
    pub(in super::super) const fn broken(&self) -> Option<&Violation> {
        self.verdict.broken()
    }

    /// The number of steps of the owner.
    pub(in super::super) fn steps(&self) -> u64 {
        self.steps_before.0 + self.owner.steps()
    }

    /// The number of its writes that are not on disk.
    pub(in super::super) fn waiting(&self) -> usize {
        self.owner.store.waiting()
    }

    /// Whether its records are to be read.
    pub(in super::super) const fn is_loading(&self) -> bool {
        self.owner.is_loading()
    }

    /// Whether it was asked to stop.
    pub(in super::super) const fn is_stopping(&self) -> bool {
        self.stopped.is_some()
    }

    /// Whether it has ended.
    pub(in super::super) const fn has_ended(&self) -> bool {
        self.owner.has_ended()
    }

    /// The callers that wait for an answer, except those that wait for the end of a running process.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = u64> + '_ {
        let may_wait = |tag: &Option<ProcessTag>| tag.is_some_and(|tag| self.environment.runs(tag));
        self.unanswered.iter().filter(move |(_, tag)| !may_wait(tag)).map(|(asker, _)| *asker)
    }

    /// The processes for which something has changed: whether their actors have work, and whether a report is in flight.
    pub(in super::super) fn take_changed(&mut self) -> Vec<(ProcessName, bool, bool)> {
        self.environment.take_changed()
    }

    /// The time at which something is due next.
    pub(in super::super) fn due(&self) -> Option<Timestamp> {
        self.owner.next_timer().into_iter().chain(self.owner.pauses_until()).min()
    }

    /// Whether processes without a record are being looked for.
    pub(in super::super) const fn is_sweeping(&self) -> bool {
        self.sweep.is_some()
    }

    /// Whether endings of actors could arrive.
    pub(in super::super) fn has_endings(&self) -> bool {
        self.await_endings.is_some() && self.environment.has_endings()
    }

    // === The host's lifecycle ===

    /// The records are read, if its owner waits for that.
    pub(in super::super) fn load(&mut self, now: Timestamp) {
        if !self.owner.is_loading() {
            return;
        }
        self.lives += 1;
        (self.sweep, self.await_endings) = (None, None);
        let image = self.owner.store.read();
        self.owner.checker.expect(image.clone());
        self.owner.loaded(self.moment(now), image);
        self.carry(now);
    }

    /// The records cannot be read.
    pub(in super::super) fn load_fails(&mut self, now: Timestamp) {
        if self.owner.is_loading() {
            self.owner.load_failed(self.moment(now));
        }
    }

    /// The host is gone, and this number of the writes had reached the disk. Another one starts from that.
    pub(in super::super) fn next_run(&mut self, reached: usize) {
        self.steps_before = Count(self.steps());
        let mut disk = std::mem::take(&mut self.owner.store);
        disk.begin_run(reached);
        let laws = std::mem::take(&mut self.owner.checker);
        self.owner = owner(disk, laws, self.tamper.clone());
        self.environment.next_run();
        (self.sweep, self.await_endings, self.stopped) = (None, None, None);
        self.unanswered.clear();
        self.launching.clear();
    }

    /// The host ends.
    pub(in super::super) fn request_stop(&mut self, now: Timestamp, mode: StopMode) {
        self.stopped = Some((mode, now));
        self.environment.is_let_go = mode == StopMode::Detach;
        self.owner.request_stop(self.moment(now), mode);
        self.carry(now);
    }

    // === Inputs ===

    /// A message arrives.
    pub(in super::super) fn ask<Q: Message<Processes>>(&mut self, now: Timestamp, message: Q) {
        self.ask_until(now, None, message);
    }

    fn ask_until<Q: Message<Processes>>(&mut self, now: Timestamp, end: Option<ProcessTag>, message: Q) {
        self.askers += 1;
        self.unanswered.insert(self.askers, end);
        let ask = message.into_ask();
        if matches!(ask, ProcessesAsk::LaunchProcess(_) | ProcessesAsk::RecallProcess(_)) {
            self.launching.insert(self.askers);
        }
        self.owner.ask(self.moment(now), self.askers, ask);
        self.carry(now);
    }

    /// A client waits for the end of the process running under a name.
    pub(in super::super) fn await_end(&mut self, now: Timestamp, name: &ProcessName) {
        let tag = self.environment.tag_of(name).unwrap_or(ProcessTag::new([u8::MAX; 16]));
        self.ask_until(now, Some(tag), AwaitEnd { name: name.clone(), tag });
    }

    /// The next report of an actor arrives.
    pub(in super::super) fn deliver(&mut self, now: Timestamp, life: Attempt) {
        if let Some((name, news)) = self.environment.take_word(life) {
            let word = ProcessReported { life, name, news };
            self.owner.ask(self.moment(now), NO_ASKER, ProcessesAsk::ProcessReported(word));
            self.carry(now);
        }
    }

    /// The next report of the actor under a name arrives.
    pub(in super::super) fn deliver_of(&mut self, now: Timestamp, name: &ProcessName) {
        if let Some(life) = self.environment.actor_of(name, self.environment.speaking()) {
            self.deliver(now, life);
        }
    }

    /// The endings of actors arrive.
    pub(in super::super) fn deliver_endings(&mut self, now: Timestamp) {
        if !self.environment.has_endings() {
            return;
        }
        if let Some(call) = self.await_endings.take() {
            let ended = self.environment.take_endings();
            self.returned(now, call, ProcessesOutcome::Ended(ended));
            self.carry(now);
        }
    }

    /// Processes without a record are ended, or could not be looked for.
    pub(in super::super) fn sweep(&mut self, now: Timestamp, is_done: bool) {
        let Some((call, known)) = self.sweep.take() else { return };
        let swept = if is_done {
            let is_recorded = |tag| !known.contains(&tag) && self.owner.store.holds(tag);
            if self.environment.running().any(is_recorded) {
                self.violation(Law::Prc9, "a process whose record is on disk is swept away".to_owned());
            }
            self.environment.sweep(&known);
            Ok(Vec::new())
        } else {
            Err("the processes cannot be looked at".to_owned())
        };
        self.returned(now, call, ProcessesOutcome::Swept(swept));
        self.carry(now);
    }

    /// This number of the writes settle as one commit.
    pub(in super::super) fn settle(&mut self, now: Timestamp, count: usize, outcome: Outcome) {
        if let Some(settlement) = self.owner.store.settle(count, outcome) {
            self.owner.settled(self.moment(now), settlement);
            self.carry(now);
        }
    }

    /// The disk becomes sick, or is sound again.
    pub(in super::super) fn disk(&mut self, now: Timestamp, is_sick: bool) {
        if self.owner.is_sick() != is_sick && !self.owner.has_ended() {
            self.owner.disk(self.moment(now), is_sick);
            self.carry(now);
        }
    }

    /// The next write is refused at once.
    pub(in super::super) const fn refuse_next(&mut self) {
        self.owner.store.refuse_next();
    }

    /// The next step crashes.
    pub(in super::super) const fn crash(&mut self) {
        self.owner.crash_next_step();
    }

    /// Runs all timers that are due by now, and ends a pause that is over.
    pub(in super::super) fn time_passes(&mut self, now: Timestamp) {
        if self.owner.pauses_until().is_some_and(|until| until <= now) {
            self.owner.wake();
        }
        self.owner.timers_due(self.moment(now));
        self.carry(now);
    }

    // === Events of processes and their actors ===

    /// An actor takes one step, or that step fails.
    pub(in super::super) fn act(&mut self, life: Attempt, fails: bool) {
        let born = self.environment.act(life, fails);
        if born.is_some_and(|tag| !self.owner.store.holds(tag)) {
            self.violation(Law::Prc9, "a process is started whose record is not on disk".to_owned());
        }
        self.verdict.heard_of(self.environment.verdict.broken());
    }

    /// The actor under a name takes one step, or that step fails. Does nothing if it has no work.
    pub(in super::super) fn act_of(&mut self, name: &ProcessName, fails: bool) {
        if let Some(life) = self.environment.actor_of(name, self.environment.busy()) {
            self.act(life, fails);
        }
    }

    /// The process under a name exits by itself.
    pub(in super::super) fn exits(&mut self, name: &ProcessName) {
        if let Some(tag) = self.environment.tag_of(name) {
            self.environment.exit(tag);
        }
    }

    /// The actor under a name crashes.
    pub(in super::super) fn falls(&mut self, name: &ProcessName) {
        if let Some(life) = self.environment.actor_of(name, self.environment.standing()) {
            self.environment.fall(life);
        }
    }

    /// The next event that happens by itself, with a good result. False if only time can pass.
    pub(in super::super) fn go_on(&mut self, now: Timestamp) -> bool {
        if self.has_ended() {
            return false;
        }
        let (speaking, busy) = (self.environment.speaking().next(), self.environment.busy().next());
        if self.waiting() > 0 && !self.owner.is_sick() {
            self.settle(now, usize::MAX, Outcome::Written);
        } else if self.is_loading() {
            self.load(now);
        } else if let Some(life) = speaking {
            self.deliver(now, life);
        } else if let Some(life) = busy {
            self.act(life, false);
        } else if self.has_endings() {
            self.deliver_endings(now);
        } else if self.is_sweeping() {
            self.sweep(now, true);
        } else {
            return false;
        }
        true
    }
}

pub(super) fn options() -> ProcessesOptions {
    ProcessesOptions::new([0; 16])
}

fn owner(disk: ProcessesDisk, laws: ProcessesLaws, tamper: Option<Rc<dyn Tamper<Processes>>>) -> Owner {
    StandIn::begin(options(), disk, laws, Rules::default()).tampered_with(tamper)
}
