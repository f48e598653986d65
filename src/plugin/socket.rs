//! The plugin's socket file.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tokio::net::UnixListener;

use super::accounts::{self, AccountError};
use super::environment::Environment;

/// The longest socket path on Linux, in bytes.
const PATH_BYTES_MAX: usize = 107;
/// How many names are tried when names are taken.
const NAMES_MAX: usize = 16;

/// Why no socket could be made.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path is longer than the system allows.
    #[error(
        "the socket {path} would have a path of {length} bytes; {PATH_BYTES_MAX} are possible, choose a shorter directory"
    )]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
    /// The system refused to create the socket.
    #[error("cannot listen on a socket in {directory}: {source}")]
    Refused {
        /// The directory given by the host.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The group that may use it does not exist.
    #[error("cannot give the socket to its group: {0}")]
    Group(#[from] AccountError),
}

#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    file: (u64, u64),
}

impl Socket {
    /// Listens in the host's directory, under a new name. Only the owner may connect, and the group if the host named one
    /// (D9).
    pub(crate) fn listen(environment: &Environment) -> Result<(Self, UnixListener), SocketError> {
        let directory = &environment.socket_dir;
        let refused = |source| SocketError::Refused { directory: directory.clone(), source };
        let (path, listener) = bind(directory)?;
        let mut mode = 0o600;
        if let Some(group) = &environment.socket_group {
            chown(&path, None, Some(accounts::group(group)?)).map_err(refused)?;
            mode = 0o660;
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(refused)?;
        let file = file_at(&path).map_err(refused)?;
        Ok((Self { path, file }, listener))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    /// Removes the file, unless another file has replaced it.
    fn drop(&mut self) {
        if file_at(&self.path).is_ok_and(|file| file == self.file)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), error = %error, "cannot remove the socket file");
        }
    }
}

fn bind(directory: &Path) -> Result<(PathBuf, UnixListener), SocketError> {
    let refused = |source| SocketError::Refused { directory: directory.to_owned(), source };
    for _ in 0..NAMES_MAX {
        let name = super::random::hex::<4>().map_err(refused)?;
        // At most as long as the names that Go plugins use, for which hosts reserve space.
        let path = directory.join(format!("plugin{name}"));
        let length = path.as_os_str().len();
        if length > PATH_BYTES_MAX {
            return Err(SocketError::TooLong { path, length });
        }
        match UnixListener::bind(&path) {
            Ok(listener) => return Ok((path, listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Err(refused(io::Error::new(io::ErrorKind::AddrInUse, "every name that was tried is taken")))
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}
