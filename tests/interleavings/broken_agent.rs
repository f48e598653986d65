//! Searches broken agents: each stops an allocation without a reason, starts a second process or a process without its volumes, or
//! releases volumes under a process, and is detected by the search.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard::actors::shell::{CallKey, Effect, Input, StopMode};
use callboard::actors::vocabulary::{AllocationId, Attempt};
use callboard::actors::volume::ObservedEnd;
use callboard::agent::{
    Agent, AgentAnswer, AgentAsk, AgentCall, AgentNews, AgentOutcome, AgentTimer, LaunchOrder, ReplaceError,
    TaskError, TaskPhase, TaskReport,
};
use callboard::simulation::{AlterEffects, Law, TamperEffects};
use callboard_simulation::agent::{AgentBounds, AgentWorld};

use crate::tampered_is_found_out;

/// One replacement, whose new allocation may be healthy or not.
const ONE: AgentBounds = AgentBounds { replacements: 1, pauses: 2, ..AgentBounds::NONE };

fn spoiled(bounds: AgentBounds, spoil: AlterEffects<Agent>) {
    tampered_is_found_out(Law::F16, bounds, AgentWorld::new, TamperEffects(spoil));
}

fn withdraw(name: &str, mut effects: Vec<Effect<Agent>>) -> Vec<Effect<Agent>> {
    let allocation = AllocationId::new(name).expect("it is a name");
    let call = AgentCall::Withdraw { allocation, even_if_used: false };
    effects.push(Effect::Call { key: CallKey::default(), deadline: Duration::from_secs(60), call });
    effects
}

/// The allocation and its health, if the input is an answer about health.
fn health(input: &Input<Agent>) -> Option<(&str, bool)> {
    match input {
        Input::Returned {
            call: AgentCall::AwaitHealthy(question),
            outcome: Ok(AgentOutcome::AwaitedHealthy(Ok(answer))),
            ..
        } => Some((question.allocation.as_str(), answer.is_ok())),
        _ => None,
    }
}

#[test]
fn an_agent_that_stops_the_old_one_before_the_new_one_is_healthy_breaks_f16() {
    spoiled(ONE, |input, effects| match input {
        Input::Asked { ask: AgentAsk::Replace(_), .. } => withdraw("old", effects),
        _ => effects,
    });
}

#[test]
fn an_agent_that_stops_the_old_one_although_the_new_one_is_not_healthy_breaks_f16() {
    spoiled(ONE, |input, effects| match health(input) {
        Some(("new", false)) => withdraw("old", effects),
        _ => effects,
    });
}

#[test]
fn an_agent_that_stops_the_new_one_without_a_look_at_the_old_one_breaks_f16() {
    spoiled(ONE, |input, effects| match health(input) {
        Some(("new", false)) => withdraw("new", effects),
        _ => effects,
    });
}

#[test]
fn an_agent_that_stops_a_new_one_that_ran_before_breaks_f16() {
    spoiled(AgentBounds { starts: 1, ..ONE }, |input, effects| match health(input) {
        // The machine requests nothing more, so it keeps the new one.
        Some(("new", false)) if effects.iter().all(|effect| !matches!(effect, Effect::Call { .. })) => {
            withdraw("new", effects)
        }
        _ => effects,
    });
}

#[test]
fn an_agent_that_tells_an_error_of_a_replacement_that_completes_breaks_f16() {
    spoiled(AgentBounds { crashes: 1, ..ONE }, |_, effects| {
        let told = |effect| match effect {
            Effect::Reply(id, AgentAnswer::Replace(Ok(_))) => {
                let error = TaskError::NotRunning { allocation: old(), phase: TaskPhase::Stopped };
                Effect::Reply(id, AgentAnswer::Replace(Err(ReplaceError::Task(error))))
            }
            other => other,
        };
        effects.into_iter().map(told).collect()
    });
}

/// Processes survive the host.
const SURVIVING: AgentBounds =
    AgentBounds { stops: &[StopMode::Detach], survives: true, ..AgentBounds::NONE };

fn old() -> AllocationId {
    AllocationId::new("old").expect("it is a name")
}

fn call(call: AgentCall) -> Effect<Agent> {
    Effect::Call { key: CallKey::default(), deadline: Duration::from_secs(60), call }
}

#[test]
fn an_agent_that_ends_what_survives_a_host_that_detaches_breaks_s3() {
    let spoil: AlterEffects<Agent> = |input, mut effects| {
        if let Input::StopRequested(StopMode::Detach) = input {
            effects.insert(0, call(AgentCall::End { allocation: old(), grace: Duration::ZERO }));
        }
        effects
    };
    tampered_is_found_out(Law::S3, SURVIVING, AgentWorld::new, TamperEffects(spoil));
}

#[test]
fn an_agent_that_tells_no_limit_of_a_stop_breaks_s3() {
    let spoil: AlterEffects<Agent> = |_, effects| {
        let told = |effect| match effect {
            Effect::Publish(AgentNews::TaskChanged(task)) => {
                Effect::Publish(AgentNews::TaskChanged(TaskReport { stopping: None, ..task }))
            }
            other => other,
        };
        effects.into_iter().map(told).collect()
    };
    let stops = AgentBounds { stops: &[StopMode::Stop], ..AgentBounds::NONE };
    tampered_is_found_out(Law::S3, stops, AgentWorld::new, TamperEffects(spoil));
}

