//! Tests the environment of tasks of `callboard run`: their directories and control groups, made, released and removed, with the real
//! reference driver.

mod program;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use callboard::actors::cgroups::{CgroupMode, Cores, GroupName, Places, TaskCgroups};
use callboard::actors::vocabulary::{AllocationId, TaskName};
use program::driven::{find, task, until_running};
use program::{CALLBOARD, Stage, TIMEOUT, until_true};

const DRIVER: &str = "[[driver]]\nname = \"exec\"\n";

fn stage() -> Stage {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    stage.configure(&format!("{DRIVER}{}", task(&directory, "web", "")));
    stage
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The directory of the only allocation.
fn allocation(stage: &Stage) -> PathBuf {
    let mut found = fs::read_dir(stage.data_dir().join("alloc")).unwrap().map(|entry| entry.unwrap().path());
    let first = found.next().expect("there is one");
    assert_eq!(found.next(), None);
    first
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn is_mounted(path: &Path) -> bool {
    let path = path.canonicalize().unwrap().display().to_string();
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().any(|line| line.split(' ').nth(4) == Some(path.as_str()))
}

/// The groups of the only task, if this machine has control groups for us.
fn groups(allocation: &Path) -> Option<Places> {
    let groups = TaskCgroups::of_this_machine();
    if let CgroupMode::None { reason } = groups.mode() {
        eprintln!("SKIPPED: the control groups of a task are not shown, since {reason}");
        return None;
    }
    let id = AllocationId::new(allocation.file_name().unwrap().to_str().unwrap()).unwrap();
    groups.places(&GroupName::new(&id, &TaskName::new("web").unwrap()).unwrap(), Cores::Shared)
}

#[test]
fn a_task_has_its_directories_and_groups_for_each_start_and_nothing_stays_mounted_t198_t202_th050_th060() {
    let stage = stage();
    let host = stage.run();
    let status = until_running(&host, "web");
    let allocation = allocation(&stage);
    assert_eq!(allocation.file_name().unwrap().len(), 36);
    let secrets = allocation.join("web/secrets");
    assert_eq!((mode(&stage.data_dir().join("alloc")), mode(&allocation.join("web/local"))), (0o711, 0o777));
    assert_eq!(is_mounted(&secrets), is_root());
    if is_root() {
        assert_eq!(mode(&stage.data_dir()), 0o711, "task users pass through");
        for closed in ["callboard.redb", "callboard.lock", "processes"] {
            assert_eq!(mode(&stage.data_dir().join(closed)) & 0o077, 0, "{closed} is closed to them");
        }
    }
    let places = groups(&allocation);
    let version = status["host"]["control_groups"].as_str().unwrap();
    assert_eq!(version.starts_with("none"), places.is_none(), "{version}");

    // A process of the task that its driver does not know ends with the task, and so does its group.
    let left_over = places.as_ref().map(|places| {
        let process = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(places.own[0].join("cgroup.procs"), process.id().to_string()).unwrap();
        process
    });
    fs::write(allocation.join("web/local/kept"), "kept").unwrap();
    assert!(host.ask(&["stop", "web"]).status.success());
    host.until("a stopped task", |status| find(status, "tasks", "web")["state"] == "stopped");
    if let (Some(mut process), Some(places)) = (left_over, &places) {
        assert_eq!(process.wait().unwrap().signal(), Some(9));
        assert!(places.own.iter().all(|path| !path.exists()));
    }
    assert!(!is_mounted(&secrets));
    assert_eq!(fs::read_to_string(allocation.join("web/local/kept")).unwrap(), "kept");

    assert!(host.ask(&["start", "web"]).status.success());
    until_running(&host, "web");
    assert!(places.iter().flat_map(|places| &places.own).all(|path| path.exists()));
    assert_eq!(is_mounted(&secrets), is_root());
    host.signal(rustix::process::Signal::TERM);
    host.ended();
    assert!(!is_mounted(&secrets));
}

#[test]
fn a_task_that_the_configuration_has_no_more_leaves_no_directories_t050() {
    let stage = stage();
    let host = stage.run();
    until_running(&host, "web");
    let allocation = allocation(&stage);
    let places = groups(&allocation);
    host.kill();
    stage.configure(DRIVER);
    let host = stage.run();
    until_true("nothing is left of it", TIMEOUT, || !allocation.exists());
    until_true("its groups are gone", TIMEOUT, || {
        places.iter().flat_map(|places| &places.own).all(|path| !path.exists())
    });
    host.signal(rustix::process::Signal::TERM);
    host.ended();
}

#[test]
fn what_lies_in_the_way_is_the_failure_of_its_task_and_not_of_the_host_th060() {
    let stage = stage();
    let host = stage.run();
    until_running(&host, "web");
    let local = allocation(&stage).join("web/local");
    assert!(host.ask(&["stop", "web"]).status.success());
    host.until("a stopped task", |status| find(status, "tasks", "web")["state"] == "stopped");
    let outside = stage.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir(&local).unwrap();
    symlink(&outside, &local).unwrap();
    let before = mode(&outside);
    host.ask(&["start", "web"]);
    let status = host.until("a failed task", |status| find(status, "tasks", "web")["state"] == "failed");
    let note = find(&status, "tasks", "web")["last_event"].as_str().unwrap().to_owned();
    assert!(note.contains("local is a link") && note.contains("remove it"), "{note}");
    assert_eq!((mode(&outside), fs::read_dir(&outside).unwrap().count()), (before, 0));
    fs::remove_file(&local).unwrap();
    assert!(host.ask(&["start", "web"]).status.success());
    until_running(&host, "web");
    host.signal(rustix::process::Signal::TERM);
    host.ended();
}

#[test]
fn the_groups_of_unknown_tasks_are_swept_and_their_directories_reported_t197_th053() {
    let stage = stage();
    let host = stage.run();
    until_running(&host, "web");
    let allocation = allocation(&stage);
    let Some(places) = groups(&allocation) else { return };
    host.signal(rustix::process::Signal::TERM);
    host.ended();
    // The database is lost, and the task was removed from the configuration.
    fs::remove_file(stage.data_dir().join("callboard.redb")).unwrap();
    stage.configure(DRIVER);
    fs::create_dir(&places.own[0]).unwrap();
    let other = places.own[0].with_file_name(format!("{}.other", allocation.file_name().unwrap().display()));
    fs::create_dir(&other).unwrap();
    let host = stage.run();
    until_true("its group is gone", TIMEOUT, || !places.own[0].exists());
    until_true("its directories are told", TIMEOUT, || {
        host.log().contains(&allocation.display().to_string())
    });
    assert!(allocation.exists(), "files are removed by a person only");
    assert!(other.exists(), "a group whose id does not fit its task is not ours");
    fs::remove_dir(other).unwrap();
    host.signal(rustix::process::Signal::TERM);
    host.ended();
}

#[test]
fn tasks_keep_their_directories_when_the_data_directory_is_moved_and_a_copy_does_not_start_th053() {
    let stage = stage();
    let host = stage.run();
    until_running(&host, "web");
    let first = allocation(&stage);
    fs::write(first.join("web/local/kept"), "kept").unwrap();
    host.signal(rustix::process::Signal::TERM);
    host.ended();
    // A restored backup: another directory at the same path, with other inodes.
    let elsewhere = stage.directory.path().join("elsewhere");
    fs::rename(stage.data_dir(), &elsewhere).unwrap();
    let copied = Command::new("cp").arg("-a").args([&elsewhere, &stage.data_dir()]).status().unwrap();
    assert!(copied.success());
    let host = stage.run();
    until_running(&host, "web");
    assert_eq!(allocation(&stage), first);
    assert_eq!(fs::read_to_string(first.join("web/local/kept")).unwrap(), "kept");
    assert!(!host.log().contains("neither configuration nor database knows"), "{}", host.log());

    // The original is a second directory with the same identity.
    let text = fs::read_to_string(stage.config()).unwrap();
    let config = stage.directory.path().join("elsewhere.toml");
    let data_dir = |path: &Path| format!("data_dir = {:?}", path.display().to_string());
    let other = text.replace(&data_dir(&stage.data_dir()), &data_dir(&elsewhere));
    assert_ne!(other, text);
    fs::write(&config, other).unwrap();
    let refused = Command::new(CALLBOARD).arg("run").arg("--config").arg(&config).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("one is a copy") && told.contains("remove callboard.identity"), "{told}");
    assert_eq!(find(&host.json(&["status"]), "tasks", "web")["state"], "running");
    host.signal(rustix::process::Signal::TERM);
    host.ended();
}

#[test]
fn a_task_that_was_stopped_before_the_configuration_forgot_it_leaves_no_directories_t050() {
    let stage = stage();
    let host = stage.run();
    until_running(&host, "web");
    let allocation = allocation(&stage);
    assert!(host.ask(&["stop", "web"]).status.success());
    host.until("a stopped task", |status| find(status, "tasks", "web")["state"] == "stopped");
    host.signal(rustix::process::Signal::TERM);
    host.ended();
    // The task has no run, so its events are not read before it is forgotten.
    stage.configure(DRIVER);
    let host = stage.run();
    until_true("nothing is left of it", TIMEOUT, || !allocation.exists());
    assert!(find(&host.json(&["status"]), "tasks", "web").is_null());
    host.signal(rustix::process::Signal::TERM);
    host.ended();
}

#[test]
fn a_forgotten_task_whose_directories_are_busy_leaves_none_once_they_are_not_also_in_the_next_run_t050() {
    for is_next_run in [false, true] {
        let stage = stage();
        let host = stage.run();
        until_running(&host, "web");
        let allocation = allocation(&stage);
        host.signal(rustix::process::Signal::TERM);
        host.ended();
        // Another program has mounted something there.
        let (outside, inside) = (stage.directory.path().join("outside"), allocation.join("web/local/in"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&inside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        if rustix::mount::mount_bind(&outside, &inside).is_err() {
            eprintln!("SKIPPED: directories that are busy are not shown, since nothing may be mounted here");
            return;
        }
        stage.configure(DRIVER);
        let host = stage.run();
        until_true("it is told what is left", TIMEOUT, || {
            host.log().contains("cannot remove the directories of a forgotten task")
        });
        let unmount = || {
            let flags = rustix::mount::UnmountFlags::empty();
            rustix::mount::unmount(&inside, flags).unwrap();
        };
        let noted = || fs::read_dir(stage.data_dir().join("forgotten")).unwrap().count();
        assert!(allocation.exists() && noted() == 1);
        let host = if is_next_run {
            host.signal(rustix::process::Signal::TERM);
            host.ended();
            unmount();
            stage.run()
        } else {
            unmount();
            host
        };
        until_true("nothing is left of it", TIMEOUT, || !allocation.exists() && noted() == 0);
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        assert!(!host.log().contains("neither configuration nor database knows"), "{}", host.log());
        host.signal(rustix::process::Signal::TERM);
        host.ended();
    }
}
