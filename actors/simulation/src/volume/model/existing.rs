//! Whether the volume exists: what callers ask and hear of that, and what the ledger must know.

use callboard_actors::vocabulary::Timestamp;
use callboard_machines::volume::{CreateVolume, Created, DeleteVolume, NewVolume, VolumeCall};

use super::super::super::law::Law;
use super::{Asked, VolumeModel, WITHIN, usage};

impl VolumeModel {
    pub(crate) fn create(&mut self, now: Timestamp) {
        let capabilities = vec![usage(self.is_single).capability];
        let volume = NewVolume { capabilities, ..NewVolume::default() };
        self.ask(now, Asked::Create, CreateVolume { volume, within: WITHIN });
    }

    pub(crate) fn delete(&mut self, now: Timestamp) {
        self.ask(now, Asked::Delete, DeleteVolume { within: WITHIN });
    }

    /// There is one volume at most, and the ledger knows of it until it is deleted or forced.
    pub(super) fn check_existence(&mut self) {
        if self.is_forced {
            return;
        }
        let (made, volume) = (&self.node.made, &self.owner.books.rows().volume);
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

    /// What is claimed is not deleted.
    pub(super) fn check_unclaimed(&mut self, call: &VolumeCall) {
        if matches!(call, VolumeCall::Delete(..)) && !self.owner.books.rows().claims.is_empty() {
            self.violation(Law::V3, || format!("{call:?} is made, and there are claims"));
        }
    }

    pub(super) fn told_created(&mut self, created: &Created) {
        let id = &created.volume.volume_id;
        let rows = self.owner.books.rows();
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
