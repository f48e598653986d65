//! The owner of the processes, its disk, one process and its actors: small enough to try every order.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::super::law::Law;
use super::super::search::{Play, World};
use super::super::stand_in::{Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::witness::{NOBODY_WAITS, Violation, cry, found};
use super::disk::ProcessesDisk;
use super::event::{ProcessesBounds, ProcessesEvent};
use super::ground::{Ground, identity};
use super::laws::ProcessesLaws;
use crate::process::{Executable, Lifetime, ProcessName, ProcessRecord, ProcessSpec, ProcessTag};
use crate::processes::{
    LaunchProcess, ProcessReported, Processes, ProcessesCall, ProcessesOptions, ProcessesOutcome,
    RecallProcess, StopProcess,
};
use crate::shell::{Message, StopMode};
use crate::vocabulary::{Attempt, Moment, Timestamp};

type Owner = StandIn<Processes, ProcessesDisk, ProcessesLaws>;

/// Whose answers nobody waits for: actors that tell how their processes do.
const NOBODY: u64 = 0;

/// The world, with what may still happen.
#[derive(Debug, Clone)]
pub struct ProcessesWorld {
    pub(super) owner: Owner,
    tamper: Option<Rc<dyn Tamper<Processes>>>,
    pub(super) ground: Ground,
    pub(super) now: Timestamp,
    pub(super) left: ProcessesBounds,
    /// How many lives the owner has had; each begins with other random numbers.
    lives: u64,
    sweep: Option<(u64, Vec<ProcessTag>)>,
    await_endings: Option<u64>,
    askers: u64,
    pub(super) unanswered: BTreeSet<u64>,
    /// In which way the host ends, and since when.
    pub(super) stopped: Option<(StopMode, Timestamp)>,
}

impl ProcessesWorld {
    /// A world in which so much may happen, with a fault in the owner if one is given.
    #[must_use]
    pub fn new(bounds: ProcessesBounds, tamper: Option<Rc<dyn Tamper<Processes>>>) -> Self {
        let (mut disk, mut ground) = (ProcessesDisk::default(), Ground::default());
        for number in 0..bounds.found {
            let record = left_behind(number);
            ground.leave(&record);
            disk.leave(record);
        }
        let mut world = Self {
            owner: owner(disk, tamper.clone()),
            tamper,
            ground,
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
            lives: 0,
            sweep: None,
            await_endings: None,
            askers: NOBODY,
            unanswered: BTreeSet::new(),
            stopped: None,
        };
        world.load();
        // Nothing that could be broken has happened before its first step.
        let _ = world.hear();
        world
    }

    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: self.lives << 36 }
    }

    fn spec(&self) -> Arc<ProcessSpec> {
        let mut spec = ProcessSpec::new(Executable::at("/bin/plugin"));
        spec.lifetime = if self.left.survives { Lifetime::Surviving } else { Lifetime::Bound };
        Arc::new(spec)
    }

    fn load(&mut self) {
        self.lives += 1;
        (self.sweep, self.await_endings) = (None, None);
        let image = self.owner.books.read();
        self.owner.loaded(self.moment(), image);
    }

    fn kill(&mut self, reached: usize) {
        let mut disk = self.owner.books.clone();
        disk.begin_run(reached);
        let verdict = self.owner.witness.clone();
        self.owner = owner(disk, self.tamper.clone());
        self.owner.witness = verdict;
        self.ground.next_run();
        self.unanswered.clear();
        self.stopped = None;
        self.load();
    }

    fn ask<Q: Message<Processes>>(&mut self, message: Q) {
        self.askers += 1;
        self.unanswered.insert(self.askers);
        self.owner.ask(self.moment(), self.askers, message.into_ask());
    }

    fn deliver(&mut self, life: Attempt) {
        if let Some((name, news)) = self.ground.take_word(life) {
            let word = ProcessReported { life, name, news };
            self.owner.ask(self.moment(), NOBODY, word.into_ask());
        }
    }

    fn returned(&mut self, call: u64, outcome: ProcessesOutcome) {
        self.owner.returned(self.moment(), call, Ok(outcome));
    }

    fn sweep(&mut self, is_done: bool) -> Result<(), Violation> {
        let Some((call, known)) = self.sweep.take() else { return Ok(()) };
        let swept = if is_done {
            let is_recorded = |tag| !known.contains(&tag) && self.owner.books.holds(tag);
            if self.ground.running().any(is_recorded) {
                return cry(Law::Prc9, "a process whose record is on disk is swept away");
            }
            self.ground.sweep(&known);
            Ok(Vec::new())
        } else {
            Err("the processes cannot be looked at".to_owned())
        };
        self.returned(call, ProcessesOutcome::Swept(swept));
        Ok(())
    }

    fn settle_disk(&mut self, is_written: bool) {
        if let Some(settlement) = self.owner.books.settle(is_written) {
            self.owner.settled(self.moment(), settlement);
        }
    }

    /// When something is due next.
    fn due(&self) -> Option<Timestamp> {
        self.owner.next_timer().into_iter().chain(self.owner.pauses_until()).min()
    }

    fn pass(&mut self) {
        self.now = self.due().unwrap_or(self.now).max(self.now);
        if self.owner.pauses_until().is_some_and(|until| until <= self.now) {
            self.owner.wake();
        }
        self.owner.timers_due(self.moment());
    }

    // === What leaves ===

    fn hear(&mut self) -> Result<(), Violation> {
        let mut left = Vec::new();
        loop {
            self.owner.take_left(&mut left);
            if left.is_empty() {
                break;
            }
            left.drain(..).try_for_each(|left| self.take_in(left))?;
        }
        for tag in self.owner.books.take_retired() {
            if self.ground.runs(tag) {
                return cry(Law::Prc9, "a record is gone, and its process runs");
            }
        }
        if self.owner.has_ended() {
            self.unanswered.clear();
        }
        let laws = self.owner.witness.verdict.broken();
        found(laws.or_else(|| self.ground.verdict.broken()))
    }

    fn take_in(&mut self, left: Left<Processes>) -> Result<(), Violation> {
        match left {
            Left::Answer(Some(asker), _) | Left::Refused(asker, _) => {
                if asker != NOBODY && !self.unanswered.remove(&asker) {
                    return cry(Law::Shell7, format!("question {asker} was answered twice"));
                }
            }
            Left::Call { number, call, .. } => return self.called(number, call),
            Left::Answer(None, _) => return cry(Law::Shell7, NOBODY_WAITS),
            Left::News(..) | Left::Snapshot(..) | Left::Ended(_) => {}
        }
        Ok(())
    }

    fn called(&mut self, number: u64, call: ProcessesCall) -> Result<(), Violation> {
        match call {
            ProcessesCall::Sweep { known } => {
                self.sweep = Some((number, known));
                return Ok(());
            }
            ProcessesCall::AwaitEndings => {
                self.await_endings = Some(number);
                return Ok(());
            }
            ProcessesCall::Release => self.ground.release(),
            ProcessesCall::Start { life, config } => {
                if config.spec.is_some() && !self.owner.books.holds(config.record.tag) {
                    return cry(Law::Prc9, "a process is started whose intent is not on disk");
                }
                self.ground.start(life, *config);
            }
            ProcessesCall::End { life, .. } => self.ground.end(life),
            ProcessesCall::Stop { life, mode } => self.ground.stop(life, mode),
        }
        self.returned(number, ProcessesOutcome::Done);
        Ok(())
    }
}

