//! Tests real processes under `callboard run` that use volumes: the reference plugin, its volumes, allocations, and tasks of the reference
//! driver, in their own mount namespace.

mod program;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use program::driven::{find, until_running};
use program::namespace::Namespace;
use program::{Stage, allocation, until_true, until_true_or};

/// The directories of tasks belong to several users, and a user namespace has only one.
fn is_root_or_say(what: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: {what} is not shown, since only root gives directories to other users");
    }
    rustix::process::geteuid().is_root()
}

/// A host with the reference plugin, and a task that writes a line into its volume at each start.
fn stage() -> Stage {
    let stage = Stage::new("");
    let directory = stage.directory.path();
    let (volumes, mount_point) = (directory.join("kept-volumes"), directory.join("mnt"));
    fs::create_dir(&mount_point).expect("room");
    let options = ["--volumes", volumes.to_str().expect("text"), "--node-id", "node-1"];
    let plugin = allocation("hostpath-1", "hostpath", "monolith", &options, "");
    let mount_point = mount_point.display();
    let script = format!("echo started >> {mount_point}/starts; exec sleep 1000");
    stage.configure(&format!(
        r#"
{plugin}
[[driver]]
name = "exec"

[[volume]]
name = "data"
plugin = "hostpath"
create = {{}}

[[task]]
name = "web"
driver = "exec"
config = {{ command = "/bin/sh", args = ["-c", {script:?}] }}
volumes = [{{ name = "data", destination = "{mount_point}" }}]
"#
    ));
    stage
}

/// The same with an allocation that writes such lines. It serves no plugin, since it never listens.
fn stage_of_allocation() -> Stage {
    let stage = Stage::new("");
    configure_allocation(&stage, "", "");
    stage
}

/// The same with these lines for the plugin and for the allocation.
fn configure_allocation(stage: &Stage, of_plugin: &str, of_user: &str) {
    let volumes = stage.directory.path().join("kept-volumes");
    let options = ["--volumes", volumes.to_str().expect("text"), "--node-id", "node-1"];
    let plugin = allocation("hostpath-1", "hostpath", "monolith", &options, of_plugin);
    stage.configure(&format!(
        r#"
{plugin}
[[volume]]
name = "data"
plugin = "hostpath"
create = {{}}

[[allocation]]
name = "user-1"
plugin = "user"
type = "node"
command = "/bin/sh"
args = ["-c", "echo started >> ${{CALLBOARD_VOLUME_DATA}}/starts; exec sleep 1000"]
volumes = ["data"]
{of_user}
"#
    ));
}

/// The lines of a file in the volume, as its plugin stores it.
fn written(volumes: &Path) -> usize {
    let mut directories = vec![volumes.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name() == "starts" {
                return fs::read_to_string(entry.path()).unwrap_or_default().lines().count();
            }
            if entry.path().is_dir() {
                directories.push(entry.path());
            }
        }
    }
    0
}

#[test]
fn a_task_writes_into_its_volume_which_is_released_when_it_has_stopped_and_kept_v1_v8() {
    if !is_root_or_say("a task with a volume") {
        return;
    }
    let Some(namespace) = Namespace::or_say("a task with a volume") else { return };
    let stage = stage();
    let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
    let host = namespace.run(&stage);
    until_running(&host, "web");
    until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
    assert!(
        fs::read_dir(stage.directory.path().join("mnt")).expect("there").next().is_none(),
        "the host sees its own"
    );
    assert!(!namespace.mounted(&data_dir, &volumes).is_empty(), "it is published");

    assert!(host.ask(&["stop", "web"]).status.success(), "{}", host.log());
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "{}", host.log());
    assert!(host.ask(&["start", "web"]).status.success(), "{}", host.log());
    until_running(&host, "web");
    until_true("a second line in the same volume", program::TIMEOUT, || written(&volumes) == 2);

    host.signal(rustix::process::Signal::TERM);
    let (status, printed) = host.ended();
    assert!(status.success(), "{printed}");
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "a stop releases all");
}

