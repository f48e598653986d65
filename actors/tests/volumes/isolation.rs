//! What hangs delays nothing else (V9).

use std::time::Duration;

use callboard_actors::shell::StopMode;
use callboard_actors::volume::{VolumeKey, VolumeOptions};
use callboard_actors::volumes::{DeleteSnapshot, VolumesOptions};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::fixture::story;
use crate::node::{Choices, Node, PATIENCE, SECOND, options};
use crate::plugin::{Act, Plugin};

fn few_calls() -> Choices {
    Choices { options: VolumesOptions { calls_max: 4, ..VolumesOptions::default() }, ..Choices::default() }
}

#[test]
fn a_plugin_that_hangs_with_many_volumes_delays_no_volume_of_another_plugin_v9() {
    story(|| async {
        let node = Node::open_with(few_calls());
        let (hung, sound) = (Plugin::new(&node.kernel), Plugin::new(&node.kernel));
        let _hung = node.add_plugin("hung", "h", &hung).await;
        let _sound = node.add_plugin("sound", "s", &sound).await;
        hung.on("NodeStageVolume", Act::Hang);
        for number in 0..32 {
            let volume = node.add_volume("hung", &format!("hung-{number}")).await;
            tokio::task::spawn_local(node.claim_within(&volume, "a", PATIENCE));
        }
        while hung.calls() < 32 + 4 {
            hung.is_called().await;
        }
        let began = Instant::now();
        for number in 0..8 {
            let volume = node.add_volume("sound", &format!("sound-{number}")).await;
            node.claim(&volume, "a").await.expect("it is set up");
            node.release(&volume, "a").await.expect("it is undone");
        }
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        let mut calls = hung.take_calls();
        calls.retain(|call| *call == "NodeStageVolume");
        assert_eq!(calls.len(), 4, "the other volumes wait for a permit");
        node.stop().await;
    });
}

#[test]
fn looks_at_the_hanging_mount_of_one_volume_delay_no_other_volume_of_its_plugin_v9() {
    story(|| async {
        let options = VolumesOptions { calls_max: 1, ..VolumesOptions::default() };
        let node = Node::open_with(Choices { options, ..Choices::default() });
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        node.kernel.hang("/default/hung/", 10 * SECOND);
        let hung = node.add_volume("zfs", "hung").await;
        tokio::task::spawn_local(node.claim_within(&hung, "a", PATIENCE));
        while plugin.calls() < 2 {
            plugin.is_called().await;
        }
        let began = Instant::now();
        let sound = node.add_volume("zfs", "sound").await;
        node.claim(&sound, "a").await.expect("it is set up");
        node.release(&sound, "a").await.expect("it is undone");
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        let doing = node.describe(&hung).await.status.expect("it is in use").doing.clone();
        assert!(doing.contains("NodeStageVolume"), "its staging is looked at still: {doing}");
        node.stop().await;
    });
}

#[test]
fn a_call_that_waits_for_one_of_another_volume_holds_up_no_claim_of_its_own_c002_v9() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let (hung, sound) = (node.add_volume("zfs", "hung").await, node.add_volume("zfs", "sound").await);
        plugin.once("DeleteSnapshot", Act::Hang);
        let delete = |volume: &VolumeKey| {
            let (volume, snapshot_id) = (volume.clone(), "s1".to_owned());
            node.volumes.ask(DeleteSnapshot { volume, snapshot_id, within: PATIENCE })
        };
        let first = tokio::task::spawn_local(delete(&hung));
        plugin.is_called().await;
        let second = tokio::task::spawn_local(delete(&sound));
        let doing = async || {
            node.describe(&sound).await.status.map(|status| status.doing.clone()).unwrap_or_default()
        };
        while !doing().await.contains("DeleteSnapshot") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for _ in 0..3 {
            let began = Instant::now();
            node.claim(&sound, "a").await.expect("it is set up");
            node.release(&sound, "a").await.expect("it is undone");
            assert!(began.elapsed() < 3 * SECOND, "{:?}", began.elapsed());
        }
        assert_eq!(plugin.take_calls().iter().filter(|call| **call == "DeleteSnapshot").count(), 1);
        first.await.expect("it runs").expect("it runs").expect("it is deleted when it is asked again");
        second.await.expect("it runs").expect("it runs").expect("it is deleted in its turn");
        node.stop().await;
    });
}

#[test]
fn many_claims_of_one_plugin_wait_their_turn_and_all_are_set_up_v9() {
    story(|| async {
        let node = Node::open_with(few_calls());
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        for call in ["ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"] {
            plugin.on(call, Act::After(SECOND));
        }
        let mut claims = Vec::new();
        for number in 0..32 {
            let volume = node.add_volume("zfs", &format!("v{number}")).await;
            claims.push(node.claim_within(&volume, "a", PATIENCE));
        }
        let began = Instant::now();
        for claimed in join_all(claims).await {
            claimed.expect("it is set up");
        }
        // The halves have permits of their own: 8 rounds at the controller, while 16 rounds at the node begin after the first.
        assert!(began.elapsed() < 20 * SECOND, "{:?}", began.elapsed());
        assert_eq!(plugin.at_once_max(), 8);
        assert_eq!(plugin.calls(), 32 * 3, "none was made twice");
        node.stop().await;
    });
}

#[test]
fn a_stop_is_bounded_although_a_call_hangs_and_the_next_run_goes_on_v9_v13_shd_02() {
    story(|| async {
        let volume = VolumeOptions { stop_within: 5 * SECOND, ..VolumeOptions::default() };
        let mut node = Node::open_with(Choices { options: options(volume), ..Choices::default() });
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        node.claim(&data, "a").await.expect("it is set up");
        plugin.once("NodeUnpublishVolume", Act::After(30 * SECOND));
        let pending = node.release_within(&data, "a", SECOND).await.expect_err("it takes longer");
        assert!(pending.to_string().contains("goes on"), "{pending}");
        let began = Instant::now();
        node.running.request_stop(StopMode::Stop);
        node.running.ended().await;
        assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
        let steps = node.running.stop_steps();
        assert!(steps.len() == 1 && steps[0].is_left && steps[0].what == "volume/default/data", "{steps:?}");
        node.restart().await;
        node.is_unneeded(&data).await;
        assert_eq!(node.kernel.left(), Vec::<std::path::PathBuf>::new());
        assert_eq!(plugin.together(), Vec::<String>::new());
        tokio::time::sleep(Duration::from_secs(60)).await;
        node.stop().await;
    });
}
