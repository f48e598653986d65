//! What the ledger holds of an order: something to be done with a volume at its plugin that is no step of a claim and has no inverse.

use std::fmt;
use std::path::PathBuf;

use super::record::Step;
use crate::csi::{Call, CapacityRange, VolumeCapability};

/// What is ordered. Repeating it asks for the result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Order {
    /// Make it larger, at its storage and on this node (C109 to C113, C149 to C153).
    Expand {
        /// How large it is to be.
        range: CapacityRange,
    },
}

impl Order {
    /// Whether one of them waits for the other, or takes its place: they cannot be both under way.
    pub(super) const fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Expand { .. }, Self::Expand { .. }) => true,
        }
    }
}

/// As a sentence begins.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expand { range: CapacityRange { required_bytes, limit_bytes: 0 } } => {
                write!(f, "expand to {required_bytes} bytes")
            }
            Self::Expand { range: CapacityRange { required_bytes, limit_bytes } } => {
                write!(f, "expand to {required_bytes} bytes, at most {limit_bytes}")
            }
        }
    }
}

/// The arguments of `NodeExpandVolume`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrowArgs {
    /// Where it is published.
    pub volume_path: PathBuf,
    /// Where it is staged; `None` for a plugin that does not stage (C151).
    pub staging_path: Option<PathBuf>,
    /// How large it is to be.
    pub range: CapacityRange,
    /// How it is used, as it was published.
    pub capability: VolumeCapability,
}

/// The row of an order. It is on disk from before its first call until its outcome is certain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderRecord {
    /// Its place in the order of those of the volume.
    pub number: u64,
    /// The id of the volume with its plugin. An order of another one is of a volume that had the same name.
    pub volume_id: String,
    /// What is ordered.
    pub order: Order,
    /// How the volume is used, where the call says so (C112).
    pub capability: Option<VolumeCapability>,
    /// The call to the controller. An expansion of which it has answered has the size of the storage, and goes on at the node (C111).
    pub at_controller: Step<(), u64>,
    /// The call to the node, of an expansion.
    pub on_node: Step<GrowArgs, ()>,
}

impl OrderRecord {
    /// How far it is, as a word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match (&self.at_controller, &self.on_node) {
            (_, Step::GoingUp(_)) => "going-up-on-node",
            (_, Step::Unknown(..)) => "unknown-on-node",
            (Step::Up(..), _) => "up-at-controller",
            (at_controller, _) => at_controller.as_str(),
        }
    }

    /// What a restart makes of it (V4).
    pub(super) fn restored(self) -> Self {
        Self { at_controller: self.at_controller.restored(), on_node: self.on_node.restored(), ..self }
    }
}

/// The CSI call of an order, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderCall {
    /// `ControllerExpandVolume`.
    Expand {
        /// How large it is to be.
        range: CapacityRange,
        /// How it is used.
        capability: Option<VolumeCapability>,
    },
    /// `NodeExpandVolume`.
    Grow(GrowArgs),
}

impl OrderCall {
    /// The call.
    #[must_use]
    pub const fn csi(&self) -> Call {
        match self {
            Self::Expand { .. } => Call::ControllerExpandVolume,
            Self::Grow(_) => Call::NodeExpandVolume,
        }
    }
}

/// What the call of an order has brought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Brought {
    /// The storage is this large.
    Expanded {
        /// Its size; zero if the plugin did not say.
        capacity_bytes: u64,
        /// Whether `NodeExpandVolume` has to follow (C111).
        is_node_next: bool,
    },
    /// It has grown on this node.
    Grown {
        /// Its size; zero if the plugin did not say.
        capacity_bytes: u64,
    },
}
