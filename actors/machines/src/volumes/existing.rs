//! Handles volumes that are created and deleted here. Their existence is learned from their own actors, and kept for claims.

use std::sync::Arc;
use std::time::Duration;

use super::errors::{CreateError, DeleteError};
use super::messages::{CreateVolume, DeleteVolume, VolumesAnswer};
use super::purposes::{Purpose, Request};
use super::reasons::NoAnswer;
use super::state::{Deletion, KnownVolume, Volumes, VolumesChange, VolumesTimer};
use crate::csi::{self, Context};
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::{Attempt, Timestamp};
use crate::volume::{self, Deleted, Exists, VolumeAnswer, VolumeAsk, VolumeKey, VolumeSpec, VolumeStatus};

impl Volumes {
    pub(super) fn create(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &CreateVolume,
        cx: &mut StepContext<Self>,
    ) {
        if let Err(error) = self.admit_creation(asked) {
            cx.reply(id, VolumesAnswer::CreateVolume(Err(error)));
            return;
        }
        let CreateVolume { volume: key, plugin, new: volume, within } = asked.clone();
        if !self.entries.contains_key(&key) {
            let unknown = || {
                let (key, plugin) = (key.clone(), plugin);
                Arc::new(VolumeSpec { key, plugin, volume_id: String::new(), volume_context: Context::new() })
            };
            let spec = self.known.get(&key).map_or_else(unknown, |known| known.spec.clone());
            self.open(&spec, cx);
        }
        let ask = VolumeAsk::CreateVolume(volume::CreateVolume { volume, within });
        let request = Request { purpose: Purpose::Create(id), until: asked_at + within, ask };
        self.submit(&key, request, cx);
    }

