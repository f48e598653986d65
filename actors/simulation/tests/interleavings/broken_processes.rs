//! Owners of processes with deliberate faults: the search finds each under the law that forbids its fault.

use std::sync::Arc;

use callboard_actors::process::{Executable, ProcessSpec};
use callboard_actors::processes::{Processes, ProcessesAnswer, ProcessesCall, ProcessesChange};
use callboard_actors::shell::{Effect, Gate, StopMode};
use callboard_simulation::{AlterEffects, Law, ProcessesBounds, ProcessesWorld, TamperEffects, TamperImage};

use crate::{changed, tampered_is_found_out, without};

const LAUNCHED: ProcessesBounds = ProcessesBounds { launches: 1, ..ProcessesBounds::NONE };
const KILLED: ProcessesBounds = ProcessesBounds { launches: 2, kills: 1, ..ProcessesBounds::NONE };

fn spoiled(law: Law, bounds: ProcessesBounds, spoil: AlterEffects<Processes>) {
    tampered_is_found_out(law, bounds, ProcessesWorld::new, TamperEffects(spoil));
}

const fn keeps(effect: &Effect<Processes>) -> bool {
    matches!(effect, Effect::Persist(_, ProcessesChange::Keep(_)))
}

#[test]
fn an_owner_that_starts_a_process_before_it_is_written_down_breaks_prc_09() {
    spoiled(Law::Prc9, LAUNCHED, |_, mut effects| {
        effects.sort_by_key(keeps);
        effects
    });
}

#[test]
fn an_owner_that_writes_no_intent_down_breaks_prc_09() {
    spoiled(Law::Prc9, LAUNCHED, |_, effects| without(effects, keeps));
}

#[test]
fn an_owner_that_retires_a_record_when_its_process_is_ready_breaks_prc_09() {
    spoiled(Law::Prc9, LAUNCHED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Persist(_, change @ ProcessesChange::Keep(_)) = effect
                && let ProcessesChange::Keep(records) = &*change
                && let Some(record) = records.iter().find(|record| record.is_ready)
            {
                *change = ProcessesChange::Forget(record.name.clone());
            }
        }
        effects
    });
}

#[test]
fn an_owner_that_retires_no_record_breaks_prc_09() {
    spoiled(Law::Prc9, ProcessesBounds { exits: 1, ..LAUNCHED }, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Persist(_, ProcessesChange::Forget(_))))
    });
}

#[test]
fn an_owner_that_tells_that_a_process_is_ready_before_it_is_written_breaks_shell_1() {
    spoiled(Law::Shell1, LAUNCHED, |_, effects| {
        changed(effects, |effect| match effect {
            Effect::Persist(gate, ProcessesChange::Keep(records))
                if records.iter().any(|one| one.is_ready) =>
            {
                *gate = Gate::Nothing;
            }
            _ => {}
        })
    });
}

#[test]
fn an_owner_that_starts_two_actors_for_a_process_breaks_prc_04() {
    spoiled(Law::Prc4, LAUNCHED, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Call { key, deadline, call: ProcessesCall::Start { life, config } } => {
                let call = ProcessesCall::Start { life: life.next(), config: config.clone() };
                Some(Effect::Call { key: *key, deadline: *deadline, call })
            }
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn an_owner_that_launches_anew_what_it_has_to_look_for_breaks_prc_03() {
    spoiled(Law::Prc3, KILLED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: ProcessesCall::Start { config, .. }, .. } = effect {
                config.spec = Some(Arc::new(ProcessSpec::new(Executable::at("/bin/plugin"))));
            }
        }
        effects
    });
}

#[test]
fn an_owner_that_forgets_what_an_earlier_run_left_breaks_shell_2() {
    tampered_is_found_out(Law::Shell2, KILLED, ProcessesWorld::new, TamperImage(|_| Vec::new()));
}

#[test]
fn an_owner_that_sweeps_away_what_its_records_hold_breaks_prc_09() {
    spoiled(Law::Prc9, KILLED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: ProcessesCall::Sweep { known, .. }, .. } = effect {
                known.clear();
            }
        }
        effects
    });
}

#[test]
fn an_owner_that_answers_a_question_twice_breaks_shell_7() {
    let bounds = ProcessesBounds { orders: 1, ..ProcessesBounds::NONE };
    spoiled(Law::Shell7, bounds, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Reply(id, ProcessesAnswer::RecallProcess(answer)) => {
                Some(Effect::Reply(*id, ProcessesAnswer::RecallProcess(answer.clone())))
            }
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn an_owner_that_leaves_its_processes_running_when_it_stops_breaks_s4() {
    let bounds = ProcessesBounds { stops: &[StopMode::Stop], ..LAUNCHED };
    spoiled(Law::S4, bounds, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: ProcessesCall::Stop { mode, .. }, .. } = effect {
                *mode = StopMode::Detach;
            }
        }
        effects
    });
}

#[test]
fn an_owner_that_ends_its_processes_when_it_lets_go_of_them_breaks_s3() {
    let bounds = ProcessesBounds { stops: &[StopMode::Detach], ..LAUNCHED };
    spoiled(Law::S3, bounds, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Call { call: ProcessesCall::Stop { mode, .. }, .. } = effect {
                *mode = StopMode::Stop;
            }
        }
        effects
    });
}

#[test]
fn an_owner_whose_answers_about_ends_wait_for_the_disk_breaks_shell_1a() {
    let bounds = ProcessesBounds { sicknesses: 1, orders: 1, exits: 1, ..LAUNCHED };
    spoiled(Law::Shell1a, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Persist(gate, ProcessesChange::Forget(_)) = effect {
                *gate = Gate::Everything;
            }
        })
    });
}

#[test]
fn an_owner_whose_ends_wait_for_the_disk_breaks_shell_1a() {
    let bounds = ProcessesBounds { sicknesses: 1, orders: 1, ..LAUNCHED };
    spoiled(Law::Shell1a, bounds, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Persist(gate, ProcessesChange::Keep(_)) = effect {
                *gate = Gate::Everything;
            }
        })
    });
}
