//! Each answer of a plugin is read completely, or refused with the rule that it breaks.

use std::collections::HashMap;
use std::time::Duration;

use callboard_actors::csi::{
    Answer, CallError, Cause, Class, Code, Connection, Limits, Problem, Readiness, Rpc,
};
use callboard_actors::vocabulary::{
    ControllerCapability, Expansion, GroupControllerCapability, Identity, NodeCapability, NodeInfo,
    PluginCapability,
};
use callboard_proto::csi::v1 as wire;
use tokio::net::UnixListener;
use tonic::Status;

use crate::garbled;
use crate::plugin::{LONG, Place, Plugin, Reply, named};

#[tokio::test]
async fn everything_a_plugin_says_of_itself_is_read_whole_c036() {
    let place = Place::new();
    place.serve(talkative());
    let connection = place.dial().await;
    let ask = async |rpc| {
        let (answer, remarks) = connection.call(rpc, LONG).await.expect("a good answer");
        assert_eq!(remarks, [""; 0], "{rpc}");
        answer
    };

    assert_eq!(
        ask(Rpc::PluginInfo).await,
        Answer::PluginInfo(Identity {
            provider: "talkative.callboard.example".into(),
            version: "1.0.0".into(),
            manifest: [("commit".to_owned(), "e981e2a".to_owned())].into(),
        })
    );
    assert_eq!(
        ask(Rpc::PluginCapabilities).await,
        Answer::PluginCapabilities {
            capabilities: vec![
                PluginCapability::ControllerService,
                PluginCapability::VolumeAccessibilityConstraints
            ],
            expansion: vec![Expansion::Online],
        }
    );
    assert_eq!(ask(Rpc::Probe).await, Answer::Probe(Readiness::Ready));
    assert_eq!(
        ask(Rpc::ControllerCapabilities).await,
        Answer::ControllerCapabilities(ControllerCapability::ALL.to_vec())
    );
    assert_eq!(
        ask(Rpc::GroupControllerCapabilities).await,
        Answer::GroupControllerCapabilities(GroupControllerCapability::ALL.to_vec())
    );
    assert_eq!(ask(Rpc::NodeCapabilities).await, Answer::NodeCapabilities(NodeCapability::ALL.to_vec()));
    assert_eq!(
        ask(Rpc::NodeInfo).await,
        Answer::NodeInfo(NodeInfo {
            node_id: "node-1".to_owned(),
            max_volumes: Some(8),
            topology: Some([("topology.callboard.example/rack".to_owned(), "r1".to_owned())].into()),
        })
    );
    for rpc in Rpc::ALL {
        assert_eq!(ask(rpc).await.rpc(), rpc);
    }
}

#[tokio::test]
async fn capabilities_of_newer_plugins_are_left_out_and_not_fatal_c026() {
    let place = Place::new();
    let capabilities = [0, 4711, 1, -1].map(node_capability).to_vec();
    let node = Reply::Answer(wire::NodeGetCapabilitiesResponse { capabilities });
    let capabilities = [0, 4711, 1, -1].map(group_capability).to_vec();
    let groups = Reply::Answer(wire::GroupControllerGetCapabilitiesResponse { capabilities });
    place.serve(Plugin { node, groups, ..Plugin::default() });
    let connection = place.dial().await;
    let read = connection.node_capabilities(LONG).await;
    assert_eq!(read, Ok(vec![NodeCapability::StageUnstageVolume]));
    let read = connection.group_controller_capabilities(LONG).await;
    assert_eq!(read, Ok(vec![GroupControllerCapability::CreateDeleteGetVolumeGroupSnapshot]));
    let (_, remarks) = connection.call(Rpc::GroupControllerCapabilities, LONG).await.expect("it answers");
    let unknown = "capability of the plugin is unknown to this version and left out: -1, 4711";
    assert_eq!(remarks, [format!("a group controller {unknown}")]);
}

#[tokio::test]
async fn a_probe_tells_ready_from_still_starting_c037_c038_c039() {
    for (ready, said) in
        [(None, Readiness::Ready), (Some(true), Readiness::Ready), (Some(false), Readiness::NotReady)]
    {
        let place = Place::new();
        let probe = Reply::Answer(wire::ProbeResponse { ready });
        place.serve(Plugin { probe, ..Plugin::default() });
        assert_eq!(place.dial().await.probe(LONG).await, Ok(said));
    }
}

