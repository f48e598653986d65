//! Tests one volume from its first claim to the last release, through the owner of the volumes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callboard_actors::csi::{AccessMode, AccessType, Call, Secrets, VolumeCapability};
use callboard_actors::persister::{Options, Persister};
use callboard_actors::shell::{Database, Notices};
use callboard_actors::vocabulary::PluginName;
use callboard_actors::volume::{NewVolume, SecretSource, VolumeKey, VolumeOptions};
use callboard_actors::volumes::{ConfirmClaims, CreateVolume, DeleteVolume, ListVolumes};
use futures_util::future::LocalBoxFuture;
use tonic::Code;

use crate::fixture::story;
use crate::kernel::Kernel;
use crate::node::{Choices, Kept, Node, PATIENCE, key, living, options};
use crate::plugin::{Act, Plugin, Told};

const UP: [&str; 3] = ["ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume"];
const DOWN: [&str; 3] = ["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"];

/// Holds C079, C121, C122, C123, C132, C134 and C142.
#[test]
fn a_volume_goes_up_step_by_step_is_shared_and_leaves_nothing_v3_v6_v7() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        let first = node.claim(&data, "a").await.expect("it is set up");
        assert_eq!(plugin.take_calls(), UP);
        assert!(node.kernel.is_mounted(&first.path) && !first.is_block && !first.read_only);
        let second = node.claim(&data, "b").await.expect("it is shared");
        assert_ne!(first.path, second.path);
        assert_eq!(plugin.take_calls(), ["NodePublishVolume"]);
        let released = node.release(&data, "a").await.expect("it is undone");
        assert!(released.was_held && released.others == [crate::fixture::allocation("b")]);
        assert_eq!(plugin.take_calls(), ["NodeUnpublishVolume"]);
        let released = node.release(&data, "b").await.expect("it is undone");
        assert!(released.others.is_empty());
        assert_eq!(plugin.take_calls(), DOWN);
        node.is_unneeded(&data).await;
        assert_eq!(node.kernel.left(), Vec::<std::path::PathBuf>::new());
        assert!(node.volumes().await.iter().all(|volume| volume.is_known && volume.status.is_none()));
        node.stop().await;
    });
}

/// Holds C013.
#[test]
fn each_call_has_its_contexts_its_node_and_its_directories_c060_c071_c073_c074_c125_c136_c142() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        // The answer to the first staging is lost: the call is repeated with the same contexts.
        plugin.once("NodeStageVolume", Act::DoneThen(Code::Unavailable));
        node.claim(&data, "a").await.expect("it is set up");
        node.release(&data, "a").await.expect("it is undone");
        let map = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
        let volume_context = map("pool", "tank/data");
        let attach = Told {
            call: "ControllerPublishVolume",
            node_id: "node-1".to_owned(),
            volume_context: volume_context.clone(),
            ..Told::default()
        };
        let stage = Told {
            call: "NodeStageVolume",
            volume_context,
            publish_context: map("attached to", "node-1"),
            directories: (true, true),
            ..Told::default()
        };
        // The plugin makes the directory of a target, its host the parent directory.
        let publish = Told { call: "NodePublishVolume", directories: (false, true), ..stage.clone() };
        assert_eq!(plugin.told(), [attach, stage.clone(), stage, publish]);
        assert_eq!(node.kernel.left(), Vec::<std::path::PathBuf>::new());
        node.stop().await;
    });
}

/// There must be a mount before the answer, but some plugins mount in the background.
#[test]
fn a_mount_that_is_late_is_waited_for_and_one_that_does_not_come_is_undone_v7() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        plugin.once("NodePublishVolume", Act::AnswerThen(Duration::from_millis(1_500)));
        let claimed = node.claim(&data, "a").await.expect("it is mounted in the end");
        assert!(node.kernel.is_mounted(&claimed.path));
        assert_eq!(plugin.take_calls(), UP);

        plugin.once("NodePublishVolume", Act::AnswerThen(crate::fixture::LONG));
        node.claim(&data, "b").await.expect("the second try mounts it");
        assert_eq!(plugin.take_calls(), ["NodePublishVolume", "NodeUnpublishVolume", "NodePublishVolume"]);
        node.stop().await;
    });
}

