//! A registry with two or three allocations of one plugin: every order of register, update, deregister, restore, failed
//! write, crash and shutdown.

use callboard_simulation::{RegistryBounds, RegistryWorld};

use crate::{is_full, try_all};

/// Two allocations that each send two messages.
const TWO: RegistryBounds = RegistryBounds { allocations: 2, orders_each: 2, ..RegistryBounds::NONE };
/// Two allocations that each send one message.
const BRIEF: RegistryBounds = RegistryBounds { orders_each: 1, ..TWO };
/// Three allocations that each send one message.
const THREE: RegistryBounds = RegistryBounds { allocations: 3, ..BRIEF };

fn holds(what: &str, small: RegistryBounds, full: RegistryBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &RegistryWorld::new(bounds, None));
}

#[test]
fn every_order_of_starts_updates_and_stops_keeps_the_newest_one_active_r1_r3_r4() {
    holds("starts and stops", TWO, TWO);
    holds("starts and stops, three allocations", THREE, RegistryBounds { allocations: 3, ..TWO });
}

#[test]
fn every_order_with_one_who_waits_answers_it_once_r7() {
    holds(
        "waiting",
        RegistryBounds { waits: 1, pauses: 1, ..BRIEF },
        RegistryBounds { waits: 2, pauses: 1, ..TWO },
    );
}

#[test]
fn every_order_with_a_failed_write_tells_no_caller_what_does_not_hold_shell_1_shell_2() {
    holds("failed writes", RegistryBounds { failures: 1, ..BRIEF }, RegistryBounds { failures: 1, ..TWO });
    let three = RegistryBounds { failures: 1, ..THREE };
    holds("failed writes, three allocations", three, RegistryBounds { failures: 2, ..three });
}

#[test]
fn every_order_with_a_crash_costs_one_message_shell_4() {
    holds("crashes", RegistryBounds { crashes: 1, ..BRIEF }, RegistryBounds { crashes: 2, ..TWO });
    holds(
        "crashes and failed writes",
        RegistryBounds { crashes: 1, failures: 1, ..BRIEF },
        RegistryBounds { crashes: 1, failures: 1, ..TWO },
    );
}

#[test]
fn every_order_with_a_killed_host_keeps_the_order_r2_r8() {
    let small = RegistryBounds { restarts: 1, pauses: 1, ..BRIEF };
    holds("killed hosts", small, RegistryBounds { restarts: 1, pauses: 1, ..TWO });
    let three = RegistryBounds { restarts: 1, ..THREE };
    holds("killed hosts, three allocations", three, RegistryBounds { pauses: 1, ..three });
}

#[test]
fn every_order_with_identity_checks_routes_to_none_unproven_r8() {
    let small = RegistryBounds { restarts: 1, pauses: 1, are_provable: true, ..BRIEF };
    holds("identity checks", small, RegistryBounds { pauses: 2, ..small });
}

#[test]
fn every_order_with_a_monolith_is_all_or_nothing_r5() {
    let small = RegistryBounds { has_monolith: true, failures: 1, ..BRIEF };
    holds("monolith", small, RegistryBounds { has_monolith: true, failures: 1, ..TWO });
}

#[test]
fn every_order_with_a_shutdown_answers_every_caller_shell_7() {
    holds(
        "shutdown",
        RegistryBounds { stops: true, ..BRIEF },
        RegistryBounds { stops: true, crashes: 1, ..TWO },
    );
    let small = RegistryBounds { stops: true, failures: 1, crashes: 1, ..BRIEF };
    holds("shutdown in trouble", small, RegistryBounds { restarts: 1, ..small });
}

#[test]
fn every_order_of_reports_routes_to_the_newest_that_is_fit_r1a_r1b_r1c() {
    let small = RegistryBounds { reports: 3, ..BRIEF };
    holds("reports", small, RegistryBounds { reports: 4, pauses: 1, ..BRIEF });
    holds(
        "reports and calm times",
        RegistryBounds { reports: 3, pauses: 2, ..BRIEF },
        RegistryBounds { reports: 4, pauses: 2, ..TWO },
    );
    holds(
        "reports in trouble",
        RegistryBounds { reports: 2, failures: 1, crashes: 1, ..BRIEF },
        RegistryBounds { reports: 3, failures: 1, crashes: 1, ..BRIEF },
    );
}

