//! The errors of calls to plugins, and how to handle each: plain data, for machines that express calls and their outcomes.
//!
//! ```text
//!  a failed call --> Cause --> Class
//!                      |
//!   CallError { step, endpoint, deadline, cause }
//! ```

mod call_error;
mod cause;
mod code;
mod fault;
mod socket;

pub use call_error::CallError;
pub use cause::{Cause, Class, Denial};
pub use code::Code;
pub use fault::{Fault, Problem};
pub use socket::{Listener, SocketFile};
