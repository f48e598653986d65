//! Tests `callboard volume` end to end: a real host with the reference plugin in its own user and mount namespace, and an operator who
//! works with volumes.

mod program;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use program::driven::has_none;
use program::{CALLBOARD, Program, Stage, TIMEOUT, allocation, plugin, until_true};
use serde_json::{Value, json};

/// A namespace in which every user may mount.
const NAMESPACE: [&str; 5] = ["unshare", "--user", "--map-root-user", "--mount", "--"];

/// Whether this system permits such a namespace. Otherwise reports that the test is skipped.
fn is_permitted() -> bool {
    let mut unshare = Command::new(NAMESPACE[0]);
    unshare.args(&NAMESPACE[1..]).arg("true").stderr(Stdio::null());
    let is_permitted = unshare.status().is_ok_and(|status| status.success());
    if !is_permitted {
        eprintln!("SKIPPED: volumes are not shown, since `unshare --user --mount` is refused here");
    }
    is_permitted
}

/// A stage with a plugin that has volumes, these arguments, and a directory for its volumes.
fn stage(arguments: &[&str]) -> Stage {
    let stage = Stage::new("");
    let volumes = stage.directory.path().join("volumes");
    let volumes = volumes.to_str().expect("it is text");
    let arguments = [&["--volumes", volumes], arguments].concat();
    stage.configure(&allocation("plugin", "zfs", "monolith", &arguments, ""));
    stage
}

/// The number of mounts that the host sees at a path.
fn mounts_at(host: &Program<'_>, path: &str) -> usize {
    let pid = host.json(&["status"])["host"]["pid"].clone();
    let table = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).expect("it runs");
    table.lines().filter(|line| line.split(' ').nth(4) == Some(path)).count()
}

