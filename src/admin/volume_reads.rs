//! What is read of volumes over the admin socket.

use callboard_actors::csi::{UsageUnit, VolumeCondition, VolumeUsage};
use callboard_actors::volumes::{ReadError, VolumeStats};
use callboard_proto::admin::v1 as wire;
use tonic::{Code, Status};

use super::convert::unanswered;
use super::server::Sources;
use super::volume_calls::{key, within};

/// How full a volume is.
pub(super) async fn stats(
    sources: &Sources,
    asked: wire::GetVolumeStatsRequest,
) -> Result<wire::GetVolumeStatsResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let stats = VolumeStats { volume, within: within(asked.within_ms) };
    let found = sources.host.volumes().ask(stats).await.map_err(|error| unanswered(&error))?;
    let found = found.map_err(|error| Status::new(not_read(&error), error.to_string()))?;
    Ok(wire::GetVolumeStatsResponse {
        name,
        path: found.path.map(|path| path.display().to_string()).unwrap_or_default(),
        figures: found.usage.iter().map(figure).collect(),
        on_node: found.on_node.map(condition),
        at_controller: found.at_controller.map(condition),
    })
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
