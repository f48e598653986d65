//! Creations that their plugin answers with the id of another volume here: they are refused, and nothing of them is remembered.

use super::purposes::{Purpose, Request};
use super::reasons::SameVolume;
use super::state::{Volumes, VolumesTimer};
use crate::kernel::StepContext;
use crate::volume::{Created, Disown, VolumeAsk, VolumeKey, VolumeSpec, VolumeStatus};

impl Volumes {
    /// Whether what was created by this name is no other volume here.
    pub(super) fn admit_created(&self, key: &VolumeKey, created: &Created) -> Result<(), SameVolume> {
        let Some(entry) = self.entries.get(key) else { return Ok(()) };
        self.admit_id(&self.known_by(&entry.spec, &created.volume).spec)
    }

    /// Learns the id of what a volume says to be there, so that a deletion of it is compared with the other volumes from now on.
    pub(super) fn has_id(&mut self, key: &VolumeKey, status: &VolumeStatus) {
        let (Some(created), Some(entry)) = (&status.created, self.entries.get(key)) else { return };
        if entry.spec.volume_id == created.volume_id {
            return;
        }
        let spec = self.known_by(&entry.spec, created).spec;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.spec = spec;
        }
    }

    /// A volume says that it was created, with an id that another one has. It is asked to forget that, if that other one is known, so that
    /// what is there at the plugin stays known in any case. One that is only in use may say the same of this one.
    pub(super) fn disown(&mut self, spec: &VolumeSpec, cx: &mut StepContext<Self>) {
        let VolumeSpec { key, plugin, volume_id, .. } = spec;
        let Some(names) = self.names.get(&(plugin.clone(), volume_id.clone())) else { return };
        // The plugin may have deleted the other one already, and have given its id once more.
        let stays = names.iter().any(|name| !self.deleting.contains(name));
        let is_asked = self.is_outstanding(key, Request::disowns);
        if let Some(entry) = self.entries.get_mut(key) {
            // Its actor does not end before.
            entry.is_settled = false;
        }
        match (is_asked, stays) {
            (true, _) => {}
            (false, false) => self.disown_later(key, cx),
            (false, true) => {
                let ask = VolumeAsk::Disown(Disown { volume_id: volume_id.clone() });
                self.send(key, Request { purpose: Purpose::Note, until: cx.now(), ask }, cx);
            }
        }
    }

    /// Asks the volume again what it has, after a pause that grows.
    pub(super) fn disown_later(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let backoff = self.config.options.volume.backoff;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let due = cx.now() + entry.delete_tries.failed(&backoff, cx.moment());
        cx.start_timer(VolumesTimer::Disown(key.clone()), due);
    }
}

impl Request {
    /// Whether the volume is to forget what another one has.
    pub(super) const fn disowns(&self) -> bool {
        matches!(self.ask, VolumeAsk::Disown(_))
    }
}
