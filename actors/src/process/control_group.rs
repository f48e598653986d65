//! Control groups: the kernel's own list of everything that a process made, where the host may make one (PRC-03).
//!
//! A group is there for as long as something is in it. It is removed when its process has ended, and the directory around it
//! with the last one; what a host left that was killed, its next run removes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::name::ProcessTag;

/// How deep in the hierarchy it is looked for what earlier runs left, and how deep a process may nest its groups.
const DEPTH_MAX: usize = 16;
/// How many groups are looked at.
const LOOKED_AT_MAX: usize = 100_000;
/// How often a group is made anew whose directory went away meanwhile, with the last group of another process.
const TRIES: usize = 8;

/// Where this host makes control groups, if it may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlGroups {
    place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Where the hierarchy is mounted.
    hierarchy: PathBuf,
    /// The directory of this owner; there while a group is in it.
    directory: PathBuf,
}

impl ControlGroups {
    /// Makes none: process groups and tags have to do.
    #[must_use]
    pub const fn none() -> Self {
        Self { place: None }
    }

    /// Looks for the host's own group in the unified hierarchy (version 2), and whether groups for this owner's processes can be
    /// made in it. Without rights, or without that hierarchy, there are none, and the log says so.
    #[must_use]
    pub fn of_this_host(owner: &str) -> Self {
        match Place::of_this_host(owner) {
            Ok(place) => Self { place: Some(place) },
            Err(error) => {
                tracing::info!(error = %error, "no control groups for processes; process groups and tags are used");
                Self::none()
            }
        }
    }

    /// Whether there are any.
    #[must_use]
    pub const fn are_there(&self) -> bool {
        self.place.is_some()
    }

    /// Makes the group of a launch, or takes the one that is there.
    pub(super) fn group(&self, tag: ProcessTag) -> Option<ControlGroup> {
        let place = self.place.as_ref()?;
        match place.make(tag) {
            Ok(path) => Some(ControlGroup { path }),
            Err(error) => {
                let path = place.directory.display();
                tracing::warn!(%path, error = %error, "a control group cannot be made");
                None
            }
        }
    }

    /// The group that a launch of an earlier run may have left.
    pub(super) fn existing(&self, tag: ProcessTag) -> Option<ControlGroup> {
        let path = self.place.as_ref()?.directory.join(tag.to_string());
        path.is_dir().then_some(ControlGroup { path })
    }

    /// Removes what earlier runs of this owner left, wherever in the hierarchy they were: groups in which nothing is, but for those
    /// of these launches. Gives how many it removed.
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
        // What cannot be killed as a whole is of no use.
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

    /// Removes the directory if nothing is in it.
    fn leave(&self) {
        // A group in it keeps it there.
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
/// When that hierarchy is not mounted, or the process cannot be looked at.
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

/// The place of the unified hierarchy in a text such as `/proc/self/mountinfo`.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_unified = after.split(' ').next() == Some("cgroup2");
        is_unified.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// The groups directly in one. One that goes away meanwhile has none.
fn groups_in(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.map(|entry| entry.path()).collect()
}

/// All groups of one name in the hierarchy.
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

/// Removes a group and those in it, as far as nothing is in them: the kernel refuses any other. Gives how many it removed.
fn remove_empty(group: &Path, depth: usize) -> usize {
    let inner = if depth == 0 { Vec::new() } else { groups_in(group) };
    let removed: usize = inner.iter().map(|inner| remove_empty(inner, depth - 1)).sum();
    removed + usize::from(fs::remove_dir(group).is_ok())
}

/// The control group of one process. When this is dropped and nothing is in it, it is removed.
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

    /// Removes it if nothing is in it. Whether it is gone.
    pub(super) fn remove(&self) -> bool {
        remove_empty(&self.path, DEPTH_MAX);
        let is_gone = !self.path.exists();
        if is_gone && let Some(directory) = self.path.parent() {
            // The group of another process keeps it there.
            let _ = fs::remove_dir(directory);
        }
        is_gone
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

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // What is in use stays, and whoever comes next finds it.
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
