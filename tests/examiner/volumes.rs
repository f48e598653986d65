//! A host of Callboard with volumes in an exam: calls of its plugin fail before and after their effect, and plugin and host are killed.

use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::exam::rules;
use crate::program::driven::kill;
use crate::program::namespace::Namespace;
use crate::program::{CALLBOARD, Program, Stage, pid_of};

const VOLUMES: [&str; 3] = ["a", "b", "c"];
const USERS: [&str; 2] = ["job-1", "job-2"];
const CALLS: [&str; 8] = [
    "CreateVolume",
    "DeleteVolume",
    "ControllerPublishVolume",
    "ControllerUnpublishVolume",
    "NodeStageVolume",
    "NodeUnstageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
];

/// An examiner in which about every fifth call for volumes fails.
fn stage() -> Stage {
    let stage = Stage::new("");
    let file = |name: &str| stage.directory.path().join(name).display().to_string();
    let kept = [file("volumes"), file("journal"), file("report.json")];
    let mut exam: Vec<_> = ["plugin", "examiner", "--endpoint", "${CSI_ENDPOINT}", "--expect-undone"].into();
    exam.extend(["--volumes", &kept[0], "--journal", &kept[1], "--report", &kept[2]]);
    let of = |call: &str| {
        ["UNAVAILABLE,before", "INTERNAL,after", "ABORTED,before"].map(|fault| (call.to_owned(), fault))
    };
    let faults = CALLS.iter().flat_map(|call| of(call));
    let faults: Vec<_> = faults.map(|(call, fault)| format!("--fault={call}={fault},chance:8")).collect();
    exam.extend(faults.iter().map(String::as_str));
    let arguments = json!(exam);
    stage.configure(&format!(
        "restart = {{ attempts = \"forever\", delay = \"100ms\" }}\n[[allocation]]\nname = \"exam\"\nplugin = \"zfs\"\n\
         type = \"monolith\"\ncommand = {CALLBOARD:?}\nargs = {arguments}\n"
    ));
    stage
}

/// Asks for something that succeeds in the end.
fn succeeds(host: &Program<'_>, words: &[&str]) {
    let output = host.ask(&[&["volume"], words].concat());
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Does something with all volumes at once.
fn with_all(host: &Program<'_>, act: impl Fn(&str) + Sync) {
    let act = &act;
    thread::scope(|scope| {
        VOLUMES.map(|volume| scope.spawn(move || act(volume))).map(|done| done.join().expect("it succeeds"))
    });
    assert!(host.ask(&["status"]).status.success(), "{}", host.log());
}

fn make_and_claim(host: &Program<'_>) {
    let shared = ["--access-mode", "single-node-multi-writer"];
    with_all(host, |volume| {
        succeeds(host, &[&["create", volume, "--plugin", "zfs"][..], &shared].concat());
        for user in USERS {
            succeeds(host, &[&["claim", volume, "--allocation", user][..], &shared].concat());
        }
    });
}

fn release_and_delete(host: &Program<'_>) {
    with_all(host, |volume| {
        for user in USERS {
            succeeds(host, &["release", volume, "--allocation", user]);
        }
        succeeds(host, &["delete", volume, "--yes"]);
    });
}

#[test]
fn a_host_of_callboard_passes_with_volumes_while_calls_fail_and_plugin_and_host_are_killed_c001_c013_c131() {
    let Some(namespace) = Namespace::or_say("a host with volumes in an exam") else { return };
    let stage = stage();
    let host = namespace.run(&stage);
    host.until_active("csi-controller", "zfs", "exam");
    make_and_claim(&host);
    with_all(&host, |volume| succeeds(&host, &["stats", volume]));
    release_and_delete(&host);

    make_and_claim(&host);
    kill(pid_of(&host.json(&["status"]), "exam"));
    release_and_delete(&host);

    make_and_claim(&host);
    host.kill();
    let host = namespace.run(&stage);
    release_and_delete(&host);
    host.signal(Signal::TERM);
    let (exit, printed) = host.ended();
    assert_eq!(exit.code(), Some(0), "{printed}");

    let report = std::fs::read(stage.directory.path().join("report.json")).expect("it is written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["clean"], true, "{report:#}");
    assert_eq!(report["starts"], 3, "{report:#}");
    let tried = rules(&report, "tried");
    for rule in
        ["C001", "C003", "C013", "C014", "C022", "C062", "C079", "C121", "C131", "C134", "C141", "C144"]
    {
        assert!(tried.contains(&rule.to_owned()), "{rule} was not tried: {report:#}");
    }
}
