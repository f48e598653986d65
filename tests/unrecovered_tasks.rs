//! Tests tasks whose driver cannot recover them, or reports that it did not start them, with the real reference driver: there are never two
//! copies, and never none in the end.

mod program;

use std::time::Instant;

use program::driven::{driver_pid, find, kill, starts};
use program::{CALLBOARD, Program, Stage, TIMEOUT, lives, until_true};
use serde_json::Value;

/// The reference driver under the name that the tasks use.
const DRIVER: [&str; 6] = [CALLBOARD, "plugin", "exec", "--name", "exec", "--allow-builtin-name"];

/// A stage with a driver that has these faults, and a task that records each of its processes, and each other copy that it
/// finds.
fn stage(faults: &[&str]) -> Stage {
    let command: Vec<&str> = DRIVER.into_iter().chain(faults.iter().copied()).collect();
    stage_with(&format!("{command:?}"))
}

/// The same with a driver that is started by this command.
fn stage_with(command: &str) -> Stage {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let command = command.replace("DIRECTORY", &directory);
    let script = format!(
        "for p in $(cat {directory}/web.pid 2>/dev/null); do \
         grep -q NOMAD_TASK_NAME=web /proc/$p/environ 2>/dev/null && echo $p >> {directory}/web.two; done; \
         echo $$ >> {directory}/web.pid; sleep 1000"
    );
    stage.configure(&format!(
        "[[driver]]\nname = \"exec\"\ncommand = {command}\n\
         [[task]]\nname = \"web\"\ndriver = \"exec\"\n\
         config = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n"
    ));
    stage
}

fn was_ever_beside_another(stage: &Stage) -> bool {
    stage.directory.path().join("web.two").exists()
}

fn living(stage: &Stage) -> Vec<u64> {
    starts(stage, "web").into_iter().filter(|pid| lives(*pid)).collect()
}

/// Waits until the task runs, and has been started this many times in all.
fn until_started(program: &Program<'_>, stage: &Stage, times: usize) -> Value {
    let status = program.until("a healthy driver and its running task", |status| {
        find(status, "drivers", "exec")["health"] == "healthy"
            && find(status, "tasks", "web")["state"] == "running"
            && starts(stage, "web").len() == times
    });
    assert_eq!(living(stage), starts(stage, "web").split_off(times - 1), "one copy, the newest: {status:#}");
    assert!(!was_ever_beside_another(stage), "no copy has met another: {}", program.log());
    status
}

#[test]
fn a_task_that_its_driver_cannot_recover_never_has_two_copies_and_never_none_th041() {
    let stage = stage(&["--fail", "RecoverTask=UNKNOWN"]);
    let program = stage.run();
    let first = driver_pid(&until_started(&program, &stage, 1));

    // The driver is killed: the task outlives it, and the next driver does not recover it.
    kill(first);
    let second = driver_pid(&until_started(&program, &stage, 2));
    assert!(program.log().contains("a driver cannot recover its task"), "{}", program.log());

    // The host is killed: its driver survives, and still cannot recover the task.
    program.kill();
    assert_eq!(living(&stage).len(), 1, "the task outlives its host");
    let program = stage.run();
    let third = driver_pid(&until_started(&program, &stage, 3));
    assert_eq!(second, third, "the driver is found again");

    // Both are killed.
    program.kill();
    kill(third);
    assert_eq!(living(&stage).len(), 1, "the task outlives both");
    let program = stage.run();
    let status = until_started(&program, &stage, 4);
    assert_ne!(driver_pid(&status), third);

    program.json(&["shutdown"]);
    until_true("nothing is left", TIMEOUT, || living(&stage).is_empty());
}

/// A task that clears its environment as soon as it runs. Each copy records its process and each other copy that it
/// finds.
fn stage_without_environment(faults: &[&str]) -> Stage {
    let command: Vec<&str> = DRIVER.into_iter().chain(faults.iter().copied()).collect();
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let script = format!(
        "for p in $(cat {directory}/web.pid 2>/dev/null); do \
         kill -0 $p 2>/dev/null && echo $p >> {directory}/web.two; done; \
         echo $$ >> {directory}/web.pid; exec env -i sleep 1000"
    );
    stage.configure(&format!(
        "[[driver]]\nname = \"exec\"\ncommand = {command:?}\n\
         [[task]]\nname = \"web\"\ndriver = \"exec\"\n\
         config = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n"
    ));
    stage
}

