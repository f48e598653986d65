//! What tasks use.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::vocabulary::Timestamp;

/// What a task uses, at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStats {
    /// Which one.
    pub id: String,
    /// When this was measured, by the driver's clock.
    pub at: Option<Timestamp>,
    /// All of it together.
    pub total: Usage,
    /// Each process, by its id.
    pub by_pid: BTreeMap<String, Usage>,
}

/// What something uses. What was not measured is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Processor time.
    pub cpu: CpuUsage,
    /// Memory.
    pub memory: MemoryUsage,
}

/// Processor time in use. What was not measured is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CpuUsage {
    /// Percent of one processor, in the kernel.
    pub system_percent: Option<f64>,
    /// Percent of one processor, outside of it.
    pub user_percent: Option<f64>,
    /// Ticks of a processor, by the host's count.
    pub total_ticks: Option<f64>,
    /// Periods in which it was held back.
    pub throttled_periods: Option<u64>,
    /// For how long in all it was held back.
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
    /// Most ever in use.
    pub max_usage: Option<u64>,
    /// The kernel's.
    pub kernel_usage: Option<u64>,
    /// Most ever of the kernel's.
    pub kernel_max_usage: Option<u64>,
}
