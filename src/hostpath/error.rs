//! Why the plugin ended otherwise than it was told to.

use std::io;
use std::path::PathBuf;

use callboard_actors::vocabulary::SocketPath;

/// Why the plugin ended otherwise than it was told to.
#[derive(Debug, thiserror::Error)]
pub enum HostpathError {
    /// Somebody else serves there.
    #[error("cannot listen on {path}: another process listens there; stop it, or choose another endpoint")]
    Taken {
        /// The path of the socket.
        path: SocketPath,
    },
    /// Something lies there that this plugin will not remove.
    #[error(
        "cannot listen on {path}: something that is no socket lies there; remove it, or choose another endpoint"
    )]
    Occupied {
        /// The path of the socket.
        path: SocketPath,
    },
    /// The operating system refused.
    #[error("cannot listen on {path}")]
    Listen {
        /// The path of the socket.
        path: SocketPath,
        /// What it said.
        source: io::Error,
    },
    /// The server came to an end by itself.
    #[error("cannot serve on {path} any longer")]
    Serve {
        /// The path of the socket.
        path: SocketPath,
        /// Why.
        source: tonic::transport::Error,
    },
    /// The signals of the operating system cannot be heard, so nobody could stop the plugin in order.
    #[error("cannot listen for signals")]
    Signals {
        /// What the operating system said.
        source: io::Error,
    },
    /// The file that remembers that the plugin has run before cannot be used.
    #[error("cannot remember in {file} that the plugin has run")]
    Mark {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It crashed, as it was told to.
    #[error("the plugin crashes with exit code {code}, as --exit-after demands")]
    Crash {
        /// The exit code it was told to end with.
        code: u8,
    },
}

impl HostpathError {
    /// The exit code of a process that ends for this reason.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Crash { code } => *code,
            Self::Taken { .. }
            | Self::Occupied { .. }
            | Self::Listen { .. }
            | Self::Serve { .. }
            | Self::Signals { .. }
            | Self::Mark { .. } => 1,
        }
    }

    /// Whether a new start may succeed with nobody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Taken { .. } | Self::Serve { .. } | Self::Crash { .. } => true,
            Self::Occupied { .. } | Self::Listen { .. } | Self::Signals { .. } | Self::Mark { .. } => false,
        }
    }
}
