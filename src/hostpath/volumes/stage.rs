//! Stages volumes on the node, once for each node, and unstages them.
//!
//! The record is written before the mount and removed after it. A plugin that dies between them leaves a record without a mount, and never
//! a mount without a record, so an undo finds everything that was begun.

use std::path::Path;

use callboard_proto::csi::v1 as wire;
use tonic::Status;

use super::records::{OnNode, Staged, Volume};
use super::{ATTACHED, Work, check, listing, mounts};

pub(in crate::hostpath) fn stage(
    work: &Work<'_>,
    request: &wire::NodeStageVolumeRequest,
) -> Result<wire::NodeStageVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let path = check::path(&request.staging_target_path, "staging path")?;
    let capability = check::capability(request.volume_capability.as_ref())?;
    let volume = listing::volume(work, id)?;
    fits(&volume, capability.is_block)?;
    is_attached(work, &volume, request.publish_context.get(ATTACHED))?;
    let before = work.store.read::<OnNode>(id)?.unwrap_or_default();
    match &before.staged {
        Some(staged) if staged.path != path => {
            let problem = format!("{id} is staged at {} already", staged.path.display());
            return Err(Status::failed_precondition(problem));
        }
        Some(staged) if staged.capability != capability => {
            return Err(Status::already_exists(format!("{id} is staged already, for another use")));
        }
        Some(_) | None => {}
    }
    if !path.is_dir() {
        // C125
        let problem =
            format!("the staging path {} is no directory; it is made by the caller", path.display());
        return Err(Status::failed_precondition(problem));
    }
    // After a crash or a boot the record exists without the mount. A block volume is never mounted.
    let needs_mount = !volume.is_block && !work.lies() && !mounts::is_mounted(path)?;
    if !needs_mount && before.staged.is_some() {
        return Ok(wire::NodeStageVolumeResponse {});
    }
    let staged = Some(Staged { path: path.to_owned(), capability, is_lie: work.lies() });
    work.store.write(id, &OnNode { staged, ..before.clone() })?;
    work.changed();
    if needs_mount {
        let mounted = mount(work, &volume, path);
        mounted.map_err(|refused| rolled_back(refused, || remembered(work, id, &before)))?;
    }
    Ok(wire::NodeStageVolumeResponse {})
}

fn mount(work: &Work<'_>, volume: &Volume, path: &Path) -> Result<(), Status> {
    if volume.is_in_memory {
        mounts::memory(path, volume.capacity_bytes, false)
    } else {
        mounts::bind(&work.content(&volume.id), path)
    }
}

/// The error of a call after its rollback. If the rollback fails too, the effect of the call is unclear, and its caller has to undo it.
pub(super) fn rolled_back(refused: Status, rollback: impl FnOnce() -> Result<(), Status>) -> Status {
    match rollback() {
        Ok(()) => refused,
        Err(failed) => {
            Status::internal(format!("{}; its rollback failed: {}", refused.message(), failed.message()))
        }
    }
}

pub(super) fn fits(volume: &Volume, is_block: bool) -> Result<(), Status> {
    if volume.is_block == is_block {
        return Ok(());
    }
    Err(Status::invalid_argument(format!("{} is a volume of the other access type", volume.id)))
}

/// Whether the controller has published the volume to this node, and the caller passes on the controller's publish context (C074, C121).
pub(super) fn is_attached(work: &Work<'_>, volume: &Volume, told: Option<&String>) -> Result<(), Status> {
    if !work.settings.claims.attaches {
        return Ok(());
    }
    let node = work.node();
    if !volume.attached.contains_key(node) {
        let problem =
            format!("{} is not attached to node {node}; publish it on the controller first", volume.id);
        return Err(Status::failed_precondition(problem));
    }
    if told.is_none_or(|told| told != node) {
        let problem = format!("the publish context is not the one that the controller gave for node {node}");
        return Err(Status::invalid_argument(problem));
    }
    Ok(())
}

pub(in crate::hostpath) fn unstage(
    work: &Work<'_>,
    request: &wire::NodeUnstageVolumeRequest,
) -> Result<wire::NodeUnstageVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let path = check::path(&request.staging_target_path, "staging path")?;
    let answer = Ok(wire::NodeUnstageVolumeResponse {});
    let Some(mut on_node) = work.store.read::<OnNode>(id)? else { return answer };
    if work.lies() || on_node.staged.as_ref().is_none_or(|staged| staged.path != path) {
        return answer;
    }
    if let Some(target) = on_node.published.keys().next() {
        // C131
        let problem = format!("{id} is published at {}; unpublish it first", target.display());
        return Err(Status::failed_precondition(problem));
    }
    mounts::remove(path)?;
    work.changed();
    on_node.staged = None;
    remembered(work, id, &on_node)?;
    answer
}

/// Writes the record of the node, or removes it if it is empty.
pub(super) fn remembered(work: &Work<'_>, id: &str, on_node: &OnNode) -> Result<(), Status> {
    if *on_node == OnNode::default() {
        work.store.remove::<OnNode>(id)
    } else {
        work.store.write(id, on_node)
    }
}
