//! Places orders for volumes on request of the admin socket.

use callboard_actors::csi::{CapacityRange, Snapshot, VolumeGroupSnapshot};
use callboard_actors::shell::Message;
use callboard_actors::volume;
use callboard_actors::volumes::{
    CreateGroupSnapshot, CreateSnapshot, DeleteGroupSnapshot, DeleteSnapshot, ExpandVolume, GroupError,
    ModifyVolume, OrderError, Volumes,
};
use callboard_proto::admin::v1 as wire;
use tonic::{Code, Status};

use super::convert::{unanswered, unix_ms};
use super::server::Sources;
use super::volume_calls::{code_of, key, within};

/// Places an order and waits for its answer.
async fn place<T>(
    sources: &Sources,
    order: impl Message<Volumes, Reply = Result<T, OrderError>>,
) -> Result<T, Status> {
    send(sources, order).await?.map_err(|error| refused(&error))
}

async fn send<T>(
    sources: &Sources,
    order: impl Message<Volumes, Reply = Result<T, OrderError>>,
) -> Result<Result<T, OrderError>, Status> {
    sources.host.volumes().ask(order).await.map_err(|error| unanswered(&error))
}

/// The error of an order. If the order may never be done, the error names the command that gives it up.
fn refused(error: &OrderError) -> Status {
    let text = match error {
        OrderError::Refused(
            volume::OrderError::Pending { volume, .. }
            | volume::OrderError::Unclear { volume, .. }
            | volume::OrderError::Another { volume, .. },
        ) => format!(
            "{error}; `callboard volume release {volume} --force --orders --reason TEXT` gives up what is ordered of it and not done"
        ),
        error => error.to_string(),
    };
    Status::new(not_done(error), text)
}

/// Expands a volume.
pub(super) async fn expand(
    sources: &Sources,
    asked: wire::ExpandVolumeRequest,
) -> Result<wire::ExpandVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let capacity = CapacityRange { required_bytes: asked.capacity_bytes, limit_bytes: asked.limit_bytes };
    let expand = ExpandVolume { volume, capacity, within: within(asked.within_ms) };
    let expanded = place(sources, expand).await?;
    Ok(wire::ExpandVolumeResponse {
        name,
        capacity_bytes: expanded.capacity_bytes.unwrap_or_default(),
        node_next: expanded.is_node_next,
    })
}

/// Takes a snapshot.
pub(super) async fn take_snapshot(
    sources: &Sources,
    asked: wire::CreateSnapshotRequest,
) -> Result<wire::CreateSnapshotResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let parameters = asked.parameters.into_iter().collect();
    let create = CreateSnapshot { volume, name: asked.snapshot, parameters, within: within(asked.within_ms) };
    let taken = place(sources, create).await?;
    Ok(wire::CreateSnapshotResponse { name, snapshot: Some(snapshot(&taken)) })
}

/// Deletes a snapshot.
pub(super) async fn delete_snapshot(
    sources: &Sources,
    asked: wire::DeleteSnapshotRequest,
) -> Result<wire::DeleteSnapshotResponse, Status> {
    let (volume, snapshot_id) = (key(&asked.name)?, asked.snapshot_id);
    let delete = DeleteSnapshot { volume, snapshot_id: snapshot_id.clone(), within: within(asked.within_ms) };
    place(sources, delete).await?;
    Ok(wire::DeleteSnapshotResponse { snapshot_id })
}

/// Takes snapshots of several volumes at once.
pub(super) async fn take_group(
    sources: &Sources,
    asked: wire::CreateGroupSnapshotRequest,
) -> Result<wire::CreateGroupSnapshotResponse, Status> {
    let volumes = asked.names.iter().map(|name| key(name)).collect::<Result<Vec<_>, _>>()?;
    let parameters = asked.parameters.into_iter().collect();
    let within = within(asked.within_ms);
    let create = CreateGroupSnapshot { volumes, name: asked.group, parameters, within };
    let name = create.keeper().map(ToString::to_string).unwrap_or_default();
    let taken = place(sources, create).await?;
    Ok(wire::CreateGroupSnapshotResponse { name, group: Some(group(&taken)) })
}

/// Deletes a group of snapshots.
pub(super) async fn delete_group(
    sources: &Sources,
    asked: wire::DeleteGroupSnapshotRequest,
) -> Result<wire::DeleteGroupSnapshotResponse, Status> {
    let delete = DeleteGroupSnapshot {
        volume: key(&asked.name)?,
        group_snapshot_id: asked.group_snapshot_id.clone(),
        snapshot_ids: asked.snapshot_ids.into_iter().collect(),
        within: within(asked.within_ms),
    };
    let was_ordered = match send(sources, delete).await? {
        Ok(()) => true,
        Err(OrderError::Refused(volume::OrderError::NotOrdered { .. })) => false,
        Err(error) => return Err(refused(&error)),
    };
    Ok(wire::DeleteGroupSnapshotResponse { group_snapshot_id: asked.group_snapshot_id, was_ordered })
}

