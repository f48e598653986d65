//! The message that places an order for a volume, and its answers.

use std::sync::Arc;
use std::time::Duration;

use super::order::Order;
use super::record::VolumeKey;
use crate::csi::{Snapshot, VolumeGroupSnapshot};
use crate::vocabulary::AllocationId;

/// Places an order for the volume. Answered when the plugin has confirmed it; or with an error. An error never hides a success: an order
/// that was begun continues, and the same message asks for its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlaceOrder {
    /// The order.
    pub order: Order,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// The result of an order that is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Done {
    /// The volume is larger.
    Expanded(Expanded),
    /// The snapshot exists, and volumes can be made from it.
    SnapshotTaken(Arc<Snapshot>),
    /// The snapshot no longer exists.
    SnapshotDeleted,
    /// The parameters of the volume are changed.
    Modified,
    /// The group of snapshots exists, and volumes can be made from each of them.
    GroupTaken(Arc<VolumeGroupSnapshot>),
    /// The group of snapshots no longer exists.
    GroupDeleted,
}

/// A volume that was expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Expanded {
    /// Its size, as its plugin reported it; `None` if it did not.
    pub capacity_bytes: Option<u64>,
    /// Whether it grows on this node only with its next claim: no claim had it published.
    pub is_node_next: bool,
}

/// The reason that an order is not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OrderError {
    /// It breaks a rule.
    #[error("volume {volume}: \"{what}\" cannot be done: {reason}")]
    Invalid {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The fault.
        reason: String,
    },
    /// Its plugin does not have the capability.
    #[error("volume {volume}: \"{what}\" cannot be done: its plugin does not offer {needed}")]
    Unsupported {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The capability, by its name in the specification.
        needed: &'static str,
    },
    /// The volume does not exist at its plugin, is to be deleted, or differs from the request.
    #[error("volume {volume}: \"{what}\" cannot be done: {state}")]
    NotThere {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The reason, and what to do.
        state: &'static str,
        /// Whether its creation or deletion is under way.
        is_transient: bool,
    },
    /// Its plugin does that only while the volume is not in use (C109).
    #[error(
        "volume {volume}: \"{what}\" cannot be done while it is in use, since its plugin expands volumes only offline; it is held by {}: \
         release these claims first",
        listed(holders)
    )]
    InUse {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The allocations that have claims.
        holders: Vec<AllocationId>,
    },
    /// An earlier order of the same kind is not done.
    #[error(
        "volume {volume}: \"{what}\" has to wait until \"{before}\" is done; repeat that one to get its result, or force it"
    )]
    Another {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The earlier order.
        before: String,
    },
    /// The limit of orders or of waiting callers is reached.
    #[error(
        "volume {volume} has {orders} orders and {waiting} callers waiting, and takes no more; try again later"
    )]
    Full {
        /// The volume.
        volume: VolumeKey,
        /// Its orders.
        orders: usize,
        /// Its waiting callers.
        waiting: usize,
    },
    /// Its result was asked for, and it is not under way: it was not ordered, or is done. Nothing was asked of the plugin.
    #[error("volume {volume}: \"{what}\" is not under way; give the id of each of its snapshots to order it")]
    NotOrdered {
        /// The volume.
        volume: VolumeKey,
        /// The order whose result was asked for.
        what: String,
    },
    /// It was not done in time. It continues: ask again.
    #[error("volume {volume}: \"{what}\" is not done in time, {doing}; it goes on, ask again")]
    Pending {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The pending operation, or the condition it waits for.
        doing: String,
    },
    /// The plugin refused it, and nothing has changed.
    #[error("volume {volume}: \"{what}\" is refused: {reason}")]
    Refused {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The reason.
        reason: String,
    },
    /// Its storage is larger, and it has not grown on this node (C152).
    #[error(
        "volume {volume}: \"{what}\" is done at its storage, but not on this node: {reason}; order it again when that is in order"
    )]
    NotOnNode {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The plugin refuses it after a try whose outcome is unknown (V4). It is kept, and resumes when the plugin changes.
    #[error(
        "volume {volume}: whether \"{what}\" was done is unknown: {reason}; retry when the plugin is healthy, or force it"
    )]
    Unclear {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The reason.
        reason: String,
    },
    /// It was forgotten by force before its outcome was certain.
    #[error(
        "volume {volume}: \"{what}\" was forgotten by force: {left}; check at the plugin whether it was done"
    )]
    Forced {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// Everything that may be left.
        left: String,
    },
    /// The host stops. What was begun is in the ledger, and the next start resumes it.
    #[error(
        "volume {volume}: \"{what}\" is not done yet, since the host stops; the next start resumes what was begun"
    )]
    Stopping {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
    },
}

fn listed(holders: &[AllocationId]) -> String {
    holders.iter().map(AllocationId::as_str).collect::<Vec<_>>().join(", ")
}

impl OrderError {
    /// Whether the same order may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NotThere { is_transient, .. } => *is_transient,
            Self::Full { .. }
            | Self::Another { .. }
            | Self::Pending { .. }
            | Self::Unclear { .. }
            | Self::Stopping { .. } => true,
            Self::Invalid { .. }
            | Self::NotOrdered { .. }
            | Self::Unsupported { .. }
            | Self::InUse { .. }
            | Self::Refused { .. }
            | Self::NotOnNode { .. }
            | Self::Forced { .. } => false,
        }
    }
}
