//! The calls of a volume, and their outcomes.

use std::path::PathBuf;
use std::sync::Arc;

use super::before::Before;
use super::existence::CreateArgs;
use super::mark::Mark;
use super::order::{OrderCall, OrderResult};
use super::record::{AttachArgs, PublishArgs, StageArgs, VolumeSpec};
use crate::csi::{self, Call, Context, Effect, FailedCall, Reaction, controller_can};
use crate::mounts::{LookError, PathKind, PathLook};
use crate::vocabulary::{
    ControllerCapability, CsiFingerprint, Expansion, Generation, GroupControllerCapability, NodeCapability,
};

/// The calls of a volume. One at a time (V2).
///
/// A call to the node service includes the steps that CSI leaves to the orchestrator: the directories are made before it (C125, C136), the
/// kernel is looked at after it, and a confirmed undo leaves no directory of ours (V6). Directories for the next call of the same claim are
/// made while this call is under way, and removed again if this call fails or another call follows.
///
/// A CSI call is for one generation of the plugin: the present one when the machine decided to make it. If that generation is retired
/// before the call is sent, the call is [not made](Known::NotMade): another generation may have fewer capabilities (V16).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeCall {
    /// Read the present [`Route`].
    ReadRoute,
    /// `CreateVolume`.
    Create(Arc<VolumeSpec>, Generation, Arc<CreateArgs>),
    /// `DeleteVolume`.
    Delete(Arc<VolumeSpec>, Generation),
    /// `ControllerPublishVolume`. The path is the next staging path of the volume, if the ledger has that intent: its directory is made
    /// meanwhile.
    Attach(Arc<VolumeSpec>, Generation, AttachArgs, Option<PathBuf>),
    /// `ControllerUnpublishVolume`.
    Detach(Arc<VolumeSpec>, Generation, AttachArgs),
    /// `NodeStageVolume`. The path is the next target path of the volume, if the ledger has that intent: the directory above it is made
    /// meanwhile.
    Stage(Arc<VolumeSpec>, Generation, StageArgs, Before, Option<PathBuf>),
    /// `NodeUnstageVolume`.
    Unstage(Arc<VolumeSpec>, Generation, StageArgs),
    /// `NodePublishVolume`.
    Publish(Arc<VolumeSpec>, Generation, PublishArgs, Before),
    /// `NodeUnpublishVolume` of a target path.
    Unpublish(Arc<VolumeSpec>, Generation, PathBuf),
    /// The call of an order.
    Order(Arc<VolumeSpec>, Generation, OrderCall),
    /// Ask the kernel for the mount at a path, and touch it, within a time limit (V7).
    Look {
        /// The path.
        path: PathBuf,
        /// The staging path of the volume that is published there.
        staging: Option<PathBuf>,
    },
    /// Do nothing. It is sent after the audits up to this number, so when it returns, they are published.
    AwaitAudits(u64),
}

impl VolumeCall {
    /// The CSI call that it makes, if any.
    #[must_use]
    pub const fn csi(&self) -> Option<Call> {
        match self {
            Self::ReadRoute | Self::Look { .. } | Self::AwaitAudits(_) => None,
            Self::Create(..) => Some(Call::CreateVolume),
            Self::Delete(..) => Some(Call::DeleteVolume),
            Self::Attach(..) => Some(Call::ControllerPublishVolume),
            Self::Detach(..) => Some(Call::ControllerUnpublishVolume),
            Self::Stage(..) => Some(Call::NodeStageVolume),
            Self::Unstage(..) => Some(Call::NodeUnstageVolume),
            Self::Publish(..) => Some(Call::NodePublishVolume),
            Self::Unpublish(..) => Some(Call::NodeUnpublishVolume),
            Self::Order(_, _, call) => Some(call.csi()),
        }
    }