/// Changes parameters of a volume.
pub(super) async fn modify(
    sources: &Sources,
    asked: wire::ModifyVolumeRequest,
) -> Result<wire::ModifyVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let parameters = asked.parameters.into_iter().collect();
    let modify = ModifyVolume { volume, parameters, within: within(asked.within_ms) };
    place(sources, modify).await?;
    Ok(wire::ModifyVolumeResponse { name })
}

/// A snapshot, as its plugin describes it.
pub(super) fn snapshot(snapshot: &Snapshot) -> wire::VolumeSnapshot {
    let Snapshot {
        size_bytes,
        snapshot_id,
        source_volume_id,
        creation_time,
        ready_to_use,
        group_snapshot_id,
    } = snapshot.clone();
    wire::VolumeSnapshot {
        snapshot_id,
        source_volume_id,
        size_bytes,
        created_unix_ms: creation_time.map(unix_ms).unwrap_or_default(),
        ready: ready_to_use,
        group_snapshot_id,
    }
}

/// A group of snapshots, as its plugin describes it.
pub(super) fn group(group: &VolumeGroupSnapshot) -> wire::VolumeGroupSnapshot {
    wire::VolumeGroupSnapshot {
        group_snapshot_id: group.group_snapshot_id.clone(),
        snapshots: group.snapshots.iter().map(snapshot).collect(),
        created_unix_ms: group.creation_time.map(unix_ms).unwrap_or_default(),
        ready: group.ready_to_use,
    }
}

const fn not_done(error: &OrderError) -> Code {
    match error {
        OrderError::Unknown(_) => Code::NotFound,
        OrderError::Group(
            GroupError::NoVolumes { .. }
            | GroupError::TooManyVolumes { .. }
            | GroupError::Twice { .. }
            | GroupError::OtherPlugin { .. },
        ) => Code::InvalidArgument,
        error => {
            let is_pending = matches!(error, OrderError::Refused(volume::OrderError::Pending { .. }));
            let is_invalid = matches!(error, OrderError::Refused(volume::OrderError::Invalid { .. }));
            code_of(is_pending, is_invalid, error.is_transient())
        }
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::volumes::UnknownVolume;

    use super::*;

    #[test]
    fn an_order_that_may_never_be_done_is_told_with_the_command_that_gives_it_up_v9() {
        let volume = || key("data").expect("a name");
        let what = || "expand to 20 bytes".to_owned();
        let command = "`callboard volume release default/data --force --orders --reason TEXT` gives up";
        let pending = volume::OrderError::Pending { volume: volume(), what: what(), doing: what() };
        let unclear = volume::OrderError::Unclear { volume: volume(), what: what(), reason: what() };
        let another = volume::OrderError::Another { volume: volume(), what: what(), before: what() };
        for open in [pending, unclear, another] {
            let status = refused(&open.into());
            assert!(status.message().contains(command), "{status:?}");
        }
        let certain = volume::OrderError::Refused { volume: volume(), what: what(), reason: what() };
        assert!(!refused(&certain.into()).message().contains("--force"));
    }

    #[test]
    fn a_client_learns_whether_ordering_again_can_help_v15() {
        let volume = key("data").expect("a name");
        let what = || "expand to 20 bytes".to_owned();
        let pending = volume::OrderError::Pending { volume: volume.clone(), what: what(), doing: what() };
        let invalid = volume::OrderError::Invalid { volume: volume.clone(), what: what(), reason: what() };
        let refused = volume::OrderError::Refused { volume: volume.clone(), what: what(), reason: what() };
        for (error, code) in [
            (OrderError::Unknown(UnknownVolume { volume: volume.clone() }), Code::NotFound),
            (pending.into(), Code::DeadlineExceeded),
            (invalid.into(), Code::InvalidArgument),
            (refused.into(), Code::FailedPrecondition),
            (OrderError::Stopping { volume: volume.clone() }, Code::Unavailable),
            (GroupError::NoVolumes { name: what() }.into(), Code::InvalidArgument),
            (
                GroupError::BeingDeleted { name: what(), volume: volume.clone() }.into(),
                Code::FailedPrecondition,
            ),
            (OrderError::Smaller { volume, capacity_bytes: 30 }, Code::FailedPrecondition),
        ] {
            assert_eq!(not_done(&error), code, "{error}");
        }
    }
}
