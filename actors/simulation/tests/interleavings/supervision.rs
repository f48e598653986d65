//! The supervisor: every order of starts, ends, crashes and stops of its children, of requests to it, of its own crashes, of time and
//! of its own end, for each of the three strategies.

use callboard_actors::shell::StopMode;
use callboard_actors::supervisor::{Restart, Strategy};
use callboard_simulation::{SupervisionBounds, SupervisionWorld};

use crate::{is_full, try_all};

const NONE: SupervisionBounds = SupervisionBounds::NONE;
const THREE: &[Restart] = &[Restart::Permanent, Restart::Transient, Restart::Temporary];
const TURNED: &[Restart] = &[Restart::Temporary, Restart::Permanent, Restart::Transient];
const PASSING: &[Restart] = &[Restart::Transient, Restart::Temporary];
const BOTH: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: SupervisionBounds, full: SupervisionBounds) {
    let bounds = if is_full() { full } else { small };
    for (name, strategy) in [
        ("one for one", Strategy::OneForOne),
        ("one for all", Strategy::OneForAll),
        ("rest for one", Strategy::RestForOne),
    ] {
        let bounds = SupervisionBounds { strategy, ..bounds };
        try_all(&format!("{what}, {name}"), &SupervisionWorld::new(bounds, None));
    }
}

#[test]
fn every_order_of_falls_brings_up_whom_it_should_until_the_budget_is_spent_s1() {
    let small = SupervisionBounds { ends: 2, limit: 1, ..NONE };
    holds("two children fall", small, SupervisionBounds { ends: 4, limit: 2, faults: 1, waits: 1, ..small });
    let three = SupervisionBounds { children: THREE, ends: 1, ..NONE };
    holds("three children end", three, SupervisionBounds { ends: 3, faults: 1, ..three });
    let turned = SupervisionBounds { children: TURNED, ends: 1, ..NONE };
    holds("three others end", turned, SupervisionBounds { ends: 3, faults: 1, ..turned });
}

#[test]
fn every_order_of_starts_that_fail_undoes_them_in_reverse_s2() {
    let small = SupervisionBounds { faults: 1, is_slow: true, ..NONE };
    holds("starts fail", small, SupervisionBounds { asks: 1, ends: 1, ..small });
    holds("three starts fail", small, SupervisionBounds { children: THREE, faults: 2, ..small });
}

#[test]
fn every_order_of_a_stop_ends_all_in_time_and_reports_it_s2_s3_s4() {
    let small = SupervisionBounds { ends: 1, stops: &[StopMode::Stop], ..NONE };
    holds("it is stopped", small, SupervisionBounds { stops: BOTH, faults: 1, ..small });
    let twice = SupervisionBounds { stops: BOTH, stops_max: 2, ..NONE };
    holds("it is stopped twice", twice, SupervisionBounds { is_slow: true, asks: 1, ..twice });
    let three = SupervisionBounds { children: THREE, stops: &[StopMode::Stop], ..NONE };
    holds("three children are stopped", three, SupervisionBounds { ends: 1, faults: 1, ..three });
    let trailing = SupervisionBounds { children: &[Restart::Permanent, Restart::Temporary], ..small };
    holds("one that has yet to start is stopped", trailing, SupervisionBounds { faults: 1, ..trailing });
    let slow = SupervisionBounds { is_slow: true, ..small };
    holds("one that is half way up is stopped", slow, slow);
}

#[test]
fn every_order_of_an_end_ends_also_what_fallen_children_left_s3_s4() {
    let small = SupervisionBounds { may_leave: true, ends: 1, stops: BOTH, stops_max: 2, ..NONE };
    holds("what is left is ended", small, SupervisionBounds { faults: 1, is_slow: true, ..small });
    let asked = SupervisionBounds { may_leave: true, asks: 1, stops: BOTH, ..NONE };
    holds("it is stopped in a restart", asked, SupervisionBounds { ends: 1, faults: 1, ..asked });
    let spent = SupervisionBounds { may_leave: true, ends: 2, limit: 1, ..NONE };
    holds("it gives up with children that leave something", spent, SupervisionBounds { faults: 1, ..spent });
    let three = SupervisionBounds { children: THREE, ends: 1, stops: &[StopMode::Stop], ..spent };
    holds("three children leave something", three, SupervisionBounds { faults: 1, ..three });
    let crashed = SupervisionBounds { crashes: 1, ends: 1, stops: &[StopMode::Stop], ..asked };
    holds("it crashes, and something is left", crashed, SupervisionBounds { faults: 1, ..crashed });
}

#[test]
fn every_order_of_requests_for_a_restart_starts_again_at_once_s1() {
    let small = SupervisionBounds { asks: 1, ..NONE };
    holds("children are restarted by hand", small, SupervisionBounds { ends: 1, asks: 2, ..small });
    let three = SupervisionBounds { children: THREE, ..small };
    holds("three children are restarted by hand", three, SupervisionBounds { ends: 1, faults: 1, ..three });
}

#[test]
fn every_order_of_crashes_of_a_supervisor_leaves_its_children_as_they_should_be_s1_shell_4() {
    let small = SupervisionBounds { crashes: 1, is_slow: true, ..NONE };
    holds("the supervisor crashes", small, SupervisionBounds { ends: 1, faults: 1, ..small });
    let others = SupervisionBounds { children: PASSING, crashes: 1, ends: 1, ..NONE };
    holds("it crashes, and others end", others, SupervisionBounds { children: THREE, ..others });
    let asked = SupervisionBounds { crashes: 1, asks: 1, ..NONE };
    holds("it crashes and is asked", asked, SupervisionBounds { children: PASSING, ends: 1, ..asked });
    let stops = SupervisionBounds { crashes: 1, stops: &[StopMode::Stop], ..NONE };
    holds("it crashes and is stopped", stops, SupervisionBounds { ends: 1, stops: BOTH, ..stops });
}
