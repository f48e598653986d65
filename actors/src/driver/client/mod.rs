//! The typed client of a driver: every question of its service, with domain types on our side (D103 to D112).

mod error;

mod handle;

mod task;

pub use error::{Asked, DriverError, DriverRpc, RefusalCode};
pub use handle::{HANDLE_BYTES_MAX, MalformedHandle, TaskHandle};
pub use task::*;
