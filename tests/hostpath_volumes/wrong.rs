//! Tests requests that are refused.

use callboard_proto::csi::v1 as wire;
use tonic::Code;
use wire::volume_capability::access_mode::Mode;
use wire::volume_capability::{AccessType, BlockVolume};

use crate::stage::{MIB, Namespace, capability, code, mount, request};

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_and_changes_nothing_c004_c050_c051_c052_c058() {
    let Some(mut namespace) = Namespace::or_say("wrong requests") else { return };
    let mut clients = namespace.start("--capacity 4194304 --other-node node-2").await;
    let range = |required_bytes, limit_bytes| Some(wire::CapacityRange { required_bytes, limit_bytes });
    let block = capability(Mode::SingleNodeWriter, AccessType::Block(BlockVolume {}));
    let nothing = wire::VolumeCapability { access_type: None, ..mount(Mode::SingleNodeWriter) };
    for (wrong, expected) in [
        (request(""), Code::InvalidArgument),
        (request(&"x".repeat(129)), Code::InvalidArgument),
        (wire::CreateVolumeRequest { volume_capabilities: vec![], ..request("a") }, Code::InvalidArgument),
        (
            wire::CreateVolumeRequest {
                volume_capabilities: vec![mount(Mode::SingleNodeWriter), block],
                ..request("a")
            },
            Code::InvalidArgument,
        ),
        (
            wire::CreateVolumeRequest { volume_capabilities: vec![nothing], ..request("a") },
            Code::InvalidArgument,
        ),
        (
            wire::CreateVolumeRequest { volume_capabilities: vec![mount(Mode::Unknown)], ..request("a") },
            Code::InvalidArgument,
        ),
        (wire::CreateVolumeRequest { capacity_range: range(-1, 0), ..request("a") }, Code::InvalidArgument),
        (wire::CreateVolumeRequest { capacity_range: range(2, 1), ..request("a") }, Code::InvalidArgument),
        (
            wire::CreateVolumeRequest { capacity_range: range(5 * MIB, 0), ..request("a") },
            Code::ResourceExhausted,
        ),
    ] {
        let said = format!("{wrong:?}");
        assert_eq!(code(clients.create(wrong).await), expected, "{said}");
    }
    let listed = clients.controller.list_volumes(wire::ListVolumesRequest::default()).await.expect("a list");
    assert_eq!(listed.into_inner().entries, [], "nothing was made");

    let made = clients.created("data").await;
    let volume = namespace.volume(&made.volume_id);
    let smaller = wire::ControllerExpandVolumeRequest {
        volume_id: made.volume_id.clone(),
        capacity_range: range(0, MIB / 2),
        ..wire::ControllerExpandVolumeRequest::default()
    };
    assert_eq!(code(clients.controller.controller_expand_volume(smaller).await), Code::OutOfRange);
    volume.attach(&mut clients).await.expect("it is attached");
    let elsewhere = wire::ControllerPublishVolumeRequest {
        volume_id: made.volume_id.clone(),
        node_id: "node-2".to_owned(),
        volume_capability: Some(volume.capability.clone()),
        ..wire::ControllerPublishVolumeRequest::default()
    };
    assert_eq!(
        code(clients.controller.controller_publish_volume(elsewhere.clone()).await),
        Code::FailedPrecondition,
        "it is for one node"
    );
    let nowhere = wire::ControllerPublishVolumeRequest { node_id: "node-3".to_owned(), ..elsewhere };
    assert_eq!(code(clients.controller.controller_publish_volume(nowhere).await), Code::NotFound);
    let out = namespace.volume("../../etc");
    assert_eq!(code(out.attach(&mut clients).await), Code::NotFound, "an id leads nowhere");
}
