//! Plans the events of volumes.

use callboard_actors::vocabulary::Timestamp;

use super::super::super::volume::{Answered, VolumeModel};
use super::super::super::writes::Outcome;
use super::super::event::EventKind;
use super::super::faults::Fault;
use super::super::host_model::HostModel;
use super::super::volumes::{USERS, VolumeDoing};
use super::agenda::Planned;
use super::{Plan, micros};

impl Plan {
    pub(super) fn begin_volumes(&mut self, host_model: &HostModel) {
        for number in 0..host_model.volumes.len() {
            let within = self.random.below(1_000_000);
            self.add(host_model.now + micros(within), Planned::Volume(number));
        }
    }

    /// A message about a volume, or an event of its mounts and its plugin.
    pub(super) fn turn_of_volume(
        &mut self,
        at: Timestamp,
        number: u32,
        host_model: &HostModel,
    ) -> Option<EventKind> {
        let pause = micros(20_000 + self.random.below(3_000_000));
        self.add(at + pause, Planned::Volume(number));
        let creates = host_model.volumes.get(number)?.node.creates;
        let user = u8::try_from(self.random.below(USERS)).unwrap_or(0);
        let place = u8::try_from(self.random.below(2 * USERS)).unwrap_or(0);
        let doing = match self.random.below(24) {
            0..=8 => VolumeDoing::Claim(user),
            9..=16 => VolumeDoing::Release(user),
            17 if creates => VolumeDoing::Delete,
            17..=18 if creates => VolumeDoing::Create,
            // After a forced release something may remain forever, which breaks no law.
            19 if number == 0 && self.random.once_in(20) => VolumeDoing::Force,
            20 if self.does(Fault::Die, 2) => VolumeDoing::TakeOver,
            21 if self.does(Fault::Mount, 2) => VolumeDoing::PullAway(place),
            22 if self.does(Fault::Mount, 4) => VolumeDoing::Hang(place),
            23 => VolumeDoing::Heal,
            _ => return None,
        };
        Some(EventKind::Volume(number, doing))
    }

    /// How long it takes until an event of a volume happens by itself, in microseconds.
    pub(super) fn pause_in_volume(&mut self, doing: VolumeDoing) -> u64 {
        match doing {
            VolumeDoing::Answer(_) if self.does(Fault::Slow, 20) => 1_000_000 + self.random.below(30_000_000),
            VolumeDoing::Answer(_) => 500 + self.random.below(40_000),
            VolumeDoing::Settle(_) => 500 + self.random.below(4_000) + self.commit_waits(),
            VolumeDoing::Confirm(_) => 1_000 + self.random.below(2_000_000),
            _ => 1 + self.random.below(1_500),
        }
    }

    /// The details of an event of a volume that happens by itself. Each bad way is a fault of its own.
    pub(super) fn comes_of_volume(
        &mut self,
        number: u32,
        doing: VolumeDoing,
        host_model: &HostModel,
    ) -> VolumeDoing {
        let may_lie = host_model.volumes.get(number).is_some_and(VolumeModel::may_be_lied_to);
        match doing {
            VolumeDoing::Answer(_) => {
                let ways = [
                    (Fault::Hang, Answered::UnclearBefore),
                    (Fault::Hang, Answered::UnclearAfter),
                    (Fault::Fail, Answered::Refused),
                    (Fault::Fail, Answered::NotNow),
                    (Fault::Lie, Answered::Lie),
                ];
                let ways = if may_lie { &ways[..] } else { &ways[..4] };
                VolumeDoing::Answer(self.meets(ways, 8, Answered::Ok))
            }
            VolumeDoing::Settle(_) => {
                let (_, outcome) = self.commit(1).unwrap_or((1, Outcome::Written));
                VolumeDoing::Settle(outcome)
            }
            VolumeDoing::Confirm(_) => VolumeDoing::Confirm(!self.random.once_in(3)),
            other => other,
        }
    }

    /// A step of a volume crashes.
    pub(super) fn volume_crashes(&mut self, host_model: &HostModel) -> Option<EventKind> {
        let volumes = host_model.volumes.len();
        if volumes == 0 || !self.does(Fault::Crash, 6) {
            return None;
        }
        Some(EventKind::Volume(self.random.place(volumes), VolumeDoing::Crash))
    }
}
