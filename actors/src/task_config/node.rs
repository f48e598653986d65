//! What a task's configuration is filled in from, besides the task.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cgroups::{CgroupMode, TaskCgroups};
use crate::topology::{Topology, machine_memory_mib};

/// The machine and the node that tasks run on.
#[derive(Debug, Clone)]
pub struct TaskNode {
    /// The processors.
    pub topology: Arc<Topology>,
    /// The memory of the machine, in MiB; `None` if it is not known, and then nothing is checked against it.
    pub memory_mib: Option<u64>,
    /// Which control groups there are. Where there are none a task has the path of version 2 all the same, as a name (TH051).
    pub cgroups: CgroupMode,
    /// Where control groups are mounted.
    pub cgroup_root: PathBuf,
    /// Where tasks of drivers with isolation by unveil find their directories (T048).
    pub mounts_root: PathBuf,
    /// The name of the node.
    pub name: String,
    /// The id of the node.
    pub id: String,
    /// The region it is in (`NOMAD_REGION`).
    pub region: String,
    /// The data centre it is in (`NOMAD_DC`).
    pub datacenter: String,
}

impl TaskNode {
    /// The machine that this runs on, with `global` and `dc1` as region and data centre, no name, and no directory for mounts.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let cgroups = TaskCgroups::of_this_machine();
        Self {
            topology: Topology::of_this_machine(),
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
