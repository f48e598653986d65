//! Confirms after a start which claims of an earlier run are kept.

use std::collections::BTreeSet;
use std::path::PathBuf;

use callboard_actors::process::GivenPaths;
use callboard_actors::shell::{Address, AskError};
use callboard_actors::vocabulary::AllocationId;
use callboard_actors::volume::VolumeKey;
use callboard_actors::volumes::{
    ConfirmClaims, ConfirmError, ListVolumes, VolumeActor, VolumeConfirmed, VolumeReport, Volumes,
};
use tokio::time::sleep;

use super::{FIRST_PAUSE, LONGEST_PAUSE};

/// The users of volumes that the host knows after a start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownUsers {
    /// The users that the host runs or ran itself, so it can tell whether they have processes.
    pub own: BTreeSet<AllocationId>,
    /// The users that may still have processes.
    pub living: BTreeSet<AllocationId>,
    /// The users with a process of an earlier run that is being searched for, or ended.
    pub unsettled: BTreeSet<AllocationId>,
}

/// Reports which users of an earlier run may still have processes, and repeats this with the then known users until every volume with such
/// claims has answered and nothing is unclear. All other claims of an earlier run are released: those of users that the host runs itself
/// and that have no process. Ends when the host stops.
pub async fn confirm(volumes: &Address<Volumes>, users: impl AsyncFn() -> Result<KnownUsers, String>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let confirmed = match users().await {
            Ok(users) => is_confirmed(volumes, &users).await.map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        match confirmed {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(
                    error,
                    "cannot confirm claims of an earlier run; all of them are kept; retrying"
                );
            }
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Confirms the claims once, and returns whether that is settled. The owner of the volumes answers when it has read all volumes.
async fn is_confirmed(volumes: &Address<Volumes>, users: &KnownUsers) -> Result<bool, AskError> {
    match kept(users, &volumes.ask(ListVolumes).await?) {
        Ok(Kept { living, unsettled, doubtful }) => {
            let mut unclear = may_live(doubtful).await;
            unclear.extend(unsettled);
            let is_clear = unclear.is_empty();
            Ok(!has_open(&volumes.ask(ConfirmClaims { living, unclear }).await?) && is_clear)
        }
        Err(volume) => {
            tracing::debug!(%volume, "its claims are not reported yet; those of an earlier run are kept until then");
            Ok(false)
        }
    }
}

/// The users whose claims of an earlier run are kept.
#[derive(Debug, PartialEq, Eq, Default)]
struct Kept {
    /// The users that may have processes, and the users whose processes the host cannot know (V8).
    living: BTreeSet<AllocationId>,
    /// The users for which this is not known yet.
    unsettled: BTreeSet<AllocationId>,
    /// The users that have no processes as far as the host knows, with the paths of their claims. A process of an earlier run may have been
    /// left: one that does not end, or one that left its group.
    doubtful: BTreeSet<(PathBuf, AllocationId)>,
}

/// Sorts the users by whether their claims are kept.
///
/// # Errors
/// A volume that has not reported its claims yet.
fn kept(users: &KnownUsers, reports: &[VolumeReport]) -> Result<Kept, VolumeKey> {
    let mut kept = Kept { living: users.living.clone(), ..Kept::default() };
    for report in reports.iter().filter(|report| report.actor != VolumeActor::Unneeded) {
        let status = report.status.as_ref().ok_or_else(|| report.volume.spec.key.clone())?;
        for claim in &status.claims {
            let user = claim.allocation.clone();
            let is_open = claim.is_provisional && !users.living.contains(&user);
            if !users.own.contains(&user) {
                kept.living.insert(user);
            } else if is_open && users.unsettled.contains(&user) {
                kept.unsettled.insert(user);
            } else if is_open {
                kept.doubtful.insert((claim.path.clone(), user));
            }
        }
    }
    Ok(kept)
}

/// The users that may have a process: one that was given the path of one of their claims. All of them if that cannot be determined.
async fn may_live(doubtful: BTreeSet<(PathBuf, AllocationId)>) -> BTreeSet<AllocationId> {
    let paths: BTreeSet<_> = doubtful.iter().map(|(path, _)| path.clone()).collect();
    let look = actix_rt::task::spawn_blocking(move || GivenPaths::among(&paths));
    let found = look.await.map_err(std::io::Error::other).and_then(|found| found);
    let is_given = |path: &PathBuf| match &found {
        Ok(found) => found.is_any_unknown || found.given.contains(path),
        Err(_) => true,
    };
    let users: BTreeSet<_> =
        doubtful.into_iter().filter(|(path, _)| is_given(path)).map(|(_, user)| user).collect();
    for user in &users {
        let error = found.as_ref().err().map(tracing::field::display);
        tracing::warn!(
            %user, error,
            "keeping volumes of an earlier run: a process that knows the path of one may still run; they are released when it has ended"
        );
    }
    users
}

/// Logs the outcome of the claims, and returns whether a volume did not answer.
fn has_open(confirmed: &[VolumeConfirmed]) -> bool {
    let mut is_open = false;
    for VolumeConfirmed { volume, result } in confirmed {
        match result {
            Ok(claims) => {
                for user in &claims.confirmed {
                    tracing::info!(%volume, allocation = %user, "a claim of an earlier run is kept");
                }
                for user in &claims.released {
                    tracing::info!(%volume, allocation = %user, "a claim of an earlier run is released, since its user has no process");
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::volumes::KnownVolume;

    use super::super::tests::{spec, status, user};
    use super::*;

    fn users(names: &[&str]) -> BTreeSet<AllocationId> {
        names.iter().map(|name| user(name)).collect()
    }

    fn report(name: &str, actor: VolumeActor, claimants: Option<&[&str]>) -> VolumeReport {
        let spec = spec(name);
        let status = claimants.map(|names| status(&spec, users(names).into_iter().collect()).into());
        let volume = Arc::new(KnownVolume::new(spec));
        VolumeReport { volume, is_known: true, actor, restarts: 0, status }
    }

    #[test]
    fn only_own_users_without_a_process_lose_their_claims_v8_v14() {
        let known = KnownUsers {
            own: users(&["own-dead", "own-alive", "own-ending"]),
            living: users(&["own-alive"]),
            unsettled: users(&["own-ending"]),
        };
        let reports = [
            report("a", VolumeActor::Running, Some(&["own-alive", "own-dead", "own-ending", "web"])),
            report("b", VolumeActor::GivenUp { reason: "it fell".to_owned() }, Some(&["db"])),
            report("c", VolumeActor::Unneeded, None),
        ];
        let kept = kept(&known, &reports).expect("all have reported");
        assert_eq!(kept.living, users(&["db", "own-alive", "web"]));
        assert_eq!(kept.unsettled, users(&["own-ending"]));
        assert_eq!(kept.doubtful, BTreeSet::from([("/d/own-dead".into(), user("own-dead"))]));
    }

    #[test]
    fn before_each_volume_in_use_has_reported_nothing_is_decided_v14() {
        let known = KnownUsers { own: users(&["own"]), ..KnownUsers::default() };
        let reports =
            [report("a", VolumeActor::Running, Some(&["own"])), report("b", VolumeActor::Running, None)];
        let missing = reports[1].volume.spec.key.clone();
        assert_eq!(kept(&known, &reports), Err(missing));
    }
}
