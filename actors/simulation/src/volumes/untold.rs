//! Records which callers of the owner do not know their outcome.

use std::collections::BTreeSet;

use callboard_actors::vocabulary::AllocationId;
use callboard_machines::volume::VolumeKey;
use callboard_machines::volumes::{VolumesAnswer, VolumesAsk};

/// The releases of allocations, and the deletions, whose callers do not know the outcome.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Untold(BTreeSet<(VolumeKey, Option<AllocationId>)>);

impl Untold {
    pub(super) fn insert(&mut self, volume: VolumeKey, allocation: Option<AllocationId>) {
        self.0.insert((volume, allocation));
    }

    pub(super) fn contains(&self, volume: &VolumeKey, allocation: Option<&AllocationId>) -> bool {
        self.0.contains(&(volume.clone(), allocation.cloned()))
    }

    /// A caller is answered.
    pub(super) fn told(&mut self, asked: &VolumesAsk, answer: &VolumesAnswer) {
        let of = |volume: &VolumeKey, allocation| (volume.clone(), Some(AllocationId::clone(allocation)));
        let ends = match (asked, answer) {
            (VolumesAsk::Release(asked), VolumesAnswer::Release(result)) => {
                vec![(of(&asked.volume, &asked.allocation), result.is_err())]
            }
            (VolumesAsk::AllocationEnded(ended), VolumesAnswer::AllocationEnded(rows)) => {
                let untold = rows.iter().filter(|row| row.result.is_err());
                untold.map(|row| (of(&row.volume, &ended.allocation), true)).collect()
            }
            (VolumesAsk::DeleteVolume(asked), VolumesAnswer::DeleteVolume(result)) => {
                vec![((asked.volume.clone(), None), result.is_err())]
            }
            _ => return,
        };
        for (of, is_untold) in ends {
            if is_untold {
                self.0.insert(of);
            } else {
                self.0.remove(&of);
            }
        }
    }
}
