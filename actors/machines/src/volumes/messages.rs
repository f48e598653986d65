//! The messages of the owner of the volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::errors::{
    AwaitUnusedError, ClaimError, ConfirmError, CreateError, DeleteError, ForceError, ForgetVolumeError,
    RegisterVolumeError, ReleaseError,
};
use super::news::VolumeReport;
use super::order_errors::OrderError;
use super::reads::{
    DescribeGroupSnapshot, GetCapacity, ListSnapshots, ListVolumesOfPlugin, ReadError, ValidateVolume,
    Validated, VolumeStatistics, VolumeStats,
};
use super::reasons::UnknownVolume;
use super::state::{KnownVolume, Volumes};
use crate::conversation;
use crate::csi::{
    CapacityRange, GetCapacityResponse, ListSnapshotsResponse, ListVolumesResponse, Snapshot,
    VolumeGroupSnapshot,
};
use crate::vocabulary::{AllocationId, Attempt, PluginName};
use crate::volume::{
    Claimed, ClaimsConfirmed, Created, Deleted, Expanded, ForceScope, Forced, NewVolume, ObservedEnd,
    Released, Usage, VolumeKey, VolumeNews,
};

/// Makes a volume known, so that it can be claimed. Idempotent. Other contents replace the former ones, unless the volume is in use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RegisterVolume {
    /// The volume.
    pub volume: KnownVolume,
}

/// The change by a registration of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumeRegistered {
    /// It was unknown.
    New,
    /// It was known with these contents.
    Unchanged,
    /// It was known with other contents.
    Replaced,
}

/// Forgets a volume that is not in use. Nothing is deleted at the plugin. Idempotent: the answer is whether it was known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForgetVolume {
    /// The volume.
    pub volume: VolumeKey,
}

/// Creates a volume at its plugin. Answered when it exists; from then on it is known. Repeating it is harmless: it asks for the result of
/// the creation that was begun, and never creates a second volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateVolume {
    /// Its identity on this host.
    pub volume: VolumeKey,
    /// The plugin.
    pub plugin: PluginName,
    /// The requested volume.
    pub new: NewVolume,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Deletes a volume at its plugin. Answered when that is confirmed; from then on it is not known. A volume that is claimed, or set up on
/// this node, is not deleted. Repeating it is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeleteVolume {
    /// The volume.
    pub volume: VolumeKey,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Expands a volume: at its storage, and on this node where it is published. Answered when its plugin has confirmed that. The expansion
/// continues when the caller stops waiting, and the same message asks for its result. Claims continue meanwhile, unless the plugin expands
/// volumes only offline (C109 to C113). A volume never becomes smaller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExpandVolume {
    /// The volume.
    pub volume: VolumeKey,
    /// The requested size.
    pub capacity: CapacityRange,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Takes a snapshot of a volume. Answered when it is ready, so that volumes can be made from it. The plugin receives this name in every
/// try: repeating the message is harmless, and asks for the same snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateSnapshot {
    /// The volume.
    pub volume: VolumeKey,
    /// The name of the snapshot with the plugin.
    pub name: String,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Deletes a snapshot. Answered when that is confirmed. Repeating it is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeleteSnapshot {
    /// The volume of the snapshot, or another one of its plugin if that is gone: its ledger keeps the order until it is done.
    pub volume: VolumeKey,
    /// The id of the snapshot with the plugin.
    pub snapshot_id: String,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Takes snapshots of several volumes of one plugin at one point in time. Answered when all of them are ready. The plugin receives this
/// name in every try: repeating the message is harmless, and asks for the same group. The ledger of the first of the volumes by key keeps
/// the order, and the secrets are that volume's (C106).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateGroupSnapshot {
    /// The volumes, each once.
    pub volumes: Vec<VolumeKey>,
    /// The name of the group with the plugin.
    pub name: String,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
    /// The time to wait for the answer.
    pub within: Duration,
}

impl CreateGroupSnapshot {
    /// The volume whose ledger keeps the order. `None` if the request names no volume.
    #[must_use]
    pub fn keeper(&self) -> Option<&VolumeKey> {
        self.volumes.iter().min()
    }
}

