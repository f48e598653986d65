//! One call at a time, and steps in order.

use super::*;

#[test]
fn c001_one_call_in_flight_for_each_volume() {
    let mut it = Orchestrator::new();
    it.staged();
    let first = it.begin(Call::NodePublishVolume, publish("/targets/a"));
    it.ok(Call::NodeGetVolumeStats, Request { volume_id: "other".to_owned(), ..stats() });
    it.judge.observe(&Event::Leaves { at: it.at, number: first });
    it.ok(Call::NodePublishVolume, publish("/targets/a"));
    assert!(!it.broken().contains(&"C001"), "another volume, and a caller that has left");
    let _second = it.begin(Call::NodeUnpublishVolume, unpublish("/targets/a"));
    it.ok(Call::NodeGetVolumeStats, stats());
    assert!(it.broken().contains(&"C001"));
}

fn stats() -> Request {
    Request { volume_path: "/targets/a".to_owned(), staging_target_path: "/staging".to_owned(), ..volume() }
}

#[test]
fn c002_one_call_in_flight_for_each_snapshot() {
    let mut it = Orchestrator::new();
    it.created();
    let named = |name: &str| Request {
        name: name.to_owned(),
        source_volume_id: "vol-data".to_owned(),
        ..Request::default()
    };
    let _first = it.begin(Call::CreateSnapshot, named("a"));
    it.ok(Call::CreateSnapshot, named("b"));
    it.heeds(Rule::C002);
    it.ok(Call::CreateSnapshot, named("a"));
    it.breaks(&[Rule::C002]);
}

#[test]
fn c015_a_caller_that_left_has_not_cancelled_its_stage() {
    let mut it = Orchestrator::new();
    it.attached().leaves(Call::NodeStageVolume, stage());
    it.ok(Call::NodeStageVolume, stage()).ok(Call::NodePublishVolume, publish("/targets/a"));
    it.heeds(Rule::C015);
    let mut it = Orchestrator::new();
    it.attached().leaves(Call::NodeStageVolume, stage()).ok(Call::ControllerUnpublishVolume, detach());
    it.breaks(&[Rule::C015, Rule::C132]);
}

#[test]
fn c014_c022_an_error_that_says_nothing_of_its_effect_is_repeated_or_undone() {
    for code in [Code::Unavailable, Code::Internal, Code::Unknown, Code::DeadlineExceeded, Code::Cancelled] {
        let mut it = Orchestrator::new();
        it.attached().fails(Call::NodeStageVolume, stage(), code).ok(Call::NodeUnstageVolume, unstage());
        it.ok(Call::ControllerUnpublishVolume, detach());
        it.heeds(Rule::C014);
        it.heeds(Rule::C022);
        let mut it = Orchestrator::new();
        it.attached().fails(Call::NodeStageVolume, stage(), code);
        it.ok(Call::NodePublishVolume, publish("/targets/a"));
        it.breaks(&[Rule::C022, Rule::C122]);
    }
}

#[test]
fn c022_an_unpublish_that_failed_is_not_taken_for_done() {
    let mut it = Orchestrator::new();
    it.published().fails(Call::NodeUnpublishVolume, unpublish("/targets/a"), Code::Internal);
    it.ok(Call::NodeUnstageVolume, unstage());
    it.breaks(&[Rule::C022, Rule::C131]);
}

#[test]
fn c064_an_undo_of_what_is_not_found_is_done() {
    let mut it = Orchestrator::new();
    it.published().fails(Call::NodeUnpublishVolume, unpublish("/targets/a"), Code::NotFound);
    it.ok(Call::NodeUnstageVolume, unstage());
    it.heeds(Rule::C131);
}

#[test]
fn an_error_that_is_final_leaves_the_state_as_it_was_c_6() {
    let mut it = Orchestrator::new();
    it.attached().fails(Call::NodeStageVolume, stage(), Code::FailedPrecondition);
    it.ok(Call::ControllerUnpublishVolume, detach());
    it.heeds(Rule::C132);
    let mut it = Orchestrator::new();
    it.staged().fails(Call::NodeUnstageVolume, unstage(), Code::FailedPrecondition);
    it.ok(Call::ControllerUnpublishVolume, detach());
    it.breaks(&[Rule::C132]);
}