#[test]
fn a_takeover_during_a_claim_goes_on_with_the_next_generation_res_05() {
    story(|| async {
        let node = Node::open();
        let (old, new) = (Plugin::new(&node.kernel), Plugin::new(&node.kernel));
        let old_serving = node.add_plugin("zfs", "old", &old).await;
        let data = node.add_volume("zfs", "data").await;
        old.on("NodeStageVolume", Act::Hang);
        let claim = tokio::task::spawn_local(node.claim_within(&data, "a", PATIENCE));
        while !old.take_calls().contains(&"NodeStageVolume") {
            old.is_called().await;
        }
        let _new_serving = node.add_plugin("zfs", "new", &new).await;
        node.remove_plugin("zfs", "old").await;
        let claimed = claim.await.expect("no panic").expect("the next generation sets it up");
        assert!(node.kernel.is_mounted(&claimed.path));
        // An attached volume stays attached; the step that was cut is repeated.
        assert_eq!(new.take_calls(), ["NodeStageVolume", "NodePublishVolume"]);
        old_serving.kill().await;
        node.release(&data, "a").await.expect("it is undone");
        assert_eq!(new.take_calls(), DOWN);
        node.stop().await;
    });
}

#[test]
fn claims_of_an_earlier_run_wait_for_their_confirmation_and_the_rest_is_undone_v14() {
    story(|| async { an_earlier_run(Kept::default()).await });
}

#[test]
fn claims_of_an_earlier_run_are_read_from_the_disk_v5_v14() {
    story(|| async {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let persister = Persister::open(Options::new(directory.path())).await.expect("it opens");
        an_earlier_run(Kept::OnDisk(Database::opened(persister.clone(), Notices::default()))).await;
        persister.close().await.expect("everything is written");
    });
}

async fn an_earlier_run(kept: Kept) {
    let mut node = Node::open_with(Choices { kept, ..Choices::default() });
    let plugin = Plugin::new(&node.kernel);
    let _serving = node.add_plugin("zfs", "p", &plugin).await;
    let (data, logs) = (node.add_volume("zfs", "data").await, node.add_volume("zfs", "logs").await);
    let claimed = node.claim(&data, "lives").await.expect("it is set up");
    node.claim(&logs, "dead").await.expect("it is set up");
    plugin.take_calls();
    node.restart().await;
    // Nothing is undone before the host has reported which allocations live.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(plugin.take_calls(), Vec::<&str>::new());
    let confirmed = node
        .volumes
        .ask(ConfirmClaims { living: living(&["lives"]), unclear: [].into() })
        .await
        .expect("it runs");
    assert!(confirmed.len() == 2 && confirmed.iter().all(|one| one.result.is_ok()), "{confirmed:?}");
    node.is_unneeded(&logs).await;
    assert_eq!(plugin.take_calls(), DOWN);
    let again = node.claim(&data, "lives").await.expect("it is still there");
    assert_eq!(again.path, claimed.path);
    assert_eq!(plugin.take_calls(), Vec::<&str>::new(), "it was looked at, and not set up again");
    node.stop().await;
}

/// Holds C062.
#[test]
fn a_volume_is_created_once_and_deleted_when_it_is_released_c050_c059() {
    story(|| async {
        let node = Node::open();
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        // The plugin has created it, and the answer was lost.
        plugin.once("CreateVolume", Act::DoneThen(Code::Unavailable));
        let create = create("made");
        let created = node.volumes.ask(create.clone()).await.expect("it runs").expect("it exists");
        assert!(created.volume.volume_id.starts_with("id of default-made-"), "{created:?}");
        assert_eq!(plugin.take_calls(), ["CreateVolume"; 2]);
        assert_eq!(node.volumes.ask(create).await.expect("it runs").as_ref(), Ok(&created));
        assert_eq!(plugin.take_calls(), Vec::<&str>::new());
        node.claim(&key("made"), "a").await.expect("it is set up");
        let delete = DeleteVolume { volume: key("made"), within: PATIENCE };
        let refused = node.volumes.ask(delete.clone()).await.expect("it runs").expect_err("it is claimed");
        assert!(refused.to_string().contains('a'), "{refused}");
        node.release(&key("made"), "a").await.expect("it is undone");
        plugin.take_calls();
        let deleted = node.volumes.ask(delete).await.expect("it runs").expect("it is deleted");
        assert!(deleted.did_exist);
        assert_eq!(plugin.take_calls(), ["DeleteVolume"]);
        assert!(node.volumes.ask(ListVolumes).await.expect("it runs").is_empty());
        node.stop().await;
    });
}

fn create(name: &str) -> CreateVolume {
    let capability =
        VolumeCapability { access_type: AccessType::Block, access_mode: AccessMode::SingleNodeWriter };
    let mut capability = vec![capability];
    capability.push(crate::node::usage().capability);
    CreateVolume {
        volume: key(name),
        plugin: PluginName::new("zfs").expect("a good name"),
        new: NewVolume { capabilities: capability, ..NewVolume::default() },
        within: PATIENCE,
    }
}

/// Gives a new secret for each question, and fails the first.
#[derive(Debug, Default)]
struct Changing(AtomicUsize);

impl SecretSource for Changing {
    fn secrets(&self, volume: &VolumeKey, call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let secret = format!("{volume} {call} {number}");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            match number {
                0 => Err("the vault is sealed; unseal it".to_owned()),
                _ => Ok(Secrets::new(BTreeMap::from([("key".to_owned(), secret)]))),
            }
        })
    }
}

