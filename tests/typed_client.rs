//! Tests the typed client with real plugin processes: volumes through their whole lifecycle, and plugins that fail, lie and die.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callboard::actors::allocations::TaskStarted;
use callboard::actors::csi::{
    AccessMode, AccessType, CapacityRange, Client, ControllerExpandVolumeRequest, ControllerGetVolumeRequest,
    ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateSnapshotRequest,
    CreateVolumeGroupSnapshotRequest, CreateVolumeRequest, DeleteSnapshotRequest,
    DeleteVolumeGroupSnapshotRequest, DeleteVolumeRequest, Effect, FailedCall, GetCapacityRequest,
    GetMetadataAllocatedRequest, GetVolumeGroupSnapshotRequest, ListSnapshotsRequest, ListVolumesRequest,
    MountFlags, MountVolume, NodeGetVolumeStatsRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, Reaction, Secrets, UnpublishFrom,
    ValidateVolumeCapabilitiesRequest, Volume, VolumeCapability, VolumeContentSource,
};
use callboard::actors::vocabulary::Role;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use support::{LONG, Stage, Task, controller, id, node};

const NODE: &str = "node-1";
const CANARY: &str = "canary-in-a-secret";

/// The log of this process, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn follow() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
        let subscriber = subscriber.with_writer(move || writer.clone()).finish();
        tracing::subscriber::set_global_default(subscriber).expect("it is the only one");
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

fn secrets() -> Secrets {
    Secrets::new(BTreeMap::from([("password".to_owned(), CANARY.to_owned())]))
}

fn usage() -> VolumeCapability {
    let mount_flags = MountFlags::new(vec![format!("password={CANARY}")]);
    VolumeCapability {
        access_type: AccessType::Mount(MountVolume { mount_flags, ..MountVolume::default() }),
        access_mode: AccessMode::SingleNodeWriter,
    }
}

fn create(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        volume_capabilities: vec![usage()],
        secrets: secrets(),
        ..CreateVolumeRequest::default()
    }
}

fn publish(volume: &Volume) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_id: volume.volume_id.clone(),
        node_id: NODE.to_owned(),
        volume_capability: usage(),
        readonly: false,
        secrets: secrets(),
        volume_context: volume.volume_context.clone(),
    }
}

fn unpublish(volume: &Volume) -> ControllerUnpublishVolumeRequest {
    ControllerUnpublishVolumeRequest {
        volume_id: volume.volume_id.clone(),
        from: UnpublishFrom::Node(NODE.to_owned()),
        secrets: secrets(),
    }
}

fn known(failed: &FailedCall) -> (Effect, Reaction) {
    (failed.outcome().effect, failed.outcome().reaction)
}

async fn delete(client: &Client, volume: &Volume) -> Result<(), FailedCall> {
    let request = DeleteVolumeRequest { volume_id: volume.volume_id.clone(), secrets: secrets() };
    client.delete_volume(&request, LONG).await
}

/// Answers that are lost, negative or too long, and requests with other arguments.
async fn fails_and_lies(client: &Client) -> Volume {
    let failed = client.create_volume(&create("v"), LONG).await.expect_err("its answer is lost");
    assert_eq!(known(&failed), (Effect::Unknown, Reaction::Retry), "{failed}");
    let volume = client.create_volume(&create("v"), LONG).await.expect("a retry tells");
    assert_eq!(volume.capacity_bytes, 1 << 20);
    let mut larger = create("v");
    larger.capacity_range = Some(CapacityRange { required_bytes: 1 << 22, limit_bytes: 0 });
    let failed = client.create_volume(&larger, LONG).await.expect_err("it is there with another size");
    assert_eq!(known(&failed), (Effect::NotDone, Reaction::ChangeRequest), "{failed}");
    let failed = client.get_capacity(&GetCapacityRequest::default(), LONG).await.expect_err("a lie");
    assert!(failed.to_string().contains("below zero"), "{failed}");
    client.get_capacity(&GetCapacityRequest::default(), LONG).await.expect("the truth");
    let failed = client.controller_publish_volume(&publish(&volume), LONG).await.expect_err("a lie");
    assert!(failed.to_string().contains("publish_context has"), "{failed}");
    assert_eq!(known(&failed), (Effect::Unknown, Reaction::Report));
    client.controller_unpublish_volume(&unpublish(&volume), LONG).await.expect("it is undone");
    volume
}

