//! Values that the tests of this folder share.

use std::collections::BTreeMap;

use super::{AccessMode, AccessType, CreateVolumeRequest, MountFlags, MountVolume, VolumeCapability};
use crate::vocabulary::{
    ControllerCapability, CsiFingerprint, Expansion, GroupControllerCapability, Identity, NodeCapability,
    PluginCapability,
};

/// A plugin with every capability.
pub(crate) fn fingerprint() -> CsiFingerprint {
    CsiFingerprint {
        identity: Identity { provider: "zfs.example".into(), version: "1".into(), manifest: BTreeMap::new() },
        plugin: PluginCapability::ALL.to_vec(),
        expansion: Expansion::ALL.to_vec(),
        controller: Some(ControllerCapability::ALL.to_vec()),
        group_controller: Some(GroupControllerCapability::ALL.to_vec()),
        node: Some(NodeCapability::ALL.to_vec()),
        node_info: None,
    }
}

/// Entries of a map.
pub(super) fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A volume as a file system with one writer.
pub(super) fn mount() -> VolumeCapability {
    let volume = MountVolume {
        fs_type: "ext4".to_owned(),
        mount_flags: MountFlags::new(vec!["noatime".to_owned()]),
        volume_mount_group: String::new(),
    };
    VolumeCapability { access_type: AccessType::Mount(volume), access_mode: AccessMode::SingleNodeWriter }
}

/// A request for a volume.
pub(super) fn create() -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: "vol-1".to_owned(),
        volume_capabilities: vec![mount()],
        ..CreateVolumeRequest::default()
    }
}
