//! Owners of the allocations with deliberate faults: the search finds each under the law that forbids its fault.

use std::time::Duration;

use callboard_actors::allocation::{AllocationNews, AllocationStopped, Task};
use callboard_actors::allocations::{
    Allocations, AllocationsAnswer, AllocationsAsk, AllocationsCall, AllocationsImage, AllocationsNews,
    AllocationsOutcome, AllocationsTimer, Order, StopAllocationError,
};
use callboard_actors::shell::{AskId, CallKey, Effect, Ending, Input, Machine, StopMode};
use callboard_actors::vocabulary::{AllocationId, Attempt};
use callboard_simulation::{
    AllocationsBounds, AllocationsWorld, AlterEffects, Law, Tamper, TamperEffects, TamperImage, TamperInput,
};

use crate::{changed, tampered_is_found_out, without};

const STARTED: AllocationsBounds = AllocationsBounds { orders: 2, ..AllocationsBounds::NONE };
const FALLEN: AllocationsBounds = AllocationsBounds { falls: 1, pauses: 1, ..STARTED };

fn spoiled(law: Law, bounds: AllocationsBounds, spoil: AlterEffects<Allocations>) {
    tampered_is_found_out(law, bounds, AllocationsWorld::new, TamperEffects(spoil));
}

const fn tells(effect: &Effect<Allocations>) -> bool {
    matches!(effect, Effect::Call { call: AllocationsCall::Tell { .. }, .. })
}

const fn restarts(input: &Input<Allocations>) -> bool {
    matches!(input, Input::Elapsed(AllocationsTimer::Restart(_)))
}

#[test]
fn an_owner_that_starts_a_supervisor_beside_the_one_there_is_breaks_a5() {
    spoiled(Law::A5, STARTED, |_, mut effects| {
        let second = effects.iter().find_map(|effect| match effect {
            Effect::Call { key, deadline, call: AllocationsCall::Start { life, config } } => {
                let call = AllocationsCall::Start { life: life.next(), config: config.clone() };
                Some(Effect::Call { key: *key, deadline: *deadline, call })
            }
            _ => None,
        });
        effects.extend(second);
        effects
    });
}

#[test]
fn an_owner_that_bears_a_supervisor_without_what_its_task_does_breaks_a5() {
    spoiled(Law::A5, FALLEN, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Call { call: AllocationsCall::Start { config, .. }, .. } = effect {
                config.task = Task::NotStarted;
            }
        })
    });
}

#[test]
fn an_owner_that_tells_a_new_supervisor_nothing_of_what_waits_breaks_a5() {
    spoiled(
        Law::A5,
        FALLEN,
        |input, effects| {
            if restarts(input) { without(effects, tells) } else { effects }
        },
    );
}

#[test]
fn an_owner_that_tells_what_waits_in_another_order_breaks_a5() {
    spoiled(Law::A5, FALLEN, |input, mut effects| {
        if restarts(input)
            && let Some(first) = effects.iter().position(tells)
        {
            effects[first..].reverse();
        }
        effects
    });
}

/// Does not pass on messages about one allocation while it knows another one.
#[derive(Debug)]
struct HoldsUp;

impl Tamper<Allocations> for HoldsUp {
    fn effects(
        &self,
        machine: &Allocations,
        input: &Input<Allocations>,
        effects: Vec<Effect<Allocations>>,
    ) -> Vec<Effect<Allocations>> {
        let is_started = matches!(input, Input::Asked { ask: AllocationsAsk::TaskStarted(_), .. });
        if is_started && machine.view().allocations.len() > 1 { without(effects, tells) } else { effects }
    }
}

#[test]
fn an_owner_that_lets_one_allocation_wait_for_another_breaks_a5() {
    let two = AllocationsBounds { allocations: 2, orders: 3, ..AllocationsBounds::NONE };
    tampered_is_found_out(Law::A5, two, AllocationsWorld::new, HoldsUp);
}

#[test]
fn an_owner_that_calls_an_allocation_stopped_at_once_breaks_a5() {
    let leaving = AllocationsBounds { leaves: 1, ..STARTED };
    spoiled(Law::A5, leaving, |input, mut effects| {
        if let Input::Asked { id, ask: AllocationsAsk::StopAllocation(_), .. } = input
            && effects.iter().any(tells)
        {
            let stopped = AllocationStopped { deregistered: true, remarks: Vec::new() };
            effects.push(Effect::Reply(*id, AllocationsAnswer::StopAllocation(Ok(stopped))));
        }
        effects
    });
}

#[test]
fn an_owner_that_lets_a_registered_one_go_since_it_could_not_be_prepared_breaks_a5() {
    let failing = AllocationsBounds { faults: 1, ..STARTED };
    spoiled(Law::A5, failing, |input, effects| {
        changed(effects, |effect| {
            if let (Input::Returned { .. }, Effect::Call { call, .. }) = (input, effect)
                && let AllocationsCall::Tell { allocation, life, order: Order::Stop, .. } = call
            {
                let (allocation, life) = (allocation.clone(), *life);
                *call = AllocationsCall::End { allocation, life, mode: StopMode::Detach };
            }
        })
    });
}