    /// The volume of its CSI call, if it makes one.
    #[must_use]
    pub const fn spec(&self) -> Option<&Arc<VolumeSpec>> {
        match self {
            Self::ReadRoute | Self::Look { .. } | Self::AwaitAudits(_) => None,
            Self::Create(spec, ..)
            | Self::Delete(spec, _)
            | Self::Attach(spec, ..)
            | Self::Detach(spec, ..)
            | Self::Stage(spec, ..)
            | Self::Unstage(spec, ..)
            | Self::Publish(spec, ..)
            | Self::Unpublish(spec, ..)
            | Self::Order(spec, ..) => Some(spec),
        }
    }

    /// The generation of its CSI call, if it makes one.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        match self {
            Self::ReadRoute | Self::Look { .. } | Self::AwaitAudits(_) => None,
            Self::Create(_, generation, _)
            | Self::Delete(_, generation)
            | Self::Attach(_, generation, ..)
            | Self::Detach(_, generation, _)
            | Self::Stage(_, generation, ..)
            | Self::Unstage(_, generation, _)
            | Self::Publish(_, generation, ..)
            | Self::Unpublish(_, generation, _)
            | Self::Order(_, generation, _) => Some(*generation),
        }
    }
}

/// The observation of the kernel at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seen {
    /// Nothing is mounted there, and it is no device.
    Nothing,
    /// This object is there, and it responds.
    Present(Mark),
    /// The directory at which the volume is staged is mounted there, and nothing is mounted on that directory: writes go to the disk of the
    /// host.
    BareStaging,
    /// Something is mounted there, and it reports that it is dead (VOL-07).
    Dead(String),
    /// Unknown: the look failed or hung.
    Unclear(String),
}

impl Seen {
    /// The result of a look.
    #[must_use]
    pub fn of(look: &Result<PathLook, LookError>) -> Self {
        match look {
            Ok(look) => match (look.mounted(), look.kind) {
                (mount, PathKind::BlockDevice(device)) => Self::Present(Mark::Device { mount, device }),
                (Some(mount), _) => Self::Present(Mark::Mount(mount)),
                (None, _) => Self::Nothing,
            },
            Err(dead @ LookError::Dead { .. }) => Self::Dead(dead.to_string()),
            Err(other) => Self::Unclear(other.to_string()),
        }
    }
}

/// The known effect of a call that did not succeed (V4, table C.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// The call was not made: the generation is gone, no connection, no directory. Nothing has changed.
    NotMade,
    /// It was refused, and the same call would be refused again, until a person has changed something: the request, its secrets, the rights,
    /// or the room for a snapshot (C017, C018, C020, C105). It has changed nothing.
    Refused,
    /// It was refused for now and has changed nothing. A later try may succeed.
    NotNow,
    /// It may have been done, wholly or in part, and may still be under way.
    Unclear,
    /// The plugin reports that the volume or node does not exist. As answer to an undo, the kernel decides whether something is left. The
    /// kernel does not know attachments: such an undo is repeated (C082).
    Absent,
    /// The plugin does not have this call (C019). As answer to an undo of a staging, the kernel decides whether something is left if the
    /// present generation does not stage; otherwise something may be.
    Unsupported,
}

impl Known {
    /// The meaning of the classification of a failed call for a step.
    #[must_use]
    pub const fn of(outcome: csi::Outcome) -> Self {
        match (outcome.effect, outcome.reaction) {
            // An undo of something that the plugin does not know.
            (Effect::Unknown, Reaction::Verify) => Self::Absent,
            (Effect::Unknown | Effect::InProgress, _) => Self::Unclear,
            // It was not sent from this host.
            (Effect::NotDone, Reaction::Retry | Reaction::NewLease | Reaction::NextRun) => Self::NotMade,
            (Effect::NotDone, Reaction::GiveUp) => Self::Unsupported,
            (
                Effect::NotDone,
                Reaction::ChangeRequest | Reaction::Authorize | Reaction::Report | Reaction::MakeRoom,
            ) => Self::Refused,
            (Effect::NotDone, Reaction::RestartList | Reaction::MeetPrecondition | Reaction::Verify) => {
                Self::NotNow
            }
        }
    }