#[test]
fn a_volume_stays_with_its_task_when_the_host_is_killed_and_is_released_after_it_v8_v14() {
    if !is_root_or_say("a volume of a killed host") {
        return;
    }
    let Some(namespace) = Namespace::or_say("a volume of a killed host") else { return };
    let stage = stage();
    let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
    let host = namespace.run(&stage);
    let before = until_running(&host, "web");
    until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
    let mounted = namespace.mounted(&data_dir, &volumes);
    host.kill();

    let host = namespace.run(&stage);
    let after = until_running(&host, "web");
    let run = |status| find(status, "tasks", "web")["run"].clone();
    assert_eq!(run(&before), run(&after), "it is the same run");
    until_true("the claim is confirmed", program::TIMEOUT, || {
        host.log().contains("a claim of an earlier run is kept")
    });
    assert_eq!(namespace.mounted(&data_dir, &volumes), mounted);
    assert_eq!(written(&volumes), 1);
    assert!(host.ask(&["stop", "web"]).status.success(), "{}", host.log());
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "{}", host.log());
}

/// The processes that have this path in their environment.
fn given(path: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("it is there").flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let has_path = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.ends_with(format!("={path}").as_bytes()))
    };
    pids.filter(has_path).collect()
}

#[test]
fn a_process_that_outlives_its_killed_host_keeps_its_volume_whatever_the_next_configuration_says_v8_v14() {
    let Some(namespace) = Namespace::or_say("a process that outlives its host") else { return };
    for is_departed in [false, true] {
        let stage = stage_of_allocation();
        let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
        // A process that leaves the process group does not end with it.
        let path = stage.config();
        let text = fs::read_to_string(&path).expect("it was written");
        let text = text.replace("echo started", "setsid sleep 1000 & echo started");
        fs::write(&path, &text).expect("room");
        let host = namespace.run(&stage);
        until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
        let mounted = namespace.mounted(&data_dir, &volumes);
        let published =
            mounted.iter().find(|path| path.contains("/user-1/")).expect("it is published").clone();
        host.kill();
        until_true("only the one that left is there", program::TIMEOUT, || given(&published).len() == 1);

        let (others, user) =
            text.split_at(text.find("[[allocation]]\nname = \"user-1\"").expect("it is there"));
        let user = if is_departed { String::new() } else { format!("{user}start = false\n") };
        fs::write(&path, format!("{others}{user}")).expect("room");
        let host = namespace.run(&stage);
        until_true("it is settled", program::TIMEOUT, || {
            host.log().contains("may still run; they are released")
        });
        assert_eq!(namespace.mounted(&data_dir, &volumes), mounted, "{}", host.log());
        let [left] = given(&published)[..] else { panic!("it lives still") };
        let left = rustix::process::Pid::from_raw(left).expect("a number");
        rustix::process::kill_process(left, rustix::process::Signal::KILL).expect("it is ours");
        let is_released = || namespace.mounted(&data_dir, &volumes).is_empty();
        until_true_or(|| host.log(), "it is released", program::TIMEOUT, is_released);
    }
}

#[test]
fn a_claim_of_an_operator_stays_when_the_host_is_killed_until_it_is_released_v8_v14() {
    let Some(namespace) = Namespace::or_say("a claim of an operator") else { return };
    let stage = Stage::new("");
    let volumes = stage.directory.path().join("kept-volumes");
    let options = ["--volumes", volumes.to_str().expect("text"), "--node-id", "node-1"];
    stage.configure(&allocation("hostpath-1", "hostpath", "monolith", &options, ""));
    let data_dir = stage.data_dir();
    let host = namespace.run(&stage);
    host.until_active("csi-node", "hostpath", "hostpath-1");
    host.json(&["volume", "create", "data", "--plugin", "hostpath"]);
    host.json(&["volume", "claim", "data", "--allocation", "web"]);
    let mounted = namespace.mounted(&data_dir, &volumes);
    assert!(!mounted.is_empty(), "it is published");
    host.kill();

    let host = namespace.run(&stage);
    until_true("the claim is settled", program::TIMEOUT, || {
        host.log().contains("a claim of an earlier run is")
    });
    let claim = || host.json(&["volume", "status", "data"])["claims"][0].clone();
    until_true("the mount is proven again", program::TIMEOUT, || claim()["proven"] == true);
    assert_eq!(claim()["desired"], "held");
    assert_eq!(namespace.mounted(&data_dir, &volumes), mounted);
    host.json(&["volume", "release", "data", "--allocation", "web"]);
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "{}", host.log());
}

