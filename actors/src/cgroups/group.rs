//! The groups of tasks on this machine: made before each start, removed after each end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::CgroupError;
use super::files::{make, read, write};
use super::killing;
use super::limits::Limits;
use super::mode::{CgroupMode, Facts, decide};
use super::parents::{copy_cpuset, prepare_v1, prepare_v2};
use super::place::{Cores, GroupName, Places, SLICE, V1_PARENT};

/// Where drivers look for control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// How long a group is given to become empty, as the drivers' usual host gives it (T110).
const PATIENCE: Duration = Duration::from_secs(30);

/// The control groups of tasks on a machine. Cheap to clone; holds no descriptor and no state: the kernel has that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCgroups {
    root: PathBuf,
    mode: CgroupMode,
    patience: Duration,
}

/// A group that was made for a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Where it is.
    pub places: Places,
}

impl TaskCgroups {
    /// Looks at this machine, at `/sys/fs/cgroup`.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let root = Path::new(ROOT);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::at(root, decide(&mounts, root, &facts(root)))
    }

    /// Those below another root, of a version that somebody has decided.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>, mode: CgroupMode) -> Self {
        Self { root: root.into(), mode, patience: PATIENCE }
    }

    /// None at all: an embedder, or an operator, does not want any.
    #[must_use]
    pub fn none(reason: impl Into<String>) -> Self {
        Self::at(ROOT, CgroupMode::None { reason: reason.into() })
    }

    /// Gives a group this long to become empty before [`CgroupError::NotEmpty`]; 30 s unless told otherwise.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Which version, or why none.
    #[must_use]
    pub const fn mode(&self) -> &CgroupMode {
        &self.mode
    }

    /// The directory below which all groups lie.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How long a group is given to become empty.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        self.patience
    }

    /// Makes what lies above the groups of tasks. Does nothing to what is there; without control groups it does nothing at all.
    ///
    /// # Errors
    /// [`CgroupError`] when the kernel refuses: in a container, for instance, whose root group has processes.
    pub fn prepare(&self) -> Result<(), CgroupError> {
        match self.mode {
            CgroupMode::V2 => prepare_v2(&self.root),
            CgroupMode::V1 => prepare_v1(&self.root),
            CgroupMode::None { .. } => Ok(()),
        }
    }

    /// Where the groups of a task lie, whether they are there or not; `None` without control groups.
    #[must_use]
    pub fn places(&self, name: &GroupName, cores: Cores) -> Option<Places> {
        Places::of(&self.mode, &self.root, name, cores)
    }

    /// Makes the groups of a task anew, before each start: a driver may have removed them at the last end (T198). A group that is
    /// there is taken as it is; who may be left in it is the matter of [`TaskCgroups::members`]. `None` without control groups.
    ///
    /// # Errors
    /// [`CgroupError`] when the kernel refuses.
    pub fn create(&self, name: &GroupName, cores: Cores) -> Result<Option<Created>, CgroupError> {
        let Some(places) = self.places(name, cores) else { return Ok(None) };
        let made = places.own.iter().try_for_each(|path| make(path));
        if made.is_err() {
            // Somebody removed what lies above, as `systemd` does with what it does not know.
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

    /// The processes in the groups of a task, also in groups made inside of them: in any hierarchy, with or without cores.
    #[must_use]
    pub fn members(&self, name: &GroupName) -> Vec<u32> {
        killing::members(&Places::possible(&self.mode, &self.root, name))
    }

    /// How many processes of a task the kernel ended for want of memory since its group was made; `None` if it does not say (T207).
    #[must_use]
    pub fn out_of_memory_kills(&self, name: &GroupName, cores: Cores) -> Option<u64> {
        let group = match self.mode {
            CgroupMode::V1 => self.root.join("memory").join(V1_PARENT).join(name.as_str()),
            CgroupMode::V2 => self.places(name, cores)?.cpuset_cgroup,
            CgroupMode::None { .. } => return None,
        };
        killing::out_of_memory_kills(&self.mode, &group)
    }

    /// Kills everything in the groups of a task and removes them, with retries until they are empty. A task without groups is well.
    ///
    /// # Errors
    /// [`CgroupError::NotEmpty`] when processes do not go away within the patience.
    pub fn destroy(&self, name: &GroupName) -> Result<(), CgroupError> {
        killing::destroy(&self.mode, &Places::possible(&self.mode, &self.root, name), self.patience)
    }

    /// Kills everything in the groups of a task and leaves the groups. Does not wait until it is gone.
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
