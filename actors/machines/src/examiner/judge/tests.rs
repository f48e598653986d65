//! Each judged rule: an orchestrator that follows it, and one that breaks it.

use super::super::event::Answer;
use super::super::request::{
    Capability, CapacityRange, Map, SecretDigests, SeenPaths, Source, TopologyWish, Withheld,
};
use super::*;
use crate::examiner::Coverage;
use crate::vocabulary::{ControllerCapability, Expansion, NodeCapability, PluginCapability};

mod endings;
mod fields;
mod lives;
mod orders;
mod repeats;

const NODE: &str = "node-1";

/// A plugin that claims everything except `SINGLE_NODE_MULTI_WRITER`.
fn surface() -> Surface {
    let modern =
        |capability: &ControllerCapability| *capability != ControllerCapability::SingleNodeMultiWriter;
    Surface {
        has_controller: true,
        has_node: true,
        plugin: PluginCapability::ALL.to_vec(),
        expansion: vec![Expansion::Online],
        controller: ControllerCapability::ALL.iter().copied().filter(modern).collect(),
        node: vec![
            NodeCapability::StageUnstageVolume,
            NodeCapability::GetVolumeStats,
            NodeCapability::ExpandVolume,
            NodeCapability::VolumeMountGroup,
        ],
        nodes: vec![NODE.to_owned(), "node-2".to_owned()],
        ..Surface::default()
    }
}

/// An orchestrator: its calls come one after the other, 100 ms apart.
struct Orchestrator {
    judge: Judge,
    at: u64,
    number: u64,
}

impl Orchestrator {
    fn new() -> Self {
        Self::of(surface())
    }

    fn of(surface: Surface) -> Self {
        let mut it = Self { judge: Judge::new(surface), at: 0, number: 0 };
        it.judge.observe(&Event::Starts { at: 0 });
        it
    }

    fn begin(&mut self, call: Call, request: Request) -> u64 {
        self.at += 100;
        self.number += 1;
        let (at, number) = (self.at, self.number);
        self.judge.observe(&Event::Begins { at, number, call, request: Box::new(request) });
        number
    }

    fn end(&mut self, number: u64, outcome: Outcome) {
        self.judge.observe(&Event::Ends { at: self.at, number, outcome });
    }

    fn call(&mut self, call: Call, request: Request, answer: Answer) -> &mut Self {
        let number = self.begin(call, request);
        self.end(number, Outcome::Answered(Box::new(answer)));
        self
    }

    fn ok(&mut self, call: Call, request: Request) -> &mut Self {
        self.call(call, request, Answer::default())
    }

    fn fails(&mut self, call: Call, request: Request, code: Code) -> &mut Self {
        let number = self.begin(call, request);
        self.end(number, Outcome::Failed(code.number()));
        self
    }

    /// The caller's deadline passes before the answer.
    fn leaves(&mut self, call: Call, request: Request) -> &mut Self {
        let number = self.begin(call, request);
        self.judge.observe(&Event::Leaves { at: self.at, number });
        self
    }

    /// The volume `vol-data` exists, and the node is known.
    fn created(&mut self) -> &mut Self {
        let node = Answer { node_id: NODE.to_owned(), ..Answer::default() };
        self.call(Call::NodeGetInfo, Request::default(), node);
        let answer =
            Answer { volume_id: "vol-data".to_owned(), volume_context: context("disk"), ..Answer::default() };
        self.call(Call::CreateVolume, create(), answer)
    }

    fn attached(&mut self) -> &mut Self {
        let answer = Answer { publish_context: context("device"), ..Answer::default() };
        self.created().call(Call::ControllerPublishVolume, attach(), answer)
    }

    fn staged(&mut self) -> &mut Self {
        self.attached().ok(Call::NodeStageVolume, stage())
    }

    fn published(&mut self) -> &mut Self {
        self.staged().ok(Call::NodePublishVolume, publish("/targets/a"))
    }

    fn down(&mut self) -> &mut Self {
        self.ok(Call::NodeUnpublishVolume, unpublish("/targets/a"))
            .ok(Call::NodeUnstageVolume, unstage())
            .ok(Call::ControllerUnpublishVolume, detach())
            .ok(Call::DeleteVolume, volume())
    }