fn printed(host: &Program<'_>, words: &[&str]) -> String {
    let output = host.ask(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

const CREATE: [&str; 7] = ["volume", "create", "data", "--plugin", "zfs", "--capacity", "1MiB"];
const CLAIM: [&str; 5] = ["volume", "claim", "data", "--allocation", "web"];
const DELETE: [&str; 4] = ["volume", "delete", "data", "--yes"];
const RELEASE: [&str; 5] = ["volume", "release", "data", "--allocation", "web"];

#[test]
fn an_operator_creates_claims_releases_and_deletes_a_volume_v3_v7() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&[]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    assert_eq!(printed(&host, &["volume", "list"]), "no volumes\n");

    let created = host.json(&CREATE);
    assert_eq!(created["created"], "default/data");
    assert_eq!(created["capacity_bytes"], 1 << 20);
    assert_eq!(host.json(&CREATE), created, "the same once more is the same volume");

    let path = printed(&host, &CLAIM);
    let path = path.trim_end();
    assert_eq!(mounts_at(&host, path), 1, "it is mounted at {path}");
    let again = host.json(&CLAIM);
    assert_eq!(
        (&again["path"], &again["block"], &again["read_only"]),
        (&json!(path), &json!(false), &json!(false))
    );

    let status = host.json(&["status"]);
    let [volume] = &status["volumes"].as_array().expect("a list")[..] else { panic!("{status:#}") };
    assert_eq!(
        (&volume["name"], &volume["exists"], &volume["stage"]),
        (&json!("default/data"), &json!("created"), &json!("up"))
    );
    assert_eq!(
        (&volume["claims"][0]["allocation"], &volume["claims"][0]["proven"]),
        (&json!("web"), &json!(true))
    );
    assert_eq!(volume["volume_id"], created["volume_id"]);
    assert_eq!(plugin(&status, "csi-node", "zfs")["volumes_in_use"], 1);
    let table = printed(&host, &["status"]);
    assert!(table.contains("VOLUME") && table.contains("web up"), "{table}");
    let whole = printed(&host, &["status", "data"]);
    assert!(whole.contains("volume default/data") && whole.contains("in use"), "{whole}");
    for words in [&["health", "data"][..], &["status", "data", "--check"]] {
        assert_eq!(host.ask(words).status.code(), Some(0), "{words:?} of a volume that is in use and served");
    }
    let one = host.json(&["volume", "status", "data"]);
    assert_eq!((&one["name"], &one["claims"][0]["path"]), (&json!("default/data"), &json!(path)));
    assert!(!one["events"].as_array().expect("a list").is_empty(), "{one:#}");

    let released = host.json(&RELEASE);
    let expected = json!({ "released": "default/data", "allocation": "web", "was_held": true, "others": [] });
    assert_eq!(released, expected);
    assert_eq!(mounts_at(&host, path), 0, "it is unmounted");
    let (exit, said) = host.refusal(&RELEASE);
    assert!(exit == 1 && said.contains("web has no claim to volume default/data"), "{said}");

    assert_eq!(printed(&host, &DELETE), "default/data is deleted\n");
    let (exit, said) = host.refusal(&DELETE);
    assert!(exit == 1 && said.contains("the host has no volume default/data"), "{said}");
    host.until("it is forgotten", |status| has_none(status, "volumes"));
}

#[test]
fn what_cannot_be_done_with_a_volume_is_refused_with_the_holder_and_what_to_do_v8_v12() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&[]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let refused = |words: &[&str], code: i32, parts: &[&str]| {
        let (exit, said) = host.refusal(words);
        assert!(exit == code && parts.iter().all(|part| said.contains(part)), "{words:?}: {exit} {said}");
    };
    refused(&CLAIM, 1, &["there is no volume default/data; create it first"]);
    refused(&RELEASE, 1, &["there is no volume default/data, so nothing of it is claimed here"]);
    // Its source is unknown to the plugin, so it is never created; cancelling that is not an error.
    let copy = ["volume", "create", "copy", "--plugin", "zfs", "--from-volume", "unknown", "--within", "1s"];
    refused(&copy, 1, &["the creation goes on: ask again, or delete it"]);
    assert_eq!(printed(&host, &["volume", "delete", "copy", "--yes"]), "default/copy is deleted\n");
    refused(
        &["volume", "forget", "data"],
        1,
        &["the host has no volume default/data; `callboard volume list`"],
    );
    refused(&DELETE, 1, &["the host has no volume default/data; `callboard volume list`"]);
    refused(
        &["volume", "status", "data"],
        1,
        &["the host has no volume default/data; `callboard volume list`"],
    );
    let nowhere = ["volume", "create", "data", "--plugin", "zsf"];
    refused(
        &nowhere,
        1,
        &["no allocation of the configuration serves plugin zsf as controller", "known here: zfs"],
    );
    host.json(&CREATE);
    let other = [&CREATE[..], &["--parameter", "pool=tank"]].concat();
    refused(&other, 1, &["was to be created with other arguments: parameter \"pool\" was not given"]);

    refused(&["volume", "forget", "data"], 1, &["was created here, so it can only be deleted"]);
    host.json(&CLAIM);
    let second = ["volume", "claim", "data", "--allocation", "db"];
    refused(&second, 1, &["is held by web", "it can be claimed once that is released"]);
    refused(&DELETE, 1, &["is not deleted", "web"]);
    let asks = "the data of a volume is deleted with it, and standard input is no terminal";
    refused(&["volume", "delete", "data"], 2, &[asks, "add --yes"]);

    // A forced release does not replace a release; it asks for confirmation, and needs a reason.
    let force = [&RELEASE[..], &["--force", "--reason", "the test wants it"]].concat();
    refused(&force, 2, &["standard input is no terminal; nothing was changed: add --yes"]);
    refused(
        &[&force[..], &["--yes"]].concat(),
        1,
        &["allocation web holds volume default/data", "release that claim first"],
    );
    assert_eq!(host.json(&["volume", "status", "data"])["claims"][0]["desired"], "held");

    // Such a claim would be released at the end of an allocation that the host itself runs.
    let own = ["volume", "claim", "data", "--allocation", "plugin"];
    refused(&own, 1, &["is not claimed: this host runs plugin itself", "choose another allocation name"]);

    // An allocation that the host itself runs has not ended, even if its operator claims so.
    let own = ["volume", "release", "data", "--allocation", "plugin"];
    refused(&own, 1, &["allocation plugin has the process", "callboard stop plugin"]);
    host.json(&RELEASE);
    refused(&[&force[..], &["--yes"]].concat(), 1, &["there is nothing to force"]);
}

