//! The facts about machine and node that complete a task's configuration.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cgroups::{CgroupMode, TaskCgroups};
use crate::topology::{self, Topology, machine_memory_mib};

/// The machine and the node of a task.
#[derive(Debug, Clone)]
pub struct TaskNode {
    /// Its CPUs.
    pub topology: Arc<Topology>,
    /// The memory of the machine, in MiB; `None` if unknown, and then nothing is checked against it.
    pub memory_mib: Option<u64>,
    /// The cgroup version. Without cgroups a task still has the path of version 2, as a name (TH051).
    pub cgroups: CgroupMode,
    /// The mount point of cgroups.
    pub cgroup_root: PathBuf,
    /// The directory below which tasks of drivers with `unveil` isolation find their directories (T048).
    pub mounts_root: PathBuf,
    /// The name of the node.
    pub name: String,
    /// The id of the node.
    pub id: String,
    /// Its region (`NOMAD_REGION`).
    pub region: String,
    /// Its data centre (`NOMAD_DC`).
    pub datacenter: String,
}

impl TaskNode {
    /// The present machine, with `global` and `dc1` as region and data centre, no name, and no directory for mounts.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let cgroups = TaskCgroups::of_this_machine();
        Self {
            topology: topology::of_this_machine(),
            memory_mib: machine_memory_mib("/".as_ref()),
            cgroups: cgroups.mode().clone(),
            cgroup_root: cgroups.root().to_owned(),
            mounts_root: PathBuf::new(),
            name: String::new(),
            id: String::new(),
            region: "global".to_owned(),
            datacenter: "dc1".to_owned(),
        }
    }
}
