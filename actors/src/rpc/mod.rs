//! What is the same in every conversation with a plugin, whatever it speaks: a channel that ends with its stream, what can
//! go wrong. How a plugin's words are shown stands in [`crate::vocabulary::text`].
//!
//! A module, not an actor. What is said, and with which limits, is the matter of `csi` and `goplugin`; what to do about an
//! error is the matter of whoever called.
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
pub(crate) use channel::{
    asked, connect_to_port, connect_to_proven_port, connect_to_proven_socket, connect_to_socket,
};
pub use code::Code;
pub use fault::{Fault, Problem};
pub use socket::{Listener, SocketFile};
pub(crate) use status::cause;