impl World for ProcessesWorld {
    fn events(&self) -> Vec<ProcessesEvent> {
        if self.owner.has_ended() {
            return Vec::new();
        }
        let mut events: Vec<_> = self.ground.busy().map(|life| ProcessesEvent::Act(life, false)).collect();
        events.extend(self.ground.speaking().map(ProcessesEvent::Deliver));
        if self.left.faults > 0 {
            events.extend(self.ground.launching().map(|life| ProcessesEvent::Act(life, true)));
        }
        if self.left.exits > 0 {
            events.extend((0..self.ground.running().count()).map(ProcessesEvent::Exit));
        }
        if self.left.falls > 0 {
            events.extend(self.ground.standing().map(ProcessesEvent::Fall));
        }
        let waiting = self.owner.books.waiting();
        if self.left.kills > 0 {
            events.extend((0..=waiting).map(ProcessesEvent::Kill));
        }
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(self.await_endings.is_some() && self.ground.has_endings(), ProcessesEvent::Endings);
        maybe(self.sweep.is_some(), ProcessesEvent::Sweep(true));
        maybe(self.sweep.is_some() && self.left.faults > 0, ProcessesEvent::Sweep(false));
        maybe(waiting > 0, ProcessesEvent::Settle(true));
        maybe(waiting > 0 && self.left.failures > 0, ProcessesEvent::Settle(false));
        maybe(self.owner.is_loading(), ProcessesEvent::Load);
        maybe(self.left.launches > 0, ProcessesEvent::Launch);
        maybe(self.left.orders > 0, ProcessesEvent::End);
        maybe(self.left.orders > 0, ProcessesEvent::Recall);
        maybe(self.left.pauses > 0 && self.due().is_some(), ProcessesEvent::Pass);
        maybe(self.left.crashes > 0 && !self.owner.is_fuse_lit(), ProcessesEvent::Crash);
        events.extend(self.left.stops.iter().map(|mode| ProcessesEvent::Stop(*mode)));
        events
    }
}

