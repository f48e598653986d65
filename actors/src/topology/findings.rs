//! The facts about CPUs in the files of a machine, each of which may be missing.

use std::collections::BTreeMap;

use super::cpu_list::CpuList;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Findings {
    /// The online CPUs (`/sys/devices/system/cpu/online`).
    pub(super) online: Option<CpuList>,
    /// The CPUs with a directory, with its content.
    pub(super) cpus: BTreeMap<u32, CpuFinding>,
    /// The online memory nodes (`/sys/devices/system/node/online`).
    pub(super) nodes_online: Option<CpuList>,
    /// The memory nodes with a directory, with its content.
    pub(super) nodes: BTreeMap<u32, NodeFinding>,
    /// The efficiency cores of a hybrid machine, as the kernel lists them (`/sys/devices/cpu_atom/cpus`).
    pub(super) sparing: Option<CpuList>,
    /// The CPUs of `/proc/cpuinfo`, each with its speed in MHz if given.
    pub(super) cpuinfo: BTreeMap<u32, Option<u64>>,
    /// The CPUs that this process may use (`Cpus_allowed_list` of `/proc/self/status`): affinity and cpuset together.
    pub(super) allowed: Option<CpuList>,
}

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

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NodeFinding {
    pub(super) cpus: Option<CpuList>,
    /// `distance`: to each online node, in their order.
    pub(super) distances: Option<Vec<u32>>,
}
