//! What a CSI plugin reports of itself.
//!
//! Every list is sorted and holds no double, so that equal reports are equal values. Values of newer plugins that this
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
            /// Every capability there is.
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
    /// What a plugin as a whole offers (`PluginCapability.Service`).
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
    /// When a plugin can make a volume larger (`PluginCapability.VolumeExpansion`).
    Expansion {
        /// While it is in use (C110).
        Online = "ONLINE",
        /// Only while it is not (C109).
        Offline = "OFFLINE",
    }
);

capability!(
    /// What a controller can do (`ControllerServiceCapability.RPC`).
    ControllerCapability {
        /// Creates and deletes volumes.
        CreateDeleteVolume = "CREATE_DELETE_VOLUME",
        /// Attaches volumes to nodes.
        PublishUnpublishVolume = "PUBLISH_UNPUBLISH_VOLUME",
        /// Lists volumes.
        ListVolumes = "LIST_VOLUMES",
        /// Tells its free capacity.
        GetCapacity = "GET_CAPACITY",
        /// Creates and deletes snapshots.
        CreateDeleteSnapshot = "CREATE_DELETE_SNAPSHOT",
        /// Lists snapshots.
        ListSnapshots = "LIST_SNAPSHOTS",
        /// Clones volumes.
        CloneVolume = "CLONE_VOLUME",
        /// Attaches volumes read-only.
        PublishReadonly = "PUBLISH_READONLY",
        /// Makes volumes larger.
        ExpandVolume = "EXPAND_VOLUME",
        /// Tells on which nodes volumes are.
        ListVolumesPublishedNodes = "LIST_VOLUMES_PUBLISHED_NODES",
        /// Tells the condition of volumes; alpha.
        VolumeCondition = "VOLUME_CONDITION",
        /// Describes one volume; alpha.
        GetVolume = "GET_VOLUME",
        /// Knows the single-node multi-writer modes; alpha.
        SingleNodeMultiWriter = "SINGLE_NODE_MULTI_WRITER",
        /// Modifies volumes.
        ModifyVolume = "MODIFY_VOLUME",
        /// Describes one snapshot; alpha.
        GetSnapshot = "GET_SNAPSHOT",
    }
);

capability!(
    /// What a node plugin can do (`NodeServiceCapability.RPC`).
    NodeCapability {
        /// Stages volumes before it publishes them (C120).
        StageUnstageVolume = "STAGE_UNSTAGE_VOLUME",
        /// Tells how full volumes are.
        GetVolumeStats = "GET_VOLUME_STATS",
        /// Makes volumes larger.
        ExpandVolume = "EXPAND_VOLUME",
        /// Tells the condition of volumes; alpha.
        VolumeCondition = "VOLUME_CONDITION",
        /// Knows the single-node multi-writer modes; alpha.
        SingleNodeMultiWriter = "SINGLE_NODE_MULTI_WRITER",
        /// Mounts volumes for a group (C155).
        VolumeMountGroup = "VOLUME_MOUNT_GROUP",
    }
);

capability!(
    /// What a group controller can do (`GroupControllerServiceCapability.RPC`).
    GroupControllerCapability {
        /// Creates, deletes and describes snapshots of several volumes at once.
        CreateDeleteGetVolumeGroupSnapshot = "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT",
    }
);

/// Who a plugin says it is (`GetPluginInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its own name, in domain-name notation, at most 63 characters (C030).
    pub provider: Arc<str>,
    /// The vendor's version; may be empty.
    pub version: Arc<str>,
    /// Whatever else the vendor says, at most 4 KiB in all (C005, C011).
    pub manifest: BTreeMap<String, String>,
}

/// Where something is: topology keys with their values, at most 4 KiB in all (C005, C055).
pub type Topology = BTreeMap<String, String>;

/// What a node plugin says of its node (`NodeGetInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeInfo {
    /// The node's id with this plugin, at most 256 bytes (C006).
    pub node_id: String,
    /// How many volumes the node can take. `None` means that the plugin sets no limit (C147).
    pub max_volumes: Option<u64>,
    /// Where the node is; `None` means anywhere (C148).
    pub topology: Option<Topology>,
}

/// Everything that one generation of a CSI plugin reported. Identity and capabilities are read once per generation (I3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CsiFingerprint {
    /// Who it is.
    pub identity: Identity,
    /// What the plugin as a whole offers.
    pub plugin: Vec<PluginCapability>,
    /// When volumes can grow.
    pub expansion: Vec<Expansion>,
    /// What the controller can do; `None` for an instance of the node half.
    pub controller: Option<Vec<ControllerCapability>>,
    /// What the group controller can do; `None` for an instance of the node half, and for a plugin without the service (C034).
    pub group_controller: Option<Vec<GroupControllerCapability>>,
    /// What the node plugin can do; `None` for an instance of the controller half.
    pub node: Option<Vec<NodeCapability>>,
    /// What it says of its node; `None` for a controller, and for a node plugin that need not answer and did not (C146, I7).
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
