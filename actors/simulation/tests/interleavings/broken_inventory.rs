//! Inventories with deliberate faults: the search finds each under the law that forbids its fault.

use std::rc::Rc;

use callboard_actors::inventory::{
    Inventory, InventoryAnswer, InventoryCall, InventoryNews, InventoryTimer, Source,
};
use callboard_actors::shell::{Effect, Input};
use callboard_actors::vocabulary::AllocationId;
use callboard_simulation::{AlterEffects, InventoryBounds, InventoryWorld, Law, TamperEffects, TamperInput};

use crate::{is_found_out, tampered_is_found_out, without};

const SMALL: InventoryBounds = InventoryBounds { words: 4, pauses: 2, ..InventoryBounds::NONE };

fn spoiled(law: Law, spoil: AlterEffects<Inventory>) {
    tampered_is_found_out(law, SMALL, InventoryWorld::new, TamperEffects(spoil));
}

#[test]
fn an_inventory_that_tells_the_first_fingerprints_twice_breaks_n1() {
    spoiled(Law::N1, |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Publish(news @ InventoryNews::First(..)) => Some(Effect::Publish(news.clone())),
            _ => None,
        });
        effects.extend(again);
        effects
    });
}

#[test]
fn an_inventory_that_does_not_hear_the_end_of_the_first_wait_breaks_n1() {
    let bounds = InventoryBounds { has_drivers: true, losses: 1, ..SMALL };
    let deaf = TamperInput(|input| {
        let is_end = matches!(input, Input::Elapsed(InventoryTimer::FirstWait | InventoryTimer::AskDrivers));
        (!is_end).then_some(input)
    });
    tampered_is_found_out(Law::N1, bounds, InventoryWorld::new, deaf);
}

#[test]
fn an_inventory_that_leaves_one_out_of_its_first_summary_breaks_n2() {
    spoiled(Law::N2, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(InventoryNews::First(_, summary)) = effect {
                summary.undetected.clear();
            }
        }
        effects
    });
}

#[test]
fn an_inventory_that_names_one_twice_in_its_first_summary_breaks_n2() {
    spoiled(Law::N2, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(InventoryNews::First(_, summary)) = effect {
                summary.undetected.extend(summary.healthy.clone());
            }
        }
        effects
    });
}

#[test]
fn an_inventory_that_answers_a_question_twice_breaks_shell_7() {
    let bounds = InventoryBounds { asks: 1, ..SMALL };
    let stammers: AlterEffects<Inventory> = |_, mut effects| {
        let again = effects.iter().find_map(|effect| match effect {
            Effect::Reply(id, InventoryAnswer::TakeInventory(view)) => {
                Some(Effect::Reply(*id, InventoryAnswer::TakeInventory(view.clone())))
            }
            _ => None,
        });
        effects.extend(again);
        effects
    };
    tampered_is_found_out(Law::Shell7, bounds, InventoryWorld::new, TamperEffects(stammers));
}

#[test]
fn an_inventory_that_removes_a_plugin_without_any_grace_breaks_hlt_08() {
    spoiled(Law::Hlt8, |_, mut effects| {
        for effect in &mut effects {
            if let Effect::StartTimer(InventoryTimer::Grace(_), at) = effect {
                *at = callboard_actors::vocabulary::Timestamp::default();
            }
        }
        effects
    });
}

#[test]
fn an_inventory_that_never_ends_a_grace_breaks_hlt_08() {
    spoiled(Law::Hlt8, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::StartTimer(InventoryTimer::Grace(_), _)))
    });
}

#[test]
fn an_inventory_that_keeps_a_removal_to_itself_breaks_hlt_08() {
    spoiled(Law::Hlt8, |_, effects| {
        without(effects, |effect| matches!(effect, Effect::Publish(InventoryNews::Removed(_))))
    });
}

fn id(name: &str) -> AllocationId {
    AllocationId::new(name).expect("it is a name")
}

const EXPECTING: InventoryBounds = InventoryBounds { expects: true, words: 2, pauses: 1, ..SMALL };

#[test]
fn an_inventory_that_takes_the_answer_of_one_allocation_for_that_of_all_breaks_n1() {
    // It knows only one of the two, and names both when it has waited long enough.
    let names_both: AlterEffects<Inventory> = |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(InventoryNews::First(_, summary)) = effect {
                let plugins = [&summary.no_answer, &summary.undetected].into_iter().flatten();
                let both = plugins.flat_map(|plugin| ["red", "blue"].map(|name| (plugin.clone(), id(name))));
                summary.missing.extend(both);
            }
        }
        effects
    };
    let knows_one = InventoryBounds { knows_one: true, ..EXPECTING };
    let broken = InventoryWorld::new(knows_one, Some(Rc::new(TamperEffects(names_both))));
    is_found_out(Law::N1, &broken, &InventoryWorld::new(EXPECTING, None));
}

#[test]
fn an_inventory_that_does_not_name_who_is_missing_breaks_n2() {
    let spoil: AlterEffects<Inventory> = |_, mut effects| {
        for effect in &mut effects {
            if let Effect::Publish(InventoryNews::First(_, summary)) = effect {
                summary.missing.clear();
            }
        }
        effects
    };
    tampered_is_found_out(Law::N2, EXPECTING, InventoryWorld::new, TamperEffects(spoil));
}

const DRIVEN: InventoryBounds = InventoryBounds { has_drivers: true, plugins: 0, ..SMALL };

#[test]
fn an_inventory_that_keeps_the_offer_of_a_driver_that_is_removed_breaks_hlt_08() {
    let spoil: AlterEffects<Inventory> = |input, effects| {
        let is_of_drivers = matches!(
            input,
            Input::Returned { call: InventoryCall::Follow { source: Source::Drivers, .. }, .. }
        );
        without(effects, |effect| {
            is_of_drivers && matches!(effect, Effect::Publish(InventoryNews::Removed(_)))
        })
    };
    tampered_is_found_out(Law::Hlt8, DRIVEN, InventoryWorld::new, TamperEffects(spoil));
}

#[test]
fn an_inventory_that_does_not_follow_the_drivers_after_the_first_wait_breaks_hlt_08() {
    let spoil: AlterEffects<Inventory> = |_, effects| {
        without(effects, |effect| {
            matches!(
                effect,
                Effect::Call { call: InventoryCall::Follow { source: Source::Drivers, afresh: false }, .. }
            )
        })
    };
    tampered_is_found_out(Law::Hlt8, DRIVEN, InventoryWorld::new, TamperEffects(spoil));
}
