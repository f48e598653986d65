//! Finds the path of a host's admin socket.

use std::path::{Path, PathBuf};

use callboard_actors::vocabulary::{MalformedEndpoint, SOCKET_PATH_BYTES_MAX, SocketPath, hex};
use sha2::{Digest, Sha256};

use super::error::AdminError;

/// The name of the socket, or of the link to it, in the data directory.
pub const SOCKET_FILE: &str = "admin.sock";
/// The names of short directories begin with this.
const SHORT_DIRECTORY: &str = "callboard-admin-";
/// Bytes of the data directory's hash in the name of a short directory.
const HASH_BYTES: usize = 8;

/// The path of the admin socket of a host on this data directory: in it, or below `runtime_dir` if the path in the data directory is too
/// long for the kernel (SEC-01).
///
/// # Errors
/// When both are too long, or not absolute.
pub fn socket_path(data_dir: &Path, runtime_dir: &Path) -> Result<SocketPath, MalformedEndpoint> {
    let direct = data_dir.join(SOCKET_FILE);
    if direct.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return SocketPath::new(direct.to_string_lossy());
    }
    let digest = Sha256::digest(data_dir.as_os_str().as_encoded_bytes());
    let hash = hex(&digest[..HASH_BYTES]);
    let short = runtime_dir.join(format!("{SHORT_DIRECTORY}{hash}")).join(SOCKET_FILE);
    SocketPath::new(short.to_string_lossy())
}

/// The short directory that a socket is in, if it is in one: it belongs to that socket alone.
pub(super) fn short_directory(socket: &Path) -> Option<&Path> {
    let directory = socket.parent()?;
    let name = directory.file_name()?.to_str()?;
    (name.starts_with(SHORT_DIRECTORY) && socket.ends_with(SOCKET_FILE)).then_some(directory)
}

/// Finds the admin socket of a host by its data directory alone.
///
/// # Errors
/// [`AdminError::NoHost`] when there is none.
pub fn find_socket(data_dir: &Path) -> Result<SocketPath, AdminError> {
    // A relative path depends on the working directory, as everywhere on a command line.
    let data_dir = std::path::absolute(data_dir)
        .map_err(|source| AdminError::Connect { path: data_dir.to_owned(), source })?;
    let direct: PathBuf = data_dir.join(SOCKET_FILE);
    match std::fs::read_link(&direct) {
        Ok(target) => Ok(SocketPath::new(target.to_string_lossy())?),
        // The path is too long and there is no link: no host has listened there.
        Err(_) if direct.as_os_str().len() > SOCKET_PATH_BYTES_MAX => {
            Err(AdminError::NoHost { path: direct })
        }
        Err(_) => Ok(SocketPath::new(direct.to_string_lossy())?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_of_two_hundred_characters_has_an_admin_socket_sec_01() {
        let long = PathBuf::from(format!("/{}", "d".repeat(199)));
        let other = PathBuf::from(format!("/{}", "e".repeat(199)));
        let path = |data_dir: &Path| socket_path(data_dir, Path::new("/run/user/1000")).expect("it is short");
        assert!(path(&long).as_str().starts_with("/run/user/1000/callboard-admin-"));
        assert!(path(&long).as_str().ends_with("/admin.sock"));
        assert_ne!(path(&long), path(&other));
        assert_eq!(path(Path::new("/data")).as_str(), "/data/admin.sock");
    }

    #[test]
    fn a_link_in_the_data_directory_tells_where_the_socket_is() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let link = directory.path().join(SOCKET_FILE);
        assert_eq!(find_socket(directory.path()).expect("a path").as_path(), link);
        std::os::unix::fs::symlink("/run/elsewhere.sock", &link).expect("a link");
        assert_eq!(find_socket(directory.path()).expect("a path").as_str(), "/run/elsewhere.sock");
    }
}
