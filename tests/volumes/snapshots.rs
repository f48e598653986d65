//! Tests snapshots that belong to a group, groups that are taken through the owner of the volumes, and volumes created from a snapshot.

use std::collections::BTreeSet;

use callboard::actors::csi::{
    CapacityRange, CreateVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotRequest, VolumeContentSource,
};
use callboard::actors::vocabulary::{PluginKey, PluginName, PluginType};
use callboard::actors::volume::{NewVolume, VolumeKey};
use callboard::actors::volumes::{
    CreateError, CreateGroupSnapshot, CreateSnapshot, CreateVolume, DeleteGroupSnapshot, DeleteSnapshot,
    DeleteVolume, DescribeGroupSnapshot, DescribeVolume, OrderError,
};
use callboard::host::Host;

use crate::namespace::in_namespace;
use crate::node::{PLUGIN, builder, create, delete, key, nothing_is_left, plugin, serve, usage};
use crate::support::{LONG, PAUSE, Stage};

#[test]
fn a_snapshot_of_a_group_is_not_deleted_alone_c103_c104() {
    let name = "snapshots::a_snapshot_of_a_group_is_not_deleted_alone_c103_c104";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let (host, mut served) = serve(&stage).await;
        let data = create(&host, "data").await;
        let take = CreateSnapshot {
            volume: data.clone(),
            name: "alone".to_owned(),
            parameters: [].into(),
            within: LONG,
        };
        let alone = host.volumes().ask(take).await.expect("it runs").expect("it is taken");

        // Another program takes a snapshot of the same volume as part of a group.
        let described = host.volumes().ask(DescribeVolume { volume: data.clone() }).await.expect("it runs");
        let spec = described.expect("it is known").volume.spec.clone();
        let key = PluginKey::new(PluginType::CsiController, PluginName::new(PLUGIN).expect("a good name"));
        let client = host.leases().csi(&key, LONG).await.expect("it is healthy");
        let group = CreateVolumeGroupSnapshotRequest {
            name: "group".to_owned(),
            source_volume_ids: vec![spec.volume_id.clone()],
            ..Default::default()
        };
        let group = client.create_volume_group_snapshot(&group, LONG).await.expect("it is taken");
        let together = group.snapshots[0].snapshot_id.clone();

        let ask = async |snapshot_id: &str| {
            let snapshot_id = snapshot_id.to_owned();
            let delete = DeleteSnapshot { volume: data.clone(), snapshot_id, within: LONG };
            host.volumes().ask(delete).await.expect("it runs")
        };
        let refused = ask(&together).await.expect_err("it goes with its group");
        let said = refused.to_string();
        assert!(matches!(refused, OrderError::Refused { .. }), "{said}");
        assert!(said.contains(&group.group_snapshot_id) && said.contains("delete the group"), "{said}");
        assert_eq!(served.calls("DeleteSnapshot"), 0, "the plugin is not asked to");
        ask(&alone.snapshot_id).await.expect("it is of no group");
        assert_eq!(served.calls("DeleteSnapshot"), 1);

        let whole = DeleteVolumeGroupSnapshotRequest {
            group_snapshot_id: group.group_snapshot_id.clone(),
            snapshot_ids: vec![together],
            ..Default::default()
        };
        client.delete_volume_group_snapshot(&whole, LONG).await.expect("it is deleted");
        drop(client);
        delete(&host, &data).await;
        nothing_is_left(&stage);
        served.stop(&host).await;
        host.stop().await;
    });
}

fn take(volumes: &[&VolumeKey], name: &str) -> CreateGroupSnapshot {
    let volumes = volumes.iter().copied().cloned().collect();
    CreateGroupSnapshot { volumes, name: name.to_owned(), parameters: [].into(), within: LONG }
}

async fn volume_id(host: &Host, volume: &VolumeKey) -> String {
    let described = host.volumes().ask(DescribeVolume { volume: volume.clone() }).await.expect("it runs");
    described.expect("it is known").volume.spec.volume_id.clone()
}

