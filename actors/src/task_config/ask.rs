//! What a task asks for.

use crate::topology::CpuList;

/// What a task has of the processors that asks for nothing, in MHz (T090).
pub const DEFAULT_CPU_MHZ: u64 = 100;
/// The memory that a task has that asks for nothing, in MiB (T090).
pub const DEFAULT_MEMORY_MIB: u64 = 300;

/// What a task asks for of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceAsk {
    /// Of the processors.
    pub cpu: CpuAsk,
    /// The memory that it is promised, in MiB.
    pub memory_mib: u64,
    /// The memory that it may use while there is enough.
    pub memory_max: MemoryMax,
}

/// What a task asks for of the processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuAsk {
    /// A share, in MHz, on any core that no task has for itself.
    Mhz(u64),
    /// These cores. That no other task has them is for the host to see to.
    Cores(CpuList),
}

/// The memory that a task may use while there is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryMax {
    /// No more than it is promised.
    Promised,
    /// So much, in MiB.
    Mib(u64),
    /// As much as there is.
    Unlimited,
}

impl Default for ResourceAsk {
    /// As a task has that says nothing: 100 MHz, 300 MiB.
    fn default() -> Self {
        Self {
            cpu: CpuAsk::Mhz(DEFAULT_CPU_MHZ),
            memory_mib: DEFAULT_MEMORY_MIB,
            memory_max: MemoryMax::Promised,
        }
    }
}

impl MemoryMax {
    /// As the wire has it: 0 for no more than promised, -1 for no limit (T090, T092).
    #[must_use]
    pub fn mib(self) -> i64 {
        match self {
            Self::Promised => 0,
            Self::Mib(mib) => i64::try_from(mib).unwrap_or(i64::MAX),
            Self::Unlimited => -1,
        }
    }
}
