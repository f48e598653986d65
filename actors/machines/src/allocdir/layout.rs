//! The paths of a task on the host, and as the task sees them: pure functions (T041 to T048, T080).

use std::path::{Path, PathBuf};

use crate::driver::FsIsolation;
use crate::vocabulary::{AllocationId, TaskName};

/// The directory that the tasks of an allocation share; no task may have this name.
pub const SHARED: &str = "alloc";

/// The names of a task and its allocation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskNames {
    /// The allocation.
    pub allocation: AllocationId,
    /// The task within it.
    pub task: TaskName,
}

impl TaskNames {
    /// The name under which drivers with `unveil` isolation find the task (T048).
    #[must_use]
    pub fn joined(&self) -> String {
        format!("{}-{}", self.allocation, self.task)
    }
}

/// The paths of a task on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The allocation's directory, passed to the driver as `alloc_dir`.
    pub allocation_dir: PathBuf,
    /// The directory that the tasks of the allocation share.
    pub shared_dir: PathBuf,
    /// The directory of log pipes and files.
    pub log_dir: PathBuf,
    /// The task's own directory.
    pub task_dir: PathBuf,
    /// Its `local` directory.
    pub local_dir: PathBuf,
    /// Its `secrets` directory; in memory if the host may mount.
    pub secrets_dir: PathBuf,
    /// Where a driver with `unveil` isolation shows the task.
    pub mounts_dir: PathBuf,
}

/// The three directories as the task itself sees them: `NOMAD_ALLOC_DIR`, `NOMAD_TASK_DIR`, `NOMAD_SECRETS_DIR` (T080).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The shared directory.
    pub alloc: PathBuf,
    /// The task's `local`.
    pub local: PathBuf,
    /// Its `secrets`.
    pub secrets: PathBuf,
}

impl Layout {
    /// The paths of a task below these two roots.
    #[must_use]
    pub fn of(root: &Path, mounts: &Path, names: &TaskNames) -> Self {
        let allocation_dir = root.join(names.allocation.as_str());
        let shared_dir = allocation_dir.join(SHARED);
        let task_dir = allocation_dir.join(names.task.as_str());
        Self {
            log_dir: shared_dir.join("logs"),
            local_dir: task_dir.join("local"),
            secrets_dir: task_dir.join("secrets"),
            mounts_dir: mounts.join(names.joined()),
            allocation_dir,
            shared_dir,
            task_dir,
        }
    }

    /// The paths that the task sees, by the isolation of its driver.
    #[must_use]
    pub fn seen(&self, isolation: FsIsolation) -> Seen {
        match isolation {
            FsIsolation::None => Seen {
                alloc: self.shared_dir.clone(),
                local: self.local_dir.clone(),
                secrets: self.secrets_dir.clone(),
            },
            FsIsolation::Chroot | FsIsolation::Image => {
                Seen { alloc: "/alloc".into(), local: "/local".into(), secrets: "/secrets".into() }
            }
            FsIsolation::Unveil => Seen {
                alloc: self.mounts_dir.join("alloc"),
                local: self.mounts_dir.join("local"),
                secrets: self.mounts_dir.join("secrets"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let names =
            TaskNames { allocation: AllocationId::new("a1").unwrap(), task: TaskName::new("web").unwrap() };
        Layout::of(Path::new("/d/alloc"), Path::new("/d/mounts"), &names)
    }

    #[test]
    fn the_task_lies_in_its_allocation_under_its_name_t041_t043() {
        let layout = layout();
        assert_eq!(layout.task_dir, layout.allocation_dir.join("web"));
        assert_eq!(layout.log_dir, Path::new("/d/alloc/a1/alloc/logs"));
        assert_eq!(layout.mounts_dir, Path::new("/d/mounts/a1-web"));
    }

    #[test]
    fn the_isolation_decides_what_the_task_sees_t080_th003() {
        let seen = |isolation| layout().seen(isolation);
        assert_eq!(seen(FsIsolation::None).local, Path::new("/d/alloc/a1/web/local"));
        assert_eq!(seen(FsIsolation::None).alloc, Path::new("/d/alloc/a1/alloc"));
        assert_eq!(seen(FsIsolation::Chroot).secrets, Path::new("/secrets"));
        assert_eq!(seen(FsIsolation::Image), seen(FsIsolation::Chroot));
        assert_eq!(seen(FsIsolation::Unveil).alloc, Path::new("/d/mounts/a1-web/alloc"));
    }
}
