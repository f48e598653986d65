//! Fields of requests: sizes, capabilities, ids and contexts, paths, secrets.

use super::*;

/// The first request follows the rule, the second one breaks it and no other.
#[track_caller]
fn tells_apart(rule: Rule, call: Call, good: Request, bad: Request) {
    let mut it = Orchestrator::new();
    it.attached().ok(call, good);
    it.heeds(rule);
    let mut it = Orchestrator::new();
    it.attached().ok(call, bad);
    it.breaks(&[rule]);
}

fn named(name: &str) -> Request {
    Request { name: name.to_owned(), ..create() }
}

fn long(count: usize) -> String {
    "x".repeat(count)
}

fn map(size: usize) -> Map {
    Map::from([("k".to_owned(), long(size - 1))])
}

#[test]
fn c004_no_string_over_128_bytes() {
    tells_apart(Rule::C004, Call::CreateVolume, named(&long(128)), named(&long(129)));
}

#[test]
fn c005_no_map_over_4_kib() {
    let with = |size| Request { parameters: map(size), ..create() };
    tells_apart(Rule::C005, Call::CreateVolume, with(4096), with(4097));
    let with = |bytes| {
        let values = Withheld { count: 1, bytes, digest: None };
        Request { secrets: SecretDigests { keys: vec!["k".to_owned()], values }, ..create() }
    };
    tells_apart(Rule::C005, Call::CreateVolume, with(4096), with(4097));
}

#[test]
fn c006_no_node_id_over_256_bytes() {
    let nodes = vec![NODE.to_owned(), long(256), long(257)];
    for (size, broken) in [(256, vec![]), (257, vec![Rule::C006])] {
        let mut it = Orchestrator::of(Surface { nodes: nodes.clone(), ..surface() });
        it.created().ok(Call::ControllerPublishVolume, Request { node_id: long(size), ..attach() });
        it.breaks(&broken);
    }
}

#[test]
fn c007_mount_flags_have_at_most_4_kib() {
    let with = |bytes| {
        let mount_flags = Withheld { count: 2, bytes, digest: None };
        Request { volume_capability: Some(Capability { mount_flags, ..capability() }), ..stage() }
    };
    tells_apart(Rule::C007, Call::NodeStageVolume, with(4096), with(4097));
}

#[test]
fn c009_required_fields_are_there() {
    tells_apart(Rule::C009, Call::DeleteSnapshot, snapshot("s"), snapshot(""));
    let it = Request { volume_path: "/targets/a".to_owned(), ..unstage() };
    let without = Request { volume_path: String::new(), ..it.clone() };
    tells_apart(Rule::C009, Call::NodeGetVolumeStats, it, without);
}

fn snapshot(id: &str) -> Request {
    Request { snapshot_id: id.to_owned(), ..Request::default() }
}

#[test]
fn c023_keys_of_secrets_are_plain() {
    let with = |key| Request { secrets: secrets(key, 1), ..create() };
    tells_apart(Rule::C023, Call::CreateVolume, with("to-ken_1.a"), with("to ken"));
}

#[test]
fn c024_needed_secrets_are_there() {
    let needs_secrets = [(Call::CreateVolume, vec!["token".to_owned()])].into();
    let mut it = Orchestrator::of(Surface { needs_secrets, ..surface() });
    it.ok(Call::CreateVolume, Request { secrets: secrets("token", 1), ..create() });
    it.heeds(Rule::C024);
    it.ok(Call::CreateVolume, named("other"));
    it.breaks(&[Rule::C024]);
}

#[test]
fn a_request_of_a_wrong_form_is_refused_with_what_is_wrong_c004_c024() {
    let mut it = Orchestrator::new();
    let request = Box::new(named(&long(129)));
    let broken = it.judge.observe(&Event::Begins { at: 1, number: 1, call: Call::CreateVolume, request });
    let refusals: Vec<_> = broken.iter().map(|(rule, problem)| (rule.refusal(), problem.as_str())).collect();
    assert_eq!(refusals, [(Some(Code::InvalidArgument), "name has 129 bytes, at most 128 are allowed")]);
    assert_eq!((Rule::C024.refusal(), Rule::C079.refusal()), (Some(Code::Unauthenticated), None));
}