    /// The meaning of a failed question for the call that depends on its answer. A question that was sent counts as a try, however it
    /// failed: a plugin that never answers it does not block anything forever.
    #[must_use]
    pub fn of_question(failed: &FailedCall) -> Self {
        match (&failed.failure, failed.outcome().reaction) {
            (csi::Failure::LeaseEnded { .. } | csi::Failure::TooMany { .. }, _) => Self::NotMade,
            (_, Reaction::GiveUp) => Self::Unsupported,
            (_, Reaction::Verify) => Self::Absent,
            (_, Reaction::ChangeRequest | Reaction::Authorize | Reaction::Report) => Self::Refused,
            (
                _,
                Reaction::Retry
                | Reaction::NewLease
                | Reaction::NextRun
                | Reaction::RestartList
                | Reaction::MakeRoom
                | Reaction::MeetPrecondition,
            ) => Self::NotNow,
        }
    }
}

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Failure {
    /// Its known effect.
    pub known: Known,
    /// The error, and what to do.
    pub reason: String,
}

impl From<&FailedCall> for Failure {
    fn from(failed: &FailedCall) -> Self {
        Self { known: Known::of(failed.outcome()), reason: failed.reason() }
    }
}

/// The outcome of a [`VolumeCall`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeOutcome {
    /// The present route.
    Route(Route),
    /// Of a creation: the volume as the plugin answered it, whole (C059).
    Created(Result<csi::Volume, Failure>),
    /// Of a call to the controller: the publish context of an attachment (C074); an empty one of its inverse and of a deletion.
    Controller(Result<Context, Failure>),
    /// Of a call to the node service, with a look at its path after it. A refused call may have taken effect all the same. After a failure
    /// the look is [unclear](Seen::Unclear) if the plugin may still be working on the call.
    Node(Result<(), Failure>, Seen),
    /// Of the call of an order.
    Ordered(Result<OrderResult, Failure>),
    /// Of a look.
    Looked(Seen),
    /// Everything that was sent before the call was delivered.
    AuditsLeft,
}

/// The present generation of the node half of the plugin, with the capabilities that a volume needs to know (V16).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRoute {
    /// The generation.
    pub generation: Generation,
    /// The id of this node with the plugin; `None` if the plugin did not report it (C146).
    pub node_id: Option<String>,
    /// Whether the plugin has a controller service.
    pub requires_controller: bool,
    /// Whether the plugin stages volumes (C120).
    pub stages: bool,
    /// Whether it knows the modes of several writers on one node (C154).
    pub knows_alpha_modes: bool,
    /// Whether it gives the files of a volume to a group (C155).
    pub knows_mount_group: bool,
    /// Whether it expands volumes on the node (C111).
    pub expands: bool,
}

/// The conditions under which the controller half of a plugin expands volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Expands {
    /// Never: it does not have the call.
    #[default]
    Not,
    /// Only while they are not in use on any node (C109).
    Offline,
    /// At any time (C110). Also tried at a plugin that does not report when: one that cannot do it answers FAILED_PRECONDITION (C113).
    Online,
}

/// The present generation of the controller half of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ControllerRoute {
    /// The generation.
    pub generation: Generation,
    /// Whether the plugin attaches volumes to nodes (C070).
    pub attaches: bool,
    /// The conditions under which it expands volumes.
    pub expands: Expands,
    /// Whether it takes and deletes snapshots.
    pub takes_snapshots: bool,
    /// Whether it modifies volumes (C056).
    pub modifies: bool,
    /// Whether it knows the modes of several writers on one node (C154).
    pub knows_alpha_modes: bool,
    /// Whether it takes, describes and deletes groups of snapshots (C034).
    pub takes_groups: bool,
}

/// The present destination of the calls of a volume. It contains only healthy halves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Route {
    /// The node half.
    pub node: Option<NodeRoute>,
    /// The controller half.
    pub controller: Option<ControllerRoute>,
}

