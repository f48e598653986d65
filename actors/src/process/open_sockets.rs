//! Which sockets of the file system some process still has open (TH030).
//!
//! The kernel's list names a socket by the path that it was bound to, and only sockets of our own network namespace. So one that
//! is not in the list is asked as well: to connect to it is refused only when the socket behind the file is gone, whatever
//! namespace its owner is in and by whatever path it knows the file. In doubt a socket counts as open.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The kernel's list of Unix sockets.
const LIST: &str = "/proc/net/unix";
/// How many fields of a line come before the path.
const FIELDS_BEFORE_PATH: usize = 7;

/// The sockets that were open when the list was read.
#[derive(Debug)]
pub(super) struct OpenSockets {
    paths: BTreeSet<PathBuf>,
}

impl OpenSockets {
    /// Reads the kernel's list.
    ///
    /// # Errors
    /// When it cannot be read; nothing is known to be closed then.
    pub(super) fn read() -> io::Result<Self> {
        Ok(Self { paths: fs::read(LIST)?.split(|byte| *byte == b'\n').filter_map(path_of).collect() })
    }

    /// Whether some process may have the socket at this path open.
    pub(super) fn may_hold(&self, path: &Path) -> bool {
        self.paths.contains(path) || !is_refused(path)
    }
}

/// The path at the end of a line of the list; sockets without one have a line without this field.
fn path_of(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..FIELDS_BEFORE_PATH {
        let begin = rest.iter().position(|byte| *byte != b' ')?;
        let end = begin + rest[begin..].iter().position(|byte| *byte == b' ')?;
        rest = &rest[end..];
    }
    let path = rest.strip_prefix(b" ")?;
    path.starts_with(b"/").then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// Whether the kernel says that nothing is behind this socket any more.
fn is_refused(path: &Path) -> bool {
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(socket) = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None) else { return false };
    connect(&socket, &address) == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    #[test]
    fn lines_of_the_kernels_list_are_read_whatever_the_path_holds_th030() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01   123 /run/a b/plugin1";
        assert_eq!(path_of(line), Some(PathBuf::from("/run/a b/plugin1")));
        for nameless in [
            &b"Num       RefCount Protocol Flags    Type St Inode Path"[..],
            b"0000000000000000: 00000002 00000000 00010000 0001 01 12345",
            b"0000000000000000: 00000002 00000000 00010000 0001 01 12345 @abstract",
            b"",
        ] {
            assert_eq!(path_of(nameless), None);
        }
    }

    #[test]
    fn a_socket_is_open_as_long_as_somebody_has_it_open_by_whatever_name_th030() {
        let directory = tempfile::tempdir().expect("a directory");
        let (stream, datagram) = (directory.path().join("stream"), directory.path().join("datagram"));
        let listener = UnixListener::bind(&stream).expect("a socket");
        let receiver = UnixDatagram::bind(&datagram).expect("a socket");
        let (other, open) = (directory.path().join("other"), OpenSockets::read().expect("it is there"));
        fs::hard_link(&stream, &other).expect("another name");
        for path in [&stream, &datagram, &other] {
            assert!(open.may_hold(path), "{path:?}");
        }
        drop((listener, receiver));
        let open = OpenSockets::read().expect("it is there");
        for path in [&stream, &datagram, &other] {
            assert!(!open.may_hold(path), "{path:?}");
        }
        assert!(open.may_hold(&directory.path().join("missing")), "in doubt it stays");
    }
}
