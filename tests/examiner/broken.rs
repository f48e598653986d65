//! Tests that the examiner detects orchestrators that break rules.

use std::fs;

use callboard_proto::csi::v1 as wire;
use tonic::Code;
use wire::volume_capability::access_mode::Mode;

use crate::exam::{Exam, rules};
use crate::orchestrator::Orchestrator;
use crate::stage::{MIB, NODE, capability, code, mount, request};

/// Checks that the report lists exactly these rules as broken.
fn found(exam: &Exam, expected: &[&str]) {
    let report = exam.end();
    assert_eq!(rules(&report, "broken"), expected, "{}", exam.text());
    for rule in expected {
        assert!(exam.text().contains(&format!("\n{rule} (")), "{rule}: {}", exam.text());
    }
}

#[tokio::test]
async fn wrong_forms_of_requests_are_refused_and_found() {
    let Some(exam) = Exam::or_say("wrong requests in an exam", "--needs-secret DeleteVolume=token").await
    else {
        return;
    };
    let mut clients = exam.clients.clone();
    let wish = |requisite: &str| wire::TopologyRequirement {
        requisite: vec![wire::Topology { segments: [(requisite.to_owned(), "r1".to_owned())].into() }],
        preferred: vec![],
    };
    let map = |size| [("k".to_owned(), "v".repeat(size))].into();
    let range = Some(wire::CapacityRange { required_bytes: 2 * MIB, limit_bytes: MIB });
    let no_type = wire::VolumeCapability { access_type: None, ..mount(Mode::SingleNodeMultiWriter) };
    let wrong = [
        wire::CreateVolumeRequest { name: "n".repeat(129), ..request("a") },
        wire::CreateVolumeRequest { name: "a\u{7}".to_owned(), ..request("a") },
        wire::CreateVolumeRequest { name: String::new(), ..request("a") },
        wire::CreateVolumeRequest { parameters: map(5000), ..request("a") },
        wire::CreateVolumeRequest { secrets: [("a b".to_owned(), String::new())].into(), ..request("a") },
        wire::CreateVolumeRequest { volume_capabilities: vec![], ..request("a") },
        wire::CreateVolumeRequest { volume_capabilities: vec![no_type], ..request("a") },
        wire::CreateVolumeRequest { capacity_range: range, ..request("a") },
        wire::CreateVolumeRequest { accessibility_requirements: Some(wish("-rack")), ..request("a") },
    ];
    for request in wrong {
        assert_eq!(code(clients.create(request).await), Code::InvalidArgument);
    }
    let list = wire::ListVolumesRequest { max_entries: -1, ..wire::ListVolumesRequest::default() };
    assert_eq!(code(clients.controller.list_volumes(list).await), Code::InvalidArgument);
    let made = clients.created("data").await;
    let delete =
        wire::DeleteVolumeRequest { volume_id: made.volume_id, ..wire::DeleteVolumeRequest::default() };
    assert_eq!(code(clients.controller.delete_volume(delete.clone()).await), Code::Unauthenticated);
    let secrets = [("token".to_owned(), "canary".to_owned())].into();
    let delete = wire::DeleteVolumeRequest { secrets, ..delete };
    clients.controller.delete_volume(delete).await.expect("it has its secret");
    let expected =
        ["C004", "C005", "C009", "C023", "C024", "C050", "C051", "C052", "C053", "C055", "C058", "C091"];
    found(&exam, &expected);
    let kept = ["journal", "report.json", "report.txt", "log"];
    for name in kept {
        let text = fs::read_to_string(exam.namespace.path(name)).expect("it is there");
        assert!(!text.contains("canary"), "{name} has a secret (C025)");
    }
}

