//! Where a plugin's sockets lie: a directory of its own that nobody else may enter (D8). It goes with the process, and with it
//! the sockets that a plugin which was killed could not remove.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::name::ProcessName;
use crate::goplugin::HandshakeTerms;
use crate::vocabulary::hex;

/// Below the directory of a process.
const DIRECTORY: &str = "sockets";

/// Where the sockets of this process lie: in its own directory or, where that path would be too long for a socket, below the
/// short one.
pub(super) fn place(directory: &Path, short: &Path, owner: &str, name: &ProcessName) -> PathBuf {
    let direct = directory.join(DIRECTORY);
    if HandshakeTerms::nomad(Some(direct.clone())).check().is_ok() {
        return direct;
    }
    let digest: [u8; 32] = Sha256::digest(name.as_str().as_bytes()).into();
    short.join(format!("callboard-{owner}")).join(hex(&digest[..8]))
}

/// Makes the directory, empty of old sockets and closed to others.
pub(super) fn begin(place: &Path) -> io::Result<()> {
    let parent = place.parent().unwrap_or(Path::new("/"));
    make(parent)?;
    make(place)?;
    remove_sockets(place)
}

/// Removes the sockets and their directory, after the end of the process. Whatever else lies there stays, and the directory
/// with it.
pub(super) fn end(place: &Path) {
    let removed = remove_sockets(place).and_then(|()| fs::remove_dir(place));
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(directory = %place.display(), error = %error, "the directory of a plugin's sockets stays behind");
    }
}

fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(named(directory, &error)),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(directory).map_err(|error| named(directory, &error))?;
    let us = rustix::process::geteuid().as_raw();
    if found.is_dir() && found.uid() == us && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let problem = "it is no directory of ours that is closed to others (0700); remove it";
    Err(named(directory, &io::Error::new(io::ErrorKind::PermissionDenied, problem)))
}

fn named(directory: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
}

fn remove_sockets(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_socket() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn name() -> ProcessName {
        ProcessName::new("driver-exec").expect("a good name")
    }

    #[test]
    fn the_sockets_lie_with_the_process_or_below_the_short_directory_when_that_is_too_long_sec_01() {
        let at = |directory: &str| place(Path::new(directory), Path::new("/run"), "0011", &name());
        assert_eq!(at("/var/p/driver-exec"), Path::new("/var/p/driver-exec/sockets"));
        let short = at(&format!("/var/{}/driver-exec", "x".repeat(200)));
        assert!(short.starts_with("/run/callboard-0011"), "{short:?}");
        HandshakeTerms::nomad(Some(short)).check().expect("it is short enough");
    }

    #[test]
    fn old_sockets_go_and_what_is_no_socket_stays() {
        let above = tempfile::tempdir().expect("a directory");
        let place = above.path().join("p").join(DIRECTORY);
        begin(&place).expect("it can be made");
        drop(UnixListener::bind(place.join("plugin1")).expect("a socket"));
        begin(&place).expect("it can be used again");
        assert_eq!(fs::read_dir(&place).expect("it is there").count(), 0);
        fs::write(place.join("note"), "not ours").expect("it can be written");
        end(&place);
        assert!(place.join("note").exists());
        fs::remove_file(place.join("note")).expect("it is there");
        end(&place);
        assert!(!place.exists());
    }

    #[test]
    fn a_directory_that_others_may_enter_or_that_leads_elsewhere_is_refused_sec_02() {
        let above = tempfile::tempdir().expect("a directory");
        let (open, link) = (above.path().join("open"), above.path().join("link"));
        DirBuilder::new().mode(0o700).create(&open).expect("it can be made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("it is ours");
        symlink(&open, &link).expect("it can be made");
        for parent in [open, link] {
            let refused = begin(&parent.join(DIRECTORY)).expect_err("others may enter");
            assert!(refused.to_string().contains("closed to others"), "{refused}");
        }
    }
}
