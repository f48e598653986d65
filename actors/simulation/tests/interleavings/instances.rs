//! One plugin with its instance and the supervisor of it: every order of takeovers, good, bad and late answers, crashes
//! and the request to stop.

use callboard_simulation::{Behaviour, InstancesBounds, InstancesWorld};

use crate::{is_full, try_all};

const ONE: InstancesBounds = InstancesBounds { routes: 1, ..InstancesBounds::NONE };
const TWO: InstancesBounds = InstancesBounds { routes: 2, ..InstancesBounds::NONE };
const THREE: InstancesBounds = InstancesBounds { routes: 3, ..InstancesBounds::NONE };

fn holds(what: &str, small: InstancesBounds, full: InstancesBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &InstancesWorld::new(bounds, None, None));
}

#[test]
fn every_order_of_takeovers_leaves_one_instance_of_the_active_one_i1() {
    holds("takeovers", TWO, THREE);
    holds("takeovers and time", InstancesBounds { pauses: 1, ..TWO }, InstancesBounds { pauses: 2, ..THREE });
}

#[test]
fn every_order_of_good_and_bad_answers_ends_healthy_i2_i3_i4_i5_i7() {
    let bad = InstancesBounds { faults: 1, behaviours: &Behaviour::ALL, ..ONE };
    holds("bad answers", bad, InstancesBounds { faults: 2, pauses: 1, ..bad });
    holds(
        "bad answers and a takeover",
        InstancesBounds { behaviours: &[Behaviour::Hangs], routes: 2, ..bad },
        InstancesBounds { faults: 1, ..TWO },
    );
}

#[test]
fn every_order_of_late_answers_and_a_stop_begins_nothing_new_i6_s4() {
    holds("stop", InstancesBounds { stops: true, ..TWO }, InstancesBounds { stops: true, pauses: 2, ..TWO });
    let bad = InstancesBounds { faults: 1, behaviours: &[Behaviour::Dies, Behaviour::Hangs], ..ONE };
    holds(
        "stop of who fails",
        InstancesBounds { stops: true, ..bad },
        InstancesBounds { stops: true, pauses: 1, routes: 2, ..bad },
    );
}

#[test]
fn every_order_of_crashes_of_either_side_ends_well_reg_08() {
    holds(
        "an instance crashes",
        InstancesBounds { crashes: 1, ..ONE },
        InstancesBounds { crashes: 1, ..TWO },
    );
    holds(
        "crashes and a stop",
        InstancesBounds { crashes: 1, stops: true, ..ONE },
        InstancesBounds { crashes: 2, stops: true, ..ONE },
    );
}

#[test]
fn every_order_of_questions_is_answered_once_with_what_is_shown_i2() {
    holds("questions", InstancesBounds { asks: 1, ..TWO }, InstancesBounds { asks: 2, ..TWO });
    holds(
        "questions and a stop",
        InstancesBounds { asks: 1, stops: true, ..ONE },
        InstancesBounds { asks: 2, stops: true, pauses: 1, ..ONE },
    );
}

#[test]
fn every_order_of_a_gate_opens_it_only_for_one_that_has_been_healthy_f16() {
    let small = InstancesBounds { gates: 1, pauses: 1, ..ONE };
    holds("a gate", small, InstancesBounds { pauses: 2, ..small });
    let bad = InstancesBounds { faults: 1, behaviours: &[Behaviour::Dies], ..small };
    holds(
        "a gate before one that fails",
        bad,
        InstancesBounds { behaviours: &[Behaviour::Dies, Behaviour::Hangs], ..bad },
    );
    let lost = InstancesBounds { hangups: 1, ..small };
    holds("a gate and a lost connection", lost, InstancesBounds { crashes: 1, ..lost });
    let stop = InstancesBounds { stops: true, ..small };
    holds("a gate and a stop", stop, InstancesBounds { crashes: 1, ..stop });
}

#[test]
fn every_order_of_lost_connections_ends_with_another_generation_i2() {
    let small = InstancesBounds { hangups: 1, ..ONE };
    holds("a lost connection", small, InstancesBounds { hangups: 2, pauses: 1, ..small });
    let takeover = InstancesBounds { hangups: 1, pauses: 1, ..ONE };
    holds("a lost connection and a takeover", takeover, InstancesBounds { routes: 2, ..takeover });
    holds(
        "a lost connection and a stop",
        InstancesBounds { stops: true, ..small },
        InstancesBounds { stops: true, pauses: 1, ..small },
    );
}

#[test]
fn every_order_of_crashes_of_an_instance_ends_with_another_generation_i2() {
    let small = InstancesBounds { crashes: 1, pauses: 1, ..ONE };
    holds("a crash", small, InstancesBounds { crashes: 2, ..small });
    holds(
        "a crash and a takeover",
        InstancesBounds { crashes: 1, ..TWO },
        InstancesBounds { routes: 2, ..small },
    );
    let lost = InstancesBounds { crashes: 1, hangups: 1, ..ONE };
    holds("a crash and a lost connection", lost, InstancesBounds { crashes: 2, ..lost });
    let gate = InstancesBounds { crashes: 1, gates: 1, ..ONE };
    holds("a crash and a gate", gate, InstancesBounds { hangups: 1, ..gate });
    let question = InstancesBounds { crashes: 1, asks: 1, ..ONE };
    holds("a crash and a question", question, InstancesBounds { asks: 2, ..question });
}

#[test]
fn every_order_of_a_new_owner_ends_with_another_generation_i2() {
    let small = InstancesBounds { successors: 1, pauses: 1, ..ONE };
    holds("a new owner", small, InstancesBounds { successors: 2, ..small });
    holds(
        "a new owner and a standby",
        InstancesBounds { successors: 1, standbys: 1, ..ONE },
        InstancesBounds { successors: 1, pauses: 1, ..TWO },
    );
    let crash = InstancesBounds { successors: 1, crashes: 1, ..ONE };
    holds("a new owner and a crash", crash, InstancesBounds { hangups: 1, ..crash });
    let question = InstancesBounds { successors: 1, asks: 1, ..ONE };
    holds("a new owner and a question", question, InstancesBounds { gates: 1, ..question });
    let stop = InstancesBounds { successors: 1, stops: true, ..ONE };
    holds("a new owner and a stop", stop, InstancesBounds { standbys: 1, ..stop });
}

#[test]
fn every_order_of_standbys_leaves_one_instance_of_each_registration_r1d() {
    let small = InstancesBounds { standbys: 2, ..ONE };
    holds("standbys", small, InstancesBounds { routes: 2, ..small });
    if is_full() {
        let lost = InstancesBounds { standbys: 2, hangups: 1, ..ONE };
        try_all("a standby and a lost connection", &InstancesWorld::new(lost, None, None));
        let bad = InstancesBounds { standbys: 1, faults: 1, behaviours: &[Behaviour::Dies], ..ONE };
        try_all("a standby that dies", &InstancesWorld::new(bad, None, None));
    }
}

/// One standby, which takes over and is replaced again. Further registrations meanwhile would be too many to try.
#[test]
fn every_order_of_a_takeover_and_back_keeps_what_was_not_given_out_r1d() {
    if is_full() {
        let there_and_back = InstancesBounds { standbys: 3, joins: Some(1), ..ONE };
        try_all("a takeover and back", &InstancesWorld::new(there_and_back, None, None));
    }
}
