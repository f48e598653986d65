//! Defines the resources that a task requests from its machine.

mod ask;

pub use ask::{CpuAsk, DEFAULT_CPU_MHZ, DEFAULT_MEMORY_MIB, MemoryMax, ResourceAsk};
