//! The news of a volume, and its status as others see it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::force::{Abandoned, Forced};
use super::group::GroupOrder;
use super::lifecycle::Exists;
use super::record::{Desired, VolumeKey};
use super::shown::LOST;
use crate::csi;
use crate::vocabulary::{AllocationId, PluginName};

/// The status of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimStatus {
    /// The allocation.
    pub allocation: AllocationId,
    /// Its usage of the volume, in words; empty if its row was damaged.
    pub usage: String,
    /// Whether it is held.
    pub desired: Desired,
    /// Whether it comes from an earlier run and was not confirmed (V14).
    pub is_provisional: bool,
    /// Whether its mount was proven in this run (V7).
    pub is_proven: bool,
    /// The state of its publication, as a word; `lost` if its row was damaged.
    pub publish: &'static str,
    /// Its target path; for a claim with a damaged row, the directory above it.
    pub path: PathBuf,
    /// The staging path of the volume that is published there; `None` if its plugin does not stage, or nothing is published.
    pub staged_at: Option<PathBuf>,
    /// The last error of its publication.
    pub error: Option<String>,
}

impl ClaimStatus {
    /// Whether its data beyond the allocation are known: its row was not damaged (RES-08).
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.publish != LOST
    }

    /// Whether it is published, as the plugin has confirmed.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.publish == "up"
    }

    /// Whether it is published, and its mount was proven in this run (V7).
    #[must_use]
    pub fn is_mounted(&self) -> bool {
        self.is_up() && self.is_proven
    }
}

/// The status of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderStatus {
    /// The order, as the beginning of a sentence.
    pub what: String,
    /// The progress, as a word.
    pub state: &'static str,
    /// Whether it waits for the next claim, with nothing to be done before.
    pub is_resting: bool,
    /// The last error.
    pub error: Option<String>,
    /// The name of the snapshot that it takes, if it takes one.
    pub snapshot: Option<String>,
    /// The group of snapshots that it takes, if it takes one.
    pub group: Option<GroupStatus>,
}

/// A group of snapshots that is being taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupStatus {
    /// The order.
    pub order: Arc<GroupOrder>,
    /// Its id with the plugin, if it is taken and not ready yet.
    pub taken: Option<String>,
}

/// The status of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeStatus {
    /// The volume.
    pub key: VolumeKey,
    /// Its plugin.
    pub plugin: PluginName,
    /// Whether it exists.
    pub exists: Exists,
    /// The answer of its plugin when it was created here; `None` for a volume that was not.
    pub created: Option<Arc<csi::Volume>>,
    /// The id of a volume that is to be deleted, while its owner has not reported yet that no other volume here has that id.
    pub deletion_to_allow: Option<String>,
    /// The state of the attachment, as a word.
    pub attach: &'static str,
    /// The state of the staging, as a word.
    pub stage: &'static str,
    /// Its claims, in the order in which they were made.
    pub claims: Vec<ClaimStatus>,
    /// The targets of claims that were given up by force or whose rows were damaged, until they are undone. The volume is not down before.
    pub abandoned: Vec<Abandoned>,
    /// Its orders that are not done, in the order in which they were placed.
    pub orders: Vec<OrderStatus>,
    /// The size of the volume since it was expanded; `None` if this actor has not seen it.
    pub expanded_bytes: Option<u64>,
    /// The current operation, or the condition it waits for.
    pub doing: String,
    /// The last error of its existence, of an abandoned target, of attachment or staging, or of an order.
    pub error: Option<String>,
}

impl VolumeStatus {
    /// Whether there is no claim, nothing is set up, and nothing is to be done about it before the next claim.
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        !self.is_on_node() && self.is_rested() && !self.exists.is_changing()
    }

    /// Whether it is claimed or set up on this node, or may be.
    #[must_use]
    pub fn is_on_node(&self) -> bool {
        !self.claims.is_empty() || !self.abandoned.is_empty() || !self.is_down()
    }

    /// Whether nothing of it is attached or staged.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.attach == "down" && self.stage == "down"
    }

    /// Whether nothing is to be done for an order before the next claim.
    pub(super) fn is_rested(&self) -> bool {
        self.orders.iter().all(|order| order.is_resting)
    }
}

impl fmt::Display for VolumeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exists != Exists::Registered {
            write!(f, "{}, ", self.exists)?;
        }
        write!(f, "attach {}, stage {}", self.attach, self.stage)?;
        for claim in &self.claims {
            let marks = [
                (claim.desired == Desired::Released, " released"),
                (claim.is_provisional, " provisional"),
                (claim.is_proven, " proven"),
            ];
            write!(f, "; {} {}", claim.allocation, claim.publish)?;
            marks.iter().filter(|(is, _)| *is).try_for_each(|(_, mark)| f.write_str(mark))?;
        }
        // One claim may have left many targets.
        let abandoned: BTreeSet<_> = self.abandoned.iter().map(|target| &target.allocation).collect();
        abandoned.into_iter().try_for_each(|allocation| write!(f, "; {allocation} abandoned"))?;
        self.orders.iter().try_for_each(|order| write!(f, "; {} {}", order.what, order.state))?;
        write!(f, " ({})", self.doing)
    }
}

/// The news of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeNews {
    /// It has changed. Shared, since a copy goes to each subscriber.
    Changed(Arc<VolumeStatus>),
    /// A claim that was held could not be set up again, or for the first time; it is undone.
    ClaimFailed {
        /// The allocation.
        allocation: AllocationId,
        /// The reason.
        reason: String,
    },
    /// An order is not done, and not retried.
    OrderFailed {
        /// The order.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The recorded mount at a path is gone, or another mount is there: it is undone and set up again (V7).
    MountLost {
        /// The path.
        path: PathBuf,
        /// The recorded mount, and the mount that is there now.
        reason: String,
    },
    /// The audit of a forced release (V9).
    Forced(Forced),
}
