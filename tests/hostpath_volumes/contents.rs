//! Tests the contents of volumes: copies of others, and memory.

use std::collections::HashMap;
use std::fs;

use callboard_proto::csi::v1 as wire;
use tonic::Code;
use wire::volume_capability::access_mode::Mode;
use wire::volume_capability::{AccessType, BlockVolume};
use wire::volume_content_source::{SnapshotSource, Type, VolumeSource};

use crate::stage::{MIB, Namespace, capability, code, request};

#[tokio::test]
async fn volumes_are_made_from_snapshots_groups_and_other_volumes_and_live_on_by_themselves_c057_c102_c103() {
    let Some(mut namespace) = Namespace::or_say("snapshots") else { return };
    let mut clients = namespace.start("").await;
    let source = clients.created("source").await;
    let volume = namespace.volume(&source.volume_id);
    volume.up(&mut clients).await;
    fs::write(volume.file("target"), "first").expect("it can be written");

    let wished = wire::CreateVolumeGroupSnapshotRequest {
        name: "evening".to_owned(),
        source_volume_ids: vec![source.volume_id.clone()],
        ..wire::CreateVolumeGroupSnapshotRequest::default()
    };
    let taken = clients.groups.create_volume_group_snapshot(wished).await.expect("it is taken").into_inner();
    let group = taken.group_snapshot.expect("a group");
    let snapshot = group.snapshots[0].snapshot_id.clone();
    let alone = wire::DeleteSnapshotRequest {
        snapshot_id: snapshot.clone(),
        ..wire::DeleteSnapshotRequest::default()
    };
    assert_eq!(code(clients.controller.delete_snapshot(alone).await), Code::InvalidArgument, "not alone");
    fs::write(volume.file("target"), "second").expect("it can be written");

    let from = |name: &str, source| wire::CreateVolumeRequest {
        volume_content_source: Some(wire::VolumeContentSource { r#type: Some(source) }),
        ..request(name)
    };
    let snapshot = Type::Snapshot(SnapshotSource { snapshot_id: snapshot });
    let clone = Type::Volume(VolumeSource { volume_id: source.volume_id.clone() });
    let restored = clients.create(from("restored", snapshot.clone())).await.expect("it is made").volume_id;
    let cloned = clients.create(from("cloned", clone)).await.expect("it is made").volume_id;
    let missing = Type::Snapshot(SnapshotSource { snapshot_id: "snap-0".to_owned() });
    assert_eq!(code(clients.create(from("none", missing)).await), Code::NotFound);
    assert_eq!(
        code(clients.create(from("cloned", snapshot)).await),
        Code::AlreadyExists,
        "it is another one"
    );

    let deleted = wire::DeleteVolumeGroupSnapshotRequest {
        group_snapshot_id: group.group_snapshot_id,
        ..wire::DeleteVolumeGroupSnapshotRequest::default()
    };
    clients.groups.delete_volume_group_snapshot(deleted).await.expect("it is deleted");
    volume.down(&mut clients).await;
    volume.delete(&mut clients).await.expect("it is deleted");
    for (id, content) in [(restored, "first"), (cloned, "second")] {
        let volume = namespace.volume(&id);
        volume.up(&mut clients).await;
        assert_eq!(fs::read_to_string(volume.file("target")).expect("it is a copy"), content);
        volume.down(&mut clients).await;
    }
}

#[tokio::test]
async fn a_group_snapshot_that_is_refused_leaves_nothing_and_its_name_is_free_c106() {
    let Some(mut namespace) = Namespace::or_say("a group snapshot that is refused") else { return };
    let mut clients = namespace.start("").await;
    let parameters = [("medium".to_owned(), "memory".to_owned())].into();
    let fast = wire::CreateVolumeRequest { parameters, ..request("fast") };
    let fast = clients.create(fast).await.expect("it is made").volume_id;
    let plain = clients.created("plain").await.volume_id;
    let of = |volumes: &[&String]| wire::CreateVolumeGroupSnapshotRequest {
        name: "evening".to_owned(),
        source_volume_ids: volumes.iter().copied().cloned().collect(),
        ..wire::CreateVolumeGroupSnapshotRequest::default()
    };
    let missing = "vol-0".to_owned();
    for (wrong, expected) in [(&fast, Code::InvalidArgument), (&missing, Code::NotFound)] {
        let refused = clients.groups.create_volume_group_snapshot(of(&[&plain, wrong])).await;
        assert_eq!(code(refused), expected, "{wrong}");
        for kind in ["groups", "snapshots"] {
            let left = fs::read_dir(namespace.path("volumes").join(kind)).expect("it is there").count();
            assert_eq!(left, 0, "{kind} are left");
        }
    }
    let taken = clients.groups.create_volume_group_snapshot(of(&[&plain])).await.expect("the name is free");
    let group = taken.into_inner().group_snapshot.expect("a group").group_snapshot_id;
    let deleted = wire::DeleteVolumeGroupSnapshotRequest {
        group_snapshot_id: group,
        ..wire::DeleteVolumeGroupSnapshotRequest::default()
    };
    clients.groups.delete_volume_group_snapshot(deleted).await.expect("it is deleted");
}

#[tokio::test]
async fn a_volume_in_memory_grows_and_is_empty_when_it_is_staged_again_c111_c149() {
    let Some(mut namespace) = Namespace::or_say("a volume in memory") else { return };
    let mut clients = namespace.start("").await;
    let parameters: HashMap<_, _> = [("medium".to_owned(), "memory".to_owned())].into();
    let wished = wire::CreateVolumeRequest { parameters: parameters.clone(), ..request("fast") };
    let id = clients.create(wished).await.expect("it is made").volume_id;
    let volume = namespace.volume(&id);
    volume.up(&mut clients).await;
    let large = vec![1; usize::try_from(2 * MIB).expect("it fits")];
    assert!(fs::write(volume.file("target"), &large).is_err(), "there is no room");
    let more = wire::CapacityRange { required_bytes: 4 * MIB, limit_bytes: 0 };
    let expanded = wire::ControllerExpandVolumeRequest {
        volume_id: id.clone(),
        capacity_range: Some(more),
        ..wire::ControllerExpandVolumeRequest::default()
    };
    let expanded =
        clients.controller.controller_expand_volume(expanded).await.expect("it grows").into_inner();
    assert!(expanded.node_expansion_required, "the node has a part in it");
    let on_node = wire::NodeExpandVolumeRequest {
        volume_id: id,
        volume_path: volume.target("target").display().to_string(),
        capacity_range: Some(more),
        ..wire::NodeExpandVolumeRequest::default()
    };
    clients.node.node_expand_volume(on_node).await.expect("it grows");
    fs::write(volume.file("target"), &large).expect("there is room");
    volume.down(&mut clients).await;
    volume.up(&mut clients).await;
    assert!(!volume.file("target").exists(), "it was in memory");
    let block = capability(Mode::SingleNodeWriter, AccessType::Block(BlockVolume {}));
    let wrong =
        wire::CreateVolumeRequest { parameters, volume_capabilities: vec![block], ..request("wrong") };
    assert_eq!(code(clients.create(wrong).await), Code::InvalidArgument);
}
