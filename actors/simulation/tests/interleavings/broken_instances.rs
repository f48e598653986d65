//! Instances, and supervisors of them, with deliberate faults: the search finds each under the law that forbids its fault.

use std::rc::Rc;

use callboard_actors::csi::Rpc;
use callboard_actors::instance::{
    Half, Instance, InstanceAsk, InstanceCall, InstanceConfig, InstanceLimits, InstanceReport, InstanceTimer,
};
use callboard_actors::instances::{
    Instances, InstancesAnswer, InstancesAsk, InstancesCall, InstancesNews, InstancesOutcome, InstancesTimer,
};
use callboard_actors::lease::RetireCause;
use callboard_actors::registry::Renew;
use callboard_actors::shell::{CallKey, Effect, Ending, Input, Machine};
use callboard_actors::vocabulary::{
    AllocationId, Attempt, Fitness, Generation, Health, SocketPath, Timestamp,
};
use callboard_simulation::{
    AlterEffects, Behaviour, InstancesBounds, InstancesWorld, Law, Tamper, TamperEffects, TamperInput,
};

use crate::{changed, is_found_out};

const ONE: InstancesBounds = InstancesBounds { routes: 1, ..InstancesBounds::NONE };
const TWO: InstancesBounds = InstancesBounds { routes: 2, ..InstancesBounds::NONE };
const DYING: InstancesBounds = InstancesBounds { faults: 1, behaviours: &[Behaviour::Dies], ..ONE };

fn found_out(law: Law, bounds: InstancesBounds, broken: &InstancesWorld) {
    is_found_out(law, broken, &InstancesWorld::new(bounds, None, None));
}

fn child(law: Law, bounds: InstancesBounds, spoil: AlterEffects<Instance>) {
    found_out(law, bounds, &InstancesWorld::new(bounds, None, Some(Rc::new(TamperEffects(spoil)))));
}

fn parent(law: Law, bounds: InstancesBounds, spoil: AlterEffects<Instances>) {
    found_out(law, bounds, &InstancesWorld::new(bounds, Some(Rc::new(TamperEffects(spoil))), None));
}

fn dial() -> Effect<Instance> {
    let key = CallKey { generation: Generation::new(1), attempt: Attempt::new(99) };
    Effect::Call { key, deadline: std::time::Duration::from_secs(1), call: InstanceCall::Dial }
}

#[test]
fn an_instance_that_tries_again_after_it_was_told_to_retire_breaks_i6() {
    child(Law::I6, TWO, |input, mut effects| {
        if matches!(input, Input::Asked { ask: InstanceAsk::Retire(_), .. }) {
            effects.insert(0, dial());
        }
        effects
    });
}

#[test]
fn a_supervisor_that_opens_the_gate_for_one_that_was_just_found_healthy_breaks_f16() {
    parent(Law::F16, InstancesBounds { gates: 1, pauses: 2, ..ONE }, |_, effects| {
        let opened = |effect| match effect {
            Effect::StartTimer(InstancesTimer::Gate(id), _) => {
                Effect::Reply(id, InstancesAnswer::AwaitHealthy(Ok(())))
            }
            other => other,
        };
        effects.into_iter().map(opened).collect()
    });
}

#[test]
fn an_instance_that_ends_without_waiting_for_the_calls_in_flight_breaks_a4() {
    child(Law::A4, TWO, |input, mut effects| {
        if matches!(input, Input::Asked { ask: InstanceAsk::Retire(_), .. }) {
            effects.push(Effect::Stop(Ending::Normal));
        }
        effects
    });
}

#[test]
fn an_instance_that_calls_itself_healthy_as_soon_as_it_is_connected_breaks_i2() {
    child(Law::I2, ONE, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(report) = effect
                && report.health == Health::Starting
            {
                report.health = Health::Healthy;
            }
        }
        effects
    });
}

#[test]
fn an_instance_that_reads_its_identity_in_every_round_breaks_i3() {
    child(Law::I3, InstancesBounds { pauses: 1, ..ONE }, |input, mut effects| {
        if matches!(input, Input::Elapsed(InstanceTimer::Look)) {
            for effect in &mut effects {
                if let Effect::Call { call: call @ InstanceCall::Ask(Rpc::Probe), .. } = effect {
                    *call = InstanceCall::Ask(Rpc::PluginInfo);
                }
            }
        }
        effects
    });
}

