//! Reports the usage of a volume on the node, and expands it there.

use std::path::Path;

use callboard_proto::csi::v1 as wire;
use tonic::Status;
use wire::volume_usage::Unit;

use super::records::{OnNode, Volume};
use super::{Work, check, failed_at, listing, mounts};

pub(in crate::hostpath) fn statistics(
    work: &Work<'_>,
    request: &wire::NodeGetVolumeStatsRequest,
) -> Result<wire::NodeGetVolumeStatsResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let path = Path::new(check::there(&request.volume_path, "volume path")?);
    let volume = listing::volume(work, id)?;
    on_node(work, id, path)?;
    let sign = if work.lies() { -1 } else { 1 };
    let usage = if volume.is_block {
        vec![used(Unit::Bytes, volume.capacity_bytes, 0, sign)]
    } else {
        let found = rustix::fs::statvfs(path);
        let found = found.map_err(|error| failed_at("look at the file system of", path, &error.into()))?;
        let bytes = |blocks: u64| number(blocks.saturating_mul(found.f_frsize));
        vec![
            used(Unit::Bytes, bytes(found.f_blocks), bytes(found.f_bavail), sign),
            used(Unit::Inodes, number(found.f_files), number(found.f_favail), sign),
        ]
    };
    let condition = listing::condition(work, &volume);
    Ok(wire::NodeGetVolumeStatsResponse { usage, volume_condition: Some(condition) })
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn used(unit: Unit, total: i64, available: i64, sign: i64) -> wire::VolumeUsage {
    wire::VolumeUsage { total, available: available * sign, used: total - available, unit: unit as i32 }
}

/// The state on the node of a volume that is staged or published at this path.
fn on_node(work: &Work<'_>, id: &str, path: &Path) -> Result<OnNode, Status> {
    let found = work.store.read::<OnNode>(id)?.filter(|on_node| {
        let is_staged = on_node.staged.as_ref().is_some_and(|staged| staged.path == path);
        is_staged || on_node.published.contains_key(path)
    });
    found.ok_or_else(|| {
        Status::not_found(format!("{id} is neither staged nor published at {}", path.display()))
    })
}

pub(in crate::hostpath) fn expand(
    work: &Work<'_>,
    request: &wire::NodeExpandVolumeRequest,
) -> Result<wire::NodeExpandVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let path = Path::new(check::there(&request.volume_path, "volume path")?);
    let (least, limit) = check::range(request.capacity_range.as_ref())?;
    let Volume { capacity_bytes, is_block, is_in_memory, .. } = listing::volume(work, id)?;
    let on_node = on_node(work, id, path)?;
    if least > capacity_bytes || limit.is_some_and(|limit| limit < capacity_bytes) {
        // C153
        let problem = format!("{id} has {capacity_bytes} bytes; expand it on the controller first");
        return Err(Status::out_of_range(problem));
    }
    if let Some(staged) = on_node.staged.filter(|_| is_in_memory) {
        mounts::memory(&staged.path, capacity_bytes, true)?;
    }
    if is_block {
        mounts::resize_devices(&work.content(id))?;
    }
    work.changed();
    Ok(wire::NodeExpandVolumeResponse { capacity_bytes })
}
