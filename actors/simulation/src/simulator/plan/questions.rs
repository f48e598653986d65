//! What allocations and others say, and when nothing is wrong with that.

use callboard_actors::vocabulary::Timestamp;

use super::super::super::registry::Question;
use super::super::event::Happening;
use super::super::host_model::HostModel;
use super::super::workloads::Workloads;
use super::Plan;

impl Plan {
    /// What an allocation says: it comes, changes, comes again, goes, or goes though it is not there.
    pub(super) fn act(&mut self, at: Timestamp, who: u32, host_model: &HostModel) -> Option<Happening> {
        if Workloads::is_supervised(who) {
            return Some(Happening::Workload(who, self.act_of_workload(at, who, host_model)?));
        }
        Some(match self.chance.below(10) {
            0..=5 => Happening::Register(who, u8::from(self.chance.once_in(4))),
            _ => Happening::Deregister(who),
        })
    }

    pub(super) fn question(&mut self, host_model: &HostModel) -> Happening {
        let plugin = self.chance.place(host_model.cast.halves());
        match self.chance.below(100) {
            number @ 0..=59 => {
                Happening::Ask(Question::about(plugin, number, &mut self.chance, &host_model.cast))
            }
            60..=84 => Happening::Dispense(plugin),
            85..=94 => Happening::Check(plugin),
            95..=97 => Happening::AwaitRetired(plugin),
            _ if self.chance.once_in(u64::from(host_model.cast.allocations()) / 16) => {
                if self.chance.once_in(2) {
                    Happening::Ask(Question::about_all(self.chance.once_in(2)))
                } else {
                    Happening::TakeInventory
                }
            }
            _ => Happening::Ask(Question::Describe(plugin)),
        }
    }
}
