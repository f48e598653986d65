//! Tests the client over a lease, against a plugin in this process that answers as a test requires.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::codegen::BoxStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use wire::controller_server::{Controller, ControllerServer};
use wire::group_controller_server::{GroupController, GroupControllerServer};
use wire::node_server::{Node, NodeServer};
use wire::snapshot_metadata_server::{SnapshotMetadata, SnapshotMetadataServer};

use super::*;
use crate::csi::{
    BlockMetadata, DeleteVolumeRequest, Effect, GetMetadataAllocatedRequest, NodeUnstageVolumeRequest,
    Reaction, Secrets,
};
use crate::lease::{Connections, Gate, OpenConnection, RetireCause};
use crate::rpc::{Code, connect_to_socket};
use crate::sync::Arc;
use crate::vocabulary::{
    AllocationId, ControllerCapability, CsiFingerprint, Generation, GroupControllerCapability, Identity,
    NodeCapability, PluginCapability, PluginKey, PluginName, PluginType, SocketPath,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Answers by the id of the requested volume or snapshot.
#[derive(Clone, Default)]
struct Plugin {
    calls: Arc<AtomicUsize>,
}

impl Plugin {
    async fn play(&self, id: &str) -> Result<(), Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match id {
            "hangs" => std::future::pending().await,
            "busy" => Err(Status::aborted("another call\nis pending")),
            _ => Ok(()),
        }
    }
}

#[tonic::async_trait]
impl Controller for Plugin {
    async fn create_volume(
        &self,
        request: Request<wire::CreateVolumeRequest>,
    ) -> Result<Response<wire::CreateVolumeResponse>, Status> {
        let request = request.into_inner();
        self.play(&request.name).await?;
        let volume_id = if request.name == "nameless" { String::new() } else { request.name };
        let volume = wire::Volume { volume_id, ..wire::Volume::default() };
        Ok(Response::new(wire::CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(
        &self,
        request: Request<wire::DeleteVolumeRequest>,
    ) -> Result<Response<wire::DeleteVolumeResponse>, Status> {
        let request = request.into_inner();
        self.play(&request.volume_id).await?;
        match request.secrets.get("password") {
            Some(password) => {
                Err(Status::unauthenticated(format!("{} cannot log in: {password}", "x".repeat(470))))
            }
            None => Ok(Response::new(wire::DeleteVolumeResponse {})),
        }
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_unstage_volume(
        &self,
        request: Request<wire::NodeUnstageVolumeRequest>,
    ) -> Result<Response<wire::NodeUnstageVolumeResponse>, Status> {
        self.play(&request.into_inner().volume_id).await?;
        Ok(Response::new(wire::NodeUnstageVolumeResponse {}))
    }
}

#[tonic::async_trait]
impl GroupController for Plugin {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<wire::GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::GroupControllerGetCapabilitiesResponse>, Status> {
        use wire::group_controller_service_capability::{Rpc, Type};
        let capability = |number| wire::GroupControllerServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: number })),
        };
        let capabilities = [1, 0, 77, 1].map(capability).into();
        Ok(Response::new(wire::GroupControllerGetCapabilitiesResponse { capabilities }))
    }
}

#[tonic::async_trait]
impl SnapshotMetadata for Plugin {
    async fn get_metadata_allocated(
        &self,
        request: Request<wire::GetMetadataAllocatedRequest>,
    ) -> Result<Response<BoxStream<wire::GetMetadataAllocatedResponse>>, Status> {
        let batch = |byte_offset| wire::GetMetadataAllocatedResponse {
            block_metadata_type: wire::BlockMetadataType::FixedLength.into(),
            volume_capacity_bytes: 4096,
            block_metadata: vec![wire::BlockMetadata { byte_offset, size_bytes: 8 }],
        };
        let last = match request.into_inner().snapshot_id.as_str() {
            "breaks off" => Err(Status::unavailable("the storage restarts")),
            "goes back" => Ok(batch(0)),
            _ => Ok(batch(32)),
        };
        Ok(Response::new(Box::pin(tokio_stream::iter(vec![Ok(batch(0)), Ok(batch(16)), last]))))
    }
}

