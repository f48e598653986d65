//! Steps are taken in order, and undone in reverse order, each after the one before it is known to have succeeded (table C.4).

use super::Asked;
use super::known::Known;
use super::look::Look;
use super::steps::{Doubt, Kind, Step, kind_of};
use crate::csi::Call;
use crate::examiner::rule::Rule;
use crate::examiner::surface::Surface;
use crate::vocabulary::{Expansion, NodeCapability};

pub(super) fn judge(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let mut doubts = Doubts::of(known, asked);
    settling(known, asked, look);
    match asked.call {
        Call::ControllerPublishVolume => attach(known, asked, look),
        Call::NodeStageVolume => stage(surface, known, asked, look, &mut doubts),
        Call::NodePublishVolume => publish(surface, known, asked, look, &mut doubts),
        Call::NodeUnstageVolume => down(Rule::C131, Kind::Published, known, asked, look, &mut doubts),
        Call::ControllerUnpublishVolume => {
            let node = &asked.request.node_id;
            if surface.has_node && (node.is_empty() || node == surface.own_node()) {
                down(Rule::C079, Kind::Published, known, asked, look, &mut doubts);
                down(Rule::C132, Kind::Staged, known, asked, look, &mut doubts);
            }
        }
        Call::DeleteVolume => {
            for kind in [Kind::Attached, Kind::Staged, Kind::Published] {
                down(Rule::Order, kind, known, asked, look, &mut doubts);
            }
        }
        Call::NodeExpandVolume => expand_on_node(surface, known, asked, look, &mut doubts),
        Call::ControllerExpandVolume => expand(surface, known, asked, look, &mut doubts),
        _ => {}
    }
    doubts.judge(look);
}

/// Counts rules that the call satisfies and that are otherwise judged at the end: an unknown step is resolved, others undone or completed.
fn settling(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    let step = kind_of(asked.call).and_then(|(kind, _)| {
        let at = match kind {
            Kind::Attached => &request.node_id,
            Kind::Staged => &request.staging_target_path,
            Kind::Published => &request.target_path,
        };
        known.steps.get(&request.volume_id, kind, at)
    });
    if step.is_some_and(|step| matches!(step.doubt, Some(Doubt::Left | Doubt::Code(_)))) {
        look.tried(Rule::C014);
    }
    match asked.call {
        Call::NodeUnpublishVolume if step.is_some() => look.tried(Rule::C141),
        Call::DeleteVolume => look.tried(Rule::C062),
        Call::NodeExpandVolume => look.tried(Rule::C111),
        _ => {}
    }
}

/// The steps of the volume whose state is unknown: the call must not assume that they are done or undone (C015, C022).
struct Doubts {
    has_left: bool,
    has_code: bool,
    /// The problems with a step whose caller left, and with a step that failed.
    broken_left: Option<String>,
    broken_code: Option<String>,
}

impl Doubts {
    fn of(known: &Known, asked: Asked<'_>) -> Self {
        let volume = &asked.request.volume_id;
        let is_step = kind_of(asked.call).is_some() || asked.call == Call::DeleteVolume;
        let steps = [Kind::Attached, Kind::Staged, Kind::Published].map(|kind| known.steps.of(volume, kind));
        let doubts: Vec<_> =
            steps.into_iter().flatten().filter_map(|(_, step)| step.doubt).filter(|_| is_step).collect();
        let has_left = doubts.contains(&Doubt::Left);
        let has_code = doubts.iter().any(|doubt| matches!(doubt, Doubt::Code(_)));
        Self { has_left, has_code, broken_left: None, broken_code: None }
    }

    /// The call assumed that this step, whose state is unknown, is done or undone.
    fn add(&mut self, step: Option<&Step>, problem: &str) {
        match step.and_then(|step| step.doubt) {
            Some(Doubt::Left) => self.broken_left = Some(problem.to_owned()),
            Some(Doubt::Code(_)) => self.broken_code = Some(problem.to_owned()),
            Some(Doubt::InFlight) | None => {}
        }
    }

    fn judge(self, look: &mut Look<'_>) {
        if self.has_left {
            look.check(Rule::C015, self.broken_left.is_none(), || self.broken_left.unwrap_or_default());
        }
        if self.has_code {
            look.check(Rule::C022, self.broken_code.is_none(), || self.broken_code.unwrap_or_default());
        }
    }
}