    /// Whether a creation may be requested at all. The volume decides whether it is the same creation.
    fn admit_creation(&self, asked: &CreateVolume) -> Result<(), CreateError> {
        let CreateVolume { volume: key, plugin, .. } = asked;
        if self.stop.is_some() {
            return Err(CreateError::Stopping { volume: key.clone() });
        }
        // After a crash of the actor it would be unknown which of the two was done last.
        if self.is_deletion_outstanding(key) {
            return Err(volume::CreateError::BeingDeleted { volume: key.clone() }.into());
        }
        self.room_for(plugin, self.config.options.waiting_max / 2)?;
        let (known, entry) = (self.known.get(key), self.entries.get(key));
        if entry.is_none() {
            self.check_stays(key, plugin)?;
        }
        let spec = known.map(|known| &known.spec).or_else(|| entry.map(|entry| &entry.spec));
        match spec {
            Some(spec) if spec.plugin != *plugin => {
                let (volume, plugin) = (key.clone(), spec.plugin.clone());
                Err(CreateError::OtherPlugin { volume, plugin })
            }
            None if self.known.len() >= self.config.options.volumes_max => {
                Err(CreateError::TooMany { count: self.known.len() })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn delete(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &DeleteVolume,
        cx: &mut StepContext<Self>,
    ) {
        let DeleteVolume { volume: key, within } = asked.clone();
        let answer = match self.spec_of(&key) {
            _ if self.stop.is_some() => Some(Err(DeleteError::Stopping { volume: key.clone() })),
            None => Some(Ok(Deleted { did_exist: self.unconfirmed.remove(&(key.clone(), None)) })),
            Some(spec) => self.admit_deletion(spec).err().map(Err),
        };
        if let Some(answer) = answer {
            cx.reply(id, VolumesAnswer::DeleteVolume(answer));
            return;
        }
        // Written first: the volume alone may learn of the deletion, and lose that with this host (C059).
        let is_first = self.is_first_deletion(&key);
        if is_first {
            cx.persist(VolumesChange::Delete(key.clone()));
        }
        let volume_id = self.id_of(&key);
        let ask = VolumeAsk::DeleteVolume(volume::DeleteVolume { volume_id, within });
        let request = Request { purpose: Purpose::Delete(id), until: asked_at + within, ask };
        self.submit(&key, request, cx);
        if is_first {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.deletion = Deletion { is_refused_only: true, is_due: false };
            }
            self.deleting.insert(key);
        }
    }

    /// Whether a deletion may be requested at all. The volume knows whether any of its steps is up.
    fn admit_deletion(&self, spec: &VolumeSpec) -> Result<(), DeleteError> {
        let VolumeSpec { key, plugin, .. } = spec;
        self.room_for(plugin, self.config.options.waiting_max)?;
        // A deletion that is under way continues, even if its plugin reuses its id meanwhile.
        if !self.deleting.contains(key) {
            self.admit_id(spec)?;
        }
        match (self.needed_by(key, plugin), self.unread_beside(Some(key), plugin)) {
            (Some((keeper, what)), _) => Err(DeleteError::InGroup { volume: key.clone(), keeper, what }),
            (None, Some(unread)) => Err(DeleteError::Unread { volume: key.clone(), unread: unread.clone() }),
            (None, None) => Ok(()),
        }
    }

    /// Whether a volume was created here, or is being created: the same message asks for the result.
    pub(super) fn is_being_created(&self, key: &VolumeKey) -> bool {
        let status = self.entries.get(key).and_then(|entry| entry.status.as_ref());
        self.created.contains(key) || status.is_some_and(|status| status.exists == Exists::BeingCreated)
    }

    /// Whether a deletion has to be written before the volume receives it.
    pub(super) fn is_first_deletion(&self, key: &VolumeKey) -> bool {
        self.known.contains_key(key) && !self.deleting.contains(key)
    }

    /// Forgets the deletions of volumes that are unknown since their rows were damaged: the name may mean another volume by now (RES-08).
    pub(super) fn drop_stale_deletions(&mut self, cx: &mut StepContext<Self>) {
        let stale: Vec<_> =
            self.deleting.iter().filter(|key| !self.known.contains_key(*key)).cloned().collect();
        stale.iter().for_each(|key| self.still_exists(key, cx));
    }

    /// Starts the actors of the volumes that are being deleted, even if the ledger has nothing of them.
    pub(super) fn resume_deletions(&mut self, cx: &mut StepContext<Self>) {
        let known = self.deleting.iter().filter(|key| !self.entries.contains_key(*key));
        let specs: Vec<_> = known.filter_map(|key| Some(self.known.get(key)?.spec.clone())).collect();
        specs.iter().for_each(|spec| self.open(spec, cx));
    }

    /// Retries a deletion whose outcome is unknown: a previous incarnation of the actor may have crashed before it reported the result, or
    /// the disk did not take the write. While another deletion is not answered, its answer decides: it may be that nothing was begun.
    pub(super) fn delete_again(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let is_outstanding = self.is_deletion_outstanding(key);
        let Some(entry) = self.entries.get_mut(key).filter(|_| self.deleting.contains(key)) else { return };
        entry.deletion.is_due = true;
        cx.cancel_timer(VolumesTimer::Delete(key.clone()));
        if is_outstanding {
            return;
        }
        let volume_id = self.id_of(key);
        let ask = VolumeAsk::DeleteVolume(volume::DeleteVolume { volume_id, within: Duration::ZERO });
        self.send(key, Request { purpose: Purpose::Note, until: cx.now(), ask }, cx);
    }

    /// A volume has answered a deletion, or failed to, as on a sick disk.
    pub(super) fn deletion_returned(
        &mut self,
        (key, number, purpose): (&VolumeKey, Attempt, Purpose),
        answer: &Result<VolumeAnswer, NoAnswer>,
        cx: &mut StepContext<Self>,
    ) {
        let is_outstanding = self.is_deletion_outstanding(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        let deletion = &mut entry.deletion;
        match answer {
            Ok(answer) => {
                deletion.is_refused_only &= is_refused_deletion(answer);
                deletion.is_due = false;
                // The present incarnation may not know of it.
                if number <= entry.before_life && deletion_goes_on(answer) {
                    self.delete_again(key, cx);
                }
            }
            Err(no_answer) => {
                deletion.is_refused_only &= !no_answer.may_go_on();
                match (deletion.is_refused_only, is_outstanding) {
                    // All its callers get the answer that nothing was begun, so it is never done later.
                    (true, false) => self.still_exists(key, cx),
                    // The last answer decides.
                    (true, true) => {}
                    // Its caller got the answer that it may continue. No other message repeats it.
                    (false, _) if deletion.is_due || purpose == Purpose::Note || !no_answer.may_go_on() => {
                        self.delete_later(key, cx);
                    }
                    // The next report of its actor about its existence decides.
                    (false, _) => {}
                }
            }
        }
    }

    /// Whether a volume still has to answer a deletion.
    fn is_deletion_outstanding(&self, key: &VolumeKey) -> bool {
        self.is_outstanding(key, Request::deletes)
    }

    /// Repeats a deletion after a growing pause.
    fn delete_later(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let backoff = self.config.options.volume.backoff;
        let Some(entry) = self.entries.get_mut(key).filter(|_| self.deleting.contains(key)) else { return };
        entry.deletion.is_due = true;
        let due = cx.now() + entry.delete_tries.failed(&backoff, cx.moment());
        cx.start_timer(VolumesTimer::Delete(key.clone()), due);
    }

    /// The volume of this key, if it is known or in use.
    fn spec_of(&self, key: &VolumeKey) -> Option<&Arc<VolumeSpec>> {
        let known = self.known.get(key).map(|known| &known.spec);
        known.or_else(|| self.used(key).map(|entry| &entry.spec))
    }

    /// The id of that volume with its plugin, if known.
    fn id_of(&self, key: &VolumeKey) -> String {
        self.spec_of(key).map(|spec| spec.volume_id.clone()).unwrap_or_default()
    }

    // === Knowledge ===

    /// Learns from the answer of a volume whether it exists. Answers from before the last creation or deletion was sent prove nothing.
    /// Returns the answer for the caller.
    pub(super) fn settle(
        &mut self,
        key: &VolumeKey,
        number: Attempt,
        answer: &VolumeAnswer,
        cx: &mut StepContext<Self>,
    ) {
        let is_disowned = self.is_outstanding(key, Request::disowns);
        let Some(entry) = self.entries.get_mut(key) else { return };
        // Nothing is created while a deletion has no answer, so the volume is gone whatever was sent since.
        let is_gone = matches!(answer, VolumeAnswer::DeleteVolume(Ok(_)));
        if number < entry.last_change && !is_gone {
            return;
        }
        match answer {
            VolumeAnswer::CreateVolume(Ok(created)) => {
                entry.is_settled = true;
                self.keep_unless_deleting(key, cx);
                self.note_created(key, &created.volume, cx);
            }
            VolumeAnswer::DeleteVolume(Ok(_)) | VolumeAnswer::Disown(true) => {
                entry.is_settled = true;
                self.note_deleted(key, cx);
            }
            VolumeAnswer::DeleteVolume(Err(error)) if !error.goes_on() => self.keep_unless_deleting(key, cx),
            VolumeAnswer::PlaceOrder(Ok(done)) => self.learn_size(key, done, cx),
            // Whether it has forgotten another volume's id, with that on disk, is in its answer to `Disown`.
            VolumeAnswer::DescribeVolume(status) if entry.in_flight == 0 && !is_disowned => {
                self.learn_status(key, status, cx);
            }
            VolumeAnswer::CreateVolume(Err(_))
            | VolumeAnswer::DeleteVolume(Err(_))
            | VolumeAnswer::AllowDeletion(())
            | VolumeAnswer::Disown(false)
            | VolumeAnswer::PlaceOrder(Err(_))
            | VolumeAnswer::DescribeVolume(_)
            | VolumeAnswer::Claim(_)
            | VolumeAnswer::Release(_)
            | VolumeAnswer::ConfirmClaims(_)
            | VolumeAnswer::PrepareForce(_)
            | VolumeAnswer::ForceRelease(_)
            | VolumeAnswer::RouteChanged(()) => {}
        }
    }

    /// A volume reports its existence, while no other answer of it is outstanding.
    fn learn_status(&mut self, key: &VolumeKey, status: &VolumeStatus, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_there = status.exists.is_there();
        // Until it has accepted a deletion that continues, it exists, and is deleted nevertheless.
        let is_due = is_there && entry.deletion.is_due && self.deleting.contains(key);
        entry.is_settled = !status.exists.is_changing() && !is_due;
        // Each incarnation of the actor that may not know of a deletion was asked for it before this.
        if is_there && !is_due {
            self.keep_unless_deleting(key, cx);
        }
        match (&status.created, status.exists) {
            (Some(created), _) if self.is_lasting(status) => self.note_created(key, created, cx),
            (None, Exists::Absent) => self.note_deleted(key, cx),
            (Some(_), _)
            | (
                None,
                Exists::Registered
                | Exists::BeingCreated
                | Exists::Created
                | Exists::Unfit
                | Exists::BeingDeleted,
            ) => {}
        }
    }

    /// Whether the status of a volume shows that its known state is outdated.
    pub(super) fn is_news(&self, status: &VolumeStatus) -> bool {
        status.created.is_some() && self.is_lasting(status) && !self.created.contains(&status.key)
    }

    /// Whether a created volume is to be known. If its deletion was requested before it was known, that is not recorded on disk: after a
    /// kill of the host it would stay known, deleted or not.
    fn is_lasting(&self, status: &VolumeStatus) -> bool {
        status.exists != Exists::BeingDeleted || self.known.contains_key(&status.key)
    }

    /// An actor has read its ledger, and reports that the volume was created as it is known. That counts as its answer while nothing that
    /// could change its existence was sent in this incarnation of the owner, or is to be sent.
    pub(super) fn learn_ledger(&mut self, key: &VolumeKey, status: &VolumeStatus) {
        let (Some(created), Exists::Created) = (&status.created, status.exists) else { return };
        let Some(entry) = self.entries.get(key) else { return };
        let is_unchanged = entry.last_change == Attempt::default() && !self.deleting.contains(key);
        let Some(known) = self.known.get(key).filter(|_| is_unchanged) else { return };
        if **known == self.known_by(&entry.spec, created) {
            self.created.insert(key.clone());
            if let Some(entry) = self.entries.get_mut(key) {
                entry.is_settled = true;
            }
        }
    }

    /// It exists, as its plugin answered (C059, C060), unless it is another volume here.
    fn note_created(&mut self, key: &VolumeKey, volume: &csi::Volume, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(key) else { return };
        let known = Arc::new(self.known_by(&entry.spec, volume));
        if let Some(entry) = self.entries.get_mut(key) {
            entry.spec = known.spec.clone();
        }
        let is_other = self.admit_id(&known.spec).is_err();
        if is_other && !self.known.contains_key(key) {
            return self.disown(&known.spec, cx);
        }
        self.created.insert(key.clone());
        if self.known.get(key) != Some(&known) && !is_other {
            self.know(known.clone());
            cx.persist(VolumesChange::Keep(known));
            self.publish(key, cx);
        }
    }

    /// The known volume by the answer of its plugin to its creation.
    pub(super) fn known_by(&self, spec: &Arc<VolumeSpec>, volume: &csi::Volume) -> KnownVolume {
        let is_so = spec.volume_id == volume.volume_id && spec.volume_context == volume.volume_context;
        let answered = || VolumeSpec {
            volume_id: volume.volume_id.clone(),
            volume_context: volume.volume_context.clone(),
            ..VolumeSpec::clone(spec)
        };
        let spec = if is_so { spec.clone() } else { Arc::new(answered()) };
        let created_bytes = Some(volume.capacity_bytes).filter(|bytes| *bytes > 0);
        // The answer to its creation does not have the size after a later expansion.
        let same = self.known.get(&spec.key).filter(|known| known.spec == spec);
        let capacity_bytes = created_bytes.max(same.and_then(|known| known.capacity_bytes));
        KnownVolume { spec, capacity_bytes, accessible_topology: volume.accessible_topology.clone() }
    }

    /// It was not deleted so far. An unanswered or unsent deletion decides by itself, and has to be on disk until then.
    fn keep_unless_deleting(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        if !self.is_deletion_outstanding(key) {
            self.still_exists(key, cx);
        }
    }

    /// It is not deleted: its deletion was refused.
    fn still_exists(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        if self.deleting.remove(key) {
            cx.persist(VolumesChange::Stay(key.clone()));
        }
    }

    /// It does not exist. Its former id has no meaning from now on.
    fn note_deleted(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        self.created.remove(key);
        self.unfit.remove(key);
        self.deleting.remove(key);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.spec = Arc::new(VolumeSpec {
                volume_id: String::new(),
                volume_context: Context::new(),
                ..VolumeSpec::clone(&entry.spec)
            });
        }
        if self.know_no_more(key) {
            cx.persist(VolumesChange::Forget(key.clone()));
            self.publish(key, cx);
        }
    }
}

/// Whether a volume answered that its deletion continues.
fn deletion_goes_on(answer: &VolumeAnswer) -> bool {
    matches!(answer, VolumeAnswer::DeleteVolume(Err(error)) if error.goes_on())
}

/// Whether a volume refused to be deleted, and no deletion continues.
fn is_refused_deletion(answer: &VolumeAnswer) -> bool {
    matches!(answer, VolumeAnswer::DeleteVolume(Err(error)) if !error.goes_on())
}
