//! The laws of a volume that can be checked from its steps alone; the [model](super::model::VolumeModel) checks those that need its plugin.

use callboard_actors::shell::{Effect, Input};
use callboard_actors::vocabulary::Moment;
use callboard_machines::csi::Service;
use callboard_machines::volume::{
    Expands, OrderCall, Route, Volume, VolumeAsk, VolumeCall, VolumeNews, VolumeOutcome,
};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Left;

/// Observes every step of a volume.
#[derive(Debug, Clone, Hash, Default)]
pub struct VolumeLaws {
    /// The route of calls that the volume knows.
    route: Route,
    /// The present route of calls.
    newest: Route,
    /// How many routes were sent to the volume that it has not received yet.
    on_the_way: u32,
    pub(super) verdict: Verdict,
}

impl VolumeLaws {
    /// The laws of a volume that reads this route.
    pub(super) fn of(route: Route) -> Self {
        Self { newest: route.clone(), route, ..Self::default() }
    }

    /// A route is sent to the volume.
    pub(super) fn routed(&mut self, route: Route) {
        self.newest = route;
        self.on_the_way += 1;
    }

    /// The volume has received a route, unless it crashed over it. It uses that route until it receives a newer one.
    pub(super) fn received(&mut self, route: Option<&Route>) {
        self.on_the_way = self.on_the_way.saturating_sub(1);
        self.go_by(route);
    }

    fn go_by(&mut self, route: Option<&Route>) {
        match route.filter(|_| self.on_the_way > 0) {
            Some(route) => self.route = route.clone(),
            None => self.route = self.newest.clone(),
        }
    }

    fn check_call(&mut self, generation: u64, call: &VolumeCall) {
        let half = match call {
            VolumeCall::ReadRoute | VolumeCall::Look { .. } | VolumeCall::AwaitAudits(_) => return,
            VolumeCall::Order(_, _, call) if call.csi().service() == Service::Node => {
                self.route.node.as_ref().map(|half| half.generation)
            }
            VolumeCall::Order(..)
            | VolumeCall::Create(..)
            | VolumeCall::Delete(..)
            | VolumeCall::Attach(..)
            | VolumeCall::Detach(..) => self.route.controller.as_ref().map(|half| half.generation),
            _ => self.route.node.as_ref().map(|half| half.generation),
        };
        let stages = self.route.node.as_ref().is_some_and(|node| node.stages);
        let attaches = self.route.controller.as_ref().is_some_and(|controller| controller.attaches);
        let expands = self.route.controller.as_ref().is_some_and(|half| half.expands != Expands::Not);
        let grows = self.route.node.as_ref().is_some_and(|node| node.expands);
        let wrong = match call {
            _ if call.generation().map(|made_for| made_for.get()) != Some(generation) => {
                Some("the call is made for another one")
            }
            _ if half.map(|half| half.get()) != Some(generation) => Some("another generation serves"),
            VolumeCall::Order(_, _, OrderCall::Expand { .. }) if !expands => {
                Some("the plugin does not expand")
            }
            VolumeCall::Order(_, _, OrderCall::Grow(_)) if !grows => {
                Some("the plugin does not expand on a node")
            }
            VolumeCall::Stage(..) if !stages => Some("the plugin does not stage"),
            VolumeCall::Attach(..) if !attaches => Some("the plugin does not attach"),
            VolumeCall::Publish(_, _, args, _) if args.staging_path.is_some() != stages => {
                Some("its staging path is not what the plugin expects")
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.verdict.violation(Law::V16, || format!("{call:?} to generation {generation}: {wrong}"));
        }
    }
}

impl LawChecker<Volume> for VolumeLaws {
    fn rebuilt(&mut self, _: Moment, _: &Volume) {}

    fn stepped(&mut self, _: Moment, input: &Input<Volume>, effects: &[Effect<Volume>], _: &Volume) {
        match input {
            Input::Asked { ask: VolumeAsk::RouteChanged(changed), .. } => self.received(Some(&changed.route)),
            Input::Returned { outcome: Ok(VolumeOutcome::Route(route)), .. } => self.go_by(Some(route)),
            _ => {}
        }
        for effect in effects {
            if let Effect::Call { key, call, .. } = effect {
                self.check_call(key.generation.get(), call);
            }
        }
    }

    fn panicked(&mut self, input: &Input<Volume>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }

    fn left(&mut self, left: &Left<Volume>, is_durable: bool) {
        // An audit and a status wait for the writes that they report, as calls and promises do.
        let waits = matches!(left, Left::Call { call, .. } if call.csi().is_some())
            || matches!(left, Left::News(_, VolumeNews::Changed(_) | VolumeNews::Forced(_)));
        if waits && !is_durable {
            self.verdict.violation(Law::Shell1, || {
                format!("{left:?} left before the write in front of it was on disk")
            });
        }
    }
}
