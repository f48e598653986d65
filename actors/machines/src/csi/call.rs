//! All calls of the five services: the capability that each needs, and its inverse.

use std::fmt;

use crate::rpc::{Fault, Problem};
use crate::vocabulary::{ControllerCapability, CsiFingerprint, NodeCapability, PluginCapability};

/// A service of CSI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// The identity of the plugin; every plugin has it.
    Identity,
    /// Volumes and snapshots, independent of a node.
    Controller,
    /// Snapshots of several volumes at once.
    GroupController,
    /// The blocks of a snapshot that are in use; alpha.
    SnapshotMetadata,
    /// Volumes on this node.
    Node,
}

macro_rules! calls {
    ($($service:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* })*) => {
        /// A call to a CSI plugin, by its name in the specification.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Call {
            $($($(#[$doc])* $variant,)*)*
        }

        impl Call {
            /// All calls.
            pub const ALL: [Self; 32] = [$($(Self::$variant,)*)*];

            /// Its name in the specification.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(Self::$variant => $text,)*)*
                }
            }

            /// The service that it belongs to.
            #[must_use]
            pub const fn service(self) -> Service {
                match self {
                    $($(Self::$variant => Service::$service,)*)*
                }
            }
        }
    };
}

calls! {
    Identity {
        /// Name and version of the plugin.
        GetPluginInfo = "GetPluginInfo",
        /// The capabilities of the plugin as a whole.
        GetPluginCapabilities = "GetPluginCapabilities",
        /// Whether the plugin is ready.
        Probe = "Probe",
    }
    Controller {
        /// Creates a volume.
        CreateVolume = "CreateVolume",
        /// Deletes a volume.
        DeleteVolume = "DeleteVolume",
        /// Makes a volume available on a node.
        ControllerPublishVolume = "ControllerPublishVolume",
        /// The inverse of `ControllerPublishVolume`.
        ControllerUnpublishVolume = "ControllerUnpublishVolume",
        /// Asks whether a volume can be used in certain ways.
        ValidateVolumeCapabilities = "ValidateVolumeCapabilities",
        /// Lists volumes.
        ListVolumes = "ListVolumes",
        /// Asks for the free capacity.
        GetCapacity = "GetCapacity",
        /// The capabilities of the controller.
        ControllerGetCapabilities = "ControllerGetCapabilities",
        /// Creates a snapshot.
        CreateSnapshot = "CreateSnapshot",
        /// Deletes a snapshot.
        DeleteSnapshot = "DeleteSnapshot",
        /// Lists snapshots.
        ListSnapshots = "ListSnapshots",
        /// Describes a snapshot; alpha.
        GetSnapshot = "GetSnapshot",
        /// Makes a volume larger at its storage.
        ControllerExpandVolume = "ControllerExpandVolume",
        /// Describes a volume; alpha.
        ControllerGetVolume = "ControllerGetVolume",
        /// Changes parameters of a volume.
        ControllerModifyVolume = "ControllerModifyVolume",
    }
    GroupController {
        /// The capabilities of the group controller.
        GroupControllerGetCapabilities = "GroupControllerGetCapabilities",
        /// Creates snapshots of several volumes at once.
        CreateVolumeGroupSnapshot = "CreateVolumeGroupSnapshot",
        /// Deletes the snapshots of a group.
        DeleteVolumeGroupSnapshot = "DeleteVolumeGroupSnapshot",
        /// Describes the snapshots of a group.
        GetVolumeGroupSnapshot = "GetVolumeGroupSnapshot",
    }
    SnapshotMetadata {
        /// Streams the blocks of a snapshot that hold data; alpha.
        GetMetadataAllocated = "GetMetadataAllocated",
        /// Streams the blocks in which two snapshots differ; alpha.
        GetMetadataDelta = "GetMetadataDelta",
    }
    Node {
        /// Prepares a volume on this node, once for all its users.
        NodeStageVolume = "NodeStageVolume",
        /// The inverse of `NodeStageVolume`.
        NodeUnstageVolume = "NodeUnstageVolume",
        /// Makes a volume available at a path.
        NodePublishVolume = "NodePublishVolume",
        /// The inverse of `NodePublishVolume`.
        NodeUnpublishVolume = "NodeUnpublishVolume",
        /// How full a volume is.
        NodeGetVolumeStats = "NodeGetVolumeStats",
        /// Makes a volume larger on this node.
        NodeExpandVolume = "NodeExpandVolume",
        /// The capabilities of the node service.
        NodeGetCapabilities = "NodeGetCapabilities",
        /// The node as the plugin sees it.
        NodeGetInfo = "NodeGetInfo",
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Call {
    /// The call of this name.
    ///
    /// # Errors
    /// When there is none; the message lists all calls.
    pub fn named(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|call| call.as_str() == name)
            .ok_or_else(|| format!("expected one of {}", names()))
    }

    /// The inverse call (C014). `None`: the call changes nothing, is an inverse itself, or cannot be undone.
    #[must_use]
    pub const fn inverse(self) -> Option<Self> {
        match self {
            Self::CreateVolume => Some(Self::DeleteVolume),
            Self::ControllerPublishVolume => Some(Self::ControllerUnpublishVolume),
            Self::CreateSnapshot => Some(Self::DeleteSnapshot),
            Self::CreateVolumeGroupSnapshot => Some(Self::DeleteVolumeGroupSnapshot),
            Self::NodeStageVolume => Some(Self::NodeUnstageVolume),
            Self::NodePublishVolume => Some(Self::NodeUnpublishVolume),
            _ => None,
        }
    }

    /// Whether it is the inverse of another call.
    #[must_use]
    pub fn is_undo(self) -> bool {
        Self::ALL.into_iter().any(|call| call.inverse() == Some(self))
    }

    /// Whether it changes something at the plugin. A call that only reads can be repeated or given up at any time.
    #[must_use]
    pub fn has_effect(self) -> bool {
        let changes = matches!(
            self,
            Self::ControllerExpandVolume | Self::ControllerModifyVolume | Self::NodeExpandVolume
        );
        changes || self.inverse().is_some() || self.is_undo()
    }

    /// Checks that the plugin offers it, by its service (C033 to C035) and its capability.
    ///
    /// `plugin` is the fingerprint of the called instance: of its controller half for calls of the controller services, of its node half
    /// for calls of the node service. Capabilities of a group controller are not in a fingerprint and not checked.
    ///
    /// # Errors
    /// [`Problem::Unsupported`] with the missing capability.
    pub fn check_offered(self, plugin: &CsiFingerprint) -> Result<(), Fault> {
        if let Some((rule, service)) = self.needed_service()
            && !plugin.plugin.contains(&service)
        {
            return Err(self.unsupported(rule, service.as_str()));
        }
        if let Some(needed) = self.needed_of_controller()
            && !plugin.controller.as_ref().is_some_and(|offered| offered.contains(&needed))
        {
            let rule = if needed == ControllerCapability::PublishUnpublishVolume { "C070" } else { "C033" };
            return Err(self.unsupported(rule, needed.as_str()));
        }
        let (rule, needed) = self.needed_of_node();
        let is_offered = |capability| plugin.node.as_ref().is_some_and(|node| node.contains(capability));
        match needed.first() {
            Some(first) if !needed.iter().any(is_offered) => Err(self.unsupported(rule, first.as_str())),
            Some(_) | None => Ok(()),
        }
    }

    const fn unsupported(self, rule: &'static str, capability: &'static str) -> Fault {
        Fault { rule, field: self.as_str(), problem: Problem::Unsupported { capability } }
    }

    const fn needed_service(self) -> Option<(&'static str, PluginCapability)> {
        match self.service() {
            Service::Identity | Service::Node => None,
            Service::Controller => Some(("C033", PluginCapability::ControllerService)),
            Service::GroupController => Some(("C034", PluginCapability::GroupControllerService)),
            Service::SnapshotMetadata => Some(("C035", PluginCapability::SnapshotMetadataService)),
        }
    }

    const fn needed_of_controller(self) -> Option<ControllerCapability> {
        match self {
            Self::CreateVolume | Self::DeleteVolume => Some(ControllerCapability::CreateDeleteVolume),
            Self::ControllerPublishVolume | Self::ControllerUnpublishVolume => {
                Some(ControllerCapability::PublishUnpublishVolume)
            }
            Self::ListVolumes => Some(ControllerCapability::ListVolumes),
            Self::GetCapacity => Some(ControllerCapability::GetCapacity),
            Self::CreateSnapshot | Self::DeleteSnapshot => Some(ControllerCapability::CreateDeleteSnapshot),
            Self::ListSnapshots => Some(ControllerCapability::ListSnapshots),
            Self::GetSnapshot => Some(ControllerCapability::GetSnapshot),
            Self::ControllerExpandVolume => Some(ControllerCapability::ExpandVolume),
            Self::ControllerGetVolume => Some(ControllerCapability::GetVolume),
            Self::ControllerModifyVolume => Some(ControllerCapability::ModifyVolume),
            _ => None,
        }
    }

    /// The rule, and the capabilities; one of them is enough.
    const fn needed_of_node(self) -> (&'static str, &'static [NodeCapability]) {
        match self {
            Self::NodeStageVolume | Self::NodeUnstageVolume => {
                ("C120", &[NodeCapability::StageUnstageVolume])
            }
            Self::NodeGetVolumeStats => {
                ("C144", &[NodeCapability::GetVolumeStats, NodeCapability::VolumeCondition])
            }
            Self::NodeExpandVolume => ("C111", &[NodeCapability::ExpandVolume]),
            _ => ("C120", &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::fingerprint;
    use super::*;

    #[test]
    fn each_call_is_found_by_its_name_and_no_other_name_is() {
        for call in Call::ALL {
            assert_eq!(Call::named(call.as_str()), Ok(call));
        }
        let refused = Call::named("probe").expect_err("names are those of the specification");
        assert!(refused.contains("Probe") && refused.contains("NodeGetInfo"), "{refused}");
    }

    #[test]
    fn every_step_and_nothing_else_has_an_inverse_c014() {
        let undone: Vec<_> =
            Call::ALL.iter().filter_map(|c| Some((c.as_str(), c.inverse()?.as_str()))).collect();
        assert_eq!(
            undone,
            [
                ("CreateVolume", "DeleteVolume"),
                ("ControllerPublishVolume", "ControllerUnpublishVolume"),
                ("CreateSnapshot", "DeleteSnapshot"),
                ("CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot"),
                ("NodeStageVolume", "NodeUnstageVolume"),
                ("NodePublishVolume", "NodeUnpublishVolume"),
            ]
        );
        assert_eq!(Call::ALL.into_iter().filter(|call| call.has_effect()).count(), 15);
    }

    /// Holds C.1.
    #[test]
    fn a_plugin_with_all_capabilities_can_be_asked_for_everything_c033_c034_c035() {
        for call in Call::ALL {
            assert_eq!(call.check_offered(&fingerprint()), Ok(()), "{call}");
        }
    }

    /// Holds C.1 and C070.
    #[test]
    fn a_call_that_the_plugin_does_not_offer_is_refused_with_what_is_missing_c033_c034_c035_c120_c144() {
        let mut bare = fingerprint();
        (bare.plugin, bare.controller, bare.node) = (Vec::new(), Some(Vec::new()), Some(Vec::new()));
        let told = |call: Call, plugin: &_| {
            call.check_offered(plugin).map_err(|fault| (fault.rule, fault.to_string()))
        };
        let needs = |call: Call, capability, rule| {
            let fault = format!("{call} needs the capability {capability}, which the plugin does not report");
            Err((rule, fault))
        };
        let cases = [
            (Call::ControllerGetCapabilities, "CONTROLLER_SERVICE", "C033"),
            (Call::CreateVolumeGroupSnapshot, "GROUP_CONTROLLER_SERVICE", "C034"),
            (Call::GetMetadataDelta, "SNAPSHOT_METADATA_SERVICE", "C035"),
            (Call::NodeStageVolume, "STAGE_UNSTAGE_VOLUME", "C120"),
            (Call::NodeGetVolumeStats, "GET_VOLUME_STATS", "C144"),
            (Call::NodeExpandVolume, "EXPAND_VOLUME", "C111"),
        ];
        for (call, capability, rule) in cases {
            assert_eq!(told(call, &bare), needs(call, capability, rule));
        }
        assert_eq!(told(Call::NodePublishVolume, &bare), Ok(()));
        bare.plugin = vec![PluginCapability::ControllerService];
        assert_eq!(
            told(Call::CreateVolume, &bare),
            needs(Call::CreateVolume, "CREATE_DELETE_VOLUME", "C033")
        );
        let publish = Call::ControllerPublishVolume;
        assert_eq!(told(publish, &bare), needs(publish, "PUBLISH_UNPUBLISH_VOLUME", "C070"));
        assert_eq!(told(Call::ValidateVolumeCapabilities, &bare), Ok(()));
        bare.node = Some(vec![NodeCapability::VolumeCondition]);
        assert_eq!(told(Call::NodeGetVolumeStats, &bare), Ok(()));
        bare.node = None;
        assert!(told(Call::NodeGetVolumeStats, &bare).is_err());
    }
}