#[test]
fn c033_c034_c070_c120_c_1_calls_need_their_capabilities() {
    let bare = || Surface { plugin: vec![], controller: vec![], node: vec![], ..surface() };
    for (call, request, rules) in [
        (Call::ListVolumes, Request::default(), vec![Rule::C033, Rule::Gate]),
        (Call::ControllerGetCapabilities, Request::default(), vec![Rule::C033]),
        (Call::GroupControllerGetCapabilities, Request::default(), vec![Rule::C034]),
        (Call::ControllerUnpublishVolume, detach(), vec![Rule::C033, Rule::C070]),
        (Call::NodeUnstageVolume, unstage(), vec![Rule::C120]),
        (Call::NodeGetVolumeStats, Request { volume_path: "/a".to_owned(), ..unstage() }, vec![Rule::C144]),
    ] {
        let mut it = Orchestrator::of(bare());
        it.ok(call, request);
        it.breaks(&rules);
    }
}

#[test]
fn c036_a_volume_is_used_where_it_can_be_reached() {
    let place = |rack: &str| Map::from([("rack".to_owned(), rack.to_owned())]);
    for (rack, broken) in [("r1", vec![]), ("r2", vec![Rule::C036])] {
        let mut it = Orchestrator::of(Surface { topology: place("r1"), ..surface() });
        it.call(
            Call::NodeGetInfo,
            Request::default(),
            Answer { node_id: NODE.to_owned(), ..Answer::default() },
        );
        let answer = Answer {
            volume_id: "vol-data".to_owned(),
            volume_context: context("disk"),
            accessible_topology: vec![place(rack)],
            ..Answer::default()
        };
        it.call(Call::CreateVolume, create(), answer).ok(Call::ControllerPublishVolume, attach());
        it.breaks(&broken);
    }
}

#[test]
fn c050_names_have_no_control_characters() {
    tells_apart(Rule::C050, Call::CreateVolume, named("a\tb é"), named("a\u{7}b"));
}

#[test]
fn c051_a_volume_has_a_capability() {
    let bad = Request { volume_capabilities: vec![], ..create() };
    tells_apart(Rule::C051, Call::CreateVolume, named("other"), bad);
}

#[test]
fn c052_capacities_are_possible() {
    let with = |required_bytes, limit_bytes| Request {
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes }),
        ..create()
    };
    for (least, most) in [(-1, 0), (0, 0), (2, 1), (0, -1)] {
        tells_apart(Rule::C052, Call::CreateVolume, with(1, 1), with(least, most));
    }
}

#[test]
fn c053_c054_c055_c097_topologies_are_well_formed_and_for_plugins_that_have_them() {
    let place = |key: &str, value: &str| Map::from([(key.to_owned(), value.to_owned())]);
    let wish = |requisite, preferred| Request {
        accessibility_requirements: Some(TopologyWish { requisite, preferred }),
        ..create()
    };
    let here = || place("example.com/rack", "r1");
    let good = || wish(vec![here(), place("rack", "r2")], vec![here()]);
    tells_apart(Rule::C054, Call::CreateVolume, good(), wish(vec![here()], vec![place("rack", "r3")]));
    tells_apart(Rule::C054, Call::CreateVolume, good(), wish(vec![], vec![]));
    let long = long(64);
    for (key, value) in [("-rack", "r1"), ("rack", ""), ("a/b/c", "r1"), ("rack", "r 1"), (&*long, "r1")] {
        tells_apart(Rule::C055, Call::CreateVolume, good(), wish(vec![place(key, value)], vec![]));
    }
    let twice = [("Rack".to_owned(), "r1".to_owned()), ("rack".to_owned(), "r1".to_owned())].into();
    tells_apart(Rule::C055, Call::CreateVolume, good(), wish(vec![twice], vec![]));
    let capacity = Request { accessible_topology: Some(here()), ..Request::default() };
    for (call, request, rule) in
        [(Call::CreateVolume, good(), Rule::C053), (Call::GetCapacity, capacity, Rule::C097)]
    {
        let mut it = Orchestrator::new();
        it.ok(call, request.clone());
        it.heeds(rule);
        let plugin = vec![PluginCapability::ControllerService];
        let mut it = Orchestrator::of(Surface { plugin, ..surface() });
        it.ok(call, request);
        it.breaks(&[rule]);
    }
}

