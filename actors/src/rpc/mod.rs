//! The common part of all connections to plugins: a channel that ends with its stream, and error classification. The display
//! of plugin text is in [`crate::vocabulary::text`].
//!
//! A module, not an actor. The calls and their limits are in `csi` and `goplugin`; the caller decides how to react to an
//! error.
//!
//! ```text
//!  SocketFile, connect --> Channel --call--> Status --cause--> Cause --> Class
//!                                                                |
//!                                          CallError { step, endpoint, deadline, cause }
//! ```

mod call_error;
mod cause;
mod code;
mod fault;

mod channel;
mod socket;
mod status;

pub use call_error::CallError;
pub use cause::{Cause, Class, Denial};
pub use channel::{Channel, ChannelError};
pub(crate) use channel::{
    asked, connect_to_port, connect_to_proven_port, connect_to_proven_socket, connect_to_socket,
};
pub use code::Code;
pub use fault::{Fault, Problem};
pub use socket::{Listener, SocketFile};
pub(crate) use status::cause;