#[test]
fn a_release_that_the_plugin_does_not_confirm_goes_on_and_is_forced_with_an_audit_v9_v15() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&["--fault", "NodeUnpublishVolume=INTERNAL"]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let timeline = Timeline::of(&stage);
    host.json(&CREATE);
    host.json(&CLAIM);

    let (exit, said) = host.refusal(&[&RELEASE[..], &["--within", "200ms"]].concat());
    assert!(
        exit == 1 && said.contains("is not released yet") && said.contains("the release goes on"),
        "{said}"
    );
    let failing = host.json(&["volume", "status", "data"]);
    assert_eq!(failing["claims"][0]["desired"], "released");
    let checked = host.ask(&["status", "--check"]);
    let table = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.code() == Some(3) && table.contains("1 not well: volume default/data"), "{table}");

    let force = ["volume", "release", "data", "--force", "--yes", "--reason", "the plugin is broken"];
    let forced = host.json(&force);
    let left = forced["left"].as_array().expect("a list");
    assert!(left.iter().any(|step| step.as_str().is_some_and(|step| step.contains("web"))), "{forced:#}");
    let reason = forced["reason"].as_str().expect("a text");
    assert!(reason.starts_with("user ") && reason.ends_with(": the plugin is broken"), "{reason}");
    let (exit, said) = host.refusal(&RELEASE);
    assert!(
        exit == 1 && said.contains("web has no claim to volume default/data"),
        "it is not released: {said}"
    );
    until_true("the audit is in the log", TIMEOUT, || host.log().contains("the plugin is broken"));
    for (from, to, message) in [
        ("volumes", "plugin zfs", "create default/data"),
        ("plugin zfs", "volumes", "default/data is created"),
        ("volumes", "everyone", "web claims default/data"),
        ("volumes", "plugin zfs", "publish default/data for web"),
        ("volumes", "everyone", "web has default/data at "),
        ("volumes", "everyone", "web has released default/data"),
        ("volumes", "everyone", "whether default/data is unpublished for web is unknown"),
        ("volumes", "everyone", "default/data is forgotten by force: "),
    ] {
        timeline.until(from, to, message);
    }
}

#[test]
fn a_volume_is_expanded_while_it_is_used_and_grows_with_its_next_claim_otherwise_c109_c111_c149() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&[]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let timeline = Timeline::of(&stage);
    let expand = |size: &'static str| ["volume", "expand", "data", "--capacity", size];
    let (exit, said) = host.refusal(&expand("2MiB"));
    assert!(exit == 1 && said.contains("there is no volume default/data"), "{said}");
    host.json(&CREATE);
    host.json(&CLAIM);
    let expanded = json!({ "expanded": "default/data", "capacity_bytes": 2 << 20, "node_next": false });
    assert_eq!(host.json(&expand("2MiB")), expanded);
    assert_eq!(host.json(&["volume", "status", "data"])["capacity_bytes"], 2 << 20);
    timeline.until("volumes", "plugin zfs", "default/data: expand to 2097152 bytes");
    timeline.until("volumes", "plugin zfs", "default/data: expand to 2097152 bytes, on the node");
    let (exit, said) = host.refusal(&expand("1MiB"));
    assert!(exit == 1 && said.contains("has 2097152 bytes, and cannot be made smaller"), "{said}");

    host.json(&RELEASE);
    let text = printed(&host, &expand("3MiB"));
    assert_eq!(text, "default/data is expanded to 3.0 MiB; it grows on this node with its next claim\n");
    let resting = &host.json(&["volume", "status", "data"]);
    assert_eq!(resting["capacity_bytes"], 3 << 20);
    host.json(&CLAIM);
    timeline.until("volumes", "plugin zfs", "default/data: expand to 3145728 bytes, on the node");
    host.until("nothing is pending", |status| status["volumes"][0]["orders"] == json!([]));
    host.json(&RELEASE);
    assert_eq!(printed(&host, &DELETE), "default/data is deleted\n");
}

#[test]
fn a_volume_that_expands_only_offline_is_not_expanded_under_its_users_c109() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&["--offline-expansion", "--fault", "ControllerExpandVolume=UNAVAILABLE,after,nth:1"]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    host.json(&CREATE);
    host.json(&CLAIM);
    let expand = ["volume", "expand", "data", "--capacity", "2MiB"];
    let (exit, said) = host.refusal(&expand);
    assert!(exit == 1 && said.contains("held by web: release these claims first"), "{said}");
    host.json(&RELEASE);
    assert_eq!(host.json(&expand)["capacity_bytes"], 2 << 20, "it is tried again after the fault");
    host.json(&CLAIM);
    let released = "default/data is released: what was set up for web is undone\n";
    assert_eq!(printed(&host, &RELEASE), released);
}

