//! The volumes of a task: claimed before each start of a run, released when nothing is left of it.

use std::time::Duration;

use callboard_actors::driver::client::TaskMount;
use callboard_actors::driver::{DriverCapabilities, MountSupport};
use callboard_actors::vocabulary::AllocationId;
use callboard_actors::volume::{Claimed, ObservedEnd};

use super::{RunKey, Trouble};
use crate::config::{TaskConfig, TaskVolume};
use crate::volumes::Claimer;

/// How long a start waits for its volumes before it releases them and begins again.
const CLAIM_WITHIN: Duration = Duration::from_secs(300);
/// A wait for volumes that takes longer is logged.
const CLAIM_USUAL: Duration = Duration::from_secs(20);
/// How long to wait, after the end of a run, for the release of its volumes, which continues. Shorter than the timeout of a sweep.
const RELEASE_WITHIN: Duration = Duration::from_secs(20);

/// Claims volumes for the tasks of a host. A claim belongs to the task, by its name.
#[derive(Debug)]
pub(super) struct TaskClaims(pub(super) Claimer);

impl TaskClaims {
    /// Claims the volumes of a task for a run, and returns how each is mounted into it. When the future is dropped, or after an error, some
    /// may be claimed, until one of the other two functions is called.
    ///
    /// # Errors
    /// Why they cannot be used by this task. If its driver mounts nothing, nothing is claimed.
    pub(super) async fn claim(
        &self,
        run: &RunKey,
        config: &TaskConfig,
        capabilities: &DriverCapabilities,
    ) -> Result<Vec<TaskMount>, Trouble> {
        let volumes = &config.volumes;
        if volumes.is_empty() {
            return Ok(Vec::new());
        }
        if capabilities.mounts == MountSupport::None {
            let RunKey { name, driver, .. } = run;
            return Err(Trouble::lasting(format!(
                "its {} cannot be mounted into it, since driver {driver} offers no mounts; have task {name} run by a driver that \
                 mounts, or remove its volumes",
                counted(volumes.len())
            )));
        }
        let wanted: Vec<_> = volumes.iter().map(|of| (of.volume.clone(), of.read_only)).collect();
        let mut claimed = std::pin::pin!(self.0.hold(&run.name, &wanted, CLAIM_WITHIN));
        let claimed = tokio::select! {
            claimed = &mut claimed => claimed,
            () = tokio::time::sleep(CLAIM_USUAL) => {
                tracing::warn!(task = %run.name, "a task waits for its volumes to be set up");
                claimed.await
            }
        };
        let claimed = claimed.map_err(|error| Trouble {
            is_transient: error.is_transient,
            ..Trouble::passing(error.reason)
        })?;
        Ok(volumes.iter().zip(claimed).map(|(of, claimed)| mount(of, claimed)).collect())
    }

    /// Releases the volumes of a task whose run was not started. A recorded release continues without a retry; the result is why it is not
    /// over yet.
    ///
    /// # Errors
    /// If it is not recorded.
    pub(super) async fn not_started(&self, task: &AllocationId) -> Result<Option<String>, Trouble> {
        self.release(task, ObservedEnd::NeverStarted).await
    }

    /// Releases the volumes of a task that has no process left (V8). A recorded release continues without a retry; the result is why it is
    /// not over yet.
    ///
    /// # Errors
    /// If it is not recorded.
    pub(super) async fn ended(&self, task: &AllocationId) -> Result<Option<String>, Trouble> {
        self.release(task, ObservedEnd::Exited).await
    }

    async fn release(&self, task: &AllocationId, observed: ObservedEnd) -> Result<Option<String>, Trouble> {
        match self.0.release(task, observed, RELEASE_WITHIN).await {
            Ok(()) => Ok(None),
            Err(error) if error.goes_on => {
                tracing::warn!(%task, %error, "a task has ended, and its volumes are still being released");
                Ok(Some(error.reason))
            }
            Err(error) => Err(Trouble::passing(error.reason)),
        }
    }
}

fn counted(volumes: usize) -> String {
    if volumes == 1 { "volume".to_owned() } else { format!("{volumes} volumes") }
}

fn mount(volume: &TaskVolume, claimed: Claimed) -> TaskMount {
    TaskMount {
        task_path: volume.destination.clone(),
        host_path: claimed.path,
        read_only: claimed.read_only,
        propagation_mode: String::new(),
        selinux_label: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::shell::Address;

    use super::*;

    #[actix::test]
    async fn a_release_that_is_not_recorded_is_an_error_whether_the_task_was_started_or_not_v8() {
        let claims = TaskClaims(Claimer::new(Address::vacant("volumes", 1), &[]));
        let task = AllocationId::new("web").unwrap();
        let (not_started, ended) = (claims.not_started(&task).await, claims.ended(&task).await);
        assert!(not_started.as_ref().is_err_and(|trouble| trouble.is_transient), "{not_started:?}");
        assert_eq!(not_started, ended);
    }
}