#[test]
fn c056_c057_c072_fields_need_their_capabilities() {
    let clone = Some(Source::Volume("vol-data".to_owned()));
    let copy = Some(Source::Snapshot("snap".to_owned()));
    for (call, request, without, rule) in [
        (
            Call::CreateVolume,
            Request { mutable_parameters: context("a"), ..create() },
            ControllerCapability::ModifyVolume,
            Rule::C056,
        ),
        (
            Call::CreateVolume,
            Request { volume_content_source: clone, ..create() },
            ControllerCapability::CloneVolume,
            Rule::C057,
        ),
        (
            Call::CreateVolume,
            Request { volume_content_source: copy, ..create() },
            ControllerCapability::CreateDeleteSnapshot,
            Rule::C057,
        ),
        (
            Call::ControllerPublishVolume,
            Request { readonly: true, ..attach() },
            ControllerCapability::PublishReadonly,
            Rule::C072,
        ),
    ] {
        let mut it = Orchestrator::new();
        it.created().ok(call, request.clone());
        it.heeds(rule);
        let controller = surface().controller.into_iter().filter(|claimed| *claimed != without).collect();
        let mut it = Orchestrator::of(Surface { controller, ..surface() });
        it.created().ok(call, request);
        it.breaks(&[rule]);
    }
}

#[test]
fn c058_a_capability_is_whole() {
    let with = |is_block, mode| Request {
        volume_capability: Some(Capability { is_block, mode, ..capability() }),
        ..stage()
    };
    tells_apart(Rule::C058, Call::NodeStageVolume, with(Some(true), 5), with(None, 5));
    tells_apart(Rule::C058, Call::NodeStageVolume, with(Some(true), 5), with(Some(true), 0));
}

#[test]
fn c059_ids_are_those_that_the_plugin_gave() {
    let other = Request { volume_id: "data".to_owned(), ..volume() };
    tells_apart(Rule::C059, Call::ControllerGetVolume, volume(), other);
    let mut it = Orchestrator::new();
    it.created().ok(Call::DeleteVolume, volume()).ok(Call::DeleteVolume, volume());
    it.heeds(Rule::C059);
    it.ok(Call::ControllerPublishVolume, attach());
    it.breaks(&[Rule::C059]);
}

#[test]
fn c060_c073_the_context_of_a_volume_is_passed_on_unchanged() {
    let bad = |request| Request { volume_context: context("tape"), ..request };
    tells_apart(Rule::C060, Call::NodeStageVolume, stage(), bad(stage()));
    tells_apart(
        Rule::C060,
        Call::NodeStageVolume,
        stage(),
        Request { volume_context: Map::new(), ..stage() },
    );
    let mut it = Orchestrator::new();
    it.created().ok(Call::ControllerPublishVolume, bad(attach()));
    it.breaks(&[Rule::C073]);
    assert_eq!(
        it.judge.tally.of(Rule::C073).breaches[0].problem,
        "the volume context differs: kind has another value"
    );
}

#[test]
fn c071_c146_the_node_id_is_that_of_the_node() {
    let bad = Request { node_id: "node-3".to_owned(), ..attach() };
    tells_apart(Rule::C071, Call::ControllerPublishVolume, attach(), bad);
    let mut it = Orchestrator::of(Surface {
        controller: vec![ControllerCapability::PublishUnpublishVolume],
        ..surface()
    });
    it.ok(Call::ControllerPublishVolume, attach());
    it.breaks(&[Rule::C146]);
}

#[test]
fn c074_c127_the_publish_context_is_passed_on_unchanged() {
    let bad = Request { publish_context: context("other"), ..stage() };
    tells_apart(Rule::C074, Call::NodeStageVolume, stage(), bad);
    let without = ControllerCapability::PublishUnpublishVolume;
    let controller = surface().controller.into_iter().filter(|claimed| *claimed != without).collect();
    let mut it = Orchestrator::of(Surface { controller, ..surface() });
    it.created().ok(Call::NodeStageVolume, stage());
    it.breaks(&[Rule::C127]);
}

