//! Tests a host with volumes in an exam: calls of its plugin fail before and after their effect, and plugin and host are killed.

use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::exam::rules;
use crate::program::driven::kill;
use crate::program::namespace::Namespace;
use crate::program::{CALLBOARD, Program, Stage, TIMEOUT, pid_of, until_true};

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

const ORDERS: [&str; 6] = [
    "ControllerExpandVolume",
    "NodeExpandVolume",
    "CreateSnapshot",
    "DeleteSnapshot",
    "CreateVolumeGroupSnapshot",
    "DeleteVolumeGroupSnapshot",
];

/// The faults of calls, and the percentage of each. A plugin that lies or forgets is not used, since its state cannot be judged.
const FAULTS: [(&str, u8); 6] = [
    ("UNAVAILABLE,before", 8),
    ("INTERNAL,after", 8),
    ("ABORTED,before", 8),
    ("UNKNOWN,after", 3),
    ("DEADLINE_EXCEEDED,after", 3),
    ("slow:150ms", 5),
];

/// An examiner in which about a third of these calls fail.
fn stage(calls: &[&str]) -> Stage {
    let stage = Stage::new("");
    let file = |name: &str| stage.directory.path().join(name).display().to_string();
    let kept = [file("volumes"), file("journal"), file("report.json")];
    let mut exam: Vec<_> = ["plugin", "examiner", "--endpoint", "${CSI_ENDPOINT}", "--expect-undone"].into();
    exam.extend(["--volumes", &kept[0], "--journal", &kept[1], "--report", &kept[2]]);
    let of = |call: &str| FAULTS.map(|(fault, chance)| format!("--fault={call}={fault},chance:{chance}"));
    let faults: Vec<_> = calls.iter().flat_map(|call| of(call)).collect();
    exam.extend(faults.iter().map(String::as_str));
    let arguments = json!(exam);
    stage.configure(&format!(
        "restart = {{ attempts = \"forever\", delay = \"100ms\" }}\n[[allocation]]\nname = \"exam\"\nplugin = \"zfs\"\n\
         type = \"monolith\"\ncommand = {CALLBOARD:?}\nargs = {arguments}\n"
    ));
    stage
}

/// Sends a command that must succeed in the end.
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

/// The users of a volume, and their usage: the first volume has the default access mode, which permits a single user.
fn usage(volume: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match volume == VOLUMES[0] {
        true => (&USERS[..1], &[]),
        false => (&USERS, &["--access-mode", "single-node-multi-writer"]),
    }
}

fn make_and_claim(host: &Program<'_>) {
    with_all(host, |volume| {
        let (users, mode) = usage(volume);
        succeeds(host, &[&["create", volume, "--plugin", "zfs"][..], mode].concat());
        for user in users {
            succeeds(host, &[&["claim", volume, "--allocation", user][..], mode].concat());
        }
    });
}

fn release_and_delete(host: &Program<'_>) {
    with_all(host, |volume| {
        for user in usage(volume).0 {
            succeeds(host, &["release", volume, "--allocation", user]);
        }
        succeeds(host, &["delete", volume, "--yes"]);
    });
}

#[test]
fn a_host_of_callboard_passes_with_volumes_while_calls_fail_and_plugin_and_host_are_killed_c001_c013_c131() {
    let Some(namespace) = Namespace::or_say("a host with volumes in an exam") else { return };
    let stage = stage(&CALLS);
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

    is_passed(
        &stage,
        &[
            "C001", "C003", "C013", "C014", "C022", "C062", "C079", "C121", "C131", "C134", "C141", "C144",
            "C154",
        ],
    );
}

/// Checks that no rule was broken in three starts of the plugin, and that these rules were tried.
fn is_passed(stage: &Stage, expected: &[&str]) {
    let report = std::fs::read(stage.directory.path().join("report.json")).expect("it is written");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["clean"], true, "{report:#}");
    assert_eq!(report["starts"], 3, "{report:#}");
    let tried = rules(&report, "tried");
    for rule in expected {
        assert!(tried.iter().any(|tried| tried == rule), "{rule} was not tried: {report:#}");
    }
}

/// Expands each volume and takes a snapshot of it, then takes a group of all; each run uses other names and sizes.
fn order(host: &Program<'_>, run: usize) -> String {
    let (name, size) = (format!("run-{run}"), format!("{}GiB", run + 1));
    with_all(host, |volume| {
        succeeds(host, &["expand", volume, "--capacity", &size]);
        succeeds(host, &["snapshot", "create", volume, "--name", &format!("{name}-{volume}")]);
    });
    // A request that names the volumes in another order gets the same group.
    let group = |volumes: [&str; 3]| {
        let words = [&["volume", "snapshot", "group", "create"][..], &volumes, &["--name", &name]].concat();
        let taken = host.json(&words)["group"].clone();
        taken["group_snapshot_id"].as_str().expect("a text").to_owned()
    };
    let [a, b, c] = VOLUMES;
    let id = group([a, b, c]);
    assert_eq!(group([c, a, b]), id);
    id
}

/// Deletes the snapshots of [`order`], each through another volume than its own.
fn take_back(host: &Program<'_>, group: &str) {
    let delete = ["volume", "snapshot", "group", "delete", VOLUMES[0], "--id", group, "--yes"];
    // Its snapshots are looked up first; this is not an order, so it is retried here and waits for no plugin.
    until_true("the group is deleted", TIMEOUT, || host.ask(&delete).status.success());
    let list = host.json(&["volume", "snapshot", "list", "--plugin", "zfs"]);
    let snapshots = list["snapshots"].as_array().expect("a list").iter().map(|one| &one["snapshot_id"]);
    let ids: Vec<_> = snapshots.map(|id| id.as_str().expect("a text").to_owned()).collect();
    assert_eq!(ids.len(), VOLUMES.len(), "{list:#}");
    with_all(host, |volume| {
        let place = VOLUMES.iter().position(|of| *of == volume).expect("it is one of them");
        let id = &ids[(place + 1) % ids.len()];
        succeeds(host, &["snapshot", "delete", volume, "--id", id, "--yes"]);
    });
}

#[test]
fn a_host_of_callboard_passes_with_what_is_ordered_while_calls_fail_and_plugin_and_host_are_killed_c002_c013_c106()
 {
    let Some(namespace) = Namespace::or_say("a host with snapshots in an exam") else { return };
    let stage = stage(&ORDERS);
    let host = namespace.run(&stage);
    host.until_active("csi-controller", "zfs", "exam");
    make_and_claim(&host);
    let group = order(&host, 1);
    take_back(&host, &group);

    let group = order(&host, 2);
    kill(pid_of(&host.json(&["status"]), "exam"));
    take_back(&host, &group);

    let group = order(&host, 3);
    host.kill();
    let host = namespace.run(&stage);
    take_back(&host, &group);
    release_and_delete(&host);
    host.signal(Signal::TERM);
    let (exit, printed) = host.ended();
    assert_eq!(exit.code(), Some(0), "{printed}");
    is_passed(&stage, &["C001", "C002", "C013", "C103", "C106", "C111", "C112", "C149", "C151"]);
}
