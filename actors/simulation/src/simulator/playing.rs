//! Applies each event to the host.

use std::time::Duration;

use callboard_actors::instances::{AwaitRetired, CheckNow, Dispense};
use callboard_actors::inventory::{InventoryOutcome, TakeInventory};
use callboard_actors::persister::Reached;
use callboard_actors::registry::CheckOutcome;
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::{Attempt, Registration, Timestamp};

use super::super::instances::{Behaviour, InFlight, InstancesModel, SetOut};
use super::super::law::Law;
use super::super::law_checker::{Violation, found};
use super::super::registry::Question;
use super::super::search::Play;
use super::super::writes::Outcome;
use super::database::DatabaseDoing;
use super::disk::DiskTrouble;
use super::event::{Event, EventKind};
use super::host_model::{HostModel, HostPhase, Signal};

impl HostModel {
    /// Applies an event. Does nothing if the event cannot happen now.
    pub(super) fn apply(&mut self, event: &Event) {
        self.now = self.now.max(event.at);
        match self.phase {
            HostPhase::Down => {
                if event.what == EventKind::Start {
                    self.start_host();
                }
                return;
            }
            HostPhase::Running
            | HostPhase::StoppingWorkloads(_)
            | HostPhase::StoppingConsumers
            | HostPhase::StoppingRegistry => {}
        }
        self.catch_up_inventory();
        self.apply_kind(event.what);
        self.dispatch();
    }

    fn apply_kind(&mut self, what: EventKind) {
        let moment = self.moment();
        match what {
            EventKind::Register(who, kind) => self.ask_registry(self.names.registering(who, kind)),
            EventKind::Deregister(who) => self.ask_registry(self.names.deregistering(who)),
            EventKind::Ask(question) => self.question(question),
            EventKind::Dispense(plugin) => self.dispense(plugin),
            EventKind::Check(plugin) => self.ask_instances(CheckNow { plugin: self.names.plugin(plugin) }),
            EventKind::AwaitRetired(who) => {
                self.ask_instances(AwaitRetired { allocation: self.names.allocation(who) });
            }
            EventKind::TakeInventory => self.ask_inventory(TakeInventory),
            EventKind::Settle(count, outcome) => self.settle_writes(count, outcome),
            EventKind::DiskFull => {
                self.registry.store.refuse_next();
                self.owned.model.refuse_next();
                self.volumes.refuse_next();
            }
            EventKind::Disk(trouble) => self.disk_becomes(trouble),
            EventKind::DiskLate => self.disk_is_late(),
            EventKind::Load(is_read) => self.load(is_read),
            EventKind::Wake => self.wake(),
            EventKind::Checked(is_proven) => self.checked(is_proven),
            EventKind::Feed => self.feed_instances(),
            EventKind::InventoryFeed => self.feed_inventory(),
            EventKind::Report(instance) => {
                self.instances_model.deliver_report_of(moment, &self.names.place(instance));
            }
            EventKind::Endings => {
                self.instances_model.deliver(moment, InFlight::Endings);
            }
            EventKind::Answer(instance, behaviour) => self.answer(instance, behaviour),
            EventKind::RegistryTimers => self.registry.timers_due(moment),
            EventKind::InstancesTimers => self.instances_model.parent_timers_due(moment),
            EventKind::InstanceTimers(instance) => {
                self.at_instance(instance, |instances_model, life| {
                    instances_model.child_timers_due(moment, life)
                });
            }
            EventKind::InventoryTimers => self.inventory.timers_due(moment),
            EventKind::CrashRegistry => self.registry.crash_next_step(),
            EventKind::CrashInstances => self.instances_model.crash_parent(),
            EventKind::CrashInstance(instance) => self.at_instance(instance, InstancesModel::crash_child),
            EventKind::CrashInventory => self.inventory.crash_next_step(),
            EventKind::Fall(instance) => {
                self.at_instance(instance, |instances_model, life| instances_model.fell(moment, life))
            }
            EventKind::KillHost(_, of_processes) if self.database.is_some() => {
                self.database_does(DatabaseDoing::Kill {
                    committing: 0,
                    of_processes,
                    change: 0,
                    reached: Reached::Everything,
                });
            }
            EventKind::KillHost(reached, of_processes) => {
                self.end_run(reached as usize, of_processes as usize);
                self.signals.push(Signal::Ready(EventKind::Start));
            }
            EventKind::Driver(number, doing) => self.driver_does(number, doing),
            EventKind::Database(doing) => self.database_does(doing),
            EventKind::Workload(who, doing) => self.workload_does(who, doing),
            EventKind::Workloads(doing) => self.workloads_do(doing),
            EventKind::DriversEndings => self.drivers_model.deliver_endings(moment),
            EventKind::DriversTimers => self.drivers_model.owner_timers_due(moment),
            EventKind::CrashDrivers => self.drivers_model.crash_owner(),
            EventKind::Processes(doing) => self.processes_do(doing),
            EventKind::Volume(number, doing) => self.volume_does(number, doing),
            EventKind::Family(number, doing) => self.family_does(number, doing),
            EventKind::Stop if self.phase == HostPhase::Running => self.request_stop(StopMode::Stop),
            EventKind::Detach if self.phase == HostPhase::Running => self.request_stop(StopMode::Detach),
            // A host already runs, or already stops.
            EventKind::Stop | EventKind::Detach | EventKind::Start => {}
        }
    }