#[test]
fn the_process_of_an_allocation_writes_into_its_volume_which_is_kept_over_its_restarts_v1_v8() {
    let Some(namespace) = Namespace::or_say("an allocation with a volume") else { return };
    let stage = stage_of_allocation();
    let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
    let host = namespace.run(&stage);
    until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
    assert!(host.ask(&["stop", "user-1"]).status.success(), "{}", host.log());
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "{}", host.log());
    assert!(host.ask(&["start", "user-1"]).status.success(), "{}", host.log());
    until_true("a second line in the same volume", program::TIMEOUT, || written(&volumes) == 2);
    host.signal(rustix::process::Signal::TERM);
    let (status, printed) = host.ended();
    assert!(status.success(), "{printed}");
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "a stop releases all");
}

#[test]
fn a_plugin_is_not_stopped_while_a_task_holds_a_volume_of_it_v13() {
    if !is_root_or_say("a plugin that is used by a task") {
        return;
    }
    let Some(namespace) = Namespace::or_say("a plugin that is used by a task") else { return };
    let stage = stage();
    let host = namespace.run(&stage);
    until_running(&host, "web");
    let before = find(&host.json(&["status"]), "allocations", "hostpath-1")["pid"].clone();

    let refused = host.ask(&["stop", "hostpath-1"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let advice = "callboard stop --even-if-used hostpath-1";
    for part in
        ["hostpath-1 was not stopped", "plugin hostpath is still used", "volume default/data of web", advice]
    {
        assert!(said.contains(part), "{said}");
    }
    let after = find(&host.json(&["status"]), "allocations", "hostpath-1")["pid"].clone();
    assert!(before.is_u64() && before == after, "its process goes on: {before}, {after}");

    let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
    let mounted = namespace.mounted(&data_dir, &volumes);
    let stopped = host.ask(&["stop", "--even-if-used", "hostpath-1"]);
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    assert!(!mounted.is_empty() && namespace.mounted(&data_dir, &volumes) == mounted, "it stays mounted");

    // The claim is undone when the plugin is back.
    assert!(host.ask(&["start", "hostpath-1"]).status.success(), "{}", host.log());
    host.until_active("csi-node", "hostpath", "hostpath-1");
    assert!(host.ask(&["stop", "web"]).status.success(), "{}", host.log());
    assert_eq!(namespace.mounted(&data_dir, &volumes), [""; 0], "{}", host.log());
    let stopped = host.ask(&["stop", "hostpath-1"]);
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
}

#[test]
fn who_comes_second_to_a_volume_waits_and_a_claim_of_an_operator_outlives_an_ordinary_stop_v12_v14() {
    let Some(namespace) = Namespace::or_say("a volume that two want") else { return };
    let stage = Stage::new("");
    configure_allocation(&stage, "", "start = false");
    let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
    let host = namespace.run(&stage);
    host.until_active("csi-node", "hostpath", "hostpath-1");
    // It is shown and claimed as configured, before anything has used it.
    assert_eq!(host.json(&["volume", "list"])["volumes"][0]["exists"], "configured");
    let (code, told) = host.refusal(&["volume", "create", "data", "--plugin", "hostpath"]);
    assert!(code == 1 && told.contains("it is in the configuration"), "{told}");
    let (code, told) = host.refusal(&["volume", "delete", "data", "--yes"]);
    assert!(
        code == 1 && told.contains("is not deleted: allocation user-1 of the configuration uses it"),
        "{told}"
    );
    host.json(&["volume", "claim", "data", "--allocation", "job-7"]);
    let claim = host.json(&["volume", "status", "data"])["claims"][0].clone();
    assert_eq!(claim["usage"], "file system, single-node-writer");

    assert!(host.ask(&["start", "user-1"]).status.success(), "{}", host.log());
    let waits = host.until("it waits", |status| find(status, "allocations", "user-1")["task"] == "waiting");
    let event = find(&waits, "allocations", "user-1")["last_event"].to_string();
    assert!(event.contains("volume default/data is held by job-7"), "{event}");
    assert_eq!(host.ask(&["health", "user-1"]).status.code(), Some(3));
    host.json(&["volume", "release", "data", "--allocation", "job-7"]);
    until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
    assert!(host.ask(&["stop", "user-1"]).status.success(), "{}", host.log());

    host.json(&["volume", "claim", "data", "--allocation", "job-7"]);
    assert!(host.ask(&["health", "data"]).status.success(), "{}", host.log());
    let shutdown = host.ask(&["shutdown"]);
    let told = String::from_utf8_lossy(&shutdown.stdout).into_owned();
    assert!(shutdown.status.success() && told.contains("stays mounted for job-7"), "{told} {}", host.log());
    let (status, printed) = host.ended();
    assert!(status.success(), "{printed}");
    assert!(!namespace.mounted(&data_dir, &volumes).is_empty(), "it stays mounted");

    // Nothing can undo it when its plugin is no longer configured.
    stage.configure("");
    let host = namespace.run(&stage);
    let health = host.ask(&["health"]);
    let told = String::from_utf8_lossy(&health.stdout);
    let none = "no allocation serves its plugin hostpath; add one to the configuration";
    assert!(health.status.code() == Some(3) && told.contains(none), "{told} {}", host.log());
}

#[test]
fn the_claim_of_an_allocation_that_left_the_configuration_is_released_when_its_host_was_killed_v14() {
    let Some(namespace) = Namespace::or_say("a claim of a departed allocation") else { return };
    let stage = stage_of_allocation();
    let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
    let host = namespace.run(&stage);
    until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
    host.kill();
    let options = ["--volumes", volumes.to_str().expect("text"), "--node-id", "node-1"];
    stage.configure(&allocation("hostpath-1", "hostpath", "monolith", &options, ""));
    let host = namespace.run(&stage);
    until_true("it is unmounted", program::TIMEOUT, || namespace.mounted(&data_dir, &volumes).is_empty());
    assert!(host.log().contains("a claim of an earlier run is released"), "{}", host.log());
}

#[test]
fn a_stop_while_a_volume_cannot_be_had_yet_does_not_wait_for_it_v8() {
    let Some(namespace) = Namespace::or_say("a claim that waits") else { return };
    let stage = Stage::new("");
    configure_allocation(&stage, "start = false", "");
    let host = namespace.run(&stage);
    host.until("it claims", |status| {
        let event = find(status, "allocations", "user-1")["last_event"].to_string();
        event.contains("claiming its volumes")
    });
    let began = Instant::now();
    assert!(host.ask(&["stop", "user-1"]).status.success(), "{}", host.log());
    // If the claim was not cancelled, the stop would wait for 15 s.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}: {}", began.elapsed(), host.log());
}

#[test]
fn the_claim_of_an_allocation_that_has_no_volumes_any_more_is_released_when_no_process_uses_it_v14() {
    let Some(namespace) = Namespace::or_say("an allocation without its volume") else { return };
    for survives in [false, true] {
        let stage = Stage::new("");
        configure_allocation(&stage, "", if survives { "survives = true" } else { "" });
        let (volumes, data_dir) = (stage.directory.path().join("kept-volumes"), stage.data_dir());
        let host = namespace.run(&stage);
        until_true("a line in the volume", program::TIMEOUT, || written(&volumes) == 1);
        let mounted = namespace.mounted(&data_dir, &volumes);
        until_true("its process is on record", program::TIMEOUT, || {
            host.log().contains("the process of an allocation started allocation=user-1")
        });
        host.kill();

        let text = fs::read_to_string(stage.config()).expect("it was written");
        let text = text
            .replace("volumes = [\"data\"]\n", "")
            .replace("echo started >> ${CALLBOARD_VOLUME_DATA}/starts; ", "");
        fs::write(stage.config(), text).expect("room");
        let host = namespace.run(&stage);
        if survives {
            until_true("the claim is settled", program::TIMEOUT, || {
                host.log().contains("a claim of an earlier run is kept")
            });
            assert_eq!(namespace.mounted(&data_dir, &volumes), mounted, "its process lives: {}", host.log());
            assert!(host.ask(&["stop", "user-1"]).status.success(), "{}", host.log());
        }
        let is_released = || namespace.mounted(&data_dir, &volumes).is_empty();
        until_true_or(|| host.log(), "it is released", program::TIMEOUT, is_released);
    }
}
