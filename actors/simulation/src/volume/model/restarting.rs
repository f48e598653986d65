//! The host of a volume is gone, and another one starts on what its disk has.

use callboard_actors::vocabulary::Timestamp;
use callboard_machines::volume::Desired;

use super::{VolumeModel, allocation, owner};

impl VolumeModel {
    /// The host is gone, and so many of the writes had reached the disk. Another one starts on what is left.
    pub(crate) fn next_run(&mut self, reached: usize, takes_effect: bool, is_reboot: bool) {
        self.steps_before.0 += self.owner.steps();
        self.node.cut(takes_effect);
        self.node.begin_run(is_reboot);
        let mut disk = std::mem::take(&mut self.owner.books);
        disk.begin_run(reached);
        disk.take_given_up().iter().for_each(|allocation| self.node.abandon(allocation));
        if disk.takes_forced() {
            // Its answer is lost with the host, and its audit comes with the next one.
            self.node.forget();
        }
        self.run += 1;
        self.boot += u64::from(is_reboot);
        let held = disk.rows().claims.iter().filter(|claim| claim.desired == Desired::Held);
        self.unconfirmed = held.map(|claim| claim.allocation.clone()).collect();
        self.owner = owner(disk, (self.run, self.boot), self.node.creates, self.tamper.clone());
        self.owner.witness.route = self.node.route();
        self.unanswered.clear();
        self.audits = (0, 0);
        self.has_claimed = false;
        (self.known_id, self.to_allow) = (String::new(), None);
        for user in self.users.values_mut() {
            user.is_pending = false;
            user.is_holding &= !is_reboot;
        }
    }

    /// The host is gone, and the row of this allocation's claim, or that of the volume, is damaged when another one starts.
    pub(crate) fn damage(&mut self, now: Timestamp, claim: Option<u8>) {
        self.owner.books.damage(claim.map(allocation));
        self.next_run(usize::MAX, true, false);
        self.load(now);
    }
}
