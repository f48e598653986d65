//! Handles ids that another volume here may have: a volume with such an id is deleted only when its owner allows that, and forgotten
//! without a deletion when the id is another volume's.

use super::existence::{Existence, Origin};
use super::lifecycle::Disown;
use super::record::{Desired, Step};
use super::state::Volume;
use crate::kernel::StepContext;

impl Volume {
    /// Its owner reports that no other volume here has this id. The permission holds while the volume has this id and is to be deleted.
    pub(super) fn allow_deletion(&mut self, volume_id: &str) {
        if self.deletion_to_allow() == Some(volume_id) {
            self.life.may_be_deleted = true;
        }
    }

    /// The id of a volume that is to be deleted, while its owner has not allowed the deletion by this id.
    pub(super) fn deletion_to_allow(&self) -> Option<&str> {
        let existence = self.record.existence.as_ref()?;
        let is_meant = existence.desired == Desired::Released && existence.step.is_up();
        (is_meant && !self.life.may_be_deleted).then_some(self.record.spec.volume_id.as_str())
    }

    /// Forgets a volume that was created here and is another volume's, without a call. Returns whether nothing of it is left.
    pub(super) fn disown(&mut self, asked: &Disown, cx: &mut StepContext<Self>) -> bool {
        let Some(Existence { origin, step, .. }) = &self.record.existence else { return true };
        let is_there = matches!((origin, step), (Origin::Created(_), Step::Up(..)));
        let is_meant = is_there && self.record.spec.volume_id == asked.volume_id;
        if !is_meant || self.flight.is_some() || !self.held_by().is_empty() {
            return false;
        }
        self.gone();
        // Nothing existed that had this name.
        self.life.deletes.iter_mut().for_each(|waiter| waiter.did_exist = false);
        self.forget_if_over(cx);
        true
    }
}
