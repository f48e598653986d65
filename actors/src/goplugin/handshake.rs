//! What a plugin says in its one line: which version it speaks, and where.

use core::net::SocketAddr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A handshake that was read and accepted. All that a later run has to know to speak with the same process again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handshake {
    /// The application protocol version, one of those that were offered (D22, D23).
    pub app_version: u32,
    /// Where the plugin listens (D24, D25). It listens before it says so, and can be dialled at once (D32).
    pub endpoint: PluginEndpoint,
}

/// Where a plugin listens (D24).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PluginEndpoint {
    /// On a Unix socket: an absolute path that the kernel accepts.
    Unix(PathBuf),
    /// On a port of this machine.
    Tcp(SocketAddr),
}

impl PluginEndpoint {
    /// The path of the socket, if it is one with a path.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp(_) => None,
        }
    }
}

impl fmt::Display for PluginEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}
