//! Compares the ids that a plugin gave with the ids of the other volumes here, which may be the same.
//!
//! - A creation that its plugin answers with the id of another volume is refused, and nothing of it is kept: the refused name disowns
//!   the id.
//! - A deletion whose id became known after the request to delete waits until it is allowed here. If another volume has the id, it is
//!   disowned instead.

use super::purposes::{Purpose, Request};
use super::reasons::{NoAnswer, SameVolume};
use super::state::{Volumes, VolumesTimer};
use crate::kernel::StepContext;
use crate::vocabulary::Attempt;
use crate::volume::{
    AllowDeletion, Created, Disown, VolumeAnswer, VolumeAsk, VolumeKey, VolumeSpec, VolumeStatus,
};

impl Volumes {
    /// Whether the volume that was created by this name is not another volume here.
    pub(super) fn admit_created(&self, key: &VolumeKey, created: &Created) -> Result<(), SameVolume> {
        let Some(entry) = self.entries.get(key) else { return Ok(()) };
        self.admit_id(&self.known_by(&entry.spec, &created.volume).spec)
    }

    /// Learns the id of a volume that exists by its own report, so that a deletion of it is compared with the other volumes from now on.
    pub(super) fn learn_id(&mut self, key: &VolumeKey, status: &VolumeStatus) {
        let (Some(created), Some(entry)) = (&status.created, self.entries.get(key)) else { return };
        if entry.spec.volume_id == created.volume_id {
            return;
        }
        let spec = self.known_by(&entry.spec, created).spec;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.spec = spec;
        }
    }

    /// A volume reports that it was created, with an id that another one has. It is asked to forget the id if the other volume is known, so
    /// that the volume at the plugin stays known in any case. A volume that is only in use may report the same about this one.
    pub(super) fn disown(&mut self, spec: &VolumeSpec, cx: &mut StepContext<Self>) {
        let VolumeSpec { key, plugin, volume_id, .. } = spec;
        let names = self.names.get(&(plugin.clone(), volume_id.clone()));
        // The plugin may have deleted the other volume already, and reused its id.
        let stays = names.into_iter().flatten().any(|name| !self.deleting.contains(name));
        let is_asked = self.is_outstanding(key, Request::disowns);
        if let Some(entry) = self.entries.get_mut(key) {
            // Its actor does not end before the id is forgotten.
            entry.is_settled = false;
        }
        match (is_asked, stays) {
            (true, _) => {}
            (false, false) => self.decide_later(key, cx),
            (false, true) => {
                let ask = VolumeAsk::Disown(Disown { volume_id: volume_id.clone() });
                self.send(key, Request { purpose: Purpose::Note, until: cx.now(), ask }, cx);
            }
        }
    }

    /// A volume that is to be deleted waits until this owner has compared its id with those of the other volumes. An id without another
    /// name here is deleted, and one with another name is forgotten without a deletion.
    pub(super) fn decide_deletion(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(key) else { return };
        let waits_for = entry.status.as_ref().and_then(|status| status.deletion_to_allow.clone());
        let spec = entry.spec.clone();
        let Some(volume_id) = waits_for.filter(|volume_id| *volume_id == spec.volume_id) else { return };
        if self.is_outstanding(key, Request::decides) {
            return;
        }
        // The ledger of an unread volume may have this id.
        if self.unread_beside(Some(key), &spec.plugin).is_some() {
            return self.decide_later(key, cx);
        }
        let known = self.known.get(key);
        let is_known_so = known.is_some_and(|known| known.spec.volume_id == volume_id);
        // The id of a known volume was compared when its deletion was requested.
        let is_admitted = is_known_so && self.deleting.contains(key) || self.admit_id(&spec).is_ok();
        match (is_admitted, known.is_some()) {
            (true, _) => {
                let ask = VolumeAsk::AllowDeletion(AllowDeletion { volume_id });
                self.send(key, Request { purpose: Purpose::Note, until: cx.now(), ask }, cx);
            }
            (false, true) => self.decide_later(key, cx),
            (false, false) => self.disown(&spec, cx),
        }
    }

    /// Whether a volume was allowed to delete by its id. The present incarnation of its actor may not know the permission of an earlier
    /// one.
    pub(super) fn is_allowed(
        &self,
        key: &VolumeKey,
        number: Attempt,
        answer: &Result<VolumeAnswer, NoAnswer>,
    ) -> bool {
        let is_of_this_life = self.entries.get(key).is_some_and(|entry| number > entry.before_life);
        is_of_this_life && matches!(answer, Ok(VolumeAnswer::AllowDeletion(())))
    }

    /// Decides again after a growing pause.
    pub(super) fn decide_later(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let backoff = self.config.options.volume.backoff;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let due = cx.now() + entry.decide_tries.failed(&backoff, cx.moment());
        cx.start_timer(VolumesTimer::Decide(key.clone()), due);
    }
}

impl Request {
    /// Whether the volume is to forget an id that another one has.
    pub(super) const fn disowns(&self) -> bool {
        matches!(self.ask, VolumeAsk::Disown(_))
    }

    /// Whether the message decides about an id that another volume may have.
    pub(super) const fn decides(&self) -> bool {
        matches!(self.ask, VolumeAsk::Disown(_) | VolumeAsk::AllowDeletion(_))
    }
}