#[test]
fn an_agent_that_refuses_a_stop_of_what_has_ended_while_the_others_stop_breaks_s3() {
    let spoil: AlterEffects<Agent> = |input, effects| {
        let is_asked = matches!(input, Input::Asked { ask: AgentAsk::StopTask(_), .. });
        let told = |effect| match effect {
            Effect::Reply(id, AgentAnswer::StopTask(Ok(_))) if is_asked => {
                let error = TaskError::NotRunning { allocation: old(), phase: TaskPhase::Stopped };
                Effect::Reply(id, AgentAnswer::StopTask(Err(error)))
            }
            other => other,
        };
        effects.into_iter().map(told).collect()
    };
    let stops = AgentBounds { stops: &[StopMode::Stop], stops_asked: 1, starts: 1, ..AgentBounds::NONE };
    tampered_is_found_out(Law::S3, stops, AgentWorld::new, TamperEffects(spoil));
}

fn launch() -> Effect<Agent> {
    call(AgentCall::Launch(LaunchOrder {
        allocation: old(),
        attempt: Attempt::new(1),
        program: "/bin/zfs-csi".into(),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        survives: true,
        stop_grace: Duration::ZERO,
    }))
}

#[test]
fn an_agent_that_launches_beside_what_an_earlier_run_has_left_breaks_prc_03() {
    let spoil: AlterEffects<Agent> = |input, mut effects| {
        if let Input::Returned { call: AgentCall::Survey, .. } = input {
            effects.push(launch());
        }
        effects
    };
    let bounds = AgentBounds { crashes: 1, starts: 1, ..SURVIVING };
    tampered_is_found_out(Law::Prc3, bounds, AgentWorld::new, TamperEffects(spoil));
}

/// `old` uses a volume.
const USER: AgentBounds = AgentBounds { volumes: true, stops_asked: 1, pauses: 2, ..AgentBounds::NONE };

fn release() -> Effect<Agent> {
    let (observed, within) = (ObservedEnd::Exited, Duration::ZERO);
    call(AgentCall::Release { allocation: old(), observed, within })
}

#[test]
fn an_agent_that_starts_a_process_although_its_volumes_are_refused_breaks_v7() {
    let spoil: AlterEffects<Agent> = |input, mut effects| {
        if let Input::Returned { outcome: Ok(AgentOutcome::Claimed(Err(_))), .. } = input {
            effects.push(launch());
        }
        effects
    };
    tampered_is_found_out(
        Law::V7,
        AgentBounds { refusals: 1, ..USER },
        AgentWorld::new,
        TamperEffects(spoil),
    );
}

#[test]
fn an_agent_that_releases_volumes_before_the_process_has_ended_breaks_v8() {
    let spoil: AlterEffects<Agent> = |input, mut effects| {
        if let Input::Returned { call: AgentCall::Withdraw { .. }, .. } = input {
            effects.push(release());
        }
        effects
    };
    tampered_is_found_out(Law::V8, USER, AgentWorld::new, TamperEffects(spoil));
}

#[test]
fn an_agent_that_releases_volumes_of_a_process_that_does_not_end_breaks_v8() {
    let spoil: AlterEffects<Agent> = |input, mut effects| {
        if let Input::Elapsed(AgentTimer::GiveUp(_)) = input {
            effects.push(release());
        }
        effects
    };
    tampered_is_found_out(Law::V8, AgentBounds { hangs: 1, ..USER }, AgentWorld::new, TamperEffects(spoil));
}

#[test]
fn an_agent_that_does_not_repeat_a_release_that_was_not_recorded_breaks_s4() {
    let spoil: AlterEffects<Agent> = |_, mut effects| {
        let has_stopped = effects.iter().any(|effect| {
            matches!(effect, Effect::Publish(AgentNews::TaskChanged(task)) if task.phase == TaskPhase::Stopped)
        });
        effects
            .retain(|effect| !has_stopped || !matches!(effect, Effect::StartTimer(AgentTimer::Retry(_), _)));
        effects
    };
    let bounds = AgentBounds { refusals: 1, ..USER };
    tampered_is_found_out(Law::S4, bounds, AgentWorld::new, TamperEffects(spoil));
}

#[test]
fn an_agent_that_starts_a_process_beside_one_that_does_not_end_breaks_prc_03() {
    let spoil: AlterEffects<Agent> = |input, mut effects| {
        if let Input::Elapsed(AgentTimer::GiveUp(_)) = input {
            effects.push(launch());
        }
        effects
    };
    let bounds = AgentBounds { restarts: 1, hangs: 1, pauses: 2, ..AgentBounds::NONE };
    tampered_is_found_out(Law::Prc3, bounds, AgentWorld::new, TamperEffects(spoil));
}

#[test]
fn an_agent_that_forgets_to_release_volumes_breaks_s4() {
    let spoil: AlterEffects<Agent> = |_, mut effects| {
        effects.retain(|effect| !matches!(effect, Effect::Call { call: AgentCall::Release { .. }, .. }));
        effects
    };
    let bounds = AgentBounds { stops: &[StopMode::Stop], stops_asked: 0, ..USER };
    tampered_is_found_out(Law::S4, bounds, AgentWorld::new, TamperEffects(spoil));
}