#[test]
fn statistics_are_those_of_the_mount_and_a_slow_plugin_keeps_no_claim_waiting_v9_c144_c145() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&["--fault", "NodeGetVolumeStats=slow:2s,nth:2"]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let stats = ["volume", "stats", "data"];
    let (exit, said) = host.refusal(&stats);
    assert!(exit == 1 && said.contains("there is no volume default/data"), "{said}");
    host.json(&CREATE);
    let unclaimed = host.json(&stats);
    assert_eq!((&unclaimed["path"], &unclaimed["usage"]), (&Value::Null, &json!([])));
    assert_eq!(unclaimed["condition"]["at_controller"]["abnormal"], false, "{unclaimed:#}");

    let path = printed(&host, &CLAIM);
    let found = host.json(&stats);
    assert_eq!(found["path"], path.trim_end());
    let units: Vec<_> = found["usage"].as_array().expect("a list").iter().map(|one| &one["unit"]).collect();
    assert_eq!(units, ["bytes", "inodes"], "{found:#}");
    assert_eq!(found["condition"]["on_node"]["abnormal"], false);

    let (exit, said) = host.refusal(&[&stats[..], &["--within", "300ms"]].concat());
    assert!(exit == 1 && said.contains("did not answer in time"), "{said}");
    host.json(&RELEASE);
    assert!(printed(&host, &stats).starts_with("default/data\n  in order, says its controller: "));
}

#[test]
fn a_snapshot_is_taken_once_listed_in_pages_restored_and_deleted_c050_c057_c091_c093_c100() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&["--fault", "CreateSnapshot=UNAVAILABLE,after,nth:1"]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let take = |name: &'static str| ["volume", "snapshot", "create", "data", "--name", name];
    let (exit, said) = host.refusal(&take("nightly"));
    assert!(exit == 1 && said.contains("there is no volume default/data"), "{said}");
    let created = host.json(&CREATE);
    let path = printed(&host, &CLAIM);
    let pid = host.json(&["status"])["host"]["pid"].clone();
    let file = |path: &str| format!("/proc/{pid}/root{}/note", path.trim_end());
    std::fs::write(file(&path), "kept").expect("it is mounted");

    let taken = host.json(&take("nightly"));
    assert_eq!(taken["snapshot"]["source_volume_id"], created["volume_id"]);
    assert_eq!(taken["snapshot"]["ready"], true, "{taken:#}");
    assert_eq!(host.json(&take("nightly")), taken, "the same once more is the same snapshot");
    host.json(&take("weekly"));
    let id = taken["snapshot"]["snapshot_id"].as_str().expect("a text");

    let list = ["volume", "snapshot", "list", "--plugin", "zfs", "--volume", "data", "--max", "1"];
    let first = host.json(&list);
    let token = first["next_token"].as_str().expect("there is another one");
    let second = host.json(&[&list[..], &["--token", token]].concat());
    assert_eq!(second["next_token"], Value::Null);
    assert_ne!(first["snapshots"], second["snapshots"]);
    let (exit, said) = host.refusal(&[&list[..], &["--token", "of-another-list"]].concat());
    assert!(exit == 1 && said.contains("start the list again without a token"), "{said}");

    let restore =
        ["volume", "create", "copy", "--plugin", "zfs", "--capacity", "1MiB", "--from-snapshot", id];
    host.json(&restore);
    let copy = printed(&host, &["volume", "claim", "copy", "--allocation", "web"]);
    assert_eq!(std::fs::read_to_string(file(&copy)).expect("it is restored"), "kept");

    let unsure = ["volume", "snapshot", "delete", "data", "--id", id];
    let (exit, said) = host.refusal(&unsure);
    assert!(exit == 2 && said.contains("add --yes"), "{exit} {said}");
    let delete = [&unsure[..], &["--yes"]].concat();
    assert_eq!(
        printed(&host, &delete),
        format!("the plugin of default/data has no snapshot {id} any more\n")
    );
    assert_eq!(
        printed(&host, &delete),
        format!("the plugin of default/data has no snapshot {id} any more\n")
    );
    let left = host.json(&["volume", "snapshot", "list", "--plugin", "zfs"]);
    assert_eq!(left["snapshots"].as_array().expect("a list").len(), 1, "{left:#}");
    host.json(&["volume", "release", "copy", "--allocation", "web"]);
    host.json(&RELEASE);
}

