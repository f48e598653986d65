//! Searches broken machines of tasks: each is detected by the search, and by the law that forbids its fault.

use std::time::Duration;

use callboard::actors::driver::client::{TaskEnd, TaskExit, TaskId};
use callboard::actors::shell::{CallKey, Effect, Gate, Input, StopMode};
use callboard::actors::vocabulary::{Attempt, Timestamp};
use callboard::simulation::{AlterEffects, Law, Tamper, TamperEffects, TamperImage, TamperInput};
use callboard::tasks::{
    Found, Heard, RunKey, RunState, Started, Swept, TaskPhase, TaskReport, Tasks, TasksAnswer, TasksAsk,
    TasksCall, TasksChange, TasksImage, TasksNews, TasksOutcome, TasksTimer, Waited,
};
use callboard_simulation::tasks::{Manner, TasksBounds, TasksWorld};

use crate::{changed, tampered_is_found_out, without};

const NONE: TasksBounds = TasksBounds::NONE;
const UNABLE: Manner = Manner { recovers: false, ..NONE.manner };
const TIMEOUT: Duration = Duration::from_secs(60);

fn spoiled(law: Law, bounds: TasksBounds, spoil: AlterEffects<Tasks>) {
    tampered_is_found_out(law, bounds, TasksWorld::new, TamperEffects(spoil));
}

fn mishears(law: Law, bounds: TasksBounds, mishears: fn(Input<Tasks>) -> Option<Input<Tasks>>) {
    tampered_is_found_out(law, bounds, TasksWorld::new, TamperInput(mishears));
}

/// Replaces the outcome of a call.
fn misheard(input: Input<Tasks>, hear: impl FnOnce(TasksOutcome) -> TasksOutcome) -> Option<Input<Tasks>> {
    Some(match input {
        Input::Returned { key, call, outcome: Ok(outcome) } => {
            Input::Returned { key, call, outcome: Ok(hear(outcome)) }
        }
        other => other,
    })
}

/// The run of a start that has succeeded.
fn started(input: &Input<Tasks>) -> Option<(CallKey, RunKey)> {
    match input {
        Input::Returned {
            key,
            call: TasksCall::Start(run, _),
            outcome: Ok(TasksOutcome::Started(Started::Runs(_))),
        } => Some((*key, run.clone())),
        _ => None,
    }
}

fn ask(key: CallKey, call: TasksCall) -> Effect<Tasks> {
    Effect::Call { key, deadline: TIMEOUT, call }
}

fn proof() -> TasksOutcome {
    TasksOutcome::Inspected(Ok(Found::Nothing { words: "nothing".to_owned(), is_proof: true }))
}

// === One copy ===

#[test]
fn a_machine_that_believes_at_once_that_its_driver_knows_nothing_breaks_t1() {
    mishears(Law::T1, TasksBounds { cuts: 1, pauses: 2, ..NONE }, |input| {
        misheard(input, |outcome| match outcome {
            TasksOutcome::Inspected(Ok(Found::Nothing { .. })) => proof(),
            other => other,
        })
    });
}

#[test]
fn a_machine_of_tasks_that_takes_a_driver_that_is_not_there_for_one_that_knows_nothing_breaks_t1() {
    mishears(Law::T1, TasksBounds { kills: 1, pauses: 1, ..NONE }, |input| {
        misheard(input, |outcome| match outcome {
            TasksOutcome::Inspected(Err(_)) => proof(),
            other => other,
        })
    });
}

#[test]
fn a_machine_of_tasks_that_takes_a_failed_look_for_one_that_found_nothing_breaks_t1() {
    mishears(Law::T1, TasksBounds { faults: 2, ..NONE }, |input| {
        misheard(input, |outcome| match outcome {
            TasksOutcome::Swept(Err(_)) => TasksOutcome::Swept(Ok(Swept {
                has_killed: false,
                words: "nothing".to_owned(),
                unreleased: None,
            })),
            other => other,
        })
    });
}

/// Does not look for leftovers, and makes the driver stop the run instead. Such a stop is recognised by a grace that no other stop has.
#[derive(Debug)]
struct BelievesItsDriver;

const NO_STOP: Duration = Duration::from_secs(77_777);

impl Tamper<Tasks> for BelievesItsDriver {
    fn input(&self, input: Input<Tasks>) -> Option<Input<Tasks>> {
        Some(match input {
            Input::Returned { key, call: call @ TasksCall::Stop { grace: NO_STOP, .. }, .. } => {
                let words = "its driver is believed".to_owned();
                let swept = Swept { has_killed: false, words, unreleased: None };
                Input::Returned { key, call, outcome: Ok(TasksOutcome::Swept(Ok(swept))) }
            }
            other => other,
        })
    }

    fn effects(&self, _: &Tasks, _: &Input<Tasks>, effects: Vec<Effect<Tasks>>) -> Vec<Effect<Tasks>> {
        changed(effects, |effect| {
            if let Effect::Call { call, .. } = effect
                && let TasksCall::Sweep { run, .. } = call
            {
                *call = TasksCall::Stop { run: run.clone(), grace: NO_STOP, signal: String::new() };
            }
        })
    }
}

