//! The inventory: every order of the notifications of the instances, gaps in them, the reports of the drivers, questions, crashes, time
//! and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_simulation::{InventoryBounds, InventoryWorld};

use crate::{is_full, try_all};

const NONE: InventoryBounds = InventoryBounds::NONE;

fn holds(what: &str, small: InventoryBounds, full: InventoryBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &InventoryWorld::new(bounds, None));
}

#[test]
fn every_order_of_first_fingerprints_tells_them_once_with_everybody_n1_n2() {
    let first = InventoryBounds { words: 2, asks: 1, pauses: 1, ..NONE };
    holds("first fingerprints", first, InventoryBounds { plugins: 2, words: 3, pauses: 2, ..first });
    let drivers = InventoryBounds { words: 1, has_drivers: true, losses: 1, ..first };
    holds("first fingerprints with drivers", drivers, InventoryBounds { words: 2, pauses: 2, ..drivers });
}

#[test]
fn every_order_of_comings_and_goings_tells_a_removal_once_and_a_restart_never_hlt_08() {
    let restarts = InventoryBounds { words: 4, pauses: 1, ..NONE };
    holds("restarts", restarts, InventoryBounds { words: 6, pauses: 2, ..restarts });
    let gaps = InventoryBounds { words: 2, losses: 1, pauses: 1, ..NONE };
    holds("restarts and gaps", gaps, InventoryBounds { words: 4, pauses: 2, ..gaps });
    let two = InventoryBounds { plugins: 2, words: 3, pauses: 1, ..NONE };
    holds("restarts of two plugins", two, InventoryBounds { words: 4, pauses: 2, ..two });
}

#[test]
fn every_order_of_what_drivers_report_offers_what_they_are_in_the_end_hlt_07_hlt_08() {
    let drivers = InventoryBounds { words: 4, pauses: 1, has_drivers: true, plugins: 0, ..NONE };
    holds("drivers", drivers, InventoryBounds { words: 6, pauses: 2, ..drivers });
    let losses = InventoryBounds { words: 2, losses: 1, crashes: 1, ..drivers };
    holds("drivers, gaps and crashes", losses, InventoryBounds { words: 4, losses: 2, ..losses });
}

#[test]
fn every_order_of_crashes_and_a_stop_ends_well_shell_4_s4() {
    let crashes = InventoryBounds { words: 2, asks: 1, pauses: 1, crashes: 1, ..NONE };
    holds("the inventory crashes", crashes, InventoryBounds { words: 3, ..crashes });
    let stops =
        InventoryBounds { words: 1, asks: 1, losses: 1, has_drivers: true, stops: &[StopMode::Stop], ..NONE };
    holds("the inventory stops", stops, InventoryBounds { words: 2, pauses: 1, ..stops });
}

#[test]
fn every_order_of_two_allocations_of_a_plugin_waits_for_both_and_names_who_is_missing_n1_n2() {
    let two = InventoryBounds { words: 3, pauses: 1, expects: true, ..NONE };
    holds("two allocations are expected", two, InventoryBounds { words: 5, ..two });
    let crashes = InventoryBounds { words: 2, crashes: 1, ..two };
    holds("they are expected, and the inventory crashes", crashes, InventoryBounds { words: 3, ..crashes });
}
