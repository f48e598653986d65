//! Calls to a CSI plugin, their checked answers and their errors: plain data, so that machines can express calls and outcomes.
//!
//! The client that makes these calls is `callboard_actors::csi`.

mod rpc;

mod limits;

mod error;

mod continuity;

pub use crate::rpc::{Cause, Class, Code, Denial, Fault, Problem, SocketFile};
pub use crate::vocabulary::text::{TEXT_BYTES_MAX, quoted};
pub use continuity::{check_same_plugin, check_same_provider};
pub use error::{CallError, Step};
pub use limits::Limits;
pub use rpc::{Answer, Readiness, Rpc};
