//! Completes both halves of a task's resources, as drivers need them (T090 to T094).

use std::path::PathBuf;

use super::error::TaskConfigError;
use super::node::TaskNode;
use super::{CpuAsk, DEFAULT_CPU_MHZ, MemoryMax, ResourceAsk};
use crate::cgroups::{CgroupMode, Cores, GroupName, Places};
use crate::driver::client::{LinuxResources, Resources, TaskConfig};
use crate::topology::{CpuList, Topology};

const MIB: i64 = 1_024 * 1_024;
/// The limit of memory that a task can request, in MiB, so that its number of bytes does not overflow.
const MEMORY_MIB_MAX: i64 = i64::MAX / MIB;
/// The suffix of a refusal if the CPU speed of the machine is unknown.
const GUESSED: &str = ", by a guess, as it does not tell its speed";

/// Fills in missing fields of a task's resources, and checks them against the machine.
pub(super) fn fill(
    task: &TaskConfig,
    ask: &ResourceAsk,
    node: &TaskNode,
) -> Result<Resources, TaskConfigError> {
    let mut resources = task.resources.clone().unwrap_or_default();
    let mut linux = resources.linux.take().unwrap_or_default();
    fill_cpu(&mut resources, &mut linux, ask, &node.topology)?;
    fill_memory(&mut resources, &mut linux, ask, node)?;
    if linux.cpuset_cgroup.is_empty() {
        linux.cpuset_cgroup = cpuset_cgroup(task, &linux.cpuset_cpus, node)?;
    }
    resources.linux = Some(linux);
    Ok(resources)
}

fn fill_cpu(
    resources: &mut Resources,
    linux: &mut LinuxResources,
    ask: &ResourceAsk,
    topology: &Topology,
) -> Result<(), TaskConfigError> {
    if let (true, CpuAsk::Cores(cores)) = (linux.cpuset_cpus.is_empty(), &ask.cpu) {
        linux.cpuset_cpus = cores.to_string();
    }
    let cores = cores(&linux.cpuset_cpus, topology)?;
    if resources.cpu_shares == 0 {
        let mhz = match &ask.cpu {
            _ if !cores.is_empty() => cores.iter().filter_map(|core| topology.core_mhz(core)).sum(),
            CpuAsk::Mhz(mhz) => *mhz,
            CpuAsk::Cores(_) => DEFAULT_CPU_MHZ,
        };
        resources.cpu_shares = i64::try_from(mhz).unwrap_or(i64::MAX);
    }
    let mhz = positive("cpu_shares", resources.cpu_shares)?;
    let usable = topology.usable_mhz();
    // Reserved cores count fully, even if a part of the machine is withheld.
    if mhz > usable && cores.is_empty() {
        let hint = if topology.is_guessed() { GUESSED } else { "" };
        return Err(TaskConfigError::TooMuch {
            what: "cpu",
            unit: "MHz",
            asked: mhz,
            available: usable,
            hint,
        });
    }
    if linux.cpu_shares == 0 {
        linux.cpu_shares = resources.cpu_shares;
    }
    positive("linux cpu_shares", linux.cpu_shares)?;
    if linux.percent_ticks == 0.0 {
        linux.percent_ticks = (mhz as f64 / usable as f64).min(1.0);
    }
    if linux.percent_ticks > 0.0 && linux.percent_ticks <= 1.0 {
        return Ok(());
    }
    let (value, expected) = (linux.percent_ticks.to_string(), "a part above 0 and up to 1");
    Err(TaskConfigError::Resource { field: "percent_ticks", value, expected })
}

/// The cores of such a list, all of which tasks may use.
fn cores(list: &str, topology: &Topology) -> Result<CpuList, TaskConfigError> {
    let usable = topology.enabled_cores();
    let read = CpuList::parse(list).ok().filter(|cores| cores.iter().all(|core| usable.contains(core)));
    read.ok_or_else(|| TaskConfigError::Cores { asked: list.chars().take(64).collect(), usable })
}

fn fill_memory(
    resources: &mut Resources,
    linux: &mut LinuxResources,
    ask: &ResourceAsk,
    node: &TaskNode,
) -> Result<(), TaskConfigError> {
    if resources.memory_mib == 0 {
        resources.memory_mib = i64::try_from(ask.memory_mib).unwrap_or(i64::MAX);
        // A limit of the host refers to its own guaranteed memory.
        if resources.memory_max_mib == 0 {
            resources.memory_max_mib = ask.memory_max.mib();
        }
    }
    let (memory, max) = (resources.memory_mib, resources.memory_max_mib);
    let promised = positive("memory", memory)?;
    let is_meant = [MemoryMax::Promised.mib(), MemoryMax::Unlimited.mib()].contains(&max);
    if !is_meant && max < memory {
        return Err(TaskConfigError::MemoryMax { memory, max });
    }
    for (what, asked) in [("memory", promised), ("memory_max", u64::try_from(max).unwrap_or(0))] {
        if let Some(available) = node.memory_mib.filter(|available| asked > *available) {
            return Err(TaskConfigError::TooMuch { what, unit: "MiB", asked, available, hint: "" });
        }
    }
    let most = memory.max(max);
    if most > MEMORY_MIB_MAX {
        let expected = "a number of MiB whose bytes fit into 64 bits";
        return Err(TaskConfigError::Resource { field: "memory", value: most.to_string(), expected });
    }
    if linux.memory_limit_bytes == 0 {
        linux.memory_limit_bytes = most * MIB;
    }
    positive("memory_limit_bytes", linux.memory_limit_bytes).map(|_| ())
}

/// The path of the task's cgroup: a name that drivers expect, even if the host creates none (T105, TH051).
fn cpuset_cgroup(task: &TaskConfig, cpuset_cpus: &str, node: &TaskNode) -> Result<String, TaskConfigError> {
    let name = GroupName::new(&task.allocation, &task.name).map_err(|_| TaskConfigError::Resource {
        field: "cpuset_cgroup",
        value: format!("{}.{}", task.allocation, task.name),
        expected: "shorter names to the allocation and the task",
    })?;
    let mode = match &node.cgroups {
        CgroupMode::None { .. } => &CgroupMode::V2,
        mode @ (CgroupMode::V1 | CgroupMode::V2) => mode,
    };
    let places = Places::of(mode, &node.cgroup_root, &name, Cores::of_list(cpuset_cpus));
    let path = places.map_or_else(PathBuf::new, |places| places.cpuset_cgroup);
    Ok(path.to_string_lossy().into_owned())
}

fn positive(field: &'static str, value: i64) -> Result<u64, TaskConfigError> {
    match u64::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        Ok(_) | Err(_) => {
            let (value, expected) = (value.to_string(), "a number above 0");
            Err(TaskConfigError::Resource { field, value, expected })
        }
    }
}
