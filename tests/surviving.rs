//! Tests allocations whose processes survive their host: real hosts, real plugins.

mod program;

use program::{
    CALLBOARD, Program, Stage, TIMEOUT, allocation, exists, lives, pid_of, refusal, task, until_true,
};
use serde_json::Value;

const SURVIVES: &str = "survives = true";

fn active(program: &Program<'_>) -> Value {
    program.until_active("csi-node", "zfs", "a");
    program.until("it is registered and healthy", |status| task(status, "a")["health"] == "healthy")
}

#[test]
fn a_plugin_that_survives_its_host_is_adopted_by_each_next_run_prc_01_prc_04_s3() {
    let bound = allocation("b", "nfs", "node", &[], "");
    let stage = Stage::new(&(allocation("a", "zfs", "monolith", &[], SURVIVES) + &bound));
    let host = stage.run();
    let status = active(&host);
    let (pid, since) = (pid_of(&status, "a"), task(&status, "a")["since_unix_ms"].as_u64());
    let pid_b = pid_of(&host.until("b runs", |status| task(status, "b")["health"] == "healthy"), "b");

    let report = host.json(&["shutdown", "--detach"]);
    let how = |what: &str| {
        let steps = report["report"].as_array().expect("a list");
        let step = steps.iter().find(|step| step["child"] == what).unwrap_or(&Value::Null);
        step["ending"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(how("process/a"), format!("left running as process {pid}"));
    assert!(how("process/b").contains("when asked to end"), "{report:#}");
    assert!(host.ended().0.success());
    assert!(lives(pid) && !exists(pid_b));

    let host = stage.run();
    let status = active(&host);
    assert_eq!((pid_of(&status, "a"), &task(&status, "a")["restarts"]), (pid, &0.into()));
    assert!(
        task(&status, "a")["since_unix_ms"].as_u64() <= since,
        "it runs since it was started: {status:#}"
    );
    let log = String::from_utf8(host.ask(&["logs", "a"]).stdout).expect("it is text");
    assert_eq!(log.matches("serving").count(), 1, "one process has written to it: {log}");
    host.kill();
    assert!(lives(pid));

    let host = stage.run();
    assert_eq!(pid_of(&active(&host), "a"), pid);
    assert!(host.ask(&["stop", "a"]).status.success());
    assert!(!lives(pid));
    assert!(host.ask(&["start", "a"]).status.success());
    let pid = pid_of(&active(&host), "a");
    assert!(host.ask(&["shutdown"]).status.success());
    assert!(!exists(pid), "a host that stops leaves nothing");
}

#[test]
fn what_a_surviving_plugin_started_goes_on_with_it_and_ends_with_it_prc_03() {
    let script = format!(
        "[[allocation]]\nname = \"a\"\nplugin = \"zfs\"\ntype = \"node\"\nsurvives = true\n\
         command = [\"/bin/sh\", \"-c\", \"sleep 1000 & echo $! >$PIDS; {CALLBOARD} plugin hostpath --role node\"]\n"
    );
    let stage = Stage::new("");
    let pids = stage.directory.path().join("pids");
    stage.configure(&format!("{script}env = {{ PIDS = {pids:?} }}\n"));
    let host = stage.run();
    let pid = pid_of(&active(&host), "a");
    let child: u64 = std::fs::read_to_string(&pids).expect("it is written").trim().parse().expect("a pid");
    host.kill();
    assert!(lives(pid) && lives(child));

    let host = stage.run();
    assert_eq!(pid_of(&active(&host), "a"), pid, "its plugin listens, and is a descendant of it");
    assert!(lives(child));
    assert!(host.ask(&["stop", "a"]).status.success());
    until_true("the child has ended", TIMEOUT, || !exists(child));
    assert!(!lives(pid));
}

#[test]
fn a_surviving_plugin_that_ends_is_launched_again_also_when_no_host_saw_it_end_prc_04() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], SURVIVES));
    let host = stage.run();
    let first = pid_of(&active(&host), "a");
    end(first);
    let status = host.until("another process", |status| {
        task(status, "a")["health"] == "healthy" && task(status, "a")["restarts"] == 1
    });
    let second = pid_of(&status, "a");
    host.kill();
    end(second);
    until_true("it has ended", TIMEOUT, || !lives(second));
    let host = stage.run();
    let third = pid_of(&active(&host), "a");
    assert!(third != second && lives(third));
    assert!(host.ask(&["shutdown"]).status.success());
    assert!(!exists(third));
}

#[test]
fn what_the_configuration_has_no_more_is_ended_and_deregistered_and_its_socket_removed_s4() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], SURVIVES));
    let host = stage.run();
    let pid = pid_of(&active(&host), "a");
    host.kill();
    stage.configure(&allocation("b", "nfs", "node", &[], ""));
    let host = stage.run();
    until_true("its process has ended", TIMEOUT, || !exists(pid));
    let directory = stage.data_dir().join("csi/plugins/a");
    until_true("its directory is gone", TIMEOUT, || !directory.exists());
    host.until("its plugin is not shown", |status| {
        let plugins = status["plugins"].as_array().expect("a list");
        plugins.iter().all(|plugin| plugin["name"] == "nfs") && task(status, "b")["health"] == "healthy"
    });
    assert!(host.ask(&["health"]).status.success());
    assert!(host.ask(&["shutdown"]).status.success());
}

#[test]
fn what_an_allocation_serves_no_more_is_deregistered_by_the_next_run_r8() {
    let both = |kind: &str, plugin: &str| {
        allocation("a", "zfs", kind, &[], SURVIVES) + &allocation("b", plugin, "node", &[], "")
    };
    let stage = Stage::new(&both("monolith", "nfs"));
    let host = stage.run();
    host.until_active("csi-controller", "zfs", "a");
    host.until_active("csi-node", "nfs", "b");
    host.kill();

    // Allocation `a` now has another role, and `b` has another plugin.
    stage.configure(&both("node", "smb"));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    host.until_active("csi-node", "smb", "b");
    host.until("what they serve and nothing else", |status| {
        let plugins = status["plugins"].as_array().expect("a list");
        let names = plugins.iter().map(|plugin| (plugin["type"].as_str(), plugin["name"].as_str()));
        names.eq([(Some("csi-node"), Some("smb")), (Some("csi-node"), Some("zfs"))])
    });
    assert!(host.ask(&["health"]).status.success());
    assert!(host.ask(&["shutdown"]).status.success());
}

#[test]
fn a_name_that_is_no_name_of_a_process_is_refused_where_it_would_survive() {
    let stage = Stage::new(&allocation("z\u{fc}", "zfs", "node", &[], SURVIVES));
    let command =
        std::process::Command::new(CALLBOARD).args(["run", "--config"]).arg(stage.config()).output();
    let (code, said) = refusal(&command.expect("it runs"));
    assert_eq!(code, 2);
    assert!(said.contains(":2:1: `survives`: its process is named after it"), "{said}");
}

fn end(pid: u64) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives");
}
