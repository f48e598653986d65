//! The known state of volumes, snapshots and the node, from answers that reached their callers.

use std::collections::{BTreeMap, BTreeSet};

use super::Asked;
use super::steps::{End, Steps};
use crate::csi::Call;
use crate::examiner::event::Answer;
use crate::examiner::request::{Map, Request};
use crate::rpc::Code;

/// A volume.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Volume {
    /// Its name, if the exam has seen its creation.
    pub(super) name: Option<String>,
    /// Its context, from its creation, or else from the first call that had one.
    pub(super) context: Option<Map>,
    pub(super) topology: Vec<Map>,
    /// For each node the context of the last publish, with the digests of its secrets in the request.
    pub(super) publish_contexts: BTreeMap<String, (Map, Request)>,
    pub(super) is_deleted: bool,
    /// The call after which the node has to expand it.
    pub(super) expansion_due: Option<u64>,
}

/// A snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Snapshot {
    pub(super) size_bytes: i64,
    pub(super) group: String,
    pub(super) is_ready: bool,
}

/// A group of snapshots.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Group {
    pub(super) snapshots: BTreeSet<String>,
    pub(super) creation: Request,
}

/// The result of the last Probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Readiness {
    /// No Probe since the start, or it failed without information about readiness.
    #[default]
    Unknown,
    Ready,
    NotReady,
    /// `FAILED_PRECONDITION`.
    Failed,
}

/// The known state, from all answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Known {
    pub(super) volumes: BTreeMap<String, Volume>,
    pub(super) steps: Steps,
    /// Creations of volumes whose outcome is unknown, by name, with the number of the call.
    pub(super) unclear_creations: BTreeMap<String, u64>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    pub(super) groups: BTreeMap<String, Group>,
    /// The targets at which volumes were to be published, and which were not certainly unpublished since: the plugin may have created
    /// the object there, whatever it answered.
    pub(super) targets: BTreeSet<String>,
    pub(super) node_id: Option<String>,
    pub(super) readiness: Readiness,
    /// The tokens that each list has returned, and those that it has refused with ABORTED.
    pub(super) tokens: BTreeSet<(Call, String)>,
    pub(super) aborted_tokens: BTreeSet<(Call, String)>,
}

impl Known {
    /// The volume, if it is known and not deleted.
    pub(super) fn living(&self, id: &str) -> Option<&Volume> {
        self.volumes.get(id).filter(|volume| !volume.is_deleted)
    }

    /// Applies a request: a target, and the context of a volume whose creation the exam has not seen.
    pub(super) fn meet(&mut self, asked: &Asked<'_>) {
        if asked.call == Call::NodePublishVolume {
            self.targets.insert(asked.request.target_path.clone());
        }
        let has_context = matches!(
            asked.call,
            Call::ControllerPublishVolume | Call::NodeStageVolume | Call::NodePublishVolume
        );
        if has_context && !asked.request.volume_id.is_empty() {
            let volume = self.volumes.entry(asked.request.volume_id.clone()).or_default();
            volume.context.get_or_insert_with(|| asked.request.volume_context.clone());
        }
    }

    /// Applies an error.
    pub(super) fn note_failure(&mut self, number: u64, call: Call, request: &Request, code: Code) {
        match (call, End::of(code, false)) {
            (Call::CreateVolume, End::Unknown(_)) => {
                self.unclear_creations.insert(request.name.clone(), number);
            }
            (Call::NodePublishVolume, _) if matches!(code, Code::FailedPrecondition | Code::NotFound) => {
                self.steps.deny_staging(&request.volume_id);
            }
            (Call::Probe, _) if code == Code::FailedPrecondition => self.readiness = Readiness::Failed,
            (Call::Probe, End::Unknown(_) | End::Nothing) => self.readiness = Readiness::Unknown,
            (Call::ListVolumes | Call::ListSnapshots, _) if code == Code::Aborted => {
                self.aborted_tokens.insert((call, request.starting_token.clone()));
            }
            (_, End::Done | End::Nothing | End::Unknown(_)) => {}
        }
    }

    /// The caller has left: it does not know the outcome.
    pub(super) fn note_loss(&mut self, number: u64, call: Call, request: &Request) {
        if call == Call::CreateVolume {
            self.unclear_creations.insert(request.name.clone(), number);
        }
    }

    /// Applies an answer.
    pub(super) fn learn(&mut self, number: u64, call: Call, request: &Request, answer: &Answer) {
        match call {
            Call::CreateVolume => {
                self.unclear_creations.remove(&request.name);
                let volume = Volume {
                    name: Some(request.name.clone()),
                    context: Some(answer.volume_context.clone()),
                    topology: answer.accessible_topology.clone(),
                    ..Volume::default()
                };
                let known = self.volumes.entry(answer.volume_id.clone()).or_default();
                if known.is_deleted || known.name.is_none() {
                    *known = volume;
                }
            }
            Call::DeleteVolume => {
                let volume = self.volumes.entry(request.volume_id.clone()).or_default();
                volume.is_deleted = true;
                if let Some(name) = &volume.name {
                    self.unclear_creations.remove(name);
                }
                self.steps.forget(&request.volume_id);
            }
            Call::NodePublishVolume => self.steps.confirm_staging(&request.volume_id),
            Call::ControllerPublishVolume => {
                let volume = self.volumes.entry(request.volume_id.clone()).or_default();
                let context = (answer.publish_context.clone(), request.clone());
                volume.publish_contexts.insert(request.node_id.clone(), context);
            }
            Call::ControllerExpandVolume => {
                let volume = self.volumes.entry(request.volume_id.clone()).or_default();
                volume.expansion_due = answer.node_expansion_required.then_some(number);
            }
            Call::NodeExpandVolume => {
                self.volumes.entry(request.volume_id.clone()).or_default().expansion_due = None;
            }
            Call::NodeUnpublishVolume => {
                self.targets.remove(&request.target_path);
            }
            Call::NodeGetInfo => self.node_id = Some(answer.node_id.clone()),
            Call::Probe => {
                let is_ready = answer.ready.unwrap_or(true);
                self.readiness = if is_ready { Readiness::Ready } else { Readiness::NotReady };
            }
            Call::ListVolumes | Call::ListSnapshots => {
                self.tokens.insert((call, answer.next_token.clone()));
                self.aborted_tokens.retain(|(list, _)| *list != call);
            }
            _ => self.learn_of_snapshots(call, request, answer),
        }
    }

    fn learn_of_snapshots(&mut self, call: Call, request: &Request, answer: &Answer) {
        let snapshot = |size_bytes| Snapshot {
            size_bytes,
            group: answer.group_snapshot_id.clone(),
            is_ready: answer.ready.unwrap_or(true),
        };
        match call {
            Call::CreateSnapshot | Call::GetSnapshot => {
                self.snapshots.insert(answer.snapshot_id.clone(), snapshot(answer.size_bytes));
            }
            Call::DeleteSnapshot => {
                self.snapshots.remove(&request.snapshot_id);
            }
            Call::CreateVolumeGroupSnapshot => {
                let group = Group {
                    snapshots: answer.snapshot_ids.iter().cloned().collect(),
                    creation: request.clone(),
                };
                self.groups.insert(answer.group_snapshot_id.clone(), group);
                for id in &answer.snapshot_ids {
                    self.snapshots.insert(id.clone(), snapshot(0));
                }
            }
            Call::DeleteVolumeGroupSnapshot => {
                if let Some(group) = self.groups.remove(&request.group_snapshot_id) {
                    self.snapshots.retain(|id, _| !group.snapshots.contains(id));
                }
            }
            _ => {}
        }
    }
}
