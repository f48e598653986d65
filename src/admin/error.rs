//! What can go wrong on either end of the admin socket.

use std::io;
use std::path::PathBuf;

use callboard_actors::datadir::DataDirError;
use callboard_actors::vocabulary::MalformedEndpoint;

/// Why a host does not serve its admin socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No path could be made for it.
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
    /// What is there belongs to another user.
    #[error("{path} belongs to user {owner}, and this host runs as user {ours}; choose another admin_socket")]
    NotOurs {
        /// What is there.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        ours: u32,
    },
    /// What is there is no socket.
    #[error("{path} exists and is not a socket; remove it, or choose another admin_socket")]
    NotASocket {
        /// What is there.
        path: PathBuf,
    },
    /// Others could put a socket of their own in its place, or its directory cannot be made.
    #[error(transparent)]
    Directory(#[from] DataDirError),
    /// The system refused.
    #[error("cannot {what} {path}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a question to a running host has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no socket.
    #[error("no host runs here: there is no {path}")]
    NoHost {
        /// Where it would be.
        path: PathBuf,
    },
    /// There is a socket without a listener.
    #[error("no host runs here: no process listens on {path}; the last one was killed")]
    Dead {
        /// The socket.
        path: PathBuf,
    },
    /// We may not use the socket.
    #[error("user {ours} may not use {path}; ask as the user that the host runs as, or as root")]
    Denied {
        /// The socket.
        path: PathBuf,
        /// Who we are.
        ours: u32,
    },
    /// The path cannot be a socket's.
    #[error("not a path of an admin socket: {0}")]
    Path(#[from] MalformedEndpoint),
    /// Connecting failed in some other way.
    #[error("cannot connect to {path}: {source}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What listens did not answer as a host does.
    #[error(
        "what listens on {path} does not answer as a Callboard host of this version, or has just ended ({detail})"
    )]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// What was seen of that.
        detail: String,
    },
    /// The host has no such thing, or it is not in a state for what was asked.
    #[error("{0}")]
    Refused(
        /// What the host said.
        String,
    ),
    /// The host ended, or the connection to it.
    #[error("the host ended while it was asked ({0})")]
    Ended(
        /// What was seen of that.
        String,
    ),
    /// No answer came in time.
    #[error("the host did not answer within {0:?}")]
    TimedOut(
        /// How long it was waited for.
        std::time::Duration,
    ),
}
