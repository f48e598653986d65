//! Helpers for the drivers and tasks of a real `callboard run`.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Program, Stage};

/// A task that appends its process to a file at each start, and runs until it is stopped.
pub(crate) fn task(stage_dir: &str, name: &str, more: &str) -> String {
    let script = format!("echo $$ >> {stage_dir}/{name}.pid; exec sleep 1000");
    format!(
        "[[task]]\nname = {name:?}\ndriver = \"exec\"\nconfig = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n{more}\n"
    )
}

/// The processes of a task, one for each start.
pub(crate) fn starts(stage: &Stage, name: &str) -> Vec<u64> {
    let file: PathBuf = stage.directory.path().join(format!("{name}.pid"));
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

pub(crate) fn find<'v>(status: &'v Value, list: &str, name: &str) -> &'v Value {
    let list = status[list].as_array().expect("a list");
    list.iter().find(|entry| entry["name"] == name).unwrap_or(&Value::Null)
}

/// Whether a status has an empty list of this name. The list of an actor that does not answer in time is empty too; `gone` names it.
pub(crate) fn has_none(status: &Value, list: &str) -> bool {
    let is_empty = |name: &str| status[name].as_array().is_some_and(Vec::is_empty);
    is_empty(list) && is_empty("gone")
}

/// Waits until the driver is healthy and the task runs.
pub(crate) fn until_running(program: &Program<'_>, name: &str) -> Value {
    program.until("a healthy driver and its running task", |status| {
        find(status, "drivers", "exec")["health"] == "healthy"
            && find(status, "tasks", name)["state"] == "running"
    })
}

pub(crate) fn driver_pid(status: &Value) -> u64 {
    driver_pid_of(status, "exec")
}

/// The process of the driver of this name.
pub(crate) fn driver_pid_of(status: &Value, name: &str) -> u64 {
    find(status, "drivers", name)["pid"].as_u64().expect("it has a process")
}

pub(crate) fn kill(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it lives");
}
