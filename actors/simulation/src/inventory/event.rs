//! What can happen to an inventory in a small world, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::{PluginKey, PluginName, PluginType};

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InventoryBounds {
    /// How many plugins there are, at most two. The first was registered before the host started.
    pub plugins: usize,
    /// How often the instances have something to say of a plugin.
    pub words: u8,
    /// How often the news of the instances are cut off, or leave a gap.
    pub losses: u8,
    /// How often somebody asks for the inventory, or for the first one.
    pub asks: u8,
    /// How often time passes until something is due.
    pub pauses: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// Whether drivers are waited for.
    pub has_drivers: bool,
    /// In which ways it may be told to stop, once.
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
        stops: &[],
    };
}

/// What the instances say of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// A new instance begins.
    Starts,
    /// It serves.
    Serves,
    /// It does not serve.
    Ails,
    /// It is on its way out.
    Retires,
    /// It has left.
    Leaves,
}

impl Word {
    pub(super) const ALL: [Self; 5] = [Self::Starts, Self::Serves, Self::Ails, Self::Retires, Self::Leaves];
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InventoryEvent {
    /// The instances say something of a plugin.
    Say(usize, Word),
    /// The instances know what became of everything that was registered.
    Settle,
    /// What the instances said arrives.
    Deliver,
    /// More was said than waits for anybody: a gap, and a snapshot.
    Lag,
    /// The instances are not there.
    Lose,
    /// The owner of the drivers answers, or is not there.
    Drivers(bool),
    /// Somebody asks for the inventory.
    Take,
    /// Somebody waits for the first one.
    AwaitFirst,
}

/// The plugins of the world, in the order of their names.
pub(super) fn plugin(place: usize) -> PluginKey {
    let name = ["btrfs", "zfs"][place.min(1)];
    PluginKey::new(PluginType::CsiNode, PluginName::new(name).expect("it is a name"))
}

/// As a line of a history.
impl fmt::Display for InventoryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say(place, word) => {
                let word = match word {
                    Word::Starts => "starts",
                    Word::Serves => "serves",
                    Word::Ails => "ails",
                    Word::Retires => "retires",
                    Word::Leaves => "leaves",
                };
                write!(f, "say {} {word}", plugin(*place))
            }
            Self::Settle => f.write_str("settle"),
            Self::Deliver => f.write_str("deliver"),
            Self::Lag => f.write_str("lag"),
            Self::Lose => f.write_str("lose instances"),
            Self::Drivers(true) => f.write_str("drivers answer"),
            Self::Drivers(false) => f.write_str("lose drivers"),
            Self::Take => f.write_str("inventory"),
            Self::AwaitFirst => f.write_str("first"),
        }
    }
}
