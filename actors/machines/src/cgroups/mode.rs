//! Decides which cgroup version tasks use on this machine, from the mount table and a few facts (T100, TH050).

use std::fmt;
use std::path::Path;

use crate::mounts::MountTable;

/// The controllers that version 2 must have (T100).
pub const V2_CONTROLLERS: [&str; 5] = ["cpuset", "cpu", "io", "memory", "pids"];
/// The version 1 hierarchies in which tasks have cgroups (T102).
pub const V1_CONTROLLERS: [&str; 4] = ["freezer", "memory", "cpu", "cpuset"];

/// The cgroup version of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupMode {
    /// The unified hierarchy (version 2), to which this process may write.
    V2,
    /// One hierarchy per controller (version 1), as root.
    V1,
    /// No cgroups. Drivers that find a hierarchy by themselves may still create their own.
    None {
        /// The reason, and the remedy.
        reason: String,
    },
}

impl CgroupMode {
    /// The mode as a word: `v2`, `v1` or `none`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V1 => "v1",
            Self::None { .. } => "none",
        }
    }
}

impl fmt::Display for CgroupMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V2 | Self::V1 => f.write_str(self.word()),
            Self::None { reason } => write!(f, "none ({reason})"),
        }
    }
}

/// Facts beside the mount table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether this process is root.
    pub is_root: bool,
    /// The content of `cgroup.controllers` at the root; empty if there is none.
    pub controllers: String,
    /// Whether `nomad.slice` exists and this process may write to it.
    pub owns_slice: bool,
}

/// Decides. `mounts` is the text of `/proc/self/mountinfo`, `root` the directory that drivers use: `/sys/fs/cgroup`.
///
/// A machine with both versions (version 1 below a tmpfs, version 2 beside it) counts as version 1, as for drivers.
#[must_use]
pub fn decide(mounts: &str, root: &Path, facts: &Facts) -> CgroupMode {
    let none = |reason: String| CgroupMode::None { reason };
    let table = match MountTable::parse(mounts.as_bytes()) {
        Ok(table) => table,
        Err(error) => return none(error.to_string()),
    };
    let Some(mount) = table.mounted_at(root) else {
        return none(format!("nothing is mounted on {}", root.display()));
    };
    match mount.fs_type.as_str() {
        "cgroup2" if mount.is_mounted_read_only() && !facts.owns_slice => {
            none(format!("{} is mounted read-only", root.display()))
        }
        "cgroup2" => version_2(root, facts),
        "tmpfs" if facts.is_root => CgroupMode::V1,
        "tmpfs" => {
            none("control groups of version 1 are made by root only, and this process is not root".into())
        }
        kind => none(format!("{} is a {kind}, and neither cgroup2 nor tmpfs", root.display())),
    }
}

fn version_2(root: &Path, facts: &Facts) -> CgroupMode {
    let has = |wanted: &&str| facts.controllers.split_whitespace().any(|controller| controller == *wanted);
    let missing: Vec<&str> = V2_CONTROLLERS.into_iter().filter(|wanted| !has(wanted)).collect();
    if !missing.is_empty() {
        let (missing, root) = (missing.join(", "), root.display());
        return CgroupMode::None { reason: format!("{root} lacks the controllers {missing}") };
    }
    if facts.is_root || facts.owns_slice {
        return CgroupMode::V2;
    }
    let slice = root.join("nomad.slice");
    let reason = format!("this process is not root, and {} is not delegated to it", slice.display());
    CgroupMode::None { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "25 30 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V2_READ_ONLY: &str = "25 30 0:22 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
    const HYBRID: &str = "28 25 0:24 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                          29 28 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
                          30 28 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
    const ALL: &str = "cpuset cpu io memory hugetlb pids rdma\n";

    fn facts(is_root: bool, controllers: &str, owns_slice: bool) -> Facts {
        Facts { is_root, controllers: controllers.to_owned(), owns_slice }
    }

    fn decided(mounts: &str, facts: &Facts) -> CgroupMode {
        decide(mounts, Path::new("/sys/fs/cgroup"), facts)
    }

    fn reason(mode: CgroupMode) -> String {
        match mode {
            CgroupMode::None { reason } => reason,
            other => panic!("there are control groups: {other}"),
        }
    }

    #[test]
    fn the_unified_hierarchy_counts_with_its_five_controllers_t100() {
        assert_eq!(decided(V2, &facts(true, ALL, false)), CgroupMode::V2);
        let few = reason(decided(V2, &facts(true, "cpuset cpu io", false)));
        assert!(few.contains("memory, pids"), "{few}");
        assert!(reason(decided(V2, &facts(true, "", false))).contains("cpuset, cpu, io, memory, pids"));
    }

    #[test]
    fn without_root_the_slice_has_to_be_delegated_t100() {
        assert_eq!(decided(V2, &facts(false, ALL, true)), CgroupMode::V2);
        let refused = reason(decided(V2, &facts(false, ALL, false)));
        assert!(refused.contains("/sys/fs/cgroup/nomad.slice is not delegated"), "{refused}");
    }

    #[test]
    fn a_machine_with_both_versions_counts_as_version_1_and_only_for_root_t100() {
        assert_eq!(decided(HYBRID, &facts(true, "", false)), CgroupMode::V1);
        assert!(reason(decided(HYBRID, &facts(false, ALL, true))).contains("not root"));
    }

    #[test]
    fn a_container_without_control_groups_has_none_and_is_told_why_th050() {
        assert!(reason(decided("", &facts(true, ALL, false))).contains("nothing is mounted"));
        assert!(reason(decided(V2_READ_ONLY, &facts(true, ALL, false))).contains("read-only"));
        let odd = "25 30 0:22 / /sys/fs/cgroup rw - overlay overlay rw\n";
        assert!(reason(decided(odd, &facts(true, ALL, false))).contains("is a overlay"));
    }

    #[test]
    fn of_two_mounts_on_one_place_the_upper_one_counts_t100() {
        let over = format!("{HYBRID}40 28 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(decided(&over, &facts(true, ALL, false)), CgroupMode::V2);
    }
}
