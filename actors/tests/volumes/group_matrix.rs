//! Tests both calls for a group of snapshots with every code, before and after their effect.

use std::collections::BTreeSet;

use callboard_actors::csi::Call;
use callboard_actors::volume::VolumeKey;
use callboard_actors::volumes::{CreateGroupSnapshot, DeleteGroupSnapshot};

use crate::fixture::story;
use crate::life_matrix::{Case, cases};
use crate::node::{Node, PATIENCE};
use crate::plugin::Plugin;

const TRIED: [Call; 2] = [Call::CreateVolumeGroupSnapshot, Call::DeleteVolumeGroupSnapshot];

#[test]
fn both_calls_of_a_group_of_snapshots_with_every_code_before_and_after_their_effect_c016_c106_c107_v2_v4_v5()
{
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel).with_groups();
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let volumes = [node.add_volume("zfs", "data").await, node.add_volume("zfs", "logs").await];
        for (number, case) in cases(&TRIED).enumerate() {
            plugin.once(case.call.as_str(), case.act());
            let name = format!("weekly-{number}");
            let is_taken = take(&node, &plugin, (&volumes, &name), case).await;
            if is_taken {
                delete(&node, &plugin, (&volumes[1], &name), case).await;
            }
            let is_repeated = !case.is_refused(case.call);
            let times = |call: Call| if call == case.call && is_repeated { 2 } else { 1 };
            let made = TRIED.into_iter().take(if is_taken { 2 } else { 1 });
            let expected: Vec<_> =
                made.flat_map(|call| std::iter::repeat_n(call.as_str(), times(call))).collect();
            assert_eq!(plugin.take_calls(), expected, "{case:?}");
            assert_eq!(plugin.together(), Vec::<String>::new(), "{case:?}");
            for volume in &volumes {
                node.is_unneeded(volume).await;
            }
        }
        node.stop().await;
    });
}

/// The ids of its snapshots.
fn ids(name: &str) -> BTreeSet<String> {
    ["data", "logs"].map(|volume| format!("group {name} of id-{volume}")).into()
}

fn stored(plugin: &Plugin, name: &str) -> BTreeSet<String> {
    let of = format!("group {name} of ");
    plugin.storage().snapshots.into_keys().filter(|id| id.starts_with(&of)).collect()
}

/// Takes a group of the volumes in the other order. Returns whether it was taken.
async fn take(node: &Node, plugin: &Plugin, (volumes, name): (&[VolumeKey; 2], &str), case: Case) -> bool {
    let [data, logs] = volumes.clone();
    let take = CreateGroupSnapshot {
        volumes: vec![logs, data],
        name: name.to_owned(),
        parameters: [].into(),
        within: PATIENCE,
    };
    let taken = node.volumes.ask(take).await.expect("it runs");
    if !case.check(Call::CreateVolumeGroupSnapshot, &taken) {
        return false;
    }
    let group = taken.expect("it is checked");
    let told: BTreeSet<_> = group.snapshots.iter().map(|one| one.snapshot_id.clone()).collect();
    assert_eq!((told, stored(plugin, name)), (ids(name), ids(name)), "{case:?}");
    true
}

async fn delete(node: &Node, plugin: &Plugin, (volume, name): (&VolumeKey, &str), case: Case) {
    let delete = DeleteGroupSnapshot {
        volume: volume.clone(),
        group_snapshot_id: format!("group {name}"),
        snapshot_ids: ids(name),
        within: PATIENCE,
    };
    let deleted = node.volumes.ask(delete).await.expect("it runs");
    if case.check(Call::DeleteVolumeGroupSnapshot, &deleted) {
        let is_there = !stored(plugin, name).is_empty();
        assert!(!is_there, "{case:?}");
    }
}
