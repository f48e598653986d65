//! What is asked, refused, and may come to something all the same.

use super::{Asked, VolumeModel};

impl VolumeModel {
    /// What was asked was lost in a crash, or by a failed write.
    pub(super) fn refused(&mut self, asked: Asked) {
        match asked {
            Asked::Route => self.owner.checker.received(None),
            Asked::Force | Asked::GiveUp => self.is_force_refused = true,
            // It may have been all that was going to be heard of a claim of an earlier run.
            Asked::Claim(..) | Asked::Release | Asked::Other => self.is_confirmation_due = self.run > 1,
            Asked::Create | Asked::Delete | Asked::Expand | Asked::TakeGroup | Asked::DeleteGroup(_) => {}
        }
    }

    /// What was forced is on disk.
    pub(super) fn note_forced(&mut self) {
        self.owner.store.take_given_up().iter().for_each(|allocation| self.node.abandon(allocation));
        if self.owner.store.takes_forced() {
            self.node.forget();
        }
    }
}
