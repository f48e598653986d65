//! The operations of a volume: the half of its plugin that each one calls, and its direction.

use std::path::PathBuf;

use super::record::Towards;
use crate::csi::{Call, Service};
use crate::vocabulary::AllocationId;

/// One operation of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Create,
    Delete,
    Attach,
    Detach,
    Stage,
    Unstage,
    Publish(AllocationId),
    Unpublish(AllocationId),
    LookAtStage,
    LookAt(AllocationId),
    /// A look at the target path of a claim that was given up by force, or whose row was damaged.
    LookAtAbandoned(PathBuf),
    /// The undo, at the plugin, of the publication at that path.
    UnpublishAbandoned(PathBuf),
    /// A call of the order of this number.
    Order(u64, Call),
}

impl Operation {
    /// Whether the operation sets something up. A look counts, except one after which something is undone.
    pub(super) const fn is_up(&self) -> bool {
        match self {
            Self::Create
            | Self::Attach
            | Self::Stage
            | Self::Publish(_)
            | Self::LookAtStage
            | Self::LookAt(_)
            | Self::Order(..) => true,
            Self::Delete
            | Self::Detach
            | Self::Unstage
            | Self::Unpublish(_)
            | Self::LookAtAbandoned(_)
            | Self::UnpublishAbandoned(_) => false,
        }
    }

    /// Whether the controller half of the plugin is called. Otherwise the node half is, or the kernel is asked.
    pub(super) fn is_at_controller(&self) -> bool {
        match self {
            Self::Create | Self::Delete | Self::Attach | Self::Detach => true,
            Self::Stage
            | Self::Unstage
            | Self::Publish(_)
            | Self::Unpublish(_)
            | Self::LookAtStage
            | Self::LookAt(_)
            | Self::LookAtAbandoned(_)
            | Self::UnpublishAbandoned(_) => false,
            Self::Order(_, call) => call.service() != Service::Node,
        }
    }

    pub(super) const fn towards(&self) -> Towards {
        if self.is_up() { Towards::Up } else { Towards::Down }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create => "CreateVolume",
            Self::Delete => "DeleteVolume",
            Self::Attach => "ControllerPublishVolume",
            Self::Detach => "ControllerUnpublishVolume",
            Self::Stage => "NodeStageVolume",
            Self::Unstage => "NodeUnstageVolume",
            Self::Publish(_) => "NodePublishVolume",
            Self::Unpublish(_) | Self::UnpublishAbandoned(_) => "NodeUnpublishVolume",
            Self::LookAtStage => "the look at the staging path",
            Self::LookAt(_) => "the look at the target path",
            Self::LookAtAbandoned(_) => "the look",
            Self::Order(_, call) => call.as_str(),
        }
    }
}
