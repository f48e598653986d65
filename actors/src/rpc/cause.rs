//! What goes wrong between us and a plugin, told apart and told well (LOG-05).

use std::fmt;

use super::code::Code;
use super::fault::Fault;

/// How to treat an error, whatever exactly it was (table C.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The plugin said no, and the same call would get the same answer.
    Final,
    /// Nobody can say whether the call was carried out: treat it as maybe done, and repeat it with a growing pause.
    Unclear,
    /// Nothing is at the path of the socket: normal while a plugin starts.
    Absent,
    /// A socket is there and nobody listens: a dead process left it, or a live one has not begun to listen (REG-10).
    Refused,
    /// Somebody listens and accepts too slowly.
    Busy,
    /// The file system forbids it to us; waiting does not help (SEC-03).
    Denied,
    /// What is at the path is no socket, or not the plugin's; waiting does not help.
    NotASocket,
    /// Our own deadline ran out. The call may still be carried out.
    DeadlineExceeded,
    /// The connection broke off, most often since the plugin died. Dial again.
    Disconnected,
    /// The plugin does not have this call (C019).
    Unimplemented,
    /// The answer breaks a rule of the specification (C011).
    Fault,
}

impl Class {
    /// Whether the same thing, tried again after a while with nobody changing anything by hand, may succeed.
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

/// Who may use a file that we may not (SEC-03).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The file or directory that keeps us out: the socket itself, or the first directory that we may not search.
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

/// What exactly went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// There is no file at the path.
    Absent,
    /// There is something else at the path.
    NotASocket {
        /// What it is: `a directory`, `a regular file`.
        what: &'static str,
    },
    /// Permission was denied; final until somebody changes owner or mode.
    Denied(Denial),
    /// The socket exists and nobody listens on it.
    Refused,
    /// The queue of connections that wait to be accepted is full.
    Busy,
    /// The operating system refused for a reason of its own, for instance too many open files.
    System {
        /// What it said.
        detail: String,
    },
    /// Our own deadline ran out first; see [`CallError::deadline`](super::CallError::deadline).
    DeadlineExceeded,
    /// The connection broke off before an answer came.
    Disconnected {
        /// What the transport said.
        detail: String,
    },
    /// Somebody listens there who is not the plugin, or cannot be proven to be it. Nothing was said to him.
    Stranger {
        /// Who listens instead, and what to do.
        detail: String,
    },
    /// The plugin answered with an error.
    Status {
        /// Its code.
        code: Code,
        /// Its message, cut and escaped (see [`crate::vocabulary::text::quoted`]); may be empty.
        message: String,
    },
    /// The plugin's answer breaks a rule.
    Fault(Fault),
}

impl Cause {
    /// How to treat it.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Absent => Class::Absent,
            Self::NotASocket { .. } | Self::Stranger { .. } => Class::NotASocket,
            Self::Denied(_) => Class::Denied,
            Self::Refused => Class::Refused,
            Self::Busy => Class::Busy,
            Self::System { .. } => Class::Unclear,
            Self::DeadlineExceeded => Class::DeadlineExceeded,
            Self::Disconnected { .. } => Class::Disconnected,
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
            Self::Stranger { detail } => f.write_str(detail),
            Self::Denied(denial) => denial.fmt(f),
            Self::Refused => f.write_str(
                "connection refused, nobody listens on the socket; a dead process left it, start the plugin again",
            ),
            Self::Busy => f.write_str(
                "busy, its queue of waiting connections is full; the plugin lives but does not accept",
            ),
            Self::System { detail } => write!(f, "the operating system refused: {detail}"),
            Self::DeadlineExceeded => f.write_str("our own deadline was exceeded"),
            Self::Disconnected { detail } => {
                write!(f, "disconnected before an answer came ({detail}); the plugin died or hung up, dial again")
            }
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
