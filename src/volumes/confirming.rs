//! After a start: whose claims of an earlier run are kept.

use std::collections::BTreeSet;
use std::time::Duration;

use callboard_actors::shell::Address;
use callboard_actors::vocabulary::AllocationId;
use callboard_actors::volumes::{ConfirmClaims, ConfirmError, VolumeConfirmed, Volumes};
use tokio::time::sleep;

/// The pause before a confirmation is repeated. It doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Says which users of an earlier run may still have processes, and repeats it until every volume with such claims has answered.
/// All other claims of an earlier run are released. It ends when the host stops.
pub async fn confirm(volumes: &Address<Volumes>, living: BTreeSet<AllocationId>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match volumes.ask(ConfirmClaims { living: living.clone() }).await {
            Ok(confirmed) if !has_open(&confirmed) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "claims of an earlier run are not confirmed yet; it is tried again");
            }
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Logs what became of the claims, and returns whether a volume could not be asked.
fn has_open(confirmed: &[VolumeConfirmed]) -> bool {
    let mut is_open = false;
    for VolumeConfirmed { volume, result } in confirmed {
        match result {
            Ok(claims) => {
                for user in &claims.confirmed {
                    tracing::info!(%volume, %user, "a claim of an earlier run is kept");
                }
                for user in &claims.released {
                    tracing::info!(%volume, %user, "a claim of an earlier run is released, since its user has no process");
                }
            }
            Err(error) => {
                tracing::warn!(%volume, %error, "claims of an earlier run are not confirmed yet");
                is_open |= matches!(error, ConfirmError::NoAnswer(_));
            }
        }
    }
    is_open
}
