//! Errors that keep a plugin from serving.

use std::io;

use super::environment::NotAPlugin;
use super::socket::SocketError;

/// Why a plugin cannot serve, or stopped serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The process was not started by a host (D36).
    #[error(transparent)]
    NotAPlugin(#[from] NotAPlugin),
    /// No socket could be made.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The signal handlers cannot be installed, so the plugin could not be stopped in order.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
    /// The handshake line cannot be printed.
    #[error("cannot print the handshake line: {0}")]
    Line(#[source] io::Error),
    /// Standard output cannot be redirected.
    #[error("cannot redirect standard output: {0}")]
    Output(#[source] io::Error),
    /// The runtime cannot be started: the system gives no threads or no timers.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    /// The server ended with an error.
    #[error("cannot serve any longer: {0}")]
    Server(#[source] tonic::transport::Error),
}

impl ServeError {
    /// Whether a retry may succeed without any change.
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
