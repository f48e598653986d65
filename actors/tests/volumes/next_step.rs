//! The directories of the next step are made while the plugin works on the step before it, and none of them is left when that step never
//! comes (V5, V6).

use std::path::{Path, PathBuf};

use callboard_actors::volume::VolumeKey;
use tonic::Code;

use crate::fixture::story;
use crate::node::{Node, PATIENCE, SECOND};
use crate::plugin::{Act, Plugin, Serving};

const STAGING: &str = "/data/csi/node/zfs/staging/default/data/file-system-multi-node-multi-writer";
const ABOVE_THE_TARGET: &str = "/data/csi/node/zfs/per-alloc/a/default/data";

/// A node with a plugin and a volume.
async fn opened() -> (Node, Plugin, Serving, VolumeKey) {
    let node = Node::open();
    let plugin = Plugin::new(&node.kernel);
    let serving = node.add_plugin("zfs", "p", &plugin).await;
    let data = node.add_volume("zfs", "data").await;
    (node, plugin, serving, data)
}

/// Claims a volume, and returns whether a directory exists while the plugin works on a call.
async fn is_made_during(call: &'static str, path: &str) -> bool {
    let (node, plugin, _serving, data) = opened().await;
    plugin.once(call, Act::After(10 * SECOND));
    let claim = tokio::task::spawn_local(node.claim_within(&data, "a", PATIENCE));
    tokio::time::sleep(SECOND).await;
    let is_made = node.kernel.is_made(Path::new(path));
    claim.await.expect("no panic").expect("it is set up");
    node.release(&data, "a").await.expect("it is undone");
    assert_eq!(node.kernel.left(), Vec::<PathBuf>::new());
    node.stop().await;
    is_made
}

#[test]
fn what_staging_needs_is_made_while_it_is_attached_c125() {
    story(|| async { assert!(is_made_during("ControllerPublishVolume", STAGING).await) });
}

#[test]
fn what_publishing_needs_is_made_while_it_is_staged_c136() {
    story(|| async { assert!(is_made_during("NodeStageVolume", ABOVE_THE_TARGET).await) });
}

/// Claims a volume that the plugin refuses, and returns the directories that are left.
async fn left_when_refused(call: &'static str) -> Vec<PathBuf> {
    let (node, plugin, _serving, data) = opened().await;
    plugin.on(call, Act::Fail(Code::InvalidArgument));
    node.claim(&data, "a").await.expect_err("it is refused");
    node.is_unneeded(&data).await;
    let left = node.kernel.left();
    node.stop().await;
    left
}

#[test]
fn an_attachment_that_is_refused_leaves_no_directory_v6() {
    story(|| async { assert_eq!(left_when_refused("ControllerPublishVolume").await, Vec::<PathBuf>::new()) });
}

#[test]
fn a_staging_that_is_refused_leaves_no_directory_v6() {
    story(|| async { assert_eq!(left_when_refused("NodeStageVolume").await, Vec::<PathBuf>::new()) });
}

/// Releases a volume while the plugin works on a call of its claim, and returns the directories that are left.
async fn left_when_released_during(call: &'static str) -> Vec<PathBuf> {
    let (node, plugin, _serving, data) = opened().await;
    plugin.once(call, Act::After(10 * SECOND));
    let claim = tokio::task::spawn_local(node.claim_within(&data, "a", PATIENCE));
    tokio::time::sleep(SECOND).await;
    node.release(&data, "a").await.expect("it is undone");
    claim.await.expect("no panic").expect_err("it was released");
    node.is_unneeded(&data).await;
    let left = node.kernel.left();
    let calls = plugin.take_calls();
    assert!(!calls.contains(&"NodePublishVolume"), "it was not set up any further: {calls:?}");
    node.stop().await;
    left
}

#[test]
fn a_claim_that_is_released_while_it_is_attached_leaves_no_directory_v6() {
    story(|| async {
        assert_eq!(left_when_released_during("ControllerPublishVolume").await, Vec::<PathBuf>::new());
    });
}

#[test]
fn a_claim_that_is_released_while_it_is_staged_leaves_no_directory_v6() {
    story(|| async { assert_eq!(left_when_released_during("NodeStageVolume").await, Vec::<PathBuf>::new()) });
}
