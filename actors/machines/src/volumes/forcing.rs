//! Handles a forced release: first the ledger of the volume takes a write, so that a refused force is never done later.

use super::errors::ForceError;
use super::messages::{ForceRelease, VolumesAnswer};
use super::purposes::{Purpose, Request};
use super::reasons::UnknownVolume;
use super::state::Volumes;
use crate::kernel::{AskId, StepContext};
use crate::volume::{self, VolumeAsk, VolumeKey};

impl Volumes {
    pub(super) fn force(&mut self, id: AskId, asked: &ForceRelease, cx: &mut StepContext<Self>) {
        let ForceRelease { volume, scope, reason } = asked.clone();
        let refused = match (self.used(&volume), self.known.contains_key(&volume)) {
            _ if self.stop.is_some() => Some(ForceError::Stopping { volume: volume.clone() }),
            (Some(entry), _) => {
                let room = self.room_for(&entry.spec.plugin, self.config.options.waiting_max);
                room.err().map(ForceError::from)
            }
            (None, true) => Some(volume::ForceError::Nothing { volume: volume.clone() }.into()),
            (None, false) => Some(UnknownVolume { volume: volume.clone() }.into()),
        };
        if let Some(error) = refused {
            cx.reply(id, VolumesAnswer::ForceRelease(Err(error)));
            return;
        }
        let force = volume::ForceRelease { scope, reason };
        let ask = VolumeAsk::PrepareForce(volume::PrepareForce { force });
        let request = Request { purpose: Purpose::Prepare(id), until: cx.now(), ask };
        self.submit(&volume, request, cx);
    }

    /// The ledger of a volume takes writes: the prepared release is forced.
    pub(super) fn force_prepared(
        &mut self,
        volume: &VolumeKey,
        (purpose, force): (Purpose, volume::ForceRelease),
        cx: &mut StepContext<Self>,
    ) {
        let Purpose::Prepare(id) = purpose else { return };
        if self.stop.is_some() {
            let error = ForceError::Stopping { volume: volume.clone() };
            cx.reply(id, VolumesAnswer::ForceRelease(Err(error)));
            return;
        }
        let ask = VolumeAsk::ForceRelease(force);
        let request = Request { purpose: Purpose::Force(id), until: cx.now(), ask };
        self.submit(volume, request, cx);
    }
}
