//! The calls after an error.

use super::*;

#[test]
fn c003_after_aborted_comes_a_pause_that_does_not_shrink() {
    let mut it = Orchestrator::new();
    it.attached();
    for _ in 0..5 {
        it.fails(Call::NodeStageVolume, stage(), Code::Aborted);
    }
    it.heeds(Rule::C003);
    it.at -= 50;
    it.fails(Call::NodeStageVolume, stage(), Code::Aborted);
    it.breaks(&[Rule::C003]);
    let mut it = Orchestrator::new();
    it.attached().fails(Call::NodeStageVolume, stage(), Code::Aborted);
    it.at -= 100;
    it.fails(Call::NodeStageVolume, stage(), Code::Aborted);
    it.breaks(&[Rule::C003]);
}

#[test]
fn c013_a_retry_repeats_its_fields_and_a_new_try_after_an_undo_need_not() {
    let other = || with_mode(6, stage());
    let mut it = Orchestrator::new();
    it.attached().fails(Call::NodeStageVolume, stage(), Code::Internal).ok(Call::NodeStageVolume, stage());
    it.heeds(Rule::C013);
    let mut it = Orchestrator::new();
    it.attached().fails(Call::NodeStageVolume, stage(), Code::Internal).ok(Call::NodeStageVolume, other());
    it.breaks(&[Rule::C013]);
    let mut it = Orchestrator::new();
    it.attached()
        .fails(Call::NodeStageVolume, stage(), Code::Internal)
        .ok(Call::NodeUnstageVolume, unstage());
    it.ok(Call::NodeStageVolume, other());
    it.breaks(&[]);
    let mut it = Orchestrator::new();
    it.attached()
        .fails(Call::NodeStageVolume, stage(), Code::InvalidArgument)
        .ok(Call::NodeStageVolume, other());
    it.breaks(&[]);
}

#[test]
fn c017_invalid_argument_is_never_retried_unchanged() {
    let mut it = Orchestrator::new();
    it.created().fails(Call::ControllerPublishVolume, attach(), Code::InvalidArgument);
    it.heeds(Rule::C017);
    it.ok(Call::ControllerPublishVolume, attach());
    it.breaks(&[Rule::C017]);
}

#[test]
fn c018_permission_denied_is_not_retried_before_a_person_could_act() {
    let mut it = Orchestrator::new();
    it.created().fails(Call::ControllerPublishVolume, attach(), Code::PermissionDenied);
    it.at += 2000;
    it.fails(Call::ControllerPublishVolume, attach(), Code::PermissionDenied);
    it.heeds(Rule::C018);
    it.ok(Call::ControllerPublishVolume, attach());
    it.breaks(&[Rule::C018]);
}

#[test]
fn c019_unimplemented_is_never_retried_before_capabilities_are_read() {
    let stats = || Request { volume_path: "/a".to_owned(), ..unstage() };
    let mut it = Orchestrator::new();
    it.created().fails(Call::NodeGetVolumeStats, stats(), Code::Unimplemented);
    it.ok(Call::NodeGetCapabilities, Request::default());
    it.fails(Call::NodeGetVolumeStats, stats(), Code::Unimplemented);
    it.heeds(Rule::C019);
    it.ok(Call::NodeGetVolumeStats, stats());
    it.breaks(&[Rule::C019]);
}

#[test]
fn c020_unauthenticated_is_retried_with_other_secrets() {
    let with = |digest| Request { secrets: secrets("token", digest), ..attach() };
    let mut it = Orchestrator::new();
    it.created().fails(Call::ControllerPublishVolume, with(1), Code::Unauthenticated);
    it.fails(Call::ControllerPublishVolume, with(2), Code::Unauthenticated);
    it.heeds(Rule::C020);
    it.ok(Call::ControllerPublishVolume, with(2));
    it.breaks(&[Rule::C020]);
}

#[test]
fn c063_c077_c113_c129_c152_c153_codes_of_a_call_that_are_final() {
    let grow = || Request { capacity_range: create().capacity_range, ..volume() };
    let on_node = || Request { volume_path: "/staging".to_owned(), ..unstage() };
    for (call, request, code, rule) in [
        (Call::CreateVolume, create(), Code::AlreadyExists, Rule::C063),
        (Call::CreateVolume, create(), Code::OutOfRange, Rule::C063),
        (Call::ControllerPublishVolume, attach(), Code::AlreadyExists, Rule::C077),
        (Call::ControllerExpandVolume, grow(), Code::OutOfRange, Rule::C113),
        (Call::NodeStageVolume, stage(), Code::AlreadyExists, Rule::C129),
        (Call::NodeExpandVolume, on_node(), Code::FailedPrecondition, Rule::C152),
        (Call::NodeExpandVolume, on_node(), Code::OutOfRange, Rule::C153),
    ] {
        let mut it = Orchestrator::new();
        it.attached();
        if call == Call::NodeExpandVolume {
            it.ok(Call::NodeStageVolume, stage());
        }
        it.fails(call, request.clone(), code);
        it.heeds(rule);
        it.ok(call, request);
        it.breaks(&[rule]);
    }
}

#[test]
fn c065_a_delete_of_what_is_in_use_is_retried_after_a_pause() {
    let mut it = Orchestrator::new();
    it.created().fails(Call::DeleteVolume, volume(), Code::FailedPrecondition);
    it.fails(Call::DeleteVolume, volume(), Code::FailedPrecondition);
    it.heeds(Rule::C065);
    it.at -= 100;
    it.ok(Call::DeleteVolume, volume());
    it.breaks(&[Rule::C065]);
}

#[test]
fn c078_a_node_that_is_full_gets_no_volume_before_one_has_left() {
    let other = || Request { volume_id: "vol-other".to_owned(), ..attach() };
    let mut it = Orchestrator::of(Surface { max_volumes: 1, ..surface() });
    it.attached();
    let answer =
        Answer { volume_id: "vol-other".to_owned(), volume_context: context("disk"), ..Answer::default() };
    it.call(Call::CreateVolume, Request { name: "other".to_owned(), ..create() }, answer);
    it.fails(Call::ControllerPublishVolume, other(), Code::ResourceExhausted);
    it.ok(Call::ControllerUnpublishVolume, detach());
    it.fails(Call::ControllerPublishVolume, other(), Code::ResourceExhausted);
    it.heeds(Rule::C078);
    it.ok(Call::ControllerPublishVolume, attach()).ok(Call::ControllerPublishVolume, other());
    it.breaks(&[Rule::C078]);
}

#[test]
fn c093_a_list_is_continued_with_its_own_token_and_begun_anew_after_aborted() {
    let from = |token: &str| Request { starting_token: token.to_owned(), ..Request::default() };
    let next = |token: &str| Answer { next_token: token.to_owned(), ..Answer::default() };
    let mut it = Orchestrator::new();
    it.call(Call::ListVolumes, from(""), next("2")).fails(Call::ListVolumes, from("2"), Code::Aborted);
    it.call(Call::ListVolumes, from(""), next("2")).ok(Call::ListVolumes, from("2"));
    it.heeds(Rule::C093);
    let mut it = Orchestrator::new();
    it.call(Call::ListVolumes, from(""), next("2")).fails(Call::ListVolumes, from("2"), Code::Aborted);
    it.ok(Call::ListVolumes, from("2"));
    it.breaks(&[Rule::C093]);
    let mut it = Orchestrator::new();
    it.call(Call::ListVolumes, from(""), next("2")).ok(Call::ListSnapshots, from("2"));
    it.breaks(&[Rule::C093]);
}
