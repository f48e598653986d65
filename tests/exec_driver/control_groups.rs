//! Tests the control groups that a host creates for a task: their members, limits and counters.

use std::fs;
use std::path::{Path, PathBuf};

use callboard::actors::cgroups::{CgroupMode, Cores, GroupName, TaskCgroups, where_is};
use callboard::actors::vocabulary::{AllocationId, TaskName};
use callboard_proto::base::SetConfigRequest;
use callboard_proto::base::base_plugin_client::BasePluginClient;
use callboard_proto::drivers::*;
use tonic::Code;

use crate::rig::{LONG, Place, Plugin, until};

/// The groups of one task on this machine, made as a host makes them. They are removed when this is dropped.
struct Grounds {
    groups: TaskCgroups,
    name: GroupName,
    cpuset_cgroup: PathBuf,
}

impl Grounds {
    /// Makes the groups, or reports what is skipped.
    fn or_say(place: &Place, what: &str) -> Option<Self> {
        let groups = TaskCgroups::of_this_machine();
        let allocation = place.directory.path().file_name()?.to_str()?.trim_start_matches('.').to_owned();
        let (allocation, task) = (AllocationId::new(allocation).ok()?, TaskName::new("web").ok()?);
        let name = GroupName::new(&allocation, &task).ok()?;
        let made = groups.prepare().and_then(|()| groups.create(&name, Cores::Shared));
        match made {
            Ok(Some(made)) => Some(Self { groups, name, cpuset_cgroup: made.places.cpuset_cgroup }),
            Ok(None) => {
                eprintln!(
                    "SKIPPED: {what} is not shown, since there are no control groups: {}",
                    groups.mode()
                );
                None
            }
            Err(error) => {
                eprintln!("SKIPPED: {what} is not shown, since no control group can be made: {error}");
                None
            }
        }
    }

    /// The task in these groups: its directory has their name.
    fn task(&self, place: &Place, memory_mb: i64, command: &[&str]) -> TaskConfig {
        let allocation = self.name.as_str().strip_suffix(".web").expect("its own name").to_owned();
        let alloc_dir = place.path("alloc").join(&allocation);
        fs::create_dir_all(alloc_dir.join("web")).expect("room");
        let linux = LinuxResources {
            cpu_shares: 512,
            memory_limit_bytes: memory_mb << 20,
            cpuset_cgroup: self.cpuset_cgroup.display().to_string(),
            ..Default::default()
        };
        let allocated = AllocatedTaskResources {
            cpu: Some(AllocatedCpuResources { cpu_shares: 512 }),
            memory: Some(AllocatedMemoryResources { memory_mb, memory_max_mb: 0 }),
            ..Default::default()
        };
        TaskConfig {
            name: "web".to_owned(),
            alloc_id: allocation,
            alloc_dir: alloc_dir.display().to_string(),
            resources: Some(Resources {
                allocated_resources: Some(allocated),
                linux_resources: Some(linux),
                ..Default::default()
            }),
            ..place.task("t1", command)
        }
    }

    fn holds(&self, pid: i32) -> bool {
        where_is(pid.cast_unsigned()).is_ok_and(|location| location.is_in(&self.name))
    }
}

impl Drop for Grounds {
    fn drop(&mut self) {
        if let Err(error) = self.groups.destroy(&self.name) {
            eprintln!("cannot remove a control group: {error}");
        }
    }
}

async fn pids(plugin: &mut Plugin) -> (i32, i32) {
    let attributes = plugin.inspect("t1").await.driver.expect("attributes").attributes;
    let pid = |name: &str| attributes[name].parse().expect("a number");
    (pid("pid"), pid("supervisor_pid"))
}

