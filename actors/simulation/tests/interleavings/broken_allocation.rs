//! Supervisors of allocations with deliberate faults: the search finds each under the law that forbids its fault.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocation::{
    Allocation, AllocationAnswer, AllocationAsk, AllocationCall, AllocationNews, AllocationOutcome,
    AllocationTimer, TaskEventKind,
};
use callboard_actors::csi::Rpc;
use callboard_actors::registry::Register;
use callboard_actors::shell::{Effect, Ending, Input, Machine};
use callboard_actors::vocabulary::{PluginKey, Timestamp};
use callboard_simulation::{AllocationBounds, AllocationWorld, AlterEffects, Law, Tamper, TamperEffects};

use crate::{changed, tampered_is_found_out, without};

const STARTED: AllocationBounds = AllocationBounds { orders: 1, pauses: 1, ..AllocationBounds::NONE };
const NEWS: AllocationBounds = AllocationBounds { news: 1, ..STARTED };
const TROUBLED: AllocationBounds = AllocationBounds { faults: 1, pauses: 2, ..STARTED };
const EXITED: AllocationBounds = AllocationBounds { orders: 2, ..AllocationBounds::NONE };
const LEAVING: AllocationBounds = AllocationBounds { leaves: 1, ..STARTED };

fn spoiled(law: Law, bounds: AllocationBounds, spoil: AlterEffects<Allocation>) {
    tampered_is_found_out(law, bounds, AllocationWorld::new, TamperEffects(spoil));
}

/// Replaces each matching call with another one.
fn instead(
    mut effects: Vec<Effect<Allocation>>,
    other: impl Fn(&AllocationCall) -> Option<AllocationCall>,
) -> Vec<Effect<Allocation>> {
    for effect in &mut effects {
        if let Effect::Call { call, .. } = effect
            && let Some(other) = other(call)
        {
            *call = other;
        }
    }
    effects
}

const fn calls_out(effect: &Effect<Allocation>) -> bool {
    matches!(effect, Effect::Call { call: AllocationCall::Deregister(_), .. })
}

/// Registers the listening process without asking whether it is ready.
#[derive(Debug)]
struct TakesSocketsForReady;

impl Tamper<Allocation> for TakesSocketsForReady {
    fn effects(
        &self,
        machine: &Allocation,
        _: &Input<Allocation>,
        effects: Vec<Effect<Allocation>>,
    ) -> Vec<Effect<Allocation>> {
        let status = machine.view();
        let plugins = status.role.plugin_types().iter();
        let plugins = plugins.map(|kind| PluginKey::new(*kind, status.plugin.clone()));
        let register = Register {
            policy: None,
            plugins: plugins.collect(),
            allocation: status.allocation,
            socket: status.socket,
            provider: None,
            version: None,
            options: Arc::default(),
        };
        instead(effects, |call| {
            matches!(call, AllocationCall::Ask(Rpc::Probe))
                .then(|| AllocationCall::Register(register.clone()))
        })
    }
}

