//! Ends the host of a volume, and starts another one from the content of its disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_actors::vocabulary::Timestamp;
use callboard_machines::volume::{ConfirmClaims, Desired};

use super::{Asked, VolumeModel, allocation, owner};

impl VolumeModel {
    /// The host is gone, and this number of the writes had reached the disk. Another host starts from that.
    pub(crate) fn next_run(&mut self, reached: usize, takes_effect: bool, is_reboot: bool) {
        self.steps_before.0 += self.owner.steps();
        self.node.cut(takes_effect);
        self.node.begin_run(is_reboot);
        self.owner.store.begin_run(reached);
        // Its answer is lost with the host; the next host publishes its audit.
        self.note_forced();
        let disk = std::mem::take(&mut self.owner.store);
        (self.is_force_refused, self.is_confirmation_due) = (false, false);
        self.run += 1;
        self.boot += u64::from(is_reboot);
        let held = disk.rows().claims.iter().filter(|claim| claim.desired == Desired::Held);
        self.unconfirmed = held.map(|claim| claim.allocation.clone()).collect();
        self.owner = owner(disk, (self.run, self.boot), &self.node, self.tamper.clone());
        self.unanswered.clear();
        self.audits = (0, 0);
        self.has_claimed = false;
        (self.known_id, self.to_allow) = (String::new(), None);
        for user in self.users.values_mut() {
            user.is_pending = false;
            user.is_holding &= !is_reboot;
        }
    }

    /// Whether claims of an earlier run wait for confirmation.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        !self.unconfirmed.is_empty() || self.is_confirmation_due
    }

    /// The host reports the living allocations: those that hold the volume, or none.
    pub(crate) fn confirm(&mut self, now: Timestamp, are_living: bool) {
        if !are_living {
            self.users.values_mut().for_each(|user| user.is_holding = false);
        }
        let holding = self.users.iter().filter(|(_, user)| user.is_holding);
        let living: BTreeSet<_> = holding.map(|(number, _)| allocation(*number)).collect();
        self.unconfirmed.clear();
        self.is_confirmation_due = false;
        self.ask(now, Asked::Other, ConfirmClaims { living: living.into(), unclear: Arc::default() });
    }

    /// The host is gone, and the row of this allocation's claim, or that of the volume, is damaged when another one starts.
    pub(crate) fn damage(&mut self, now: Timestamp, claim: Option<u8>) {
        self.owner.store.damage(claim.map(allocation));
        self.next_run(usize::MAX, true, false);
        self.load(now);
    }
}
