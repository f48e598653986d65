//! Supervisors with deliberate faults: the search finds each under the law that forbids its fault.

use std::time::Duration;

use callboard_actors::shell::{Effect, Ending, Input, StopMode};
use callboard_actors::supervisor::{
    Call, Outcome, Restart, ShutdownReport, StopOutcome, Strategy, Supervisor, SupervisorAnswer,
    SupervisorAsk, SupervisorNews,
};
use callboard_actors::vocabulary::Timestamp;
use callboard_simulation::{AlterEffects, Law, SupervisionBounds, SupervisionWorld, TamperEffects};

use crate::{changed, tampered_is_found_out, without};

const FALLING: SupervisionBounds = SupervisionBounds { ends: 1, ..SupervisionBounds::NONE };
const ALL_FALLING: SupervisionBounds = SupervisionBounds { strategy: Strategy::OneForAll, ..FALLING };
const STOPPED: SupervisionBounds = SupervisionBounds { stops: &[StopMode::Stop], ..SupervisionBounds::NONE };
const STOPPING: SupervisionBounds = SupervisionBounds { faults: 1, ..STOPPED };

fn spoiled(law: Law, bounds: SupervisionBounds, spoil: AlterEffects<Supervisor>) {
    tampered_is_found_out(law, bounds, SupervisionWorld::new, TamperEffects(spoil));
}

fn starts(child: usize) -> Effect<Supervisor> {
    Effect::Call {
        key: Default::default(),
        deadline: Duration::from_secs(10),
        call: Call::StartChild { child },
    }
}

/// The calls, changed in this way.
fn calls(effects: Vec<Effect<Supervisor>>, change: impl Fn(&mut Call)) -> Vec<Effect<Supervisor>> {
    changed(effects, |effect| {
        if let Effect::Call { call, .. } = effect {
            change(call);
        }
    })
}

/// The report of a shutdown, changed in this way.
fn reports(
    effects: Vec<Effect<Supervisor>>,
    change: impl Fn(&mut ShutdownReport),
) -> Vec<Effect<Supervisor>> {
    changed(effects, |effect| {
        if let Effect::Reply(_, SupervisorAnswer::Shutdown(Ok(report))) = effect {
            change(report);
        }
    })
}

#[test]
fn a_supervisor_that_does_not_start_a_fallen_child_again_breaks_s1() {
    spoiled(Law::S1, FALLING, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(..)))
    });
}

#[test]
fn a_supervisor_that_forgets_what_its_children_left_breaks_s4() {
    let bounds = SupervisionBounds { may_leave: true, ends: 1, ..STOPPED };
    spoiled(Law::S4, bounds, |_, effects| {
        calls(effects, |call| {
            if let Call::StopChild { is_final, .. } = call {
                *is_final = false;
            }
        })
    });
}

#[test]
fn a_supervisor_that_starts_a_fallen_child_again_without_a_pause_breaks_s1() {
    spoiled(Law::S1, FALLING, |_, effects| {
        changed(effects, |effect| {
            if let Effect::StartTimer(_, at) = effect {
                *at = Timestamp::default();
            }
        })
    });
}

#[test]
fn a_supervisor_that_starts_a_child_again_that_had_finished_breaks_s1() {
    let bounds = SupervisionBounds { children: &[Restart::Transient], ..FALLING };
    spoiled(Law::S1, bounds, |input, mut effects| {
        if let Input::Returned { outcome: Ok(Outcome::Ended { child, ending: Ending::Normal }), .. } = input {
            effects.push(starts(*child));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_spares_the_siblings_of_a_fallen_child_breaks_s1() {
    spoiled(Law::S1, ALL_FALLING, |_, effects| {
        without(effects, |effect| {
            matches!(effect, Effect::Call { call: Call::StopChild { mode: StopMode::Detach, .. }, .. })
        })
    });
}

#[test]
fn a_supervisor_that_takes_siblings_along_that_share_no_fate_breaks_s1() {
    spoiled(Law::S1, FALLING, |input, mut effects| {
        if let Input::Returned { outcome: Ok(Outcome::Ended { child, .. }), .. } = input {
            let deadline = Duration::from_secs(5);
            let call =
                Call::StopChild { child: 1 - child, mode: StopMode::Detach, deadline, is_final: false };
            effects.push(Effect::Call { key: Default::default(), deadline, call });
        }
        effects
    });
}

#[test]
fn a_supervisor_that_does_not_watch_what_it_started_breaks_s1() {
    spoiled(Law::S1, FALLING, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Call { call: Call::AwaitEnd { .. }, .. }))
    });
}

#[test]
fn a_supervisor_that_gives_up_as_if_it_had_been_asked_to_breaks_s1() {
    let bounds = SupervisionBounds { limit: 0, ..FALLING };
    spoiled(Law::S1, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Stop(ending) = effect {
                *ending = Ending::Normal;
            }
        })
    });
}

