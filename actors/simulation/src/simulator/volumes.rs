//! The volumes of a simulated host: each with its ledger on the host's disk, a plugin, the mounts of a kernel, and a few allocations that
//! use it. The machine is that of one volume; it is checked against the same laws as in the search.

use std::fmt;
use std::rc::Rc;

use callboard_actors::shell::StopMode;
use callboard_machines::volume::Volume;

use super::super::tamper::Tamper;
use super::super::volume::{Answered, VolumeModel};
use super::super::writes::Outcome;
use super::disk::DiskTrouble;
use super::event::EventKind;
use super::host_model::{HostModel, HostPhase, Signal};

/// How many allocations use a volume.
pub(super) const USERS: u64 = 3;
/// How many events happen by themselves within a second without faults, at most.
const CALM_MAX: u32 = 1_000;

/// An event of a volume and its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeDoing {
    /// The allocation of this number claims it.
    Claim(u8),
    /// The last process of the allocation has exited, and it releases the volume.
    Release(u8),
    /// A caller creates it.
    Create,
    /// A caller deletes it.
    Delete,
    /// An operator releases the volume by force.
    Force,
    /// The call in flight returns.
    Answer(Answered),
    /// The mount at this place is unmounted from outside.
    PullAway(u8),
    /// Looks at the mount at this place hang.
    Hang(u8),
    /// Looks no longer hang.
    Heal,
    /// Another instance of the plugin takes over.
    TakeOver,
    /// After a restart the host reports whether the allocations with a claim live.
    Confirm(bool),
    /// Its owner allows the deletion that waits for permission.
    Allow,
    /// The waiting writes settle in this way.
    Settle(Outcome),
    /// The ledger is read.
    Load,
    /// Its due timers run.
    Timers,
    /// Its next step will crash.
    Crash,
}

/// As a line of a history, for the volume with this number.
pub(super) fn write_volume(f: &mut fmt::Formatter<'_>, number: u32, doing: VolumeDoing) -> fmt::Result {
    match doing {
        VolumeDoing::Claim(user) => write!(f, "claim v{number} u{user}"),
        VolumeDoing::Release(user) => write!(f, "release v{number} u{user}"),
        VolumeDoing::Create => write!(f, "create v{number}"),
        VolumeDoing::Delete => write!(f, "delete v{number}"),
        VolumeDoing::Force => write!(f, "force v{number}"),
        VolumeDoing::Answer(how) => write!(f, "answer v{number} {how}"),
        VolumeDoing::PullAway(place) => write!(f, "pull-away v{number} mount={place}"),
        VolumeDoing::Hang(place) => write!(f, "hang v{number} mount={place}"),
        VolumeDoing::Heal => write!(f, "heal v{number}"),
        VolumeDoing::TakeOver => write!(f, "take-over v{number}"),
        VolumeDoing::Confirm(true) => write!(f, "confirm v{number} living"),
        VolumeDoing::Confirm(false) => write!(f, "confirm v{number} none"),
        VolumeDoing::Allow => write!(f, "allow-deletion v{number}"),
        VolumeDoing::Settle(Outcome::Written) => write!(f, "settle v{number}"),
        VolumeDoing::Settle(Outcome::Failed) => write!(f, "write-fails v{number}"),
        VolumeDoing::Settle(Outcome::FailedButWritten) => write!(f, "write-fails-but-is-there v{number}"),
        VolumeDoing::Load => write!(f, "load v{number}"),
        VolumeDoing::Timers => write!(f, "due v{number}"),
        VolumeDoing::Crash => write!(f, "crash v{number}"),
    }
}

/// The volumes of a host.
#[derive(Debug, Clone)]
pub(super) struct OwnedVolumes(Vec<VolumeModel>);

