//! The content of a plugin's handshake line: its protocol version and its endpoint.

use core::net::SocketAddr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A handshake that was parsed and accepted. A later run can connect to the same process with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handshake {
    /// The application protocol version, one of the offered versions (D22, D23).
    pub app_version: u32,
    /// The endpoint of the plugin (D24, D25). It listens before it prints the line, and can be dialled at once (D32).
    pub endpoint: PluginEndpoint,
}

/// The endpoint of a plugin (D24).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PluginEndpoint {
    /// A Unix socket: an absolute path that the kernel accepts.
    Unix(PathBuf),
    /// A TCP port of this machine.
    Tcp(SocketAddr),
}

impl PluginEndpoint {
    /// The path of the Unix socket, if it is one.
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
