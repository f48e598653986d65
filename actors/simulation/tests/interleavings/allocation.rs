//! The supervisor of one allocation with its task, plugin, files, registry and instances: every order of orders of the host, good, bad,
//! odd, late and missing answers, time, crashes of the supervisor, killed hosts, and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_simulation::{AllocationBounds, AllocationWorld};

use crate::{is_full, try_all};

const NONE: AllocationBounds = AllocationBounds::NONE;
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: AllocationBounds, full: AllocationBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &AllocationWorld::new(bounds, None));
}

#[test]
fn every_order_of_starts_and_exits_registers_what_is_ready_since_its_present_start_a1_a3() {
    let starts = AllocationBounds { orders: 3, ..NONE };
    holds("an allocation starts and exits", starts, AllocationBounds { faults: 1, ..starts });
}

#[test]
fn every_order_of_bad_and_missing_answers_ends_registered_or_told_of_a2_a3() {
    let answers = AllocationBounds { orders: 1, faults: 2, pauses: 2, ..NONE };
    let more = AllocationBounds { orders: 2, ..answers };
    holds("a plugin answers badly", answers, more);
    // Three refusals are the minimum that lasts long enough.
    let refused = AllocationBounds { faults: 3, ..answers };
    holds("a socket is refused", refused, AllocationBounds { leaves: 1, ..refused });
}

#[test]
fn every_order_of_a_stop_deregisters_first_and_removes_files_last_a4_s4() {
    let leaves = AllocationBounds { orders: 1, faults: 1, pauses: 1, leaves: 1, ..NONE };
    let more = AllocationBounds { faults: 2, pauses: 2, ..leaves };
    holds("an allocation leaves", leaves, more);
    let stops = AllocationBounds { orders: 1, leaves: 1, stops: EITHER, ..NONE };
    holds("a host stops its allocation", stops, AllocationBounds { faults: 1, pauses: 1, ..stops });
}

#[test]
fn every_order_of_falls_and_killed_hosts_takes_up_what_there_was_a3_a4() {
    let falls = AllocationBounds { orders: 2, falls: 1, leaves: 1, ..NONE };
    holds("a supervisor falls", falls, AllocationBounds { faults: 1, ..falls });
    let kills = AllocationBounds { orders: 2, kills: 1, ..NONE };
    holds("a host of an allocation is killed", kills, AllocationBounds { faults: 1, ..kills });
}

#[test]
fn every_order_of_news_of_its_instance_is_asked_for_at_once_a3() {
    let news = AllocationBounds { orders: 1, news: 2, faults: 1, ..NONE };
    let more = AllocationBounds { orders: 2, pauses: 1, leaves: 1, ..news };
    holds("the instance of an allocation has news", news, more);
}
