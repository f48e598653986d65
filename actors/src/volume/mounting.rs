//! Does the work that CSI leaves to the orchestrator around a call to the node service: directories before it, a look after it, and no
//! directory of ours left after a confirmed undo (C125, C136, V6, V7).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::calls::NodeResult;
use super::plugins::not_made;
use super::shared::Shared;
use super::{Failure, Known, Seen, VolumeLayout};
use crate::csi::Code;
use crate::mounts::{Made, MalformedPlace, Mounts, Place};

/// The maximum delay of a late mount.
const LATE_MOUNT_MAX: Duration = Duration::from_secs(2);
/// The pause between two looks for a late mount.
const LATE_MOUNT_PAUSE: Duration = Duration::from_millis(100);

/// The mounts of this node, as one call needs them.
pub(super) struct Mounting {
    mounts: Arc<dyn Mounts>,
    data_dir: Arc<Path>,
}

impl Mounting {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { mounts: Arc::clone(&shared.mounts), data_dir: Arc::clone(&shared.data_dir) }
    }

    /// Makes the directory at which a volume is staged (C125).
    pub(super) async fn make_mount_point(&self, path: &Path) -> Result<Made, Failure> {
        let place = self.place(path).map_err(not_made)?;
        self.mounts.make_mount_point(place).await.map_err(not_made)
    }

    /// Makes the directory in which the plugin makes a target path (C136).
    pub(super) async fn make_parent(&self, path: &Path) -> Result<Made, Failure> {
        let place = self.place(path).map_err(not_made)?;
        self.mounts.make_parent(place).await.map_err(not_made)
    }

    /// Checks that a path of the ledger leads to where its volume was set up. Mounts move with their directory: if the data directory was
    /// moved, nothing is at the path, and the volume is in use elsewhere (V8).
    pub(super) async fn check(&self, path: &Path) -> Result<(), Failure> {
        self.is_below(path).map_err(not_made)?;
        self.mounts.check(path.to_owned()).await.map_err(|error| not_made(error.to_string()))
    }

    fn is_below(&self, path: &Path) -> Result<(), String> {
        match path.starts_with(&self.data_dir) {
            true => Ok(()),
            false => Err(format!(
                "{} is not below the data directory {}, which was another one or moved when the volume was set up, and what is mounted \
                 moves with it; stop the host, and start it with the data directory at its former path. If nothing of the volume is mounted \
                 any more, as after a reboot, give it up by force instead",
                path.display(),
                self.data_dir.display()
            )),
        }
    }

    fn place(&self, path: &Path) -> Result<Place, MalformedPlace> {
        Place::new(&self.data_dir, path).map(|place| place.keeping(VolumeLayout::KEPT_NAMES))
    }

    /// Looks at the result of a setup. If it is certain that nothing was set up, and the directory was made for this call alone, the
    /// directory is removed, too: no undo follows that would remove it. A refused call that took effect is undone (V4).
    pub(super) async fn after_set_up(
        &self,
        (path, staging): (&Path, Option<&Path>),
        made: Made,
        result: Result<(), Failure>,
    ) -> NodeResult {
        let failure = match result {
            Ok(()) => return (Ok(()), self.look(path, staging).await),
            Err(failure) if matches!(failure.known, Known::Unclear | Known::NotMade) => failure,
            Err(failure) => match self.look(path, None).await {
                Seen::Present(mark) if made != Made::Mounted => {
                    let reason = format!("{}; but the kernel has {mark} there", failure.reason);
                    return (Err(Failure { reason, ..failure }), Seen::Present(mark));
                }
                _ => failure,
            },
        };
        if made == Made::New && failure.known != Known::Unclear {
            self.remove(path).await;
        }
        not_looked(failure)
    }

    /// Looks at the result of an undo, and removes its directory if nothing is left there. If the plugin does not know the volume, the
    /// kernel decides (C.6). A plugin that may still be working on the call proves nothing, and the kernel is not asked.
    pub(super) async fn after_undo(
        &self,
        path: &Path,
        result: Result<(), (Option<Code>, Failure)>,
    ) -> NodeResult {
        let (result, is_over) = match result {
            Ok(()) => (Ok(()), true),
            Err((code, failure)) if code.is_none_or(may_go_on) => return not_looked(failure),
            Err((_, failure)) => {
                let is_over = matches!(failure.known, Known::Absent | Known::Unsupported);
                (Err(failure), is_over)
            }
        };
        let seen = self.look(path, None).await;
        if is_over && seen == Seen::Nothing {
            self.remove(path).await;
        }
        (result, seen)
    }

    /// Looks at a target at which the plugin has answered to have published, and nothing is mounted. There has to be a mount by then (V7),
    /// but some plugins mount in the background: it is looked at again for a while, before the answer is taken as false and undone.
    pub(super) async fn look_for_late_mount(
        &self,
        (path, staging): (&Path, Option<&Path>),
        within: Duration,
    ) -> Seen {
        let due = Instant::now() + within.min(LATE_MOUNT_MAX);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Seen::Nothing;
            }
            sleep(left.min(LATE_MOUNT_PAUSE)).await;
            match self.look(path, staging).await {
                Seen::Nothing => {}
                seen => return seen,
            }
        }
    }

    /// Looks at a path within the time limit of the mounts. With the staging path of the volume that is published there, it detects that
    /// only the staging directory is there: without a mount that is a directory of the host.
    pub(super) async fn look(&self, path: &Path, staging: Option<&Path>) -> Seen {
        if let Err(reason) = self.is_below(path) {
            return Seen::Unclear(reason);
        }
        let path = path.to_owned();
        let Some(staging) = staging else { return Seen::of(&self.mounts.look(path).await) };
        match self.mounts.look_at_both(path, staging.to_owned()).await {
            Ok([target, staging]) if staging.is_bare_and_same_as(&target) => Seen::BareStaging,
            Ok([target, _]) => Seen::of(&Ok(target)),
            Err(error) => Seen::of(&Err(error)),
        }
    }

    /// Removes an empty directory of ours. The volume is down in any case.
    pub(super) async fn remove(&self, path: &Path) {
        let place = match self.place(path) {
            Ok(place) => place,
            Err(error) => return tracing::warn!(%error, "cannot remove a directory of a volume"),
        };
        if let Err(error) = self.mounts.remove(place).await {
            tracing::warn!(%error, "cannot remove a directory of a volume");
        }
    }
}

/// Whether a plugin that answers with this code may still be working on the call, or has not received it (C003, C016).
const fn may_go_on(code: Code) -> bool {
    match code {
        Code::Ok
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Unavailable => true,
        Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => false,
    }
}

/// The result of a call after which the kernel is not asked.
fn not_looked(failure: Failure) -> NodeResult {
    let seen = Seen::Unclear("it was not checked, since the call failed".to_owned());
    (Err(failure), seen)
}
