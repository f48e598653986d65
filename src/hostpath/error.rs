//! Errors that end the plugin.

use std::io;
use std::path::PathBuf;

use callboard_actors::vocabulary::SocketPath;

/// Why the plugin ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum HostpathError {
    /// Another process serves there.
    #[error("cannot listen on {path}: another process listens there; stop it, or choose another endpoint")]
    Taken {
        /// The path of the socket.
        path: SocketPath,
    },
    /// The path is occupied by a file that is not a socket, which the plugin will not remove.
    #[error("cannot listen on {path}: it exists and is not a socket; remove it, or choose another endpoint")]
    Occupied {
        /// The path of the socket.
        path: SocketPath,
    },
    /// The operating system refused to listen.
    #[error("cannot listen on {path}")]
    Listen {
        /// The path of the socket.
        path: SocketPath,
        /// Its error.
        source: io::Error,
    },
    /// The server ended by itself.
    #[error("cannot serve on {path} any longer")]
    Serve {
        /// The path of the socket.
        path: SocketPath,
        /// The cause.
        source: tonic::transport::Error,
    },
    /// The signal handlers cannot be installed, so the plugin could not be stopped in order.
    #[error("cannot listen for signals")]
    Signals {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file that records an earlier run cannot be used.
    #[error("cannot remember in {file} that the plugin has run")]
    Mark {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory of the volumes cannot be used.
    #[error("cannot keep volumes in {directory}")]
    Volumes {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It crashed, as requested.
    #[error("the plugin crashes with exit code {code}, as --exit-after demands")]
    Crash {
        /// The requested exit code.
        code: u8,
    },
}

impl HostpathError {
    /// The exit code for this error.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Crash { code } => *code,
            Self::Taken { .. }
            | Self::Occupied { .. }
            | Self::Listen { .. }
            | Self::Serve { .. }
            | Self::Signals { .. }
            | Self::Mark { .. }
            | Self::Volumes { .. } => 1,
        }
    }

    /// Whether a retry may succeed without any change.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Taken { .. } | Self::Serve { .. } | Self::Crash { .. } => true,
            Self::Occupied { .. }
            | Self::Listen { .. }
            | Self::Signals { .. }
            | Self::Mark { .. }
            | Self::Volumes { .. } => false,
        }
    }
}
