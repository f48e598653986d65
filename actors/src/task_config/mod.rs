//! Completes a task's configuration so that external drivers can start it, and refuses contradictions.
//!
//! ```text
//!  TaskConfig, as filled in ────────┐
//!    by the host                     │ TaskConfigBuilder ──► TaskConfig that every driver accepts (TH001)
//!  ResourceAsk: MHz, cores, memory ─┤   fills in missing fields, overrides none,
//!  TaskNode: machine and node ──────┤   refuses contradictions and missing resources (TH002)
//!  DriverCapabilities ──────────────┘   follows what the driver can do (TH003)
//! ```
//!
//! Drivers fail on missing fields that their protocol does not declare as required: either half of the resources (T090,
//! T091), the three directories in the environment (T080), the task's name as the name of a directory (T043). This is
//! optional: a host may fill a [`TaskConfig`](crate::driver::client::TaskConfig) itself. Everything is a pure function;
//! nothing is created on disk.
//!
//! ```
//! use callboard_actors::driver::client::{TaskConfig, TaskId};
//! use callboard_actors::driver::{DriverCapabilities, FsIsolation, MountSupport, NetworkMode};
//! use callboard_actors::task_config::{CpuAsk, ResourceAsk, TaskConfigBuilder, TaskNode};
//! use callboard_actors::vocabulary::{AllocationId, TaskName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let allocation = AllocationId::new("5e0c0ad9-6a4e-4f3a-9d27-7e0b1c6f1f10")?;
//! let name = TaskName::new("web")?;
//! let id = TaskId::new(format!("{allocation}/{name}/1a2b3c4d"))?;
//! let task = TaskConfig {
//!     allocation_dir: format!("/var/lib/agent/alloc/{allocation}").into(),
//!     stdout_path: format!("/var/lib/agent/alloc/{allocation}/alloc/logs/.web.stdout.fifo").into(),
//!     stderr_path: format!("/var/lib/agent/alloc/{allocation}/alloc/logs/.web.stderr.fifo").into(),
//!     ..TaskConfig::new(id, allocation, name, vec![0x80])
//! };
//! // As returned by `DriverClient::capabilities`.
//! let capabilities = DriverCapabilities {
//!     send_signals: true,
//!     exec: true,
//!     fs_isolation: FsIsolation::None,
//!     network_modes: vec![NetworkMode::Host],
//!     must_create_network: false,
//!     mounts: MountSupport::None,
//!     disable_log_collection: false,
//!     dynamic_workload_users: false,
//! };
//! let task = TaskConfigBuilder::new(task, &TaskNode::of_this_machine(), &capabilities)
//!     .resources(ResourceAsk { cpu: CpuAsk::Mhz(50), memory_mib: 64, ..ResourceAsk::default() })
//!     .build()?;
//! let resources = task.resources.as_ref().and_then(|resources| resources.linux.as_ref());
//! assert_eq!(resources.map(|linux| linux.memory_limit_bytes), Some(64 << 20));
//! assert!(task.environment["NOMAD_TASK_DIR"].ends_with("/web/local"));
//! # Ok(())
//! # }
//! ```

mod builder;
mod capabilities;
mod environment;
mod error;
mod node;
mod resources;

#[cfg(test)]
mod tests;

pub use builder::TaskConfigBuilder;
pub use callboard_machines::task_config::{
    CpuAsk, DEFAULT_CPU_MHZ, DEFAULT_MEMORY_MIB, MemoryMax, ResourceAsk,
};
pub use capabilities::{LogWay, log_way};
pub use environment::{HOST_VARIABLES, inherited, is_never_inherited};
pub use error::TaskConfigError;
pub use node::TaskNode;
