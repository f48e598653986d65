//! Plans the messages of allocations and of others.

use callboard_actors::vocabulary::Timestamp;

use super::super::super::registry::Question;
use super::super::event::EventKind;
use super::super::host_model::HostModel;
use super::super::workloads::Workloads;
use super::Plan;

impl Plan {
    /// A message of an allocation: it registers, updates, registers again, deregisters, or deregisters without a registration.
    pub(super) fn act(&mut self, at: Timestamp, who: u32, host_model: &HostModel) -> Option<EventKind> {
        if Workloads::is_supervised(who) {
            return Some(EventKind::Workload(who, self.act_of_workload(at, who, host_model)?));
        }
        Some(match self.random.below(10) {
            0..=5 => EventKind::Register(who, u8::from(self.random.once_in(4))),
            _ => EventKind::Deregister(who),
        })
    }

    pub(super) fn question(&mut self, host_model: &HostModel) -> EventKind {
        let plugin = self.random.place(host_model.names.halves());
        match self.random.below(100) {
            number @ 0..=59 => {
                EventKind::Ask(Question::about(plugin, number, &mut self.random, &host_model.names))
            }
            60..=84 => EventKind::Dispense(plugin),
            85..=94 => EventKind::Check(plugin),
            95..=97 => EventKind::AwaitRetired(plugin),
            _ if self.random.once_in(u64::from(host_model.names.allocations()) / 16) => {
                if self.random.once_in(2) {
                    EventKind::Ask(Question::about_all(self.random.once_in(2)))
                } else {
                    EventKind::TakeInventory
                }
            }
            _ => EventKind::Ask(Question::Describe(plugin)),
        }
    }
}
