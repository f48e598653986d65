//! How a driver's capabilities affect a task (TH003).

use std::path::Path;

use super::error::TaskConfigError;
use crate::driver::client::TaskConfig;
use crate::driver::{DriverCapabilities, FsIsolation, MountSupport, NetworkMode};

/// The values for mount propagation (T077).
const PROPAGATIONS: [&str; 4] = ["", "private", "host-to-task", "bidirectional"];

/// How a task's output is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogWay {
    /// It is collected through pipes.
    Collected,
    /// The driver gets `/dev/null` for both streams (T061).
    Discarded,
    /// The driver does not support `/dev/null` (T065): it gets pipes, and their content is dropped.
    ReadAndDiscarded,
}

/// How the output of a driver's tasks is handled, depending on whether it `is_wanted`.
#[must_use]
pub fn log_way(capabilities: &DriverCapabilities, is_wanted: bool) -> LogWay {
    match (is_wanted && !capabilities.disable_log_collection, capabilities.fs_isolation) {
        (true, _) => LogWay::Collected,
        (false, FsIsolation::Unveil) => LogWay::ReadAndDiscarded,
        (false, FsIsolation::None | FsIsolation::Chroot | FsIsolation::Image) => LogWay::Discarded,
    }
}

pub(super) fn fill_output(task: &mut TaskConfig, way: LogWay) -> Result<(), TaskConfigError> {
    for path in [&mut task.stdout_path, &mut task.stderr_path] {
        match way {
            LogWay::Discarded if path.as_os_str().is_empty() => *path = "/dev/null".into(),
            LogWay::Collected | LogWay::ReadAndDiscarded | LogWay::Discarded => {}
        }
        if !path.is_absolute() {
            return Err(TaskConfigError::Output);
        }
    }
    Ok(())
}

pub(super) fn check(task: &TaskConfig, capabilities: &DriverCapabilities) -> Result<(), TaskConfigError> {
    check_mounts(task, capabilities)?;
    check_network(task, capabilities)?;
    let needs_user = capabilities.dynamic_workload_users && task.user.is_empty();
    if needs_user { Err(TaskConfigError::User) } else { Ok(()) }
}

fn check_mounts(task: &TaskConfig, capabilities: &DriverCapabilities) -> Result<(), TaskConfigError> {
    if !task.mounts.is_empty() && capabilities.mounts == MountSupport::None {
        return Err(TaskConfigError::Mounts(task.mounts.len()));
    }
    let wrong = |what: &'static str, path: &Path, problem: &'static str| {
        Err(TaskConfigError::Path { what, path: path.to_owned(), problem })
    };
    for mount in &task.mounts {
        if !mount.host_path.is_absolute() || mount.task_path.as_os_str().is_empty() {
            return wrong(
                "mount",
                &mount.host_path,
                "give an absolute path of the host, and a path in the task",
            );
        }
        if !PROPAGATIONS.contains(&mount.propagation_mode.as_str()) {
            return wrong("mount", &mount.host_path, "it spreads as private, host-to-task or bidirectional");
        }
    }
    for device in &task.devices {
        if !device.host_path.is_absolute() || !device.task_path.is_absolute() {
            return wrong("device", &device.host_path, "give absolute paths of the host and in the task");
        }
        if device.cgroup_permissions.chars().any(|letter| !"rwm".contains(letter)) {
            return wrong("device", &device.host_path, "its permissions are of the letters r, w and m");
        }
    }
    Ok(())
}

fn check_network(task: &TaskConfig, capabilities: &DriverCapabilities) -> Result<(), TaskConfigError> {
    let Some(network) = &task.network else { return Ok(()) };
    let mode = network.mode;
    if mode != NetworkMode::Host && !capabilities.network_modes.contains(&mode) {
        return Err(TaskConfigError::Network { mode, offered: capabilities.network_modes.clone() });
    }
    // An empty path would request a new network with nothing in it (T078).
    let is_made_by_driver = capabilities.must_create_network;
    if mode == NetworkMode::Group && network.path.is_empty() && !is_made_by_driver {
        return Err(TaskConfigError::NetworkPath);
    }
    Ok(())
}
