//! The file at the end of an endpoint: whether it is there, what it is, and who may use it (REG-10, SEC-03).

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::cause::{Cause, Denial};
use crate::vocabulary::SocketPath;

/// Which socket file was found at a path. Another value at the same path means that somebody made a new socket: no pause
/// that was meant for the old one applies any longer (REG-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketFile {
    device: u64,
    inode: u64,
    /// Inode numbers are used again at once by some file systems; the time of change tells such files apart.
    changed: (i64, i64),
}

impl SocketFile {
    /// Looks at what is at a path, without connecting.
    ///
    /// # Errors
    /// [`Cause::Absent`], [`Cause::NotASocket`], [`Cause::Denied`] (with what keeps us out), or [`Cause::System`].
    pub fn at(path: &SocketPath) -> Result<Self, Cause> {
        let found = std::fs::metadata(path.as_path()).map_err(|error| not_found(path, &error))?;
        match what(&found.file_type()) {
            None => Ok(Self {
                device: found.dev(),
                inode: found.ino(),
                changed: (found.ctime(), found.ctime_nsec()),
            }),
            Some(what) => Err(Cause::NotASocket { what }),
        }
    }

    /// A file of a world without files, told from others by its number.
    pub const fn numbered(inode: u64) -> Self {
        Self { device: 0, inode, changed: (0, 0) }
    }
}

/// Who listens at an endpoint, as the kernel tells it and not whoever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// Somebody on a socket of the file system.
    Socket {
        /// The process that began to listen; `None` if it is not to be seen from here.
        pid: Option<u32>,
        /// The user that it was then.
        user: u32,
        /// The user to whom the file of the socket belongs.
        file_owner: u32,
    },
    /// Somebody on a port of this machine.
    Port(core::net::SocketAddr),
}

/// To whom the socket at a path belongs, without following a link.
pub(super) fn owner_of(path: &SocketPath) -> Result<u32, Cause> {
    let found = std::fs::symlink_metadata(path.as_path()).map_err(|error| not_found(path, &error))?;
    let what = if found.is_symlink() { Some("a link") } else { what(&found.file_type()) };
    what.map_or(Ok(found.uid()), |what| Err(Cause::NotASocket { what }))
}

/// What a file is instead of a socket.
fn what(file: &std::fs::FileType) -> Option<&'static str> {
    if file.is_socket() {
        None
    } else if file.is_dir() {
        Some("a directory")
    } else if file.is_file() {
        Some("a regular file")
    } else {
        Some("a special file")
    }
}

fn not_found(path: &SocketPath, error: &io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::NotFound => Cause::Absent,
        io::ErrorKind::NotADirectory => Cause::NotASocket { what: "a path through a file" },
        io::ErrorKind::PermissionDenied => denied(path, error),
        _ => Cause::System { detail: error.to_string() },
    }
}

/// Reads a refused connection.
pub(super) fn not_connected(path: &SocketPath, error: &io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::NotFound => Cause::Absent,
        io::ErrorKind::PermissionDenied => denied(path, error),
        io::ErrorKind::ConnectionRefused => Cause::Refused,
        io::ErrorKind::WouldBlock => Cause::Busy,
        _ if error.raw_os_error() == Some(rustix::io::Errno::PROTOTYPE.raw_os_error()) => {
            Cause::NotASocket { what: "a socket that takes no connections" }
        }
        _ => Cause::System { detail: error.to_string() },
    }
}

/// Finds out what keeps us out: the nearest thing on the way to the socket that we can still look at.
fn denied(path: &SocketPath, error: &io::Error) -> Cause {
    let nearest = path.as_path().ancestors().find_map(|at| Some((at, std::fs::metadata(at).ok()?)));
    match nearest {
        Some((at, found)) => Cause::Denied(denial(at, &found)),
        None => Cause::System { detail: error.to_string() },
    }
}

fn denial(at: &Path, found: &std::fs::Metadata) -> Denial {
    Denial {
        path: at.display().to_string(),
        owner_uid: found.uid(),
        owner_gid: found.gid(),
        mode: found.permissions().mode() & 0o7777,
        our_uid: rustix::process::geteuid().as_raw(),
        our_gid: rustix::process::getegid().as_raw(),
    }
}