/// A plugin that listens, the one connection to it, and a client over that.
struct Leased {
    plugin: Plugin,
    client: Client,
    gate: Arc<Gate<ConnectionEnd>>,
    open: Option<OpenConnection>,
    _directory: TempDir,
}

impl Leased {
    /// A client of a plugin that reports everything.
    async fn open() -> Self {
        Self::open_to(PluginCapability::ALL, Some(NodeCapability::ALL)).await
    }

    async fn open_to(offered: &[PluginCapability], node: Option<&[NodeCapability]>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("csi.sock");
        let socket = SocketPath::new(path.to_str().expect("text")).expect("a short path");
        let plugin = Plugin::default();
        let server = Server::builder()
            .add_service(ControllerServer::new(plugin.clone()))
            .add_service(GroupControllerServer::new(plugin.clone()))
            .add_service(SnapshotMetadataServer::new(plugin.clone()))
            .add_service(NodeServer::new(plugin.clone()))
            .serve_with_incoming(UnixListenerStream::new(UnixListener::bind(&path).expect("it is free")));
        tokio::spawn(server);
        let (_, channel) = connect_to_socket(&socket, async |_| Ok(()), |_| ()).await.expect("it listens");
        let key = PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").expect("a good name"));
        let gate = Arc::new(Gate::new(1));
        gate.set_lendable(true);
        let connections = Connections::default();
        let served = (key.clone(), AllocationId::new("a1").expect("a good id"), Generation::new(7));
        let open = connections.open(served, channel, 1 << 20, Arc::clone(&gate));
        let fingerprint = Arc::new(CsiFingerprint {
            identity: Identity {
                provider: "zfs.example".into(),
                version: "1".into(),
                manifest: BTreeMap::new(),
            },
            plugin: offered.to_vec(),
            expansion: Vec::new(),
            controller: Some(ControllerCapability::ALL.to_vec()),
            group_controller: None,
            node: node.map(<[NodeCapability]>::to_vec),
            node_info: None,
        });
        let lease = connections.lease(&key, Generation::new(7), &fingerprint).expect("it may be lent");
        Self { plugin, client: Client::new(lease), gate, open: Some(open), _directory: directory }
    }

    async fn unstage(&self, volume_id: &str, deadline: Duration) -> Result<(), FailedCall> {
        self.client.node_unstage_volume(&unstage(volume_id), deadline).await
    }

    fn calls(&self) -> usize {
        self.plugin.calls.load(Ordering::SeqCst)
    }
}

fn unstage(volume_id: &str) -> NodeUnstageVolumeRequest {
    NodeUnstageVolumeRequest { volume_id: volume_id.to_owned(), staging_target_path: "/stage".to_owned() }
}

const ON: &str = "NodeUnstageVolume on csi-node/zfs of allocation a1, generation 7, failed: ";

#[tokio::test]
async fn a_call_is_answered_and_each_kind_of_failure_says_what_is_known_c012_c015_v4() {
    let leased = Leased::open().await;
    leased.unstage("v", LONG).await.expect("it answers");
    let failed = leased.unstage("busy", LONG).await.expect_err("another call is pending");
    assert_eq!(
        failed.to_string(),
        format!(
            "{ON}the plugin answered ABORTED \"another call\\nis pending\"; another call is pending; repeat this one after a pause"
        )
    );
    assert_eq!((failed.code(), failed.outcome().effect), (Some(Code::Aborted), Effect::InProgress));
    let failed = leased.unstage("hangs", Duration::from_millis(20)).await.expect_err("too slow");
    assert_eq!(failed.failure, Failure::DeadlineExceeded { after: Duration::from_millis(20) });
    assert_eq!((failed.outcome().effect, failed.is_transient()), (Effect::Unknown, true));
}