#[test]
fn c039_c041_nothing_is_called_before_the_plugin_is_ready() {
    let probe = |ready| Answer { ready: Some(ready), ..Answer::default() };
    let mut it = Orchestrator::new();
    it.call(Call::Probe, Request::default(), probe(false)).ok(Call::GetPluginInfo, Request::default());
    it.call(Call::Probe, Request::default(), probe(true)).created();
    it.heeds(Rule::C039);
    it.call(Call::Probe, Request::default(), probe(false)).ok(Call::ControllerPublishVolume, attach());
    it.breaks(&[Rule::C039]);
    let mut it = Orchestrator::new();
    it.fails(Call::Probe, Request::default(), Code::FailedPrecondition).ok(Call::Probe, Request::default());
    it.heeds(Rule::C041);
    it.fails(Call::Probe, Request::default(), Code::FailedPrecondition).created();
    it.breaks(&[Rule::C041]);
}

#[test]
fn c075_several_nodes_only_with_a_mode_for_several() {
    let other = |mode| with_mode(mode, Request { node_id: "node-2".to_owned(), ..attach() });
    let mut it = Orchestrator::new();
    it.attached().ok(Call::ControllerPublishVolume, other(5));
    it.heeds(Rule::C075);
    it.ok(Call::ControllerPublishVolume, other(6));
    it.breaks(&[Rule::C075]);
}

#[test]
fn c079_c132_controller_unpublish_comes_last() {
    let mut it = Orchestrator::new();
    it.published().ok(Call::ControllerUnpublishVolume, detach());
    it.breaks(&[Rule::C079, Rule::C132]);
    let mut it = Orchestrator::new();
    let elsewhere = |request| Request { node_id: "node-2".to_owned(), ..request };
    it.published().ok(Call::ControllerPublishVolume, elsewhere(attach()));
    it.ok(Call::ControllerUnpublishVolume, elsewhere(detach()));
    it.breaks(&[]);
}

#[test]
fn c109_a_volume_that_grows_offline_is_not_in_use() {
    let offline = || Orchestrator::of(Surface { expansion: vec![Expansion::Offline], ..surface() });
    let grow = || Request { capacity_range: create().capacity_range, ..volume() };
    let mut it = offline();
    it.created().ok(Call::ControllerExpandVolume, grow());
    it.heeds(Rule::C109);
    it.attached().ok(Call::ControllerExpandVolume, grow());
    it.breaks(&[Rule::C109]);
    let mut it = Orchestrator::new();
    it.attached().ok(Call::ControllerExpandVolume, grow());
    it.breaks(&[]);
}

#[test]
fn c121_stage_after_controller_publish() {
    let mut it = Orchestrator::new();
    it.created().ok(Call::NodeStageVolume, stage());
    it.breaks(&[Rule::C121]);
    let without = ControllerCapability::PublishUnpublishVolume;
    let controller = surface().controller.into_iter().filter(|claimed| *claimed != without).collect();
    let mut it = Orchestrator::of(Surface { controller, ..surface() });
    it.created().ok(Call::NodeStageVolume, Request { publish_context: Map::new(), ..stage() });
    it.heeds(Rule::C127);
}

#[test]
fn c122_c134_publish_after_stage_and_controller_publish() {
    let mut it = Orchestrator::new();
    it.attached().ok(Call::NodePublishVolume, publish("/targets/a"));
    it.breaks(&[Rule::C122]);
    let mut it = Orchestrator::new();
    it.created().ok(Call::NodePublishVolume, publish("/targets/a"));
    it.breaks(&[Rule::C122, Rule::C134]);
}

#[test]
fn c123_a_volume_is_staged_once() {
    let mut it = Orchestrator::new();
    it.staged().ok(Call::NodeUnstageVolume, unstage()).ok(Call::NodeStageVolume, stage());
    it.heeds(Rule::C123);
    it.ok(Call::NodeStageVolume, stage());
    it.breaks(&[Rule::C123]);
    // A plugin that refuses to publish it may have forgotten that it has staged it.
    let mut it = Orchestrator::new();
    it.staged().fails(Call::NodePublishVolume, publish("/targets/a"), Code::FailedPrecondition);
    it.ok(Call::NodeStageVolume, stage());
    it.heeds(Rule::C123);
    it.fails(Call::NodePublishVolume, publish("/targets/a"), Code::NotFound);
    it.ok(Call::NodePublishVolume, publish("/targets/a")).ok(Call::NodeStageVolume, stage());
    it.breaks(&[Rule::C123]);
}

