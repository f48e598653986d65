//! The events of the instances of one plugin, and their bounds.

use std::fmt;

use callboard_actors::vocabulary::Attempt;

use super::model::InFlight;
use super::plugins::Behaviour;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstancesBounds {
    /// How often the registry routes the plugin elsewhere or nowhere.
    pub routes: u8,
    /// How often another allocation registers and stands by, or a standby takes over.
    pub standbys: u8,
    /// How many of these may be registrations; `None` for all of them.
    pub joins: Option<u8>,
    /// How many connections end.
    pub hangups: u8,
    /// How many calls the plugin answers badly, in each of these ways.
    pub faults: u8,
    /// The possible bad behaviours.
    pub behaviours: &'static [Behaviour],
    /// How often a client wants the plugin, or a look at it, or a notification that it has retired.
    pub asks: u8,
    /// How often a client waits until an allocation has been healthy for a while.
    pub gates: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// How many steps or instances crash.
    pub crashes: u8,
    /// How often the supervisor of the instances ends, and its own supervisor starts another.
    pub successors: u8,
    /// Whether all are requested to stop at some instant.
    pub stops: bool,
}

impl InstancesBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        routes: 0,
        standbys: 0,
        joins: None,
        hangups: 0,
        faults: 0,
        behaviours: &[],
        asks: 0,
        gates: 0,
        pauses: 0,
        crashes: 0,
        successors: 0,
        stops: false,
    };
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstancesEvent {
    /// Another allocation replaces the active one, or the active one leaves and a standby takes over.
    Route(bool),
    /// Another allocation registers, and stands by.
    Join,
    /// A standby takes over, and the active one stands by.
    TakeOver,
    /// The connection of an instance ends.
    HangUp(Attempt),
    /// A message in flight arrives.
    Deliver(InFlight),
    /// The plugin answers a call in this way.
    Answer(Attempt, u64, Behaviour),
    /// A client wants the plugin.
    Dispense,
    /// A client wants a look at it.
    Check,
    /// A client waits until it has retired.
    AwaitRetired,
    /// A client waits until the latest allocation has been healthy for a while.
    AwaitHealthy,
    /// Time passes until the next timer is due.
    Pass,
    /// The next step of the supervisor crashes.
    CrashParent,
    /// The supervisor ends with all instances, and a successor is started.
    Succeed,
    /// The next step of an instance crashes.
    CrashChild(Attempt),
    /// An instance crashes.
    Fall(Attempt),
    /// All are requested to stop.
    Stop,
}

/// As a line of a history.
impl fmt::Display for InstancesEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(true) => f.write_str("route next"),
            Self::Route(false) => f.write_str("route none"),
            Self::Join => f.write_str("join"),
            Self::TakeOver => f.write_str("take-over"),
            Self::HangUp(life) => write!(f, "hang-up life={life}"),
            Self::Deliver(InFlight::Feed) => f.write_str("deliver feed"),
            Self::Deliver(InFlight::Report(life)) => write!(f, "deliver report life={life}"),
            Self::Deliver(InFlight::Endings) => f.write_str("deliver endings"),
            Self::Answer(life, number, behaviour) => {
                write!(f, "answer life={life} call={number} {}", behaviour.as_str())
            }
            Self::Dispense => f.write_str("dispense csi-node/zfs 20"),
            Self::Check => f.write_str("check csi-node/zfs"),
            Self::AwaitRetired => f.write_str("await-retired"),
            Self::AwaitHealthy => f.write_str("await-healthy"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::CrashParent => f.write_str("crash-next instances"),
            Self::Succeed => f.write_str("succeed instances"),
            Self::CrashChild(life) => write!(f, "crash-next instance life={life}"),
            Self::Fall(life) => write!(f, "kill instance life={life}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}
