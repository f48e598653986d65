//! The owner of the processes, its disk, one or two processes and their actors: small enough to try every order of events.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::process::{Executable, Lifetime, ProcessName, ProcessRecord, ProcessSpec, ProcessTag};
use callboard_actors::processes::{LaunchProcess, Processes, RecallProcess, StopProcess};
use callboard_actors::vocabulary::Timestamp;

use super::super::law_checker::{Violation, found};
use super::super::search::{Play, World};
use super::super::tamper::Tamper;
use super::super::writes::Outcome;
use super::disk::ProcessesDisk;
use super::environment::{Environment, identity};
use super::event::{ProcessesBounds, ProcessesEvent};
use super::model::ProcessesModel;

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct ProcessesWorld {
    model: ProcessesModel,
    now: Timestamp,
    left: ProcessesBounds,
}

impl ProcessesWorld {
    /// A world with these bounds, with a fault in the owner if one is given.
    #[must_use]
    pub fn new(bounds: ProcessesBounds, tamper: Option<Rc<dyn Tamper<Processes>>>) -> Self {
        let (mut disk, mut environment) = (ProcessesDisk::default(), Environment::default());
        for number in 0..bounds.found {
            let record = left_behind(number);
            environment.leave(&record);
            disk.leave(record);
        }
        let mut world = Self {
            model: ProcessesModel::new(disk, environment, tamper),
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
        };
        world.model.load(world.now);
        world
    }

    fn spec(&self) -> Arc<ProcessSpec> {
        let mut spec = ProcessSpec::new(Executable::at("/bin/plugin"));
        spec.lifetime = if self.left.survives { Lifetime::Surviving } else { Lifetime::Bound };
        Arc::new(spec)
    }

    fn pass(&mut self) {
        self.now = self.model.due().unwrap_or(self.now).max(self.now);
        self.model.time_passes(self.now);
    }

