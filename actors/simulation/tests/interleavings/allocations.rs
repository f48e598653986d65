//! The owner of the supervisors of allocations, with these as plain models: every order of the host's messages about one or two
//! allocations, their supervisors' actions, answers, notifications and ends, crashes of the owner, its successors, and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_simulation::{AllocationsBounds, AllocationsWorld};

use crate::{is_full, try_all};

const NONE: AllocationsBounds = AllocationsBounds::NONE;
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: AllocationsBounds, full: AllocationsBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &AllocationsWorld::new(bounds, None));
}

#[test]
fn every_order_of_starts_exits_and_stops_has_one_supervisor_that_knows_them_a5_reg_07() {
    let orders = AllocationsBounds { orders: 3, ..NONE };
    holds("allocations start and exit", orders, AllocationsBounds { orders: 5, ..orders });
    let stops = AllocationsBounds { orders: 2, leaves: 1, faults: 1, pauses: 1, ..NONE };
    holds("allocations leave", stops, AllocationsBounds { orders: 3, leaves: 2, ..stops });
    let odd = AllocationsBounds { orders: 2, oddities: 1, faults: 1, ..NONE };
    holds("allocations are adopted", odd, AllocationsBounds { orders: 3, oddities: 2, ..odd });
    let gone = AllocationsBounds { orders: 1, leaves: 1, ..odd };
    holds("adopted allocations leave", gone, AllocationsBounds { orders: 3, ..gone });
}

#[test]
fn every_order_of_falls_of_supervisors_starts_another_that_is_told_what_waits_a5() {
    let falls = AllocationsBounds { orders: 2, falls: 1, pauses: 1, ..NONE };
    holds("supervisors fall", falls, AllocationsBounds { orders: 3, falls: 2, news: 1, pauses: 2, ..falls });
    let leaving = AllocationsBounds { leaves: 1, ..falls };
    holds("supervisors fall and leave", leaving, AllocationsBounds { falls: 2, ..leaving });
    let given_up = AllocationsBounds { orders: 1, falls: 2, ..leaving };
    holds("supervisors are given up", given_up, AllocationsBounds { orders: 2, faults: 1, ..given_up });
}

#[test]
fn every_order_of_crashes_of_their_owner_costs_no_supervisor_a5_shell_4() {
    let crashes = AllocationsBounds { orders: 2, crashes: 1, ..NONE };
    holds("the owner of allocations crashes", crashes, AllocationsBounds { orders: 3, leaves: 1, ..crashes });
    let both = AllocationsBounds { falls: 1, ..crashes };
    holds("both crash", both, AllocationsBounds { leaves: 1, faults: 1, pauses: 1, ..both });
    let successors = AllocationsBounds { orders: 2, leaves: 1, successors: 1, kills: 1, ..NONE };
    holds("another owner", successors, AllocationsBounds { orders: 3, falls: 1, ..successors });
}

#[test]
fn every_order_of_two_allocations_keeps_them_apart_a5() {
    let two = AllocationsBounds { allocations: 2, orders: 3, ..NONE };
    holds("two allocations", two, AllocationsBounds { leaves: 1, falls: 1, ..two });
}

#[test]
fn every_order_of_a_stop_that_waits_for_the_volumes_of_its_plugin_keeps_what_is_needed_v13_shd_01() {
    let waits = AllocationsBounds { orders: 2, leaves: 1, news: 1, waits: 1, ..NONE };
    holds("a stop waits for volumes", waits, AllocationsBounds { orders: 3, leaves: 2, waits: 2, ..waits });
    let behind = AllocationsBounds { oddities: 1, ..waits };
    holds("more is said behind a stop that waits", behind, AllocationsBounds { orders: 3, ..behind });
    let crashes = AllocationsBounds { crashes: 1, ..waits };
    holds("the owner crashes while a stop waits", crashes, AllocationsBounds { leaves: 2, ..crashes });
    let falls = AllocationsBounds { falls: 1, pauses: 1, ..waits };
    holds("the supervisor falls while a stop waits", falls, AllocationsBounds { orders: 3, ..falls });
    let ends = AllocationsBounds { stops: EITHER, ..waits };
    holds("the host ends while a stop waits", ends, AllocationsBounds { leaves: 2, waits: 2, ..ends });
    let two = AllocationsBounds { allocations: 2, orders: 4, news: 2, ..waits };
    if is_full() {
        try_all("one of two carries on", &AllocationsWorld::new(two, None));
    }
}

#[test]
fn every_order_of_an_end_of_the_host_leaves_no_supervisor_s3_s4() {
    let stops = AllocationsBounds { orders: 2, faults: 1, stops: EITHER, ..NONE };
    holds("the owner of allocations stops", stops, AllocationsBounds { orders: 3, leaves: 1, ..stops });
    let succeeded =
        AllocationsBounds { orders: 2, faults: 1, successors: 1, stops: &[StopMode::Detach], ..NONE };
    holds("the owner lets go and comes again", succeeded, AllocationsBounds { leaves: 1, ..succeeded });
    let trouble = AllocationsBounds { orders: 1, falls: 1, crashes: 1, stops: EITHER, ..NONE };
    holds("it stops in trouble", trouble, AllocationsBounds { orders: 2, ..trouble });
}
