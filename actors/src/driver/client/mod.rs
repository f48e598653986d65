//! The typed client of a driver: all calls of its service, with domain types on our side (D103 to D112).

mod handle;

mod from_wire;
mod node_to_wire;
mod to_wire;

mod status;

mod line;

mod stats;

mod exec;

mod event_stream;

mod questions;

mod connections;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub(in crate::driver) use connections::OpenLine;
pub(in crate::driver) use from_wire::{capabilities, fingerprint};
pub(in crate::driver) use line::{Line, LineEnd};
pub(in crate::driver) use node_to_wire::node_to_wire;
pub(in crate::driver) use status::Failure;

pub use callboard_machines::driver::{
    Asked, CpuUsage, CreatedNetwork, DnsConfig, DriverError, DriverRpc, EventBatch, ExecOutcome,
    LinuxResources, MalformedTaskId, MemoryUsage, NetworkIsolation, NetworkOverride, PortMapping, Resources,
    ServingProcess, TASK_ID_BYTES_MAX, TaskConfig, TaskDevice, TaskEnd, TaskExit, TaskId, TaskMount,
    TaskOrigin, TaskState, TaskStats, TaskStatus, Usage,
};
pub use connections::DriverConnections;
pub use event_stream::EventStream;
pub use exec::{ExecInput, ExecOutput, ExecSession, InputRefused};
pub use handle::{HANDLE_BYTES_MAX, MalformedHandle, StartOutcome, TaskHandle};
pub use questions::DriverClient;
pub use stats::TaskStatsStream;
