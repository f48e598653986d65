//! One driver with its owner, its eventor, its process and the handler of a task: every order of exit, reattachment, ends of
//! streams, crashes, time and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_simulation::{Conduct, DriversBounds, DriversTampers, DriversWorld, Order};

use crate::{is_full, try_all};

const NONE: DriversBounds = DriversBounds::NONE;
const PROMPT: DriversBounds = DriversBounds { is_prompt: true, ..NONE };
/// A driver that serves, and whose task has a handler.
const SERVING: DriversBounds =
    DriversBounds { begin: &[Order::Add, Order::Handle], is_serving: true, ..DriversBounds::NONE };
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];
/// All ways except the good one.
const BAD: &[Conduct] = &[
    Conduct::Refuses,
    Conduct::IsSilent,
    Conduct::Declines,
    Conduct::Hangs,
    Conduct::IsUnwell,
    Conduct::Lingers,
];

/// In the larger bounds, messages of actors also reach their owner in any order and at any time.
fn holds(what: &str, small: DriversBounds, full: DriversBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &DriversWorld::new(bounds, DriversTampers::default()));
}

#[test]
fn every_order_of_a_start_and_a_stop_leaves_no_process_i6_shd_06() {
    let start = DriversBounds { stops: EITHER, ..NONE };
    holds(
        "a driver starts and stops",
        DriversBounds { is_prompt: true, ..start },
        DriversBounds { exits: 1, ..start },
    );
}

#[test]
fn every_order_of_bad_answers_leads_to_another_try_hlt_04_hlt_05() {
    let bad = DriversBounds { faults: (1, BAD), ..PROMPT };
    holds("a driver answers badly", bad, DriversBounds { faults: (2, BAD), pauses: 1, ..bad });
    let awaited = DriversBounds { begin: &[Order::Add, Order::Dispense], pauses: 1, ..bad };
    let more = DriversBounds { orders: (1, &[Order::Dispense, Order::Restart]), ..awaited };
    holds("a driver that is waited for answers badly", awaited, more);
    let stopped = DriversBounds { stops: &[StopMode::Stop], ..bad };
    holds("a driver answers badly and stops", stopped, DriversBounds { is_prompt: false, ..stopped });
}

#[test]
fn every_order_of_pings_without_an_answer_is_told_and_cuts_nothing_hlt_03() {
    let ways = &[Conduct::Hangs, Conduct::Refuses, Conduct::IsSilent];
    let pings = DriversBounds { pings: true, faults: (1, ways), pauses: 3, is_prompt: true, ..SERVING };
    holds("a driver does not answer", pings, DriversBounds { faults: (2, ways), pauses: 4, ..pings });
    let told = DriversBounds { faults: (2, &[Conduct::Hangs, Conduct::IsUnwell]), ..pings };
    holds("a driver tells of itself and does not answer", told, DriversBounds { pauses: 4, ..told });
    let ends = DriversBounds { exits: 1, stops: &[StopMode::Stop], pauses: 2, ..pings };
    holds("a driver does not answer, exits and stops", ends, DriversBounds { stops: EITHER, ..ends });
}

#[test]
fn every_order_of_exits_leads_to_one_process_again_prc_04_prc_05() {
    let exits = DriversBounds { exits: 1, pauses: 1, ..SERVING };
    holds("a driver's process exits", exits, DriversBounds { exits: 2, pauses: 2, ..SERVING });
    let stopped = DriversBounds { stops: &[StopMode::Stop], is_prompt: true, ..exits };
    let more = DriversBounds { stops: EITHER, is_prompt: false, ..stopped };
    holds("a driver's process exits and it stops", stopped, more);
}

#[test]
fn every_order_of_ends_of_streams_hands_each_event_over_once_evt_02_evt_03() {
    let ends = DriversBounds { faults: (1, &[Conduct::Refuses, Conduct::IsSilent]), events: 2, ..SERVING };
    let more = DriversBounds { faults: (2, &[Conduct::Refuses, Conduct::IsSilent]), pauses: 2, ..ends };
    holds("streams end", ends, more);
    let unnumbered = DriversBounds { keeps_positions: false, ..ends };
    holds("streams end, without positions", unnumbered, DriversBounds { keeps_positions: false, ..more });
    let stopped = DriversBounds { events: 1, stops: &[StopMode::Stop], ..ends };
    holds("streams end and it stops", stopped, DriversBounds { stops: EITHER, pauses: 1, ..ends });
}