#[test]
fn c080_c081_controller_unpublish_names_its_node_and_has_the_same_secrets() {
    tells_apart(Rule::C080, Call::ControllerUnpublishVolume, detach(), volume());
    let mut it = Orchestrator::new();
    it.created().ok(Call::ControllerPublishVolume, Request { secrets: secrets("token", 1), ..attach() });
    it.ok(Call::ControllerUnpublishVolume, Request { secrets: secrets("token", 1), ..detach() });
    it.heeds(Rule::C081);
    it.ok(Call::ControllerUnpublishVolume, detach());
    it.breaks(&[Rule::C081]);
}

#[test]
fn c102_c103_c106_snapshots_and_their_groups() {
    let snapshot_of = |group: &str| Answer {
        snapshot_id: "snap".to_owned(),
        size_bytes: 1 << 20,
        group_snapshot_id: group.to_owned(),
        ..Answer::default()
    };
    let cut =
        || Request { name: "s".to_owned(), source_volume_id: "vol-data".to_owned(), ..Request::default() };
    let copy = |limit_bytes| Request {
        volume_content_source: Some(Source::Snapshot("snap".to_owned())),
        capacity_range: Some(CapacityRange { required_bytes: 1, limit_bytes }),
        ..create()
    };
    let mut it = Orchestrator::new();
    it.created().call(Call::CreateSnapshot, cut(), snapshot_of("")).ok(Call::CreateVolume, copy(1 << 20));
    it.ok(Call::DeleteSnapshot, snapshot("snap"));
    it.heeds(Rule::C102);
    it.heeds(Rule::C103);
    it.call(Call::CreateSnapshot, cut(), snapshot_of("g")).ok(Call::CreateVolume, copy(1 << 19));
    it.ok(Call::DeleteSnapshot, snapshot("snap"));
    it.breaks(&[Rule::C102, Rule::C103]);
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let group = |snapshots: &[&str]| Request {
        group_snapshot_id: "g".to_owned(),
        snapshot_ids: ids(snapshots),
        ..Request::default()
    };
    let mut it = Orchestrator::new();
    let answer =
        Answer { group_snapshot_id: "g".to_owned(), snapshot_ids: ids(&["a", "b"]), ..Answer::default() };
    let make = Request { name: "g".to_owned(), source_volume_ids: ids(&["vol-data"]), ..Request::default() };
    it.created().call(Call::CreateVolumeGroupSnapshot, make, answer);
    it.ok(Call::GetVolumeGroupSnapshot, group(&["b", "a"]));
    it.heeds(Rule::C106);
    it.ok(Call::DeleteVolumeGroupSnapshot, group(&["a"]));
    it.breaks(&[Rule::C106]);
}

#[test]
fn c112_an_expansion_has_the_capability_of_the_publish() {
    let grow = |mode| with_mode(mode, Request { capacity_range: create().capacity_range, ..volume() });
    let mut it = Orchestrator::new();
    it.published().ok(Call::ControllerExpandVolume, grow(5));
    it.heeds(Rule::C112);
    it.ok(Call::ControllerExpandVolume, grow(6));
    it.breaks(&[Rule::C112]);
}

#[test]
fn c125_c130_the_staging_path_is_one_absolute_directory() {
    let at = |path: &str| Request { staging_target_path: path.to_owned(), ..stage() };
    tells_apart(Rule::C125, Call::NodeStageVolume, stage(), at("staging"));
    let seen = SeenPaths { staging_is_directory: Some(false), ..SeenPaths::default() };
    tells_apart(Rule::C125, Call::NodeStageVolume, stage(), Request { seen, ..stage() });
    let mut it = Orchestrator::new();
    it.staged().ok(Call::NodeStageVolume, at("/elsewhere"));
    it.breaks(&[Rule::C125]);
    let mut it = Orchestrator::new();
    it.staged()
        .ok(Call::NodeUnstageVolume, Request { staging_target_path: "/elsewhere".to_owned(), ..unstage() });
    it.breaks(&[Rule::C130]);
}

#[test]
fn c135_the_staging_path_of_a_publish_is_that_of_the_stage() {
    let from = |path: &str| Request { staging_target_path: path.to_owned(), ..publish("/targets/a") };
    for (path, broken) in [("/staging", vec![]), ("", vec![Rule::C135]), ("/other", vec![Rule::C135])] {
        let mut it = Orchestrator::new();
        it.staged().ok(Call::NodePublishVolume, from(path));
        it.breaks(&broken);
    }
    let mut it = Orchestrator::of(Surface { node: vec![], ..surface() });
    it.attached().ok(Call::NodePublishVolume, from("/staging"));
    it.breaks(&[Rule::C135]);
}