impl Play for ProcessesWorld {
    type Event = ProcessesEvent;

    fn can(&self, event: &ProcessesEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &ProcessesEvent) -> Result<(), Violation> {
        let left = &mut self.left;
        match *event {
            ProcessesEvent::Launch => {
                left.launches -= 1;
                let (name, spec) = (name(), self.spec());
                self.ask(LaunchProcess { name, spec });
            }
            ProcessesEvent::End => {
                left.orders -= 1;
                self.ask(StopProcess { name: name(), tag: None, grace: Duration::from_secs(5) });
            }
            ProcessesEvent::Recall => {
                left.orders -= 1;
                self.ask(RecallProcess { name: name() });
            }
            ProcessesEvent::Act(life, fails) => {
                left.faults -= u8::from(fails);
                self.ground.act(life, fails);
            }
            ProcessesEvent::Deliver(life) => self.deliver(life),
            ProcessesEvent::Endings => {
                if let Some(call) = self.await_endings.take() {
                    let ended = self.ground.take_endings();
                    self.returned(call, ProcessesOutcome::Ended(ended));
                }
            }
            ProcessesEvent::Sweep(is_done) => {
                left.faults -= u8::from(!is_done);
                self.sweep(is_done)?;
            }
            ProcessesEvent::Exit(place) => {
                left.exits -= 1;
                self.ground.exit(place);
            }
            ProcessesEvent::Fall(life) => {
                left.falls -= 1;
                self.ground.fall(life);
            }
            ProcessesEvent::Settle(is_written) => {
                left.failures -= u8::from(!is_written);
                self.settle_disk(is_written);
            }
            ProcessesEvent::Load => self.load(),
            ProcessesEvent::Pass => {
                left.pauses = left.pauses.saturating_sub(1);
                self.pass();
            }
            ProcessesEvent::Crash => {
                left.crashes -= 1;
                self.owner.light_fuse();
            }
            ProcessesEvent::Kill(reached) => {
                left.kills -= 1;
                self.kill(reached);
            }
            ProcessesEvent::Stop(mode) => {
                left.stops = &[];
                self.stopped = Some((mode, self.now));
                self.owner.request_stop(self.moment(), mode);
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        while calm < 12 && !self.owner.has_ended() {
            let busy = self.ground.busy().next();
            let speaking = self.ground.speaking().next();
            let event = if self.owner.books.waiting() > 0 {
                ProcessesEvent::Settle(true)
            } else if self.owner.is_loading() {
                ProcessesEvent::Load
            } else if let Some(life) = speaking {
                ProcessesEvent::Deliver(life)
            } else if let Some(life) = busy {
                ProcessesEvent::Act(life, false)
            } else if self.await_endings.is_some() && self.ground.has_endings() {
                ProcessesEvent::Endings
            } else if self.sweep.is_some() {
                ProcessesEvent::Sweep(true)
            } else if self.due().is_some() {
                calm += 1;
                ProcessesEvent::Pass
            } else {
                break;
            };
            self.take(&event)?;
        }
        self.check_end()
    }
}

pub(super) fn options() -> ProcessesOptions {
    ProcessesOptions::new([0; 16])
}

fn owner(disk: ProcessesDisk, tamper: Option<Rc<dyn Tamper<Processes>>>) -> Owner {
    StandIn::begin(options(), disk, ProcessesLaws::default(), Rules::default()).tampered_with(tamper)
}

fn name() -> ProcessName {
    numbered(0)
}

fn numbered(number: u8) -> ProcessName {
    ProcessName::new(format!("driver-{number}")).expect("it is a name")
}

/// The record of a process that an earlier run left.
fn left_behind(number: u8) -> ProcessRecord {
    let tag = ProcessTag::new([number; 16]);
    let mut spec = ProcessSpec::new(Executable::at("/bin/plugin"));
    spec.lifetime = Lifetime::Surviving;
    let begun = Timestamp::from_epoch(Duration::from_secs(900));
    let record = ProcessRecord::intent(numbered(number), tag, &spec, begun);
    ProcessRecord { identity: Some(identity()), is_ready: true, ..record }
}
