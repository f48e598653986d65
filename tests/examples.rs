//! Runs the two examples about drivers together: a host program of some eighty lines runs a task in a driver of sixty. Also runs the
//! examples of host programs that adopt their plugin, replace it, call it, give a workload a volume of it, and set limits.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The examples that are run here.
const EXAMPLES: [&str; 7] = ["adopt", "claim", "driver", "limits", "replace", "tasks", "volume"];

/// The path of a built example, beside the program. `cargo test` builds all examples, except when it builds one test only: then no example
/// exists, and none is run. If only some exist, the test fails.
fn example(name: &str) -> Option<PathBuf> {
    let place = |name| PathBuf::from(env!("CARGO_BIN_EXE_callboard")).with_file_name("examples").join(name);
    let path = place(name);
    if path.is_file() {
        return Some(path);
    }
    let reason = format!("there is no {}; `cargo build --examples` makes it", path.display());
    assert!(!EXAMPLES.iter().any(|other| place(other).is_file()), "{reason}");
    eprintln!("SKIPPED: the example {name} is not shown, since {reason}");
    None
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_example_of_a_host_runs_a_task_in_the_example_of_a_driver_and_hears_of_its_end() {
    let (Some(host), Some(driver)) = (example("tasks"), example("driver")) else { return };
    let output = Command::new(&host).arg("seconds = 0.1").arg(&driver).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for line in ["started a1/main/1", "event: time is up", "drivers: stopped in time", "it ended: Exited(0)"]
    {
        assert!(said.contains(line), "{line:?} is missing in: {said}");
    }
}

#[test]
fn the_example_of_a_host_runs_a_command_in_the_reference_driver() {
    let Some(host) = example("tasks") else { return };
    let task = "command = \"/bin/sh\"\nargs = [\"-c\", \"echo a word; exit 3\"]";
    let driver = env!("CARGO_BIN_EXE_callboard");
    let output =
        Command::new(&host).args([task, driver, "plugin", "exec", "--name", "example"]).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for line in ["a word", "event: exited with code 3", "it ended: Exited(3)"] {
        assert!(said.contains(line), "{line:?} is missing in: {said}");
    }
}

#[test]
fn the_example_of_a_host_with_limits_is_refused_what_goes_over_one() {
    let Some(host) = example("limits") else { return };
    let output = Command::new(&host).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for line in ["zfs: New", "nfs: limit of 1 registrations reached"] {
        assert!(said.contains(line), "{line:?} is missing in: {said}");
    }
}

#[test]
fn the_example_of_a_host_says_what_is_wrong_with_a_task() {
    let (Some(host), Some(driver)) = (example("tasks"), example("driver")) else { return };
    let output = Command::new(&host).arg("secods = 1").arg(&driver).output().unwrap();
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("config.secods") && said.contains("config.seconds"), "{said}");
}

#[test]
fn the_example_of_a_host_that_is_started_again_adopts_its_plugin_and_stops_it() {
    let Some(host) = example("adopt") else { return };
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = Command::new(&host);
        command.arg(directory.path().join("data")).arg(env!("CARGO_BIN_EXE_callboard"));
        let output = command.args(["plugin", "hostpath", "--role", "node"]).args(more).output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        let (pid, rest) = said.strip_prefix("process ").and_then(|rest| rest.split_once(' ')).expect("a pid");
        assert!(rest.starts_with("is healthy as csi-node/example"), "{said}");
        pid.to_owned()
    };
    let first = run(&[]);
    assert_eq!(run(&[]), first);
    assert_eq!(run(&["stop"]), first);
    assert!(!directory.path().join("data/plugin.pid").exists());
}

#[test]
fn the_example_of_a_host_that_replaces_its_plugin_keeps_the_old_one_unless_the_new_one_is_healthy_f16() {
    let Some(host) = example("replace") else { return };
    let directory = tempfile::tempdir().unwrap();
    let plugin = [env!("CARGO_BIN_EXE_callboard"), "plugin", "hostpath", "--role", "node"];
    for (new, stays, version) in [
        (["--plugin-version", "2"], "new stays and old leaves", "csi-node/example of new has version 2"),
        (["--node-id", ""], "old stays and new leaves", "csi-node/example of old has version"),
    ] {
        let mut command = Command::new(&host);
        command.arg(directory.path().join("data")).args(plugin).arg("--").args(plugin).args(new);
        let output = command.output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.contains(stays) && said.contains(version), "{said}");
        let reason = "node_id is empty";
        assert_eq!(said.contains(reason), stays.starts_with("old"), "{said}");
    }
}

#[test]
fn the_example_of_a_host_that_calls_its_plugin_takes_a_volume_through_its_life() {
    let Some(host) = example("volume") else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(&host);
    command.arg(directory.path().join("data")).arg(env!("CARGO_BIN_EXE_callboard"));
    command.args([
        "plugin",
        "hostpath",
        "--node-id",
        "node-1",
        "--fault",
        "CreateVolume=INTERNAL,after,nth:1",
    ]);
    let output = command.arg("--volumes").arg(directory.path().join("volumes")).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for line in [
        "the plugin answered INTERNAL",
        "Outcome { effect: Unknown, reaction: Retry }",
        "with 1048576 bytes",
        "not confirmed: []",
        "1 volume(s) in the list",
        "deleted",
    ] {
        assert!(said.contains(line), "{line:?} is missing in: {said}");
    }
}

#[test]
fn the_example_of_a_host_gives_a_workload_a_volume_that_outlives_it_v3_v8() {
    let Some(host) = example("claim") else { return };
    let in_namespace = |program: &Path| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "--"]).arg(program);
        unshare
    };
    let permitted = in_namespace(Path::new("true")).stderr(Stdio::null()).status();
    if !permitted.is_ok_and(|status| status.success()) {
        eprintln!(
            "SKIPPED: a workload with a volume is not shown, since `unshare --user --mount` is refused here"
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run = |workload: &str| {
        let mut command = in_namespace(&host);
        command.arg(directory.path().join("data")).arg(workload).arg(env!("CARGO_BIN_EXE_callboard"));
        command.args(["plugin", "hostpath", "--node-id", "node-1", "--volumes"]);
        let output = command.arg(directory.path().join("volumes")).output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        said
    };
    for lines in ["a line\n", "a line\na line\n"] {
        let said = run("echo a line >> $VOLUME/log; cat $VOLUME/log");
        for expected in ["with 1048576 bytes", lines, "ended: exit status: 0", "default/data is released"] {
            assert!(said.contains(expected), "{expected:?} is missing in: {said}");
        }
        for kept in ["staging", "per-alloc"] {
            let kept = directory.path().join("data/csi/node/example").join(kept);
            assert_eq!(std::fs::read_dir(kept).unwrap().count(), 0, "a directory of a volume is left");
        }
    }
    assert!(run("delete").contains("deleted: true"));
    assert!(run("delete").contains("deleted: false"));
}
