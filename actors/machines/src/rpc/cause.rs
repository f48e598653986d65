//! The causes of failed calls to a plugin, with precise messages (LOG-05).

use std::fmt;

use super::code::Code;
use super::fault::Fault;

/// How to handle an error (table C.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The plugin refused, and a retry would get the same answer.
    Final,
    /// It is unknown whether the call took effect: treat it as maybe done, and retry with backoff.
    Unclear,
    /// No file is at the path of the socket: normal while a plugin starts.
    Absent,
    /// A socket exists without a listener: a dead process left it, or a live process does not listen yet (REG-10).
    Refused,
    /// A process listens and accepts too slowly.
    Busy,
    /// We have no permission; waiting does not help (SEC-03).
    Denied,
    /// The file at the path is not a socket, or not the plugin's; waiting does not help.
    NotASocket,
    /// Our own deadline expired. The call may still take effect.
    DeadlineExceeded,
    /// The connection was lost, most often since the plugin died. Dial again.
    Disconnected,
    /// The plugin does not implement this call (C019).
    Unimplemented,
    /// The answer breaks a rule of the specification (C011).
    Fault,
}

impl Class {
    /// Whether a retry after a pause may succeed without a repair.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        match self {
            Self::Unclear
            | Self::Absent
            | Self::Refused
            | Self::Busy
            | Self::DeadlineExceeded
            | Self::Disconnected => true,
            Self::Final | Self::Denied | Self::NotASocket | Self::Unimplemented | Self::Fault => false,
        }
    }
}

/// The owner and mode of a file that we may not access (SEC-03).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The file or directory that denies access: the socket itself, or the first directory that we may not search.
    pub path: String,
    /// User id of its owner.
    pub owner_uid: u32,
    /// Group id of its owner.
    pub owner_gid: u32,
    /// Its permission bits.
    pub mode: u32,
    /// Our own effective user id.
    pub our_uid: u32,
    /// Our own effective group id.
    pub our_gid: u32,
}

/// The precise cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// No file is at the path.
    Absent,
    /// Another file type is at the path.
    NotASocket {
        /// Its type: `a directory`, `a regular file`.
        what: &'static str,
    },
    /// A link is at the path: it may lead to the socket of another plugin, and elsewhere at any moment.
    Link {
        /// The target of the link, as [`crate::vocabulary::text::quoted`].
        to: String,
    },
    /// The socket file of an open connection is gone, or is another file: a client that connects reaches another process, or none.
    SocketLost {
        /// The object in its place.
        found: &'static str,
    },
    /// Permission was denied; final until an operator changes owner or mode.
    Denied(Denial),
    /// The socket exists and has no listener.
    Refused,
    /// The accept queue is full.
    Busy,
    /// Another error of the operating system, for instance too many open files.
    System {
        /// The error.
        detail: String,
    },
    /// Our own deadline expired first; see [`CallError::deadline`](super::CallError::deadline).
    DeadlineExceeded,
    /// The connection was lost before an answer came.
    Disconnected {
        /// The error of the transport.
        detail: String,
    },
    /// We closed the connection, since the plugin exceeded one of its limits.
    CutOff {
        /// The plugin's action, and the remedy.
        detail: String,
    },
    /// The listener is not the plugin, or cannot be proven to be it. Nothing was sent to it.
    Stranger {
        /// The actual listener, and the remedy.
        detail: String,
    },
    /// The plugin answered with an error.
    Status {
        /// Its code.
        code: Code,
        /// Its message, truncated and escaped (see [`crate::vocabulary::text::quoted`]); may be empty.
        message: String,
    },
    /// The plugin's answer breaks a rule.
    Fault(Fault),
}

impl Cause {
    /// How to handle it.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Absent => Class::Absent,
            Self::NotASocket { .. } | Self::Link { .. } | Self::Stranger { .. } => Class::NotASocket,
            Self::Denied(_) => Class::Denied,
            Self::Refused => Class::Refused,
            Self::Busy => Class::Busy,
            Self::System { .. } => Class::Unclear,
            Self::DeadlineExceeded => Class::DeadlineExceeded,
            Self::Disconnected { .. } | Self::CutOff { .. } | Self::SocketLost { .. } => Class::Disconnected,
            Self::Status { code, .. } => code.class(),
            Self::Fault(_) => Class::Fault,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str(
                "no socket is there (file absent); the plugin has not created it yet, or listens elsewhere",
            ),
            Self::NotASocket { what } => {
                write!(f, "{what} is there, not a socket; check the endpoint that the plugin was given")
            }
            Self::Link { to } => write!(
                f,
                "a link to {to} is there, not a socket; give the plugin the path of the socket itself"
            ),
            Self::SocketLost { found } => write!(
                f,
                "the connection is given up, {found} in the place of its socket; the plugin or another process removed it"
            ),
            Self::Stranger { detail } => f.write_str(detail),
            Self::Denied(denial) => denial.fmt(f),
            Self::Refused => f.write_str(
                "connection refused, no process listens on the socket; a dead process left it, start the plugin again",
            ),
            Self::Busy => f.write_str(
                "busy, its queue of waiting connections is full; the plugin lives but does not accept",
            ),
            Self::System { detail } => write!(f, "the operating system refused: {detail}"),
            Self::DeadlineExceeded => f.write_str("our own deadline was exceeded"),
            Self::Disconnected { detail } => {
                write!(f, "disconnected before an answer came ({detail}); the plugin died or hung up, dial again")
            }
            Self::CutOff { detail } => write!(f, "the connection was cut off: {detail}"),
            Self::Status { code, message } if message.is_empty() => {
                write!(f, "the plugin answered {code} and no more; {}", code.hint())
            }
            Self::Status { code, message } => {
                write!(f, "the plugin answered {code} \"{message}\"; {}", code.hint())
            }
            Self::Fault(fault) => write!(f, "faulty answer, {fault}; report it to the plugin's vendor"),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, owner_uid, owner_gid, mode, our_uid, our_gid } = self;
        write!(
            f,
            "permission denied by {path}, which belongs to {owner_uid}:{owner_gid} with mode {mode:04o}; \
             we are {our_uid}:{our_gid}, give us the right to search its directories and to write to the socket"
        )
    }
}