#[tokio::test]
async fn steps_out_of_order_are_found_c079_c121_c122_c131_c132_c134() {
    let Some(exam) = Exam::or_say("wrong orders in an exam", "").await else { return };
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    let mut volume = orchestrator.create("data", &exam.namespace).await;
    let used = crate::stage::Used {
        namespace: &exam.namespace,
        id: volume.id.clone(),
        staging: volume.staging.clone(),
        capability: mount(Mode::SingleNodeMultiWriter),
    };
    let mut clients = exam.clients.clone();
    // Before the volume is published to the node, there is no publish context to pass on.
    assert_eq!(code(clients.node.node_stage_volume(volume.stage()).await), Code::FailedPrecondition);
    assert_eq!(code(clients.node.node_publish_volume(volume.publish()).await), Code::FailedPrecondition);
    orchestrator.up(&mut volume).await;
    assert_eq!(code(used.unstage(&mut clients).await), Code::FailedPrecondition);
    assert_eq!(code(used.detach(&mut clients).await), Code::FailedPrecondition);
    assert_eq!(code(used.delete(&mut clients).await), Code::FailedPrecondition);
    found(&exam, &["C079", "C121", "C122", "C131", "C132", "C134", "C.4"]);
}

#[tokio::test]
async fn other_ids_contexts_nodes_and_paths_are_found_c059_c060_c071_c073_c074_c080_c125_c135_c136() {
    let Some(exam) = Exam::or_say("wrong contexts in an exam", "").await else { return };
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    let mut volume = orchestrator.create("data", &exam.namespace).await;
    let mut clients = exam.clients.clone();
    let other = || [("name".to_owned(), "another".to_owned())].into();
    let attach = |node_id: &str| wire::ControllerPublishVolumeRequest {
        volume_id: volume.id.clone(),
        node_id: node_id.to_owned(),
        volume_capability: Some(mount(Mode::SingleNodeMultiWriter)),
        volume_context: other(),
        ..wire::ControllerPublishVolumeRequest::default()
    };
    clients.controller.controller_publish_volume(attach("no-such-node")).await.expect_err("no such node");
    let _ = clients.controller.controller_publish_volume(attach(NODE)).await;
    let everywhere =
        wire::ControllerUnpublishVolumeRequest { volume_id: volume.id.clone(), ..Default::default() };
    clients.controller.controller_unpublish_volume(everywhere).await.expect("from all nodes");
    orchestrator.attach(&mut volume).await;
    let stage = volume.stage();
    let contexts =
        wire::NodeStageVolumeRequest { volume_context: other(), publish_context: other(), ..stage.clone() };
    let _ = clients.node.node_stage_volume(contexts).await;
    let nowhere = volume.staging.join("nowhere").display().to_string();
    let elsewhere = wire::NodeStageVolumeRequest { staging_target_path: nowhere.clone(), ..stage.clone() };
    assert_eq!(code(clients.node.node_stage_volume(elsewhere).await), Code::FailedPrecondition);
    clients.node.node_stage_volume(stage).await.expect("it is staged");
    let publish = volume.publish();
    let without = wire::NodePublishVolumeRequest { staging_target_path: String::new(), ..publish.clone() };
    assert_eq!(code(clients.node.node_publish_volume(without).await), Code::FailedPrecondition);
    let no_parent = wire::NodePublishVolumeRequest { target_path: format!("{nowhere}/target"), ..publish };
    assert_eq!(code(clients.node.node_publish_volume(no_parent).await), Code::FailedPrecondition);
    let unknown = wire::ControllerGetVolumeRequest { volume_id: "data".to_owned() };
    assert_eq!(code(clients.controller.controller_get_volume(unknown).await), Code::NotFound);
    found(&exam, &["C059", "C060", "C071", "C073", "C074", "C080", "C125", "C135", "C136"]);
}

