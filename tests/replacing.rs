//! Tests that a new version of a plugin replaces the old one behind a gate, with real processes (F16).

mod program;

use program::{Program, Stage, allocation, plugin, task};
use serde_json::{Value, json};

/// Version 1 runs, and there are two candidates: version 2, and a version whose node id is empty (C006).
fn stage() -> Stage {
    let old = allocation("zfs-1", "zfs", "node", &["--plugin-version", "1"], "");
    let new = allocation("zfs-2", "zfs", "node", &["--plugin-version", "2"], "start = false");
    let broken = ["--plugin-version", "3", "--node-id", ""];
    let broken = allocation("zfs-3", "zfs", "node", &broken, "start = false");
    let other = allocation("nfs-1", "nfs", "node", &[], "start = false");
    Stage::new(&(old + &new + &broken + &other))
}

fn registrations(host: &Program<'_>) -> Vec<(Value, Value, Value)> {
    let status = host.json(&["status"]);
    let all = plugin(&status, "csi-node", "zfs")["registrations"].clone();
    let all = all.as_array().expect("a list").iter();
    all.map(|one| (one["allocation"].clone(), one["standing"].clone(), one["version"].clone())).collect()
}

#[test]
fn the_old_version_leaves_when_the_new_one_has_been_healthy_f16() {
    let stage = stage();
    let host = stage.run();
    host.until_active("csi-node", "zfs", "zfs-1");
    let report = host.json(&["replace", "zfs-1", "--with", "zfs-2", "--healthy-for", "500ms"]);
    let stopped: Vec<_> = report["report"].as_array().expect("a list").iter().map(|s| &s["child"]).collect();
    assert_eq!(stopped, ["allocation/zfs-1", "process/zfs-1"], "the books first (SHD-04)");
    host.until_active("csi-node", "zfs", "zfs-2");
    assert_eq!(registrations(&host), [(json!("zfs-2"), json!("active"), json!("2"))]);
    assert_eq!(task(&host.json(&["status"]), "zfs-1")["task"], "stopped");
    let log = host.log();
    assert!(log.contains("an allocation is to be replaced allocation=\"zfs-1\" with=\"zfs-2\""), "{log}");
    assert!(log.contains("the replacement has ended allocation=\"zfs-1\" with=\"zfs-2\""), "{log}");
}

#[test]
fn a_bad_rollout_is_rolled_back_and_the_old_version_serves_all_the_time_f16_r1a() {
    let stage = stage();
    let host = stage.run();
    let before = host.until_active("csi-node", "zfs", "zfs-1");
    let replace = ["replace", "zfs-1", "--with", "zfs-3", "--healthy-for", "500ms", "--within", "3s"];
    let (code, error) = host.refusal(&replace);
    assert_eq!(code, 1);
    let expected =
        "callboard: allocation zfs-1 was not replaced with zfs-3: zfs-3 is unhealthy as csi-node/zfs: ";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("node_id is empty") && error.ends_with("; the new one has stopped"), "{error}");
    let after = host.until_active("csi-node", "zfs", "zfs-1");
    assert_eq!(after["generation"], before["generation"], "nothing was changed of it");
    assert_eq!(registrations(&host), [(json!("zfs-1"), json!("active"), json!("1"))]);
    assert_eq!(task(&host.json(&["status"]), "zfs-3")["task"], "stopped");
}

#[test]
fn two_versions_at_once_are_shown_with_what_the_standby_lacks_r1b() {
    let stage = stage();
    let host = stage.run();
    host.until_active("csi-node", "zfs", "zfs-1");
    host.json(&["start", "zfs-3"]);
    let is_told = |status: &Value| {
        let registrations = &plugin(status, "csi-node", "zfs")["registrations"];
        registrations[1]["lacks"].as_str().is_some_and(|lacks| lacks.contains("node_id is empty"))
    };
    host.until("what the broken one lacks", is_told);
    let [first, second] = &registrations(&host)[..] else { panic!("two registrations") };
    assert_eq!(*first, (json!("zfs-1"), json!("active"), json!("1")));
    assert_eq!(*second, (json!("zfs-3"), json!("standby"), json!("3")));
    let shown = String::from_utf8(host.ask(&["status"]).stdout).expect("a text");
    assert!(shown.contains("standby zfs-3, version 3: unhealthy: "), "{shown}");
}

#[test]
fn what_cannot_be_replaced_is_refused_and_nothing_changes_f16() {
    let stage = stage();
    let host = stage.run();
    host.until_active("csi-node", "zfs", "zfs-1");
    let expected = [
        (
            ["zfs-1", "zfs-1"],
            "allocation zfs-1 cannot be replaced with itself; name another one of its plugin",
        ),
        (
            ["zfs-1", "nfs-1"],
            "allocation zfs-1 serves zfs as node, and nfs-1 serves nfs as node; name one that serves the same",
        ),
        (["zfs-2", "zfs-3"], "allocation zfs-2 does not run: it is stopped"),
        (["zfs-1", "zfs-9"], "the configuration has no allocation \"zfs-9\""),
    ];
    for ([old, new], text) in expected {
        assert_eq!(host.refusal(&["replace", old, "--with", new]), (1, format!("callboard: {text}")));
    }
    let too_soon = ["replace", "zfs-1", "--with", "zfs-2", "--healthy-for", "5s", "--within", "4s"];
    let text = "the new allocation cannot have been healthy for 5s within 4s; give it more time";
    assert_eq!(host.refusal(&too_soon), (1, format!("callboard: {text}")));
    for name in ["zfs-2", "zfs-3", "nfs-1"] {
        assert_eq!(task(&host.json(&["status"]), name)["task"], "stopped");
    }
}
