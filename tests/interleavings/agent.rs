//! Searches the agent with two allocations of one plugin, one of which replaces the other: every order of requests, answers about
//! health, processes that end by themselves, crashes of the machine, time and the end (F16). Also with an allocation that uses volumes:
//! every order of its claims, the ends of its processes and its releases (V7, V8).

use callboard::actors::shell::StopMode;
use callboard_simulation::agent::{AgentBounds, AgentWorld};

use crate::{is_full, try_all};

const NONE: AgentBounds = AgentBounds::NONE;
/// One replacement, whose new allocation may be healthy or not.
const ONE: AgentBounds = AgentBounds { replacements: 1, pauses: 2, ..NONE };
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: AgentBounds, full: AgentBounds) {
    try_all(what, &AgentWorld::new(if is_full() { full } else { small }, None));
}

#[test]
fn every_order_of_a_replacement_leaves_one_of_the_two_running_f16() {
    let twice = AgentBounds { replacements: 2, losses: 2, pauses: 4, ..ONE };
    holds("an allocation is replaced", AgentBounds { losses: 1, pauses: 3, ..ONE }, twice);
    let deaths = AgentBounds { deaths: 1, ..ONE };
    holds("processes end meanwhile", deaths, AgentBounds { deaths: 2, pauses: 4, ..deaths });
}

#[test]
fn every_order_of_requests_beside_a_replacement_stops_only_whom_they_concern_f16() {
    let starts = AgentBounds { starts: 1, ..ONE };
    holds("it is started by hand as well", starts, AgentBounds { starts: 2, pauses: 3, ..starts });
    let stops = AgentBounds { stops_asked: 1, ..ONE };
    holds("one is stopped by hand", stops, AgentBounds { stops_asked: 2, starts: 1, ..stops });
}

#[test]
fn every_order_of_crashes_and_an_end_of_the_agent_leaves_no_process_unknown_f16_s4_shell_4() {
    let crashes = AgentBounds { crashes: 1, ..ONE };
    holds("the agent crashes", crashes, AgentBounds { crashes: 2, replacements: 2, ..crashes });
    let ends = AgentBounds { stops: EITHER, ..ONE };
    holds("the host ends", ends, AgentBounds { crashes: 1, deaths: 1, ..ends });
}

#[test]
fn every_order_of_crashes_while_one_of_the_two_leaves_answers_as_it_was_decided_f16_shell_7() {
    let crash = AgentBounds { crashes: 1, losses: 1, pauses: 3, ..ONE };
    holds("a crash beside a replacement", crash, AgentBounds { crashes: 2, deaths: 1, ..crash });
}

#[test]
fn every_order_of_a_detach_leaves_what_survives_and_no_run_starts_a_second_process_prc_03_prc_04_s3() {
    let left = AgentBounds { stops: EITHER, survives: true, ..ONE };
    holds("processes survive the host", left, AgentBounds { crashes: 1, deaths: 1, ..left });
    let stops = AgentBounds { stops_asked: 1, starts: 1, replacements: 0, ..left };
    holds("some of them are stopped by hand", stops, AgentBounds { deaths: 1, crashes: 1, ..stops });
}

#[test]
fn every_order_of_restarts_and_of_processes_that_do_not_end_starts_no_second_one_prc_03() {
    let hangs = AgentBounds { restarts: 1, hangs: 1, pauses: 3, ..NONE };
    holds("a process hangs", hangs, AgentBounds { starts: 1, stops_asked: 1, ..hangs });
    let user = AgentBounds { volumes: true, ..hangs };
    holds("that of a user hangs", user, AgentBounds { crashes: 1, stops_asked: 1, ..user });
}

/// `old` uses a volume.
const USER: AgentBounds = AgentBounds { volumes: true, pauses: 2, ..NONE };

#[test]
fn every_order_of_claims_and_ends_starts_nothing_without_its_volumes_and_releases_them_last_v7_v8() {
    let refused = AgentBounds { refusals: 1, stops_asked: 1, starts: 1, ..USER };
    holds("volumes are refused", refused, AgentBounds { refusals: 2, starts: 2, pauses: 3, ..refused });
    let ends = AgentBounds { deaths: 1, hangs: 1, stops_asked: 1, pauses: 3, ..USER };
    holds("processes end or hang", ends, AgentBounds { deaths: 2, refusals: 1, stops_asked: 2, ..ends });
}

#[test]
fn every_order_of_crashes_and_an_end_of_the_host_keeps_or_releases_volumes_v7_v8_s4_shell_4() {
    let crashes = AgentBounds { crashes: 1, refusals: 1, stops_asked: 1, ..USER };
    holds("the agent of a user crashes", crashes, AgentBounds { crashes: 2, starts: 1, ..crashes });
    let stops = AgentBounds { stops: EITHER, refusals: 1, hangs: 1, ..USER };
    holds("the host of a user ends", stops, AgentBounds { crashes: 1, deaths: 1, ..stops });
    let left = AgentBounds { stops: EITHER, survives: true, stops_asked: 1, hangs: 1, ..USER };
    holds("users survive the host", left, AgentBounds { crashes: 1, deaths: 1, ..left });
}
