//! The owner of the processes with its disk and the actors of one or two processes: every order of launches, ends, exits, crashed actors,
//! writes that fail, are refused or fail but take effect, crashes, killed hosts, time and the request to stop.

use callboard_actors::shell::StopMode;
use callboard_simulation::{ProcessesBounds, ProcessesWorld};

use crate::{is_full, try_all};

const NONE: ProcessesBounds = ProcessesBounds::NONE;
const LAUNCHED: ProcessesBounds = ProcessesBounds { launches: 1, ..NONE };
const EITHER: &[StopMode] = &[StopMode::Stop, StopMode::Detach];

fn holds(what: &str, small: ProcessesBounds, full: ProcessesBounds) {
    let bounds = if is_full() { full } else { small };
    try_all(what, &ProcessesWorld::new(bounds, None));
}

#[test]
fn every_order_of_launches_ends_and_exits_leaves_one_process_or_none_prc_03_prc_09() {
    let ends = ProcessesBounds { launches: 2, orders: 1, exits: 1, ..NONE };
    holds("launches and ends", ends, ProcessesBounds { faults: 1, ..ends });
    let falls = ProcessesBounds { falls: 1, exits: 1, orders: 1, pauses: 1, ..LAUNCHED };
    holds("actors of processes fall", falls, ProcessesBounds { launches: 2, ..falls });
}

#[test]
fn every_order_of_a_killed_host_leaves_nothing_unowned_and_nothing_twice_prc_09() {
    let killed = ProcessesBounds { launches: 2, kills: 1, exits: 1, ..NONE };
    holds("a host is killed at a launch", killed, ProcessesBounds { kills: 2, faults: 1, ..killed });
    let bound = ProcessesBounds { survives: false, ..killed };
    holds("a host is killed, its process is bound", bound, ProcessesBounds { kills: 2, ..bound });
}

#[test]
fn every_order_of_crashes_failed_writes_and_a_stop_keeps_records_and_processes_together_prc_09_s4_shell_1_shell_2()
 {
    let crashes = ProcessesBounds { exits: 1, crashes: 1, ..LAUNCHED };
    holds("the owner crashes", crashes, ProcessesBounds { launches: 2, ..crashes });
    let failures = ProcessesBounds { failures: 1, pauses: 1, ..LAUNCHED };
    let more = ProcessesBounds { launches: 2, exits: 1, ..failures };
    holds("writes of processes fail", failures, more);
    let stops = ProcessesBounds { orders: 1, exits: 1, stops: EITHER, ..LAUNCHED };
    holds("the owner of the processes stops", stops, ProcessesBounds { launches: 2, ..stops });
    let bound = ProcessesBounds { survives: false, failures: 1, stops: &[StopMode::Detach], ..LAUNCHED };
    holds("a host detaches from a bound process", bound, ProcessesBounds { crashes: 1, ..bound });
}

#[test]
fn every_order_with_a_sick_disk_holds_up_launches_and_ends_processes_shell_1a() {
    let sick = ProcessesBounds { sicknesses: 1, orders: 1, exits: 1, ..LAUNCHED };
    holds("processes on a sick disk", sick, ProcessesBounds { launches: 2, ..sick });
    let crashes = ProcessesBounds { sicknesses: 1, crashes: 1, orders: 1, ..LAUNCHED };
    holds("the owner crashes on a sick disk", crashes, ProcessesBounds { exits: 1, failures: 1, ..crashes });
    let stops = ProcessesBounds { sicknesses: 1, stops: EITHER, ..LAUNCHED };
    holds("a host of processes stops on a sick disk", stops, ProcessesBounds { exits: 1, falls: 1, ..stops });
    let killed = ProcessesBounds { sicknesses: 1, kills: 1, ..LAUNCHED };
    holds("a host of processes is killed on a sick disk", killed, ProcessesBounds { orders: 1, ..killed });
}

#[test]
fn every_order_of_two_processes_launched_at_once_keeps_them_apart_prc_03_prc_04() {
    let two = ProcessesBounds { names: 2, launches: 2, ..NONE };
    let more = ProcessesBounds { exits: 1, ..two };
    holds("two processes are launched", two, more);
    let killed = ProcessesBounds { found: 1, names: 2, kills: 1, ..LAUNCHED };
    let more = ProcessesBounds { found: 0, launches: 2, faults: 1, ..killed };
    holds("a host of two processes is killed", killed, more);
    let failures = ProcessesBounds { failures: 1, ..two };
    holds("writes of two processes fail", failures, ProcessesBounds { exits: 1, ..failures });
}

#[test]
fn every_order_of_failed_sweeps_and_a_stop_sweeps_away_nothing_that_a_record_holds_prc_09_s3() {
    let swept = ProcessesBounds { found: 2, faults: 1, pauses: 1, stops: &[StopMode::Detach], ..NONE };
    let more = ProcessesBounds { exits: 1, stops: EITHER, ..swept };
    holds("a sweep fails and the host stops", swept, more);
}
