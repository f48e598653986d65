//! What is ordered of volumes over the admin socket.

use callboard_actors::csi::{CapacityRange, Snapshot};
use callboard_actors::shell::Message;
use callboard_actors::vocabulary::Timestamp;
use callboard_actors::volume;
use callboard_actors::volumes::{
    CreateSnapshot, DeleteSnapshot, ExpandVolume, ModifyVolume, OrderError, Volumes,
};
use callboard_proto::admin::v1 as wire;
use tonic::{Code, Status};

use super::convert::unanswered;
use super::server::Sources;
use super::volume_calls::{code_of, key, within};

/// Places an order and waits for its answer.
async fn place<T>(
    sources: &Sources,
    order: impl Message<Volumes, Reply = Result<T, OrderError>>,
) -> Result<T, Status> {
    let done = sources.host.volumes().ask(order).await.map_err(|error| unanswered(&error))?;
    done.map_err(|error| Status::new(not_done(&error), error.to_string()))
}

/// Makes a volume larger.
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
    let milliseconds = |at: Timestamp| u64::try_from(at.since_epoch().as_millis()).unwrap_or(u64::MAX);
    wire::VolumeSnapshot {
        snapshot_id,
        source_volume_id,
        size_bytes,
        created_unix_ms: creation_time.map(milliseconds).unwrap_or_default(),
        ready: ready_to_use,
        group_snapshot_id,
    }
}

const fn not_done(error: &OrderError) -> Code {
    match error {
        OrderError::Unknown(_) => Code::NotFound,
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
            (OrderError::Smaller { volume, capacity_bytes: 30 }, Code::FailedPrecondition),
        ] {
            assert_eq!(not_done(&error), code, "{error}");
        }
    }
}
