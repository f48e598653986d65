//! Tests drivers that were removed from the configuration of `callboard run`, with the real reference driver: their tasks are stopped, and
//! nothing of them is left.

mod program;

use program::driven::{driver_pid, find, has_none, kill, starts, task, until_running};
use program::{CALLBOARD, Program, Stage, TIMEOUT, lives, refusal, until_true};
use rustix::process::Signal;
use serde_json::Value;

/// A stage with a driver, and the processes of the driver and of its task that have outlived their host.
fn left_behind(driver: &str) -> (Stage, u64, u64) {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    stage.configure(&format!("{driver}\n{}", task(&directory, "web", "")));
    let program = stage.run();
    let status = until_running(&program, "web");
    until_true("the task has begun", TIMEOUT, || starts(&stage, "web").len() == 1);
    let (process, own) = (driver_pid(&status), starts(&stage, "web")[0]);
    program.kill();
    (stage, process, own)
}

/// Waits until neither drivers nor tasks are left.
fn until_nothing_is_left(program: &Program<'_>) {
    program.until("neither drivers nor tasks", |status| {
        has_none(status, "drivers") && has_none(status, "tasks")
    });
}

fn end(program: Program<'_>) {
    program.signal(Signal::TERM);
    let (ended, printed) = program.ended();
    assert!(ended.success(), "{printed}");
}

#[test]
fn a_driver_that_was_removed_with_its_task_is_found_again_to_stop_it_and_then_ended() {
    let (stage, driver, own) = left_behind("[[driver]]\nname = \"exec\"\nenv = { TOKEN = \"canary-9\" }");
    stage.configure("");
    let program = stage.run();
    until_nothing_is_left(&program);
    assert!(!lives(own) && !lives(driver), "{}", program.log());
    assert!(program.log().contains("it is set up again to stop its tasks"), "{}", program.log());
    end(program);
    let database = std::fs::read(stage.data_dir().join("callboard.redb")).expect("it is there");
    assert!(!database.windows(8).any(|window| window == b"canary-9"), "no secret is stored (P6)");
    // The next run knows neither of them.
    let program = stage.run();
    until_nothing_is_left(&program);
    assert!(!program.log().contains("this driver is no longer in the configuration"), "{}", program.log());
    end(program);
}

#[test]
fn a_driver_that_was_removed_and_has_died_is_launched_again_to_stop_its_task() {
    let command = format!(
        "command = [{CALLBOARD:?}, \"plugin\", \"exec\", \"--name\", \"exec\", \"--allow-builtin-name\"]"
    );
    let (stage, driver, own) = left_behind(&format!("[[driver]]\nname = \"exec\"\n{command}"));
    kill(driver);
    until_true("the driver is gone", TIMEOUT, || !lives(driver));
    assert!(lives(own), "its task outlives it");
    stage.configure("");
    let program = stage.run();
    until_nothing_is_left(&program);
    assert!(!lives(own), "{}", program.log());
    end(program);
}

#[test]
fn a_driver_that_was_removed_and_has_no_task_left_is_proven_and_then_ended() {
    let stage = Stage::new("[[driver]]\nname = \"exec\"\n");
    let program = stage.run();
    let is_healthy = |status: &Value| find(status, "drivers", "exec")["health"] == "healthy";
    let driver = driver_pid(&program.until("a healthy driver", is_healthy));
    program.kill();
    assert!(lives(driver), "it outlives its host");
    stage.configure("");
    let program = stage.run();
    until_nothing_is_left(&program);
    assert!(!lives(driver), "{}", program.log());
    end(program);
}

#[test]
fn a_driver_that_was_removed_and_is_blocked_is_ended_and_its_task_told_with_what_to_do_s3() {
    let (stage, driver, own) = left_behind("[[driver]]\nname = \"exec\"");
    stage.configure("block_plugins = [\"exec\"]\n");
    let program = stage.run();
    let status = program.until("the driver refused, and its task out of reach", |status| {
        find(status, "drivers", "exec")["health"] == "refused"
            && find(status, "tasks", "web")["state"] == "out-of-reach"
    });
    let task = find(&status, "tasks", "web");
    assert_eq!(task["removed"], true, "{task:#}");
    let advice = "put its [[driver]] back into the configuration";
    for said in [&task["last_event"], &find(&status, "drivers", "exec")["reason"]] {
        assert!(said.as_str().is_some_and(|said| said.contains(advice)), "{status:#}");
    }
    until_true("what ran of the driver is ended", TIMEOUT, || !lives(driver));
    assert!(lives(own), "only its driver could end it");
    let log = program.log();
    assert!(
        log.contains("what it ran may still run") && log.contains("tasks=\"web\"") && log.contains(advice),
        "{log}"
    );

    // The caller that stops the host receives what is left, and an exit code that is not success.
    let (code, said) = refusal(&program.ask(&["shutdown"]));
    let left = "callboard: not everything has ended in order: task/web: left as it is, it may still run: ";
    assert!(code == 1 && said.starts_with(left), "{code}: {said}");
    let (ended, printed) = program.ended();
    assert!(ended.code() == Some(1) && printed.contains("left as it is, it may still run"), "{printed}");
    assert!(lives(own));

    // The advice of the log helps.
    stage.configure("[[driver]]\nname = \"exec\"");
    let program = stage.run();
    program.until("the task forgotten", |status| has_none(status, "tasks"));
    assert!(!lives(own), "{}", program.log());
    end(program);
}