impl OwnedVolumes {
    /// This number, of all kinds: some staged, some attached, some created by their plugin, and some for one allocation at a time.
    pub(super) fn new(count: u32, tamper: &Option<Rc<dyn Tamper<Volume>>>) -> Self {
        let model = |number: u32| {
            let is_single = number % 5 == 4;
            let (stages, attaches, creates) = (number % 3 != 2, !number.is_multiple_of(2), number % 4 == 3);
            VolumeModel::simulated((stages, attaches, creates), is_single, tamper.clone())
        };
        Self((0..count).map(model).collect())
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn get(&self, number: u32) -> Option<&VolumeModel> {
        self.0.get(number as usize)
    }

    pub(super) fn steps(&self) -> u64 {
        self.0.iter().map(VolumeModel::steps).sum()
    }

    /// Whether a write waits.
    pub(super) fn is_writing(&self) -> bool {
        self.0.iter().any(|model| model.owner.store.waiting() > 0)
    }

    /// One of the next writes is refused at once.
    pub(super) fn refuse_next(&mut self) {
        if let Some(model) = self.0.first_mut() {
            model.owner.store.refuse_next();
        }
    }

    fn have_ended(&self) -> bool {
        self.0.iter().all(|model| model.owner.has_ended())
    }

    /// The host is gone, and this number of the writes of each volume had reached the disk. A call in flight takes effect or not.
    pub(super) fn next_run(&mut self, reached: usize) {
        for (model, number) in self.0.iter_mut().zip(0_usize..) {
            model.next_run(reached, (reached + number).is_multiple_of(2), false);
        }
    }
}

fn of(number: u32, doing: VolumeDoing) -> EventKind {
    EventKind::Volume(number, doing)
}

impl HostModel {
    pub(super) fn volume_does(&mut self, number: u32, doing: VolumeDoing) {
        let (now, is_up) = (self.now, self.phase == HostPhase::Running);
        if let VolumeDoing::Settle(outcome) = doing {
            self.settle_volume(number, outcome);
        }
        let hangs = self.disk == Some(DiskTrouble::Hangs);
        let Some(model) = self.volumes.0.get_mut(number as usize) else { return };
        match doing {
            VolumeDoing::Claim(user) if is_up => model.claim(now, user),
            VolumeDoing::Release(user) if is_up => model.release(now, user),
            VolumeDoing::Create if is_up => model.create(now),
            VolumeDoing::Delete if is_up => model.delete(now),
            VolumeDoing::Force if is_up => model.force(now),
            VolumeDoing::Confirm(are_living) if is_up && model.has_unconfirmed() => {
                model.confirm(now, are_living);
            }
            VolumeDoing::Allow if is_up => model.allow(now),
            VolumeDoing::Answer(how) => model.answer(now, how),
            VolumeDoing::PullAway(place) => model.pull_away(place.into()),
            VolumeDoing::Hang(place) => model.node.hang(place.into()),
            VolumeDoing::Heal => model.node.heal(),
            VolumeDoing::TakeOver => model.take_over(now, model.node.stages),
            VolumeDoing::Load if !hangs => model.load(now),
            VolumeDoing::Timers => model.time_passes(now),
            VolumeDoing::Crash => model.crash(number.is_multiple_of(2)),
            // A host that ends sends no requests; a disk that hangs is not read; the rest was handled above.
            VolumeDoing::Claim(_)
            | VolumeDoing::Release(_)
            | VolumeDoing::Create
            | VolumeDoing::Delete
            | VolumeDoing::Force
            | VolumeDoing::Confirm(_)
            | VolumeDoing::Allow
            | VolumeDoing::Load
            | VolumeDoing::Settle(_) => {}
        }
        if is_up && model.owner.has_ended() {
            // It has crashed too often, and its owner starts it again.
            model.next_run(usize::MAX, true, false);
        }
        self.plan_volume(number);
    }

    fn settle_volume(&mut self, number: u32, outcome: Outcome) {
        if !self.disk_takes() {
            return;
        }
        let now = self.now;
        if let Some(model) = self.volumes.0.get_mut(number as usize) {
            model.settle(now, usize::MAX, outcome);
        }
        if outcome == Outcome::Written {
            self.disk_has_taken();
        }
    }

    /// The volumes are notified that their disk is sick, or sound again.
    pub(super) fn volumes_disk(&mut self, is_sick: bool) {
        let now = self.now;
        self.volumes.0.iter_mut().for_each(|model| model.disk(now, is_sick));
        self.plan_volumes();
    }

    /// The volumes are requested to stop.
    pub(super) fn stop_volumes(&mut self, mode: StopMode) {
        let now = self.now;
        self.volumes.0.iter_mut().for_each(|model| model.request_stop(now, mode));
        self.plan_volumes();
    }

    /// Whether every volume has stopped.
    pub(super) fn volumes_have_ended(&self) -> bool {
        self.volumes.have_ended()
    }

    /// Plans the possible and the due events of each volume.
    pub(super) fn plan_volumes(&mut self) {
        (0..self.volumes.len()).for_each(|number| self.plan_volume(number));
    }

    fn plan_volume(&mut self, number: u32) {
        let Some(model) = self.volumes.get(number) else { return };
        self.verdict.heard_of(model.broken());
        let ready = [
            (model.owner.is_loading(), VolumeDoing::Load),
            (model.owner.store.waiting() > 0, VolumeDoing::Settle(Outcome::Written)),
            (model.node.in_flight.is_some(), VolumeDoing::Answer(Answered::Ok)),
            (model.has_unconfirmed(), VolumeDoing::Confirm(true)),
            (model.waits_to_be_deleted(), VolumeDoing::Allow),
        ];
        let due = model.due();
        let ready = ready.into_iter().filter(|(is_ready, _)| *is_ready);
        self.signals.extend(ready.map(|(_, doing)| Signal::Ready(of(number, doing))));
        self.signals.extend(due.map(|at| Signal::Due(of(number, VolumeDoing::Timers), at)));
    }

    /// Every plugin is replaced by one without faults.
    pub(super) fn begin_calm_of_volumes(&mut self) {
        let now = self.now;
        for model in self.volumes.0.iter_mut().filter(|model| !model.owner.has_ended()) {
            let stages = model.node.stages;
            model.take_over(now, stages);
        }
    }

    /// One second without faults among the volumes.
    pub(super) fn calm_volumes(&mut self) {
        let now = self.now;
        for model in &mut self.volumes.0 {
            model.node.heal();
            model.time_passes(now);
            for _ in 0..CALM_MAX {
                if !model.go_on(now) {
                    break;
                }
            }
        }
    }

    /// At rest, everything that is held is set up, and nothing else is.
    pub(super) fn check_volumes(&mut self) {
        for model in &mut self.volumes.0 {
            model.check_end();
            self.verdict.heard_of(model.broken());
        }
    }
}
