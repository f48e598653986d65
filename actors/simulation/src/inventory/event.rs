//! The events of an inventory in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType};

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InventoryBounds {
    /// How many CSI plugins there are, at most two. The first was registered before the host started.
    pub plugins: usize,
    /// How often the instances, or the owner of the drivers, report a change of a plugin.
    pub words: u8,
    /// How often the notifications of the instances are cut off, or have a gap.
    pub losses: u8,
    /// How often a client asks for the inventory, or for the first one.
    pub asks: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// Whether drivers are waited for and followed: `exec`, which may be added.
    pub has_drivers: bool,
    /// Whether two allocations are expected to serve the first plugin: `red`, and `blue`, which stands by.
    pub expects: bool,
    /// Whether the inventory has a fault, and knows only the first allocation.
    pub knows_one: bool,
    /// The modes in which it may be asked to stop, once.
    pub stops: &'static [StopMode],
}

impl InventoryBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        plugins: 1,
        words: 0,
        losses: 0,
        asks: 0,
        pauses: 0,
        crashes: 0,
        has_drivers: false,
        expects: false,
        knows_one: false,
        stops: &[],
    };
}

/// A report of the instances about a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// A new instance starts.
    Starts,
    /// It serves.
    Serves,
    /// It does not serve.
    Ails,
    /// It is retiring.
    Retires,
    /// It has left.
    Leaves,
}

impl Word {
    pub(super) const ALL: [Self; 5] = [Self::Starts, Self::Serves, Self::Ails, Self::Retires, Self::Leaves];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Starts => "starts",
            Self::Serves => "serves",
            Self::Ails => "ails",
            Self::Retires => "retires",
            Self::Leaves => "leaves",
        }
    }
}

/// A report of the allocations about an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationWord {
    /// It is prepared.
    Prepared,
    /// It could not be prepared.
    Refused,
    /// It was stopped.
    Gone,
}

impl AllocationWord {
    pub(super) const ALL: [Self; 3] = [Self::Prepared, Self::Refused, Self::Gone];
}

/// A report of the owner of the drivers about `exec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverWord {
    /// It is added.
    Comes,
    /// It serves.
    Serves,
    /// It does not serve.
    Fails,
    /// It finds nothing to drive.
    FindsNothing,
    /// It is being restarted.
    Restarts,
    /// It is removed.
    Leaves,
}

impl DriverWord {
    pub(super) const ALL: [Self; 6] =
        [Self::Comes, Self::Serves, Self::Fails, Self::FindsNothing, Self::Restarts, Self::Leaves];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Comes => "comes",
            Self::Serves => "serves",
            Self::Fails => "fails",
            Self::FindsNothing => "finds nothing",
            Self::Restarts => "restarts",
            Self::Leaves => "leaves",
        }
    }
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InventoryEvent {
    /// The instances report a change of a plugin.
    Say(usize, Word),
    /// The instances report a change of `blue`, which stands by.
    Standby(Word),
    /// The allocations report a change of `blue`.
    Allocation(AllocationWord),
    /// The reports of the allocations arrive.
    DeliverAllocations,
    /// The instances know the state of everything that was registered.
    Settle,
    /// The reports of the instances arrive.
    Deliver,
    /// The reports exceeded the queue of a subscriber: a gap, and a snapshot.
    Lag,
    /// The instances are not running.
    Lose,
    /// The owner of the drivers answers, or is not running.
    Drivers(bool),
    /// The owner of the drivers reports a change of `exec`.
    SayOfDriver(DriverWord),
    /// The reports of the owner of the drivers arrive; or it is not running.
    DeliverDrivers(bool),
    /// A client asks for the inventory.
    Take,
    /// A client waits for the first one.
    AwaitFirst,
}

/// The plugins of the world, in the order of their names.
pub(super) fn plugin(place: usize) -> PluginKey {
    let name = ["btrfs", "zfs"][place.min(1)];
    PluginKey::new(PluginType::CsiNode, PluginName::new(name).expect("it is a name"))
}

/// The allocations that serve the first plugin.
pub(super) fn allocation(name: &str) -> AllocationId {
    AllocationId::new(name).expect("it is a name")
}

/// As a line of a history.
impl fmt::Display for InventoryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say(place, word) => write!(f, "say {} {}", plugin(*place), word.as_str()),
            Self::Standby(word) => write!(f, "say blue {}", word.as_str()),
            Self::Allocation(AllocationWord::Prepared) => f.write_str("blue is prepared"),
            Self::Allocation(AllocationWord::Refused) => f.write_str("blue is refused"),
            Self::Allocation(AllocationWord::Gone) => f.write_str("blue is gone"),
            Self::DeliverAllocations => f.write_str("deliver allocations"),
            Self::Settle => f.write_str("settle"),
            Self::Deliver => f.write_str("deliver"),
            Self::Lag => f.write_str("lag"),
            Self::Lose => f.write_str("lose instances"),
            Self::Drivers(true) => f.write_str("drivers answer"),
            Self::Drivers(false) => f.write_str("lose drivers"),
            Self::SayOfDriver(word) => write!(f, "exec {}", word.as_str()),
            Self::DeliverDrivers(true) => f.write_str("deliver drivers"),
            Self::DeliverDrivers(false) => f.write_str("lose the feed of the drivers"),
            Self::Take => f.write_str("inventory"),
            Self::AwaitFirst => f.write_str("first"),
        }
    }
}