#[test]
fn c131_unstage_after_every_unpublish() {
    let mut it = Orchestrator::new();
    it.published().ok(Call::NodePublishVolume, publish("/targets/b"));
    it.ok(Call::NodeUnpublishVolume, unpublish("/targets/a")).ok(Call::NodeUnstageVolume, unstage());
    it.breaks(&[Rule::C131]);
}

#[test]
fn c137_c138_a_second_publish_is_for_a_mode_for_several_with_the_same_capability() {
    let mut it = Orchestrator::new();
    it.published().ok(Call::NodePublishVolume, publish("/targets/b"));
    it.heeds(Rule::C137);
    it.heeds(Rule::C138);
    it.ok(Call::NodePublishVolume, with_mode(6, publish("/targets/c")));
    it.breaks(&[Rule::C137, Rule::C138]);
}

#[test]
fn c149_c151_node_expand_after_stage_with_the_staging_path() {
    let expand = || Request { volume_path: "/targets/a".to_owned(), ..unstage() };
    let mut it = Orchestrator::new();
    it.staged().ok(Call::NodeExpandVolume, expand());
    it.heeds(Rule::C149);
    it.ok(Call::NodeExpandVolume, Request { staging_target_path: String::new(), ..expand() });
    it.breaks(&[Rule::C151]);
    let mut it = Orchestrator::new();
    it.attached().ok(Call::NodeExpandVolume, expand());
    it.breaks(&[Rule::C149]);
}

#[test]
fn c_4_a_volume_is_deleted_when_nothing_of_it_is_up() {
    let mut it = Orchestrator::new();
    it.attached().ok(Call::DeleteVolume, volume());
    it.breaks(&[Rule::Order]);
}

#[test]
fn a_node_without_its_controller_is_not_blamed_for_calls_that_are_not_seen_c121_c127_c134() {
    let mut it = Orchestrator::of(Surface { has_controller: false, ..surface() });
    it.ok(Call::NodeStageVolume, stage()).ok(Call::NodePublishVolume, publish("/targets/a"));
    it.breaks(&[]);
}

#[test]
fn a_plugin_that_offers_no_controller_demands_no_attachment_whatever_its_controller_claims_c121_c134() {
    let mut it = Orchestrator::of(Surface { plugin: vec![], ..surface() });
    let detached = |request| Request { publish_context: Map::new(), ..request };
    it.ok(Call::NodeStageVolume, detached(stage()));
    it.ok(Call::NodePublishVolume, detached(publish("/targets/a")));
    it.breaks(&[]);
}

/// The rules demand that it succeeds, and a host that sees no mount cannot know what else the plugin has kept.
#[test]
fn an_undo_that_is_unimplemented_is_not_done_c079_c131_c132() {
    let mut it = Orchestrator::new();
    it.published().fails(Call::NodeUnpublishVolume, unpublish("/targets/a"), Code::Unimplemented);
    it.ok(Call::NodeUnstageVolume, unstage());
    it.breaks(&[Rule::C131]);
    it.ok(Call::ControllerUnpublishVolume, detach());
    it.breaks(&[Rule::C079, Rule::C131]);
    let mut it = Orchestrator::new();
    it.staged().fails(Call::NodeUnstageVolume, unstage(), Code::Unimplemented);
    it.ok(Call::ControllerUnpublishVolume, detach());
    it.breaks(&[Rule::C132]);
}

#[test]
fn a_plugin_that_started_again_has_lost_its_calls_in_flight_and_not_what_was_done_c015() {
    let mut it = Orchestrator::new();
    it.attached();
    let _lost = it.begin(Call::NodeStageVolume, stage());
    it.judge.observe(&Event::Starts { at: it.at });
    it.ok(Call::NodeStageVolume, stage()).ok(Call::NodePublishVolume, publish("/targets/a"));
    it.heeds(Rule::C015);
    assert_eq!(it.report().starts, 2);
}
