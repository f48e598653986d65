//! Tests the resource usage of tasks, as `callboard status` shows it, through deaths of their driver and of the host.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use std::time::{SystemTime, UNIX_EPOCH};

use program::driven::{driver_pid, find, kill, task, until_running};
use program::{Program, Stage};
use serde_json::Value;

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Waits until the driver reports the usage of the task at a later time than this.
fn until_told(program: &Program<'_>, after_ms: u64) -> Value {
    let is_told = |status: &Value| {
        let usage = &find(status, "tasks", "web")["usage"];
        usage["state"] == "told"
            && usage["at_unix_ms"].as_u64() > Some(after_ms)
            && usage["memory_bytes"].as_u64() > Some(0)
    };
    let status = program.until("figures of the task", is_told);
    find(&status, "tasks", "web")["usage"].clone()
}

#[test]
fn what_a_task_uses_is_told_again_after_its_driver_and_its_host_were_killed_th081_t209() {
    let stage = Stage::new("");
    let place = stage.directory.path().display().to_string();
    stage.configure(&format!("[[driver]]\nname = \"exec\"\n{}", task(&place, "web", "")));
    let program = stage.run();
    let status = until_running(&program, "web");
    let usage = until_told(&program, 0);
    assert!(usage["cpu_percent"].as_f64().is_some_and(|percent| percent >= 0.0), "{usage}");
    assert_eq!(usage["reason"], Value::Null);
    let shown = String::from_utf8(program.ask(&["status"]).stdout).unwrap();
    let line = shown.lines().find(|line| line.starts_with("web ")).unwrap_or_default();
    assert!(line.contains(" % ") && (line.contains("KiB") || line.contains("MiB")), "{shown}");

    // The driver is killed.
    let killed = driver_pid(&status);
    kill(killed);
    program.until("another process of the driver", |status| {
        find(status, "drivers", "exec")["pid"].as_u64().is_some_and(|pid| pid != killed)
            && find(status, "tasks", "web")["state"] == "running"
    });
    until_told(&program, now_ms());

    // The host is killed.
    program.kill();
    let program = stage.run();
    until_running(&program, "web");
    until_told(&program, now_ms());

    assert!(program.ask(&["stop", "web"]).status.success());
    let status = program.json(&["status"]);
    assert_eq!(find(&status, "tasks", "web")["usage"], Value::Null, "what does not run uses nothing");
    assert!(program.ask(&["shutdown"]).status.success());
}

#[test]
fn a_driver_that_tells_no_figures_runs_its_tasks_and_status_says_so_t146() {
    let stage = Stage::new("");
    let place = stage.directory.path().display().to_string();
    let driver = "[[driver]]\nname = \"exec\"\nargs = [\"--fail\", \"TaskStats=UNIMPLEMENTED\"]\n";
    stage.configure(&format!("{driver}{}", task(&place, "web", "")));
    let program = stage.run();
    until_running(&program, "web");
    let status = program.until("word that there are no figures", |status| {
        find(status, "tasks", "web")["usage"]["state"] == "missing"
    });
    let usage = &find(&status, "tasks", "web")["usage"];
    assert!(usage["reason"].as_str().is_some_and(|reason| reason.contains("TaskStats")), "{usage}");
    assert_eq!((&usage["cpu_percent"], &usage["memory_bytes"]), (&Value::Null, &Value::Null));
    assert_eq!(find(&status, "tasks", "web")["state"], "running");
    let shown = String::from_utf8(program.ask(&["status"]).stdout).unwrap();
    assert!(shown.contains("not told") && shown.contains("resource usage unknown"), "{shown}");
    assert_eq!(program.log().matches("resource usage of a task unknown").count(), 1, "once");
    assert!(program.ask(&["shutdown"]).status.success());
}