#[tokio::test]
async fn a_task_and_what_runs_beside_it_are_in_the_tasks_groups_and_its_supervisor_is_not_t105_t109_t176_t200()
 {
    let place = Place::new();
    let Some(grounds) = Grounds::or_say(&place, "a task in its control groups") else { return };
    let mut plugin = place.start(&[]).await;
    let handle = plugin.start(grounds.task(&place, 64, &["/bin/sh", "-c", "sleep 1000 & sleep 1000"])).await;
    let mut handle = handle.expect("it starts");
    let (task, supervisor) = pids(&mut plugin).await;
    assert!(grounds.holds(task) && !grounds.holds(supervisor));
    until("its children are there too", || grounds.groups.members(&grounds.name).len() >= 3).await;
    let output = plugin.exec("t1", &["/bin/cat", "/proc/self/cgroup"], LONG).await.expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(grounds.name.as_str()), "{told}");
    let mut reports = plugin.stats("t1").await;
    let report = reports.message().await.expect("a report").expect("a report").stats.expect("stats");
    let memory = report.agg_resource_usage.expect("a sum").memory.expect("memory");
    assert!(memory.usage > 0 && memory.max_usage >= memory.rss, "{memory:?}");
    plugin.kill().await;

    // The next driver knows the groups from the task's own record, not from the handle.
    let mut plugin = place.start(&[]).await;
    let config = handle.config.as_mut().expect("a configuration");
    (config.resources, config.msgpack_driver_config) = (None, Vec::new());
    plugin.recover(handle).await.expect("its record lies beside it");
    let output = plugin.exec("t1", &["/bin/cat", "/proc/self/cgroup"], LONG).await.expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains(grounds.name.as_str()));
    plugin.destroy("t1", true).await.expect("it is killed");
    assert!(grounds.groups.members(&grounds.name).is_empty());
    assert!(grounds.cpuset_cgroup.is_dir(), "the groups are the host's to remove");
}

#[tokio::test]
async fn a_task_that_uses_more_memory_than_it_has_is_ended_if_the_operator_wants_that_t092_t148_t201_t207() {
    let place = Place::new();
    let Some(grounds) = Grounds::or_say(&place, "a limit of memory") else { return };
    if fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1) {
        eprintln!("SKIPPED: a limit of memory is not shown, since there is swap to fill first");
        return;
    }
    let mut plugin = place.start(&[]).await;
    let written = serde_json::json!({ "memory_limit": true });
    let msgpack_config = rmp_serde::to_vec_named(&written).expect("it can be written");
    let request = SetConfigRequest { msgpack_config, ..Default::default() };
    BasePluginClient::new(plugin.channel.clone()).set_config(request).await.expect("it makes sense");
    // It buffers a line that never ends.
    plugin.start(grounds.task(&place, 24, &["tail", "-n", "1", "/dev/zero"])).await.expect("it starts");
    let request = WaitTaskRequest { task_id: "t1".to_owned() };
    let ended = tokio::time::timeout(LONG, plugin.driver.wait_task(request)).await.expect("in time");
    let result = ended.expect("it is known").into_inner().result.expect("a result");
    assert_eq!((result.exit_code, result.signal, result.oom_killed), (128 + 9, 9, true));
    plugin.destroy("t1", false).await.expect("it has ended");
    let file = match grounds.groups.mode() {
        CgroupMode::V2 => grounds.cpuset_cgroup.join("memory.max"),
        _ => {
            Path::new("/sys/fs/cgroup/memory/nomad").join(grounds.name.as_str()).join("memory.limit_in_bytes")
        }
    };
    assert_eq!(fs::read_to_string(file).expect("a limit").trim(), (24 << 20).to_string());
}

#[tokio::test]
async fn a_group_that_is_not_there_keeps_a_task_from_starting_and_leaves_nothing_t107() {
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIPPED: a missing control group is not shown, since without root a task runs without one"
        );
        return;
    }
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let linux =
        LinuxResources { cpuset_cgroup: "/sys/fs/cgroup/no/such.scope".to_owned(), ..Default::default() };
    let resources = Some(Resources { linux_resources: Some(linux), ..Default::default() });
    let refused =
        plugin.start(TaskConfig { resources, ..place.shell("t1", "exit 0") }).await.expect_err("none");
    assert!(refused.message().contains("/sys/fs/cgroup/no/such.scope"), "{refused}");
    assert_eq!(plugin.destroy("t1", true).await, Err(Code::NotFound));
    assert_eq!(fs::read_dir(place.path("alloc/t1-task")).expect("the task's own").count(), 0);
}
