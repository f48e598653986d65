//! The calls of a volume, and what is known after each.

use std::path::PathBuf;
use std::sync::Arc;

use super::record::{AttachArgs, MountMark, PublishArgs, StageArgs, VolumeSpec};
use crate::csi::{Call, Context};
use crate::vocabulary::{ControllerCapability, CsiFingerprint, Generation, NodeCapability};

/// The calls of a volume. One at a time (V2).
///
/// A call to the node service is framed by what CSI leaves to the orchestrator: before it the directories are made (C125, C136), after
/// it the kernel is looked at, and what is confirmed down leaves no directory of ours (V6).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeCall {
    /// Read the present [`Route`].
    ReadRoute,
    /// `ControllerPublishVolume`.
    Attach(Arc<VolumeSpec>, AttachArgs),
    /// `ControllerUnpublishVolume`.
    Detach(Arc<VolumeSpec>, AttachArgs),
    /// `NodeStageVolume`.
    Stage(Arc<VolumeSpec>, StageArgs),
    /// `NodeUnstageVolume`.
    Unstage(Arc<VolumeSpec>, StageArgs),
    /// `NodePublishVolume`.
    Publish(Arc<VolumeSpec>, PublishArgs),
    /// `NodeUnpublishVolume`.
    Unpublish(Arc<VolumeSpec>, PublishArgs),
    /// Look at the kernel's mount table, and touch what is mounted, within a time limit (V7).
    Look {
        /// The path.
        path: PathBuf,
    },
}

impl VolumeCall {
    /// The CSI call that it makes, if any.
    #[must_use]
    pub const fn csi(&self) -> Option<Call> {
        match self {
            Self::ReadRoute | Self::Look { .. } => None,
            Self::Attach(..) => Some(Call::ControllerPublishVolume),
            Self::Detach(..) => Some(Call::ControllerUnpublishVolume),
            Self::Stage(..) => Some(Call::NodeStageVolume),
            Self::Unstage(..) => Some(Call::NodeUnstageVolume),
            Self::Publish(..) => Some(Call::NodePublishVolume),
            Self::Unpublish(..) => Some(Call::NodeUnpublishVolume),
        }
    }
}

/// What the kernel has at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seen {
    /// Nothing is mounted there.
    Nothing,
    /// This is, and it answers.
    Mounted(MountMark),
    /// It cannot be told: the look failed or hung (VOL-07).
    Unclear(String),
}

/// What is known after a call that did not succeed (V4, table C.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// The call was not made: the generation is gone, no connection, no directory. Nothing has changed.
    NotMade,
    /// It was refused, and the same call would be refused again. It has changed nothing.
    Refused,
    /// It was refused for now and has changed nothing. A later try may succeed.
    NotNow,
    /// It may have been done, wholly or in part, and may still be under way.
    Unclear,
    /// The plugin knows no such volume or node. As answer to an undo the kernel decides whether something is left.
    Absent,
    /// The plugin does not have this call (C019). As answer to an undo the kernel decides whether something is left.
    Unsupported,
}

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What is known.
    pub known: Known,
    /// What went wrong, and what to do.
    pub reason: String,
}

/// The outcome of a [`VolumeCall`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeOutcome {
    /// The present route.
    Route(Route),
    /// Of a call to the controller: the publish context of an attachment (C074); an empty one of its inverse.
    Controller(Result<Context, Failure>),
    /// Of a call to the node service, with a look at its path after it.
    Node(Result<(), Failure>, Seen),
    /// Of a look.
    Looked(Seen),
}

/// The present generation of the node half of the plugin, and what a volume has to know of it (V16).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRoute {
    /// The generation.
    pub generation: Generation,
    /// The id of this node with the plugin; `None` if the plugin did not say (C146).
    pub node_id: Option<String>,
    /// Whether the plugin has a controller service.
    pub requires_controller: bool,
    /// Whether the plugin stages volumes (C120).
    pub stages: bool,
    /// Whether it knows the modes of several writers on one node (C154).
    pub knows_alpha_modes: bool,
}

/// The present generation of the controller half of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ControllerRoute {
    /// The generation.
    pub generation: Generation,
    /// Whether the plugin attaches volumes to nodes (C070).
    pub attaches: bool,
}

/// Where the calls of a volume go at present. Only what is healthy is in it.
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
        }
    }
}

impl ControllerRoute {
    /// The route to this generation of a controller half.
    #[must_use]
    pub fn new(generation: Generation, fingerprint: &CsiFingerprint) -> Self {
        let needed = ControllerCapability::PublishUnpublishVolume;
        let attaches = fingerprint.controller.as_ref().is_some_and(|can| can.contains(&needed));
        Self { generation, attaches }
    }
}
