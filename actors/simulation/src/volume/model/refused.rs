//! Requests that were refused, and may take effect all the same.

use super::{Asked, VolumeModel};

impl VolumeModel {
    /// A request was lost in a crash, or by a failed write.
    pub(super) fn refused(&mut self, asked: Asked) {
        match asked {
            Asked::Route => self.owner.checker.received(None),
            Asked::Force | Asked::GiveUp => self.is_force_refused = true,
            // It may have been the only message about a claim of an earlier run.
            Asked::Claim(..) | Asked::Release | Asked::Other => self.is_confirmation_due = self.run > 1,
            Asked::Create | Asked::Delete | Asked::Expand | Asked::TakeGroup | Asked::DeleteGroup(_) => {}
        }
    }

    /// The forced releases are on disk.
    pub(super) fn note_forced(&mut self) {
        self.owner.store.take_given_up().iter().for_each(|allocation| self.node.abandon(allocation));
        if self.owner.store.takes_forced() {
            self.node.forget();
        }
    }
}
