//! Locks the mark of a running host, so that no two hosts run with the same one: a locked file with its name, in a directory
//! that all hosts of this user on this machine share.
//!
//! The file stays when its host ends, and names the data directory that had the mark last, since processes of that host may
//! live on. It is on a file system that is cleared at reboot, as are the processes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::deciding::Former;
use super::error::OwnershipError;
use super::kept::Kept;
use super::{file, look_at, place};
use crate::machine::{Locked, MACHINE, make_private};
use crate::vocabulary::hex;

/// The directory below that of the machine, or of the user.
const MARKS: &str = "marks";
/// The prefix of the files for the path of a data directory; names of files for marks have no letter beyond f.
const PATH_PREFIX: &str = "path-";
/// The timeout for a host that is ending: after a kill the kernel closes its files one by one.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// How often the open is retried when the file was removed between open and lock (race).
const TRIES: usize = 16;
/// The limit of files that are checked for cleanup.
const CLEARED_AT_ONCE: usize = 1_024;

/// The locked mark of a running host, and the place of its data directory. Dropping it lets another data directory have them.
#[derive(Debug)]
pub struct HeldMark {
    _lock: Locked,
    _places: Vec<Locked>,
}

/// The default directory for marks: `marks` in [`MACHINE`] for root; for all others, and if that is not writable,
/// `callboard/marks` in `$XDG_RUNTIME_DIR`, and without that variable in `/run/user/`*uid*. `None` if neither exists: hosts do not see each
/// other then, which is logged.
#[must_use]
pub fn default_marks_dir() -> Option<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    let of_machine = is_root.then(|| Path::new(MACHINE).join(MARKS));
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw()));
    let of_user = of_user.unwrap_or_else(usual).join("callboard").join(MARKS);
    let all = of_machine.into_iter().chain([of_user]);
    let is_usable = |path: &PathBuf| match make_private(path) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "cannot record the hosts of this machine in this directory; unless another directory works, a second host may \
                go unnoticed on a copy of the data directory, or on its path after it was removed or replaced"
            );
            false
        }
    };
    all.into_iter().find(is_usable)
}

/// Locks the mark for a data directory before its use. `None` if the directory of marks cannot be used, which is logged.
///
/// # Errors
/// When another data directory has locked the mark, or had it last and still has it.
pub(super) fn hold(
    marks: &Path,
    data_dir: &Path,
    kept: &Kept,
    timeout: Duration,
) -> Result<Option<HeldMark>, OwnershipError> {
    let path = marks.join(&kept.mark);
    let locked = make_private(marks).and_then(|()| {
        clear(marks);
        locked(&path, timeout)
    });
    let lock = match locked {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            let other = noted(&path).map(|noted| place::path(&noted.place.path));
            let (data_dir, mark) = (data_dir.to_owned(), kept.mark.clone());
            return Err(OwnershipError::Held { data_dir, other, mark, lock: path });
        }
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "cannot lock the mark of this host; a host on a copy of its data directory will not notice it"
            );
            return Ok(None);
        }
    };
    if let Some(noted) = noted(&path).filter(|noted| noted.place.path != kept.place.path) {
        refuse_beside(&noted, data_dir, kept, &path)?;
    }
    if let Err(error) = note(lock.file(), kept) {
        tracing::warn!(path = %path.display(), %error, "cannot record the data directory of this host");
    }
    let mut places = Vec::new();
    for path in files_of_place(marks, &place::path(&kept.place.path), &mount_namespace()) {
        places.extend(hold_place(&path, data_dir, kept, timeout)?);
    }
    Ok(Some(HeldMark { _lock: lock, _places: places }))
}

/// Locks a file for the place of the data directory. The lock in the directory itself does not exclude a second host if the
/// directory was removed or replaced while the first one runs.
fn hold_place(
    path: &Path,
    data_dir: &Path,
    kept: &Kept,
    timeout: Duration,
) -> Result<Option<Locked>, OwnershipError> {
    match locked(path, timeout) {
        Ok(Some(lock)) => {
            if let Err(error) = note(lock.file(), kept) {
                tracing::warn!(path = %path.display(), %error, "cannot record the path of this host's data directory");
            }
            Ok(Some(lock))
        }
        Ok(None) => Err(OwnershipError::Replaced { data_dir: data_dir.to_owned(), lock: path.to_owned() }),
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "cannot lock the path of this host's data directory; a host that starts on the same path will not notice it"
            );
            Ok(None)
        }
    }
}

/// The mount namespace of this process: a path means the same to all processes in it.
fn mount_namespace() -> OsString {
    fs::read_link("/proc/self/ns/mnt").map(PathBuf::into_os_string).unwrap_or_default()
}

