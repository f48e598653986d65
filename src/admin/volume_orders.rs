//! What is ordered of volumes over the admin socket.

use callboard_actors::csi::CapacityRange;
use callboard_actors::volume;
use callboard_actors::volumes::{ExpandVolume, OrderError};
use callboard_proto::admin::v1 as wire;
use tonic::{Code, Status};

use super::convert::unanswered;
use super::server::Sources;
use super::volume_calls::{code_of, key, within};

/// Makes a volume larger.
pub(super) async fn expand(
    sources: &Sources,
    asked: wire::ExpandVolumeRequest,
) -> Result<wire::ExpandVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let capacity = CapacityRange { required_bytes: asked.capacity_bytes, limit_bytes: asked.limit_bytes };
    let expand = ExpandVolume { volume, capacity, within: within(asked.within_ms) };
    let expanded = sources.host.volumes().ask(expand).await.map_err(|error| unanswered(&error))?;
    let expanded = expanded.map_err(|error| Status::new(not_done(&error), error.to_string()))?;
    Ok(wire::ExpandVolumeResponse {
        name,
        capacity_bytes: expanded.capacity_bytes.unwrap_or_default(),
        node_next: expanded.is_node_next,
    })
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
