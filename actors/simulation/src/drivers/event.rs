//! What can happen in the small world of one driver, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::Attempt;

use super::model::Conduct;

/// What a host can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// The driver is wanted.
    Add,
    /// It is not wanted any more.
    Remove,
    /// It is to be brought anew.
    Restart,
    /// A client wants to use it.
    Dispense,
    /// The task is known, and its handler comes later.
    Announce,
    /// A handler of the task comes.
    Handle,
    /// The task is forgotten.
    Forget,
}

impl Order {
    /// The word for it.
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

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriversBounds {
    /// What the host has said before anything else happens.
    pub begin: &'static [Order],
    /// How often it says more, and what.
    pub orders: (u8, &'static [Order]),
    /// Whether everything has gone well until the driver served, before anything else happens.
    pub is_serving: bool,
    /// How many calls come back in another way than well, and in which.
    pub faults: (u8, &'static [Conduct]),
    /// Whether the driver is pinged while it is watched.
    pub pings: bool,
    /// How often the process ends of itself.
    pub exits: u8,
    /// How often something happens to the task.
    pub events: u8,
    /// How many items wait for the handler, and whether it reads only now and then.
    pub journal: (usize, bool),
    /// Whether the plugin numbers its events.
    pub keeps_positions: bool,
    /// Whether the process survives its host.
    pub survives: bool,
    /// How often time passes until something is due.
    pub pauses: u8,
    /// How many steps crash, or actors fall.
    pub crashes: u8,
    /// Whether what actors say reaches their owner before anything else happens.
    pub is_prompt: bool,
    /// How often the host is killed and started again.
    pub kills: u8,
    /// How it may be told to stop.
    pub stops: &'static [StopMode],
}

impl DriversBounds {
    /// A driver comes, and nothing goes wrong.
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

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriversEvent {
    /// What an actor said reaches the owner.
    Mail(Attempt),
    /// Word of ended actors reaches the owner.
    Endings,
    /// A call comes back.
    Answer(Attempt, u64, Conduct),
    /// The process ends of itself.
    Exit,
    /// Something happens to the task.
    Happen,
    /// The handler reads.
    Read,
    /// The host says something.
    Say(Order),
    /// Time passes until something is due.
    Pass,
    /// The next step of the owner crashes.
    CrashOwner,
    /// The next step of an actor crashes.
    CrashChild(Attempt),
    /// An actor falls.
    Fall(Attempt),
    /// The host is requested to stop.
    Stop(StopMode),
    /// The host is killed, and another one begins.
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
