//! The self-description of a CSI plugin.
//!
//! Every list is sorted and has no duplicates, so that equal reports are equal values. Values of newer plugins that this
//! version does not know are left out (C026).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

macro_rules! capability {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All capabilities.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the specification.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

capability!(
    /// The services of a plugin as a whole (`PluginCapability.Service`).
    PluginCapability {
        /// It has a controller service; without this no controller call may be made (C033).
        ControllerService = "CONTROLLER_SERVICE",
        /// Its volumes are not reachable from everywhere; topology counts (C036).
        VolumeAccessibilityConstraints = "VOLUME_ACCESSIBILITY_CONSTRAINTS",
        /// It has a group controller service (C034).
        GroupControllerService = "GROUP_CONTROLLER_SERVICE",
        /// It has a snapshot metadata service (C035); alpha.
        SnapshotMetadataService = "SNAPSHOT_METADATA_SERVICE",
    }
);

capability!(
    /// When a plugin can expand a volume (`PluginCapability.VolumeExpansion`).
    Expansion {
        /// While it is in use (C110).
        Online = "ONLINE",
        /// Only while it is not in use (C109).
        Offline = "OFFLINE",
    }
);

capability!(
    /// The capabilities of a controller (`ControllerServiceCapability.RPC`).
    ControllerCapability {
        /// Creates and deletes volumes.
        CreateDeleteVolume = "CREATE_DELETE_VOLUME",
        /// Attaches volumes to nodes.
        PublishUnpublishVolume = "PUBLISH_UNPUBLISH_VOLUME",
        /// Lists volumes.
        ListVolumes = "LIST_VOLUMES",
        /// Reports its free capacity.
        GetCapacity = "GET_CAPACITY",
        /// Creates and deletes snapshots.
        CreateDeleteSnapshot = "CREATE_DELETE_SNAPSHOT",
        /// Lists snapshots.
        ListSnapshots = "LIST_SNAPSHOTS",
        /// Clones volumes.
        CloneVolume = "CLONE_VOLUME",
        /// Attaches volumes read-only.
        PublishReadonly = "PUBLISH_READONLY",
        /// Expands volumes.
        ExpandVolume = "EXPAND_VOLUME",
        /// Reports on which nodes volumes are.
        ListVolumesPublishedNodes = "LIST_VOLUMES_PUBLISHED_NODES",
        /// Reports the condition of volumes; alpha.
        VolumeCondition = "VOLUME_CONDITION",
        /// Describes one volume; alpha.
        GetVolume = "GET_VOLUME",
        /// Supports the single-node multi-writer modes; alpha.
        SingleNodeMultiWriter = "SINGLE_NODE_MULTI_WRITER",
        /// Modifies volumes.
        ModifyVolume = "MODIFY_VOLUME",
        /// Describes one snapshot; alpha.
        GetSnapshot = "GET_SNAPSHOT",
    }
);

capability!(
    /// The capabilities of a node plugin (`NodeServiceCapability.RPC`).
    NodeCapability {
        /// Stages volumes before it publishes them (C120).
        StageUnstageVolume = "STAGE_UNSTAGE_VOLUME",
        /// Reports the usage of volumes.
        GetVolumeStats = "GET_VOLUME_STATS",
        /// Expands volumes.
        ExpandVolume = "EXPAND_VOLUME",
        /// Reports the condition of volumes; alpha.
        VolumeCondition = "VOLUME_CONDITION",
        /// Supports the single-node multi-writer modes; alpha.
        SingleNodeMultiWriter = "SINGLE_NODE_MULTI_WRITER",
        /// Mounts volumes for a group (C155).
        VolumeMountGroup = "VOLUME_MOUNT_GROUP",
    }
);

capability!(
    /// The capabilities of a group controller (`GroupControllerServiceCapability.RPC`).
    GroupControllerCapability {
        /// Creates, deletes and describes snapshots of several volumes at once.
        CreateDeleteGetVolumeGroupSnapshot = "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT",
    }
);

/// The identity that a plugin reports (`GetPluginInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its own name, in domain-name notation, at most 63 characters (C030).
    pub provider: Arc<str>,
    /// The vendor's version; may be empty.
    pub version: Arc<str>,
    /// Any other data of the vendor, at most 4 KiB in all (C005, C011).
    pub manifest: BTreeMap<String, String>,
}

/// A location: topology keys with their values, at most 4 KiB in all (C005, C055).
pub type Topology = BTreeMap<String, String>;

/// A node plugin's report about its node (`NodeGetInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeInfo {
    /// The node's id with this plugin, at most 256 bytes (C006).
    pub node_id: String,
    /// The maximum number of volumes on the node. `None` means that the plugin sets no limit (C147).
    pub max_volumes: Option<u64>,
    /// The location of the node; `None` means anywhere (C148).
    pub topology: Option<Topology>,
}

/// The complete report of one generation of a CSI plugin. Identity and capabilities are read once per generation (I3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CsiFingerprint {
    /// Its identity.
    pub identity: Identity,
    /// The services of the plugin as a whole.
    pub plugin: Vec<PluginCapability>,
    /// When volumes can be expanded.
    pub expansion: Vec<Expansion>,
    /// The capabilities of the controller; `None` for an instance of the node half.
    pub controller: Option<Vec<ControllerCapability>>,
    /// The capabilities of the group controller; `None` for an instance of the node half, and for a plugin without the service (C034).
    pub group_controller: Option<Vec<GroupControllerCapability>>,
    /// The capabilities of the node plugin; `None` for an instance of the controller half.
    pub node: Option<Vec<NodeCapability>>,
    /// Its report about its node; `None` for a controller, and for a node plugin that need not answer and did not (C146, I7).
    pub node_info: Option<NodeInfo>,
}

impl CsiFingerprint {
    /// Whether volumes of this plugin need a controller before a node can use them.
    #[must_use]
    pub fn requires_controller(&self) -> bool {
        self.plugin.contains(&PluginCapability::ControllerService)
    }

    /// Whether topology counts when volumes are placed (C036).
    #[must_use]
    pub fn requires_topology(&self) -> bool {
        self.plugin.contains(&PluginCapability::VolumeAccessibilityConstraints)
    }

    /// Whether the node half stages volumes (C120).
    #[must_use]
    pub fn stages(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.contains(&NodeCapability::StageUnstageVolume))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(plugin: &[PluginCapability], node: Option<&[NodeCapability]>) -> CsiFingerprint {
        CsiFingerprint {
            identity: Identity {
                provider: "zfs".into(),
                version: "1.0".into(),
                manifest: Default::default(),
            },
            plugin: plugin.to_vec(),
            expansion: Default::default(),
            controller: None,
            group_controller: None,
            node: node.map(<[NodeCapability]>::to_vec),
            node_info: None,
        }
    }

    #[test]
    fn what_a_plugin_needs_is_read_from_what_it_can_c036_c120() {
        let bare = fingerprint(&[], Some(&[]));
        assert!(!bare.requires_controller() && !bare.requires_topology() && !bare.stages());
        assert!(!fingerprint(&[], None).stages());
        let controller = fingerprint(&[PluginCapability::ControllerService], None);
        assert!(controller.requires_controller() && !controller.requires_topology());
        assert!(fingerprint(&[PluginCapability::VolumeAccessibilityConstraints], None).requires_topology());
        assert!(fingerprint(&[], Some(&[NodeCapability::StageUnstageVolume])).stages());
    }
}
