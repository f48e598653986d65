//! Tests the control groups of tasks, with real processes: version 1 where this machine has it, and version 2 in a hierarchy that need not
//! have controllers.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callboard_actors::cgroups::{CgroupMode, Cores, GroupName, Limits, TaskCgroups, where_is};
use callboard_actors::vocabulary::{AllocationId, TaskName};

/// A name that no other test and no other process uses.
fn name(task: &str) -> GroupName {
    let random: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    GroupName::new(&AllocationId::new(id).unwrap(), &TaskName::new(task).unwrap()).unwrap()
}

fn skipped(what: &str, reason: &str) {
    eprintln!("SKIPPED: {what} is not shown, since {reason}");
}

/// Version 1 of this machine, if the machine has it and this process is root.
fn version_1(what: &str) -> Option<TaskCgroups> {
    let groups = TaskCgroups::of_this_machine().with_timeout(Duration::from_secs(20));
    match groups.mode() {
        CgroupMode::V1 => Some(groups),
        other => {
            skipped(what, &format!("this machine does not give root version 1: {other}"));
            None
        }
    }
}

/// A root of version 2 for one test, below any such hierarchy of this machine. It is removed with the test.
struct Unified(PathBuf);

impl Unified {
    fn new(what: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let found =
            mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
        let Some(found) = found else {
            skipped(what, "no hierarchy of version 2 is mounted");
            return None;
        };
        let root = Path::new(found).join(format!("callboard-test-{}", name("x").as_str()));
        match fs::create_dir(&root) {
            Ok(()) => Some(Self(root)),
            Err(error) => {
                skipped(what, &format!("no group can be made in {found}: {error}"));
                None
            }
        }
    }

    fn groups(&self) -> TaskCgroups {
        TaskCgroups::at(&self.0, CgroupMode::V2).with_timeout(Duration::from_secs(20))
    }
}