/// Holds C024 and C081.
#[test]
fn secrets_are_asked_for_before_each_call_and_reach_no_status_v11_c025() {
    story(|| async {
        let secrets = Arc::new(Changing::default());
        let node = Node::open_with(Choices { secrets: secrets.clone(), ..Choices::default() });
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        let pending = node.claim_within(&data, "a", Duration::from_millis(100)).await;
        let pending = pending.expect_err("the vault is sealed").to_string();
        assert_eq!(plugin.take_calls(), Vec::<&str>::new(), "{pending}");
        assert!(format!("{:?}", node.describe(&data).await).contains("the vault is sealed; unseal it"));
        node.claim(&data, "a").await.expect("it is set up");
        node.release(&data, "a").await.expect("it is undone");
        let sent = plugin.secrets();
        let asked = UP.into_iter().chain(["ControllerUnpublishVolume"]).zip(1..);
        let expected: Vec<_> =
            asked.map(|(call, number)| (call, format!("default/data {call} {number}"))).collect();
        assert_eq!(sent, expected, "what goes down at the node takes none");
        let shown = format!("{:?}", node.describe(&data).await);
        assert!(!shown.contains("ControllerPublishVolume 1"), "{shown}");
        node.stop().await;
    });
}

/// Panics at first, alternately when it is asked and while its answer is awaited, with a secret in its message.
#[derive(Debug, Default)]
struct Panicking(AtomicUsize);

/// How often it panics: more often than a step may fail.
const PANICS: usize = 6;

impl SecretSource for Panicking {
    fn secrets(&self, _volume: &VolumeKey, _call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(number >= PANICS || number % 2 == 1, "it panics at once: hunter2");
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(number >= PANICS, "it panics later: hunter2");
            Ok(Secrets::none())
        })
    }
}

#[test]
fn a_source_of_secrets_that_panics_has_none_for_now_and_its_panic_is_told_to_no_caller_v11() {
    story(|| async {
        let secrets = Arc::new(Panicking::default());
        let few_tries = VolumeOptions { tries_max: 2, ..VolumeOptions::default() };
        let choices = Choices { options: options(few_tries), secrets: secrets.clone(), ..Choices::default() };
        let node = Node::open_with(choices);
        let plugin = Plugin::new(&node.kernel);
        let _serving = node.add_plugin("zfs", "p", &plugin).await;
        let data = node.add_volume("zfs", "data").await;
        // By then it has panicked in both ways.
        let pending = node.claim_within(&data, "a", Duration::from_secs(4)).await.expect_err("it has none");
        assert!(pending.is_transient(), "{pending}");
        let shown = format!("{pending} {pending:?} {:?}", node.describe(&data).await);
        assert!(shown.contains("the source of secrets panicked") && !shown.contains("hunter2"), "{shown}");
        assert!(secrets.0.load(Ordering::Relaxed) >= 2, "{shown}");
        assert_eq!(plugin.take_calls(), Vec::<&str>::new(), "{shown}");
        node.claim(&data, "a").await.expect("no panic counts as a try");
        assert!(secrets.0.load(Ordering::Relaxed) > PANICS);
        node.release(&data, "a").await.expect("it is undone");
        node.stop().await;
    });
}

#[test]
fn a_call_that_is_refused_leaves_no_directory_and_one_whose_outcome_is_unknown_is_undone_v4_v5_v6() {
    story(|| async {
        for (code, calls) in [
            (Code::InvalidArgument, vec!["NodeStageVolume"]),
            (Code::Internal, vec!["NodeStageVolume", "NodeUnstageVolume"]),
        ] {
            let kernel = refused_staging(code, &calls).await;
            assert_eq!(kernel.left(), Vec::<std::path::PathBuf>::new(), "{code}");
        }
    });
}

/// Makes a claim that fails in its staging, and checks that these calls to the node are made, each at least once.
async fn refused_staging(code: Code, calls: &[&str]) -> Kernel {
    let node = Node::open();
    let plugin = Plugin::new(&node.kernel);
    let _serving = node.add_plugin("zfs", "p", &plugin).await;
    let data = node.add_volume("zfs", "data").await;
    plugin.on("NodeStageVolume", Act::Fail(code));
    let failed = node.claim(&data, "a").await.expect_err("it is refused");
    assert!(failed.to_string().contains("NodeStageVolume"), "{failed}");
    node.is_unneeded(&data).await;
    let mut made = plugin.take_calls();
    made.retain(|call| call.starts_with("Node"));
    made.dedup();
    assert_eq!(made, calls);
    let kernel = node.kernel.clone();
    node.stop().await;
    kernel
}
