//! Kills everything in cgroups, and removes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::CgroupError;
use super::files::{read, with_descendants, write};
use super::mode::CgroupMode;

/// The depth limit for nested cgroups. The kernel's own limit is far above, and tasks have one or two levels.
const DEPTH_MAX: usize = 32;
/// The pause between two checks of a cgroup that is not empty yet, at first and at most.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(200);
const NAMED_MAX: usize = 16;

/// The processes in these cgroups and their descendants. Missing cgroups have none.
pub(super) fn members(groups: &[PathBuf]) -> Vec<u32> {
    let mut all = BTreeSet::new();
    for group in groups.iter().flat_map(|group| with_descendants(group, DEPTH_MAX)) {
        all.extend(members_of(&group));
    }
    all.into_iter().collect()
}

fn members_of(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

pub(super) fn kill(mode: &CgroupMode, groups: &[PathBuf]) -> Result<(), CgroupError> {
    let there: Vec<&PathBuf> = groups.iter().filter(|group| group.is_dir()).collect();
    match mode {
        CgroupMode::V2 => there.into_iter().try_for_each(|group| kill_v2(group)),
        CgroupMode::V1 => kill_v1(&there),
        CgroupMode::None { .. } => Ok(()),
    }
}

fn kill_v2(group: &Path) -> Result<(), CgroupError> {
    let file = group.join("cgroup.kill");
    if file.exists() {
        return write(&file, "1");
    }
    // A kernel before 5.14: kills them one by one; processes that fork meanwhile are killed in the next round.
    members(&[group.to_owned()]).into_iter().for_each(|pid| kill_member(pid, &[group.to_owned()]));
    Ok(())
}

/// Freezes the processes, so that none forks meanwhile; kills; and thaws, since a frozen process cannot die.
fn kill_v1(groups: &[&PathBuf]) -> Result<(), CgroupError> {
    let freezers: Vec<PathBuf> =
        groups.iter().map(|group| group.join("freezer.state")).filter(|file| file.exists()).collect();
    for file in &freezers {
        write(file, "FROZEN")?;
    }
    let all: Vec<PathBuf> = groups.iter().map(|group| (*group).clone()).collect();
    members(&all).into_iter().for_each(|pid| kill_member(pid, &all));
    // All are thawed, even if one fails.
    let thawed: Vec<_> = freezers.iter().map(|file| write(file, "THAWED")).collect();
    thawed.into_iter().collect()
}

/// Kills one process, if it is still a member when its file descriptor is open (PID reuse).
fn kill_member(pid: u32, groups: &[PathBuf]) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(process) = pidfd_open(raw, PidfdFlags::empty()) else { return };
    if members(groups).binary_search(&pid).is_ok()
        && let Err(error) = pidfd_send_signal(&process, Signal::KILL)
    {
        tracing::debug!(pid, %error, "cannot kill a process of a control group");
    }
}

/// Kills and removes repeatedly, until nothing is left or the timeout expires.
pub(super) fn destroy(mode: &CgroupMode, groups: &[PathBuf], timeout: Duration) -> Result<(), CgroupError> {
    let (began, mut pause) = (Instant::now(), PAUSE);
    loop {
        let left: Vec<PathBuf> = groups.iter().filter(|group| group.is_dir()).cloned().collect();
        if left.is_empty() {
            return Ok(());
        }
        if !members(&left).is_empty() {
            kill(mode, &left)?;
        }
        let refused: Vec<CgroupError> = left.iter().filter_map(|group| remove(group).err()).collect();
        let Some(error) = refused.into_iter().next() else { continue };
        if began.elapsed() >= timeout {
            return Err(given_up(&left, timeout, error));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn given_up(left: &[PathBuf], within: Duration, error: CgroupError) -> CgroupError {
    let mut pids = members(left);
    if pids.is_empty() {
        return error;
    }
    pids.truncate(NAMED_MAX);
    let path = left.iter().find(|group| !members(&[(*group).clone()]).is_empty()).unwrap_or(&left[0]).clone();
    CgroupError::NotEmpty { path, within, pids }
}

/// Removes an empty cgroup and its empty descendants.
fn remove(group: &Path) -> Result<(), CgroupError> {
    for inner in with_descendants(group, DEPTH_MAX) {
        match fs::remove_dir(&inner) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(CgroupError::refused("remove the control group", &inner)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// How many processes the OOM killer has ended in this cgroup since it was created; `None` if unknown (T207).
pub(super) fn out_of_memory_kills(mode: &CgroupMode, group: &Path) -> Option<u64> {
    let file = match mode {
        CgroupMode::V2 => "memory.events",
        CgroupMode::V1 => "memory.oom_control",
        CgroupMode::None { .. } => return None,
    };
    let text = read(&group.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