#[test]
fn a_machine_of_tasks_that_starts_again_what_cannot_be_recovered_and_looks_for_nothing_breaks_t1() {
    let bounds = TasksBounds { deaths: 1, pauses: 1, manner: UNABLE, ..NONE };
    tampered_is_found_out(Law::T1, bounds, TasksWorld::new, BelievesItsDriver);
}

#[test]
fn a_machine_of_tasks_that_forgets_the_run_of_an_earlier_host_breaks_t1() {
    let bounds = TasksBounds { kills: 1, ..NONE };
    let forgets = TamperImage(|mut image: TasksImage| {
        image.states.values_mut().for_each(|durable| durable.run = None);
        image
    });
    tampered_is_found_out(Law::T1, bounds, TasksWorld::new, forgets);
}

#[test]
fn a_machine_of_tasks_that_tells_its_driver_twice_to_start_breaks_t1() {
    spoiled(Law::T1, NONE, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Call { key, call: call @ TasksCall::Start(..), .. } => Some(ask(*key, call.clone())),
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

// === Never none ===

#[test]
fn a_machine_of_tasks_that_does_not_hear_that_its_driver_is_gone_breaks_t2() {
    mishears(Law::T2, TasksBounds { deaths: 1, ..NONE }, |input| match &input {
        Input::Returned { outcome: Ok(TasksOutcome::Waited(Err(_))), .. } => None,
        _ => Some(input),
    });
}

#[test]
fn a_machine_of_tasks_that_never_asks_a_second_time_breaks_t2() {
    spoiled(Law::T2, TasksBounds { deaths: 1, ..NONE }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(TasksTimer::Again(_), _)))
    });
}

#[test]
fn a_machine_of_tasks_that_gives_up_where_it_should_try_again_breaks_t2() {
    mishears(Law::T2, TasksBounds { faults: 1, ..NONE }, |input| {
        misheard(input, |outcome| match outcome {
            TasksOutcome::Started(Started::Retry(why)) => TasksOutcome::Started(Started::Fatal(why)),
            other => other,
        })
    });
}

#[test]
fn a_machine_of_tasks_that_takes_every_end_for_a_success_breaks_t2() {
    mishears(Law::T2, TasksBounds { exits: 1, ..NONE }, |input| {
        misheard(input, |outcome| match outcome {
            TasksOutcome::Waited(Ok(waited)) => {
                let exit = TaskExit { end: TaskEnd::Exited(0), ..waited.exit };
                TasksOutcome::Waited(Ok(Waited { exit, ..waited }))
            }
            other => other,
        })
    });
}

#[test]
fn a_machine_of_tasks_that_does_not_hear_that_it_runs_breaks_t2() {
    mishears(Law::T2, NONE, |input| if started(&input).is_some() { None } else { Some(input) });
}

#[test]
fn a_machine_of_tasks_that_never_looks_again_at_what_is_out_of_reach_breaks_t2() {
    let bounds = TasksBounds { cuts: 1, stops: 1, pauses: 3, ..NONE };
    spoiled(Law::T2, bounds, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(TasksTimer::LookAgain(_), _)))
    });
}

#[test]
fn a_machine_of_tasks_that_charges_a_restart_to_what_was_never_tried_breaks_t2() {
    spoiled(Law::T2, TasksBounds { refusals: 1, ..NONE }, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(TasksNews::TaskChanged(report)) = effect
                && report.phase == TaskPhase::Waiting
            {
                report.restarts += 1;
            }
        }
        effects
    });
}

// === Stopped is stopped ===

/// A report that the task of a run is in this phase.
fn told(run: &RunKey, phase: TaskPhase) -> Effect<Tasks> {
    Effect::Publish(TasksNews::TaskChanged(Box::new(TaskReport {
        name: run.name.clone(),
        driver: run.driver.clone(),
        phase,
        since: Timestamp::default(),
        attempt: Attempt::default(),
        id: Some(run.id.clone()),
        exit: None,
        restarts: 0,
        note: String::new(),
        events: vec![],
        events_told: 0,
        events_missed: 0,
        is_configured: true,
        due: None,
        stopping: None,
        ended: vec![],
    })))
}

#[test]
fn a_machine_of_tasks_that_takes_up_a_task_when_all_have_stopped_or_are_left_breaks_t3() {
    let bounds = TasksBounds { kills: 1, pauses: 1, ends: &[StopMode::Stop], ..NONE };
    spoiled(Law::T3, bounds, |input, mut effects| {
        // The machine has requested the end of its actor: no answer changes anything.
        if effects.is_empty() {
            effects.extend(started(input).map(|(_, run)| told(&run, TaskPhase::Stopping)));
        }
        effects
    });
}