/// The files for the place of a data directory: one for its path as these mounts show it, and one for its name in the directory
/// above, which other mounts may show elsewhere. Containers that share this directory of marks have other directories at the same paths.
fn files_of_place(marks: &Path, data_dir: &Path, mounts: &OsStr) -> Vec<PathBuf> {
    let file = |parts: &[&[u8]]| {
        let digest =
            parts.iter().fold(Sha256::new(), |digest, part| digest.chain_update(part).chain_update([0]));
        marks.join(format!("{PATH_PREFIX}{}", hex(&digest.finalize()[..16])))
    };
    let by_path = file(&[mounts.as_bytes(), data_dir.as_os_str().as_bytes()]);
    let above = data_dir.parent().and_then(|above| fs::metadata(above).ok()).zip(data_dir.file_name());
    let by_name = above.map(|(above, name)| {
        file(&[&above.dev().to_le_bytes(), &above.ino().to_le_bytes(), name.as_bytes()])
    });
    [by_path].into_iter().chain(by_name).collect()
}

/// Checks that no host had its data at this path before the directory there was removed or replaced, without changing anything. For a
/// directory in which no host has run: the directory of a running host is locked.
///
/// # Errors
/// [`OwnershipError::Replaced`].
pub fn check_path(data_dir: &Path, marks: &Path) -> Result<(), OwnershipError> {
    let parent = data_dir.parent().and_then(|parent| parent.canonicalize().ok());
    let (Some(parent), Some(name)) = (parent, data_dir.file_name()) else { return Ok(()) };
    let is_held = |lock: &PathBuf| {
        // A shared lock is refused while a host has the lock, and does not refuse the shared lock of another check.
        let Ok(file) = OpenOptions::new().read(true).open(lock) else { return false };
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    };
    let mut locks = files_of_place(marks, &parent.join(name), &mount_namespace()).into_iter();
    match locks.find(is_held) {
        Some(lock) => Err(OwnershipError::Replaced { data_dir: data_dir.to_owned(), lock }),
        None => Ok(()),
    }
}

/// Refuses if the data directory that had the mark last still has it.
fn refuse_beside(noted: &Kept, data_dir: &Path, kept: &Kept, path: &Path) -> Result<(), OwnershipError> {
    let other = place::path(&noted.place.path);
    match look_at(&other, &kept.mark, &kept.place) {
        Ok(Former::Gone | Former::Same) => Ok(()),
        Ok(Former::Other) => {
            let (data_dir, mark) = (data_dir.to_owned(), kept.mark.clone());
            Err(OwnershipError::Copied { data_dir, other, mark })
        }
        Err(reason) => {
            let what = "look at the data directory that had this identity last, as it is noted in";
            Err(OwnershipError::system(what, path)(io::Error::other(reason)))
        }
    }
}

/// Opens and locks a file; `None` if another process has locked it. A concurrent cleanup may remove it in between.
fn locked(path: &Path, timeout: Duration) -> io::Result<Option<Locked>> {
    for _ in 0..TRIES {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let Some(lock) = Locked::within(file, timeout)? else { return Ok(None) };
        if is_at(lock.file(), path) {
            return Ok(Some(lock));
        }
    }
    Ok(None)
}

fn is_at(file: &File, path: &Path) -> bool {
    let numbers = |found: fs::Metadata| (found.dev(), found.ino());
    let (ours, there) = (file.metadata().map(numbers), fs::symlink_metadata(path).map(numbers));
    matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
}

/// The data directory that a file names. An incomplete file names none.
fn noted(path: &Path) -> Option<Kept> {
    file::read(path).ok().flatten()
}

fn note(mut file: &File, kept: &Kept) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(kept.text().as_bytes())
}

/// Removes the files of deleted data directories, unless a host has locked them.
fn clear(marks: &Path) {
    let names_nothing = |path: &Path| {
        let directory = noted(path).map(|noted| place::path(&noted.place.path));
        directory.is_some_and(|directory| place::is_there(&directory).is_ok_and(|is_there| !is_there))
    };
    for entry in fs::read_dir(marks).into_iter().flatten().flatten().take(CLEARED_AT_ONCE) {
        let path = entry.path();
        if !names_nothing(&path) {
            continue;
        }
        let lock = OpenOptions::new().read(true).open(&path);
        let lock = lock.and_then(|file| Locked::within(file, Duration::ZERO)).ok().flatten();
        // Another host may have locked it meanwhile.
        if lock.is_some_and(|lock| is_at(lock.file(), &path) && names_nothing(&path)) {
            // A failure is retried by the next start.
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_path_among_the_same_mounts_and_by_its_name_among_all_p5() {
        let stage = tempfile::tempdir().unwrap();
        let (here, there) = (stage.path().join("here"), stage.path().join("there"));
        fs::create_dir(&here).unwrap();
        let files =
            |above: &Path, mounts: &str| files_of_place(stage.path(), &above.join("data"), mounts.as_ref());
        let first = files(&here, "mnt:[1]");
        assert_eq!(first.len(), 2);
        // The directory above it is another one, as in another container, or after it was removed and created again.
        fs::rename(&here, &there).unwrap();
        fs::create_dir(&here).unwrap();
        assert_eq!(files(&here, "mnt:[1]")[0], first[0], "the same path among the same mounts");
        assert!(files(&here, "mnt:[2]").iter().all(|file| !first.contains(file)), "another container");
        assert_eq!(files(&there, "mnt:[2]")[1], first[1], "the same directory under another path");
    }
}