#[test]
fn an_owner_that_takes_other_contents_for_the_same_breaks_a5() {
    let odd = AllocationsBounds { oddities: 1, ..STARTED };
    spoiled(Law::A5, odd, |_, effects| {
        without(effects, |effect| {
            matches!(effect, Effect::Reply(_, AllocationsAnswer::PrepareAllocation(Err(_))))
        })
    });
}

#[test]
fn an_owner_that_does_not_hear_of_the_end_of_a_supervisor_breaks_a5() {
    let deaf = TamperInput(|input| {
        let is_ending = matches!(&input, Input::Returned { outcome: Ok(AllocationsOutcome::Ended(_)), .. });
        (!is_ending).then_some(input)
    });
    tampered_is_found_out(Law::A5, FALLEN, AllocationsWorld::new, deaf);
}

#[test]
fn an_owner_that_forgets_all_it_owns_when_it_crashes_breaks_a5() {
    let crashed = AllocationsBounds { crashes: 1, ..STARTED };
    let forgets = TamperImage(|mut image: AllocationsImage| {
        image.records.clear();
        image
    });
    tampered_is_found_out(Law::A5, crashed, AllocationsWorld::new, forgets);
}

/// A plugin that is registered, and a stop that waits for its volumes.
const WAITING: AllocationsBounds = AllocationsBounds { leaves: 1, news: 1, waits: 1, ..STARTED };

/// Requests a stop from the first supervisor of an allocation.
fn stops(allocation: &AllocationId, ask: AskId) -> Effect<Allocations> {
    let (allocation, life) = (allocation.clone(), Attempt::new(1));
    let key = CallKey { attempt: life, ..CallKey::default() };
    let call = AllocationsCall::Tell { allocation, life, ask, order: Order::Stop };
    Effect::Call { key, deadline: Duration::from_secs(60), call }
}

#[test]
fn an_owner_that_stops_a_plugin_without_asking_for_its_volumes_breaks_v13() {
    spoiled(Law::V13, WAITING, |input, effects| {
        changed(effects, |effect| {
            if let Input::Asked { id, ask: AllocationsAsk::StopAllocation(stop), .. } = input
                && matches!(effect, Effect::Call { call: AllocationsCall::AwaitUnused { .. }, .. })
            {
                *effect = stops(&stop.allocation, *id);
            }
        })
    });
}

#[test]
fn an_owner_that_stops_a_plugin_on_an_unclear_answer_breaks_v13() {
    spoiled(Law::V13, WAITING, |_, effects| {
        changed(effects, |effect| {
            if let Effect::Reply(id, AllocationsAnswer::StopAllocation(Err(error))) = effect
                && let StopAllocationError::Unclear { allocation, .. } = error
            {
                *effect = stops(allocation, *id);
            }
        })
    });
}

#[test]
fn an_owner_that_forgets_in_a_crash_that_a_plugin_was_registered_breaks_v13() {
    let crashing = AllocationsBounds { crashes: 1, ..WAITING };
    let forgets = TamperImage(|mut image: AllocationsImage| {
        image.records.values_mut().for_each(|record| record.is_registered = false);
        image
    });
    tampered_is_found_out(Law::V13, crashing, AllocationsWorld::new, forgets);
}

#[test]
fn an_owner_that_passes_on_what_a_former_supervisor_said_breaks_reg_08() {
    let telling = AllocationsBounds { news: 1, ..FALLEN };
    spoiled(Law::Reg8, telling, |input, effects| {
        let Input::Asked { ask: AllocationsAsk::AllocationReported(reported), .. } = input else {
            return effects;
        };
        let AllocationNews::Changed(status) = &reported.news else { return effects };
        let mut effects = without(effects, |effect| matches!(effect, Effect::Publish(_)));
        effects.push(Effect::Publish(AllocationsNews::Changed(status.clone())));
        effects
    });
}

#[test]
fn an_owner_that_ends_before_the_supervisors_of_its_allocations_breaks_s4() {
    let stopping = AllocationsBounds { stops: &[StopMode::Stop], ..STARTED };
    spoiled(Law::S4, stopping, |input, mut effects| {
        if matches!(input, Input::StopRequested(_)) {
            effects.retain(|effect| !matches!(effect, Effect::Call { .. }));
            effects.push(Effect::Stop(Ending::Normal));
        }
        effects
    });
}

#[test]
fn an_owner_that_keeps_the_answer_to_an_order_breaks_shell_7() {
    spoiled(Law::Shell7, STARTED, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Reply(_, AllocationsAnswer::TaskStarted(_))))
    });
}
