//! The socket file of a host: made with its mode from the first instant, and never taken from anybody who uses it (SEC-02).

use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use callboard_actors::vocabulary::SocketPath;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;

use super::error::SocketError;
use super::place::SOCKET_FILE;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 64;
/// Who may connect: the owner.
const SOCKET_MODE: u32 = 0o600;

/// A socket file of ours, and the link to it if there is one. It is removed when told to.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: SocketPath,
    /// Device and inode, by which it is recognised.
    file: (u64, u64),
    link: Option<PathBuf>,
}

impl SocketFile {
    /// Listens on a path, in the place of a dead socket of ours if there is one.
    pub(super) fn listen(path: &SocketPath, data_dir: &Path) -> Result<(Self, UnixListener), SocketError> {
        let directory = path.as_path().parent().unwrap_or(Path::new("/"));
        make_directory(directory)?;
        make_way(path)?;
        let listener = bind(path).map_err(|source| system("listen on", path.as_path(), source))?;
        let file = file_at(path.as_path()).map_err(|source| system("look at", path.as_path(), source))?;
        let link = link(path, data_dir)?;
        Ok((Self { path: path.clone(), file, link }, listener))
    }

    /// Removes it, unless somebody has put another in its place.
    pub(super) fn remove(self) {
        let removed = match file_at(self.path.as_path()) {
            Ok(file) if file == self.file => std::fs::remove_file(self.path.as_path()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %self.path, error = %error, "the admin socket stays behind");
        }
        if let Some(link) = self.link
            && let Err(error) = std::fs::remove_file(&link)
        {
            tracing::warn!(path = %link.display(), error = %error, "the link to the admin socket stays behind");
        }
    }
}

fn system(what: &'static str, path: &Path, source: io::Error) -> SocketError {
    SocketError::System { what, path: path.to_owned(), source }
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn ours() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the directory of the socket if it is not there. One that others can write would let them put a socket of their own
/// in place of ours.
fn make_directory(directory: &Path) -> Result<(), SocketError> {
    let failed = |source| system("make", directory, source);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let found = std::fs::metadata(directory).map_err(|source| system("look at", directory, source))?;
    let mode = found.permissions().mode() & 0o7777;
    let is_sticky = mode & 0o1000 != 0;
    if mode & 0o022 != 0 && !is_sticky {
        return Err(SocketError::OpenToOthers { path: directory.to_owned(), mode });
    }
    Ok(())
}

/// Removes what is dead and ours. That a socket is dead shows in that it refuses a connection.
fn make_way(path: &SocketPath) -> Result<(), SocketError> {
    let found = match std::fs::symlink_metadata(path.as_path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(system("look at", path.as_path(), source)),
        Ok(found) => found,
    };
    if found.uid() != ours() {
        return Err(SocketError::NotOurs {
            path: path.as_path().to_owned(),
            owner: found.uid(),
            ours: ours(),
        });
    }
    // A link that an earlier host left here led to its socket elsewhere.
    if !found.file_type().is_socket() && !found.file_type().is_symlink() {
        return Err(SocketError::NotASocket { path: path.as_path().to_owned() });
    }
    match std::os::unix::net::UnixStream::connect(path.as_path()) {
        Ok(stream) => Err(in_use(path, &stream)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused || found.file_type().is_symlink() => {
            tracing::info!(path = %path, "removing the socket of a dead host");
            std::fs::remove_file(path.as_path()).map_err(|source| system("remove", path.as_path(), source))
        }
        Err(source) => Err(system("connect to", path.as_path(), source)),
    }
}

fn in_use(path: &SocketPath, stream: &std::os::unix::net::UnixStream) -> SocketError {
    let pid = rustix::net::sockopt::socket_peercred(stream)
        .map_or_else(|_| "unknown".to_owned(), |peer| peer.pid.as_raw_nonzero().to_string());
    SocketError::InUse { path: path.clone(), pid }
}

/// Binds with the mode set before there is a file: the kernel gives the file the mode of the socket, so that at no instant
/// anybody else can connect.
fn bind(path: &SocketPath) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::from_bits_truncate(SOCKET_MODE))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path.as_path())?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    UnixListener::from_std(socket.into())
}

/// Leaves a link in the data directory when the socket is elsewhere.
fn link(path: &SocketPath, data_dir: &Path) -> Result<Option<PathBuf>, SocketError> {
    let link = data_dir.join(SOCKET_FILE);
    if link == path.as_path() {
        return Ok(None);
    }
    match std::fs::symlink_metadata(&link) {
        Ok(found) if found.file_type().is_symlink() || found.file_type().is_socket() => {
            std::fs::remove_file(&link).map_err(|source| system("remove", &link, source))?;
        }
        Ok(_) => return Err(SocketError::NotASocket { path: link }),
        Err(_) => {}
    }
    std::os::unix::fs::symlink(path.as_path(), &link).map_err(|source| system("make", &link, source))?;
    Ok(Some(link))
}
