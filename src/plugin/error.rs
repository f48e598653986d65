//! Why a plugin does not serve.

use std::io;

use super::environment::NotAPlugin;
use super::socket::SocketError;

/// Why a plugin does not serve, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No host started it (D36).
    #[error(transparent)]
    NotAPlugin(#[from] NotAPlugin),
    /// It has no socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The signals of the operating system cannot be heard, so nobody could stop the plugin in order.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
    /// The host cannot be told where the plugin is.
    #[error("cannot print the handshake line: {0}")]
    Line(#[source] io::Error),
    /// Its output cannot be kept for the host.
    #[error("cannot turn standard output round: {0}")]
    Output(#[source] io::Error),
    /// The system gives no threads or no timers.
    #[error("cannot begin: {0}")]
    Runtime(#[source] io::Error),
    /// The server came to an end by itself.
    #[error("cannot serve any longer: {0}")]
    Server(#[source] tonic::transport::Error),
}

impl ServeError {
    /// Whether a new start may succeed with nobody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Server(_) | Self::Runtime(_) => true,
            Self::NotAPlugin(_) | Self::Socket(_) | Self::Signals(_) | Self::Line(_) | Self::Output(_) => {
                false
            }
        }
    }
}
