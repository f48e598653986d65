//! Registries with deliberate faults: the search finds each under the law that forbids its fault.

use std::time::Duration;

use callboard_actors::registry::{
    Active, ActiveBecause, ActiveReason, Describe, Description, Entry, Image, InactiveBecause, Register,
    Registered, Registry, RegistryAnswer, RegistryAsk, RegistryNews, RegistryTimer, Standby, Standing,
    StoredChange,
};
use callboard_actors::shell::{AskId, Effect, Gate, Input, Machine, StepContext};
use callboard_actors::vocabulary::{Generation, Moment, PluginKey, RegistrationNumber, RunNumber, Timestamp};
use callboard_simulation::{
    AlterEffects, Law, Left, RegistryBounds, RegistryWorld, Tamper, TamperEffects, TamperGates, TamperImage,
};

use crate::{tampered_is_found_out, without};

const SMALL: RegistryBounds = RegistryBounds { allocations: 2, orders_each: 2, ..RegistryBounds::NONE };
const RESTARTED: RegistryBounds = RegistryBounds { restarts: 1, ..SMALL };

fn spoiled(law: Law, bounds: RegistryBounds, spoil: AlterEffects<Registry>) {
    tampered_is_found_out(law, bounds, RegistryWorld::new, TamperEffects(spoil));
}

fn misread(law: Law, bounds: RegistryBounds, misread: fn(Image) -> Image) {
    tampered_is_found_out(law, bounds, RegistryWorld::new, TamperImage(misread));
}

/// A shell of the registry that holds this effect back until all earlier writes are on disk.
fn gates(bounds: RegistryBounds, is_held: fn(&Left<Registry>) -> bool) {
    tampered_is_found_out(Law::Shell1a, bounds, RegistryWorld::new, TamperGates(is_held));
}

const fn is_deregistration(input: &Input<Registry>) -> bool {
    matches!(input, Input::Asked { ask: RegistryAsk::Deregister(_), .. })
}

#[test]
fn a_registry_that_forgets_the_takeover_breaks_r1() {
    spoiled(Law::R1, SMALL, |input, effects| {
        let is_takeover = |effect: &_| matches!(effect, Effect::Publish(RegistryNews::ActiveChanged { .. }));
        if is_deregistration(input) { without(effects, is_takeover) } else { effects }
    });
}

#[test]
fn a_registry_that_does_not_heed_the_policy_of_a_registration_breaks_r1() {
    let bounds = RegistryBounds { has_policies: true, reports: 1, orders_each: 1, ..SMALL };
    spoiled(Law::R1, bounds, |input, effects| {
        let is_routed = |effect: &_| matches!(effect, Effect::Publish(RegistryNews::ActiveChanged { .. }));
        match input {
            Input::Asked { ask: RegistryAsk::Register(Register { policy: Some(_), .. }), .. } => {
                without(effects, is_routed)
            }
            _ => effects,
        }
    });
}

/// A registry that routes to a registration as soon as the registration changes.
fn rashly(mut effects: Vec<Effect<Registry>>, entry: &Entry) -> Vec<Effect<Registry>> {
    let Entry { registration, generation, since, .. } = entry.clone();
    let (plugin, reason) = (registration.plugin.clone(), ActiveReason::Registered);
    let to = Some(Active { generation, registration, since });
    effects.push(Effect::Publish(RegistryNews::ActiveChanged { plugin, from: None, to, reason }));
    effects
}

#[test]
fn a_registry_that_routes_to_the_latest_registration_breaks_r1a() {
    let bounds = RegistryBounds { reports: 1, orders_each: 1, ..SMALL };
    spoiled(Law::R1a, bounds, |input, effects| {
        let is_report = matches!(input, Input::Asked { ask: RegistryAsk::Register(_), .. });
        let came = effects.iter().find_map(|effect| match effect {
            Effect::Publish(RegistryNews::Registered(entry)) if is_report => Some(entry.clone()),
            _ => None,
        });
        let is_routed =
            |effect: &Effect<Registry>| matches!(effect, Effect::Publish(RegistryNews::ActiveChanged { .. }));
        match came.filter(|_| !effects.iter().any(is_routed)) {
            Some(entry) => rashly(effects, &entry),
            None => effects,
        }
    });
}

