//! The control groups of a task: its host creates them, and names one in `cpuset_cgroup` (T105).
//!
//! ```text
//!  version 2   the given path itself
//!  version 1   the given path, which is in the cpuset hierarchy; and ROOT/{freezer,memory,cpu}/nomad/ALLOCID.NAME where
//!              they exist; that name follows from the task's directory (T109)
//! ```
//!
//! The processes of the task and commands beside it enter the groups. The supervisor does not, so that it does not count
//! against the task's memory (T200). The host creates and removes groups. Limits are written here, since hosts leave them to
//! the driver (T106): weights, cores and the reserved memory always, the memory maximum on the operator's request (T201).

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callboard_actors::cgroups::{CgroupMode, Limits};
use callboard_proto::drivers::TaskConfig;
use rustix::fs::{Access, access};

use super::config;
use crate::plugin::Refusal;

/// The hierarchies of version 1 with a group named after the task.
const V1_NAMED: [&str; 3] = ["freezer", "memory", "cpu"];
/// The hierarchy of version 1 that contains the given path.
const V1_GIVEN: &str = "cpuset";
/// The parent of task groups in version 1.
const V1_PARENT: &str = "nomad";
/// The file by which a process enters a group.
const MEMBERS: &str = "cgroup.procs";
/// The files of limits that the operator has requested.
const HARD: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];
const MIB: u64 = 1_024 * 1_024;

/// The groups of one task; in version 1, with the controller of each.
#[derive(Debug, PartialEq, Eq)]
struct Placement {
    mode: CgroupMode,
    groups: Vec<(&'static str, PathBuf)>,
}

/// Writes the limits of a task to its groups, and returns the groups to enter; empty if the host created none.
pub(super) fn place(task: &TaskConfig, limits_memory: bool) -> Result<Vec<PathBuf>, Refusal> {
    let given = given(task);
    let placement = match given {
        "" => None,
        given => Some(find(Path::new(given), &config::task_directory(task)?)),
    };
    let Some(mut placement) = placement else {
        if limits_memory {
            tracing::warn!(
                task = task.id,
                "the host created no control group for this task, so its memory is not limited"
            );
        }
        return Ok(Vec::new());
    };
    let is_root = rustix::process::geteuid().is_root();
    if placement.groups.is_empty() && is_root {
        let told = format!(
            "task {:?}: the control group {given} that its host names does not exist; make it, or name none",
            task.id
        );
        return Err(Refusal::failed(told).recoverable(true));
    }
    if !is_root {
        placement.groups.retain(|(_, group)| access(group.join(MEMBERS), Access::WRITE_OK).is_ok());
    }
    placement.limit(task, &limits(task, limits_memory))?;
    Ok(placement.groups.into_iter().map(|(_, group)| group).collect())
}

fn given(task: &TaskConfig) -> &str {
    let linux = task.resources.as_ref().and_then(|resources| resources.linux_resources.as_ref());
    linux.map_or("", |linux| linux.cpuset_cgroup.as_str())
}

/// Finds the existing groups of a task.
fn find(given: &Path, task_directory: &Path) -> Placement {
    let is_group = |group: &Path| group.join(MEMBERS).exists();
    let Some(root) = v1_root(given).filter(|_| !given.join("cgroup.controllers").exists()) else {
        let groups = is_group(given).then(|| ("", given.to_owned()));
        return Placement { mode: CgroupMode::V2, groups: groups.into_iter().collect() };
    };
    let name = format!("{}.{}", last_part(task_directory.parent()), last_part(Some(task_directory)));
    let named = V1_NAMED.map(|controller| (controller, root.join(controller).join(V1_PARENT).join(&name)));
    let all = named.into_iter().chain([(V1_GIVEN, given.to_owned())]);
    Placement { mode: CgroupMode::V1, groups: all.filter(|(_, group)| is_group(group)).collect() }
}

fn last_part(path: Option<&Path>) -> std::borrow::Cow<'_, str> {
    path.and_then(Path::file_name).unwrap_or_default().to_string_lossy()
}