impl Drop for Unified {
    fn drop(&mut self) {
        for below in ["nomad.slice/share.slice", "nomad.slice/reserve.slice", "nomad.slice", "."] {
            let _ = fs::remove_dir(self.0.join(below));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// A process that ignores every polite signal, and has a child that also does. Prints `ready` when both are running.
fn stubborn() -> Child {
    let script = "trap '' TERM INT HUP; (trap '' TERM INT HUP; for i in 1 2 3 4 5; do sleep 60; done) & echo ready; \
                  for i in 1 2 3 4 5; do sleep 60; done";
    let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// A process that is put into these groups before it starts its children.
fn member_of(groups: &[PathBuf]) -> Child {
    let mut script: String =
        groups.iter().map(|group| format!("echo $$ > {}/cgroup.procs; ", group.display())).collect();
    script += "trap '' TERM; (trap '' TERM; for i in 1 2 3 4 5; do sleep 60; done) & echo ready; for i in 1 2 3 4 5; do sleep 60; done";
    let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn was_killed(mut child: Child) {
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn version_1_a_task_is_seen_killed_and_its_groups_removed_t103_t110_th050() {
    let Some(groups) = version_1("a task in groups of version 1") else { return };
    groups.prepare().unwrap();
    groups.prepare().unwrap();
    let name = name("web");
    let places = groups.create(&name, Cores::Shared).unwrap().unwrap().places;
    assert_eq!(places.own.len(), 3);
    assert!(places.cpuset_cgroup.ends_with("cpuset/nomad/share"));
    let child = member_of(&places.own);
    let (members, location) = (groups.members(&name), where_is(child.id()).unwrap());
    assert!(members.contains(&child.id()) && members.len() >= 2, "{members:?}");
    assert!(location.is_in(&name));
    assert_eq!(location.of_controller("freezer").unwrap(), Path::new("/nomad").join(name.as_str()));
    groups.destroy(&name).unwrap();
    was_killed(child);
    assert!(places.own.iter().all(|path| !path.exists()));
    assert!(places.cpuset_cgroup.exists(), "what all tasks share stays");
    assert!(groups.members(&name).is_empty());
    groups.destroy(&name).expect("a task without groups is well");
}

#[test]
fn version_1_a_group_is_made_anew_after_each_end_and_a_start_with_cores_has_one_in_cpuset_t198_t103() {
    let Some(groups) = version_1("a group that is made anew") else { return };
    groups.prepare().unwrap();
    let name = name("db");
    for cores in [Cores::Shared, Cores::Reserved, Cores::Shared] {
        let places = groups.create(&name, cores).unwrap().unwrap().places;
        groups.create(&name, cores).expect("a group that is there is taken as it is");
        assert!(places.own.iter().all(|path| path.exists()));
        let limits = Limits {
            memory_max: Some(64 << 20),
            cpu_shares: Some(500),
            cpus: Some("0".into()),
            ..Limits::default()
        };
        groups.limit(&name, cores, &limits).unwrap();
        let memory = fs::read_to_string(
            groups.root().join("memory/nomad").join(name.as_str()).join("memory.limit_in_bytes"),
        );
        assert_eq!(memory.unwrap().trim(), (64 << 20).to_string());
        let child = member_of(&places.own);
        groups.destroy(&name).unwrap();
        was_killed(child);
        assert!(places.own.iter().all(|path| !path.exists()));
    }
}

#[test]
fn version_1_a_frozen_task_and_groups_made_inside_go_too_t110() {
    let Some(groups) = version_1("a frozen task") else { return };
    groups.prepare().unwrap();
    let name = name("inner");
    let places = groups.create(&name, Cores::Shared).unwrap().unwrap().places;
    let inner = places.own[0].join("a/b");
    fs::create_dir_all(&inner).unwrap();
    let child = member_of(&[inner]);
    fs::write(places.own[0].join("freezer.state"), "FROZEN").unwrap();
    groups.destroy(&name).unwrap();
    was_killed(child);
    assert!(!places.own[0].exists());
}

#[test]
fn version_1_what_dead_runs_left_is_swept_and_what_is_others_is_not_t197_th053() {
    let Some(groups) = version_1("a sweep") else { return };
    groups.prepare().unwrap();
    let (dead, kept, other) = (name("dead"), name("kept"), name("other"));
    for name in [&dead, &kept, &other] {
        groups.create(name, Cores::Shared).unwrap();
    }
    let left_over = member_of(&groups.places(&dead, Cores::Shared).unwrap().own);
    let foreign = member_of(&groups.places(&other, Cores::Shared).unwrap().own);
    let ours = |name: &str| [&dead, &kept].iter().any(|ours| ours.as_str() == name);
    let (removed, left) = groups.sweep(ours, &BTreeSet::from([kept.clone()]));
    assert_eq!(removed, std::slice::from_ref(&dead));
    assert!(left.is_empty());
    was_killed(left_over);
    assert!(groups.list().contains(&kept) && groups.list().contains(&other));
    assert_eq!(groups.members(&other).first().copied(), Some(foreign.id()), "a task of another host lives");
    groups.destroy(&other).unwrap();
    was_killed(foreign);
    groups.destroy(&kept).unwrap();
}

#[test]
fn version_2_a_task_is_seen_killed_and_its_scope_removed_t101_t103_t110() {
    let Some(unified) = Unified::new("a task in a scope of version 2") else { return };
    let groups = unified.groups();
    groups.prepare().unwrap();
    groups.prepare().unwrap();
    let name = name("web");
    for cores in [Cores::Shared, Cores::Reserved] {
        let places = groups.create(&name, cores).unwrap().unwrap().places;
        let inner = places.cpuset_cgroup.join("inner");
        fs::create_dir(&inner).unwrap();
        let children = [member_of(&places.own), member_of(&[inner])];
        assert!(children.iter().all(|child| groups.members(&name).contains(&child.id())));
        assert!(where_is(children[1].id()).unwrap().is_in(&name));
        groups.destroy(&name).unwrap();
        children.into_iter().for_each(was_killed);
        assert!(!places.cpuset_cgroup.exists());
    }
}

#[test]
fn version_2_a_slice_that_was_removed_is_made_again_before_the_start_t199() {
    let Some(unified) = Unified::new("a slice that was removed") else { return };
    let (groups, name) = (unified.groups(), name("web"));
    groups.create(&name, Cores::Shared).expect("nothing was prepared, and all of it is made");
    groups.destroy(&name).unwrap();
    assert_eq!(groups.list(), []);
}

#[test]
fn a_process_outside_of_the_group_lives_until_it_is_put_into_one_t110() {
    let Some(unified) = Unified::new("a process outside of the group") else { return };
    let (groups, name) = (unified.groups(), name("web"));
    let places = groups.create(&name, Cores::Shared).unwrap().unwrap().places;
    let mut outside = stubborn();
    let inside = member_of(&places.own);
    groups.destroy(&name).unwrap();
    was_killed(inside);
    assert!(outside.try_wait().unwrap().is_none());
    // Its child ends in the same way: both are put into a group that is destroyed.
    let places = groups.create(&name, Cores::Shared).unwrap().unwrap().places;
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", outside.id())).unwrap();
    for pid in children.split_whitespace().map(str::to_owned).chain([outside.id().to_string()]) {
        fs::write(places.cpuset_cgroup.join("cgroup.procs"), pid).unwrap();
    }
    groups.destroy(&name).unwrap();
    was_killed(outside);
}

#[test]
fn without_control_groups_nothing_is_made_and_nothing_fails_th050() {
    let directory = tempfile::tempdir().unwrap();
    let groups = TaskCgroups::at(directory.path(), CgroupMode::None { reason: "not wanted".into() });
    let name = name("web");
    groups.prepare().unwrap();
    assert_eq!(groups.create(&name, Cores::Shared).unwrap(), None);
    groups.limit(&name, Cores::Shared, &Limits { pids: Some(3), ..Limits::default() }).unwrap();
    groups.destroy(&name).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    assert!(groups.list().is_empty() && groups.members(&name).is_empty());
}

#[test]
fn outside_of_the_kernels_file_system_nothing_is_written_and_the_error_says_where_th050() {
    let directory = tempfile::tempdir().unwrap();
    let groups = TaskCgroups::at(directory.path(), CgroupMode::V2);
    let error = groups.prepare().unwrap_err().to_string();
    assert!(error.contains("cgroup.subtree_control"), "{error}");
    assert!(!directory.path().join("cgroup.subtree_control").exists());
}