#[test]
fn a_group_is_taken_of_several_volumes_described_and_deleted_whole_c002_c034_c106_c108() {
    let name =
        "snapshots::a_group_is_taken_of_several_volumes_described_and_deleted_whole_c002_c034_c106_c108";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        // It takes effect, but its answer is lost: it is repeated under the same name.
        let fault = ["--fault", "CreateVolumeGroupSnapshot=UNAVAILABLE,after,nth:1"];
        let mut served = plugin(&stage, "plugin").with(&fault);
        served.start(&host).await;
        let (data, logs) = (create(&host, "data").await, create(&host, "logs").await);
        let both = [&logs, &data];
        let (one, other) = tokio::join!(
            host.volumes().ask(take(&both, "weekly")),
            host.volumes().ask(take(&both, "weekly"))
        );
        let group = one.expect("it runs").expect("it is taken");
        assert_eq!(other.expect("it runs").expect("it is taken"), group, "it is one order");
        assert_eq!(served.calls("CreateVolumeGroupSnapshot"), 2, "the first answer was lost");
        assert!(group.ready_to_use && !group.group_snapshot_id.is_empty(), "{group:?}");
        let sources: BTreeSet<_> = group.snapshots.iter().map(|one| one.source_volume_id.clone()).collect();
        let ids = BTreeSet::from([volume_id(&host, &data).await, volume_id(&host, &logs).await]);
        assert_eq!((sources, group.snapshots.len()), (ids, 2));

        // The host does not know all snapshots of the group, so the plugin is asked for them.
        let describe = |snapshot_ids| DescribeGroupSnapshot {
            volume: data.clone(),
            group_snapshot_id: group.group_snapshot_id.clone(),
            snapshot_ids,
            within: LONG,
        };
        let found = host.volumes().ask(describe(BTreeSet::new())).await.expect("it runs");
        assert_eq!(found.expect("it is there"), *group);

        let delete_group = |volume: &VolumeKey, snapshot_ids: BTreeSet<String>| DeleteGroupSnapshot {
            volume: volume.clone(),
            group_snapshot_id: group.group_snapshot_id.clone(),
            snapshot_ids,
            within: LONG,
        };
        let first = BTreeSet::from([group.snapshots[0].snapshot_id.clone()]);
        let refused = host.volumes().ask(delete_group(&data, first)).await.expect("it runs");
        let said = refused.expect_err("the group has another one").to_string();
        assert!(said.contains("is refused") && said.contains("name exactly those"), "{said}");
        assert_eq!(served.calls("DeleteVolumeGroupSnapshot"), 1, "it is not repeated by itself");
        let alone = DeleteSnapshot {
            volume: logs.clone(),
            snapshot_id: group.snapshots[0].snapshot_id.clone(),
            within: LONG,
        };
        let said =
            host.volumes().ask(alone).await.expect("it runs").expect_err("it is of a group").to_string();
        assert!(said.contains("snapshot group delete default/logs --id"), "{said}");

        let all: BTreeSet<_> = group.snapshots.iter().map(|one| one.snapshot_id.clone()).collect();
        for volume in [&data, &logs] {
            let deleted = host.volumes().ask(delete_group(volume, all.clone())).await.expect("it runs");
            deleted.expect("it is deleted, or is already");
        }
        let gone = host.volumes().ask(describe(all)).await.expect("it runs");
        assert!(gone.is_err(), "{gone:?}");
        for volume in [&data, &logs] {
            delete(&host, volume).await;
        }
        nothing_is_left(&stage);
        served.stop(&host).await;
        host.stop().await;
    });
}

#[test]
fn a_volume_of_a_group_that_is_being_taken_waits_for_it_and_is_not_deleted_c001() {
    let name = "snapshots::a_volume_of_a_group_that_is_being_taken_waits_for_it_and_is_not_deleted_c001";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let held = stage.path("held");
        std::fs::write(&held, "").expect("it is ours");
        let fault = format!("CreateVolumeGroupSnapshot=hang,before,while:{}", held.display());
        let mut served = plugin(&stage, "plugin").with(&["--fault", &fault]);
        served.start(&host).await;
        let (data, logs) = (create(&host, "data").await, create(&host, "logs").await);
        let group = host.volumes().ask(take(&[&data, &logs], "weekly"));
        let alone = async {
            let called = async {
                while served.calls("CreateVolumeGroupSnapshot") == 0 {
                    tokio::time::sleep(PAUSE).await;
                }
            };
            tokio::time::timeout(LONG, called).await.expect("it is called");
            let delete = DeleteVolume { volume: logs.clone(), within: LONG };
            let said =
                host.volumes().ask(delete).await.expect("it runs").expect_err("it is needed").to_string();
            assert!(said.contains("of volume default/data is not done"), "{said}");
            let volume = logs.clone();
            let alone =
                CreateSnapshot { volume, name: "alone".to_owned(), parameters: [].into(), within: LONG };
            host.volumes().ask(alone).await
        };
        let release = async {
            let ordered = async {
                while orders(&host, &logs).await == 0 {
                    tokio::time::sleep(PAUSE).await;
                }
            };
            tokio::time::timeout(LONG, ordered).await.expect("it is ordered");
            assert_eq!(served.calls("CreateSnapshot"), 0, "it went beside the call for the group");
            std::fs::remove_file(&held).expect("it is ours");
        };
        let (group, alone, ()) = tokio::join!(group, alone, release);
        group.expect("it runs").expect("it is taken");
        alone.expect("it runs").expect("it is taken behind the group");
        served.stop(&host).await;
        host.stop().await;
    });
}

