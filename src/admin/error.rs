//! Errors of both ends of the admin socket.

use std::io;
use std::path::PathBuf;

use callboard_actors::datadir::DataDirError;
use callboard_actors::vocabulary::MalformedEndpoint;

/// Why a host does not serve its admin socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// It has no possible path.
    #[error("invalid path of the admin socket: {0}")]
    Path(#[from] MalformedEndpoint),
    /// Another host serves it.
    #[error("a process listens on {path} already (pid {pid}); stop it, or choose another admin_socket")]
    InUse {
        /// The socket.
        path: PathBuf,
        /// The process.
        pid: String,
    },
    /// The file there belongs to another user.
    #[error("{path} belongs to user {owner}, and this host runs as user {ours}; choose another admin_socket")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// Our user id.
        ours: u32,
    },
    /// The file there is not a socket.
    #[error("{path} exists and is not a socket; remove it, or choose another admin_socket")]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// Others could put a socket of their own in its place, or its directory cannot be made.
    #[error(transparent)]
    Directory(#[from] DataDirError),
    /// A system call failed.
    #[error("cannot {what} {path}: {source}")]
    System {
        /// The attempted operation.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why a request to a running host has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no socket.
    #[error("no host runs here: there is no {path}")]
    NoHost {
        /// The expected path.
        path: PathBuf,
    },
    /// There is a socket without a listener.
    #[error("no host runs here: no process listens on {path}; the last one was killed")]
    Dead {
        /// The socket.
        path: PathBuf,
    },
    /// We have no permission to use the socket.
    #[error("user {ours} may not use {path}; ask as the user that the host runs as, or as root")]
    Denied {
        /// The socket.
        path: PathBuf,
        /// Our user id.
        ours: u32,
    },
    /// The path cannot be the path of a socket.
    #[error("not a path of an admin socket: {0}")]
    Path(#[from] MalformedEndpoint),
    /// Connecting failed in some other way.
    #[error("cannot connect to {path}: {source}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The listener did not answer as a host does.
    #[error(
        "what listens on {path} does not answer as a Callboard host of this version, or has just ended ({detail})"
    )]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// What was observed.
        detail: String,
    },
    /// The host does not have the named object, or the object's state does not allow the request.
    #[error("{0}")]
    Refused(
        /// The host's reason.
        String,
    ),
    /// The host ended, or the connection to it.
    #[error("the host ended while it was asked ({0})")]
    Ended(
        /// What was observed.
        String,
    ),
    /// No answer arrived in time.
    #[error("the host did not answer within {0:?}")]
    TimedOut(
        /// The timeout.
        std::time::Duration,
    ),
}
