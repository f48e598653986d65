//! The plugin's socket file (SEC-02): a stale one is removed, one in use is not.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::{fs, io};

use callboard_actors::vocabulary::SocketPath;
use tokio::net::UnixListener;

use super::error::HostpathError;

pub(super) struct Socket {
    path: SocketPath,
    file: (u64, u64),
}

impl Socket {
    /// Listens on a path, and replaces a stale socket.
    pub(super) fn listen(path: &SocketPath) -> Result<(Self, UnixListener), HostpathError> {
        let refused = |source| HostpathError::Listen { path: path.clone(), source };
        make_way(path)?;
        let listener = UnixListener::bind(path.as_path()).map_err(refused)?;
        let file = file_at(path).map_err(refused)?;
        Ok((Self { path: path.clone(), file }, listener))
    }

    /// Removes the file, unless another file has replaced it.
    pub(super) fn remove(self) {
        if file_at(&self.path).is_ok_and(|file| file == self.file)
            && let Err(error) = fs::remove_file(self.path.as_path())
        {
            tracing::warn!(path = %self.path, error = %error, "cannot remove the socket file");
        }
    }
}

fn file_at(path: &SocketPath) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path.as_path())?;
    Ok((found.dev(), found.ino()))
}

/// Removes a stale socket. A stale socket refuses connections; a slow server does not.
fn make_way(path: &SocketPath) -> Result<(), HostpathError> {
    let refused = |source| HostpathError::Listen { path: path.clone(), source };
    match fs::symlink_metadata(path.as_path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(HostpathError::Occupied { path: path.clone() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path.as_path()) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path, "removing the socket of a dead process");
            fs::remove_file(path.as_path()).map_err(refused)
        }
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(refused(error)),
        Ok(_) | Err(_) => Err(HostpathError::Taken { path: path.clone() }),
    }
}