#[tokio::test]
async fn a_request_that_breaks_a_rule_never_reaches_the_plugin_c004_c120_c019() {
    let leased = Leased::open().await;
    let failed = leased.unstage("", LONG).await.expect_err("no id");
    assert_eq!(failed.to_string(), format!("{ON}it was not sent, volume_id is empty; set it"));
    let bare = Leased::open_to(&[], Some(&[])).await;
    let failed = bare.unstage("v", LONG).await.expect_err("it does not stage");
    assert_eq!(failed.outcome().reaction, Reaction::GiveUp);
    let failed = bare.client.group_controller_get_capabilities(LONG).await.expect_err("no such service");
    assert_eq!(failed.outcome().reaction, Reaction::GiveUp);
    assert_eq!((leased.calls(), bare.calls()), (0, 0));
}

#[tokio::test]
async fn an_answer_that_breaks_a_rule_is_no_answer_c011_c059() {
    let leased = Leased::open().await;
    let create = |name: &str| {
        let message = wire::CreateVolumeRequest { name: name.to_owned(), ..Default::default() };
        let mut request = crate::csi::CreateVolumeRequest::from_wire(message).expect("a request");
        request.volume_capabilities = vec![crate::csi::VolumeCapability {
            access_type: crate::csi::AccessType::Block,
            access_mode: crate::csi::AccessMode::SingleNodeWriter,
        }];
        request
    };
    let volume = leased.client.create_volume(&create("v"), LONG).await.expect("it answers");
    assert_eq!(volume.volume_id, "v");
    let failed = leased.client.create_volume(&create("nameless"), LONG).await.expect_err("no id");
    assert!(failed.to_string().contains("faulty answer, volume_id is empty"), "{failed}");
    assert_eq!(failed.outcome().reaction, Reaction::Report);
}

#[tokio::test]
async fn calls_end_with_the_lease_and_only_those_that_were_sent_are_unknown_f17_v4() {
    let mut leased = Leased::open().await;
    let (client, open) = (&leased.client, leased.open.take());
    let gate = Arc::clone(&leased.gate);
    let hanging = unstage("hangs");
    let first = client.node_unstage_volume(&hanging, LONG);
    let others = async {
        while leased.plugin.calls.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let full = leased.unstage("v", LONG).await.expect_err("one is in flight");
        assert_eq!(
            full.to_string(),
            format!("{ON}it was not sent, 1 calls are already in flight; try again later")
        );
        gate.close(ConnectionEnd::Retired(RetireCause::Superseded));
        let late = leased.unstage("v", LONG).await.expect_err("it is retired");
        assert_eq!(
            late.to_string(),
            format!(
                "{ON}it was not sent, it was retired, since another generation serves; ask for a new lease"
            )
        );
        assert_eq!((late.outcome().effect, late.outcome().reaction), (Effect::NotDone, Reaction::NewLease));
        drop(open);
    };
    let (cut, ()) = tokio::join!(first, others);
    let cut = cut.expect_err("it was cut");
    assert_eq!(
        cut.to_string(),
        format!(
            "{ON}it was aborted with its connection, and whether it took effect is unknown; ask for a new lease and repeat it, or call \
             its inverse"
        )
    );
    assert_eq!((cut.outcome().effect, cut.outcome().reaction), (Effect::Unknown, Reaction::NewLease));
}

#[tokio::test]
async fn once_the_host_stops_no_failure_advises_a_new_lease() {
    let mut leased = Leased::open().await;
    let (client, open) = (&leased.client, leased.open.take());
    let gate = Arc::clone(&leased.gate);
    let hanging = unstage("hangs");
    let first = client.node_unstage_volume(&hanging, LONG);
    let others = async {
        while leased.plugin.calls.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        gate.close(ConnectionEnd::Retired(RetireCause::HostStops));
        let late = leased.unstage("v", LONG).await.expect_err("the host is stopping");
        assert_eq!(
            late.to_string(),
            format!("{ON}it was not sent, the host is stopping; a new lease cannot help")
        );
        assert_eq!((late.outcome().effect, late.outcome().reaction), (Effect::NotDone, Reaction::NextRun));
        assert!(!late.is_transient(), "{late}");
        drop(open);
    };
    let (cut, ()) = tokio::join!(first, others);
    let cut = cut.expect_err("it was cut");
    assert_eq!(
        cut.to_string(),
        format!(
            "{ON}it was aborted with its connection, and whether it took effect is unknown; the host is stopping, so repeat it in its next \
             run, or call its inverse then"
        )
    );
    assert_eq!((cut.outcome().effect, cut.outcome().reaction), (Effect::Unknown, Reaction::NextRun));
}