/// The root of the version 1 hierarchies, if the path is in one of them.
fn v1_root(given: &Path) -> Option<&Path> {
    given.ancestors().find(|path| path.file_name().is_some_and(|name| name == V1_GIVEN))?.parent()
}

/// The limits of a task (T092). A memory of zero means no limit.
fn limits(task: &TaskConfig, limits_memory: bool) -> Limits {
    let Some(resources) = &task.resources else { return Limits::default() };
    let linux = resources.linux_resources.as_ref();
    let memory = resources.allocated_resources.as_ref().and_then(|allocated| allocated.memory);
    let bytes = |number: i64| u64::try_from(number).unwrap_or(0);
    let kept = match memory {
        Some(memory) => bytes(memory.memory_mb) * MIB,
        None => bytes(linux.map_or(0, |linux| linux.memory_limit_bytes)),
    };
    let most = match memory.map_or(0, |memory| memory.memory_max_mb) {
        ..0 => 0,
        0 => kept,
        most => bytes(most) * MIB,
    };
    let some = |number: u64| (number > 0).then_some(number);
    let cores = linux.map_or("", |linux| linux.cpuset_cpus.as_str());
    Limits {
        memory_low: some(kept),
        memory_max: some(most).filter(|_| limits_memory),
        cpu_shares: some(bytes(linux.map_or(0, |linux| linux.cpu_shares))),
        cpus: (!cores.is_empty()).then(|| cores.to_owned()),
        ..Limits::default()
    }
}

