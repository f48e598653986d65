//! The types of the model.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::driver::{Driver, DriverSpec, EventPosition, TaskKey};
use callboard_actors::drivers::{
    ChildKind, Drivers, DriversAsk, DriversChange, DriversImage, DriversOptions,
};
use callboard_actors::eventor::Eventor;
use callboard_actors::process::ProcessTag;
use callboard_actors::shell::{Ticket, Written};
use callboard_actors::vocabulary::{DriverName, Generation, Timestamp};

use super::super::super::instances::NoDisk;
use super::super::super::stand_in::{Count, Disk, StandIn};
use super::super::super::tamper::Tamper;
use super::super::driver::DriverLaws;
use super::super::eventor::EventorLaws;
use super::super::owner::DriversLaws;

/// The memory of the owner of the drivers that survives a crash.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Memory(pub(super) DriversImage);

impl Disk<Drivers> for Memory {
    fn write(&mut self, _: Ticket, change: DriversChange) -> Written {
        self.0.apply(change);
        Written::Now
    }
}

pub(super) type Owner = StandIn<Drivers, Memory, DriversLaws>;

/// The reaction of a callee to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Conduct {
    /// As required.
    Well,
    /// With a refusal; a stream ends.
    Refuses,
    /// Without an answer: the connection breaks.
    IsSilent,
    /// It does not implement this call; the program of a launch is refused.
    Declines,
    /// Not within the deadline.
    Hangs,
    /// It answers that it is not healthy.
    IsUnwell,
    /// It answers that it ends, and does not.
    Lingers,
}

impl Conduct {
    /// All reactions.
    pub const ALL: [Self; 7] = [
        Self::Well,
        Self::Refuses,
        Self::IsSilent,
        Self::Declines,
        Self::Hangs,
        Self::IsUnwell,
        Self::Lingers,
    ];

    /// The name of the reaction.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Refuses => "refuses",
            Self::IsSilent => "silent",
            Self::Declines => "declines",
            Self::Hangs => "hangs",
            Self::IsUnwell => "unwell",
            Self::Lingers => "lingers",
        }
    }
}

/// The connection that a driver holds.
#[derive(Debug, Clone, Hash)]
pub(super) struct Link {
    pub(super) generation: Generation,
    pub(super) tag: ProcessTag,
    /// The number of the call that opened it. Earlier calls were made over a former connection, and the plugin no longer answers them.
    pub(super) dialed: u64,
    pub(super) is_cut: bool,
}

/// The stream of events that an eventor holds.
#[derive(Debug, Clone, Hash)]
pub(super) struct Stream {
    pub(super) generation: Generation,
    pub(super) after: Option<EventPosition>,
    /// The number of the next event, once the plugin has answered.
    pub(super) cursor: Option<u64>,
}

#[derive(Debug, Clone, Hash)]
pub(super) struct DriverChild {
    pub(super) actor: StandIn<Driver, NoDisk, DriverLaws>,
    pub(super) link: Option<Link>,
    /// Whether the plugin's last report was not healthy.
    pub(super) is_unwell: bool,
}

#[derive(Debug, Clone, Hash)]
pub(super) struct EventorChild {
    pub(super) actor: StandIn<Eventor, NoDisk, EventorLaws>,
    pub(super) stream: Option<Stream>,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum Actor {
    Driver(Box<DriverChild>),
    Eventor(Box<EventorChild>),
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Child {
    /// The number of the driver.
    pub(super) number: u32,
    pub(super) name: DriverName,
    pub(super) actor: Actor,
    /// Its messages that its owner has not received.
    pub(super) mail: VecDeque<DriversAsk>,
    /// How many of its steps have been counted.
    pub(super) counted: Count,
}

/// The messages of a child that has ended.
#[derive(Debug, Clone, Hash)]
pub(super) struct Late {
    pub(super) number: u32,
    pub(super) kind: ChildKind,
    pub(super) mail: VecDeque<DriversAsk>,
}

/// The faults in the machines of a model.
#[derive(Debug, Clone, Default)]
pub struct DriversTampers {
    /// A fault in the owner.
    pub owner: Option<Rc<dyn Tamper<Drivers>>>,
    /// A fault in each driver.
    pub driver: Option<Rc<dyn Tamper<Driver>>>,
    /// A fault in each eventor.
    pub eventor: Option<Rc<dyn Tamper<Eventor>>>,
}

/// The configuration of a model.
#[derive(Debug, Clone)]
pub(in super::super::super) struct DriversModelOptions {
    pub drivers: DriversOptions,
    /// The drivers there are.
    pub specs: Arc<[DriverSpec]>,
    /// The tasks that each of them runs.
    pub tasks: Arc<[TaskKey]>,
    /// One in this many plugins does not number its events; 0: all plugins number them.
    pub unnumbered_every: u32,
    /// How many items wait for one handler.
    pub journal_items: usize,
    pub tampers: DriversTampers,
}

/// A possible next event of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super::super) enum SetOff {
    /// A message of this actor of a driver to the owner.
    Mail(u32, ChildKind),
    /// Endings of actors.
    Endings,
    /// This actor of a driver has a call in flight, or waits for a timer.
    Changed(u32, ChildKind),
}

impl Child {
    pub(super) const fn kind(&self) -> ChildKind {
        match self.actor {
            Actor::Driver(_) => ChildKind::Driver,
            Actor::Eventor(_) => ChildKind::Eventor,
        }
    }

    /// The number of its steps since the last call.
    pub(super) fn count(&mut self) -> u64 {
        let steps = match &self.actor {
            Actor::Driver(child) => child.actor.steps(),
            Actor::Eventor(child) => child.actor.steps(),
        };
        steps - std::mem::replace(&mut self.counted, Count(steps)).0
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        match &self.actor {
            Actor::Driver(child) => child.actor.next_timer(),
            Actor::Eventor(child) => child.actor.next_timer(),
        }
    }
}
