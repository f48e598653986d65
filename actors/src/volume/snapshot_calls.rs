//! Asks about a snapshot before a call that depends on it: for its group, and its size.

use std::sync::Arc;
use std::time::Duration;

use super::calls::Admitted;
use super::plugins::not_made;
use super::{CreateArgs, Failure, Known, Turn, VolumeSpec, check_alone};
use crate::csi::{Call, GetSnapshotRequest, ListSnapshotsRequest, Secrets, Snapshot, UnaryRequest};
use crate::pauses;
use crate::vocabulary::text::escaped;
use crate::vocabulary::{ControllerCapability, CsiFingerprint};

/// The time limit for an answer about a snapshot, and before it for the turn of a question about this snapshot alone.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// A snapshot as the plugin reports it; `None` if it does not know it, or has no such call. The failure is [`Known::NotMade`] if it was not
/// asked, [`Known::NotNow`] if it may answer later, and [`Known::Refused`] if the same question would most likely get no other answer.
type Told = Result<Option<Snapshot>, Failure>;

impl Admitted {
    /// Refuses a snapshot of a group, which is deleted with its group alone (C103). A plugin that lists no snapshots refuses it itself
    /// (C104). Returns whether the plugin has groups.
    pub(super) async fn check_alone(&self, spec: &VolumeSpec, snapshot_id: &str) -> Result<bool, Failure> {
        if self.offered().await?.group_controller.is_none() {
            return Ok(false);
        }
        let told = self.listed(spec, snapshot_id).await.map_err(|failure| Failure {
            known: if failure.known == Known::NotMade { Known::NotMade } else { Known::NotNow },
            reason: format!("whether it belongs to a group of snapshots cannot be asked: {}", failure.reason),
        })?;
        told.map_or(Ok(()), |snapshot| check_alone(&spec.key, &snapshot))?;
        Ok(true)
    }

    /// Refuses a volume that is to be smaller than the snapshot in it (C102). For a snapshot of unknown size the plugin decides.
    pub(super) async fn check_size(&self, spec: &VolumeSpec, args: &CreateArgs) -> Result<(), Failure> {
        match args.sized_by() {
            Some(snapshot_id) => args.check_room_for(snapshot_id, self.size_of(spec, snapshot_id).await?),
            None => Ok(()),
        }
    }

    /// The size of a snapshot; zero if it is unknown, or the plugin does not report it: then the plugin itself refuses a volume that is too
    /// small.
    async fn size_of(&self, spec: &VolumeSpec, snapshot_id: &str) -> Result<u64, Failure> {
        let offered = self.offered().await?;
        let can = |call| offered.controller.as_ref().is_some_and(|can| can.contains(&call));
        let told = match can(ControllerCapability::ListSnapshots) {
            true => self.listed(spec, snapshot_id).await,
            false if can(ControllerCapability::GetSnapshot) => self.got(spec, snapshot_id).await,
            false => Ok(None),
        };
        match told {
            Ok(snapshot) => Ok(snapshot.map(|snapshot| snapshot.size_bytes).unwrap_or_default()),
            Err(Failure { known: Known::Refused, reason }) => {
                let snapshot = escaped(snapshot_id);
                tracing::warn!(volume = %spec.key, %snapshot, reason, "a plugin does not report the size of a snapshot");
                Ok(0)
            }
            Err(Failure { known, reason }) => {
                let reason =
                    format!("the size of snapshot {} cannot be asked: {reason}", escaped(snapshot_id));
                Err(Failure { known, reason })
            }
        }
    }

    /// The reported capabilities of its half of the plugin.
    async fn offered(&self) -> Result<Arc<CsiFingerprint>, Failure> {
        let (client, _permit) = self.client().await?;
        Ok(client.lease().fingerprint().clone())
    }

    /// The entry of this snapshot in the list of the plugin.
    async fn listed(&self, spec: &VolumeSpec, snapshot_id: &str) -> Told {
        let secrets = self.secrets_for(spec, Call::ListSnapshots).await?;
        let snapshot_id = snapshot_id.to_owned();
        let request = ListSnapshotsRequest { snapshot_id, secrets, ..ListSnapshotsRequest::default() };
        let listed = self.told(&request).await?;
        let is_it = |snapshot: &Snapshot| snapshot.snapshot_id == request.snapshot_id;
        Ok(listed.and_then(|listed| listed.entries.into_iter().find(is_it)))
    }

    /// The answer of the plugin about this snapshot alone, when no other call on it is in flight (C002).
    async fn got(&self, spec: &VolumeSpec, snapshot_id: &str) -> Told {
        let of = Turn::Snapshot(spec.plugin.clone(), snapshot_id.to_owned());
        let turn = pauses::within(ASK_WITHIN.min(self.clock.for_the_call()), self.shared.turn(of)).await;
        let _turn = turn.map_err(|_| not_made("another call on this snapshot is in flight"))?;
        let secrets = self.secrets_for(spec, Call::GetSnapshot).await?;
        self.told(&GetSnapshotRequest { snapshot_id: snapshot_id.to_owned(), secrets }).await
    }

    async fn secrets_for(&self, spec: &VolumeSpec, call: Call) -> Result<Secrets, Failure> {
        let secrets = self.shared.secrets_of(&spec.key, call).await;
        secrets.map_err(|reason| not_made(format!("cannot read its secrets: {reason}")))
    }

    /// The answer of the plugin; `None` if it does not know the snapshot, or has no such call. The permit for it is taken after any turn,
    /// as everywhere.
    async fn told<R: UnaryRequest>(&self, request: &R) -> Result<Option<R::Answer>, Failure> {
        let (client, _permit) = self.client().await?;
        match client.call(request, ASK_WITHIN.min(self.clock.for_the_call())).await {
            Ok(told) => Ok(Some(told)),
            Err(failed) => match Known::of_question(&failed) {
                Known::Absent | Known::Unsupported => Ok(None),
                known => Err(Failure { known, reason: failed.to_string() }),
            },
        }
    }
}