    fn report(&self) -> Report {
        self.judge.report(true)
    }

    /// The ids of the rules that are broken.
    fn broken(&self) -> Vec<&'static str> {
        self.judge.report(false).broken().map(|rule| rule.rule.id()).collect()
    }

    /// These rules are broken, and no others.
    #[track_caller]
    fn breaks(&self, rules: &[Rule]) {
        let ids: Vec<_> = rules.iter().map(|rule| rule.id()).collect();
        assert_eq!(self.broken(), ids, "{:#?}", self.judge.report(false).broken().collect::<Vec<_>>());
    }

    /// No rule is broken, and this one was tried.
    #[track_caller]
    fn heeds(&self, rule: Rule) {
        self.breaks(&[]);
        assert!(self.judge.tally.of(rule).tried > 0, "{rule} was not tried");
    }
}

fn context(value: &str) -> Map {
    Map::from([("kind".to_owned(), value.to_owned())])
}

fn capability() -> Capability {
    Capability { is_block: Some(false), mode: 5, ..Capability::default() }
}

fn with_mode(mode: i32, request: Request) -> Request {
    Request { volume_capability: Some(Capability { mode, ..capability() }), ..request }
}

fn volume() -> Request {
    Request { volume_id: "vol-data".to_owned(), ..Request::default() }
}

fn create() -> Request {
    Request {
        name: "data".to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        volume_capabilities: vec![capability()],
        ..Request::default()
    }
}

fn attach() -> Request {
    Request {
        node_id: NODE.to_owned(),
        volume_capability: Some(capability()),
        volume_context: context("disk"),
        ..volume()
    }
}

fn detach() -> Request {
    Request { node_id: NODE.to_owned(), ..volume() }
}

fn stage() -> Request {
    let seen = SeenPaths { staging_is_directory: Some(true), ..SeenPaths::default() };
    Request {
        staging_target_path: "/staging".to_owned(),
        volume_capability: Some(capability()),
        volume_context: context("disk"),
        publish_context: context("device"),
        seen,
        ..volume()
    }
}

fn unstage() -> Request {
    Request { staging_target_path: "/staging".to_owned(), ..volume() }
}

fn publish(target: &str) -> Request {
    let seen =
        SeenPaths { target_exists: Some(false), target_has_parent: Some(true), ..SeenPaths::default() };
    Request { target_path: target.to_owned(), seen, ..stage() }
}

fn unpublish(target: &str) -> Request {
    Request { target_path: target.to_owned(), ..volume() }
}

fn secrets(key: &str, digest: u64) -> SecretDigests {
    SecretDigests {
        keys: vec![key.to_owned()],
        values: Withheld { count: 1, bytes: 12, digest: Some(digest) },
    }
}

#[test]
fn a_life_in_order_breaks_no_rule_c_4() {
    let mut it = Orchestrator::new();
    it.published().down();
    let report = it.report();
    assert!(report.is_clean() && report.open.is_empty(), "{report:#?}");
    for rule in ["C001", "C073", "C074", "C079", "C121", "C122", "C131", "C132", "C141", "C.4"] {
        let found = report.rules.iter().find(|found| found.rule.id() == rule).expect("it is a rule");
        assert!(found.tried > 0, "{rule}");
    }
}

#[test]
fn a_rule_that_calls_cannot_show_is_never_tried() {
    let mut it = Orchestrator::new();
    it.published().down();
    for found in it.report().rules {
        let is_seen = !matches!(found.rule.coverage(), Coverage::NotSeen(_));
        assert!(is_seen || found.tried == 0, "{}", found.rule);
    }
}

#[test]
fn only_the_first_breaches_of_a_rule_are_kept_and_all_are_counted() {
    let mut it = Orchestrator::new();
    for _ in 0..50 {
        it.ok(Call::ListVolumes, Request { max_entries: -1, ..Request::default() });
    }
    let found = it.judge.tally.of(Rule::C091);
    assert_eq!((found.tried, found.broken, found.breaches.len()), (50, 50, 20));
    assert_eq!(found.breaches[0].problem, "max_entries is -1");
}
