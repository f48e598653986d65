//! The cgroup paths of a task: pure functions of the allocation's id and the task's name (T103, T105, T109, TH051).

use std::path::{Path, PathBuf};

use super::mode::CgroupMode;
use crate::vocabulary::{AllocationId, TaskName};

/// The length limit of a cgroup name, in bytes: that of a path component.
const NAME_BYTES_MAX: usize = 255;
/// The parent of all our cgroups in version 2.
pub const SLICE: &str = "nomad.slice";
/// The parent of all our cgroups in each hierarchy of version 1.
pub const V1_PARENT: &str = "nomad";

/// Whether a task has reserved cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cores {
    /// It shares the cores that no task has reserved.
    #[default]
    Shared,
    /// It has reserved cores.
    Reserved,
}

impl Cores {
    /// By the list of cores in the task's resources (`linux_resources.cpuset_cpus`): empty means shared.
    #[must_use]
    pub fn of_list(cpuset_cpus: &str) -> Self {
        if cpuset_cpus.trim().is_empty() { Self::Shared } else { Self::Reserved }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Shared => "share",
            Self::Reserved => "reserve",
        }
    }
}

/// The name of a task's cgroups: `ALLOCID.NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName(String);

impl GroupName {
    /// The cgroup name of this task.
    ///
    /// # Errors
    /// A message when the name is too long for the kernel.
    pub fn new(allocation: &AllocationId, task: &TaskName) -> Result<Self, String> {
        let name = format!("{allocation}.{task}");
        let bytes = name.len() + ".scope".len();
        if bytes > NAME_BYTES_MAX {
            return Err(format!(
                "the control group of task {task} would have a name of {bytes} bytes, and the kernel takes {NAME_BYTES_MAX}; \
                 give the task a shorter name"
            ));
        }
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a cgroup that exists.
    #[must_use]
    pub fn of_text(name: &str) -> Self {
        Self(name.to_owned())
    }
}

/// The cgroup directories of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The task's own cgroups; the first lists its processes: the scope in version 2, the freezer's in version 1.
    pub own: Vec<PathBuf>,
    /// The `cpuset_cgroup` of the task's resources (T105). In version 1 the shared cgroup for a task without reserved cores.
    pub cpuset_cgroup: PathBuf,
}

impl Places {
    /// The cgroup directories of this task below `root`; `None` without cgroups.
    #[must_use]
    pub fn of(mode: &CgroupMode, root: &Path, name: &GroupName, cores: Cores) -> Option<Self> {
        match mode {
            CgroupMode::V2 => {
                let slice = root.join(SLICE).join(format!("{}.slice", cores.word()));
                let scope = slice.join(format!("{}.scope", name.0));
                Some(Self { own: vec![scope.clone()], cpuset_cgroup: scope })
            }
            CgroupMode::V1 => {
                let below = |controller: &str| root.join(controller).join(V1_PARENT);
                let mut own: Vec<PathBuf> = ["freezer", "memory", "cpu"]
                    .iter()
                    .map(|controller| below(controller).join(&name.0))
                    .collect();
                let partition = below("cpuset").join(cores.word());
                let cpuset_cgroup = match cores {
                    Cores::Shared => partition,
                    Cores::Reserved => partition.join(&name.0),
                };
                if cores == Cores::Reserved {
                    own.push(cpuset_cgroup.clone());
                }
                Some(Self { own, cpuset_cgroup })
            }
            CgroupMode::None { .. } => None,
        }
    }

    /// All directories where a cgroup of this task may exist, with or without reserved cores.
    pub fn possible(mode: &CgroupMode, root: &Path, name: &GroupName) -> Vec<PathBuf> {
        let both = [Cores::Shared, Cores::Reserved].map(|cores| Self::of(mode, root, name, cores));
        let mut all: Vec<PathBuf> = both.into_iter().flatten().flat_map(|places| places.own).collect();
        all.sort();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> GroupName {
        let allocation = AllocationId::new("1d7e2ab0-0000-4000-8000-0123456789ab").unwrap();
        GroupName::new(&allocation, &TaskName::new("web").unwrap()).unwrap()
    }

    #[test]
    fn the_scope_of_a_task_is_where_drivers_rebuild_it_t103_t105_th051() {
        let of = |cores| Places::of(&CgroupMode::V2, Path::new("/sys/fs/cgroup"), &name(), cores).unwrap();
        let scope = |slice| {
            PathBuf::from(format!(
                "/sys/fs/cgroup/nomad.slice/{slice}.slice/1d7e2ab0-0000-4000-8000-0123456789ab.web.scope"
            ))
        };
        assert_eq!(of(Cores::Shared).own, [scope("share")]);
        assert_eq!(of(Cores::of_list("0,1")).cpuset_cgroup, scope("reserve"));
    }

    #[test]
    fn in_version_1_three_controllers_have_the_group_and_only_cores_make_one_in_cpuset_t103_t105_t109() {
        let of = |cores| Places::of(&CgroupMode::V1, Path::new("/sys/fs/cgroup"), &name(), cores).unwrap();
        let group = |below: &str| {
            PathBuf::from(format!("/sys/fs/cgroup/{below}/1d7e2ab0-0000-4000-8000-0123456789ab.web"))
        };
        let three = ["freezer/nomad", "memory/nomad", "cpu/nomad"].map(group);
        assert_eq!(of(Cores::Shared).own, three);
        assert_eq!(of(Cores::Shared).cpuset_cgroup, Path::new("/sys/fs/cgroup/cpuset/nomad/share"));
        let reserved = of(Cores::Reserved);
        assert_eq!(reserved.cpuset_cgroup, group("cpuset/nomad/reserve"));
        assert_eq!(reserved.own.last(), Some(&reserved.cpuset_cgroup));
    }

    #[test]
    fn without_control_groups_there_is_no_place_and_an_overlong_name_is_refused() {
        let none = CgroupMode::None { reason: String::new() };
        assert_eq!(Places::of(&none, Path::new("/"), &name(), Cores::Shared), None);
        let long = TaskName::new("n".repeat(220)).unwrap();
        let refused = GroupName::new(&AllocationId::new("a".repeat(36)).unwrap(), &long).unwrap_err();
        assert!(refused.contains("263 bytes") && refused.contains("shorter name"), "{refused}");
    }
}
