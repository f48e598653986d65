//! What the files of a machine say of its processors, each of which may be silent.

use std::collections::BTreeMap;

use super::cpu_list::CpuList;

/// What was found below a root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Findings {
    /// The processors that are online (`/sys/devices/system/cpu/online`).
    pub(super) online: Option<CpuList>,
    /// The processors of which there is a directory, with what it says.
    pub(super) cpus: BTreeMap<u32, CpuFinding>,
    /// The memory nodes that are online (`/sys/devices/system/node/online`).
    pub(super) nodes_online: Option<CpuList>,
    /// The memory nodes of which there is a directory, with what it says.
    pub(super) nodes: BTreeMap<u32, NodeFinding>,
    /// The processors that the kernel counts as sparing ones of a machine with two kinds (`/sys/devices/cpu_atom/cpus`).
    pub(super) sparing: Option<CpuList>,
    /// The processors of `/proc/cpuinfo`, each with its speed in MHz if that stands there.
    pub(super) cpuinfo: BTreeMap<u32, Option<u64>>,
    /// The processors that this process may use (`Cpus_allowed_list` of `/proc/self/status`): affinity and cpuset together.
    pub(super) allowed: Option<CpuList>,
}

/// What the directory of a processor says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CpuFinding {
    /// `topology/physical_package_id`.
    pub(super) package: Option<u32>,
    /// `topology/thread_siblings_list`.
    pub(super) siblings: Option<CpuList>,
    /// Whether `cpufreq/scaling_driver` is `acpi-cpufreq`.
    pub(super) is_acpi: bool,
    /// `acpi_cppc/nominal_freq`, in MHz.
    pub(super) nominal_mhz: Option<u64>,
    /// `cpufreq/base_frequency`, in kHz.
    pub(super) base_khz: Option<u64>,
    /// `cpufreq/cpuinfo_max_freq`, in kHz.
    pub(super) max_khz: Option<u64>,
}

/// What the directory of a memory node says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NodeFinding {
    /// `cpulist`.
    pub(super) cpus: Option<CpuList>,
    /// `distance`: to each node that is online, in their order.
    pub(super) distances: Option<Vec<u32>>,
}