    fn at_instance(&mut self, instance: u32, act: impl FnOnce(&mut InstancesModel, Attempt)) {
        if let Some(life) = self.instances_model.life_of(&self.names.place(instance)) {
            act(&mut self.instances_model, life);
        }
    }

    fn question(&mut self, question: Question) {
        if self.phase == HostPhase::Running {
            self.say_to_registry(question.message(&self.names));
        }
    }

    fn dispense(&mut self, plugin: u32) {
        let within = Duration::from_secs(10);
        self.ask_instances(Dispense { plugin: self.names.plugin(plugin), within });
    }

    fn wake(&mut self) {
        if self.registry.pauses_until().is_some_and(|until| until <= self.now) {
            self.registry.wake();
        }
    }

    fn feed_instances(&mut self) {
        let moment = self.moment();
        if self.instances_model.deliver(moment, InFlight::Feed) {
            self.feed_was_taken();
        }
    }

    fn settle_writes(&mut self, count: u32, outcome: Outcome) {
        if self.database.is_some() {
            self.database_does(DatabaseDoing::Commit(count, None));
            self.database_does(DatabaseDoing::Tell);
            return;
        }
        if !self.disk_takes() {
            return;
        }
        if outcome == Outcome::Written {
            self.disk_has_taken();
        } else {
            self.registry_disk(true);
        }
        let moment = self.moment();
        if let Some(settled) = self.registry.store.settle(count as usize, outcome) {
            self.registry.settled(moment, settled);
        }
    }

    /// The registry is notified that its disk is sick, or sound again.
    pub(super) fn registry_disk(&mut self, is_sick: bool) {
        if self.registry.is_sick() != is_sick {
            let moment = self.moment();
            self.registry.disk(moment, is_sick);
        }
    }

    /// Nothing is read while a write is in flight.
    fn load(&mut self, is_read: bool) {
        if !self.registry.is_loading() {
            return;
        }
        if self.database.is_some() {
            self.database_does(DatabaseDoing::Load(None));
            return;
        }
        if self.disk == Some(DiskTrouble::Hangs) {
            return;
        }
        let moment = self.moment();
        let waiting = u32::try_from(self.registry.store.waiting()).unwrap_or(u32::MAX);
        if waiting > 0 && !self.registry.is_sick() {
            self.settle_writes(waiting, Outcome::Written);
        }
        if !is_read {
            self.registry.load_failed(moment);
            return;
        }
        let store = &mut self.registry.store;
        let image = store.read(moment.now);
        let (rows, run, begun) = (store.rows_with_waiting(), store.run(), store.begun());
        self.registry.checker.expect(rows, run, begun);
        self.registry.loaded(moment, image);
    }

    fn checked(&mut self, is_proven: bool) {
        let Some((number, call)) = self.registry.calls().next() else { return };
        let Registration { allocation, version, .. } = &*call.registration;
        let outcome = if is_proven && self.workloads.is_there(allocation, version.as_deref()) {
            CheckOutcome::Proven
        } else {
            CheckOutcome::NotProven("no listener".to_owned())
        };
        self.registry.returned(self.moment(), number, Ok(outcome));
    }

    fn feed_inventory(&mut self) {
        if self.inventory_inbox.is_empty() {
            return;
        }
        if let Some(call) = self.inventory_follow.take() {
            let items = self.inventory_inbox.drain(..).collect();
            self.inventory.returned(self.moment(), call, Ok(InventoryOutcome::Instances(Ok(items))));
        }
    }

    fn answer(&mut self, instance: u32, behaviour: Behaviour) {
        let Some(life) = self.instances_model.life_of(&self.names.place(instance)) else { return };
        if let Some((call, _)) = self.instances_model.call_of(life) {
            self.instances_model.plugin_answers(self.moment(), life, call, behaviour);
        }
    }

    /// The complete view of the registry must equal the plain list.
    pub(super) fn compare(&mut self) {
        if let Some(machine) = self.registry.machine() {
            let view = machine.view();
            self.registry.checker.compare_view(&view);
            if self.registry.store.waiting() == 0
                && !self.registry.store.is_ahead()
                && !self.registry.is_waiting()
            {
                let is_so = view.entries.iter().map(|entry| entry.number).eq(self
                    .registry
                    .store
                    .rows()
                    .keys()
                    .copied());
                if !is_so {
                    self.violation(
                        Law::Shell1,
                        "nothing is under way, and the registry is not what its disk holds".to_owned(),
                    );
                }
            }
        }
    }