impl Placement {
    /// Writes limits. If a limit that the operator requested cannot be written, the task is not started. All other errors are
    /// ignored: the kernel or the host may leave a controller out.
    fn limit(&self, task: &TaskConfig, limits: &Limits) -> Result<(), Refusal> {
        for one in limits.writes(&self.mode) {
            let is_meant = |(controller, _): &&(&'static str, PathBuf)| {
                self.mode == CgroupMode::V2 || *controller == one.controller
            };
            let file = self.groups.iter().find(is_meant).map(|(_, group)| group.join(one.file));
            let written = match &file {
                Some(file) => write(file, &one.text),
                None => {
                    Err(io::Error::other(format!("it has no group of the controller {}", one.controller)))
                }
            };
            let Err(error) = written else { continue };
            let file = file.map_or_else(|| one.file.to_owned(), |file| file.display().to_string());
            if HARD.contains(&one.file) {
                let told = format!(
                    "task {:?}: cannot limit its memory: writing {} to {file}: {error}",
                    task.id, one.text
                );
                return Err(Refusal::failed(told).recoverable(false));
            }
            tracing::debug!(task = task.id, file, error = %error, "resource limit not applied");
        }
        Ok(())
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use callboard_proto::drivers::{
        AllocatedCpuResources, AllocatedMemoryResources, AllocatedTaskResources, LinuxResources, Resources,
    };

    use super::*;

    fn task(cgroup: &Path, memory: Option<(i64, i64)>) -> TaskConfig {
        let allocated = memory.map(|(memory_mb, memory_max_mb)| AllocatedTaskResources {
            cpu: Some(AllocatedCpuResources { cpu_shares: 100 }),
            memory: Some(AllocatedMemoryResources { memory_mb, memory_max_mb }),
            ..Default::default()
        });
        let linux = LinuxResources {
            cpu_shares: 1_024,
            memory_limit_bytes: 64 << 20,
            cpuset_cgroup: cgroup.display().to_string(),
            ..Default::default()
        };
        TaskConfig {
            id: "t".to_owned(),
            name: "web".to_owned(),
            alloc_dir: "/allocs/1d7e".to_owned(),
            resources: Some(Resources {
                allocated_resources: allocated,
                linux_resources: Some(linux),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn group(path: PathBuf, files: &[&str]) -> PathBuf {
        fs::create_dir_all(&path).expect("room");
        files.iter().for_each(|file| fs::write(path.join(file), "").expect("room"));
        path
    }

    #[test]
    fn memory_is_limited_as_a_job_says_and_only_on_wish_and_zero_is_no_limit_t092_t201() {
        let of = |memory, limits_memory| {
            let Limits { memory_low, memory_max, .. } = limits(&task(Path::new("/g"), memory), limits_memory);
            (memory_low.map(|low| low >> 20), memory_max.map(|max| max >> 20))
        };
        assert_eq!(of(Some((100, 0)), true), (Some(100), Some(100)));
        assert_eq!(of(Some((100, 200)), true), (Some(100), Some(200)));
        assert_eq!(of(Some((100, -1)), true), (Some(100), None), "no limit is wanted");
        assert_eq!(of(Some((100, 200)), false), (Some(100), None));
        assert_eq!(of(Some((0, 0)), true), (None, None));
        assert_eq!(of(None, true), (Some(64), Some(64)));
        assert_eq!(limits(&TaskConfig::default(), true), Limits::default());
    }

    #[test]
    fn in_version_2_the_given_group_is_entered_and_limited_t105_t176() {
        let root = tempfile::tempdir().expect("room");
        let files = ["cgroup.controllers", MEMBERS, "memory.max", "memory.low", "cpu.weight"];
        let given = group(root.path().join("nomad.slice/share.slice/1d7e.web.scope"), &files);
        assert_eq!(
            place(&task(&given, Some((100, 0))), true).expect("it is there"),
            std::slice::from_ref(&given)
        );
        let read = |file| fs::read_to_string(given.join(file)).expect("a file");
        assert_eq!((&*read("memory.max"), &*read("memory.low")), ("104857600", "104857600"));
        assert!(!read("cpu.weight").is_empty());
        fs::remove_file(given.join("memory.max")).expect("it is ours");
        let refused = place(&task(&given, Some((100, 0))), true).expect_err("the operator wants a limit");
        assert!(refused.to_string().contains("memory.max"), "{refused}");
        place(&task(&given, Some((100, 0))), false).expect("and here not");
    }

    #[test]
    fn in_version_1_the_groups_that_are_there_are_found_by_the_tasks_directory_t109() {
        let root = tempfile::tempdir().expect("room");
        let at = |path: &str, files: &[&str]| group(root.path().join(path), files);
        let share = at("cpuset/nomad/share", &[MEMBERS, "cpuset.cpus"]);
        let memory =
            at("memory/nomad/1d7e.web", &[MEMBERS, "memory.limit_in_bytes", "memory.soft_limit_in_bytes"]);
        let freezer = at("freezer/nomad/1d7e.web", &[MEMBERS]);
        at("cpu/nomad/1d7e.other", &[MEMBERS]);
        let groups = place(&task(&share, Some((100, 0))), true).expect("they are there");
        assert_eq!(groups, [freezer, memory.clone(), share.clone()]);
        assert_eq!(fs::read_to_string(memory.join("memory.limit_in_bytes")).expect("a file"), "104857600");
        assert_eq!(fs::read_to_string(share.join("cpuset.cpus")).expect("a file"), "", "it is everybody's");
    }

    #[test]
    fn a_group_that_is_not_there_is_told_to_root_and_none_is_no_matter_t107() {
        let root = tempfile::tempdir().expect("room");
        let missing = place(&task(&root.path().join("gone.scope"), None), false);
        match rustix::process::geteuid().is_root() {
            true => assert!(missing.expect_err("it is not there").to_string().contains("gone.scope")),
            false => assert_eq!(missing.expect("it runs without"), [""; 0].map(PathBuf::from)),
        }
        assert!(place(&task(Path::new(""), None), true).expect("no host made any").is_empty());
    }
}
