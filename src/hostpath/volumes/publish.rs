//! The node: volumes are published at targets, and unpublished.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use callboard_proto::csi::v1 as wire;
use tonic::Status;

use super::records::{OnNode, Published, Volume};
use super::stage::{fits, is_attached, remembered};
use super::{ATTACHED, Work, check, failed_at, listing, mounts};

pub(in crate::hostpath) fn publish(
    work: &Work<'_>,
    request: &wire::NodePublishVolumeRequest,
) -> Result<wire::NodePublishVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let target = check::path(&request.target_path, "target path")?;
    let capability = check::capability(request.volume_capability.as_ref())?;
    let volume = listing::volume(work, id)?;
    fits(&volume, capability.is_block)?;
    is_attached(work, &volume, request.publish_context.get(ATTACHED))?;
    let mut on_node = work.store.read::<OnNode>(id)?.unwrap_or_default();
    let source = source(work, &volume, &on_node, &request.staging_target_path)?;
    let is_readonly = request.readonly || check::is_for_readers(&capability);
    match on_node.published.get(target) {
        Some(published) if published.capability != capability || published.is_readonly != is_readonly => {
            let problem = format!("{id} is published at {} already, for another use", target.display());
            return Err(Status::already_exists(problem));
        }
        Some(_) => {}
        None if on_node.published.is_empty() || check::is_for_several(&capability) => {}
        None => {
            // C137, C139
            let problem = format!("{id} is published on this node already, and is for one target only");
            return Err(Status::failed_precondition(problem));
        }
    }
    if !work.lies() && !mounts::is_mounted(target)? {
        mount(work, &volume, &source, target, is_readonly)?;
    }
    on_node.published.insert(target.to_owned(), Published { capability, is_readonly });
    work.store.write(id, &on_node)?;
    Ok(wire::NodePublishVolumeResponse {})
}

/// What is published: the staged volume, or its content where volumes are not staged (C122, C135).
fn source(work: &Work<'_>, volume: &Volume, on_node: &OnNode, staging: &str) -> Result<PathBuf, Status> {
    if !work.settings.claims.stages {
        return Ok(work.content(&volume.id));
    }
    let staged = on_node.staged.as_ref().filter(|staged| staged.path == Path::new(staging));
    let Some(staged) = staged else {
        let problem = match &on_node.staged {
            Some(staged) => {
                format!("{} is staged at {}, not at {staging:?}", volume.id, staged.path.display())
            }
            None => format!("{} is not staged; stage it first", volume.id),
        };
        return Err(Status::failed_precondition(problem));
    };
    Ok(if volume.is_block { work.content(&volume.id) } else { staged.path.clone() })
}

/// Mounts the volume at the target, which is made here, while its parent is made by the caller (C136).
fn mount(
    work: &Work<'_>,
    volume: &Volume,
    source: &Path,
    target: &Path,
    is_readonly: bool,
) -> Result<(), Status> {
    let made = if volume.is_block {
        fs::File::options().write(true).create(true).truncate(false).open(target).map(drop)
    } else {
        // Should the mount be lost, no process without the rights of root writes below it.
        match fs::DirBuilder::new().mode(0o000).create(target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    };
    made.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let problem =
                format!("the parent of the target {} is not there; the caller makes it", target.display());
            Status::failed_precondition(problem)
        }
        _ => failed_at("make the target", target, &error),
    })?;
    work.changed();
    let device = if volume.is_block { mounts::device(source)? } else { None };
    mounts::bind(device.as_deref().unwrap_or(source), target, is_readonly)
}

pub(in crate::hostpath) fn unpublish(
    work: &Work<'_>,
    request: &wire::NodeUnpublishVolumeRequest,
) -> Result<wire::NodeUnpublishVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let target = check::path(&request.target_path, "target path")?;
    let answer = Ok(wire::NodeUnpublishVolumeResponse {});
    if work.lies() {
        return answer;
    }
    let Some(mut on_node) = work.store.read::<OnNode>(id)? else { return answer };
    let Some(published) = on_node.published.get(target).cloned() else { return answer };
    mounts::remove(target)?;
    work.changed();
    // Only what is empty goes: what lies below a mount is not ours (C142).
    let removed =
        if published.capability.is_block { fs::remove_file(target) } else { fs::remove_dir(target) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed_at("remove the target", target, &error));
        }
        Ok(()) | Err(_) => {}
    }
    on_node.published.remove(target);
    if published.capability.is_block && on_node.published.is_empty() {
        mounts::detach_devices(&work.content(id))?;
    }
    remembered(work, id, &on_node)?;
    answer
}
