//! The events in the small world of one driver, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::Attempt;

use super::model::Conduct;

/// An order of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// The driver is wanted.
    Add,
    /// It is no longer wanted.
    Remove,
    /// It is to be restarted.
    Restart,
    /// A client wants to use it.
    Dispense,
    /// The task is known, and its handler registers later.
    Announce,
    /// A handler of the task registers.
    Handle,
    /// The task is forgotten.
    Forget,
}

impl Order {
    /// The name of the order.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add-driver",
            Self::Remove => "remove-driver",
            Self::Restart => "restart-driver",
            Self::Dispense => "dispense-driver",
            Self::Announce => "announce-task",
            Self::Handle => "watch-task",
            Self::Forget => "forget-task",
        }
    }
}

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriversBounds {
    /// The orders of the host before anything else happens.
    pub begin: &'static [Order],
    /// How many more orders it gives, and which.
    pub orders: (u8, &'static [Order]),
    /// Whether the driver has started without faults and serves before anything else happens.
    pub is_serving: bool,
    /// How many calls return badly, and in which ways.
    pub faults: (u8, &'static [Conduct]),
    /// Whether the driver is pinged while it is watched.
    pub pings: bool,
    /// How often the process exits by itself.
    pub exits: u8,
    /// How often the task has an event.
    pub events: u8,
    /// How many items wait for the handler, and whether it reads only from time to time.
    pub journal: (usize, bool),
    /// Whether the plugin numbers its events.
    pub keeps_positions: bool,
    /// Whether the process survives its host.
    pub survives: bool,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// How many steps or actors crash.
    pub crashes: u8,
    /// Whether messages of actors reach their owner before anything else happens.
    pub is_prompt: bool,
    /// How often the host is killed and started again.
    pub kills: u8,
    /// The modes in which it may be asked to stop.
    pub stops: &'static [StopMode],
}

impl DriversBounds {
    /// A driver starts, without faults.
    pub const NONE: Self = Self {
        begin: &[Order::Add],
        orders: (0, &[]),
        is_serving: false,
        faults: (0, &[]),
        pings: false,
        exits: 0,
        events: 0,
        journal: (8, false),
        keeps_positions: true,
        survives: false,
        pauses: 0,
        crashes: 0,
        is_prompt: false,
        kills: 0,
        stops: &[],
    };
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriversEvent {
    /// A message of an actor reaches the owner.
    Mail(Attempt),
    /// The endings of actors reach the owner.
    Endings,
    /// A call returns in this way.
    Answer(Attempt, u64, Conduct),
    /// The process exits by itself.
    Exit,
    /// The task has an event.
    Happen,
    /// The handler reads.
    Read,
    /// The host gives an order.
    Say(Order),
    /// Time passes until the next timer is due.
    Pass,
    /// The next step of the owner crashes.
    CrashOwner,
    /// The next step of an actor crashes.
    CrashChild(Attempt),
    /// An actor crashes.
    Fall(Attempt),
    /// The host is requested to stop.
    Stop(StopMode),
    /// The host is killed, and another one starts.
    Kill,
}

/// As a line of a history.
impl fmt::Display for DriversEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mail(life) => write!(f, "deliver report life={life}"),
            Self::Endings => f.write_str("deliver endings"),
            Self::Answer(life, number, conduct) => {
                write!(f, "answer life={life} call={number} {}", conduct.as_str())
            }
            Self::Exit => f.write_str("kill exec"),
            Self::Happen => f.write_str("event exec red main"),
            Self::Read => f.write_str("read"),
            Self::Say(order) => write!(f, "{} exec", order.as_str()),
            Self::Pass => f.write_str("pass-until-due"),
            Self::CrashOwner => f.write_str("crash-next drivers"),
            Self::CrashChild(life) => write!(f, "crash-next life={life}"),
            Self::Fall(life) => write!(f, "fall life={life}"),
            Self::Stop(StopMode::Stop) => f.write_str("host stop"),
            Self::Stop(StopMode::Detach) => f.write_str("host detach"),
            Self::Kill => f.write_str("host kill"),
        }
    }
}
