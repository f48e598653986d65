//! What is asked about a snapshot before a call that depends on it: the group that it belongs to, and its size.

use std::time::Duration;

use super::calls::Admitted;
use super::{CreateArgs, Failure, Known, Turn, VolumeSpec};
use crate::csi::{
    Call, Client, Code, GetSnapshotRequest, ListSnapshotsRequest, Secrets, Snapshot, UnaryRequest,
    VolumeContentSource,
};
use crate::pauses;
use crate::vocabulary::ControllerCapability;
use crate::vocabulary::text::escaped;

/// How long an answer about a snapshot is waited for.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// What a plugin says of a snapshot; `None` if it does not know it, or has no such call.
type Told = Result<Option<Snapshot>, NotTold>;

/// Why it says nothing, with the code that it has answered.
type NotTold = (Option<Code>, Failure);

impl Admitted {
    /// Refuses a snapshot of a group, which is deleted with its group alone (C103). A plugin that lists no snapshots refuses it itself
    /// (C104). What it gives is whether the plugin has groups.
    pub(super) async fn check_alone(&self, spec: &VolumeSpec, snapshot_id: &str) -> Result<bool, Failure> {
        let (client, _permit) = self.client().await?;
        if client.lease().fingerprint().group_controller.is_none() {
            return Ok(false);
        }
        let told = self.listed(&client, spec, snapshot_id).await.map_err(|(_, failure)| Failure {
            known: if failure.known == Known::NotMade { Known::NotMade } else { Known::NotNow },
            reason: format!("whether it belongs to a group of snapshots cannot be asked: {}", failure.reason),
        })?;
        match told.map(|snapshot| snapshot.group_snapshot_id).filter(|group| !group.is_empty()) {
            None => Ok(true),
            Some(group) => {
                let reason = format!(
                    "it belongs to the group of snapshots {group}, and goes with it alone: delete the group instead, with all of its snapshots \
                     ('volume snapshot group delete {} --id {group}')",
                    spec.key,
                    group = escaped(&group)
                );
                Err(Failure { known: Known::Refused, reason })
            }
        }
    }

    /// Refuses a volume that is to be smaller than the snapshot in it (C102). A snapshot of an unknown size is up to the plugin.
    pub(super) async fn check_size(&self, spec: &VolumeSpec, args: &CreateArgs) -> Result<(), Failure> {
        let (Some(VolumeContentSource::Snapshot(id)), Some(range)) =
            (&args.volume.content_source, args.volume.capacity_range)
        else {
            return Ok(());
        };
        let bytes = self.size_of(spec, id).await?;
        let most = if range.limit_bytes > 0 { range.limit_bytes } else { range.required_bytes };
        if most == 0 || most >= bytes {
            return Ok(());
        }
        let reason = format!(
            "snapshot {} has {bytes} bytes, and a volume from it is not smaller: ask for as many or more instead of {most}",
            escaped(id)
        );
        Err(Failure { known: Known::Refused, reason })
    }

    /// The size of a snapshot; zero if it is unknown, or the plugin cannot tell it now.
    async fn size_of(&self, spec: &VolumeSpec, snapshot_id: &str) -> Result<u64, Failure> {
        let (client, _permit) = self.client().await?;
        let fingerprint = client.lease().fingerprint().clone();
        let can = |call| fingerprint.controller.as_ref().is_some_and(|can| can.contains(&call));
        let told = match can(ControllerCapability::ListSnapshots) {
            true => self.listed(&client, spec, snapshot_id).await,
            false if can(ControllerCapability::GetSnapshot) => self.got(&client, spec, snapshot_id).await,
            false => Ok(None),
        };
        match told {
            Ok(snapshot) => Ok(snapshot.map(|snapshot| snapshot.size_bytes).unwrap_or_default()),
            // The plugin cannot tell, and refuses what is too small itself.
            Err((Some(_), _)) => Ok(0),
            Err((None, failure)) => Err(failure),
        }
    }

    /// What the list of the plugin has of this snapshot.
    async fn listed(&self, client: &Client, spec: &VolumeSpec, snapshot_id: &str) -> Told {
        let secrets = self.secrets_for(spec, Call::ListSnapshots).await?;
        let snapshot_id = snapshot_id.to_owned();
        let request = ListSnapshotsRequest { snapshot_id, secrets, ..ListSnapshotsRequest::default() };
        let listed = self.told(client, &request).await?;
        let is_it = |snapshot: &Snapshot| snapshot.snapshot_id == request.snapshot_id;
        Ok(listed.and_then(|listed| listed.entries.into_iter().find(is_it)))
    }

    async fn got(&self, client: &Client, spec: &VolumeSpec, snapshot_id: &str) -> Told {
        let of = Turn::Snapshot(spec.plugin.clone(), snapshot_id.to_owned());
        let turn = pauses::within(ASK_WITHIN, self.shared.turn(of)).await;
        let _turn = turn.map_err(|_| not_asked("another call on this snapshot is in flight"))?;
        let secrets = self.secrets_for(spec, Call::GetSnapshot).await?;
        self.told(client, &GetSnapshotRequest { snapshot_id: snapshot_id.to_owned(), secrets }).await
    }

    async fn secrets_for(&self, spec: &VolumeSpec, call: Call) -> Result<Secrets, NotTold> {
        let secrets = self.shared.secrets_of(&spec.key, call).await;
        secrets.map_err(|reason| not_asked(&format!("its secrets cannot be had: {reason}")))
    }

    /// The answer of the plugin; `None` if it does not know the snapshot, or has no such call.
    async fn told<R: UnaryRequest>(
        &self,
        client: &Client,
        request: &R,
    ) -> Result<Option<R::Answer>, NotTold> {
        let told = client.call(request, ASK_WITHIN.min(self.clock.for_the_call())).await;
        match told.map_err(|failed| (failed.code(), Failure::from(&failed))) {
            Ok(told) => Ok(Some(told)),
            Err((Some(Code::NotFound), _) | (_, Failure { known: Known::Unsupported, .. })) => Ok(None),
            Err(not_told) => Err(not_told),
        }
    }
}

fn not_asked(reason: &str) -> NotTold {
    (None, Failure { known: Known::NotMade, reason: reason.to_owned() })
}
