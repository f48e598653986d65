//! The host: its messages about allocations, and the answers to them.

use callboard_actors::allocation::{AllocationSpec, Task};
use callboard_actors::allocations::{
    AdoptAllocation, AllocationsAnswer, AllocationsAsk, PrepareAllocation, StopAllocation, TaskExited,
    TaskStarted,
};
use callboard_actors::vocabulary::{PluginName, Role, TaskName};

use super::super::law::Law;
use super::super::law_checker::{Violation, violation};
use super::super::search::Stage;
use super::event::{HostOrder, name};
use super::scene::{AllocationsScene, allocation};

impl AllocationsScene {
    /// Whether the host could send this now.
    pub(super) fn may_say(stage: &Stage<Self>, place: usize, order: HostOrder) -> bool {
        let known = stage.actor.checker.known(&allocation(place));
        match order {
            HostOrder::Prepare | HostOrder::Adopt | HostOrder::Stop => true,
            HostOrder::PrepareOther | HostOrder::Started => known.is_some(),
            HostOrder::Exited => known.is_some_and(|known| known.task == Task::Running),
            HostOrder::StopEvenIfUsed => stage.left.waits > 0,
        }
    }

    /// The host sends a message.
    pub(super) fn say(&mut self, stage: &mut Stage<Self>, place: usize, order: HostOrder) {
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
        stage.ask(ask);
        self.asked.insert(stage.askers(), place);
    }

    /// A caller may rely on the answer that an allocation is stopped.
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