#[test]
fn a_group_of_snapshots_is_taken_shown_survives_a_killed_host_and_is_deleted_c002_v5_c106() {
    if !is_permitted() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let broken = directory.path().join("broken");
    let fault = format!("CreateVolumeGroupSnapshot=UNAVAILABLE,after,while:{}", broken.display());
    let stage = stage(&["--fault", &fault]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let group = |words: &[&'static str]| [&["volume", "snapshot", "group"], words].concat();
    let weekly = group(&["create", "logs", "data", "--name", "weekly"]);
    let (exit, said) = host.refusal(&weekly);
    assert!(exit == 1 && said.contains("there is no volume default/logs"), "{said}");
    host.json(&CREATE);
    host.json(&["volume", "create", "logs", "--plugin", "zfs", "--capacity", "1MiB"]);
    let (exit, said) = host.refusal(&group(&["create", "data", "data", "--name", "weekly"]));
    assert!(exit == 1 && said.contains("names volume default/data twice"), "{said}");
    let too_long: &'static str = Box::leak("n".repeat(129).into_boxed_str());
    let (exit, said) = host.refusal(&group(&["create", "data", "--name", too_long]));
    assert!(exit == 1 && said.contains("cannot be done: name"), "{said}");

    // The plugin receives the order, and its answer never arrives: the order is in the ledger when the host is killed.
    File::create(&broken).expect("room");
    let timeline = Timeline::of(&stage);
    let (exit, said) = host.refusal(&[&weekly[..], &["--within", "300ms"]].concat());
    assert!(exit == 1 && said.contains("it goes on"), "{said}");
    timeline.until(
        "volumes",
        "plugin zfs",
        "default/data: take group of snapshots weekly of default/data, default/logs",
    );
    let open = host.json(&["volume", "status", "data"]);
    let what = open["orders"][0]["what"].as_str().expect("it is not done");
    assert_eq!(what, "take group of snapshots weekly of default/data, default/logs");
    let (exit, said) = host.refusal(&["volume", "delete", "logs", "--yes"]);
    assert!(exit == 1 && said.contains("of volume default/data is not done"), "{said}");
    drop(timeline);
    host.kill();
    std::fs::remove_file(&broken).expect("it is there");

    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    host.until("it is done", |status| {
        let volumes = status["volumes"].as_array().expect("a list");
        volumes.len() == 2 && volumes.iter().all(|volume| volume["orders"] == json!([]))
    });
    let taken = host.json(&weekly);
    assert_eq!(taken["volume"], "default/data", "the first of them keeps it");
    assert_eq!(taken["group"]["snapshots"].as_array().map(Vec::len), Some(2), "{taken:#}");
    let listed = host.json(&["volume", "snapshot", "list", "--plugin", "zfs"]);
    let ids = |snapshots: &Value| -> BTreeSet<String> {
        let all = snapshots.as_array().expect("a list").iter();
        all.map(|one| one["snapshot_id"].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(ids(&listed["snapshots"]), ids(&taken["group"]["snapshots"]), "it was taken once");

    let id: &'static str = Box::leak(taken["group"]["group_snapshot_id"].as_str().expect("a text").into());
    let shown = host.json(&group(&["show", "data", "--id", id]));
    assert_eq!(shown["group"], taken["group"]);
    assert!(printed(&host, &group(&["show", "data", "--id", id])).starts_with(&format!("{id} is ready")));
    let one: &'static str =
        Box::leak(taken["group"]["snapshots"][0]["snapshot_id"].as_str().expect("a text").into());
    let (exit, said) = host.refusal(&["volume", "snapshot", "delete", "data", "--id", one, "--yes"]);
    assert!(exit == 1 && said.contains(&format!("snapshot group delete default/data --id {id}")), "{said}");
    let (exit, said) = host.refusal(&group(&["delete", "data", "--id", id, "--snapshot", one, "--yes"]));
    assert!(exit == 1 && said.contains("name exactly those"), "{said}");
    let unsure = group(&["delete", "data", "--id", id]);
    let (exit, said) = host.refusal(&unsure);
    assert!(exit == 2 && said.contains("add --yes"), "{exit} {said}");
    let delete = [&unsure[..], &["--yes"]].concat();
    let gone = format!("the plugin of default/data has no group {id} any more\n");
    assert_eq!(printed(&host, &delete), gone);
    let (exit, said) = host.refusal(&delete);
    assert!(exit == 1 && said.contains("it is deleted, or was never there"), "{exit} {said}");
    assert_eq!(
        printed(&host, &[&delete[..], &["--snapshot", one]].concat()),
        gone,
        "it is asked for by its ids"
    );
    let left = host.json(&["volume", "snapshot", "list", "--plugin", "zfs"]);
    assert_eq!(left["snapshots"], json!([]));
    let (exit, said) = host.refusal(&group(&["show", "data", "--id", id]));
    assert!(exit == 1 && said.contains("lists no snapshot of a group"), "{exit} {said}");
}

#[test]
fn the_deletion_of_a_group_is_waited_for_although_its_snapshots_are_not_listed_any_more_c106() {
    if !is_permitted() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let broken = directory.path().join("broken");
    let fault = format!("DeleteVolumeGroupSnapshot=UNAVAILABLE,after,while:{}", broken.display());
    let stage = stage(&["--fault", &fault]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    host.json(&CREATE);
    let taken = host.json(&["volume", "snapshot", "group", "create", "data", "--name", "weekly"]);
    let id = taken["group"]["group_snapshot_id"].as_str().expect("a text");
    let one = taken["group"]["snapshots"][0]["snapshot_id"].as_str().expect("a text");
    File::create(&broken).expect("room");
    let delete = ["volume", "snapshot", "group", "delete", "data", "--id", id, "--yes"];
    let soon = ["--within", "300ms"];
    for (what, more) in [
        ("it is ordered", &["--snapshot", one][..]),
        ("the plugin has deleted it, and its answer never comes", &[]),
    ] {
        let (exit, said) = host.refusal(&[&delete[..], &soon, more].concat());
        assert!(exit == 1 && said.contains("is not done in time"), "{what}: {said}");
    }
    std::fs::remove_file(&broken).expect("it is there");
    host.until("it is done", |status| status["volumes"][0]["orders"] == json!([]));
    let (exit, said) = host.refusal(&delete);
    assert!(exit == 1 && said.contains("it is deleted, or was never there"), "{said}");
}

#[test]
fn a_plugin_tells_what_it_has_and_changes_parameters_c056_c090_c091_c096_c097() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&["--capacity", "8388608"]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let created = host.json(&CREATE);
    // The plugin gives as much as the limit permits.
    let other = host.json(&["volume", "create", "other", "--plugin", "zfs", "--limit", "1MiB"]);
    assert_eq!(other["capacity_bytes"], 1 << 20);

    let first = host.json(&["volume", "list-plugin", "zfs", "--max", "1"]);
    let token = first["next_token"].as_str().expect("there is another one");
    let second = host.json(&["volume", "list-plugin", "zfs", "--token", token]);
    let ids = [&first["volumes"][0]["volume_id"], &second["volumes"][0]["volume_id"]];
    assert!(ids[0] != ids[1] && ids.contains(&&created["volume_id"]), "{first:#} {second:#}");
    let (exit, said) = host.refusal(&["volume", "list-plugin", "zfs", "--token", "of-another-list"]);
    assert!(exit == 1 && said.contains("start the list again without a token"), "{said}");

    let room = host.json(&["volume", "capacity", "zfs"]);
    assert_eq!(room["available_bytes"], 6 << 20);
    assert!(printed(&host, &["volume", "capacity", "zfs"]).starts_with("6.0 MiB available"));
    let (exit, said) = host.refusal(&["volume", "capacity", "nfs"]);
    assert!(exit == 1 && said.contains("no allocation of the configuration serves plugin nfs"), "{said}");

    assert_eq!(printed(&host, &["volume", "validate", "data"]), "default/data supports this usage\n");
    let block = host.ask(&["volume", "validate", "data", "--block", "--json"]);
    assert_eq!(block.status.code(), Some(1), "it is not confirmed");
    let block: Value = serde_json::from_slice(&block.stdout).expect("JSON");
    assert_eq!(block["confirmed"], false, "{block:#}");

    let modify = ["volume", "modify", "data", "--parameter", "label=mine"];
    assert_eq!(printed(&host, &modify), "default/data is modified\n");
    let other = ["volume", "modify", "data", "--parameter", "size=9"];
    let (exit, said) = host.refusal(&other);
    assert!(exit == 1 && said.contains("is refused") && said.contains("can be changed"), "{said}");
    let (exit, said) = host.refusal(&["volume", "modify", "data"]);
    assert!(exit == 2 && said.contains("give --parameter KEY=VALUE"), "{said}");
    let (exit, said) = host.refusal(&["volume", "modify", "unknown", "--parameter", "note=1"]);
    assert!(exit == 1 && said.contains("there is no volume default/unknown"), "{said}");
}

#[test]
fn a_volume_is_validated_for_the_usage_of_its_entry_unless_another_one_is_given_c090() {
    if !is_permitted() {
        return;
    }
    let stage = stage(&[]);
    let run = || {
        let host = stage.run_through(&NAMESPACE);
        for plugin_type in ["csi-node", "csi-controller"] {
            host.until_active(plugin_type, "zfs", "plugin");
        }
        host
    };
    let validate = ["volume", "validate", "raw"];
    let host = run();
    host.json(&["volume", "create", "raw", "--plugin", "zfs", "--capacity", "1MiB", "--block"]);
    let usual = host.ask(&validate);
    let said = String::from_utf8_lossy(&usual.stdout);
    assert!(usual.status.code() == Some(1) && said.contains("name another usage by --block"), "{said}");
    let block = [&validate[..], &["--block"]].concat();
    assert_eq!(printed(&host, &block), "default/raw supports this usage\n");
    host.json(&["shutdown"]);
    drop(host);

    let without = std::fs::read_to_string(stage.config()).expect("it is there");
    let volume = "[[volume]]\nname = 'raw'\nplugin = 'zfs'\nblock = true\ncreate = {}\n";
    std::fs::write(stage.config(), format!("{without}\n{volume}")).expect("it can be written");
    let host = run();
    assert_eq!(printed(&host, &validate), "default/raw supports this usage\n");
    let other = host.ask(&[&validate[..], &["--access-mode", "single-node-writer"]].concat());
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(other.status.code() == Some(1) && !said.contains("--block"), "{said}");
}

#[test]
fn an_order_that_is_never_confirmed_is_given_up_while_the_volume_is_in_use_v9() {
    if !is_permitted() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let broken = directory.path().join("broken");
    File::create(&broken).expect("room");
    let fault = format!("ControllerModifyVolume=INTERNAL,before,while:{}", broken.display());
    let stage = stage(&["--fault", &fault]);
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    host.json(&CREATE);
    host.json(&CLAIM);
    let modify = |label: &'static str| ["volume", "modify", "data", "--parameter", label];
    let (exit, said) = host.refusal(&[&modify("label=old")[..], &["--within", "300ms"]].concat());
    assert!(exit == 1 && said.contains("it goes on"), "{said}");
    let (exit, said) = host.refusal(&modify("label=new"));
    assert!(exit == 1 && said.contains("has to wait"), "{said}");

    let force = ["volume", "release", "data", "--force", "--reason", "the array never answers", "--yes"];
    let (exit, said) = host.refusal(&force);
    assert!(exit == 1 && said.contains("web holds volume default/data"), "{said}");
    let forced = host.json(&[&force[..], &["--orders"]].concat());
    assert!(forced["left"][0].as_str().is_some_and(|left| left.contains("modify label")), "{forced:#}");
    let (exit, said) = host.refusal(&[&force[..], &["--orders"]].concat());
    assert!(exit == 1 && said.contains("there is nothing to force"), "{said}");
    std::fs::remove_file(&broken).expect("it is there");
    assert_eq!(printed(&host, &modify("label=new")), "default/data is modified\n");
    assert_eq!(host.json(&["volume", "status", "data"])["claims"][0]["desired"], "held");
    host.json(&RELEASE);
}

/// A client that writes the timeline into a file, until it is dropped.
struct Timeline {
    child: Child,
    file: PathBuf,
}

impl Timeline {
    /// Starts to watch, and waits until the client misses nothing from then on.
    fn of(stage: &Stage) -> Self {
        let file = stage.directory.path().join("timeline");
        let mut command = Command::new(CALLBOARD);
        command.args(["watch", "--timeline", "--json", "--data-dir"]).arg(stage.data_dir());
        let child = command.stdout(File::create(&file).expect("room")).spawn().expect("it starts");
        let timeline = Self { child, file };
        timeline.until("timeline", "you", "messages from now on");
        timeline
    }

    /// Waits until the timeline has this message between these two.
    fn until(&self, from: &str, to: &str, message: &str) {
        let is_it = |line: &str| {
            // The last line may be incomplete.
            let Ok(said) = serde_json::from_str::<Value>(line) else { return false };
            let begins = said["message"].as_str().is_some_and(|said| said.starts_with(message));
            begins && said["from"] == from && said["to"] == to
        };
        let is_said = || std::fs::read_to_string(&self.file).expect("it is there").lines().any(is_it);
        until_true(message, TIMEOUT, is_said);
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        // The process has already ended if the host has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A volume that an earlier configuration named by its id stays known until it is forgotten; it stays at its plugin.
#[test]
fn a_volume_that_was_made_elsewhere_is_forgotten_on_request_v12() {
    let stage = stage(&[]);
    let without = std::fs::read_to_string(stage.config()).expect("it is there");
    let volume = "[[volume]]\nname = 'old'\nplugin = 'zfs'\nid = 'v-1'\n";
    std::fs::write(stage.config(), format!("{without}\n{volume}")).expect("it can be written");
    let forget = ["volume", "forget", "old"];
    let host = stage.run();
    host.until("it is known", |status| !has_none(status, "volumes"));
    let (exit, said) = host.refusal(&forget);
    assert!(exit == 1 && said.contains("is not forgotten: it is in the configuration"), "{said}");
    host.json(&["shutdown"]);
    drop(host);

    // Under another name its claims would be refused, and this is reported before there is a claim.
    let renamed = volume.replace("'old'", "'new'");
    std::fs::write(stage.config(), format!("{without}\n{renamed}")).expect("it can be written");
    let host = stage.run();
    let listed = host.json(&["volume", "list"]);
    let new =
        listed["volumes"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "default/new"));
    let new = new.expect("it is listed");
    assert!(new["exists"] == "configured" && new["error"].to_string().contains("default/old"), "{listed:#}");
    let health = host.ask(&["health"]);
    let said = String::from_utf8_lossy(&health.stdout).into_owned();
    assert!(said.contains("default/new") && said.contains("default/old"), "{said}");
    host.json(&["shutdown"]);
    drop(host);

    std::fs::write(stage.config(), without).expect("it can be written");
    let host = stage.run();
    assert_eq!(host.json(&["volume", "list"])["volumes"][0]["name"], "default/old");
    assert_eq!(printed(&host, &forget), "default/old is forgotten\n");
    host.until("it is forgotten", |status| has_none(status, "volumes"));
    let (exit, said) = host.refusal(&forget);
    assert!(exit == 1 && said.contains("the host has no volume default/old"), "{said}");
}

/// Without the secrets its undo would be refused, or, worse, a creation would make another volume.
#[test]
fn a_volume_with_secrets_that_left_the_configuration_waits_for_them_and_is_deleted_while_it_is_configured_c081()
 {
    if !is_permitted() {
        return;
    }
    let stage = stage(&[]);
    let without = std::fs::read_to_string(stage.config()).expect("it is there");
    let secret = stage.directory.path().join("password");
    std::fs::write(&secret, "sesame").expect("it can be written");
    let volume = format!(
        "[[volume]]\nname = 'data'\nplugin = 'zfs'\ncreate = {{}}\nsecrets = {{ password = {{ file = {secret:?} }} }}\n"
    );
    let with = format!("{without}\n{volume}");
    std::fs::write(stage.config(), &with).expect("it can be written");
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    host.json(&CLAIM);
    host.json(&RELEASE);
    host.json(&["shutdown"]);
    drop(host);

    std::fs::write(stage.config(), without).expect("it can be written");
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    let (exit, said) = host.refusal(&[&CLAIM[..], &["--within", "1s"]].concat());
    let missing = "had volume default/data with the secrets password";
    assert!(exit == 1 && said.contains(missing) && !said.contains("sesame"), "{said}");
    host.json(&["shutdown"]);
    drop(host);

    std::fs::write(stage.config(), with).expect("it can be written");
    let host = stage.run_through(&NAMESPACE);
    host.until_active("csi-node", "zfs", "plugin");
    host.json(&CLAIM);
    host.json(&RELEASE);
    let deleted = printed(&host, &DELETE);
    assert!(deleted.contains("data is deleted; remove its [[volume]]"), "{deleted}");
}
