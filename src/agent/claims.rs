//! The requests of the agent to the owner of volumes: to claim them for an allocation, or to release them at its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::agent::{AllocationVolume, ClaimTrouble, Unreleased};
use callboard_actors::vocabulary::AllocationId;
use callboard_actors::volume::{ObservedEnd, VolumeKey};
use futures_util::future::LocalBoxFuture;

/// Claims the volumes of allocations, and releases them. Claims belong to the allocation, not to one of its processes.
pub trait VolumeClaims: 'static {
    /// Claims all these volumes for an allocation, and answers with the proven path of each (V7). Idempotent; each call proves each mount
    /// again. After an error it may hold some of them, until `ended`. When the future is dropped, it sends nothing more.
    fn claim(
        &self,
        user: AllocationId,
        volumes: Vec<AllocationVolume>,
        within: Duration,
    ) -> LocalBoxFuture<'static, Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>>;

    /// Releases all volumes of an allocation that has no process left (V8). Answers when that is confirmed, or, after this time, with the
    /// reason why it is not; the release then continues, unless the request never arrived. Idempotent.
    fn ended(
        &self,
        user: AllocationId,
        observed: ObservedEnd,
        within: Duration,
    ) -> LocalBoxFuture<'static, Result<(), Unreleased>>;
}

/// For a program without volumes: refuses every claim.
#[derive(Debug, Clone, Copy)]
pub struct NoVolumes;

impl VolumeClaims for NoVolumes {
    fn claim(
        &self,
        _user: AllocationId,
        _volumes: Vec<AllocationVolume>,
        _within: Duration,
    ) -> LocalBoxFuture<'static, Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>> {
        let reason = "this program has no volumes".to_owned();
        Box::pin(std::future::ready(Err(ClaimTrouble { reason, is_transient: false })))
    }

    fn ended(
        &self,
        _user: AllocationId,
        _observed: ObservedEnd,
        _within: Duration,
    ) -> LocalBoxFuture<'static, Result<(), Unreleased>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
