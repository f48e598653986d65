//! Resource usage of tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::vocabulary::Timestamp;

/// The resource usage of a task at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStats {
    /// The task.
    pub id: String,
    /// When this was measured, by the driver's clock.
    pub at: Option<Timestamp>,
    /// The usage of all its processes together.
    pub total: Usage,
    /// Each process, by its id.
    pub by_pid: BTreeMap<String, Usage>,
}

/// The resource usage of a task or process. A field is `None` if it was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Processor time.
    pub cpu: CpuUsage,
    /// Memory.
    pub memory: MemoryUsage,
}

/// Processor time in use. A field is `None` if it was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CpuUsage {
    /// Percent of one processor, in the kernel.
    pub system_percent: Option<f64>,
    /// Percent of one processor, outside of the kernel.
    pub user_percent: Option<f64>,
    /// Ticks of a processor, in the host's units.
    pub total_ticks: Option<f64>,
    /// The number of periods in which it was throttled.
    pub throttled_periods: Option<u64>,
    /// The total time for which it was throttled.
    pub throttled: Option<Duration>,
    /// Percent of one processor in all.
    pub percent: Option<f64>,
}

/// Memory in use, in bytes. What was not measured is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryUsage {
    /// Resident.
    pub rss: Option<u64>,
    /// Cache of files.
    pub cache: Option<u64>,
    /// In swap.
    pub swap: Option<u64>,
    /// In use in all.
    pub usage: Option<u64>,
    /// The maximum in use so far.
    pub max_usage: Option<u64>,
    /// Used by the kernel.
    pub kernel_usage: Option<u64>,
    /// The maximum used by the kernel so far.
    pub kernel_max_usage: Option<u64>,
}