/// A step that has to be up.
fn up(rule: Rule, what: &str, step: Option<&Step>, look: &mut Look<'_>, doubts: &mut Doubts) {
    let is_up = step.is_some_and(Step::is_up);
    let problem = || match step {
        Some(step) => format!("{what} is {}", step.state()),
        None => format!("{what} is down"),
    };
    look.check(rule, is_up, problem);
    if !is_up {
        doubts.add(step, &problem());
    }
}

/// Steps that have to be down.
fn down(rule: Rule, kind: Kind, known: &Known, asked: Asked<'_>, look: &mut Look<'_>, doubts: &mut Doubts) {
    let found = known.steps.of(&asked.request.volume_id, kind).next();
    let problem = || {
        let what = match kind {
            Kind::Attached => "node",
            Kind::Staged => "staging path",
            Kind::Published => "target",
        };
        found.map_or_else(String::new, |(at, step)| format!("{what} {at} is {}", step.state()))
    };
    look.check(rule, found.is_none(), problem);
    if let Some((_, step)) = found {
        doubts.add(Some(step), &problem());
    }
}

fn attach(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    let mut others =
        known.steps.of(&request.volume_id, Kind::Attached).filter(|(node, _)| *node != request.node_id);
    if let Some((node, step)) = others.next() {
        look.check(Rule::C075, request.access_mode().is_for_several_nodes(), || {
            format!("the mode is for one node, and the volume on node {node} is {}", step.state())
        });
    }
}

fn attached(
    surface: &Surface,
    known: &Known,
    asked: Asked<'_>,
    rule: Rule,
    look: &mut Look<'_>,
    doubts: &mut Doubts,
) {
    if surface.attaches() {
        let node = surface.own_node();
        let step = known.steps.get(&asked.request.volume_id, Kind::Attached, node);
        up(rule, &format!("the volume on node {node}"), step, look, doubts);
    }
}

fn stage(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>, doubts: &mut Doubts) {
    attached(surface, known, asked, Rule::C121, look, doubts);
    let request = asked.request;
    let before = known.steps.get(&request.volume_id, Kind::Staged, &request.staging_target_path);
    look.check(Rule::C123, !before.is_some_and(|step| step.is_up() && !step.is_denied), || {
        format!("it is staged there, {}", before.map_or_else(String::new, Step::state))
    });
}

fn publish(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>, doubts: &mut Doubts) {
    attached(surface, known, asked, Rule::C134, look, doubts);
    let request = asked.request;
    if surface.stages() {
        let staged = known.steps.of(&request.volume_id, Kind::Staged).next();
        up(Rule::C122, "the staging of the volume", staged.map(|(_, step)| step), look, doubts);
    }
    let mut others = known
        .steps
        .of(&request.volume_id, Kind::Published)
        .filter(|(target, _)| *target != request.target_path);
    if let Some((target, step)) = others.next() {
        look.check(Rule::C137, request.access_mode().is_for_several_targets(), || {
            format!("the mode is for one target, and target {target} is {}", step.state())
        });
        look.check(Rule::C138, step.request.volume_capability == request.volume_capability, || {
            format!("target {target} has another capability")
        });
    }
}

fn expand_on_node(
    surface: &Surface,
    known: &Known,
    asked: Asked<'_>,
    look: &mut Look<'_>,
    doubts: &mut Doubts,
) {
    let kind = if surface.stages() { Kind::Staged } else { Kind::Published };
    let mut steps = known.steps.of(&asked.request.volume_id, kind).map(|(_, step)| step);
    let first = steps.next();
    let best = first.into_iter().chain(steps).find(|step| step.is_up()).or(first);
    up(Rule::C149, "the volume on the node", best, look, doubts);
    same_capability(known, asked, look);
    if surface.stages() {
        let is_sent = !asked.request.staging_target_path.is_empty();
        look.check(Rule::C151, is_sent, || "the staging path is missing".to_owned());
    }
}

/// If a volume can only grow offline, its first step must be down (C109).
fn expand(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>, doubts: &mut Doubts) {
    same_capability(known, asked, look);
    if surface.expansion != [Expansion::Offline] {
        return;
    }
    let kind = if surface.attaches() {
        Kind::Attached
    } else if surface.node.contains(&NodeCapability::StageUnstageVolume) {
        Kind::Staged
    } else {
        Kind::Published
    };
    down(Rule::C109, kind, known, asked, look, doubts);
}

fn same_capability(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let Some(capability) = &asked.request.volume_capability else { return };
    let published = known.steps.of(&asked.request.volume_id, Kind::Published).next();
    if let Some((target, step)) = published {
        look.check(Rule::C112, step.request.volume_capability.as_ref() == Some(capability), || {
            format!("it is published at {target} with another capability")
        });
    }
}
