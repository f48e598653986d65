//! Cgroups: the kernel's list of all descendants of a process, if the host may create cgroups (PRC-03).
//!
//! A cgroup exists while a process is in it. It is removed when its process has ended, and its parent directory with the
//! last one; the leftovers of a killed host are removed by its next run.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::ProcessTag;

/// The depth limit for the search for leftovers of earlier runs, and for nested cgroups of a process.
const DEPTH_MAX: usize = 16;
/// The limit of cgroups that the search visits.
const LOOKED_AT_MAX: usize = 100_000;
/// How often the creation of a cgroup is retried after a race with the removal of its parent directory.
const TRIES: usize = 8;

/// Creates the cgroups of this host, if permitted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlGroups {
    place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    hierarchy: PathBuf,
    /// The directory of this owner; exists while a cgroup is in it.
    directory: PathBuf,
}

impl ControlGroups {
    /// Creates no cgroups: process groups and tags must suffice.
    #[must_use]
    pub const fn none() -> Self {
        Self { place: None }
    }

    /// Finds the host's own cgroup in the unified hierarchy (version 2), and checks whether cgroups for this owner's
    /// processes can be created in it. Without permission, or without that hierarchy, none are used, which is logged.
    #[must_use]
    pub fn of_this_host(owner: &str) -> Self {
        match Place::of_this_host(owner) {
            Ok(place) => Self { place: Some(place) },
            Err(error) => {
                tracing::info!(error = %error, "control groups unavailable for processes; using process groups and tags");
                Self::none()
            }
        }
    }

    /// Creates the cgroup of a launch, or opens the existing one.
    pub(super) fn group(&self, tag: ProcessTag) -> Option<ControlGroup> {
        let place = self.place.as_ref()?;
        match place.make(tag) {
            Ok(path) => Some(ControlGroup { path }),
            Err(error) => {
                let path = place.directory.display();
                tracing::warn!(%path, error = %error, "cannot create a control group");
                None
            }
        }
    }

    /// The cgroup that a launch of an earlier run may have left.
    pub(super) fn existing(&self, tag: ProcessTag) -> Option<ControlGroup> {
        let path = self.place.as_ref()?.directory.join(tag.to_string());
        path.is_dir().then_some(ControlGroup { path })
    }

    /// Removes the empty cgroups of earlier runs of this owner, anywhere in the hierarchy, except those of the `known`
    /// launches. Returns the number removed.
    pub(super) fn sweep(&self, known: &[ProcessTag]) -> usize {
        let Some(Place { hierarchy, directory }) = &self.place else { return 0 };
        let Some(name) = directory.file_name() else { return 0 };
        let known: BTreeSet<String> = known.iter().map(ToString::to_string).collect();
        let mut removed = 0;
        for directory in named(hierarchy, name) {
            for group in groups_in(&directory) {
                let is_known =
                    group.file_name().and_then(|name| name.to_str()).is_some_and(|name| known.contains(name));
                removed += if is_known { 0 } else { remove_empty(&group, DEPTH_MAX) };
            }
            removed += usize::from(fs::remove_dir(&directory).is_ok());
        }
        removed
    }
}

impl Place {
    fn of_this_host(owner: &str) -> io::Result<Self> {
        let hierarchy = hierarchy()?;
        let directory = group_below(&hierarchy, std::process::id())?.join(format!("callboard-{owner}"));
        let place = Self { hierarchy, directory };
        make(&place.directory)?;
        // Without `cgroup.kill` a cgroup is useless.
        let can_kill = place.directory.join("cgroup.kill").exists();
        place.leave();
        if can_kill { Ok(place) } else { Err(io::Error::other("the kernel has no cgroup.kill")) }
    }

    fn make(&self, tag: ProcessTag) -> io::Result<PathBuf> {
        let path = self.directory.join(tag.to_string());
        let mut made = Ok(());
        for _ in 0..TRIES {
            made = make(&self.directory).and_then(|()| make(&path));
            match &made {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(()) | Err(_) => break,
            }
        }
        made.map(|()| path)
    }

    fn leave(&self) {
        // It stays while a cgroup is in it.
        let _ = fs::remove_dir(&self.directory);
    }
}

fn make(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The directory of the control group, in the unified hierarchy (version 2), that a process is in.
///
/// # Errors
/// When that hierarchy is not mounted, or the process cannot be inspected.
pub fn unified_group_of(pid: u32) -> io::Result<PathBuf> {
    group_below(&hierarchy()?, pid)
}

fn hierarchy() -> io::Result<PathBuf> {
    mount_point(&fs::read_to_string("/proc/self/mountinfo")?)
        .ok_or_else(|| io::Error::other("the unified hierarchy is not mounted"))
}

fn group_below(hierarchy: &Path, pid: u32) -> io::Result<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(hierarchy.join(own))
}

fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_unified = after.split(' ').next() == Some("cgroup2");
        is_unified.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// The direct children of a cgroup; empty if it was removed meanwhile.
fn groups_in(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|entry| entry.path()).collect()
}

fn named(hierarchy: &Path, name: &std::ffi::OsStr) -> Vec<PathBuf> {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let mut open = vec![(hierarchy.to_owned(), 0)];
    while let Some((group, depth)) = open.pop() {
        for inner in groups_in(&group) {
            looked_at += 1;
            if looked_at > LOOKED_AT_MAX {
                return found;
            }
            if inner.file_name() == Some(name) {
                found.push(inner);
            } else if depth < DEPTH_MAX {
                open.push((inner, depth + 1));
            }
        }
    }
    found
}

/// Removes a cgroup and its descendants if they are empty: the kernel refuses others. Returns the number removed.
fn remove_empty(group: &Path, depth: usize) -> usize {
    let inner = if depth == 0 { Vec::new() } else { groups_in(group) };
    let removed: usize = inner.iter().map(|inner| remove_empty(inner, depth - 1)).sum();
    removed + usize::from(fs::remove_dir(group).is_ok())
}

/// The cgroup of one process. Dropping this removes it if it is empty.
#[derive(Debug)]
pub(super) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Adds a process. Its future children are included; existing ones are found by their tag.
    pub(super) fn add(&self, pid: u32) -> io::Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        self.write("cgroup.kill", "1")
    }

    pub(super) fn members(&self) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.path.join("cgroup.procs"))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Removes it if it is empty. Returns whether it is gone.
    pub(super) fn remove(&self) -> bool {
        remove_empty(&self.path, DEPTH_MAX);
        let is_gone = !self.path.exists();
        if is_gone && let Some(directory) = self.path.parent() {
            // It stays while it contains the cgroup of another process.
            let _ = fs::remove_dir(directory);
        }
        is_gone
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        // Opened without create: the file belongs to the kernel.
        let mut file = fs::OpenOptions::new().write(true).open(self.path().join(file))?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // It stays while it is in use; the next run removes it.
        let _ = self.remove();
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
