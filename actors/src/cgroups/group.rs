//! The cgroups of tasks: created before each start, removed after each end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_machines::cgroups::{Cores, GroupName, Limits, Places, SLICE, V1_PARENT};

use super::error::CgroupError;
use super::files::{make, read, write};
use super::killing;
use super::mode::{CgroupMode, Facts, decide};
use super::parents::{copy_cpuset, prepare_v1, prepare_v2};

/// The mount point where drivers expect cgroups.
const ROOT: &str = "/sys/fs/cgroup";
/// The timeout for a cgroup to become empty, as in Nomad (T110).
const TIMEOUT: Duration = Duration::from_secs(30);

/// The cgroups of tasks on a machine. Cheap to clone; holds no file descriptor and no state: the kernel has that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCgroups {
    root: PathBuf,
    mode: CgroupMode,
    timeout: Duration,
}

/// The cgroup that was created for a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its directories.
    pub places: Places,
}

impl TaskCgroups {
    /// Inspects this machine, at `/sys/fs/cgroup`.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let root = Path::new(ROOT);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::at(root, decide(&mounts, root, &facts(root)))
    }

    /// The cgroups below another root, with a fixed version.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>, mode: CgroupMode) -> Self {
        Self { root: root.into(), mode, timeout: TIMEOUT }
    }

    /// No cgroups: an embedder, or an operator, has disabled them.
    #[must_use]
    pub fn none(reason: impl Into<String>) -> Self {
        Self::at(ROOT, CgroupMode::None { reason: reason.into() })
    }

    /// The timeout for a cgroup to become empty before [`CgroupError::NotEmpty`]; 30 s by default.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The version in use, or why there is none.
    #[must_use]
    pub const fn mode(&self) -> &CgroupMode {
        &self.mode
    }

    /// The root directory of all cgroups.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The timeout for a cgroup to become empty.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Creates the parents of the cgroups of tasks. Idempotent; does nothing without cgroups.
    ///
    /// # Errors
    /// [`CgroupError`] when the kernel refuses: in a container, for instance, whose root cgroup has processes.
    pub fn prepare(&self) -> Result<(), CgroupError> {
        match self.mode {
            CgroupMode::V2 => prepare_v2(&self.root),
            CgroupMode::V1 => prepare_v1(&self.root),
            CgroupMode::None { .. } => Ok(()),
        }
    }

    /// The cgroup directories of a task, existing or not; `None` without cgroups.
    #[must_use]
    pub fn places(&self, name: &GroupName, cores: Cores) -> Option<Places> {
        Places::of(&self.mode, &self.root, name, cores)
    }

    /// Creates the cgroups of a task, before each start: a driver may have removed them at the last end (T198). An existing
    /// one is reused; its processes are reported by [`TaskCgroups::members`]. `None` without cgroups.
    ///
    /// # Errors
    /// [`CgroupError`] when the kernel refuses.
    pub fn create(&self, name: &GroupName, cores: Cores) -> Result<Option<Created>, CgroupError> {
        let Some(places) = self.places(name, cores) else { return Ok(None) };
        let made = places.own.iter().try_for_each(|path| make(path));
        if made.is_err() {
            // The parents were removed, as systemd does with unknown cgroups.
            self.prepare()?;
            places.own.iter().try_for_each(|path| make(path))?;
        }
        if self.mode == CgroupMode::V1 && cores == Cores::Reserved {
            copy_cpuset(&places.cpuset_cgroup)?;
        }
        Ok(Some(Created { places }))
    }

    /// Writes limits. Most drivers do that themselves (T106).
    ///
    /// # Errors
    /// [`CgroupError`] with the first write that the kernel refuses.
    pub fn limit(&self, name: &GroupName, cores: Cores, limits: &Limits) -> Result<(), CgroupError> {
        let Some(places) = self.places(name, cores) else { return Ok(()) };
        for one in limits.writes(&self.mode) {
            let group = match (&self.mode, one.controller) {
                (CgroupMode::V1, "cpuset") if cores == Cores::Shared => continue,
                (CgroupMode::V1, "cpuset") => places.cpuset_cgroup.clone(),
                (CgroupMode::V1, controller) => {
                    self.root.join(controller).join(V1_PARENT).join(name.as_str())
                }
                _ => places.cpuset_cgroup.clone(),
            };
            write(&group.join(one.file), &one.text)?;
        }
        Ok(())
    }

    /// The processes in the cgroups of a task and in nested ones: in any hierarchy, with or without reserved cores.
    #[must_use]
    pub fn members(&self, name: &GroupName) -> Vec<u32> {
        killing::members(&Places::possible(&self.mode, &self.root, name))
    }

    /// How many processes of a task the OOM killer has ended since its cgroup was created; `None` if unknown (T207).
    #[must_use]
    pub fn out_of_memory_kills(&self, name: &GroupName, cores: Cores) -> Option<u64> {
        let group = match self.mode {
            CgroupMode::V1 => self.root.join("memory").join(V1_PARENT).join(name.as_str()),
            CgroupMode::V2 => self.places(name, cores)?.cpuset_cgroup,
            CgroupMode::None { .. } => return None,
        };
        killing::out_of_memory_kills(&self.mode, &group)
    }

    /// Kills everything in the cgroups of a task and removes them, with retries until they are empty. Idempotent.
    ///
    /// # Errors
    /// [`CgroupError::NotEmpty`] when processes do not go away before the timeout.
    pub fn destroy(&self, name: &GroupName) -> Result<(), CgroupError> {
        killing::destroy(&self.mode, &Places::possible(&self.mode, &self.root, name), self.timeout)
    }

    /// Kills everything in the cgroups of a task and keeps the cgroups. Does not wait for the end.
    ///
    /// # Errors
    /// [`CgroupError`] when the kernel refuses.
    pub fn kill(&self, name: &GroupName) -> Result<(), CgroupError> {
        killing::kill(&self.mode, &Places::possible(&self.mode, &self.root, name))
    }
}

fn facts(root: &Path) -> Facts {
    let slice = root.join(SLICE);
    let may_write = rustix::fs::access(&slice, rustix::fs::Access::WRITE_OK).is_ok();
    Facts {
        is_root: rustix::process::geteuid().is_root(),
        controllers: read(&root.join("cgroup.controllers")).unwrap_or_default(),
        owns_slice: slice.is_dir() && may_write,
    }
}
