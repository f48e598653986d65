//! A volume, its ledger, a plugin and a few allocations: small enough to try every order of events.

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::vocabulary::Timestamp;
use callboard_machines::volume::Volume;

use super::super::law_checker::{Violation, found};
use super::super::search::{Play, World};
use super::super::tamper::Tamper;
use super::super::writes::Outcome;
use super::event::{Answered, VolumeBounds, VolumeEvent};
use super::model::{VolumeModel, allocation};
use super::node::Node;

/// How often time passes at most before the world comes to rest.
const CALM_MAX: u32 = 24;

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct VolumeWorld {
    model: VolumeModel,
    now: Timestamp,
    left: VolumeBounds,
}

impl VolumeWorld {
    /// A world with these bounds, with a fault in the volume if one is given.
    #[must_use]
    pub fn new(bounds: VolumeBounds, tamper: Option<Rc<dyn Tamper<Volume>>>) -> Self {
        let node = Node::new(bounds.stages, bounds.attaches, bounds.is_new).expanding(bounds.expands);
        let node = if bounds.groups > 0 { node.grouping(bounds.is_late) } else { node };
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let mut world = Self { model: VolumeModel::new(node, bounds.is_single, tamper), now, left: bounds };
        world.model.load(now);
        world
    }

    fn pass(&mut self) {
        self.now = self.model.due().unwrap_or(self.now).max(self.now);
        self.model.time_passes(self.now);
    }

    fn hear(&self) -> Result<(), Violation> {
        found(self.model.broken())
    }

    fn writes(&self, events: &mut Vec<VolumeEvent>) {
        let waiting = u8::try_from(self.model.owner.store.waiting()).unwrap_or(u8::MAX);
        if waiting > 0 {
            events.push(VolumeEvent::Settle(waiting, Outcome::Written));
        }
        if self.left.failures > 0 {
            if waiting > 0 {
                events.extend(
                    [Outcome::Failed, Outcome::FailedButWritten]
                        .map(|outcome| VolumeEvent::Settle(waiting, outcome)),
                );
            }
            events.push(VolumeEvent::RefuseNext);
        }
        if self.left.kills > 0 {
            let is_in_flight = self.model.node.in_flight.is_some();
            for reached in 0..=usize::from(waiting) {
                events.push(VolumeEvent::Kill(reached, false));
                events.extend(is_in_flight.then_some(VolumeEvent::Kill(reached, true)));
            }
        }
    }

    fn answers(&self, events: &mut Vec<VolumeEvent>) {
        if self.model.node.in_flight.is_none() {
            return;
        }
        events.push(VolumeEvent::Answer(Answered::Ok));
        if self.left.faults > 0 {
            events.extend(Answered::FAULTS.map(VolumeEvent::Answer));
        }
        if self.left.lies > 0 {
            events.push(VolumeEvent::Answer(Answered::Lie));
        }
    }
}

impl World for VolumeWorld {
    fn events(&self) -> Vec<VolumeEvent> {
        let VolumeModel { owner, node, .. } = &self.model;
        let (left, mut events) = (&self.left, Vec::new());
        if owner.has_ended() {
            return events;
        }
        if left.claims > 0 {
            events.extend((0..left.allocations).map(VolumeEvent::Claim));
        }
        if left.releases > 0 {
            events.extend((0..left.allocations).map(VolumeEvent::Release));
        }
        if left.damages > 0 {
            let has_claim = |number: &u8| owner.store.has_claim(&allocation(*number));
            events.extend((0..left.allocations).filter(has_claim).map(VolumeEvent::DamageClaim));
        }
        if left.gives_up > 0 {
            events.extend((0..left.allocations).map(VolumeEvent::GiveUp));
        }
        self.answers(&mut events);
        self.writes(&mut events);
        if left.losses > 0 {
            let places = || 0..node.mounts().count();
            events.extend(places().map(VolumeEvent::PullAway).chain(places().map(VolumeEvent::Hang)));
        }
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(left.forces > 0, VolumeEvent::Force);
        maybe(left.creations > 0, VolumeEvent::Create);
        maybe(left.deletions > 0, VolumeEvent::Delete);
        maybe(self.model.waits_to_be_deleted(), VolumeEvent::Allow);
        maybe(left.expansions > 0, VolumeEvent::Expand);
        maybe(left.groups > 0, VolumeEvent::TakeGroup);
        maybe(left.groups > 0, VolumeEvent::DeleteGroup);
        maybe(left.takeovers > 0, VolumeEvent::TakeOver);
        maybe(self.model.has_unconfirmed(), VolumeEvent::Confirm(true));
        maybe(self.model.has_unconfirmed(), VolumeEvent::Confirm(false));
        maybe(owner.is_loading(), VolumeEvent::Load);
        maybe(left.pauses > 0 && self.model.due().is_some(), VolumeEvent::Pass);
        maybe(left.crashes > 0 && !owner.crashes_next(), VolumeEvent::Crash);
        maybe(left.reboots > 0, VolumeEvent::Reboot);
        maybe(
            left.damages > 0 && self.model.owner.store.can_be_told_of_its_claims(),
            VolumeEvent::DamageVolume,
        );
        events.extend(left.stops.iter().map(|mode| VolumeEvent::Stop(*mode)));
        events
    }
}

