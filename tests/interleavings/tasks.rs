//! Searches the tasks of a host with their disk, one driver and its processes: every order of starts that are slow, fail, are cut off and
//! continue, drivers that die and cannot recover, killed hosts, failed writes, crashes, ends, time, and the requests of people.

use callboard::actors::shell::StopMode;
use callboard_simulation::tasks::{Manner, TasksBounds, TasksWorld};

use crate::{is_full, try_all};

const NONE: TasksBounds = TasksBounds::NONE;
/// A driver that recovers its tasks and outlives its host.
const ABLE: Manner = Manner { recovers: true, survives: true, carries: false };
/// A driver that cannot recover anything.
const UNABLE: Manner = Manner { recovers: false, ..ABLE };
/// A driver that ends with its host; its tasks do not.
const BOUND: Manner = Manner { survives: false, ..ABLE };
/// A driver with its tasks in its own process.
const CARRIES: Manner = Manner { carries: true, ..UNABLE };
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: TasksBounds, full: TasksBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &TasksWorld::new(bounds, None));
}

/// The same for drivers of these kinds.
fn holds_with(manners: &[(&str, Manner)], what: &str, small: TasksBounds, full: TasksBounds) {
    for (name, manner) in manners {
        let of = |bounds| TasksBounds { manner: *manner, ..bounds };
        holds(&format!("{what}, {name}"), of(small), of(full));
    }
}

const ALL: &[(&str, Manner)] =
    &[("recovers", ABLE), ("cannot recover", UNABLE), ("bound", BOUND), ("carries its tasks", CARRIES)];

#[test]
fn every_order_of_drivers_that_die_leaves_one_copy_of_a_task_t1_t2() {
    let deaths = TasksBounds { deaths: 1, pauses: 1, ..NONE };
    let more = TasksBounds { deaths: 2, exits: 1, pauses: 2, ..NONE };
    holds_with(ALL, "a driver dies", deaths, more);
    let exits = TasksBounds { exits: 1, deaths: 1, ..NONE };
    holds_with(ALL, "a task ends and its driver dies", exits, TasksBounds { exits: 2, pauses: 2, ..exits });
}

#[test]
fn every_order_of_drivers_that_are_refused_leaves_one_copy_of_a_task_t1_t2_t3() {
    let refused = TasksBounds { refusals: 1, stops: 1, pauses: 1, ..NONE };
    holds_with(ALL, "a driver is refused", refused, TasksBounds { deaths: 1, pauses: 2, ..refused });
    let killed = TasksBounds { refusals: 1, deaths: 1, kills: 1, ..NONE };
    let more = TasksBounds { cuts: 1, pauses: 2, ..killed };
    holds_with(ALL, "a driver is refused and its host is killed", killed, more);
}

#[test]
fn every_order_of_starts_that_fail_or_are_cut_off_leaves_one_copy_of_a_task_t1_t2() {
    let cuts = TasksBounds { cuts: 1, pauses: 2, ..NONE };
    holds_with(
        &ALL[..2],
        "a start is cut off and goes on",
        cuts,
        TasksBounds { deaths: 1, pauses: 4, ..cuts },
    );
    let faults = TasksBounds { faults: 1, deaths: 1, ..NONE };
    let more = TasksBounds { faults: 2, cuts: 1, pauses: 2, ..faults };
    holds_with(&ALL[..2], "starts and answers fail", faults, more);
}

#[test]
fn every_order_of_a_killed_host_leaves_one_copy_of_a_task_t1_t5() {
    let kills = TasksBounds { kills: 1, pauses: 1, ..NONE };
    let more = TasksBounds { kills: 2, deaths: 1, pauses: 2, ..NONE };
    holds_with(ALL, "a host of tasks is killed", kills, more);
}

#[test]
fn every_order_of_stops_leaves_nothing_of_a_stopped_task_t3_t4() {
    let stops = TasksBounds { stops: 1, pauses: 1, ..NONE };
    let deaths = TasksBounds { stops: 1, deaths: 1, pauses: 2, ..NONE };
    holds_with(ALL, "a task is stopped and its driver dies", deaths, TasksBounds { starts: 1, ..deaths });
    let cuts = TasksBounds { cuts: 1, ..stops };
    holds_with(
        &ALL[..2],
        "a task is stopped in its start",
        cuts,
        TasksBounds { pauses: 3, kills: 1, ..cuts },
    );
    let again = TasksBounds { starts: 1, exits: 1, ..stops };
    holds("a task is stopped and started again", again, TasksBounds { starts: 2, faults: 1, ..again });
}

#[test]
fn every_order_of_crashes_failed_writes_and_the_end_of_the_host_keeps_tasks_and_disk_together_t2_t5() {
    let crashes = TasksBounds { crashes: 1, pauses: 1, ..NONE };
    holds_with(&ALL[..2], "the tasks crash", crashes, TasksBounds { crashes: 2, deaths: 1, ..crashes });
    let failures = TasksBounds { failures: 1, pauses: 1, ..NONE };
    holds_with(
        &ALL[..2],
        "writes of tasks fail",
        failures,
        TasksBounds { failures: 2, exits: 1, ..failures },
    );
    let ends = TasksBounds { deaths: 1, ends: EITHER, ..NONE };
    holds_with(ALL, "the host of tasks ends", ends, TasksBounds { cuts: 1, pauses: 2, ..ends });
    let crashes = TasksBounds { crashes: 1, ends: EITHER, ..NONE };
    holds_with(ALL, "the host of tasks ends and they crash", crashes, TasksBounds { pauses: 1, ..crashes });
    // If a kill is still possible, writes may wait while everything else continues.
    let slow = TasksBounds { kills: 1, pauses: 1, ends: &[StopMode::Stop], ..NONE };
    holds("the host of tasks ends on a slow disk", slow, TasksBounds { ends: EITHER, ..slow });
}

#[test]
fn every_order_with_a_sick_disk_starts_no_task_and_stops_every_task_shell_1a() {
    let sick = TasksBounds { sicknesses: 1, stops: 1, ..NONE };
    holds_with(ALL, "a task is stopped on a sick disk", sick, TasksBounds { starts: 1, pauses: 1, ..sick });
    let exits = TasksBounds { sicknesses: 1, exits: 1, kills: 1, ..NONE };
    holds("a task ends on a sick disk", exits, TasksBounds { deaths: 1, ..exits });
    let crashes = TasksBounds { sicknesses: 1, crashes: 1, stops: 1, ..NONE };
    holds("the tasks crash on a sick disk", crashes, TasksBounds { exits: 1, failures: 1, ..crashes });
    let ends = TasksBounds { sicknesses: 1, ends: EITHER, ..NONE };
    holds_with(ALL, "a host of tasks ends on a sick disk", ends, TasksBounds { exits: 1, ..ends });
}

#[test]
fn every_order_of_two_tasks_of_one_driver_keeps_them_apart_t1_t4() {
    let two = TasksBounds { tasks: 2, deaths: 1, ..NONE };
    holds_with(&ALL[..2], "two tasks of one driver", two, TasksBounds { pauses: 1, ..two });
}
