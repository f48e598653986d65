//! The parents of the cgroups of tasks: created once per run of the host (T101, T102).

use std::path::Path;

use callboard_machines::cgroups::{SLICE, V1_PARENT};

use super::error::CgroupError;
use super::files::{make, read, write};
use super::mode::{V1_CONTROLLERS, V2_CONTROLLERS};

/// Creates the slices of version 2, and enables at each level those of the five controllers that the root has.
pub(super) fn prepare_v2(root: &Path) -> Result<(), CgroupError> {
    let slice = root.join(SLICE);
    // With a delegated slice this host may not write above it, and need not.
    if missing(&slice).is_none_or(|missing| !missing.is_empty()) {
        switch_on(root)?;
    }
    make(&slice)?;
    switch_on(&slice)?;
    for partition in ["share.slice", "reserve.slice"] {
        let partition = slice.join(partition);
        make(&partition)?;
        switch_on(&partition)?;
    }
    Ok(())
}

/// Which of the five controllers a cgroup lacks; `None` if it does not exist.
fn missing(group: &Path) -> Option<Vec<&'static str>> {
    let there = read(&group.join("cgroup.controllers")).ok()?;
    let has = |wanted: &&str| there.split_whitespace().any(|controller| controller == *wanted);
    Some(V2_CONTROLLERS.into_iter().filter(|wanted| !has(wanted)).collect())
}

/// Enables the cgroup's controllers, of the five, for its children.
fn switch_on(group: &Path) -> Result<(), CgroupError> {
    let lacking = missing(group).unwrap_or_default();
    let handed_down = read(&group.join("cgroup.subtree_control"))?;
    for controller in V2_CONTROLLERS {
        let is_on = handed_down.split_whitespace().any(|on| on == controller);
        if !is_on && !lacking.contains(&controller) {
            write(&group.join("cgroup.subtree_control"), &format!("+{controller}"))?;
        }
    }
    Ok(())
}

/// Creates the parents of version 1. A `cpuset` cgroup needs CPUs and memory nodes, which are copied from the root.
pub(super) fn prepare_v1(root: &Path) -> Result<(), CgroupError> {
    for controller in V1_CONTROLLERS {
        make(&root.join(controller).join(V1_PARENT))?;
    }
    let cpuset = root.join("cpuset").join(V1_PARENT);
    copy_cpuset(&cpuset)?;
    for partition in ["share", "reserve"] {
        let partition = cpuset.join(partition);
        make(&partition)?;
        copy_cpuset(&partition)?;
    }
    Ok(())
}

/// Copies the empty settings of a `cpuset` cgroup from its parent.
pub(super) fn copy_cpuset(group: &Path) -> Result<(), CgroupError> {
    let Some(above) = group.parent() else { return Ok(()) };
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if read(&group.join(file))?.trim().is_empty() {
            write(&group.join(file), read(&above.join(file))?.trim())?;
        }
    }
    Ok(())
}
