//! The host: what it says of allocations, and what it is answered.

use callboard_actors::allocation::{AllocationSpec, Task};
use callboard_actors::allocations::{
    AdoptAllocation, AllocationsAnswer, AllocationsAsk, PrepareAllocation, StopAllocation, TaskExited,
    TaskStarted,
};
use callboard_actors::vocabulary::{PluginName, Role, TaskName};

use super::super::law::Law;
use super::super::witness::{Violation, violation};
use super::event::{AllocationsBounds, HostOrder, name};
use super::world::{AllocationsWorld, allocation};

impl AllocationsWorld {
    /// Whether the host could say this now.
    pub(super) fn may_say(&self, place: usize, order: HostOrder) -> bool {
        let AllocationsBounds { orders, leaves, oddities, waits, .. } = self.left;
        let known = self.owner.witness.known(&allocation(place));
        match order {
            HostOrder::Prepare => orders > 0,
            HostOrder::PrepareOther => oddities > 0 && known.is_some(),
            HostOrder::Adopt => oddities > 0,
            HostOrder::Started => orders > 0 && known.is_some(),
            HostOrder::Exited => orders > 0 && known.is_some_and(|known| known.task == Task::Running),
            HostOrder::Stop => leaves > 0,
            HostOrder::StopEvenIfUsed => leaves > 0 && waits > 0,
        }
    }

    /// The host says something.
    pub(super) fn say(&mut self, place: usize, order: HostOrder) {
        let left = &mut self.left;
        *match order {
            HostOrder::Prepare | HostOrder::Started | HostOrder::Exited => &mut left.orders,
            HostOrder::PrepareOther | HostOrder::Adopt => &mut left.oddities,
            HostOrder::Stop | HostOrder::StopEvenIfUsed => &mut left.leaves,
        } -= 1;
        let allocation = allocation(place);
        let ask = match order {
            HostOrder::Prepare => {
                AllocationsAsk::PrepareAllocation(PrepareAllocation { spec: spec(place, "zfs") })
            }
            HostOrder::PrepareOther => {
                AllocationsAsk::PrepareAllocation(PrepareAllocation { spec: spec(place, "nfs") })
            }
            HostOrder::Adopt => AllocationsAsk::AdoptAllocation(AdoptAllocation { spec: spec(place, "zfs") }),
            HostOrder::Started => AllocationsAsk::TaskStarted(TaskStarted { allocation }),
            HostOrder::Exited => {
                AllocationsAsk::TaskExited(TaskExited { allocation, how: "signal 9".to_owned() })
            }
            HostOrder::Stop | HostOrder::StopEvenIfUsed => {
                let even_if_used = order == HostOrder::StopEvenIfUsed;
                AllocationsAsk::StopAllocation(StopAllocation { allocation, even_if_used })
            }
        };
        self.askers += 1;
        self.unanswered.insert(self.askers, place);
        self.owner.ask(self.moment(), self.askers, ask);
    }

    /// A caller that gets the answer that an allocation is stopped may rely on it.
    pub(super) fn check_answer(&self, place: usize, answer: &AllocationsAnswer) -> Result<(), Violation> {
        let AllocationsAnswer::StopAllocation(Ok(_)) = answer else { return Ok(()) };
        let entry = &self.handler.entries[place];
        if entry.supervisor.is_some() && entry.has_files {
            return violation(
                Law::A5,
                format!("{} is said to be stopped, and has not put away", name(place)),
            );
        }
        Ok(())
    }
}

fn spec(place: usize, plugin: &str) -> AllocationSpec {
    let task = TaskName::new("plugin").expect("it is a name");
    let plugin = PluginName::new(plugin).expect("it is a name");
    AllocationSpec::new(allocation(place), task, plugin, Role::Node)
}
