//! The resources that a task requests.

use crate::topology::CpuList;

/// The default CPU share of a task, in MHz (T090).
pub const DEFAULT_CPU_MHZ: u64 = 100;
/// The default memory of a task, in MiB (T090).
pub const DEFAULT_MEMORY_MIB: u64 = 300;

/// The resources that a task requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceAsk {
    /// The CPU.
    pub cpu: CpuAsk,
    /// The guaranteed memory, in MiB.
    pub memory_mib: u64,
    /// The memory limit while there is enough.
    pub memory_max: MemoryMax,
}

/// The CPU that a task requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuAsk {
    /// A share, in MHz, on any core that is not reserved.
    Mhz(u64),
    /// These reserved cores. The host must ensure that no other task has them.
    Cores(CpuList),
}

/// The memory limit of a task while there is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryMax {
    /// The guaranteed memory.
    Promised,
    /// This limit, in MiB.
    Mib(u64),
    /// No limit.
    Unlimited,
}

impl Default for ResourceAsk {
    /// The defaults: 100 MHz, 300 MiB.
    fn default() -> Self {
        Self {
            cpu: CpuAsk::Mhz(DEFAULT_CPU_MHZ),
            memory_mib: DEFAULT_MEMORY_MIB,
            memory_max: MemoryMax::Promised,
        }
    }
}

impl MemoryMax {
    /// The value on the wire: 0 for the guaranteed memory, -1 for no limit (T090, T092).
    #[must_use]
    pub fn mib(self) -> i64 {
        match self {
            Self::Promised => 0,
            Self::Mib(mib) => i64::try_from(mib).unwrap_or(i64::MAX),
            Self::Unlimited => -1,
        }
    }
}