/// The number of unfinished orders of a volume.
async fn orders(host: &Host, volume: &VolumeKey) -> usize {
    let described = host.volumes().ask(DescribeVolume { volume: volume.clone() }).await.expect("it runs");
    described.expect("it is known").status.map_or(0, |status| status.orders.len())
}

/// Takes a snapshot of a new volume; returns its id and its size.
async fn snapshot(host: &Host) -> (String, u64) {
    let volume = create(host, "data").await;
    let take = CreateSnapshot { volume, name: "one".to_owned(), parameters: [].into(), within: LONG };
    let taken = host.volumes().ask(take).await.expect("it runs").expect("it is taken");
    (taken.snapshot_id.clone(), taken.size_bytes)
}

/// Creates a volume from a snapshot.
async fn restore(
    host: &Host,
    snapshot_id: &str,
    name: &str,
    (required_bytes, limit_bytes): (u64, u64),
) -> Result<(), CreateError> {
    let new = NewVolume {
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes }),
        capabilities: vec![usage(false).capability],
        content_source: Some(VolumeContentSource::Snapshot(snapshot_id.to_owned())),
        ..NewVolume::default()
    };
    let plugin = PluginName::new(PLUGIN).expect("a good name");
    let create = CreateVolume { volume: key(name), plugin, new, within: LONG };
    host.volumes().ask(create).await.expect("it runs").map(drop)
}

/// The plugin lists its snapshots, or lists them only at the second request, or returns each alone (C002).
#[test]
fn a_volume_from_a_snapshot_is_not_smaller_than_it_c002_c102() {
    let name = "snapshots::a_volume_from_a_snapshot_is_not_smaller_than_it_c002_c102";
    in_namespace(name, async |_| {
        let lists: (&[&str], &str) = (&[], "ListSnapshots");
        let is_late: (&[&str], &str) = (&["--fault", "ListSnapshots=UNAVAILABLE,nth:1"], "ListSnapshots");
        let capabilities = [
            "--controller-capability",
            "CREATE_DELETE_VOLUME",
            "--controller-capability",
            "CREATE_DELETE_SNAPSHOT",
            "--controller-capability",
            "GET_SNAPSHOT",
            "--controller-capability",
            "SINGLE_NODE_MULTI_WRITER",
        ];
        let gets: (&[&str], &str) = (&capabilities, "GetSnapshot");
        for (arguments, question) in [lists, is_late, gets] {
            let stage = Stage::new();
            let host = builder(&stage).start_on_own_thread().await.expect("it starts");
            let mut served = plugin(&stage, "plugin").with(arguments);
            served.start(&host).await;
            let (id, bytes) = snapshot(&host).await;
            let calls = served.calls("CreateVolume");
            for range in [(bytes - 1, 0), (1, bytes - 1)] {
                let refused = restore(&host, &id, "small", range).await;
                let said = refused.expect_err("it does not fit").to_string();
                let is_told =
                    said.contains(&format!("has {bytes} bytes")) && said.contains("as many or more");
                assert!(is_told, "{arguments:?}: {said}");
            }
            assert_eq!(served.calls("CreateVolume"), calls, "{arguments:?}: the plugin is not asked to");
            assert!(served.calls(question) >= 2, "{arguments:?}");
            restore(&host, &id, "copy", (bytes, bytes)).await.expect("it fits");
            delete(&host, &key("copy")).await;
            served.stop(&host).await;
            host.stop().await;
        }
    });
}

#[test]
fn a_plugin_that_does_not_tell_the_size_of_a_snapshot_decides_itself_c102() {
    let name = "snapshots::a_plugin_that_does_not_tell_the_size_of_a_snapshot_decides_itself_c102";
    in_namespace(name, async |_| {
        let stage = Stage::new();
        let host = builder(&stage).start_on_own_thread().await.expect("it starts");
        let mut served = plugin(&stage, "plugin").with(&["--fault", "ListSnapshots=PERMISSION_DENIED"]);
        served.start(&host).await;
        let (id, bytes) = snapshot(&host).await;
        restore(&host, &id, "copy", (bytes, bytes)).await.expect("the plugin makes it");
        assert_eq!(served.calls("ListSnapshots"), 1, "the same question gets no other answer");
        delete(&host, &key("copy")).await;
        served.stop(&host).await;
        host.stop().await;
    });
}