#[tokio::test]
async fn a_probe_that_fails_says_what_the_plugin_lacks_c040_c041() {
    let place = Place::new();
    let probe = Reply::Fail(Status::failed_precondition("kernel module zfs is not loaded"));
    place.serve(Plugin { probe, ..Plugin::default() });
    let error = place.dial().await.probe(LONG).await.expect_err("not healthy");
    assert_eq!((error.class(), error.code()), (Class::Final, Some(Code::FailedPrecondition)));
    assert!(error.to_string().contains("FAILED_PRECONDITION \"kernel module zfs is not loaded\""), "{error}");
}

#[tokio::test]
async fn a_name_that_is_no_domain_name_of_1_to_63_characters_is_a_fault_c030() {
    let long = "x".repeat(200);
    for (name, problem) in [
        ("", Problem::Empty),
        (long.as_str(), Problem::TooLong { bytes: 200, limit: 63 }),
        (
            "no domain\n",
            Problem::Malformed {
                excerpt: "no domain\\n".to_owned(),
                expected: "a domain name of letters, digits, '-' and '.'",
            },
        ),
    ] {
        let error = info_error(named(name)).await;
        let Cause::Fault(fault) = error.cause() else { panic!("a fault, not {error}") };
        assert_eq!((fault.rule, fault.field, &fault.problem), ("C030", "name", &problem));
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_map_of_one_mebibyte_is_a_fault_of_one_line_c005_c011() {
    let manifest = HashMap::from([("secret-looking".to_owned(), "m".repeat(1 << 20))]);
    let error = info_error(wire::GetPluginInfoResponse { manifest, ..named("a.example") }).await;
    assert_eq!(error.class(), Class::Fault);
    assert!(error.to_string().contains("manifest has 1048590 bytes, at most 4096 are allowed"), "{error}");
    assert!(format!("{error:?}").len() < 400, "what the plugin sent is not carried along");
}

#[tokio::test]
async fn a_version_of_129_bytes_is_a_fault_c004() {
    let vendor_version = "v".repeat(129);
    let error = info_error(wire::GetPluginInfoResponse { vendor_version, ..named("a.example") }).await;
    assert!(error.to_string().contains("vendor_version has 129 bytes, at most 128 are allowed"));
}

#[tokio::test]
async fn a_node_id_over_256_bytes_or_missing_is_a_fault_c006() {
    for (bytes, wrong) in [(0, "node_id is empty"), (257, "node_id has 257 bytes, at most 256 are allowed")] {
        let error = node_error("n".repeat(bytes), HashMap::new()).await;
        assert!(error.to_string().contains(wrong), "{error}");
    }
}

#[tokio::test]
async fn a_topology_with_two_keys_that_differ_in_case_is_a_fault_c055() {
    let segments = [("zone", "a"), ("Zone", "b")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let error = node_error("n".to_owned(), segments.into()).await;
    let Cause::Fault(fault) = error.cause() else { panic!("a fault, not {error}") };
    assert_eq!(fault.rule, "C055");
    assert!(error.to_string().contains("expected no two keys that differ in case only"), "{error}");
}

#[tokio::test]
async fn an_answer_over_the_limit_of_size_is_a_fault_and_not_read_c011() {
    let place = Place::new();
    let manifest = HashMap::from([("k".to_owned(), "m".repeat(1 << 20))]);
    let info = Reply::Answer(wire::GetPluginInfoResponse { manifest, ..named("a.example") });
    place.serve(Plugin { info, ..Plugin::default() });
    let limits = Limits { answer_bytes_max: 64 * 1024, ..Limits::default() };
    let connection = Connection::dial(&place.socket, limits).await.expect("the plugin listens");

    let error = connection.plugin_info(LONG).await.expect_err("too large");
    assert_eq!(error.class(), Class::Fault);
    let Cause::Fault(fault) = error.cause() else { panic!("a fault, not {error}") };
    assert_eq!(fault.rule, "C011");
    assert!(error.to_string().contains("65536"), "{error}");
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready), "the connection survives it");
}

#[tokio::test]
async fn bytes_that_are_no_answer_are_a_fault_and_not_the_plugins_internal_error_c011() {
    let place = Place::new();
    garbled::serve(UnixListener::bind(place.socket.as_path()).expect("free"));
    let error = place.dial().await.plugin_info(LONG).await.expect_err("not Unicode");
    assert_eq!(error.class(), Class::Fault, "{error}");
    assert!(error.to_string().contains("answer cannot be read") && !error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_node_plugin_need_not_know_its_node_c146_i7() {
    let place = Place::new();
    let node_info = Reply::Fail(Status::unimplemented(""));
    place.serve(Plugin { node_info, ..Plugin::default() });
    let error = place.dial().await.node_info(LONG).await.expect_err("not implemented");
    assert_eq!((error.class(), error.is_transient()), (Class::Unimplemented, false));
    assert!(error.to_string().contains("NodeGetInfo"), "{error}");
}

#[tokio::test]
async fn a_call_names_localhost_and_a_time_longer_than_ours_sec_04_log_05() {
    let place = Place::new();
    let witness = place.serve(Plugin::default());
    place.dial().await.probe(Duration::from_secs(10)).await.expect("ready");
    let seen = witness.last();
    assert_eq!(seen.uri.authority().map(|a| a.as_str()), Some("localhost"));
    assert_eq!(seen.headers.get("grpc-timeout").map(|value| value.as_bytes()), Some(b"11000000u".as_slice()));
}

async fn info_error(answer: wire::GetPluginInfoResponse) -> CallError {
    let place = Place::new();
    place.serve(Plugin { info: Reply::Answer(answer), ..Plugin::default() });
    place.dial().await.plugin_info(LONG).await.expect_err("a rule is broken")
}

async fn node_error(node_id: String, segments: HashMap<String, String>) -> CallError {
    let place = Place::new();
    let node_info = Reply::Answer(wire::NodeGetInfoResponse {
        node_id,
        max_volumes_per_node: 0,
        accessible_topology: Some(wire::Topology { segments }),
    });
    place.serve(Plugin { node_info, ..Plugin::default() });
    place.dial().await.node_info(LONG).await.expect_err("a rule is broken")
}

fn talkative() -> Plugin {
    let manifest = HashMap::from([("commit".to_owned(), "e981e2a".to_owned())]);
    let segments = HashMap::from([("topology.callboard.example/rack".to_owned(), "r1".to_owned())]);
    Plugin {
        info: Reply::Answer(wire::GetPluginInfoResponse { manifest, ..named("talkative.callboard.example") }),
        offers: Reply::Answer(wire::GetPluginCapabilitiesResponse {
            capabilities: vec![grows(1), offers(2), offers(1), offers(2)],
        }),
        probe: Reply::Answer(wire::ProbeResponse { ready: None }),
        controller: Reply::Answer(wire::ControllerGetCapabilitiesResponse {
            capabilities: (1..=15).rev().map(controller_capability).collect(),
        }),
        groups: Reply::Answer(wire::GroupControllerGetCapabilitiesResponse {
            capabilities: vec![group_capability(1)],
        }),
        node: Reply::Answer(wire::NodeGetCapabilitiesResponse {
            capabilities: (1..=6).rev().map(node_capability).collect(),
        }),
        node_info: Reply::Answer(wire::NodeGetInfoResponse {
            node_id: "node-1".to_owned(),
            max_volumes_per_node: 8,
            accessible_topology: Some(wire::Topology { segments }),
        }),
    }
}

fn offers(number: i32) -> wire::PluginCapability {
    use wire::plugin_capability::{Service, Type};
    wire::PluginCapability { r#type: Some(Type::Service(Service { r#type: number })) }
}

fn grows(number: i32) -> wire::PluginCapability {
    use wire::plugin_capability::{Type, VolumeExpansion};
    wire::PluginCapability { r#type: Some(Type::VolumeExpansion(VolumeExpansion { r#type: number })) }
}

fn controller_capability(number: i32) -> wire::ControllerServiceCapability {
    use wire::controller_service_capability::{Rpc, Type};
    wire::ControllerServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: number })) }
}

fn group_capability(number: i32) -> wire::GroupControllerServiceCapability {
    use wire::group_controller_service_capability::{Rpc, Type};
    wire::GroupControllerServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: number })) }
}

fn node_capability(number: i32) -> wire::NodeServiceCapability {
    use wire::node_service_capability::{Rpc, Type};
    wire::NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: number })) }
}
