//! The owner of the processes with its disk, the processes, and the actors that start, watch and end them.
//!
//! What leaves the owner is carried here, and the world says when something arrives and what comes of it.

use std::rc::Rc;

use super::super::law::Law;
use super::super::stand_in::{Count, Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::witness::{NOBODY_WAITS, Verdict, Violation};
use super::super::writes::Outcome;
use super::disk::ProcessesDisk;
use super::ground::Ground;
use super::laws::ProcessesLaws;
use crate::process::ProcessTag;
use crate::processes::{ProcessReported, Processes, ProcessesCall, ProcessesOptions, ProcessesOutcome};
use crate::shell::{Message, StopMode};
use crate::vocabulary::{Attempt, Moment, Timestamp};

type Owner = StandIn<Processes, ProcessesDisk, ProcessesLaws>;

/// Whose answers nobody waits for: actors that tell how their processes do.
const NOBODY: u64 = 0;

/// The owner, what it stands on, and what is between them.
#[derive(Debug, Clone)]
pub(in super::super) struct Estate {
    pub(super) owner: Owner,
    tamper: Option<Rc<dyn Tamper<Processes>>>,
    pub(super) ground: Ground,
    /// How many lives the owner has had; each begins with other random numbers.
    lives: u64,
    sweep: Option<(u64, Vec<ProcessTag>)>,
    await_endings: Option<u64>,
    /// In which way the host ends, and since when.
    pub(super) stopped: Option<(StopMode, Timestamp)>,
    /// Who was answered or refused.
    pub(in super::super) answered: Vec<u64>,
    /// What left, line by line, if somebody wants to know.
    pub(in super::super) told: Option<Vec<String>>,
    steps_before: Count,
    pub(super) verdict: Verdict,
}

impl Estate {
    /// An owner that has just been started, and reads this disk.
    pub(in super::super) fn new(
        disk: ProcessesDisk,
        ground: Ground,
        tamper: Option<Rc<dyn Tamper<Processes>>>,
    ) -> Self {
        Self {
            owner: owner(disk, ProcessesLaws::default(), tamper.clone()),
            tamper,
            ground,
            lives: 0,
            sweep: None,
            await_endings: None,
            stopped: None,
            answered: Vec::new(),
            told: None,
            steps_before: Count::default(),
            verdict: Verdict::NONE,
        }
    }

    const fn moment(&self, now: Timestamp) -> Moment {
        Moment { now, random: self.lives << 36 }
    }

    /// The law that was broken first by anyone in here.
    pub(in super::super) const fn broken(&self) -> Option<&Violation> {
        self.verdict.broken()
    }

    /// How many steps the owner has taken.
    pub(in super::super) fn steps(&self) -> u64 {
        self.steps_before.0 + self.owner.steps()
    }

    /// How many of its writes are not on disk.
    pub(in super::super) fn waiting(&self) -> usize {
        self.owner.books.waiting()
    }

    /// When something is due next.
    pub(in super::super) fn due(&self) -> Option<Timestamp> {
        self.owner.next_timer().into_iter().chain(self.owner.pauses_until()).min()
    }

    /// Whether what stands in no record is looked for.
    pub(in super::super) const fn is_sweeping(&self) -> bool {
        self.sweep.is_some()
    }

    /// Whether word of ended actors could arrive.
    pub(in super::super) fn has_endings(&self) -> bool {
        self.await_endings.is_some() && self.ground.has_endings()
    }

    // === The host's life ===

    /// The records are read, if its owner waits for that.
    pub(in super::super) fn load(&mut self, now: Timestamp) {
        if !self.owner.is_loading() {
            return;
        }
        self.lives += 1;
        (self.sweep, self.await_endings) = (None, None);
        let image = self.owner.books.read();
        self.owner.witness.expect(image.clone());
        self.owner.loaded(self.moment(now), image);
        self.carry(now);
    }

    /// The host is gone, and so many of the writes had reached the disk. Another one starts on what is left.
    pub(in super::super) fn next_run(&mut self, reached: usize) {
        self.steps_before = Count(self.steps());
        let mut disk = std::mem::take(&mut self.owner.books);
        disk.begin_run(reached);
        let laws = std::mem::take(&mut self.owner.witness);
        self.owner = owner(disk, laws, self.tamper.clone());
        self.ground.next_run();
        (self.sweep, self.await_endings, self.stopped) = (None, None, None);
        self.answered.clear();
    }

    /// The host ends.
    pub(in super::super) fn request_stop(&mut self, now: Timestamp, mode: StopMode) {
        self.stopped = Some((mode, now));
        self.ground.is_let_go = mode == StopMode::Detach;
        self.owner.request_stop(self.moment(now), mode);
        self.carry(now);
    }

    // === What comes in ===

    /// Somebody says something.
    pub(in super::super) fn ask<Q: Message<Processes>>(&mut self, now: Timestamp, asker: u64, message: Q) {
        self.owner.ask(self.moment(now), asker, message.into_ask());
        self.carry(now);
    }

    /// The next word of an actor arrives.
    pub(in super::super) fn deliver(&mut self, now: Timestamp, life: Attempt) {
        if let Some((name, news)) = self.ground.take_word(life) {
            self.ask(now, NOBODY, ProcessReported { life, name, news });
        }
    }

    /// Word of actors that have ended arrives.
    pub(in super::super) fn deliver_endings(&mut self, now: Timestamp) {
        if !self.ground.has_endings() {
            return;
        }
        if let Some(call) = self.await_endings.take() {
            let ended = self.ground.take_endings();
            self.returned(now, call, ProcessesOutcome::Ended(ended));
            self.carry(now);
        }
    }

    /// What stands in no record is ended, or could not be looked for.
    pub(in super::super) fn sweep(&mut self, now: Timestamp, is_done: bool) {
        let Some((call, known)) = self.sweep.take() else { return };
        let swept = if is_done {
            let is_recorded = |tag| !known.contains(&tag) && self.owner.books.holds(tag);
            if self.ground.running().any(is_recorded) {
                self.cry(Law::Prc9, "a process whose record is on disk is swept away".to_owned());
            }
            self.ground.sweep(&known);
            Ok(Vec::new())
        } else {
            Err("the processes cannot be looked at".to_owned())
        };
        self.returned(now, call, ProcessesOutcome::Swept(swept));
        self.carry(now);
    }

    /// So many of the writes settle as one commit.
    pub(in super::super) fn settle(&mut self, now: Timestamp, count: usize, outcome: Outcome) {
        if let Some(settlement) = self.owner.books.settle(count, outcome) {
            self.owner.settled(self.moment(now), settlement);
            self.carry(now);
        }
    }

    /// What is due by now runs, and a pause that is over is over.
    pub(in super::super) fn time_passes(&mut self, now: Timestamp) {
        if self.owner.pauses_until().is_some_and(|until| until <= now) {
            self.owner.wake();
        }
        self.owner.timers_due(self.moment(now));
        self.carry(now);
    }

    // === What happens to processes and their actors ===

    /// An actor goes one step on, or what it is at fails.
    pub(in super::super) fn act(&mut self, life: Attempt, fails: bool) {
        let born = self.ground.act(life, fails);
        if born.is_some_and(|tag| !self.owner.books.holds(tag)) {
            self.cry(Law::Prc9, "a process is started whose record is not on disk".to_owned());
        }
        self.verdict.heard_of(self.ground.verdict.broken());
    }

    // === What leaves ===

    fn returned(&mut self, now: Timestamp, call: u64, outcome: ProcessesOutcome) {
        self.owner.returned(self.moment(now), call, Ok(outcome));
    }

    fn cry(&mut self, law: Law, what: String) {
        self.verdict.cry(law, || what);
    }

    fn carry(&mut self, now: Timestamp) {
        let mut left = Vec::new();
        loop {
            self.owner.take_left(&mut left);
            if left.is_empty() {
                break;
            }
            for left in left.drain(..) {
                if let Some(told) = &mut self.told {
                    told.push(format!("processes: {left:?}"));
                }
                self.take_in(now, left);
            }
        }
        for tag in self.owner.books.take_retired() {
            if self.ground.runs(tag) {
                self.cry(Law::Prc9, "a record is gone, and its process runs".to_owned());
            }
        }
        self.verdict.heard_of(self.owner.witness.verdict.broken());
        self.verdict.heard_of(self.ground.verdict.broken());
    }

    fn take_in(&mut self, now: Timestamp, left: Left<Processes>) {
        let books = &self.owner.books;
        match left {
            Left::Answer(Some(asker), answer) => {
                self.owner.witness.answered(&answer, books);
                self.answered.extend((asker != NOBODY).then_some(asker));
            }
            Left::Refused(asker, _) => self.answered.extend((asker != NOBODY).then_some(asker)),
            Left::Answer(None, _) => self.cry(Law::Shell7, NOBODY_WAITS.to_owned()),
            Left::News(_, news) => self.owner.witness.told(&news, books),
            Left::Call { number, call, .. } => self.called(now, number, call),
            Left::Snapshot(..) | Left::Ended(_) => {}
        }
    }

    fn called(&mut self, now: Timestamp, number: u64, call: ProcessesCall) {
        match call {
            ProcessesCall::Sweep { known } => {
                self.sweep = Some((number, known));
                return;
            }
            ProcessesCall::AwaitEndings => {
                self.await_endings = Some(number);
                return;
            }
            ProcessesCall::Release => self.ground.release(),
            ProcessesCall::Start { life, config } => {
                if config.spec.is_some() && !self.owner.books.holds(config.record.tag) {
                    self.cry(Law::Prc9, "a process is started whose intent is not on disk".to_owned());
                }
                self.ground.start(life, *config);
            }
            ProcessesCall::End { life, .. } => self.ground.end(life),
            ProcessesCall::Stop { life, mode } => self.ground.stop(life, mode),
        }
        self.returned(now, number, ProcessesOutcome::Done);
    }
}

pub(super) fn options() -> ProcessesOptions {
    ProcessesOptions::new([0; 16])
}

fn owner(disk: ProcessesDisk, laws: ProcessesLaws, tamper: Option<Rc<dyn Tamper<Processes>>>) -> Owner {
    StandIn::begin(options(), disk, laws, Rules::default()).tampered_with(tamper)
}
