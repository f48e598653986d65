//! The facts about CPUs in the files of a machine, each of which may be missing.

use std::collections::BTreeMap;

use super::cpu_list::CpuList;

/// The known facts about the processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// The online CPUs (`/sys/devices/system/cpu/online`).
    pub online: Option<CpuList>,
    /// The CPUs with a directory, with its content.
    pub cpus: BTreeMap<u32, CpuFinding>,
    /// The online memory nodes (`/sys/devices/system/node/online`).
    pub nodes_online: Option<CpuList>,
    /// The memory nodes with a directory, with its content.
    pub nodes: BTreeMap<u32, NodeFinding>,
    /// The efficiency cores of a hybrid machine, as the kernel lists them (`/sys/devices/cpu_atom/cpus`).
    pub sparing: Option<CpuList>,
    /// The CPUs of `/proc/cpuinfo`, each with its speed in MHz if given.
    pub cpuinfo: BTreeMap<u32, Option<u64>>,
    /// The CPUs that this process may use (`Cpus_allowed_list` of `/proc/self/status`): affinity and cpuset together.
    pub allowed: Option<CpuList>,
}

/// The known facts about one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuFinding {
    /// `topology/physical_package_id`.
    pub package: Option<u32>,
    /// `topology/thread_siblings_list`.
    pub siblings: Option<CpuList>,
    /// Whether `cpufreq/scaling_driver` is `acpi-cpufreq`.
    pub is_acpi: bool,
    /// `acpi_cppc/nominal_freq`, in MHz.
    pub nominal_mhz: Option<u64>,
    /// `cpufreq/base_frequency`, in kHz.
    pub base_khz: Option<u64>,
    /// `cpufreq/cpuinfo_max_freq`, in kHz.
    pub max_khz: Option<u64>,
}

/// The known facts about one memory node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeFinding {
    /// `cpulist`.
    pub cpus: Option<CpuList>,
    /// `distance`: to each online node, in their order.
    pub distances: Option<Vec<u32>>,
}
