//! The messages of a volume.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::force::{ForceError, ForceRelease, Forced, PrepareForce};
use super::lifecycle::{
    AllowDeletion, CreateError, CreateVolume, Created, DeleteError, DeleteVolume, Deleted, Disown,
};
use super::news::VolumeStatus;
use super::order_messages::{Done, OrderError, PlaceOrder};
use super::outcome::Route;
use super::record::{Usage, VolumeKey};
use super::state::Volume;
use crate::conversation;
use crate::vocabulary::{AllocationId, Generation};

/// Claims the volume for an allocation. Answered when its mount is proven; or with an error. An error never hides a success: an operation
/// that was begun continues, and the same message asks for its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The allocation that will own the claim.
    pub allocation: AllocationId,
    /// Its usage of the volume.
    pub usage: Usage,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// A claim that is held, with its proven mount.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claimed {
    /// The path where the allocation finds the volume.
    pub path: PathBuf,
    /// Whether it is a block device.
    pub is_block: bool,
    /// Whether it is to be read only, as the claim requests. The plugin is asked to publish it so; whether it has done that is not checked,
    /// and of a block device the node alone may be closed to writing.
    pub read_only: bool,
    /// The generation of the plugin that published it.
    pub generation: Generation,
}

/// The reason that a volume is not claimed. Nothing is held afterwards, unless the variant states otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ClaimError {
    /// Another allocation holds it in a way that excludes this claim (V12).
    #[error(
        "volume {volume} is held by {holder}: {reason}; {}",
        if *is_releasing { "it is being released, try again later" } else { "it can be claimed once that is released" }
    )]
    Held {
        /// The volume.
        volume: VolumeKey,
        /// The holder.
        holder: AllocationId,
        /// Whether its claim is being undone.
        is_releasing: bool,
        /// The reason that excludes the claim.
        reason: &'static str,
    },
    /// It may still be mounted for an allocation whose claim was given up, or whose row was damaged, in a way that excludes this claim
    /// (V12).
    #[error(
        "volume {volume} may still be mounted for {holder}, whose claim was given up or lost: {reason}; its status shows \
         what is tried about that, and it can be claimed when that has ended, or when the whole volume is given up by force"
    )]
    Abandoned {
        /// The volume.
        volume: VolumeKey,
        /// The allocation that had that claim.
        holder: AllocationId,
        /// The reason that excludes the claim.
        reason: &'static str,
    },
    /// An earlier claim of the allocation is being undone, or its release has no answer yet.
    #[error("volume {volume} is still being released for {allocation}; try again later")]
    Leaving {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
    },
    /// The allocation holds it with another usage.
    #[error("allocation {allocation} holds volume {volume} with another usage; release that claim first")]
    OtherUsage {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
    },
    /// The usage breaks a rule, or the plugin cannot do it.
    #[error("volume {volume} cannot be claimed like this: {reason}")]
    Invalid {
        /// The volume.
        volume: VolumeKey,
        /// The fault, and the violated rule.
        reason: String,
    },
    /// It does not exist at its plugin, is to be deleted, or differs from the request.
    #[error("volume {volume} cannot be claimed: {state}")]
    NotThere {
        /// The volume.
        volume: VolumeKey,
        /// The reason, and what to do.
        state: &'static str,
        /// Whether its creation or deletion is under way.
        is_transient: bool,
    },
    /// The limit of claims or of waiting callers is reached.
    #[error(
        "volume {volume} has {held} claims and {waiting} callers waiting, and takes no more; try again later"
    )]
    Full {
        /// The volume.
        volume: VolumeKey,
        /// Its claims.
        held: usize,
        /// Its waiting callers.
        waiting: usize,
    },
    /// It was not set up in time. The claim is held and the operation continues: ask again, or release it (V15).
    #[error(
        "volume {volume} is not ready for allocation {allocation} in time, {doing}; ask again, or release the claim"
    )]
    Pending {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
        /// The pending operation, or the condition it waits for.
        doing: String,
    },
    /// It is published and the kernel does not prove it (V7). The claim is held: ask again, or release it.
    #[error(
        "volume {volume} is published at {path} and cannot be proven: {reason}; ask again, or release the claim"
    )]
    Unproven {
        /// The volume.
        volume: VolumeKey,
        /// The path.
        path: PathBuf,
        /// The result of the look.
        reason: String,
    },
    /// It cannot be set up. What was begun is undone.
    #[error("volume {volume} cannot be set up for allocation {allocation}: {reason}")]
    Failed {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
        /// The step that failed, and why.
        reason: String,
    },
    /// It was released while it was set up.
    #[error("the claim of allocation {allocation} to volume {volume} was released while it was set up")]
    Released {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
    },
    /// The host stops. An accepted claim stays in the ledger.
    #[error("cannot set up volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

