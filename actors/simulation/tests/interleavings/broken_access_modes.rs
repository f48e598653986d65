//! Volumes that ask their plugin for a wrong access mode (C013, C138, C154): the search finds each.

use callboard_actors::shell::{Effect, Input};
use callboard_machines::csi::AccessMode;
use callboard_machines::volume::{
    Route, RouteChanged, Step, Volume, VolumeAsk, VolumeCall, VolumeChange, VolumeOutcome,
};
use callboard_simulation::{Law, TamperEffects, TamperInput, VolumeBounds, VolumeWorld};

use crate::{changed, tampered_is_found_out};

const SINGLE: VolumeBounds = VolumeBounds { claims: 1, is_single: true, ..VolumeBounds::NONE };

/// A volume to which the plugin seems to know the finer modes, or not, whatever the plugin reports.
fn hears(input: Input<Volume>, knows_alpha_modes: bool) -> Option<Input<Volume>> {
    let misheard = |mut route: Route| {
        route.node.iter_mut().for_each(|node| node.knows_alpha_modes = knows_alpha_modes);
        route
    };
    Some(match input {
        Input::Returned { key, call, outcome: Ok(VolumeOutcome::Route(route)) } => {
            Input::Returned { key, call, outcome: Ok(VolumeOutcome::Route(misheard(route))) }
        }
        Input::Asked { id, asked_at, ask: VolumeAsk::RouteChanged(RouteChanged { route }) } => {
            let route = misheard(route);
            Input::Asked { id, asked_at, ask: VolumeAsk::RouteChanged(RouteChanged { route }) }
        }
        other => other,
    })
}

#[test]
fn a_volume_that_asks_for_a_mode_that_its_plugin_does_not_know_breaks_v16() {
    let bounds = VolumeBounds { takeovers: 1, changes: true, ..SINGLE };
    tampered_is_found_out(Law::V16, bounds, VolumeWorld::new, TamperInput(|input| hears(input, true)));
}

#[test]
fn a_volume_that_does_not_ask_for_the_finer_mode_breaks_v16() {
    tampered_is_found_out(Law::V16, SINGLE, VolumeWorld::new, TamperInput(|input| hears(input, false)));
}

#[test]
fn a_volume_that_publishes_with_another_mode_than_it_has_staged_breaks_v3() {
    let spoil = TamperEffects(|_: &Input<Volume>, effects: Vec<Effect<Volume>>| {
        changed(effects, |effect| match effect {
            Effect::Call { call: VolumeCall::Publish(_, _, args, _), .. } => {
                args.usage.capability.access_mode = AccessMode::SingleNodeWriter;
            }
            Effect::Persist(_, VolumeChange::KeepClaim(row)) => {
                let mut record = (**row).clone();
                if let Step::GoingUp(intent) = &mut record.publish {
                    intent.args.usage.capability.access_mode = AccessMode::SingleNodeWriter;
                }
                *row = record.into();
            }
            _ => {}
        })
    });
    tampered_is_found_out(Law::V3, SINGLE, VolumeWorld::new, spoil);
}
