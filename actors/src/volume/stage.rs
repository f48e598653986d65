//! Records with every field filled in, for the tests of rows and stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::csi::{
    self, AccessMode, AccessType, CapacityRange, MountFlags, MountVolume, TopologyRequirement,
    VolumeCapability, VolumeContentSource,
};
use crate::mounts::{DeviceNumber, ListedMount, MountId, MountIdentity, UniqueMountId};
use crate::vocabulary::{
    AllocationId, Generation, PluginName, RunNumber, Timestamp, VolumeName, VolumeNamespace,
};

fn map(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

pub(super) fn volume_key(namespace: &str, name: &str) -> VolumeKey {
    VolumeKey { namespace: VolumeNamespace::new(namespace).unwrap(), name: VolumeName::new(name).unwrap() }
}

pub(super) fn spec(key: VolumeKey) -> Arc<VolumeSpec> {
    Arc::new(VolumeSpec {
        key,
        plugin: PluginName::new("zfs").unwrap(),
        volume_id: "id".to_owned(),
        volume_context: map("pool", "t"),
    })
}

fn capability() -> VolumeCapability {
    let mount = MountVolume {
        fs_type: "xfs".to_owned(),
        mount_flags: MountFlags::new(vec!["pw=sesame".to_owned()]),
        volume_mount_group: "g".to_owned(),
    };
    VolumeCapability { access_type: AccessType::Mount(mount), access_mode: AccessMode::SingleNodeWriter }
}

fn usage() -> Usage {
    Usage { capability: capability(), read_only: true }
}

fn intent<A>(args: A) -> Intent<A> {
    Intent { args, generation: Generation::new(4) }
}

fn attach_args() -> AttachArgs {
    AttachArgs { node_id: "n".to_owned(), capability: capability() }
}

pub(super) fn create_args() -> CreateArgs {
    let volume = NewVolume {
        capacity_range: Some(CapacityRange { required_bytes: 5, limit_bytes: 6 }),
        capabilities: vec![VolumeCapability {
            access_type: AccessType::Block,
            access_mode: AccessMode::MultiNodeReaderOnly,
        }],
        parameters: map("p", "1"),
        content_source: Some(VolumeContentSource::Snapshot("s".to_owned())),
        accessibility: Some(TopologyRequirement { requisite: vec![map("zone", "a")], preferred: Vec::new() }),
        mutable_parameters: map("m", "2"),
    };
    CreateArgs { name: "d-v-1".to_owned(), volume }
}

/// A volume that was created, is attached, and is being staged.
pub(super) fn volume(key: VolumeKey) -> VolumeRecord {
    let made = csi::Volume {
        capacity_bytes: 5,
        volume_id: "id".to_owned(),
        volume_context: map("pool", "t"),
        content_source: Some(VolumeContentSource::Volume("o".to_owned())),
        accessible_topology: vec![map("zone", "a")],
    };
    let stage =
        StageArgs { staging_path: "/s".into(), publish_context: map("dev", "sda"), capability: capability() };
    VolumeRecord {
        spec: spec(key),
        existence: Some(Existence {
            origin: Origin::Created(Arc::new(create_args())),
            desired: Desired::Held,
            step: Step::Up(intent(()), ()),
            volume: Some(Arc::new(made)),
        }),
        attach: Step::Up(intent(attach_args()), map("dev", "sda")),
        stage: Step::GoingUp(intent(stage)),
    }
}

/// A claim that is published.
pub(super) fn claim(key: VolumeKey, allocation: &str) -> ClaimRecord {
    let args = PublishArgs {
        target_path: "/t".into(),
        staging_path: Some("/s".into()),
        publish_context: map("dev", "sda"),
        usage: usage(),
    };
    let mount = MountIdentity::Listed(ListedMount {
        id: MountId(70),
        unique_id: Some(UniqueMountId(9)),
        device: DeviceNumber { major: 8, minor: 1 },
        root: "/".into(),
        fs_type: "xfs".to_owned(),
    });
    let proof = Proof { boot_id: "boot".into(), mark: Some(Mark::Mount(mount)) };
    ClaimRecord {
        spec: spec(key),
        allocation: AllocationId::new(allocation).unwrap(),
        usage: usage(),
        target_path: "/t".into(),
        desired: Desired::Released,
        run: RunNumber::new(3),
        number: 2,
        attach: Some(intent(attach_args())),
        publish: Step::Up(intent(args), proof),
    }
}

/// An expansion that is in flight on the node.
pub(super) fn expansion(number: u64) -> OrderRecord {
    let args = GrowArgs {
        volume_path: "/t".into(),
        staging_path: Some("/s".into()),
        range: CapacityRange { required_bytes: 9, limit_bytes: 0 },
        capability: capability(),
    };
    OrderRecord {
        number,
        volume_id: "id".to_owned(),
        order: Order::Expand { range: CapacityRange { required_bytes: 8, limit_bytes: 10 } },
        capability: Some(capability()),
        at_controller: Step::Up(intent(()), 9),
        on_node: Step::GoingUp(intent(args)),
    }
}

pub(super) fn audit(key: VolumeKey, number: u64) -> Audit {
    let forced = Forced {
        volume: key.clone(),
        reason: "kim".to_owned(),
        at: Timestamp::from_epoch(Duration::from_micros(7)),
        left: vec!["stage".to_owned()],
    };
    Audit { number, spec: spec(key), forced }
}
