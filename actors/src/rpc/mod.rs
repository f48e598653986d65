//! The common part of all connections to plugins: a channel that ends with its stream, and error classification. The display
//! of plugin text is in [`crate::vocabulary::text`].
//!
//! A module, not an actor. The calls and their limits are in `csi` and `goplugin`; the caller decides how to react to an
//! error.
//!
//! ```text
//!  socket_file, connect --> Channel --call--> Status --cause--> Cause --> Class
//!                                                                |
//!                                          CallError { step, endpoint, deadline, cause }
//! ```

mod channel;
mod flood;
mod metered;
mod socket;
mod status;

pub use callboard_machines::rpc::{
    CallError, Cause, Class, Code, Denial, Fault, Listener, Problem, SocketFile,
};

pub use channel::{Channel, ChannelError};
pub(crate) use channel::{asked, connect_to_port, connect_to_proven_port, connect_to_socket};
pub use socket::socket_file;
pub(crate) use status::cause;
