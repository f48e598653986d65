//! Deletes volumes at their plugin, or only makes the host forget them, on request of the admin socket.

use std::time::Duration;

use callboard_actors::volume::{self, VolumeKey};
use callboard_actors::volumes::{DeleteError, DeleteVolume, ForgetVolume, ForgetVolumeError};
use callboard_proto::admin::v1 as wire;
use tonic::{Code, Status};

use super::convert::unanswered;
use super::server::Sources;
use super::volume_calls::{code_of, is_unknown, key, within};

/// How long to wait for the removal of the recorded secrets of a removed volume.
const FORGET_WITHIN: Duration = Duration::from_secs(5);

/// Deletes a volume.
pub(super) async fn delete(
    sources: &Sources,
    asked: wire::DeleteVolumeRequest,
) -> Result<wire::DeleteVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    if let Some(user) = sources.volume_users.get(&volume) {
        let text = format!(
            "volume {name} is not deleted: {user} of the configuration uses it; first remove it from its `volumes`, and restart the \
             host"
        );
        return Err(Status::failed_precondition(text));
    }
    // A volume whose creation is given up may never have existed at its plugin.
    let was_known = !is_unknown(sources, &volume).await?;
    let delete = DeleteVolume { volume: volume.clone(), within: within(asked.within_ms) };
    let deleted = sources.host.volumes().ask(delete).await.map_err(|error| unanswered(&error))?;
    let deleted = deleted.map_err(|error| Status::new(not_deleted(&error), error.to_string()))?;
    if let Err(error) = forget_secrets(sources, &volume, FORGET_WITHIN).await {
        tracing::warn!(volume = %volume, %error, "cannot delete the recorded secret keys of a deleted volume");
    }
    let is_configured = sources.volumes.entry(&volume).is_some();
    Ok(wire::DeleteVolumeResponse { name, did_exist: was_known || deleted.did_exist, is_configured })
}

/// Forgets a volume that was registered, not created. A volume of the configuration would be registered again by the next start.
pub(super) async fn forget(sources: &Sources, name: &str) -> Result<wire::ForgetVolumeResponse, Status> {
    let volume = key(name)?;
    let name = volume.to_string();
    if sources.volumes.entry(&volume).is_some() {
        let text = format!(
            "volume {name} is not forgotten: it is in the configuration; first remove it there, and restart the host"
        );
        return Err(Status::failed_precondition(text));
    }
    let forgotten = sources.host.volumes().ask(ForgetVolume { volume: volume.clone() }).await;
    let forgotten = forgotten.map_err(|error| unanswered(&error))?;
    let was_known = forgotten.map_err(|error| Status::new(not_forgotten(&error), error.to_string()))?;
    if let Err(error) = forget_secrets(sources, &volume, FORGET_WITHIN).await {
        tracing::warn!(volume = %volume, %error, "cannot delete the recorded secret keys of a forgotten volume");
    }
    Ok(wire::ForgetVolumeResponse { name, was_known })
}

/// Removes the recorded secrets of a volume, unless the volume is in the configuration.
pub(super) async fn forget_secrets(
    sources: &Sources,
    volume: &VolumeKey,
    within: Duration,
) -> Result<(), String> {
    let forgotten = tokio::time::timeout(within, sources.secrets.forget(volume)).await;
    forgotten
        .map_err(|_| "the disk has not written the secret keys of volumes yet; try again later".to_owned())?
}

const fn not_deleted(error: &DeleteError) -> Code {
    let is_pending = matches!(error, DeleteError::Refused(volume::DeleteError::Pending { .. }));
    let is_transient = !matches!(error, DeleteError::Refused(_) | DeleteError::SameVolume(_));
    code_of(is_pending, false, is_transient)
}

const fn not_forgotten(error: &ForgetVolumeError) -> Code {
    code_of(false, false, matches!(error, ForgetVolumeError::Stopping { .. }))
}
