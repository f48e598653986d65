//! Inspects the socket file of an endpoint: whether it exists, its type, and its permissions (REG-10, SEC-03).

use std::fs::Metadata;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::{Cause, Denial, SocketFile};
use crate::vocabulary::SocketPath;
use crate::vocabulary::text::from_bytes;

/// The descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";
/// The limit of the part of a link's target that an error shows, in bytes.
const LINK_BYTES_MAX: usize = 256;

/// Inspects the file at a path, without connecting. A link is not followed.
///
/// # Errors
/// [`Cause::Absent`], [`Cause::NotASocket`], [`Cause::Link`], [`Cause::Denied`] (with the file that denies access), or
/// [`Cause::System`].
pub fn socket_file(path: &SocketPath) -> Result<SocketFile, Cause> {
    let found = std::fs::symlink_metadata(path.as_path()).map_err(|error| not_found(path, &error))?;
    checked(path, &found)
}

/// A socket file that is held open: a connect to it reaches this file, whatever is at its path by then.
pub(super) struct HeldSocket {
    handle: OwnedFd,
    pub(super) file: SocketFile,
    pub(super) owner: u32,
}

impl HeldSocket {
    pub(super) fn open(path: &SocketPath) -> Result<Self, Cause> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path.as_path(), flags, Mode::empty());
        let handle = std::fs::File::from(handle.map_err(|error| not_found(path, &error.into()))?);
        let found = handle.metadata().map_err(|error| not_found(path, &error))?;
        let (file, owner) = (checked(path, &found)?, found.uid());
        Ok(Self { handle: handle.into(), file, owner })
    }

    /// The path that leads to this very file.
    pub(super) fn place(&self) -> PathBuf {
        PathBuf::from(format!("{DESCRIPTORS}/{}", self.handle.as_raw_fd()))
    }
}

fn checked(path: &SocketPath, found: &Metadata) -> Result<SocketFile, Cause> {
    if found.is_symlink() {
        let to = std::fs::read_link(path.as_path()).unwrap_or_default();
        return Err(Cause::Link { to: from_bytes(to.as_os_str().as_encoded_bytes(), LINK_BYTES_MAX) });
    }
    match what(&found.file_type()) {
        None => Ok(SocketFile::new(found.dev(), found.ino(), (found.ctime(), found.ctime_nsec()))),
        Some(what) => Err(Cause::NotASocket { what }),
    }
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
        io::ErrorKind::NotFound if !Path::new(DESCRIPTORS).is_dir() => Cause::System {
            detail: format!(
                "{DESCRIPTORS} is missing, through which a host connects to sockets; mount the process file system at /proc"
            ),
        },
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

fn denial(at: &Path, found: &Metadata) -> Denial {
    Denial {
        path: at.display().to_string(),
        owner_uid: found.uid(),
        owner_gid: found.gid(),
        mode: found.permissions().mode() & 0o7777,
        our_uid: rustix::process::geteuid().as_raw(),
        our_gid: rustix::process::getegid().as_raw(),
    }
}
