//! Inspects the socket file of an endpoint: whether it exists, its type, and its permissions (REG-10, SEC-03).

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::{Cause, Denial, SocketFile};
use crate::vocabulary::SocketPath;

/// Inspects the file at a path, without connecting.
///
/// # Errors
/// [`Cause::Absent`], [`Cause::NotASocket`], [`Cause::Denied`] (with the file that denies access), or [`Cause::System`].
pub fn socket_file(path: &SocketPath) -> Result<SocketFile, Cause> {
    let found = std::fs::metadata(path.as_path()).map_err(|error| not_found(path, &error))?;
    match what(&found.file_type()) {
        None => Ok(SocketFile::new(found.dev(), found.ino(), (found.ctime(), found.ctime_nsec()))),
        Some(what) => Err(Cause::NotASocket { what }),
    }
}

/// The owner of the socket at a path, without following a symlink.
pub(super) fn owner_of(path: &SocketPath) -> Result<u32, Cause> {
    let found = std::fs::symlink_metadata(path.as_path()).map_err(|error| not_found(path, &error))?;
    let what = if found.is_symlink() { Some("a link") } else { what(&found.file_type()) };
    what.map_or(Ok(found.uid()), |what| Err(Cause::NotASocket { what }))
}

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

/// Determines the file that denies access: the nearest one in the path that can still be inspected.
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