#[tokio::test]
async fn capabilities_of_a_group_controller_are_read_and_unknown_ones_left_out_c026_c034() {
    let leased = Leased::open().await;
    let capabilities = leased.client.group_controller_get_capabilities(LONG).await.expect("it answers");
    assert_eq!(capabilities, [GroupControllerCapability::CreateDeleteGetVolumeGroupSnapshot]);
}

fn allocated(snapshot_id: &str, max_results: u32) -> GetMetadataAllocatedRequest {
    let snapshot_id = snapshot_id.to_owned();
    GetMetadataAllocatedRequest { snapshot_id, max_results, ..GetMetadataAllocatedRequest::default() }
}

#[tokio::test]
async fn a_stream_of_blocks_is_complete_only_at_its_normal_end_c160() {
    let leased = Leased::open().await;
    let request = allocated("s", 1);
    let mut blocks = leased.client.get_metadata_allocated(&request, LONG).await.expect("it begins");
    let mut offsets = Vec::new();
    while let Some(batch) = blocks.next().await.expect("it goes on") {
        offsets.extend(batch.block_metadata.iter().map(|BlockMetadata { byte_offset, .. }| *byte_offset));
    }
    assert_eq!((offsets, blocks.resume_at()), (vec![0, 16, 32], 40));
}

#[tokio::test]
async fn a_stream_that_fails_says_so_for_ever_and_where_to_go_on_c161_c162() {
    let leased = Leased::open().await;
    for (snapshot, told, effect) in [
        ("breaks off", "the plugin answered UNAVAILABLE", Effect::NotDone),
        ("goes back", "faulty answer, byte_offset goes back", Effect::NotDone),
    ] {
        let request = allocated(snapshot, 0);
        let mut blocks = leased.client.get_metadata_allocated(&request, LONG).await.expect("it begins");
        assert!(blocks.next().await.is_ok_and(|batch| batch.is_some()));
        assert!(blocks.next().await.is_ok_and(|batch| batch.is_some()));
        let failed = blocks.next().await.expect_err("it fails");
        assert!(failed.to_string().contains(told), "{failed}");
        assert_eq!(failed.outcome().effect, effect);
        assert_eq!(blocks.next().await, Err(failed));
        assert_eq!(blocks.resume_at(), 24);
    }
}

#[tokio::test]
async fn secrets_that_a_plugin_repeats_are_not_in_the_error_c020_c025_v11() {
    let leased = Leased::open().await;
    let secrets = Secrets::new(BTreeMap::from([("password".to_owned(), "canary-\u{1b}-canary".repeat(9))]));
    let request = DeleteVolumeRequest { volume_id: "v".to_owned(), secrets };
    let failed = leased.client.delete_volume(&request, LONG).await.expect_err("it cannot log in");
    let shown = format!("{failed} {failed:?}");
    assert!(shown.contains("cannot log in: <withheld>") && !shown.contains("canary"), "{shown}");
    assert_eq!(failed.outcome().reaction, Reaction::Authorize);
}

/// A host makes calls from tasks of any runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_shared_between_threads() {
    let client = Arc::new(Leased::open().await.client);
    let delete = async move {
        let request = DeleteVolumeRequest { volume_id: "v".to_owned(), secrets: Secrets::none() };
        client.delete_volume(&request, LONG).await
    };
    // The connection ended when the rest of `Leased`, which held it open, was dropped.
    let failed = tokio::spawn(delete).await.expect("it does not panic").expect_err("no connection");
    assert!(matches!(failed.failure, Failure::LeaseEnded { .. }), "{failed}");
}
