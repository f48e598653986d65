//! Whether the volume exists: the requests of callers and their answers, and the required content of the ledger.

use callboard_actors::vocabulary::Timestamp;
use callboard_machines::volume::{
    AllowDeletion, CreateVolume, Created, DeleteVolume, NewVolume, VolumeCall, VolumeStatus,
};

use super::super::super::law::Law;
use super::{Asked, VolumeModel, WITHIN, usage};

impl VolumeModel {
    pub(crate) fn create(&mut self, now: Timestamp) {
        let capabilities = vec![usage(self.is_single).capability];
        let volume = NewVolume { capabilities, ..NewVolume::default() };
        self.ask(now, Asked::Create, CreateVolume { volume, within: WITHIN });
    }

    pub(crate) fn delete(&mut self, now: Timestamp) {
        let volume_id = self.known_id.clone();
        self.allowed.insert(volume_id.clone());
        self.ask(now, Asked::Delete, DeleteVolume { volume_id, within: WITHIN });
    }

    /// Its owner learns the id of the volume.
    pub(super) fn learn_id(&mut self, status: &VolumeStatus) {
        self.known_id = match &status.created {
            Some(created) => created.volume_id.clone(),
            None if self.node.creates => String::new(),
            None => "v".to_owned(),
        };
        self.to_allow.clone_from(&status.deletion_to_allow);
    }

    /// Whether it waits until its owner allows its deletion.
    pub(crate) const fn waits_to_be_deleted(&self) -> bool {
        self.to_allow.is_some()
    }

    /// Its owner allows its deletion.
    pub(crate) fn allow(&mut self, now: Timestamp) {
        let Some(volume_id) = self.to_allow.take() else { return };
        self.allowed.insert(volume_id.clone());
        self.ask(now, Asked::Other, AllowDeletion { volume_id });
    }

    /// There is one volume at most, and the ledger knows of it until it is deleted or forced.
    pub(super) fn check_existence(&mut self) {
        if self.is_forced {
            return;
        }
        let (made, volume) = (&self.node.made, &self.owner.store.rows().volume);
        let is_kept = volume.as_ref().is_some_and(|row| row.existence.is_some());
        if made.len() > 1 {
            let made = made.clone();
            self.violation(Law::V4, || {
                format!("the plugin was made to create more than one volume: {made:?}")
            });
        } else if !made.is_empty() && !is_kept {
            self.violation(Law::V5, || "the volume exists, and the ledger has forgotten it".to_owned());
        }
    }

    /// A claimed volume is not deleted, and only an id that its owner has allowed is deleted.
    pub(super) fn check_deletion(&mut self, call: &VolumeCall) {
        let VolumeCall::Delete(spec, _) = call else { return };
        if !self.owner.store.rows().claims.is_empty() {
            self.violation(Law::V3, || format!("{call:?} is made, and there are claims"));
        } else if !self.allowed.contains(&spec.volume_id) {
            self.violation(Law::C59, || format!("{call:?} is made, and its owner has not named that id"));
        }
    }

    pub(super) fn told_created(&mut self, created: &Created) {
        let id = &created.volume.volume_id;
        let rows = self.owner.store.rows();
        let is_kept = rows.volume.as_ref().is_some_and(|row| row.spec.volume_id == *id);
        if self.node.made.is_empty() {
            self.violation(Law::V4, || format!("{id} is told to be created, and there is no volume"));
        } else if !is_kept && !self.is_forced {
            self.violation(Law::Shell1, || format!("{id} is told to be created, and is not on disk"));
        }
    }

    pub(super) fn told_deleted(&mut self) {
        if !self.node.made.is_empty() && !self.is_forced {
            let made = self.node.made.clone();
            self.violation(Law::V4, || format!("the volume is told to be deleted, and there is {made:?}"));
        }
    }
}