impl Play for VolumeWorld {
    type Event = VolumeEvent;

    fn can(&self, event: &VolumeEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &VolumeEvent) -> Result<(), Violation> {
        let (left, model, now) = (&mut self.left, &mut self.model, self.now);
        match *event {
            VolumeEvent::Claim(number) => {
                left.claims -= 1;
                model.claim(now, number);
            }
            VolumeEvent::Release(number) => {
                left.releases -= 1;
                model.release(now, number);
            }
            VolumeEvent::Force => {
                left.forces -= 1;
                model.force(now);
            }
            VolumeEvent::GiveUp(number) => {
                left.gives_up -= 1;
                model.give_up(now, number);
            }
            VolumeEvent::Create => {
                left.creations -= 1;
                model.create(now);
            }
            VolumeEvent::Delete => {
                left.deletions -= 1;
                model.delete(now);
            }
            VolumeEvent::Allow => model.allow(now),
            VolumeEvent::Expand => {
                left.expansions -= 1;
                model.expand(now);
            }
            VolumeEvent::TakeGroup => {
                left.groups -= 1;
                model.take_group(now);
            }
            VolumeEvent::DeleteGroup => {
                left.groups -= 1;
                model.delete_group(now);
            }
            VolumeEvent::Answer(how) => {
                left.lies -= u8::from(how == Answered::Lie);
                left.faults -= u8::from(Answered::FAULTS.contains(&how));
                model.answer(now, how);
            }
            VolumeEvent::PullAway(place) => {
                left.losses -= 1;
                model.pull_away(place);
            }
            VolumeEvent::Hang(place) => {
                left.losses -= 1;
                model.node.hang(place);
            }
            VolumeEvent::TakeOver => {
                left.takeovers -= 1;
                let stages = model.node.stages != left.changes;
                model.take_over(now, stages);
            }
            VolumeEvent::Confirm(are_living) => model.confirm(now, are_living),
            VolumeEvent::Settle(count, outcome) => {
                left.failures -= u8::from(outcome != Outcome::Written);
                model.settle(now, usize::from(count), outcome);
            }
            VolumeEvent::RefuseNext => {
                left.failures -= 1;
                model.owner.store.refuse_next();
            }
            VolumeEvent::Load => model.load(now),
            VolumeEvent::Pass => {
                left.pauses -= 1;
                self.pass();
            }
            VolumeEvent::Crash => {
                left.crashes -= 1;
                model.crash(true);
            }
            VolumeEvent::Kill(reached, takes_effect) => {
                left.kills -= 1;
                model.next_run(reached, takes_effect, false);
                model.load(now);
            }
            VolumeEvent::DamageClaim(number) => {
                left.damages -= 1;
                model.damage(now, Some(number));
            }
            VolumeEvent::DamageVolume => {
                left.damages -= 1;
                model.damage(now, None);
            }
            VolumeEvent::Reboot => {
                left.reboots -= 1;
                model.next_run(usize::MAX, true, true);
                model.load(now);
            }
            VolumeEvent::Stop(mode) => {
                left.stops = &[];
                model.request_stop(now, mode);
            }
        }
        self.hear()
    }

    /// The plugin is replaced by one without faults, and events happen until only time could pass.
    fn settle(&mut self) -> Result<(), Violation> {
        self.model.node.heal();
        if !self.model.owner.has_ended() {
            let stages = self.model.node.stages;
            self.model.take_over(self.now, stages);
        }
        for _ in 0..CALM_MAX {
            while self.model.go_on(self.now) {
                self.hear()?;
            }
            // A call in flight may have mounted a path that was given up meanwhile.
            self.model.node.heal();
            if self.model.due().is_none() {
                break;
            }
            self.pass();
            self.hear()?;
        }
        self.model.check_end();
        self.hear()
    }
}
