//! Determines which Unix sockets in the file system are still open (TH030).
//!
//! The kernel's list names a socket by the path that it was bound to, and only sockets of our own network namespace. So a
//! socket that is not in the list is checked by a connect as well: it is refused only when the socket behind the file is
//! gone, in whatever namespace its owner is and by whatever path it knows the file. In doubt a socket counts as open.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

const LIST: &str = "/proc/net/unix";
/// The number of fields before the path in a line.
const FIELDS_BEFORE_PATH: usize = 7;

/// The sockets among these that no process has open.
///
/// Connects are tried before the list is read: a socket that is bound and not yet listening refuses them, and is listed.
///
/// # Errors
/// When the list cannot be read; no socket is known to be closed then.
pub(super) fn closed_among(mut paths: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
    paths.retain(|path| is_refused(path));
    if !paths.is_empty() {
        let list = fs::read(LIST)?;
        let open: BTreeSet<PathBuf> = list.split(|byte| *byte == b'\n').filter_map(path_of).collect();
        paths.retain(|path| !open.contains(path));
    }
    Ok(paths)
}

/// The path at the end of a line of the list; unnamed sockets have no such field.
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

/// Whether the kernel refuses a connect because the socket is gone.
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
    fn a_socket_is_open_as_long_as_a_process_has_it_open_by_whatever_name_th030() {
        let directory = tempfile::tempdir().expect("a directory");
        let (stream, datagram) = (directory.path().join("stream"), directory.path().join("datagram"));
        let listener = UnixListener::bind(&stream).expect("a socket");
        let receiver = UnixDatagram::bind(&datagram).expect("a socket");
        let other = directory.path().join("other");
        fs::hard_link(&stream, &other).expect("another name");
        let paths = vec![stream, datagram, other];
        let closed = |paths: &[PathBuf]| closed_among(paths.to_vec()).expect("the list can be read");
        assert_eq!(closed(&paths), Vec::<PathBuf>::new());
        drop((listener, receiver));
        assert_eq!(closed(&paths), paths);
        assert!(closed(&[directory.path().join("missing")]).is_empty(), "in doubt it stays");
    }

    #[test]
    fn a_socket_that_is_bound_and_does_not_listen_yet_is_open_th030() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("plugin1");
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).expect("a path")).expect("it can be bound");
        assert!(is_refused(&path), "it does not listen");
        assert!(closed_among(vec![path]).expect("the list can be read").is_empty());
    }
}