#[test]
fn a_registry_that_does_not_let_a_failed_one_wait_breaks_r1c() {
    let bounds = RegistryBounds { reports: 5, orders_each: 1, ..SMALL };
    tampered_is_found_out(Law::R1c, bounds, RegistryWorld::new, Impatient);
}

/// Routes to a registration in its calm time as soon as that is fit again.
#[derive(Debug)]
struct Impatient;

impl Tamper<Registry> for Impatient {
    fn effects(
        &self,
        machine: &Registry,
        input: &Input<Registry>,
        effects: Vec<Effect<Registry>>,
    ) -> Vec<Effect<Registry>> {
        let Input::Asked { id, asked_at, ask: RegistryAsk::ReportFitness(report) } = input else {
            return effects;
        };
        let is_it = |standby: &Standby| {
            matches!(standby.inactive_because, InactiveBecause::Calm { .. })
                && standby.entry.registration.allocation == report.allocation
        };
        let described = described(machine, *id, *asked_at, &report.plugin);
        match described.and_then(|description| description.standby.into_iter().find(is_it)) {
            Some(standby) => rashly(effects, &standby.entry),
            None => effects,
        }
    }
}

#[test]
fn a_registry_that_counts_failures_and_not_how_long_it_was_fit_breaks_r1c() {
    let bounds = RegistryBounds { reports: 6, pauses: 2, idles: 1, orders_each: 1, ..SMALL };
    tampered_is_found_out(Law::R1c, bounds, RegistryWorld::new, Forgetful);
}

/// Lets a failed registration wait for 20 s at most.
#[derive(Debug)]
struct Forgetful;

const FORGETFUL_WAITS: Duration = Duration::from_secs(20);

impl Tamper<Registry> for Forgetful {
    fn effects(
        &self,
        machine: &Registry,
        input: &Input<Registry>,
        mut effects: Vec<Effect<Registry>>,
    ) -> Vec<Effect<Registry>> {
        if let Input::Asked { asked_at, .. } = input {
            for effect in &mut effects {
                if let Effect::StartTimer(RegistryTimer::Calm(_), at) = effect {
                    *at = (*at).min(*asked_at + FORGETFUL_WAITS);
                }
            }
        }
        let Input::Elapsed(RegistryTimer::Calm(plugin)) = input else { return effects };
        let Some(described) = described(machine, AskId::new(0), Timestamp::default(), plugin) else {
            return effects;
        };
        let entries = machine.view().entries;
        let is_active = |entry: &&Entry| {
            described.active.as_ref().is_some_and(|active| active.registration == entry.registration)
        };
        let active = entries.iter().find(is_active).map(|entry| entry.number);
        let waits = |standby: &&Standby| {
            matches!(standby.inactive_because, InactiveBecause::Calm { .. })
                && Some(standby.entry.number) > active
        };
        match described.standby.iter().find(waits) {
            Some(standby) => rashly(effects, &standby.entry),
            None => effects,
        }
    }
}

/// The registry's description of a plugin.
fn described(machine: &Registry, id: AskId, now: Timestamp, plugin: &PluginKey) -> Option<Description> {
    let ask = RegistryAsk::Describe(Describe { plugin: plugin.clone() });
    let mut cx = StepContext::new(Moment { now, random: 0 });
    machine.clone().step(&Input::Asked { id, asked_at: now, ask }, &mut cx);
    cx.drain().find_map(|effect| match effect {
        Effect::Reply(_, RegistryAnswer::Describe(description)) => Some(*description),
        _ => None,
    })
}

#[test]
fn a_registry_that_renews_a_generation_that_was_not_given_out_breaks_r1d() {
    let bounds = RegistryBounds { reports: 2, orders_each: 1, ..SMALL };
    spoiled(Law::R1d, bounds, |input, mut effects| {
        let is_report = matches!(input, Input::Asked { ask: RegistryAsk::ReportFitness(_), .. });
        let takeover = effects.iter().position(|effect| {
            let is_change = |news: &RegistryNews| matches!(news, RegistryNews::ActiveChanged { .. });
            matches!(effect, Effect::Publish(news) if is_change(news))
        });
        if let Some(place) = takeover.filter(|_| is_report)
            && let Effect::Publish(RegistryNews::ActiveChanged { to: Some(to), .. }) = &effects[place]
        {
            let Active { generation, registration, since } = to.clone();
            let (number, standing) = (RegistrationNumber::new(1), Standing::Confirmed);
            let entry = Entry { number, registration, generation, standing, since };
            effects.insert(place, Effect::Publish(RegistryNews::Renewed(entry)));
        }
        effects
    });
}