#[test]
fn every_order_of_failures_in_a_loop_disturbs_a_healthy_one_no_more_r1c() {
    let small = RegistryBounds { reports: 5, pauses: 1, idles: 1, ..BRIEF };
    holds("failures in a loop", small, RegistryBounds { reports: 6, pauses: 2, ..small });
}

#[test]
fn every_order_of_takeovers_keeps_the_generations_that_were_not_given_out_r1d() {
    let small = RegistryBounds { reports: 3, ..THREE };
    holds("takeovers", small, RegistryBounds { renewals: 1, crashes: 1, ..small });
}

#[test]
fn every_order_of_questions_is_answered_as_it_is_at_present_r1() {
    let small = RegistryBounds { questions: 1, reports: 3, pauses: 1, has_policies: true, ..BRIEF };
    holds("questions", small, RegistryBounds { reports: 4, crashes: 1, ..small });
}

#[test]
fn every_order_of_policies_that_registrations_say_routes_as_the_newest_of_them_says_r1() {
    let twice = RegistryBounds { has_policies: true, ..TWO };
    holds("policies that change", twice, RegistryBounds { reports: 1, questions: 1, crashes: 1, ..twice });
    holds(
        "policies and a report",
        RegistryBounds { reports: 1, ..twice },
        RegistryBounds { failures: 1, ..twice },
    );
    let small = RegistryBounds { has_policies: true, reports: 2, ..BRIEF };
    holds("policies", small, RegistryBounds { has_policies: true, reports: 2, ..TWO });
    let in_trouble = RegistryBounds { reports: 1, failures: 1, crashes: 1, ..small };
    holds("policies in trouble", in_trouble, RegistryBounds { restarts: 1, ..in_trouble });
}

#[test]
fn every_order_of_new_generations_gives_none_twice_r1() {
    let killed = RegistryBounds { renewals: 1, restarts: 1, ..BRIEF };
    holds("new generations and a killed host", killed, RegistryBounds { reports: 1, ..killed });
    let small = RegistryBounds { reports: 1, renewals: 2, ..BRIEF };
    holds("new generations", small, RegistryBounds { reports: 2, ..small });
    holds(
        "new generations in trouble",
        RegistryBounds { failures: 1, crashes: 1, renewals: 1, reports: 0, ..BRIEF },
        RegistryBounds { failures: 1, crashes: 1, restarts: 1, ..small },
    );
}

#[test]
fn every_order_with_a_sick_disk_refuses_promises_and_holds_up_nothing_else_shell_1a() {
    let small = RegistryBounds { sicknesses: 1, reports: 1, ..BRIEF };
    holds("a sick disk", small, RegistryBounds { sicknesses: 2, reports: 2, renewals: 1, ..BRIEF });
    let small = RegistryBounds { sicknesses: 1, stops: true, waits: 1, ..BRIEF };
    holds("a sick disk at a stop", small, RegistryBounds { failures: 1, crashes: 1, ..small });
    let small = RegistryBounds { sicknesses: 1, crashes: 1, ..BRIEF };
    let whole = RegistryBounds { failures: 1, waits: 1, reports: 1, ..small };
    holds("a crash on a sick disk", small, whole);
    let small = RegistryBounds { sicknesses: 1, restarts: 1, ..BRIEF };
    holds("a sick disk and a killed host", small, RegistryBounds { reports: 1, pauses: 1, ..small });
    let small = RegistryBounds { sicknesses: 1, questions: 1, failures: 1, ..BRIEF };
    holds("questions on a sick disk", small, RegistryBounds { crashes: 1, reports: 1, ..small });
}

#[test]
fn every_order_with_identity_checks_on_a_sick_disk_holds_up_none_shell_1a_r8() {
    let small = RegistryBounds { sicknesses: 1, restarts: 1, pauses: 1, are_provable: true, ..BRIEF };
    holds("identity checks on a sick disk", small, RegistryBounds { pauses: 2, ..small });
}
