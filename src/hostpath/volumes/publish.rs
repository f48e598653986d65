//! Publishes volumes of the node at targets, and unpublishes them.
//!
//! As for staging, the record is written before anything is made, and removed after everything is gone.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use callboard_proto::csi::v1 as wire;
use tonic::Status;

use super::records::{OnNode, Published, Volume};
use super::stage::{fits, is_attached, remembered, rolled_back};
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
    let before = work.store.read::<OnNode>(id)?.unwrap_or_default();
    let source = source(work, &volume, &before, &request.staging_target_path)?;
    let is_readonly = request.readonly || check::is_for_readers(&capability);
    match before.published.get(target) {
        Some(published) if published.capability != capability || published.is_readonly != is_readonly => {
            let problem = format!("{id} is published at {} already, for another use", target.display());
            return Err(Status::already_exists(problem));
        }
        Some(_) => {}
        None if before.published.is_empty() || check::is_for_several(&capability) => {}
        None => {
            // C137, C139
            let problem = format!("{id} is published on this node already, and is for one target only");
            return Err(Status::failed_precondition(problem));
        }
    }
    let mut on_node = before.clone();
    on_node.published.insert(target.to_owned(), Published { capability, is_readonly });
    if on_node != before {
        work.store.write(id, &on_node)?;
    }
    if !work.lies() {
        let mounted = mount(work, &volume, &source, target, is_readonly);
        mounted.map_err(|refused| {
            let is_new = !before.published.contains_key(target);
            let rollback = || {
                mounts::remove(target)?;
                unmade(work, id, &on_node, target)?;
                remembered(work, id, &before)
            };
            if is_new { rolled_back(refused, rollback) } else { refused }
        })?;
    }
    Ok(wire::NodePublishVolumeResponse {})
}

/// The source of a publish: the staged volume, or its content if volumes are not staged (C122, C135).
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
    if volume.is_block {
        return Ok(work.content(&volume.id));
    }
    // Without a mount it is a directory of the caller.
    if !staged.is_lie && !mounts::is_mounted(&staged.path)? {
        let problem =
            format!("nothing is mounted at the staging path {staging:?}; stage {} again", volume.id);
        return Err(Status::failed_precondition(problem));
    }
    Ok(staged.path.clone())
}

/// Mounts the volume at the target unless it is mounted. The target is created here; its parent is created by the caller (C136).
fn mount(
    work: &Work<'_>,
    volume: &Volume,
    source: &Path,
    target: &Path,
    is_readonly: bool,
) -> Result<(), Status> {
    if !mounts::is_mounted(target)? {
        make(volume, target)?;
        let device = if volume.is_block { mounts::device(source)? } else { None };
        work.changed();
        mounts::bind(device.as_deref().unwrap_or(source), target)?;
    }
    // This is a step of its own: a plugin can die before it.
    if is_readonly { mounts::make_read_only(target) } else { Ok(()) }
}

fn make(volume: &Volume, target: &Path) -> Result<(), Status> {
    let made = if volume.is_block {
        fs::File::options().write(true).create(true).truncate(false).open(target).map(drop)
    } else {
        // If the mount is lost, only processes with the rights of root can write below it.
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
    })
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
    if !on_node.published.contains_key(target) {
        return answer;
    }
    mounts::remove(target)?;
    work.changed();
    unmade(work, id, &on_node, target)?;
    on_node.published.remove(target);
    remembered(work, id, &on_node)?;
    answer
}

/// Removes the target and the loop device of a publish when nothing is mounted there; the record still contains the publish.
fn unmade(work: &Work<'_>, id: &str, on_node: &OnNode, target: &Path) -> Result<(), Status> {
    let is_block = on_node.published.get(target).is_some_and(|published| published.capability.is_block);
    let is_made =
        |found: fs::Metadata| if is_block { found.is_file() && found.len() == 0 } else { found.is_dir() };
    if fs::symlink_metadata(target).is_ok_and(is_made) {
        // Only empty targets are removed: files below a mount are not ours (C142).
        let removed = if is_block { fs::remove_file(target) } else { fs::remove_dir(target) };
        removed.map_err(|error| failed_at("remove the target", target, &error))?;
    }
    if is_block && on_node.published.len() == 1 {
        mounts::detach_devices(&work.content(id))?;
    }
    Ok(())
}