async fn snapshots(client: &Client, volume: &Volume) {
    let source_volume_id = volume.volume_id.clone();
    let request = CreateSnapshotRequest {
        source_volume_id,
        name: "s".to_owned(),
        secrets: secrets(),
        ..Default::default()
    };
    let snapshot = client.create_snapshot(&request, LONG).await.expect("it copies");
    assert!(snapshot.ready_to_use && snapshot.creation_time.is_some());
    let page = client.list_snapshots(&ListSnapshotsRequest::default(), LONG).await.expect("it lists");
    assert_eq!(page.entries, std::slice::from_ref(&snapshot));
    let source = VolumeContentSource::Snapshot(snapshot.snapshot_id.clone());
    let request = CreateVolumeRequest { volume_content_source: Some(source), ..create("restored") };
    let restored = client.create_volume(&request, LONG).await.expect("it copies");
    delete(client, &restored).await.expect("it is not in use");
    let snapshot_id = snapshot.snapshot_id;
    client
        .delete_snapshot(&DeleteSnapshotRequest { snapshot_id, secrets: secrets() }, LONG)
        .await
        .expect("gone");

    let source_volume_ids = vec![volume.volume_id.clone()];
    let request = CreateVolumeGroupSnapshotRequest {
        name: "g".to_owned(),
        source_volume_ids,
        secrets: secrets(),
        ..Default::default()
    };
    assert_eq!(client.group_controller_get_capabilities(LONG).await.expect("it answers").len(), 1);
    let group = client.create_volume_group_snapshot(&request, LONG).await.expect("it copies");
    let group_snapshot_id = group.group_snapshot_id.clone();
    let snapshot_ids: Vec<_> = group.snapshots.iter().map(|snapshot| snapshot.snapshot_id.clone()).collect();
    let request = GetVolumeGroupSnapshotRequest {
        group_snapshot_id: group_snapshot_id.clone(),
        snapshot_ids: snapshot_ids.clone(),
        secrets: secrets(),
    };
    assert_eq!(client.get_volume_group_snapshot(&request, LONG).await, Ok(group));
    let request = DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets: secrets() };
    client.delete_volume_group_snapshot(&request, LONG).await.expect("gone");
}

async fn describes(client: &Client, volume: &Volume) {
    let question = ValidateVolumeCapabilitiesRequest {
        volume_id: volume.volume_id.clone(),
        volume_context: volume.volume_context.clone(),
        volume_capabilities: vec![usage()],
        parameters: BTreeMap::new(),
        secrets: secrets(),
        mutable_parameters: BTreeMap::new(),
    };
    let answer = client.validate_volume_capabilities(&question, LONG).await.expect("it answers");
    assert_eq!(answer.unconfirmed(&question), [""; 0], "{answer:?}");
    let request = ControllerExpandVolumeRequest {
        volume_id: volume.volume_id.clone(),
        capacity_range: CapacityRange { required_bytes: 2 << 20, limit_bytes: 0 },
        secrets: secrets(),
        volume_capability: Some(usage()),
    };
    let grown = client.controller_expand_volume(&request, LONG).await.expect("it grows");
    let request = ControllerGetVolumeRequest { volume_id: volume.volume_id.clone() };
    let found = client.controller_get_volume(&request, LONG).await.expect("it is there");
    assert_eq!((found.volume.capacity_bytes, grown.capacity_bytes), (2 << 20, 2 << 20));
    let request = ListVolumesRequest { max_entries: 1, ..ListVolumesRequest::default() };
    let page = client.list_volumes(&request, LONG).await.expect("it lists");
    assert_eq!(page.entries[0].volume, found.volume);
    let request = GetMetadataAllocatedRequest { snapshot_id: "s".to_owned(), ..Default::default() };
    let failed = client.get_metadata_allocated(&request, LONG).await.expect_err("it has no such service");
    assert_eq!(known(&failed), (Effect::NotDone, Reaction::GiveUp), "{failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typed_client_takes_a_volume_through_its_life_and_logs_no_secret_c025_c059_v4_v10_v11() {
    let (stage, log) = (Stage::new(), Log::follow());
    let host = stage.builder().start_on_own_thread().await.unwrap();
    let volumes = format!("--volumes={}", stage.path("volumes").display());
    let mut task = Task::new(&stage, "first", "zfs", Role::Monolith).with(&[
        &volumes,
        "--node-id=node-1",
        "--fault=CreateVolume=INTERNAL,after,nth:1",
        "--fault=GetCapacity=lie,nth:1",
        "--fault=ControllerPublishVolume=lie,nth:1",
    ]);
    task.start(&host).await;
    let client = host.leases().csi(&controller("zfs"), LONG).await.unwrap();
    let volume = fails_and_lies(&client).await;
    snapshots(&client, &volume).await;
    describes(&client, &volume).await;
    delete(&client, &volume).await.expect("it is not in use");

    task.kill(&host).await;
    let failed = delete(&client, &volume).await.expect_err("its process is dead");
    assert_eq!(failed.outcome().reaction, Reaction::NewLease, "{failed}");
    host.stop().await;
    let logged = log.text();
    assert!(logged.contains("csi call failed") && logged.contains("CreateVolume"), "the calls are logged");
    assert!(!logged.contains(CANARY) && !task.said().contains(CANARY), "a secret is in the log");
}

/// The reference plugin in its own user and mount namespace, which ends with it.
struct Mounting(Child);

impl Mounting {
    fn is_permitted() -> bool {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "--", "true"]).stderr(Stdio::null());
        unshare.status().is_ok_and(|status| status.success())
    }

    async fn start(stage: &Stage, host: &callboard::host::Host) -> Self {
        let task = Task::new(stage, "first", "zfs", Role::Monolith);
        let context = task.prepare(host).await.unwrap();
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "--", env!("CARGO_BIN_EXE_callboard")]);
        unshare.args(["plugin", "hostpath", "--node-id", NODE, "--volumes"]).arg(stage.path("volumes"));
        unshare.args(["--fault", "NodeStageVolume=UNAVAILABLE,after,nth:1"]);
        unshare.envs(&context.environment).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Self(unshare.process_group(0).spawn().unwrap());
        host.allocations().ask(TaskStarted { allocation: id("first") }).await.unwrap().unwrap();
        process
    }
}

