//! What happens to drivers, and when.

use super::super::super::drivers::{Conduct, Order};
use super::super::drivers::TASKS;
use super::super::event::DriverDoing;
use super::super::faults::Fault;
use super::Plan;

impl Plan {
    pub(super) fn task(&mut self) -> u8 {
        u8::try_from(self.chance.below(TASKS.into())).unwrap_or(0)
    }

    /// What a host says about a driver or one of its tasks.
    pub(super) fn order(&mut self) -> DriverDoing {
        match self.chance.below(20) {
            0 => DriverDoing::Order(Order::Remove),
            1..=5 => DriverDoing::Order(Order::Add),
            6 => DriverDoing::Order(Order::Restart),
            7..=13 => DriverDoing::Order(Order::Dispense),
            14..=17 => DriverDoing::Task(self.task(), Order::Handle),
            18 => DriverDoing::Task(self.task(), Order::Announce),
            _ => DriverDoing::Task(self.task(), Order::Forget),
        }
    }

    pub(super) fn broken_stream(&mut self) -> DriverDoing {
        let conduct = if self.chance.once_in(2) { Conduct::Refuses } else { Conduct::IsSilent };
        if self.chance.once_in(3) { DriverDoing::Answer(conduct) } else { DriverDoing::Hear(conduct) }
    }

    /// How a driver meets a call. Each way of meeting it badly is a fault of its own.
    pub(super) fn conduct(&mut self, doing: DriverDoing) -> DriverDoing {
        let DriverDoing::Answer(_) = doing else { return doing };
        let ways = [
            (Fault::Hang, Conduct::Hangs),
            (Fault::Die, Conduct::IsSilent),
            (Fault::Lie, Conduct::Lingers),
            (Fault::NotReady, Conduct::IsUnwell),
            (Fault::Fail, Conduct::Refuses),
            (Fault::Fail, Conduct::Declines),
        ];
        let (fault, conduct) = ways[usize::try_from(self.chance.below(6)).unwrap_or(0)];
        DriverDoing::Answer(if self.does(fault, 40) { conduct } else { Conduct::Well })
    }
}
