//! Reads the state of volumes and plugins on request of the admin socket.

use callboard_actors::csi::{ListVolumesEntry, UsageUnit, VolumeCondition, VolumeUsage};
use callboard_actors::shell::Message;
use callboard_actors::vocabulary::PluginName;
use callboard_actors::volumes::{
    DescribeGroupSnapshot, GetCapacity, ListSnapshots, ListVolumesOfPlugin, Page, ReadError, ValidateVolume,
    VolumeStats, Volumes,
};
use callboard_proto::admin::v1 as wire;
use tonic::{Code, Status};

use super::convert::unanswered;
use super::server::Sources;
use super::volume_calls::{capability_of, check_served, invalid, key, within};
use super::volume_orders::{self, snapshot};

/// Sends a request that only reads, and waits for the answer.
async fn read<T>(
    sources: &Sources,
    question: impl Message<Volumes, Reply = Result<T, ReadError>>,
) -> Result<T, Status> {
    let found = sources.host.volumes().ask(question).await.map_err(|error| unanswered(&error))?;
    found.map_err(|error| Status::new(not_read(&error), error.to_string()))
}

/// The plugin of this name, if an allocation of the configuration serves it as controller.
fn served(sources: &Sources, name: &str) -> Result<PluginName, Status> {
    let plugin = PluginName::new(name).map_err(invalid)?;
    let checked = check_served(sources, &plugin);
    checked.map_err(|text| Status::failed_precondition(format!("plugin {plugin} is not asked: {text}")))?;
    Ok(plugin)
}

/// The usage and condition of a volume.
pub(super) async fn stats(
    sources: &Sources,
    asked: wire::GetVolumeStatsRequest,
) -> Result<wire::GetVolumeStatsResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let stats = VolumeStats { volume, within: within(asked.within_ms) };
    let found = read(sources, stats).await?;
    Ok(wire::GetVolumeStatsResponse {
        name,
        path: found.path.map(|path| path.display().to_string()).unwrap_or_default(),
        figures: found.usage.iter().map(figure).collect(),
        on_node: found.on_node.map(condition),
        at_controller: found.at_controller.map(condition),
    })
}

/// A page of snapshots.
pub(super) async fn snapshots(
    sources: &Sources,
    asked: wire::ListSnapshotsRequest,
) -> Result<wire::ListSnapshotsResponse, Status> {
    let volume = Some(&asked.volume).filter(|name| !name.is_empty());
    let list = ListSnapshots {
        plugin: served(sources, &asked.plugin)?,
        volume: volume.map(|name| key(name)).transpose()?,
        snapshot_id: String::new(),
        page: Page { max_entries: asked.max_entries, token: asked.token },
        within: within(asked.within_ms),
    };
    let page = read(sources, list).await?;
    let snapshots = page.entries.iter().map(snapshot).collect();
    Ok(wire::ListSnapshotsResponse { snapshots, next_token: page.next_token })
}

/// A group of snapshots; none if the list of its plugin does not contain it.
pub(super) async fn group(
    sources: &Sources,
    asked: wire::GetGroupSnapshotRequest,
) -> Result<wire::GetGroupSnapshotResponse, Status> {
    let describe = DescribeGroupSnapshot {
        volume: key(&asked.name)?,
        group_snapshot_id: asked.group_snapshot_id,
        snapshot_ids: asked.snapshot_ids.into_iter().collect(),
        within: within(asked.within_ms),
    };
    let found = sources.host.volumes().ask(describe).await.map_err(|error| unanswered(&error))?;
    match found {
        Ok(found) => Ok(wire::GetGroupSnapshotResponse { group: Some(volume_orders::group(&found)) }),
        Err(ReadError::NoGroup { .. }) => Ok(wire::GetGroupSnapshotResponse { group: None }),
        Err(error) => Err(Status::new(not_read(&error), error.to_string())),
    }
}

/// A page of the volumes that a plugin has.
pub(super) async fn volumes(
    sources: &Sources,
    asked: wire::ListPluginVolumesRequest,
) -> Result<wire::ListPluginVolumesResponse, Status> {
    let list = ListVolumesOfPlugin {
        plugin: served(sources, &asked.plugin)?,
        page: Page { max_entries: asked.max_entries, token: asked.token },
        within: within(asked.within_ms),
    };
    let page = read(sources, list).await?;
    let volumes = page.entries.into_iter().map(volume).collect();
    Ok(wire::ListPluginVolumesResponse { volumes, next_token: page.next_token })
}

fn volume(ListVolumesEntry { volume, status }: ListVolumesEntry) -> wire::PluginVolume {
    let status = status.unwrap_or_default();
    wire::PluginVolume {
        volume_id: volume.volume_id,
        capacity_bytes: volume.capacity_bytes,
        nodes: status.published_node_ids,
        condition: status.volume_condition.map(condition),
    }
}

/// The free capacity of a plugin.
pub(super) async fn capacity(
    sources: &Sources,
    asked: wire::GetPluginCapacityRequest,
) -> Result<wire::GetPluginCapacityResponse, Status> {
    let capacity = GetCapacity {
        plugin: served(sources, &asked.plugin)?,
        capabilities: Vec::new(),
        parameters: asked.parameters.into_iter().collect(),
        topology: None,
        within: within(asked.within_ms),
    };
    let found = read(sources, capacity).await?;
    Ok(wire::GetPluginCapacityResponse {
        available_bytes: found.available_capacity,
        largest_bytes: found.maximum_volume_size.unwrap_or_default(),
        smallest_bytes: found.minimum_volume_size.unwrap_or_default(),
    })
}

/// Whether a volume can be used in this way; without one, as a claim would use it.
pub(super) async fn validate(
    sources: &Sources,
    asked: wire::ValidateVolumeRequest,
) -> Result<wire::ValidateVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let capability = capability_of(sources.volumes.entry(&volume), asked.usage)?;
    let validate = ValidateVolume {
        volume,
        capabilities: vec![capability],
        parameters: asked.parameters.into_iter().collect(),
        within: within(asked.within_ms),
    };
    let found = read(sources, validate).await?;
    let unconfirmed = found.unconfirmed.into_iter().map(str::to_owned).collect();
    Ok(wire::ValidateVolumeResponse { name, unconfirmed, message: found.message })
}

fn figure(usage: &VolumeUsage) -> wire::VolumeFigure {
    let VolumeUsage { available, total, used, unit } = *usage;
    let unit = match unit {
        UsageUnit::Bytes => "bytes".to_owned(),
        UsageUnit::Inodes => "inodes".to_owned(),
        UsageUnit::Other(number) => number.to_string(),
    };
    wire::VolumeFigure { unit, available, total, used }
}

fn condition(VolumeCondition { abnormal, message }: VolumeCondition) -> wire::VolumeCondition {
    wire::VolumeCondition { abnormal, message }
}

const fn not_read(error: &ReadError) -> Code {
    match error {
        ReadError::Unknown(_) => Code::NotFound,
        ReadError::Overdue { .. } => Code::DeadlineExceeded,
        error if error.is_transient() => Code::Unavailable,
        _ => Code::FailedPrecondition,
    }
}