#[test]
fn an_instance_that_calls_a_service_before_the_plugin_has_named_it_breaks_i3() {
    child(Law::I3, InstancesBounds { pauses: 1, ..ONE }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: call @ InstanceCall::Ask(Rpc::PluginCapabilities), .. } = effect {
                *call = InstanceCall::Ask(Rpc::GroupControllerCapabilities);
            }
        }
        effects
    });
}

#[test]
fn an_instance_that_gives_up_after_its_first_failure_breaks_i4() {
    child(Law::I4, DYING, |_, effects| {
        let has_failed = effects.iter().any(
            |effect| matches!(effect, Effect::Publish(report) if matches!(report.health, Health::Unhealthy { .. })),
        );
        let is_look = |effect: &_| matches!(effect, Effect::StartTimer(InstanceTimer::Look, _));
        effects.into_iter().filter(|effect| !(has_failed && is_look(effect))).collect()
    });
}

#[test]
fn an_instance_that_does_not_say_why_it_is_unhealthy_breaks_i5() {
    child(Law::I5, DYING, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(report) = effect
                && let Health::Unhealthy { reason } = &mut report.health
            {
                reason.clear();
            }
        }
        effects
    });
}

#[test]
fn an_instance_that_tells_equal_reports_again_breaks_scl_05() {
    child(Law::Scl5, ONE, |_, effects| {
        let twice = effects.into_iter().flat_map(|effect| match effect {
            Effect::Publish(report) => vec![Effect::Publish(report.clone()), Effect::Publish(report)],
            other => vec![other],
        });
        twice.collect()
    });
}

#[test]
fn an_instance_that_retires_without_end_breaks_i1() {
    child(Law::I1, TWO, |_, effects| {
        effects.into_iter().filter(|effect| !matches!(effect, Effect::Stop(_))).collect()
    });
}