#[test]
fn c136_a_target_is_of_one_volume_and_its_parent_alone_is_made_for_it() {
    let sees = |target_exists, target_has_parent| SeenPaths {
        target_exists: Some(target_exists),
        target_has_parent: Some(target_has_parent),
        ..SeenPaths::default()
    };
    let at = |path: &str| publish(path);
    for bad in [
        at("targets/a"),
        Request { seen: sees(true, true), ..at("/targets/a") },
        Request { seen: sees(false, false), ..at("/targets/a") },
    ] {
        let mut it = Orchestrator::new();
        it.staged().ok(Call::NodePublishVolume, at("/targets/a"));
        it.heeds(Rule::C136);
        let mut it = Orchestrator::new();
        it.staged().ok(Call::NodePublishVolume, bad);
        it.breaks(&[Rule::C136]);
    }
    let mut it = Orchestrator::of(Surface { controller: vec![], node: vec![], ..surface() });
    let of = |id: &str| Request {
        volume_id: id.to_owned(),
        staging_target_path: String::new(),
        publish_context: Map::new(),
        ..at("/targets/a")
    };
    it.ok(Call::NodePublishVolume, of("a")).ok(Call::NodePublishVolume, of("b"));
    it.breaks(&[Rule::C136]);
}

#[test]
fn c136_a_target_that_the_orchestrator_makes_after_an_unpublish_is_not_the_plugins() {
    let first = publish("/targets/a");
    let there = Request { seen: SeenPaths { target_exists: Some(true), ..first.seen }, ..first.clone() };
    let mut it = Orchestrator::new();
    it.staged().ok(Call::NodePublishVolume, first);
    it.ok(Call::NodeUnpublishVolume, unpublish("/targets/a")).ok(Call::NodePublishVolume, there);
    it.breaks(&[Rule::C136]);
}

/// The plugin may have made the target before it failed, or not know that it made it.
#[test]
fn c136_what_a_publish_that_failed_has_left_at_its_target_is_not_blamed_on_the_orchestrator() {
    let finals = [
        Code::NotFound,
        Code::FailedPrecondition,
        Code::ResourceExhausted,
        Code::OutOfRange,
        Code::Unimplemented,
    ];
    for code in finals {
        let there = || {
            let first = publish("/targets/a");
            Request { seen: SeenPaths { target_exists: Some(true), ..first.seen }, ..first }
        };
        let mut it = Orchestrator::new();
        it.staged().fails(Call::NodePublishVolume, publish("/targets/a"), code);
        it.ok(Call::NodeGetCapabilities, Request::default()).ok(Call::NodePublishVolume, there());
        it.heeds(Rule::C136);
        it.fails(Call::NodeUnpublishVolume, unpublish("/targets/a"), Code::NotFound);
        it.ok(Call::NodePublishVolume, there());
        it.heeds(Rule::C136);
    }
}

#[test]
fn c144_statistics_have_the_staging_path() {
    let stats = |staging: &str| Request {
        volume_path: "/targets/a".to_owned(),
        staging_target_path: staging.to_owned(),
        ..volume()
    };
    tells_apart(Rule::C144, Call::NodeGetVolumeStats, stats("/staging"), stats(""));
}

#[test]
fn c154_c155_modes_and_groups_are_those_that_the_plugin_knows() {
    let controller = ControllerCapability::ALL.to_vec();
    for (mode, broken) in [(6, vec![]), (7, vec![]), (1, vec![Rule::C154])] {
        let mut it = Orchestrator::of(Surface { controller: controller.clone(), ..surface() });
        it.created().ok(Call::ControllerPublishVolume, with_mode(mode, attach()));
        it.breaks(&broken);
    }
    let grouped = || {
        let mount_group = "1000".to_owned();
        Request { volume_capability: Some(Capability { mount_group, ..capability() }), ..stage() }
    };
    let mut it = Orchestrator::new();
    it.attached().ok(Call::NodeStageVolume, grouped());
    it.heeds(Rule::C155);
    let mut it = Orchestrator::of(Surface { node: vec![NodeCapability::StageUnstageVolume], ..surface() });
    it.attached().ok(Call::NodeStageVolume, grouped());
    it.breaks(&[Rule::C155]);
}