#[test]
fn a_task_without_an_environment_that_its_driver_cannot_recover_is_found_where_it_was_located_th052() {
    let stage = stage_without_environment(&["--fail", "RecoverTask=UNKNOWN"]);
    let program = stage.run_as(&[], &[("RUST_LOG", "info,callboard::tasks=debug")]);
    let status = until_started(&program, &stage, 1);
    let task = living(&stage)[0];
    let has_no_environment =
        || std::fs::read(format!("/proc/{task}/environ")).is_ok_and(|environment| environment.is_empty());
    until_true("it has thrown its environment away", TIMEOUT, has_no_environment);
    let located = |program: &Program<'_>, status: &Value, times: usize| {
        let run = find(status, "tasks", "web")["id"].as_str().expect("a text").to_owned();
        let is_told = |line: &&str| line.contains("located the processes of a task") && line.contains(&run);
        until_true("it is located", TIMEOUT, || program.log().lines().filter(is_told).count() >= times);
    };
    located(&program, &status, 1);

    // The driver is killed, and the next one does not recover the task: only its process identifies it.
    kill(driver_pid(&status));
    let status = until_started(&program, &stage, 2);
    assert!(!lives(task), "the first copy was ended before the second began: {}", program.log());

    // Now host and driver are killed. The evidence is on disk before the task is reported as located again.
    let task = living(&stage)[0];
    located(&program, &status, 2);
    program.kill();
    kill(driver_pid(&status));
    assert!(lives(task), "it outlives both");
    let program = stage.run();
    until_started(&program, &stage, 3);
    assert!(!lives(task), "{}", program.log());
    program.json(&["shutdown"]);
    until_true("nothing is left", TIMEOUT, || living(&stage).is_empty());
}

#[test]
fn a_task_that_runs_although_its_driver_said_no_is_ended_before_it_is_told_as_failed_th040_t115() {
    let stage = stage(&["--refuse-started", "UNKNOWN"]);
    let program = stage.run();
    let status = program.until("it has failed", |status| find(status, "tasks", "web")["state"] == "failed");
    assert!(living(&stage).is_empty(), "{status:#}");
    let told = find(&status, "tasks", "web")["last_event"].as_str().expect("a text").to_owned();
    assert!(told.contains("the start fails when it is done"), "{told}");
    program.json(&["shutdown"]);
}

#[test]
fn a_driver_that_is_busy_with_a_start_of_a_killed_host_is_replaced_before_another_start_th040() {
    // While the file exists, a started driver delays each start for longer than any timeout of the host.
    let late = format!("{} --late-start 40s", DRIVER.join(" "));
    let script = format!("[ -e DIRECTORY/late ] && exec {late}; exec {}", DRIVER.join(" "));
    let stage = stage_with(&format!("[\"/bin/sh\", \"-c\", {script:?}]"));
    let marker = stage.directory.path().join("late");
    std::fs::write(&marker, "").expect("it can be written");

    let program = stage.run();
    let status = program.until("the start is under way", |status| {
        find(status, "drivers", "exec")["health"] == "healthy"
            && find(status, "tasks", "web")["last_event"] == "starting"
    });
    let busy = driver_pid(&status);
    std::fs::remove_file(marker).expect("it can be removed");
    program.kill();

    let program = stage.run();
    let status = until_started(&program, &stage, 1);
    assert_ne!(driver_pid(&status), busy, "the busy driver would have begun too: {}", program.log());
    assert!(!lives(busy), "it may begin as long as it lives");
    program.json(&["shutdown"]);
    until_true("nothing is left", TIMEOUT, || living(&stage).is_empty());
}

#[test]
fn a_driver_that_crashes_in_a_start_is_told_as_that_and_keeps_no_shutdown_waiting_t141_th080() {
    let stage = stage(&["--crash", "StartTask"]);
    let program = stage.run();
    let said =
        |status: &Value| find(status, "tasks", "web")["last_event"].as_str().unwrap_or_default().to_owned();
    let status =
        program.until("the crash is told", |status| said(status).contains("ended in StartTask of task web"));
    assert!(said(&status).contains("panic: told to crash in StartTask"), "{}", said(&status));
    let asked = Instant::now();
    let report = program.json(&["shutdown"]);
    let took = asked.elapsed();
    assert!(took.as_secs() < 15, "a shutdown took {took:?}: {report:#}");
    until_true("nothing is left", TIMEOUT, || living(&stage).is_empty());
}

#[test]
fn a_driver_that_ends_at_once_keeps_no_shutdown_waiting() {
    let stage = stage(&["--exit-before-line", "1"]);
    let program = stage.run();
    program.until("it has been tried", |status| find(status, "drivers", "exec")["health"] == "unhealthy");
    let asked = Instant::now();
    let report = program.json(&["shutdown"]);
    let took = asked.elapsed();
    assert!(took.as_secs() < 15, "a shutdown took {took:?}: {report:#}");
}

#[test]
fn what_runs_of_a_driver_that_does_not_come_back_is_stopped_without_it_th080() {
    let script = format!("[ -e DIRECTORY/blocked ] && exit 1; exec {}", DRIVER.join(" "));
    let stage = stage_with(&format!("[\"/bin/sh\", \"-c\", {script:?}]"));
    let program = stage.run();
    let status = until_started(&program, &stage, 1);
    let own = living(&stage)[0];
    // From here on the driver ends at once, at each launch.
    let blocker = stage.directory.path().join("blocked");
    std::fs::write(&blocker, "").expect("it can be written");
    let driver = driver_pid(&status);
    kill(driver);
    let asked = Instant::now();
    let report = program.json(&["stop", "web"]);
    let took = asked.elapsed();
    until_true("its process is gone", TIMEOUT, || !lives(own));
    assert!(took.as_secs() < 30, "a stop took {took:?}: {report:#}");
    program.json(&["shutdown"]);
}