#[test]
fn an_instance_that_signs_its_calls_with_an_older_generation_breaks_shell_3() {
    child(Law::Shell3, ONE, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { key, .. } = effect {
                key.generation = Generation::default();
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_retires_no_instance_on_a_takeover_breaks_i1() {
    parent(Law::I1, TWO, |_, effects| {
        let is_retirement =
            |effect: &_| matches!(effect, Effect::Call { call: InstancesCall::Retire { .. }, .. });
        effects.into_iter().filter(|effect| !is_retirement(effect)).collect()
    });
}

#[test]
fn a_supervisor_that_waits_for_a_retirement_without_bound_breaks_i1() {
    parent(Law::I1, TWO, |_, effects| {
        let is_bound = |effect: &_| matches!(effect, Effect::StartTimer(InstancesTimer::Retire(..), _));
        effects.into_iter().filter(|effect| !is_bound(effect)).collect()
    });
}

#[test]
fn a_supervisor_that_tells_one_that_retires_the_wrong_cause_breaks_i8() {
    fn says(effects: Vec<Effect<Instances>>, said: RetireCause) -> Vec<Effect<Instances>> {
        changed(effects, |effect| {
            if let Effect::Call { call: InstancesCall::Retire { cause, .. }, .. } = effect {
                *cause = said;
            }
        })
    }
    // No instance serves after the only one has left, another one does after a takeover, and none will when all stop.
    parent(Law::I8, TWO, |_, effects| says(effects, RetireCause::Superseded));
    parent(Law::I8, TWO, |_, effects| says(effects, RetireCause::NotServed));
    let stopping = InstancesBounds { stops: true, ..ONE };
    parent(Law::I8, stopping, |input, effects| match input {
        Input::StopRequested(_) => says(effects, RetireCause::NotServed),
        _ => effects,
    });
}

#[test]
fn a_supervisor_that_believes_a_former_life_breaks_reg_08() {
    parent(Law::Reg8, TWO, |input, mut effects| {
        if let Input::Asked { ask: InstancesAsk::InstanceReported(reported), .. } = input
            && reported.report.health == Health::Healthy
            && effects.len() == 1
        {
            // A correct one ignores this late report.
            effects.push(Effect::Publish(InstancesNews::Reported(reported.report.clone())));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_does_not_hear_of_endings_breaks_i4() {
    let deaf = TamperInput(|input| match input {
        Input::Returned { call: InstancesCall::AwaitEndings, .. } => None,
        other => Some(other),
    });
    found_out(Law::I4, TWO, &InstancesWorld::new(TWO, Some(Rc::new(deaf)), None));
}

#[test]
fn a_supervisor_that_is_deaf_to_the_order_to_stop_breaks_s4() {
    let stopping = InstancesBounds { stops: true, ..ONE };
    let deaf = TamperInput(|input| match input {
        Input::StopRequested(_) => None,
        other => Some(other),
    });
    found_out(Law::S4, stopping, &InstancesWorld::new(stopping, Some(Rc::new(deaf)), None));
}

#[test]
fn a_supervisor_that_leaves_its_instances_behind_breaks_s4() {
    let stopping = InstancesBounds { stops: true, ..ONE };
    parent(Law::S4, stopping, |input, mut effects| {
        if matches!(input, Input::StopRequested(_)) {
            effects.push(Effect::Stop(Ending::Normal));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_shows_a_plugin_twice_the_same_breaks_scl_05() {
    parent(Law::Scl5, ONE, |_, effects| {
        let twice = effects.into_iter().flat_map(|effect| match effect {
            Effect::Publish(news @ InstancesNews::Reported(_)) => {
                vec![Effect::Publish(news.clone()), Effect::Publish(news)]
            }
            other => vec![other],
        });
        twice.collect()
    });
}

const LOST: InstancesBounds = InstancesBounds { hangups: 1, ..ONE };
const STANDBY: InstancesBounds = InstancesBounds { standbys: 1, ..ONE };

#[test]
fn an_instance_that_stays_when_its_connection_has_ended_breaks_i2() {
    child(Law::I2, LOST, |input, effects| {
        let is_end = matches!(input, Input::Asked { ask: InstanceAsk::ConnectionEnded(_), .. });
        effects.into_iter().filter(|effect| !(is_end && matches!(effect, Effect::Stop(_)))).collect()
    });
}

#[test]
fn an_instance_that_calls_itself_fit_whatever_it_finds_breaks_r1b() {
    child(Law::R1b, DYING, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(report) = effect {
                report.fitness = Fitness::Fit;
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_reports_everyone_as_fit_breaks_r1b() {
    parent(Law::R1b, DYING, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: InstancesCall::Report(report), .. } = effect {
                report.fitness = Fitness::Fit;
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_tells_the_registry_nothing_breaks_r1b() {
    parent(Law::R1b, ONE, |_, effects| {
        let is_report = |effect: &_| matches!(effect, Effect::Call { call: InstancesCall::Report(_), .. });
        effects.into_iter().filter(|effect| !is_report(effect)).collect()
    });
}

#[test]
fn a_supervisor_that_connects_twice_under_one_generation_breaks_i2() {
    parent(Law::I2, LOST, |_, effects| connects_again(effects));
}

#[test]
fn a_supervisor_that_starts_a_crashed_instance_under_its_old_generation_breaks_i2() {
    parent(Law::I2, InstancesBounds { crashes: 1, ..ONE }, |input, effects| match input {
        Input::Returned { call: InstancesCall::AwaitEndings, .. } => connects_again(effects),
        _ => effects,
    });
}

#[test]
fn a_new_supervisor_that_takes_itself_for_the_first_breaks_i2() {
    let forgets = |input| match input {
        Input::Returned { key, call: call @ InstancesCall::Sweep, .. } => {
            let outcome = Ok(InstancesOutcome::Swept(false));
            Some(Input::Returned { key, call, outcome })
        }
        other => Some(other),
    };
    let bounds = InstancesBounds { successors: 1, ..ONE };
    let broken = InstancesWorld::new(bounds, Some(Rc::new(TamperInput(forgets))), None);
    found_out(Law::I2, bounds, &broken);
}

/// Starts an instance again beside the request for a new generation.
fn connects_again(mut effects: Vec<Effect<Instances>>) -> Vec<Effect<Instances>> {
    let lost = effects.iter().find_map(|effect| match effect {
        Effect::Call { call: InstancesCall::Renew(renew), key, deadline } => {
            Some((renew.clone(), *key, *deadline))
        }
        _ => None,
    });
    if let Some((renew, key, deadline)) = lost {
        let config = started_anew(&renew);
        let start = InstancesCall::Start { life: Attempt::new(1 << 40), config: Box::new(config) };
        effects.push(Effect::Call { key, deadline, call: start });
    }
    effects
}

/// The configuration of an instance that is started again without a new generation.
fn started_anew(renew: &Renew) -> InstanceConfig {
    InstanceConfig {
        plugin: renew.plugin.clone(),
        half: Half::Node,
        allocation: renew.allocation.clone(),
        socket: SocketPath::new("/run/a1.sock").expect("it is short and absolute"),
        generation: renew.generation,
        expected_provider: None,
        predecessor: None,
        former: None,
        limits: InstanceLimits::default(),
    }
}

#[test]
fn a_supervisor_that_shows_a_standby_as_the_active_one_breaks_i1() {
    parent(Law::I1, STANDBY, |_, effects| {
        let shown = effects.into_iter().map(|effect| match effect {
            Effect::Publish(InstancesNews::Standby(report)) => {
                Effect::Publish(InstancesNews::Reported(report))
            }
            other => other,
        });
        shown.collect()
    });
}

#[test]
fn a_supervisor_that_calls_a_standby_healthy_that_has_left_breaks_reg_08() {
    parent(Law::Reg8, TWO, |_, effects| {
        let shown = effects.into_iter().map(|effect| match effect {
            Effect::Publish(InstancesNews::Standby(report)) if report.health == Health::Gone => {
                Effect::Publish(InstancesNews::Standby(InstanceReport { health: Health::Healthy, ..report }))
            }
            other => other,
        });
        shown.collect()
    });
}

#[test]
fn a_supervisor_that_calls_one_gone_that_stands_by_breaks_r1d() {
    parent(Law::R1d, STANDBY, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(InstancesNews::Standby(report)) = effect
                && report.health == Health::Starting
            {
                report.health = Health::Gone;
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_looks_before_a_takeover_breaks_r1d() {
    let bounds = InstancesBounds { standbys: 2, ..ONE };
    parent(Law::R1d, bounds, |input, mut effects| {
        if matches!(input, Input::Returned { call: InstancesCall::Follow { .. }, .. }) {
            for effect in &mut effects {
                if let Effect::Publish(InstancesNews::Reported(report)) = effect {
                    report.health = Health::Starting;
                }
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_forgets_what_was_read_breaks_r1d() {
    parent(Law::R1d, LOST, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: InstancesCall::Start { config, .. }, .. } = effect {
                config.former = None;
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_retires_one_that_was_replaced_before_it_was_read_breaks_r1d() {
    let bounds = InstancesBounds { standbys: 2, ..ONE };
    found_out(Law::R1d, bounds, &InstancesWorld::new(bounds, Some(Rc::new(Hasty)), None));
}

/// Retires the first instance as soon as a second one is started.
#[derive(Debug)]
struct Hasty;

impl Tamper<Instances> for Hasty {
    fn effects(
        &self,
        _: &Instances,
        input: &Input<Instances>,
        mut effects: Vec<Effect<Instances>>,
    ) -> Vec<Effect<Instances>> {
        let is_feed = matches!(input, Input::Returned { call: InstancesCall::Follow { .. }, .. });
        let second = effects.iter().find_map(|effect| match effect {
            Effect::Call { call: InstancesCall::Start { life, config }, key, deadline }
                if config.allocation.as_str() == "a2" && is_feed =>
            {
                Some((*life, config.plugin.clone(), *key, *deadline))
            }
            _ => None,
        });
        if let Some((life, plugin, key, deadline)) = second {
            let place = (plugin, AllocationId::new("a1").expect("it is a name"));
            let first = Attempt::new(life.get() - 1);
            effects.push(Effect::StartTimer(InstancesTimer::Retire(place), Timestamp::default()));
            effects.push(Effect::Call {
                key,
                deadline,
                call: InstancesCall::Retire { life: first, cause: RetireCause::Superseded },
            });
        }
        effects
    }
}

#[test]
fn an_instance_that_takes_it_ill_when_a_node_need_not_be_known_breaks_i7() {
    let declining = InstancesBounds { faults: 1, behaviours: &[Behaviour::Declines], ..ONE };
    found_out(Law::I7, declining, &InstancesWorld::new(declining, None, Some(Rc::new(Touchy))));
}

/// Reports a node plugin that does not answer `NodeGetInfo` as unhealthy.
#[derive(Debug)]
struct Touchy;

impl Tamper<Instance> for Touchy {
    fn effects(
        &self,
        machine: &Instance,
        input: &Input<Instance>,
        mut effects: Vec<Effect<Instance>>,
    ) -> Vec<Effect<Instance>> {
        if let Input::Returned { call: InstanceCall::Ask(Rpc::NodeInfo), outcome: Ok(Err(_)), .. } = input {
            let health = Health::Unhealthy { reason: "it does not know its node".to_owned() };
            effects.insert(0, Effect::Publish(InstanceReport { health, ..machine.view() }));
        }
        effects
    }
}
