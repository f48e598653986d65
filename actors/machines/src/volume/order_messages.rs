//! The message by which something is ordered of a volume, and its answers.

use std::sync::Arc;
use std::time::Duration;

use super::order::Order;
use super::record::VolumeKey;
use crate::csi::{Snapshot, VolumeGroupSnapshot};
use crate::vocabulary::AllocationId;

/// Orders something of the volume. Answered when the plugin has confirmed it; or with an error, which is never a success in disguise: what
/// was begun goes on, and the same message asks for its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlaceOrder {
    /// What.
    pub order: Order,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// What was ordered is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Done {
    /// It is larger.
    Expanded(Expanded),
    /// The snapshot is there, and volumes can be made from it.
    SnapshotTaken(Arc<Snapshot>),
    /// The snapshot is not there any more.
    SnapshotDeleted,
    /// Its parameters are changed.
    Modified,
    /// The group of snapshots is there, and volumes can be made from each of them.
    GroupTaken(Arc<VolumeGroupSnapshot>),
    /// The group of snapshots is not there any more.
    GroupDeleted,
}

/// A volume that is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Expanded {
    /// Its size, as its plugin said; `None` if it did not say.
    pub capacity_bytes: Option<u64>,
    /// Whether it grows on this node only with its next claim: no claim had it published.
    pub is_node_next: bool,
}

/// Why what was ordered is not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OrderError {
    /// It breaks a rule.
    #[error("volume {volume}: \"{what}\" cannot be done: {reason}")]
    Invalid {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// Its plugin does not have the capability.
    #[error("volume {volume}: \"{what}\" cannot be done: its plugin does not offer {needed}")]
    Unsupported {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// The capability, by its name in the specification.
        needed: &'static str,
    },
    /// The volume does not exist at its plugin, or not for long, or not as it was to be.
    #[error("volume {volume}: \"{what}\" cannot be done: {state}")]
    NotThere {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// Why, and what to do.
        state: &'static str,
        /// Whether its creation or deletion is under way.
        is_transient: bool,
    },
    /// Its plugin does that only while it is not in use (C109).
    #[error(
        "volume {volume}: \"{what}\" cannot be done while it is in use, since its plugin expands volumes only offline; it is held by {}: \
         release these claims first",
        listed(holders)
    )]
    InUse {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// Who has claims.
        holders: Vec<AllocationId>,
    },
    /// Something else of this kind was ordered before, and is not done.
    #[error(
        "volume {volume}: \"{what}\" has to wait until \"{before}\" is done; repeat that one to get its result, or force it"
    )]
    Another {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// What was ordered before.
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
        /// What was asked for.
        what: String,
    },
    /// It was not done in time. It goes on: ask again.
    #[error("volume {volume}: \"{what}\" is not done in time, {doing}; it goes on, ask again")]
    Pending {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// What it waits for.
        doing: String,
    },
    /// The plugin refused it, and nothing has changed.
    #[error("volume {volume}: \"{what}\" is refused: {reason}")]
    Refused {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// Why.
        reason: String,
    },
    /// Its storage is larger, and it has not grown on this node (C152).
    #[error(
        "volume {volume}: \"{what}\" is done at its storage, but not on this node: {reason}; order it again when that is in order"
    )]
    NotOnNode {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// Why.
        reason: String,
    },
    /// The plugin refuses it after a try whose outcome is unknown (V4). It is kept, and goes on when the plugin changes.
    #[error(
        "volume {volume}: whether \"{what}\" was done is unknown: {reason}; retry when the plugin is healthy, or force it"
    )]
    Unclear {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// Why.
        reason: String,
    },
    /// It was forgotten by force before its outcome was certain.
    #[error(
        "volume {volume}: \"{what}\" was forgotten by force: {left}; check at the plugin whether it was done"
    )]
    Forced {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// What may be left.
        left: String,
    },
    /// The host stops. What was begun is in the ledger, and the next start resumes it.
    #[error(
        "volume {volume}: \"{what}\" is not done yet, since the host stops; the next start resumes what was begun"
    )]
    Stopping {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
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
