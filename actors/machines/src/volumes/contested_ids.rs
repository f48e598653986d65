//! Ids that a plugin gave, and that another volume here may have: each is compared with those of the other volumes.
//!
//! - A creation that its plugin answers with the id of another volume is refused, and nothing of it is remembered: the refused name disowns
//!   the id.
//! - A deletion whose id came after the order to delete waits until it is allowed here. If another volume has the id, it is disowned instead.

use super::purposes::{Purpose, Request};
use super::reasons::{NoAnswer, SameVolume};
use super::state::{Volumes, VolumesTimer};
use crate::kernel::StepContext;
use crate::vocabulary::Attempt;
use crate::volume::{
    AllowDeletion, Created, Disown, VolumeAnswer, VolumeAsk, VolumeKey, VolumeSpec, VolumeStatus,
};

impl Volumes {
    /// Whether what was created by this name is no other volume here.
    pub(super) fn admit_created(&self, key: &VolumeKey, created: &Created) -> Result<(), SameVolume> {
        let Some(entry) = self.entries.get(key) else { return Ok(()) };
        self.admit_id(&self.known_by(&entry.spec, &created.volume).spec)
    }

    /// Learns the id of what a volume says to be there, so that a deletion of it is compared with the other volumes from now on.
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

    /// A volume says that it was created, with an id that another one has. It is asked to forget that, if that other one is known, so that
    /// what is there at the plugin stays known in any case. One that is only in use may say the same of this one.
    pub(super) fn disown(&mut self, spec: &VolumeSpec, cx: &mut StepContext<Self>) {
        let VolumeSpec { key, plugin, volume_id, .. } = spec;
        let names = self.names.get(&(plugin.clone(), volume_id.clone()));
        // The plugin may have deleted the other one already, and have given its id once more.
        let stays = names.into_iter().flatten().any(|name| !self.deleting.contains(name));
        let is_asked = self.is_outstanding(key, Request::disowns);
        if let Some(entry) = self.entries.get_mut(key) {
            // Its actor does not end before.
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

    /// A volume that is to be deleted waits until this owner has compared its id with those of the other volumes. What has no other name
    /// here is deleted, and what another name has is forgotten without a deletion.
    pub(super) fn decide_deletion(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(key) else { return };
        let waits_for = entry.status.as_ref().and_then(|status| status.deletion_to_allow.clone());
        let spec = entry.spec.clone();
        let Some(volume_id) = waits_for.filter(|volume_id| *volume_id == spec.volume_id) else { return };
        if self.is_outstanding(key, Request::decides) {
            return;
        }
        // What its ledger has may be this id.
        if self.unread_beside(Some(key), &spec.plugin).is_some() {
            return self.decide_later(key, cx);
        }
        let known = self.known.get(key);
        let is_known_so = known.is_some_and(|known| known.spec.volume_id == volume_id);
        // One that was known was compared when its deletion was asked for.
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

    /// Whether a volume was allowed to delete what it has. The present life of its actor may not know of what an earlier one was allowed.
    pub(super) fn is_allowed(
        &self,
        key: &VolumeKey,
        number: Attempt,
        answer: &Result<VolumeAnswer, NoAnswer>,
    ) -> bool {
        let is_of_this_life = self.entries.get(key).is_some_and(|entry| number > entry.before_life);
        is_of_this_life && matches!(answer, Ok(VolumeAnswer::AllowDeletion(())))
    }

    /// Decides once more after a pause that grows.
    pub(super) fn decide_later(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let backoff = self.config.options.volume.backoff;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let due = cx.now() + entry.decide_tries.failed(&backoff, cx.moment());
        cx.start_timer(VolumesTimer::Decide(key.clone()), due);
    }
}

impl Request {
    /// Whether the volume is to forget what another one has.
    pub(super) const fn disowns(&self) -> bool {
        matches!(self.ask, VolumeAsk::Disown(_))
    }

    /// Whether it says what becomes of an id that another volume may have.
    pub(super) const fn decides(&self) -> bool {
        matches!(self.ask, VolumeAsk::Disown(_) | VolumeAsk::AllowDeletion(_))
    }
}