    fn come_to_rest(&mut self) -> Result<(), Violation> {
        for _ in 0..12 {
            while self.model.go_on(self.now) {
                self.hear()?;
            }
            if self.model.has_ended() || self.model.due().is_none() {
                break;
            }
            self.pass();
            self.hear()?;
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<(), Violation> {
        // This world examines all possible events each time.
        self.model.take_changed();
        found(self.model.broken())
    }

    fn orders(&self, events: &mut Vec<ProcessesEvent>) {
        if self.left.launches > 0 {
            events.extend((0..self.left.names).map(ProcessesEvent::Launch));
        }
        if self.left.orders > 0 {
            events.extend((0..self.left.names).map(ProcessesEvent::End));
            events.extend((0..self.left.names).map(ProcessesEvent::Recall));
        }
    }

    fn writes(&self, events: &mut Vec<ProcessesEvent>) {
        let waiting = u8::try_from(self.model.waiting()).unwrap_or(u8::MAX);
        if self.model.owner.is_sick() {
            events.push(ProcessesEvent::Disk(false));
        } else if self.left.sicknesses > 0 {
            events.push(ProcessesEvent::Disk(true));
        }
        if waiting > 0 && !self.model.owner.is_sick() {
            events.push(ProcessesEvent::Settle(waiting, Outcome::Written));
        }
        // Without a failure or an end of the host, one commit and two commits of the same writes are equivalent.
        if waiting > 1 && (self.left.failures > 0 || self.left.kills > 0) {
            events.push(ProcessesEvent::Settle(1, Outcome::Written));
        }
        if self.left.failures > 0 {
            let failed = |count| {
                [Outcome::Failed, Outcome::FailedButWritten]
                    .map(|outcome| ProcessesEvent::Settle(count, outcome))
            };
            if waiting > 0 {
                events.extend(failed(1));
            }
            if waiting > 1 {
                events.extend(failed(waiting));
            }
            events.push(ProcessesEvent::RefuseNext);
        }
        if self.left.kills > 0 {
            events.extend((0..=usize::from(waiting)).map(ProcessesEvent::Kill));
        }
    }
}

impl World for ProcessesWorld {
    fn events(&self) -> Vec<ProcessesEvent> {
        let ProcessesModel { owner, environment, .. } = &self.model;
        if owner.has_ended() {
            return Vec::new();
        }
        let mut events: Vec<_> = environment.busy().map(|life| ProcessesEvent::Act(life, false)).collect();
        events.extend(environment.speaking().map(ProcessesEvent::Deliver));
        if self.left.faults > 0 {
            events.extend(environment.launching().map(|life| ProcessesEvent::Act(life, true)));
        }
        if self.left.exits > 0 {
            events.extend((0..environment.running().count()).map(ProcessesEvent::Exit));
        }
        if self.left.falls > 0 {
            events.extend(environment.standing().map(ProcessesEvent::Fall));
        }
        self.writes(&mut events);
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(self.model.has_endings(), ProcessesEvent::Endings);
        maybe(self.model.is_sweeping(), ProcessesEvent::Sweep(true));
        maybe(self.model.is_sweeping() && self.left.faults > 0, ProcessesEvent::Sweep(false));
        maybe(owner.is_loading(), ProcessesEvent::Load);
        maybe(self.left.pauses > 0 && self.model.due().is_some(), ProcessesEvent::Pass);
        maybe(self.left.crashes > 0 && !owner.crashes_next(), ProcessesEvent::Crash);
        self.orders(&mut events);
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
        let (left, now) = (&mut self.left, self.now);
        match *event {
            ProcessesEvent::Launch(number) => {
                left.launches -= 1;
                let spec = self.spec();
                self.model.ask(now, LaunchProcess { name: numbered(number), spec });
            }
            ProcessesEvent::End(number) => {
                left.orders -= 1;
                let grace = Duration::from_secs(5);
                self.model.ask(now, StopProcess { name: numbered(number), tag: None, grace });
            }
            ProcessesEvent::Recall(number) => {
                left.orders -= 1;
                self.model.ask(now, RecallProcess { name: numbered(number) });
            }
            ProcessesEvent::Act(life, fails) => {
                left.faults -= u8::from(fails);
                self.model.act(life, fails);
            }
            ProcessesEvent::Deliver(life) => self.model.deliver(now, life),
            ProcessesEvent::Endings => self.model.deliver_endings(now),
            ProcessesEvent::Sweep(is_done) => {
                left.faults -= u8::from(!is_done);
                self.model.sweep(now, is_done);
            }
            ProcessesEvent::Exit(place) => {
                left.exits -= 1;
                let tag = self.model.environment.running().nth(place);
                tag.into_iter().for_each(|tag| self.model.environment.exit(tag));
            }
            ProcessesEvent::Fall(life) => {
                left.falls -= 1;
                self.model.environment.fall(life);
            }
            ProcessesEvent::Settle(count, outcome) => {
                left.failures -= u8::from(outcome != Outcome::Written);
                self.model.settle(now, usize::from(count), outcome);
            }
            ProcessesEvent::RefuseNext => {
                left.failures -= 1;
                self.model.refuse_next();
            }
            ProcessesEvent::Disk(is_sick) => {
                left.sicknesses -= u8::from(is_sick);
                self.model.disk(now, is_sick);
            }
            ProcessesEvent::Load => self.model.load(now),
            ProcessesEvent::Pass => {
                left.pauses = left.pauses.saturating_sub(1);
                self.pass();
            }
            ProcessesEvent::Crash => {
                left.crashes -= 1;
                self.model.crash();
            }
            ProcessesEvent::Kill(reached) => {
                left.kills -= 1;
                self.model.next_run(reached);
                self.model.load(now);
            }
            ProcessesEvent::Stop(mode) => {
                left.stops = &[];
                self.model.request_stop(now, mode);
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        if self.model.owner.is_sick() {
            self.come_to_rest()?;
            self.model.check_sick();
            self.model.disk(self.now, false);
        }
        self.come_to_rest()?;
        self.model.check_end(self.now);
        found(self.model.broken())
    }
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