#[test]
fn a_machine_of_tasks_that_leaves_them_although_its_host_is_to_stop_breaks_t3() {
    let bounds = TasksBounds { ends: &[StopMode::Stop, StopMode::Detach], ..NONE };
    mishears(Law::T3, bounds, |input| {
        Some(match input {
            Input::StopRequested(_) => Input::StopRequested(StopMode::Detach),
            other => other,
        })
    });
}

#[test]
fn a_machine_of_tasks_that_reports_what_it_is_to_stop_as_running_breaks_t3() {
    spoiled(Law::T3, TasksBounds { stops: 1, ..NONE }, |_, mut effects| {
        let stopped = effects.iter().find_map(|effect| match effect {
            Effect::Call { call: TasksCall::Stop { run, .. }, .. } => Some(run.clone()),
            _ => None,
        });
        effects.extend(stopped.map(|run| told(&run, TaskPhase::Running)));
        effects
    });
}

#[test]
fn a_machine_of_tasks_that_says_that_it_has_stopped_before_it_has_breaks_t3() {
    spoiled(Law::T3, TasksBounds { stops: 1, ..NONE }, |input, mut effects| {
        if let Input::Asked { id, ask: TasksAsk::StopTask(_), .. } = input {
            let steps = Vec::new();
            let stopped = callboard::agent::TaskStopped { steps };
            effects.push(Effect::Reply(*id, TasksAnswer::StopTask(Ok(stopped))));
        }
        effects
    });
}

#[test]
fn a_machine_of_tasks_that_ends_what_is_left_while_a_start_may_still_begin_breaks_t3() {
    spoiled(Law::T3, TasksBounds { stops: 1, kills: 1, pauses: 2, ..NONE }, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: TasksCall::Sweep { driver, .. }, .. } = effect {
                *driver = Heard::Answer;
            }
        })
    });
}

// === No wanted run is ended ===

#[test]
fn a_machine_of_tasks_that_ends_what_is_left_of_a_run_that_has_just_started_breaks_t4() {
    spoiled(Law::T4, NONE, |input, mut effects| {
        effects.extend(started(input).map(|(key, run)| {
            ask(key, TasksCall::Sweep { run, handle: None, evidence: Box::default(), driver: Heard::Answer })
        }));
        effects
    });
}

#[test]
fn a_machine_of_tasks_that_has_a_run_forgotten_instead_of_recovered_breaks_t4() {
    spoiled(Law::T4, TasksBounds { kills: 1, ..NONE }, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call, .. } = effect
                && let TasksCall::Recover(run, ..) = call
            {
                *call = TasksCall::Destroy(run.clone());
            }
        })
    });
}

// === The disk comes first ===

const fn intends(effect: &Effect<Tasks>) -> bool {
    matches!(effect, Effect::Persist(_, TasksChange::State(..)))
}

#[test]
fn a_machine_of_tasks_that_writes_no_intent_down_breaks_t5() {
    spoiled(Law::T5, NONE, |_, effects| without(effects, intends));
}

#[test]
fn a_machine_of_tasks_that_writes_its_intent_down_under_another_id_breaks_t5() {
    spoiled(Law::T5, NONE, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Persist(_, change) = effect
                && let TasksChange::State(_, durable) = &mut *change
                && let Some(run) = durable.run.as_mut().filter(|run| run.state == RunState::Intended)
            {
                run.id = TaskId::new("another/run/00000000").unwrap();
            }
        })
    });
}

// === A sick disk ===

/// Changes the gate of the writes of durable states.
fn gated(gate: Gate) -> impl Fn(Vec<Effect<Tasks>>) -> Vec<Effect<Tasks>> {
    move |effects| {
        changed(effects, |effect| {
            if let Effect::Persist(present, TasksChange::State(..)) = effect {
                *present = gate;
            }
        })
    }
}

#[test]
fn a_machine_of_tasks_whose_stops_wait_for_the_disk_breaks_shell_1a() {
    let bounds = TasksBounds { sicknesses: 1, stops: 1, ..NONE };
    spoiled(Law::Shell1a, bounds, |_, effects| gated(Gate::Everything)(effects));
}

#[test]
fn a_machine_of_tasks_that_starts_before_its_intent_is_on_disk_breaks_t5() {
    spoiled(Law::T5, NONE, |_, effects| gated(Gate::Nothing)(effects));
}

#[test]
fn a_machine_of_tasks_that_reports_a_run_before_its_handle_is_on_disk_breaks_shell_1() {
    spoiled(Law::Shell1, NONE, |input, mut effects| {
        effects.extend(started(input).map(|(_, run)| told(&run, TaskPhase::Running)));
        effects
    });
}

#[test]
fn a_machine_of_tasks_that_has_an_end_forgotten_before_it_is_on_disk_breaks_shell_1() {
    spoiled(Law::Shell1, TasksBounds { sicknesses: 1, exits: 1, ..NONE }, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Persist(gate, TasksChange::State(_, durable)) = effect
                && durable.run.as_ref().is_some_and(|run| matches!(run.state, RunState::Over { .. }))
            {
                *gate = Gate::Nothing;
            }
        })
    });
}
