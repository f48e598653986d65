//! Control groups: the kernel's own list of everything that a process made, where the host may make one (PRC-03).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::name::ProcessTag;

/// Where this host makes control groups, if it may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlGroups {
    directory: Option<PathBuf>,
}

impl ControlGroups {
    /// Makes none: process groups and tags have to do.
    #[must_use]
    pub const fn none() -> Self {
        Self { directory: None }
    }

    /// Looks for the host's own group in the unified hierarchy (version 2) and makes a directory in it for this owner's
    /// processes. Without rights, or without that hierarchy, there are none, and the log says so.
    #[must_use]
    pub fn of_this_host(owner: &str) -> Self {
        match make_directory(owner) {
            Ok(directory) => Self { directory: Some(directory) },
            Err(error) => {
                tracing::info!(error = %error, "no control groups for processes; process groups and tags are used");
                Self::none()
            }
        }
    }

    /// Whether there are any.
    #[must_use]
    pub const fn are_there(&self) -> bool {
        self.directory.is_some()
    }

    /// Makes the group of a launch, or takes the one that is there.
    pub(super) fn group(&self, tag: ProcessTag) -> Option<ControlGroup> {
        let path = self.directory.as_ref()?.join(tag.to_string());
        match fs::create_dir(&path) {
            Ok(()) => Some(ControlGroup { path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(ControlGroup { path }),
            Err(error) => {
                tracing::warn!(path = %path.display(), error = %error, "a control group cannot be made");
                None
            }
        }
    }

    /// The group that a launch of an earlier run may have left.
    pub(super) fn existing(&self, tag: ProcessTag) -> Option<ControlGroup> {
        let path = self.directory.as_ref()?.join(tag.to_string());
        path.is_dir().then_some(ControlGroup { path })
    }
}

fn make_directory(owner: &str) -> io::Result<PathBuf> {
    let directory = unified_group_of(std::process::id())?.join(format!("callboard-{owner}"));
    match fs::create_dir(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // What cannot be killed as a whole is of no use.
    let probe = directory.join("cgroup.kill");
    if probe.exists() { Ok(directory) } else { Err(io::Error::other("the kernel has no cgroup.kill")) }
}

/// The directory of the control group, in the unified hierarchy (version 2), that a process is in.
///
/// # Errors
/// When that hierarchy is not mounted, or the process cannot be looked at.
pub fn unified_group_of(pid: u32) -> io::Result<PathBuf> {
    let mount = mount_point(&fs::read_to_string("/proc/self/mountinfo")?)
        .ok_or_else(|| io::Error::other("the unified hierarchy is not mounted"))?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(mount.join(own))
}

/// The place of the unified hierarchy in a text such as `/proc/self/mountinfo`.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_unified = after.split(' ').next() == Some("cgroup2");
        is_unified.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// The control group of one process.
#[derive(Debug)]
pub(super) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Puts a process in. What it makes from now on is in it too; what it made before is found by its tag.
    pub(super) fn add(&self, pid: u32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) -> io::Result<()> {
        self.write("cgroup.kill", "1")
    }

    /// Who is in it.
    pub(super) fn members(&self) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.path.join("cgroup.procs"))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Removes it, which is empty.
    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            tracing::debug!(path = %self.path.display(), error = %error, "a control group stays");
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        // Opened, not created: what is not there is not ours to make.
        let mut file = fs::OpenOptions::new().write(true).open(self.path().join(file))?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_found_among_the_mounts() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("30 25 0:26 / /sys rw - sysfs sysfs rw\n"), None);
    }
}