#[test]
fn a_supervisor_that_gives_up_before_its_budget_is_spent_breaks_s1() {
    spoiled(Law::S1, FALLING, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Publish(news @ SupervisorNews::ChildRestarting { .. }) = effect {
                *news = SupervisorNews::Escalated { reason: "it has had enough".to_owned() };
            }
        })
    });
}

#[test]
fn a_supervisor_that_starts_all_at_once_breaks_s2() {
    spoiled(Law::S2, FALLING, |input, mut effects| {
        if let Input::Returned { outcome: Ok(Outcome::Found(_)), .. } = input {
            effects.push(starts(1));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_starts_a_second_life_beside_the_first_breaks_s2() {
    spoiled(Law::S2, FALLING, |input, mut effects| {
        if let Input::Returned { outcome: Ok(Outcome::Started { child, .. }), .. } = input {
            effects.push(starts(*child));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_stops_the_first_child_first_breaks_s2() {
    spoiled(Law::S2, STOPPED, |_, effects| {
        calls(effects, |call| {
            if let Call::StopChild { child, .. } = call {
                *child = 1 - *child;
            }
        })
    });
}

#[test]
fn a_supervisor_that_says_too_early_that_all_are_up_breaks_s2() {
    let bounds = SupervisionBounds { asks: 1, ..SupervisionBounds::NONE };
    spoiled(Law::S2, bounds, |input, mut effects| {
        if let Input::Asked { id, ask: SupervisorAsk::AwaitStarted(_), .. } = input {
            effects = vec![Effect::Reply(*id, SupervisorAnswer::AwaitStarted(Ok(())))];
        }
        effects
    });
}

#[test]
fn a_supervisor_that_starts_something_while_it_stops_breaks_s3() {
    spoiled(Law::S3, STOPPED, |input, mut effects| {
        if let Input::Returned { call: Call::StopChild { child, .. }, .. } = input {
            effects.push(starts(*child));
        }
        effects
    });
}

#[test]
fn a_supervisor_that_waits_for_its_children_as_long_as_they_like_breaks_s3() {
    spoiled(Law::S3, STOPPING, |_, effects| {
        calls(effects, |call| {
            if let Call::StopChild { deadline, .. } = call {
                *deadline = Duration::from_secs(3_600);
            }
        })
    });
}

#[test]
fn a_supervisor_that_is_told_to_stop_and_detaches_breaks_s3() {
    spoiled(Law::S3, STOPPING, |_, effects| {
        calls(effects, |call| {
            if let Call::StopChild { mode, .. } = call {
                *mode = StopMode::Detach;
            }
        })
    });
}

#[test]
fn a_supervisor_that_leaves_a_child_out_of_its_report_breaks_s3() {
    spoiled(Law::S3, STOPPING, |_, effects| {
        reports(effects, |report| {
            report.children.pop();
        })
    });
}

#[test]
fn a_supervisor_that_calls_a_child_stopped_that_it_killed_breaks_s3() {
    spoiled(Law::S3, STOPPING, |_, effects| {
        reports(effects, |report| {
            for child in &mut report.children {
                if let StopOutcome::Killed { .. } = child.ending {
                    child.ending = StopOutcome::Stopped;
                }
            }
        })
    });
}

#[test]
fn a_supervisor_that_ends_before_its_children_breaks_s4() {
    spoiled(Law::S4, STOPPING, |input, mut effects| {
        if let Input::StopRequested(_) = input {
            effects.retain(|effect| !matches!(effect, Effect::Call { .. }));
            effects.push(Effect::Stop(Ending::Normal));
        }
        effects
    });
}