impl NodeRoute {
    /// The route to this generation of a node half.
    #[must_use]
    pub fn new(generation: Generation, fingerprint: &CsiFingerprint) -> Self {
        let can = |capability| fingerprint.node.as_ref().is_some_and(|node| node.contains(&capability));
        Self {
            generation,
            node_id: fingerprint.node_info.as_ref().map(|info| info.node_id.clone()),
            requires_controller: fingerprint.requires_controller(),
            stages: fingerprint.stages(),
            knows_alpha_modes: can(NodeCapability::SingleNodeMultiWriter),
            knows_mount_group: can(NodeCapability::VolumeMountGroup),
            expands: can(NodeCapability::ExpandVolume),
        }
    }
}

impl ControllerRoute {
    /// The route to this generation of a controller half.
    #[must_use]
    pub fn new(generation: Generation, fingerprint: &CsiFingerprint) -> Self {
        let can = |capability| controller_can(fingerprint, capability);
        let says = |expansion| fingerprint.expansion.contains(&expansion);
        let expands = match can(ControllerCapability::ExpandVolume) {
            false => Expands::Not,
            true if says(Expansion::Offline) && !says(Expansion::Online) => Expands::Offline,
            true => Expands::Online,
        };
        Self {
            generation,
            attaches: can(ControllerCapability::PublishUnpublishVolume),
            expands,
            takes_snapshots: can(ControllerCapability::CreateDeleteSnapshot),
            modifies: can(ControllerCapability::ModifyVolume),
            knows_alpha_modes: can(ControllerCapability::SingleNodeMultiWriter),
            takes_groups: fingerprint.group_controller.as_ref().is_some_and(|can| {
                can.contains(&GroupControllerCapability::CreateDeleteGetVolumeGroupSnapshot)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::csi::Code;
    use crate::csi::fixtures::fingerprint;
    use crate::vocabulary::{AllocationId, NodeInfo, PluginKey, PluginName, PluginType};

    fn known(call: Call) -> BTreeMap<&'static str, Known> {
        let of = |code| {
            let failure = csi::Failure::Status { code, message: String::new() };
            Known::of(csi::Outcome::of(call, &failure))
        };
        Code::ALL.into_iter().map(|code| (code.as_str(), of(code))).collect()
    }

    const STEPS: [Call; 3] = [Call::ControllerPublishVolume, Call::NodeStageVolume, Call::NodePublishVolume];

    #[test]
    fn every_code_of_every_step_leaves_it_known_or_unknown_c016_c018_c020_v4() {
        for step in STEPS {
            let up = known(step);
            let of = |wanted| up.iter().filter(move |(_, known)| **known == wanted).map(|(code, _)| *code);
            assert_eq!(of(Known::Unsupported).collect::<Vec<_>>(), ["UNIMPLEMENTED"], "{step}");
            let refused: Vec<_> = of(Known::Refused).collect();
            // A retry by itself would have the same rights and secrets (C018, C020).
            let for_good = ["ALREADY_EXISTS", "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED"];
            assert_eq!(refused, for_good, "{step}");
            assert_eq!(of(Known::NotNow).collect::<Vec<_>>(), ["FAILED_PRECONDITION", "NOT_FOUND"], "{step}");
            assert_eq!(of(Known::Unclear).count(), 17 - 7, "{step}");
        }
    }

    #[test]
    fn a_plugin_expands_offline_only_if_it_says_that_and_nothing_else_c109_c110() {
        let expands = |expansion: &[Expansion], can: bool| {
            let mut plugin = fingerprint();
            plugin.expansion = expansion.to_vec();
            let keeps =
                |capability: &ControllerCapability| can || *capability != ControllerCapability::ExpandVolume;
            if let Some(controller) = &mut plugin.controller {
                controller.retain(keeps);
            }
            ControllerRoute::new(Generation::new(1), &plugin).expands
        };
        assert_eq!(expands(&[Expansion::Offline], true), Expands::Offline);
        assert_eq!(expands(&[], true), Expands::Online, "it answers FAILED_PRECONDITION if it cannot (C113)");
        assert_eq!(expands(&[Expansion::Online, Expansion::Offline], true), Expands::Online);
        assert_eq!(expands(&[Expansion::Online], false), Expands::Not);
    }

    #[test]
    fn a_question_that_was_sent_counts_and_one_that_gets_no_other_answer_is_not_repeated_c102_c103() {
        let of = |failure| {
            let plugin = PluginName::new("zfs").expect("a good name");
            Known::of_question(&FailedCall {
                call: Call::ListSnapshots,
                plugin: PluginKey::new(PluginType::CsiController, plugin),
                allocation: AllocationId::new("a1").expect("a good id"),
                generation: Generation::new(7),
                failure,
            })
        };
        let code = |code| of(csi::Failure::Status { code, message: String::new() });
        for passing in [Code::Unavailable, Code::Aborted, Code::DeadlineExceeded, Code::Internal] {
            assert_eq!(code(passing), Known::NotNow, "{passing}");
        }
        for refused in [Code::InvalidArgument, Code::PermissionDenied, Code::Unauthenticated] {
            assert_eq!(code(refused), Known::Refused, "{refused}");
        }
        assert_eq!((code(Code::NotFound), code(Code::Unimplemented)), (Known::Absent, Known::Unsupported));
        assert_eq!(of(csi::Failure::DeadlineExceeded { after: Duration::ZERO }), Known::NotNow);
        for host_stops in [false, true] {
            assert_eq!(of(csi::Failure::Lost { detail: String::new(), host_stops }), Known::NotNow);
            assert_eq!(of(csi::Failure::LeaseEnded { detail: String::new(), host_stops }), Known::NotMade);
        }
        assert_eq!(of(csi::Failure::TooMany { detail: String::new() }), Known::NotMade);
        let fault = csi::Fault { rule: "C102", field: "size_bytes", problem: csi::Problem::Empty };
        assert_eq!(of(csi::Failure::Answer(fault)), Known::Refused);
    }

    #[test]
    fn an_undo_of_what_is_not_found_is_left_to_the_kernel_c064_c_6() {
        for undo in STEPS.map(|step| step.inverse().expect("every step has one")) {
            let down = known(undo);
            assert_eq!(down["NOT_FOUND"], Known::Absent, "{undo}");
            assert_eq!(down["UNIMPLEMENTED"], Known::Unsupported, "{undo}");
            assert_eq!(down["ABORTED"], Known::Unclear, "{undo}");
        }
    }

    #[test]
    fn a_route_has_what_its_plugin_says_of_itself_c070_c071_c120_c146_c154() {
        let whole = fingerprint();
        let node = NodeRoute::new(Generation::new(7), &whole);
        assert_eq!(node.node_id, None, "it has not told its id");
        assert!(node.stages && node.requires_controller && node.knows_alpha_modes);
        assert!(ControllerRoute::new(Generation::new(7), &whole).attaches);
        let info = NodeInfo { node_id: "node-1".to_owned(), max_volumes: None, topology: None };
        let told = CsiFingerprint { node_info: Some(info), ..whole.clone() };
        assert_eq!(NodeRoute::new(Generation::new(7), &told).node_id.as_deref(), Some("node-1"));
        let (plugin, controller) = (Vec::new(), Some(vec![ControllerCapability::CreateDeleteVolume]));
        let bare = CsiFingerprint { plugin, controller, node: Some(Vec::new()), ..whole };
        let node = NodeRoute::new(Generation::new(7), &bare);
        assert!(!node.stages && !node.requires_controller && !node.knows_alpha_modes);
        assert!(!ControllerRoute::new(Generation::new(7), &bare).attaches);
    }

    #[test]
    fn what_was_not_sent_has_changed_nothing_v4() {
        let of = |failure| Known::of(csi::Outcome::of(Call::NodeStageVolume, &failure));
        let detail = String::new;
        assert_eq!(of(csi::Failure::TooMany { detail: detail() }), Known::NotMade);
        for host_stops in [false, true] {
            assert_eq!(of(csi::Failure::LeaseEnded { detail: detail(), host_stops }), Known::NotMade);
            assert_eq!(of(csi::Failure::Lost { detail: detail(), host_stops }), Known::Unclear);
        }
    }
}