#[test]
fn every_order_of_a_slow_handler_tells_it_what_it_missed_evt_01() {
    let slow = DriversBounds { journal: (2, true), events: 4, ..SERVING };
    holds("a slow handler", slow, DriversBounds { faults: (1, &[Conduct::Refuses]), events: 5, ..slow });
}

#[test]
fn every_order_of_handlers_that_come_late_and_go_has_each_event_once_evt_02() {
    let orders = &[Order::Announce, Order::Handle, Order::Forget];
    let late = DriversBounds { begin: &[Order::Add], orders: (2, orders), events: 2, ..SERVING };
    holds("handlers come and go", late, DriversBounds { orders: (3, orders), pauses: 1, ..late });
    let anew = DriversBounds { orders: (1, &[Order::Handle]), exits: 1, pauses: 1, is_prompt: true, ..late };
    holds("a handler comes after another process", anew, DriversBounds { pauses: 2, ..anew });
}

#[test]
fn every_order_of_a_killed_host_finds_the_process_and_its_events_again_prc_04_evt_02() {
    let killed = DriversBounds { kills: 1, survives: true, events: 2, is_prompt: true, ..SERVING };
    let more = DriversBounds { exits: 1, pauses: 1, is_prompt: false, ..killed };
    holds("a killed host", killed, more);
    let bound = DriversBounds { survives: false, events: 1, ..killed };
    holds("a killed host and a bound process", bound, DriversBounds { is_prompt: false, ..bound });
    let detached = DriversBounds { stops: &[StopMode::Detach], events: 1, ..killed };
    let more = DriversBounds { stops: EITHER, is_prompt: false, ..detached };
    holds("a host that detaches or is killed", detached, more);
}

#[test]
fn every_order_of_crashes_ends_well_reg_08_evt_03() {
    let crashes = DriversBounds { crashes: 1, events: 1, orders: (1, &[Order::Dispense]), ..SERVING };
    holds(
        "actors of drivers crash",
        crashes,
        DriversBounds { pauses: 1, events: 2, is_prompt: true, ..crashes },
    );
    let unnumbered = DriversBounds { keeps_positions: false, events: 2, is_prompt: true, ..crashes };
    holds("actors crash, without positions", unnumbered, DriversBounds { is_prompt: false, ..unnumbered });
    let starting = DriversBounds { crashes: 1, ..PROMPT };
    holds("they crash at the start", starting, DriversBounds { stops: EITHER, ..starting });
}

#[test]
fn every_order_of_orders_is_obeyed_and_answered_once_res_01_shell_7() {
    let orders = &[Order::Add, Order::Remove, Order::Restart, Order::Dispense];
    let said = DriversBounds { orders: (1, orders), ..PROMPT };
    holds("orders at the start", said, DriversBounds { orders: (2, orders), ..said });
    let serving = DriversBounds { orders: (1, orders), is_prompt: true, ..SERVING };
    let more = DriversBounds { orders: (2, orders), is_prompt: false, ..serving };
    holds("orders to who serves", serving, more);
    let restarted = DriversBounds { orders: (2, &[Order::Restart, Order::Dispense]), ..PROMPT };
    let refused = DriversBounds { faults: (1, &[Conduct::Declines]), ..restarted };
    holds("a restart of who is refused", refused, DriversBounds { is_prompt: false, ..refused });
    let fallen = DriversBounds { orders: (1, &[Order::Restart]), crashes: 1, is_prompt: true, ..SERVING };
    holds("a restart of who falls", fallen, DriversBounds { crashes: 2, is_prompt: false, ..fallen });
}

#[test]
fn every_order_of_a_removal_ends_what_was_watched_s4_evt_03() {
    let orders = &[Order::Remove];
    let removed = DriversBounds { orders: (1, orders), crashes: 1, events: 1, is_prompt: true, ..SERVING };
    holds("removed while actors crash", removed, DriversBounds { pauses: 1, is_prompt: false, ..removed });
    let again = DriversBounds { orders: (2, &[Order::Add, Order::Remove]), is_prompt: true, ..SERVING };
    let orders = &[Order::Add, Order::Remove, Order::Handle];
    holds("removed and added again", again, DriversBounds { orders: (3, orders), events: 1, ..again });
}