/// Deletes a group of snapshots with all of them. Answered when that is confirmed. Repeating it is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeleteGroupSnapshot {
    /// The first of its volumes by key, with whose secrets it was taken (C106), or another volume of its plugin if that is gone: its ledger
    /// keeps the order until it is done.
    pub volume: VolumeKey,
    /// The id of the group with the plugin.
    pub group_snapshot_id: String,
    /// The ids of all of its snapshots (C106), as [`DescribeGroupSnapshot`] returns them. Empty asks for the result of a deletion that was
    /// ordered for the same volume and is not done: some snapshots may be deleted already, and no caller can list all of them then.
    pub snapshot_ids: BTreeSet<String>,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Changes parameters of a volume. Answered when the plugin has confirmed that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModifyVolume {
    /// The volume.
    pub volume: VolumeKey,
    /// The parameters to change, and no others (C096).
    pub parameters: BTreeMap<String, String>,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Claims a volume for an allocation. Answered when its mount is proven; or with an error. An error never hides a success: an operation
/// that was begun continues, and the same message asks for its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The volume.
    pub volume: VolumeKey,
    /// The allocation that will own the claim.
    pub allocation: AllocationId,
    /// Its usage of the volume.
    pub usage: Usage,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Releases the claim of an allocation. Answered when its target is confirmed down and, if no other claim is left, the whole volume
/// on this node. The release continues when the caller stops waiting (V9, V15). Repeating it is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    /// The volume.
    pub volume: VolumeKey,
    /// The allocation.
    pub allocation: AllocationId,
    /// The reason that no process uses the volume (V8).
    pub observed: ObservedEnd,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Releases all claims of an allocation. Answered when each of them is released, or its time is over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationEnded {
    /// The allocation.
    pub allocation: AllocationId,
    /// The reason that no process uses its volumes (V8).
    pub observed: ObservedEnd,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// The fate of one claim of an allocation that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeReleased {
    /// The volume.
    pub volume: VolumeKey,
    /// Whether it is released.
    pub result: Result<Released, ReleaseError>,
}

/// Reports which allocations may have processes, after a restart of the host: their claims are confirmed, and other claims of an earlier
/// run are released (V14). Claims of this run are not touched. The report is remembered for volumes that cannot be asked now; repeat it if
/// the answer names such a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConfirmClaims {
    /// The allocations.
    pub living: BTreeSet<AllocationId>,
    /// The allocations for which that is not known yet: their claims stay provisional. Repeat the message without them when it is known.
    pub unclear: BTreeSet<AllocationId>,
}

/// The fate of the claims of an earlier run to one volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeConfirmed {
    /// The volume.
    pub volume: VolumeKey,
    /// The claims that are held and that are undone, or the reason that this is unknown.
    pub result: Result<ClaimsConfirmed, ConfirmError>,
}

/// Gives up waiting for a confirmation, and forgets steps that may still be up (V9). No call is cancelled and no directory removed; the
/// audit lists what may be left. Only released claims can be forced, and orders that are not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForceRelease {
    /// The volume.
    pub volume: VolumeKey,
    /// The claims, steps or orders to forget.
    pub scope: ForceScope,
    /// The operator and the reason, for the audit.
    pub reason: String,
}

/// Queries one volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DescribeVolume {
    /// The volume.
    pub volume: VolumeKey,
}

/// Queries all volumes that are known or in use, ordered by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListVolumes;

/// Waits until no volume of a plugin is claimed or set up on this node: then the plugin may stop (V13). It waits for the releases, and
/// causes none. Meanwhile, and until the plugin has left or 5 s have passed after the answer that it is unused, new claims and new volumes
/// of it are refused with transient errors: so they neither prolong the wait nor reach a plugin that stops. When another instance serves
/// the plugin they are taken again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AwaitUnused {
    /// The plugin.
    pub plugin: PluginName,
    /// The timeout; zero asks for the present state, and refuses nothing.
    pub within: Duration,
}

/// The news of a volume's actor to its owner. From any other sender it has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeReported {
    /// The volume.
    pub volume: VolumeKey,
    /// The life of the actor; a late report of an earlier life is ignored (REG-08).
    pub life: Attempt,
    /// The news.
    pub news: VolumeNews,
}

conversation! {
    /// The messages of the owner of the volumes.
    #[derive(Clone, Hash)]
    pub enum VolumesAsk -> #[derive(Hash)] VolumesAnswer for Volumes {
        RegisterVolume => Result<VolumeRegistered, RegisterVolumeError>,
        ForgetVolume => Result<bool, ForgetVolumeError>,
        CreateVolume => Result<Created, CreateError>,
        DeleteVolume => Result<Deleted, DeleteError>,
        ExpandVolume => Result<Expanded, OrderError>,
        CreateSnapshot => Result<Arc<Snapshot>, OrderError>,
        DeleteSnapshot => Result<(), OrderError>,
        ModifyVolume => Result<(), OrderError>,
        CreateGroupSnapshot => Result<Arc<VolumeGroupSnapshot>, OrderError>,
        DeleteGroupSnapshot => Result<(), OrderError>,
        DescribeGroupSnapshot => Result<VolumeGroupSnapshot, ReadError>,
        ListVolumesOfPlugin => Result<ListVolumesResponse, ReadError>,
        GetCapacity => Result<GetCapacityResponse, ReadError>,
        ValidateVolume => Result<Validated, ReadError>,
        ListSnapshots => Result<ListSnapshotsResponse, ReadError>,
        VolumeStats => Result<VolumeStatistics, ReadError>,
        Claim => Result<Claimed, ClaimError>,
        Release => Result<Released, ReleaseError>,
        AllocationEnded => Vec<VolumeReleased>,
        ConfirmClaims => Vec<VolumeConfirmed>,
        ForceRelease => Result<Forced, ForceError>,
        DescribeVolume => Result<VolumeReport, UnknownVolume>,
        ListVolumes => Vec<VolumeReport>,
        AwaitUnused => Result<(), AwaitUnusedError>,
        VolumeReported => (),
    }
}
