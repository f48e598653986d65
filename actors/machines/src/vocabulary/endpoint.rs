//! The endpoint at which a plugin listens.

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use super::text::is_harmless;

/// Longest path of a Unix socket, in bytes: `sun_path` has 108 and the last is the terminating zero (SEC-01).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The maximum length of the part of a text that an error shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 256;

/// Why a path is not a socket path (R9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedEndpoint {
    /// It is empty.
    #[error("the socket path is empty; give an absolute path")]
    Empty,
    /// It depends on the working directory of a process.
    #[error("the socket path {path:?} is relative; give an absolute path")]
    Relative {
        /// The path, or its beginning.
        path: String,
    },
    /// It is too long for the kernel.
    #[error(
        "the socket path {path:?} has {bytes} bytes; a Unix socket has room for {SOCKET_PATH_BYTES_MAX}, choose a shorter directory"
    )]
    TooLong {
        /// The path, or its beginning.
        path: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// It contains `..`, which may lead anywhere.
    #[error("the socket path {path:?} holds '..' or a zero byte; give the path it leads to")]
    Unclean {
        /// The path, or its beginning.
        path: String,
    },
    /// It contains control characters, or characters that change the text direction, which would make logs and tables unreadable.
    #[error("the socket path {path:?} holds {character:?}; control characters are not allowed")]
    Character {
        /// The path, or its beginning.
        path: String,
        /// The first character that is not allowed.
        character: char,
    },
    /// CSI uses Unix sockets only (C170).
    #[error("the endpoint {endpoint:?} is no Unix socket; give unix:///path or an absolute path")]
    Scheme {
        /// The endpoint, or its beginning.
        endpoint: String,
    },
}

/// The part of a text that an error shows, long enough for any intended socket path.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS_MAX).collect()
}

/// An absolute path of a Unix socket that the kernel accepts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketPath(Arc<str>);

impl SocketPath {
    /// Takes a path as a socket path.
    ///
    /// # Errors
    /// When it is empty, relative, too long for a Unix socket, or holds `..` or control characters.
    pub fn new(path: impl AsRef<str>) -> Result<Self, MalformedEndpoint> {
        let path = path.as_ref();
        if path.is_empty() {
            return Err(MalformedEndpoint::Empty);
        }
        if !path.starts_with('/') {
            return Err(MalformedEndpoint::Relative { path: shown(path) });
        }
        if path.len() > SOCKET_PATH_BYTES_MAX {
            return Err(MalformedEndpoint::TooLong { path: shown(path), bytes: path.len() });
        }
        if path.contains('\0') || Path::new(path).components().any(|c| c == Component::ParentDir) {
            return Err(MalformedEndpoint::Unclean { path: shown(path) });
        }
        if let Some(character) = path.chars().find(|c| !is_harmless(*c)) {
            return Err(MalformedEndpoint::Character { path: shown(path), character });
        }
        Ok(Self(Arc::from(path)))
    }

    /// Reads the form that `CSI_ENDPOINT` has: `unix:///path`, `unix:/path`, or a bare absolute path (C171).
    ///
    /// # Errors
    /// As for [`SocketPath::new`], and when it names another scheme.
    pub fn from_endpoint(endpoint: &str) -> Result<Self, MalformedEndpoint> {
        let path = match endpoint.split_once(':') {
            Some(("unix", rest)) => rest.strip_prefix("//").unwrap_or(rest),
            Some((scheme, _)) if !scheme.contains('/') => {
                return Err(MalformedEndpoint::Scheme { endpoint: shown(endpoint) });
            }
            Some(_) | None => endpoint,
        };
        Self::new(path)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as a path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&*self.0)
    }

    /// The value of `CSI_ENDPOINT` for it (C171).
    #[must_use]
    pub fn to_endpoint(&self) -> String {
        format!("unix://{}", self.0)
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_the_kernel_would_refuse_is_refused_before_sec_01() {
        let longest = format!("/{}", "s".repeat(SOCKET_PATH_BYTES_MAX - 1));
        assert!(SocketPath::new(&longest).is_ok());
        assert!(matches!(SocketPath::new(longest + "s"), Err(MalformedEndpoint::TooLong { bytes: 108, .. })));
    }

    #[test]
    fn relative_climbing_and_empty_paths_are_refused_r9() {
        assert_eq!(SocketPath::new(""), Err(MalformedEndpoint::Empty));
        assert!(matches!(SocketPath::new("a.sock"), Err(MalformedEndpoint::Relative { .. })));
        assert!(matches!(SocketPath::new("/a/../b.sock"), Err(MalformedEndpoint::Unclean { .. })));
        assert!(matches!(SocketPath::new("/a\0b"), Err(MalformedEndpoint::Unclean { .. })));
        for path in ["/a\nb", "/a\u{1b}[2J", "/a\u{202e}b"] {
            assert!(matches!(SocketPath::new(path), Err(MalformedEndpoint::Character { .. })), "{path:?}");
        }
    }

    #[test]
    fn an_error_is_short_however_long_the_path_r9() {
        let long = "x".repeat(1 << 20);
        for path in [long.clone(), format!("/{long}"), format!("/../{long}")] {
            assert!(SocketPath::new(&path).expect_err("too long").to_string().len() < 500);
        }
        let endpoint = format!("tcp:{long}");
        assert!(SocketPath::from_endpoint(&endpoint).expect_err("no scheme").to_string().len() < 500);
    }

    /// Holds C170.
    #[test]
    fn every_usual_spelling_of_a_unix_endpoint_is_read_c171() {
        for endpoint in ["unix:///run/csi.sock", "unix:/run/csi.sock", "/run/csi.sock"] {
            assert_eq!(SocketPath::from_endpoint(endpoint).expect("a good one").as_str(), "/run/csi.sock");
        }
        assert!(matches!(SocketPath::from_endpoint("tcp://h:1"), Err(MalformedEndpoint::Scheme { .. })));
        // Text after a slash is not a scheme.
        let path = SocketPath::from_endpoint("/run/pool:1/csi.sock").expect("a good one");
        assert_eq!(format!("{path} {path:?}"), "/run/pool:1/csi.sock \"/run/pool:1/csi.sock\"");
    }
}