impl ClaimError {
    /// Whether the same claim may succeed later. If it is refused because the host stops, that is in the next run of the host.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            // The holder releases it eventually.
            Self::Held { .. } | Self::Abandoned { .. } | Self::Leaving { .. } => true,
            Self::NotThere { is_transient, .. } => *is_transient,
            Self::Full { .. } | Self::Pending { .. } | Self::Unproven { .. } | Self::Stopping { .. } => true,
            Self::OtherUsage { .. } | Self::Invalid { .. } | Self::Failed { .. } | Self::Released { .. } => {
                false
            }
        }
    }
}

/// The observed end of the processes of an allocation. A request to stop is not an observation (V8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObservedEnd {
    /// Its last process has exited.
    Exited,
    /// It never had a process.
    NeverStarted,
}

/// Releases the claim of an allocation. Answered when its target is confirmed down and, if no other claim is left, the whole volume on this
/// node. The release itself is durable and continues even if the caller is gone (V9, V15). Repeating it is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    /// The allocation.
    pub allocation: AllocationId,
    /// The reason that no process uses the volume (V8).
    pub observed: ObservedEnd,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// A claim is undone, as confirmed by plugin and kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Released {
    /// Whether there was a claim.
    pub was_held: bool,
    /// The allocations that still have claims. If none, the volume is completely undone on this node, and may be used elsewhere (SHD-05).
    pub others: Vec<AllocationId>,
    /// Whether an order of the volume, such as a snapshot, is not done and continues.
    pub has_orders: bool,
}

/// The reason that a release is not confirmed. The release continues, unless it was given up by force.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReleaseError {
    /// It takes longer.
    #[error("volume {volume} is not released yet: {doing}; the release goes on: ask again, or force it")]
    Pending {
        /// The volume.
        volume: VolumeKey,
        /// The pending operation, or the condition it waits for.
        doing: String,
    },
    /// The plugin refused to undo it, and would again. The release is recorded.
    #[error(
        "volume {volume} is not released yet: {reason}; it is retried only when the plugin changes or the release is requested \
        again; or force it"
    )]
    Refused {
        /// The volume.
        volume: VolumeKey,
        /// The step that was refused, and why.
        reason: String,
    },
    /// It was given up by force before it was confirmed (V9).
    #[error(
        "the release of volume {volume} was ended by force, and the host will not undo what may be left: {left}; undo it by hand"
    )]
    Forced {
        /// The volume.
        volume: VolumeKey,
        /// Everything that may be left.
        left: String,
    },
    /// The host stops. The release is in the ledger, and the next start resumes it.
    #[error("volume {volume} is not released yet, since the host stops; the next start resumes it")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

/// Reports which allocations may have processes, after a restart of the host: their claims are confirmed, and other claims of an earlier
/// run are released (V14). Claims of this run are not touched, nor claims whose rows were damaged: their run is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConfirmClaims {
    /// The allocations. Shared by the messages to all volumes.
    pub living: Arc<BTreeSet<AllocationId>>,
    /// The allocations for which that is not known yet: their claims stay as they are. Shared in the same way.
    pub unclear: Arc<BTreeSet<AllocationId>>,
}

/// The fate of the claims of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ClaimsConfirmed {
    /// These are held.
    pub confirmed: Vec<AllocationId>,
    /// These are being undone.
    pub released: Vec<AllocationId>,
}

/// The owner reports the destination of calls from now on: a new generation, or none (RES-05).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteChanged {
    /// The route.
    pub route: Route,
}

/// Queries the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribeVolume;

conversation! {
    /// The messages of a volume.
    #[derive(Clone, Hash)]
    pub enum VolumeAsk -> #[derive(Clone, Hash)] VolumeAnswer for Volume {
        CreateVolume => Result<Created, CreateError>,
        DeleteVolume => Result<Deleted, DeleteError>,
        AllowDeletion => (),
        Disown => bool,
        PlaceOrder => Result<Done, OrderError>,
        Claim => Result<Claimed, ClaimError>,
        Release => Result<Released, ReleaseError>,
        ConfirmClaims => ClaimsConfirmed,
        PrepareForce => Result<(), ForceError>,
        ForceRelease => Result<Forced, ForceError>,
        RouteChanged => (),
        DescribeVolume => Arc<VolumeStatus>,
    }
}