#[test]
fn a_registry_that_explains_the_active_one_by_what_made_it_so_breaks_r1() {
    let bounds = RegistryBounds { questions: 1, reports: 1, orders_each: 1, ..SMALL };
    spoiled(Law::R1, bounds, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Reply(_, RegistryAnswer::Describe(description)) = effect {
                description.active_because = description.active_because.map(|_| ActiveBecause::Awaited);
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_keeps_a_stale_generation_breaks_r1() {
    spoiled(Law::R1, SMALL, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(RegistryNews::ActiveChanged { from: Some(from), to: Some(to), .. }) =
                effect
            {
                to.generation = from.generation;
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_gives_generations_out_again_after_a_restart_breaks_r1() {
    spoiled(Law::R1, RESTARTED, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(RegistryNews::ActiveChanged { to: Some(to), .. }) = effect {
                to.generation = Generation::new(to.generation.get() % 4_096);
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_reorders_on_a_restart_breaks_r2() {
    misread(Law::R2, RESTARTED, |mut image| {
        let numbers: Vec<RegistrationNumber> = image.stored.iter().map(|row| row.number).collect();
        for (row, number) in image.stored.iter_mut().zip(numbers.into_iter().rev()) {
            row.number = number;
        }
        image
    });
}

#[test]
fn a_registry_that_forgets_how_far_it_has_counted_breaks_r1() {
    misread(Law::R1, RESTARTED, |image| Image { ceiling: 0, ..image });
}

#[test]
fn a_registry_that_drops_an_update_breaks_r3() {
    spoiled(Law::R3, SMALL, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Publish(RegistryNews::Updated(_))))
    });
}

#[test]
fn a_registry_that_gives_another_generation_for_another_policy_breaks_r3() {
    let bounds = RegistryBounds { has_policies: true, ..SMALL };
    spoiled(Law::R3, bounds, |input, mut effects| {
        let is_said = matches!(
            input,
            Input::Asked { ask: RegistryAsk::Register(Register { policy: Some(_), .. }), .. }
        );
        for effect in &mut effects {
            if let Effect::Publish(RegistryNews::Updated(entry)) = effect
                && is_said
                && !entry.registration.socket.as_str().contains("-new")
            {
                entry.generation = Generation::new(entry.generation.get() + 100);
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_calls_an_update_unchanged_breaks_r3() {
    spoiled(Law::R3, SMALL, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Reply(_, RegistryAnswer::Register(Ok(said @ Registered::Updated))) = effect {
                *said = Registered::Unchanged;
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_writes_at_the_deregistration_of_the_unknown_breaks_r4() {
    spoiled(Law::R4, SMALL, |input, mut effects| {
        if is_deregistration(input) && effects.len() == 1 {
            let delete = vec![RegistrationNumber::new(1)];
            effects.insert(
                0,
                Effect::Persist(
                    Gate::Nothing,
                    StoredChange { delete: delete.into(), ..StoredChange::default() },
                ),
            );
        }
        effects
    });
}

#[test]
fn a_registry_that_writes_half_a_monolith_breaks_r5() {
    let monolith = RegistryBounds { has_monolith: true, ..SMALL };
    spoiled(Law::R5, monolith, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Persist(_, change) = effect {
                change.put.truncate(1);
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_tells_everything_twice_breaks_r6() {
    spoiled(Law::R6, SMALL, |_, effects| {
        let twice = effects.into_iter().flat_map(|effect| match effect {
            Effect::Publish(news) => vec![Effect::Publish(news.clone()), Effect::Publish(news)],
            other => vec![other],
        });
        twice.collect()
    });
}

#[test]
fn a_registry_that_leaves_those_waiting_who_waited_for_the_plugin_breaks_r7() {
    let waiting = RegistryBounds { waits: 1, ..SMALL };
    spoiled(Law::R7, waiting, |input, effects| {
        let is_theirs = matches!(input, Input::Asked { ask: RegistryAsk::Register(_), .. });
        let is_awakening = |effect: &_| matches!(effect, Effect::Reply(_, RegistryAnswer::WaitForPlugin(_)));
        if is_theirs { without(effects, is_awakening) } else { effects }
    });
}

#[test]
fn a_registry_that_trusts_what_it_restored_breaks_r8() {
    misread(Law::R8, RESTARTED, |mut image| {
        image.stored.iter_mut().for_each(|row| row.confirmed_in = image.run);
        image
    });
}

#[test]
fn a_registry_that_takes_one_too_many_breaks_r9() {
    // This world holds at most three.
    let full = RegistryBounds { allocations: 4, orders_each: 1, ..RegistryBounds::NONE };
    spoiled(Law::R9, full, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Reply(_, RegistryAnswer::Register(said @ Err(_))) = effect {
                *said = Ok(Registered::New);
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_tells_before_it_writes_breaks_shell_1() {
    spoiled(Law::Shell1, SMALL, |_, mut effects| {
        effects.sort_by_key(|effect| !matches!(effect, Effect::Publish(_)));
        effects
    });
}

#[test]
fn a_registry_that_answers_before_it_writes_breaks_shell_1() {
    spoiled(Law::Shell1, SMALL, |_, mut effects| {
        effects.sort_by_key(|effect| !matches!(effect, Effect::Reply(..)));
        effects
    });
}

/// Gives all writes this gate.
fn gated(mut effects: Vec<Effect<Registry>>, due: Gate) -> Vec<Effect<Registry>> {
    for effect in &mut effects {
        if let Effect::Persist(gate, _) = effect {
            *gate = due;
        }
    }
    effects
}

#[test]
fn a_registry_that_promises_what_is_not_on_disk_breaks_shell_1() {
    spoiled(Law::Shell1, SMALL, |_, effects| gated(effects, Gate::Nothing));
}

#[test]
fn a_registry_whose_takeover_waits_for_the_disk_breaks_shell_1a() {
    let bounds = RegistryBounds { reports: 2, orders_each: 1, ..SMALL };
    spoiled(Law::Shell1a, bounds, |_, effects| gated(effects, Gate::Everything));
}

#[test]
fn a_registry_whose_deregistrations_wait_for_the_disk_breaks_shell_1a() {
    spoiled(Law::Shell1a, SMALL, |input, effects| {
        if is_deregistration(input) { gated(effects, Gate::Promises) } else { effects }
    });
}

#[test]
fn a_registry_whose_answers_to_questions_wait_for_the_disk_breaks_shell_1a() {
    let bounds = RegistryBounds { sicknesses: 1, questions: 1, orders_each: 1, ..SMALL };
    gates(
        bounds,
        |left| matches!(left, Left::Answer(_, answer) if matches!(**answer, RegistryAnswer::List(_))),
    );
}

#[test]
fn a_registry_whose_probes_wait_for_the_disk_breaks_shell_1a() {
    let bounds = RegistryBounds { sicknesses: 1, pauses: 1, orders_each: 1, are_provable: true, ..RESTARTED };
    gates(bounds, |left| matches!(left, Left::Call { .. }));
}

#[test]
fn a_registry_that_does_not_write_breaks_shell_1() {
    spoiled(Law::Shell1, SMALL, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Persist(..)))
    });
}

#[test]
fn a_registry_that_loses_a_row_on_reading_breaks_shell_2() {
    misread(Law::Shell2, RegistryBounds { failures: 1, ..SMALL }, |mut image| {
        image.stored.pop();
        image
    });
}

#[test]
fn a_registry_that_answers_no_caller_breaks_shell_7() {
    spoiled(Law::Shell7, SMALL, |_, effects| without(effects, |effect| matches!(effect, Effect::Reply(..))));
}

/// Only the run in which a registration was confirmed counts.
#[test]
fn a_registry_that_confirms_in_another_run_breaks_r3() {
    spoiled(Law::R3, SMALL, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Persist(_, change) = effect {
                change.put.iter_mut().for_each(|row| row.confirmed_in = RunNumber::new(0));
            }
        }
        effects
    });
}

#[test]
fn a_registry_that_panics_over_a_deregistration_breaks_shell_4() {
    spoiled(Law::Shell4, SMALL, |input, effects| {
        assert!(!is_deregistration(input), "it does not know what to do with a deregistration");
        effects
    });
}

#[test]
fn a_registry_that_never_ends_the_grace_breaks_r8() {
    spoiled(Law::R8, RESTARTED, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(RegistryTimer::GraceOver, _)))
    });
}
