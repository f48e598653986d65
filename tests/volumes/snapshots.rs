//! Snapshots that belong to a group.

use callboard::actors::csi::{CreateVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotRequest};
use callboard::actors::vocabulary::{PluginKey, PluginName, PluginType};
use callboard::actors::volumes::{CreateSnapshot, DeleteSnapshot, DescribeVolume, OrderError};

use crate::namespace::in_namespace;
use crate::node::{PLUGIN, create, delete, nothing_is_left, serve};
use crate::support::{LONG, Stage};

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

        // Another program takes a snapshot of the same volume as one of a group.
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