impl Drop for Mounting {
    fn drop(&mut self) {
        // It has already ended if the test has killed it.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

fn plain() -> VolumeCapability {
    VolumeCapability {
        access_type: AccessType::Mount(MountVolume::default()),
        access_mode: AccessMode::SingleNodeWriter,
    }
}

/// Uses a volume at a path of this directory and releases it again.
async fn use_on_node(client: &Client, volume: &Volume, stage: &NodeStageVolumeRequest, target: &str) {
    let failed = client.node_stage_volume(stage, LONG).await.expect_err("its answer is lost");
    assert_eq!(known(&failed), (Effect::Unknown, Reaction::Retry), "{failed}");
    client.node_stage_volume(stage, LONG).await.expect("a retry tells");
    let mut publish = NodePublishVolumeRequest {
        volume_id: volume.volume_id.clone(),
        publish_context: stage.publish_context.clone(),
        staging_target_path: None,
        target_path: target.to_owned(),
        volume_capability: plain(),
        readonly: false,
        secrets: Secrets::none(),
        volume_context: volume.volume_context.clone(),
    };
    let failed = client.node_publish_volume(&publish, LONG).await.expect_err("it stages");
    assert!(failed.to_string().contains("staging_target_path is not set"), "{failed}");
    publish.staging_target_path = Some(stage.staging_target_path.clone());
    client.node_publish_volume(&publish, LONG).await.expect("it is staged");
    let question = NodeGetVolumeStatsRequest {
        volume_id: volume.volume_id.clone(),
        volume_path: target.to_owned(),
        staging_target_path: publish.staging_target_path.clone(),
    };
    let stats = client.node_get_volume_stats(&question, LONG).await.expect("it is published");
    assert!(stats.usage.iter().any(|usage| usage.total > 0), "{stats:?}");
    let (volume_id, target_path) = (volume.volume_id.clone(), target.to_owned());
    client
        .node_unpublish_volume(&NodeUnpublishVolumeRequest { volume_id, target_path }, LONG)
        .await
        .expect("down");
    let (volume_id, staging_target_path) = (volume.volume_id.clone(), stage.staging_target_path.clone());
    let unstage = NodeUnstageVolumeRequest { volume_id, staging_target_path };
    client.node_unstage_volume(&unstage, LONG).await.expect("down");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typed_client_mounts_a_volume_and_leaves_it_again_c074_c135_v4() {
    if !Mounting::is_permitted() {
        eprintln!(
            "SKIPPED: mounts over the typed client are not shown, since `unshare --user --mount` is refused here"
        );
        return;
    }
    let (stage, places) = (Stage::new(), TempDir::new().unwrap());
    let host = stage.builder().start_on_own_thread().await.unwrap();
    let _plugin = Mounting::start(&stage, &host).await;
    let leases = host.leases();
    let (controller, node) =
        (leases.csi(&controller("zfs"), LONG).await.unwrap(), leases.csi(&node("zfs"), LONG).await.unwrap());
    let request =
        CreateVolumeRequest { volume_capabilities: vec![plain()], secrets: Secrets::none(), ..create("v") };
    let volume = controller.create_volume(&request, LONG).await.unwrap();
    let request = ControllerPublishVolumeRequest {
        volume_capability: plain(),
        secrets: Secrets::none(),
        ..publish(&volume)
    };
    let publish_context = controller.controller_publish_volume(&request, LONG).await.unwrap();
    assert!(!publish_context.is_empty());
    let staging = places.path().join("staging");
    fs::create_dir(&staging).unwrap();
    let stage_volume = NodeStageVolumeRequest {
        volume_id: volume.volume_id.clone(),
        publish_context,
        staging_target_path: staging.to_str().unwrap().to_owned(),
        volume_capability: plain(),
        secrets: Secrets::none(),
        volume_context: volume.volume_context.clone(),
    };
    let target = places.path().join("target");
    use_on_node(&node, &volume, &stage_volume, target.to_str().unwrap()).await;
    controller.controller_unpublish_volume(&unpublish(&volume), Duration::from_secs(10)).await.unwrap();
    delete(&controller, &volume).await.unwrap();
    drop((controller, node));
    host.stop().await;
}
