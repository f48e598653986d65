//! Tests calls that overlap, and faults on request.

use std::time::{Duration, Instant};

use callboard_proto::csi::v1 as wire;
use tonic::Code;

use crate::stage::{LONG, MIB, Namespace, code, request};

#[tokio::test]
async fn a_second_call_on_a_volume_with_one_in_flight_is_refused_and_a_lost_caller_changes_nothing_c001_c015()
{
    let Some(mut namespace) = Namespace::or_say("calls that overlap") else { return };
    let mut clients = namespace.start("--fault ControllerPublishVolume=slow:1s,nth:1").await;
    let id = clients.created("data").await.volume_id;
    let other = clients.created("other").await.volume_id;
    let (volume, other) = (namespace.volume(&id), namespace.volume(&other));
    let mut first = clients.clone();
    {
        // The call is dropped in the middle, as by a caller whose deadline is over.
        let attaching = volume.attach(&mut first);
        let given_up = tokio::time::timeout(Duration::from_millis(200), attaching).await;
        assert!(given_up.is_err(), "it is slow");
    }
    assert_eq!(code(volume.detach(&mut clients).await), Code::Aborted);
    other.attach(&mut clients).await.expect("another volume is not concerned");
    let began = Instant::now();
    while let Err(status) = volume.stage(&mut clients).await {
        assert!(matches!(status.code(), Code::Aborted | Code::FailedPrecondition), "{status}");
        assert!(began.elapsed() < LONG, "it went on without its caller");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_plugin_errs_forgets_and_lies_as_it_is_told() {
    let Some(mut namespace) = Namespace::or_say("faults on request") else { return };
    let faults = "--fault CreateVolume=INTERNAL,after,nth:1 --fault CreateVolume=lie,nth:3 \
                  --fault ControllerPublishVolume=forget,nth:1 --fault NodeStageVolume=UNAVAILABLE,before,from:2 \
                  --fault ListVolumes=DEADLINE_EXCEEDED,chance:50 --fault-seed 7";
    let mut clients = namespace.start(faults).await;
    assert_eq!(code(clients.create(request("data")).await), Code::Internal);
    let made = clients.created("data").await;
    assert_eq!(made.capacity_bytes, MIB, "it was made by the call that failed");
    assert_eq!(clients.created("data").await.capacity_bytes, MIB / 2, "a lie");
    let volume = namespace.volume(&made.volume_id);
    volume.attach(&mut clients).await.expect("it says so");
    assert_eq!(code(volume.stage(&mut clients).await), Code::FailedPrecondition, "it has forgotten");
    volume.attach(&mut clients).await.expect("it is attached");
    assert_eq!(code(volume.stage(&mut clients).await), Code::Unavailable);
    let mut codes = Vec::new();
    for _ in 0..40 {
        let listed = clients.controller.list_volumes(wire::ListVolumesRequest::default()).await;
        codes.push(listed.map_or_else(|status| status.code(), |_| Code::Ok));
    }
    assert!(codes.contains(&Code::Ok) && codes.contains(&Code::DeadlineExceeded), "{codes:?}");
}