#[test]
fn a_supervisor_that_leaves_the_endpoint_out_breaks_a1() {
    spoiled(Law::A1, STARTED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Reply(_, AllocationAnswer::MakeReady(Ok(context))) = effect {
                context.environment.clear();
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_waits_longer_than_it_was_given_breaks_a2() {
    spoiled(Law::A2, TROUBLED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::StartTimer(AllocationTimer::HealthTimeout, at) = effect {
                *at = *at + Duration::from_secs(10);
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_lets_an_unhealthy_plugin_hang_on_breaks_a2() {
    let unhealthy = AllocationBounds { faults: 2, ..TROUBLED };
    spoiled(Law::A2, unhealthy, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Publish(AllocationNews::RestartRequested { .. })))
    });
}

#[test]
fn a_supervisor_that_has_a_plugin_restarted_as_soon_as_it_is_unhealthy_breaks_a2() {
    spoiled(Law::A2, TROUBLED, |_, mut effects| {
        let is_news = |effect: &Effect<Allocation>| matches!(effect, Effect::Publish(AllocationNews::Task(event)) if event.kind == TaskEventKind::Unhealthy);
        if effects.iter().any(is_news) {
            let reason = "it is unhealthy".to_owned();
            effects.push(Effect::Publish(AllocationNews::RestartRequested { reason }));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_gives_its_plugin_no_time_breaks_a2() {
    spoiled(Law::A2, TROUBLED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::StartTimer(AllocationTimer::HealthTimeout, at) = effect {
                *at = Timestamp::default();
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_asks_for_a_restart_twice_breaks_a2() {
    spoiled(Law::A2, TROUBLED, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Publish(news @ AllocationNews::RestartRequested { .. }) => {
                Some(Effect::Publish(news.clone()))
            }
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn a_supervisor_that_keeps_the_cause_to_itself_breaks_a2() {
    spoiled(Law::A2, TROUBLED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(AllocationNews::RestartRequested { reason }) = effect {
                *reason = "it was not ready in time".to_owned();
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_calls_a_socket_refused_that_is_only_late_breaks_a2() {
    spoiled(Law::A2, TROUBLED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(AllocationNews::Task(event)) = effect
                && event.kind == TaskEventKind::NotReadyInTime
            {
                event.kind = TaskEventKind::SocketRefused;
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_does_not_say_who_refused_its_socket_breaks_a2() {
    let refused = AllocationBounds { faults: 3, ..TROUBLED };
    spoiled(Law::A2, refused, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(AllocationNews::Task(event)) = effect
                && event.kind == TaskEventKind::SocketRefused
            {
                event.message = "the socket is refused".to_owned();
            }
        }
        effects
    });
}

#[test]
fn a_supervisor_that_takes_a_socket_for_a_plugin_that_is_ready_breaks_a3() {
    tampered_is_found_out(Law::A3, STARTED, AllocationWorld::new, TakesSocketsForReady);
}

#[test]
fn a_supervisor_that_probes_a_plugin_that_its_instance_probes_breaks_a3() {
    spoiled(Law::A3, STARTED, |_, effects| {
        instead(effects, |call| {
            matches!(call, AllocationCall::AskHealth).then_some(AllocationCall::Ask(Rpc::Probe))
        })
    });
}

#[test]
fn a_supervisor_that_waits_for_its_next_round_when_its_instance_has_news_breaks_a3() {
    spoiled(Law::A3, NEWS, |input, effects| {
        let is_news = matches!(input, Input::Asked { ask: AllocationAsk::NoteHealth(_), .. });
        let is_question = |effect: &Effect<Allocation>| matches!(effect, Effect::Call { .. });
        effects.into_iter().filter(|effect| !(is_news && is_question(effect))).collect()
    });
}

#[test]
fn a_supervisor_that_waits_for_its_pause_when_the_disk_is_sound_again_breaks_a3() {
    spoiled(Law::A3, AllocationBounds { faults: 1, ..NEWS }, |input, effects| {
        let is_news = matches!(input, Input::Asked { ask: AllocationAsk::NoteDisk(_), .. });
        let is_call = |effect: &Effect<Allocation>| matches!(effect, Effect::Call { .. });
        effects.into_iter().filter(|effect| !(is_news && is_call(effect))).collect()
    });
}

#[test]
fn a_supervisor_that_forgets_news_that_comes_while_it_asks_breaks_a3() {
    spoiled(Law::A3, NEWS, |input, effects| {
        let is_answer = matches!(input, Input::Returned { call: AllocationCall::AskHealth, .. });
        let asks_again = |effect: &Effect<Allocation>| {
            matches!(effect, Effect::Call { call: AllocationCall::AskHealth, .. })
        };
        effects.into_iter().filter(|effect| !(is_answer && asks_again(effect))).collect()
    });
}

#[test]
fn a_supervisor_that_waits_for_its_next_round_when_its_question_for_news_has_no_answer_breaks_a3() {
    spoiled(Law::A3, AllocationBounds { faults: 1, ..NEWS }, |input, effects| {
        let is_lost =
            matches!(input, Input::Returned { call: AllocationCall::AskHealth, outcome: Err(_), .. });
        changed(effects, |effect| match effect {
            Effect::StartTimer(AllocationTimer::Round, at) if is_lost => *at = *at + Duration::from_secs(30),
            _ => {}
        })
    });
}

#[test]
fn a_supervisor_that_tells_the_same_health_twice_breaks_a3() {
    spoiled(Law::A3, STARTED, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Publish(AllocationNews::Task(event)) => {
                Some(Effect::Publish(AllocationNews::Task(event.clone())))
            }
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn a_supervisor_that_does_not_deregister_a_task_that_has_ended_breaks_a4() {
    spoiled(Law::A4, EXITED, |_, effects| without(effects, calls_out));
}

#[test]
fn a_supervisor_that_waits_for_calls_before_it_deregisters_breaks_a4() {
    spoiled(Law::A4, LEAVING, |_, effects| {
        instead(effects, |call| {
            matches!(call, AllocationCall::Deregister(_)).then_some(AllocationCall::AwaitRetired)
        })
    });
}

#[test]
fn a_supervisor_that_removes_files_while_calls_are_in_flight_breaks_a4() {
    spoiled(Law::A4, LEAVING, |_, effects| {
        instead(effects, |call| {
            matches!(call, AllocationCall::AwaitRetired).then_some(AllocationCall::RemoveDirectory)
        })
    });
}

#[test]
fn a_supervisor_that_ends_before_its_files_are_removed_breaks_a4() {
    spoiled(Law::A4, LEAVING, |input, mut effects| {
        let is_over = |outcome: &_| matches!(outcome, Ok(AllocationOutcome::Retired(_)));
        if let Input::Returned { outcome, .. } = input
            && is_over(outcome)
        {
            effects.push(Effect::Stop(Ending::Normal));
        }
        effects
    });
}