#[tokio::test]
async fn hasty_retries_overlaps_and_what_was_taken_for_cancelled_are_found_c001_c003_c013_c015_c017() {
    let faults =
        "--fault NodeStageVolume=slow:2s,before,nth:1 --fault CreateVolume=INVALID_ARGUMENT,before,nth:2";
    let Some(exam) = Exam::or_say("wrong retries in an exam", faults).await else { return };
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    let mut volume = orchestrator.create("data", &exam.namespace).await;
    orchestrator.attach(&mut volume).await;
    let mut clients = exam.clients.clone();
    for _ in 0..2 {
        let _ = clients.create(request("other")).await;
    }
    let stage = volume.stage();
    let (mut first, request) = (clients.clone(), stage.clone());
    let slow = tokio::spawn(async move { first.node.node_stage_volume(request).await });
    while !exam.journal().contains("NodeStageVolume") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    for _ in 0..20 {
        assert_eq!(code(clients.node.node_stage_volume(stage.clone()).await), Code::Aborted, "C001 C003");
    }
    slow.abort();
    let _ = slow.await;
    while !exam.journal().contains("Leaves") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let detach = wire::ControllerUnpublishVolumeRequest {
        volume_id: volume.id.clone(),
        node_id: NODE.to_owned(),
        ..Default::default()
    };
    let _ = clients.controller.controller_unpublish_volume(detach).await;
    let other = capability(
        Mode::SingleNodeSingleWriter,
        mount(Mode::SingleNodeMultiWriter).access_type.expect("one"),
    );
    let changed = wire::NodeStageVolumeRequest { volume_capability: Some(other), ..stage };
    let _ = clients.node.node_stage_volume(changed).await;
    let report = exam.end();
    let broken = rules(&report, "broken");
    for rule in ["C001", "C003", "C013", "C015", "C017", "C132"] {
        assert!(broken.iter().any(|found| found == rule), "{rule} was not found: {}", exam.text());
    }
}

#[tokio::test]
async fn what_is_never_undone_is_found_at_the_end_c062_c130_c141() {
    let Some(exam) = Exam::or_say("what is never undone in an exam", "--expect-undone").await else { return };
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    let mut volume = orchestrator.create("data", &exam.namespace).await;
    orchestrator.up(&mut volume).await;
    found(&exam, &["C062", "C130", "C141"]);
}

#[tokio::test]
async fn calls_without_their_capability_are_found_c033_c034_c070_c120_c_1() {
    let claims =
        "--without-controller --controller-capability GET_CAPACITY --node-capability GET_VOLUME_STATS";
    let Some(exam) = Exam::or_say("calls without capabilities in an exam", claims).await else { return };
    let mut clients = exam.clients.clone();
    let _ = clients.create(request("data")).await;
    let groups = wire::GroupControllerGetCapabilitiesRequest {};
    let _ = clients.groups.group_controller_get_capabilities(groups).await;
    let detach = wire::ControllerUnpublishVolumeRequest {
        volume_id: "data".to_owned(),
        node_id: NODE.to_owned(),
        ..Default::default()
    };
    let _ = clients.controller.controller_unpublish_volume(detach).await;
    let unstage = wire::NodeUnstageVolumeRequest {
        volume_id: "data".to_owned(),
        staging_target_path: "/staging".to_owned(),
    };
    let _ = clients.node.node_unstage_volume(unstage).await;
    found(&exam, &["C033", "C034", "C070", "C120", "C.1"]);
}

#[tokio::test]
async fn a_volume_that_can_grow_offline_only_is_not_grown_while_it_is_in_use_c109_c113() {
    let Some(exam) = Exam::or_say("volumes that grow offline in an exam", "--offline-expansion").await else {
        return;
    };
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    let mut volume = orchestrator.create("data", &exam.namespace).await;
    let mut clients = exam.clients.clone();
    let grow = |size| wire::ControllerExpandVolumeRequest {
        volume_id: volume.id.clone(),
        capacity_range: Some(wire::CapacityRange { required_bytes: size, limit_bytes: 0 }),
        ..Default::default()
    };
    let (first, second) = (grow(2 * MIB), grow(3 * MIB));
    clients.controller.controller_expand_volume(first).await.expect("it is not in use");
    orchestrator.attach(&mut volume).await;
    assert_eq!(code(clients.controller.controller_expand_volume(second).await), Code::FailedPrecondition);
    found(&exam, &["C109"]);
}
