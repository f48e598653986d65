//! Plans the events of drivers.

use callboard_actors::vocabulary::Timestamp;

use super::super::super::drivers::{Conduct, Order};
use super::super::drivers::TASKS;
use super::super::event::{DriverDoing, EventKind};
use super::super::faults::Fault;
use super::super::host_model::HostModel;
use super::agenda::Planned;
use super::{Plan, micros};

/// A planned event of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DriverTurn {
    /// The host gives an order for it.
    Order,
    /// One of its tasks has an event.
    Happen,
    /// Handlers of its tasks read.
    Read,
    /// A message of one of its actors arrives.
    Mail(DriverDoing),
}

impl Plan {
    pub(super) fn begin_drivers(&mut self, host_model: &HostModel) {
        for driver in 0..host_model.drivers_model.drivers() {
            for turn in [DriverTurn::Order, DriverTurn::Happen, DriverTurn::Read] {
                let within = self.random.below(1_000_000);
                self.add(host_model.now + micros(within), Planned::Driver(driver, turn));
            }
        }
    }

    pub(super) fn turn_of_driver(&mut self, at: Timestamp, driver: u32, turn: DriverTurn) -> EventKind {
        let pause = match turn {
            DriverTurn::Order => 500_000 + self.random.below(6_000_000),
            DriverTurn::Happen => 5_000 + self.random.below(300_000),
            DriverTurn::Read => 20_000 + self.random.below(1_500_000),
            // It is not repeated.
            DriverTurn::Mail(mail) => return EventKind::Driver(driver, mail),
        };
        self.add(at + micros(pause), Planned::Driver(driver, turn));
        let doing = match turn {
            DriverTurn::Order => self.order(),
            DriverTurn::Happen => DriverDoing::Event(self.task()),
            DriverTurn::Read => DriverDoing::Read,
            DriverTurn::Mail(mail) => mail,
        };
        EventKind::Driver(driver, doing)
    }

    /// A spontaneous fault of a driver, if one happens.
    pub(super) fn driver_breaks(&mut self) -> Option<DriverDoing> {
        if self.does(Fault::Exit, 6) {
            return Some(DriverDoing::Exit);
        }
        self.does(Fault::Stream, 2).then(|| self.broken_stream())
    }

    fn task(&mut self) -> u8 {
        u8::try_from(self.random.below(TASKS.into())).unwrap_or(0)
    }

    /// An order of a host for a driver or one of its tasks.
    fn order(&mut self) -> DriverDoing {
        match self.random.below(20) {
            0 => DriverDoing::Order(Order::Remove),
            1..=5 => DriverDoing::Order(Order::Add),
            6 => DriverDoing::Order(Order::Restart),
            7..=13 => DriverDoing::Order(Order::Dispense),
            14..=17 => DriverDoing::Task(self.task(), Order::Handle),
            18 => DriverDoing::Task(self.task(), Order::Announce),
            _ => DriverDoing::Task(self.task(), Order::Forget),
        }
    }

    fn broken_stream(&mut self) -> DriverDoing {
        let conduct = if self.random.once_in(2) { Conduct::Refuses } else { Conduct::IsSilent };
        if self.random.once_in(3) { DriverDoing::Answer(conduct) } else { DriverDoing::Hear(conduct) }
    }

    /// The behaviour of a driver in a call. Each bad behaviour is a fault of its own.
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
        DriverDoing::Answer(self.meets(&ways, 40, Conduct::Well))
    }
}