    /// Plans the possible and the due events.
    pub(super) fn plan(&mut self) {
        for life in std::mem::take(&mut self.instances_model.changed) {
            let place = self.instances_model.place_of(life);
            let Some(instance) = place.map(|place| self.names.number_of(place)) else { continue };
            if self.instances_model.call_of(life).is_some() {
                self.signals.push(Signal::Called(instance));
            }
            if let Some(at) = self.instances_model.timer_of(life) {
                self.signals.push(Signal::Due(EventKind::InstanceTimers(instance), at));
            }
        }
        for set_out in std::mem::take(&mut self.instances_model.set_out) {
            self.signals.push(Signal::Ready(match set_out {
                SetOut::Feed => EventKind::Feed,
                SetOut::Endings => EventKind::Endings,
                SetOut::Report(place) => EventKind::Report(self.names.number_of(&place)),
            }));
        }
        let due = [
            (self.registry.next_timer(), EventKind::RegistryTimers),
            (self.registry.pauses_until(), EventKind::Wake),
            (self.instances_model.parent_timer(), EventKind::InstancesTimers),
            (self.inventory.next_timer(), EventKind::InventoryTimers),
        ];
        let due = due.into_iter().filter_map(|(at, what)| Some(Signal::Due(what, at?)));
        self.signals.extend(due);
        if self.registry.is_loading() && self.phase != HostPhase::Down {
            self.signals.push(Signal::Ready(EventKind::Load(true)));
        }
        if self.registry.store.waiting() > 0 {
            self.signals.push(Signal::Ready(EventKind::Settle(1, Outcome::Written)));
        }
    }

    fn result(&self) -> Result<(), Violation> {
        found(self.verdict.broken())
    }
}

impl Play for HostModel {
    type Event = Event;

    fn can(&self, _: &Event) -> bool {
        true
    }

    fn take(&mut self, event: &Event) -> Result<(), Violation> {
        self.apply(event);
        self.signals.clear();
        self.result()
    }

    /// Faults have stopped: every caller receives an answer, and all states agree.
    fn settle(&mut self) -> Result<(), Violation> {
        if self.phase == HostPhase::Down {
            self.take(&Event { at: self.now, what: EventKind::Start })?;
        }
        self.begin_calm_of_volumes();
        for _ in 0..600 {
            self.calm_down()?;
        }
        self.compare();
        if self.phase == HostPhase::Running {
            self.drivers_model.check_calm();
            self.owned.model.check_end(self.now);
            self.check_volumes();
            self.family.check_calm();
            self.check_workloads();
            self.dispatch();
            self.check_answered();
        }
        self.result()
    }
}

impl HostModel {
    /// One second without faults.
    fn calm_down(&mut self) -> Result<(), Violation> {
        let at = self.now + Duration::from_secs(1);
        let mut events = vec![EventKind::Disk(None), EventKind::Load(true), EventKind::Wake];
        events.push(EventKind::Settle(u32::MAX, Outcome::Written));
        events.extend([EventKind::RegistryTimers, EventKind::InstancesTimers, EventKind::InventoryTimers]);
        events.extend([EventKind::Feed, EventKind::Endings, EventKind::InventoryFeed]);
        for what in events {
            self.take(&Event { at, what })?;
        }
        while self.registry.calls().next().is_some() {
            self.take(&Event { at, what: EventKind::Checked(false) })?;
        }
        for place in self.instances_model.busy_at(at) {
            let instance = self.names.number_of(&place);
            let Some(life) = self.instances_model.life_of(&place) else { continue };
            if self.instances_model.timer_of(life).is_some_and(|due| due <= at) {
                self.take(&Event { at, what: EventKind::InstanceTimers(instance) })?;
            }
            for _ in 0..8 {
                let life = self.instances_model.life_of(&place);
                if life.and_then(|life| self.instances_model.call_of(life)).is_none() {
                    break;
                }
                self.take(&Event { at, what: EventKind::Answer(instance, Behaviour::Well) })?;
            }
        }
        self.calm_drivers();
        self.calm_processes();
        self.calm_volumes();
        self.calm_family();
        self.calm_workloads();
        self.dispatch();
        self.signals.clear();
        self.deliver_reports(at)
    }

    fn deliver_reports(&mut self, at: Timestamp) -> Result<(), Violation> {
        let moment = self.moment();
        for in_flight in self.instances_model.in_flight() {
            if let InFlight::Report(_) = in_flight {
                while self.instances_model.deliver(moment, in_flight) {}
            }
        }
        self.take(&Event { at, what: EventKind::Endings })
    }
}
