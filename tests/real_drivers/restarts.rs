//! Tests SIGKILL of driver, host and executor in every order: never two copies of a task, and never none in the end.

use std::time::Duration;

use crate::program::driven::find;
use crate::program::left::kill_if_there;
use crate::program::lives;
use crate::rig::{EXEC, FORGETFUL, Kind, RAW_EXEC, Rig, driver};
use crate::support::go::{DRIVERS, GoPrograms, NEWER_DRIVERS};

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Driver,
    Host,
    Executor,
}
use Victim::{Driver, Executor, Host};

/// Every order of every choice of victims.
const ORDERS: [&[Victim]; 15] = [
    &[Driver],
    &[Host],
    &[Executor],
    &[Driver, Host],
    &[Host, Driver],
    &[Host, Executor],
    &[Executor, Host],
    &[Driver, Executor],
    &[Executor, Driver],
    &[Driver, Host, Executor],
    &[Driver, Executor, Host],
    &[Host, Driver, Executor],
    &[Host, Executor, Driver],
    &[Executor, Driver, Host],
    &[Executor, Host, Driver],
];

/// The number of rounds for each driver: a third of the orders, so that three drivers play all of them, or the number in
/// `CALLBOARD_ROUNDS`.
fn rounds() -> usize {
    let asked =
        std::env::var("CALLBOARD_ROUNDS").ok().map(|rounds| rounds.parse().expect("a number of rounds"));
    let rounds = asked.unwrap_or(THIRD);
    eprintln!("{rounds} rounds of {} orders; CALLBOARD_ROUNDS sets how many", ORDERS.len());
    rounds
}

/// A third of the orders.
const THIRD: usize = ORDERS.len() / 3;

/// Plays rounds of kills against one driver. `keeps`: whether the next driver recovers the task of a driver that was killed;
/// otherwise the task may be started again, once its first copy is gone. `first`: the index of the first round's order.
fn play(programs: &GoPrograms, kind: Kind, keeps: bool, orders: &[&[Victim]], first: usize) {
    let Some(plugins) = programs.or_say(&format!("kills around {}", kind.driver)) else { return };
    let rig = Rig::new(plugins);
    rig.configure(kind, &rig.web(kind));
    let mut program = rig.stage().run();
    let mut random = fastrand::Rng::with_seed(14);
    for round in first..first + rounds() {
        // The stride reaches every order, so that a few rounds include orders of each length.
        let order = orders[round * 7 % orders.len()];
        let status = rig.until_one_copy(&program, kind);
        let (own, starts) = (rig.copies()[0], rig.starts());
        let (driver, executors) = (driver(&status, kind), rig.executors());
        let mut is_host_alive = true;
        for victim in order {
            match victim {
                Driver => kill_if_there(driver),
                Host => {
                    program.signal(rustix::process::Signal::KILL);
                    is_host_alive = false;
                }
                Executor => executors.iter().copied().for_each(kill_if_there),
            }
            std::thread::sleep(Duration::from_millis(random.u64(0..150)));
        }
        if !is_host_alive {
            drop(program);
            program = rig.stage().run();
        }
        let status = rig.until_one_copy(&program, kind);
        let told = format!("round {round}, {order:?}: {status:#}\n{}", program.log());
        if keeps && !order.contains(&Executor) {
            assert_eq!((rig.copies(), rig.starts()), (vec![own], starts), "the same process: {told}");
        } else if rig.copies() != [own] {
            assert!(!lives(own) && rig.starts() > starts, "the old copy is gone: {told}");
        }
        assert_ne!(find(&status, "tasks", "web")["id"], serde_json::Value::Null, "{told}");
    }
    rig.until_one_copy(&program, kind);
    rig.stop(program);
}

#[test]
fn the_task_of_raw_exec_lives_in_one_copy_whatever_is_killed_th030_th032_th041_t030() {
    play(&DRIVERS, RAW_EXEC, true, &ORDERS, 0);
}

#[test]
fn the_task_of_a_newer_raw_exec_lives_in_one_copy_whatever_is_killed_th030_th032_th041_t020_t115() {
    play(&NEWER_DRIVERS, RAW_EXEC, true, &ORDERS, THIRD);
}

#[test]
fn the_task_of_exec_lives_in_one_copy_whatever_is_killed_th030_th041_t108() {
    play(&DRIVERS, EXEC, true, &ORDERS, 0);
}

#[test]
fn the_task_of_a_newer_exec_lives_in_one_copy_whatever_is_killed_th030_th041_t108() {
    play(&NEWER_DRIVERS, EXEC, true, &ORDERS, 2 * THIRD);
}

#[test]
fn a_driver_that_can_recover_nothing_leads_to_another_start_and_never_to_two_copies_th041_t151() {
    let orders: [&[Victim]; 4] = [&[Driver], &[Host], &[Driver, Host], &[Host, Driver]];
    play(&NEWER_DRIVERS, FORGETFUL, false, &orders, 0);
}
