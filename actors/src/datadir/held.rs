//! Opens files below a data directory from the descriptor of that directory, name by name, and follows no link.
//!
//! A running host holds its directory open. If a link or another directory is put in its place, a path leads elsewhere, and missing parts
//! of a path would be created again. So these functions first check whether the path lies below a directory that a host of this
//! process holds, and begin at its descriptor. Anywhere else they do the same as the functions of the standard library.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::Lost;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const LINK_REFUSED: &str = "it is a link or not a directory; look what it is and remove it";

/// The directories that hosts of this process hold.
static HELD: Mutex<Vec<Weak<Held>>> = Mutex::new(Vec::new());

/// An open data directory.
#[derive(Debug)]
pub(super) struct Held {
    /// Its path as it was given, and the one without links.
    paths: [PathBuf; 2],
    handle: File,
}

impl Held {
    /// Holds this directory at this path from now on: files below it are opened from its descriptor.
    pub(super) fn new(path: &Path, handle: File) -> Arc<Self> {
        let direct = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let held = Arc::new(Self { paths: [path.to_owned(), direct], handle });
        let mut all = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&held));
        held
    }

    pub(super) fn path(&self) -> &Path {
        &self.paths[0]
    }

    /// Checks that its path still leads to it. An error of the file system proves nothing.
    pub(super) fn check(&self) -> Result<(), Lost> {
        let numbers = |found: &std::fs::Metadata| (found.dev(), found.ino());
        match (self.handle.metadata(), std::fs::symlink_metadata(self.path())) {
            (Ok(held), Ok(found)) if numbers(&held) != numbers(&found) => Err(Lost::Replaced),
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(Lost::Removed),
            (Ok(_) | Err(_), Ok(_) | Err(_)) => Ok(()),
        }
    }

    /// Opens a directory below it.
    fn enter(&self, below: &Path, flags: OFlags, missing: Missing) -> io::Result<OwnedFd> {
        // The directories on the way may not be readable.
        let way = DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW;
        let mut at = rustix::fs::openat(&self.handle, ".", way, Mode::empty())?;
        for part in below.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            at = match rustix::fs::openat(&at, name, way, Mode::empty()) {
                Err(Errno::NOENT) => {
                    let Missing::Made(mode) = missing else { return Err(Errno::NOENT.into()) };
                    match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(mode)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    rustix::fs::openat(&at, name, way, Mode::empty())
                }
                opened => opened,
            }
            .map_err(told)?;
        }
        match flags.contains(OFlags::PATH) {
            true => Ok(at),
            false => Ok(rustix::fs::openat(&at, ".", DIRECTORY | flags, Mode::empty())?),
        }
    }
}

fn told(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => io::Error::new(io::ErrorKind::NotADirectory, LINK_REFUSED),
        error => error.into(),
    }
}

/// The handling of missing directories on the way.
#[derive(Debug, Clone, Copy)]
enum Missing {
    Refused,
    /// They are created with this mode.
    Made(u32),
}

/// The held directory above a path, and the rest of the path below it.
fn holding(path: &Path) -> Option<(Arc<Held>, PathBuf)> {
    let all = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // The latest first: a directory of a host that has just ended may still be in the list.
    all.iter().rev().filter_map(Weak::upgrade).find_map(|held| {
        let below = held.paths.iter().find_map(|own| path.strip_prefix(own).ok())?.to_owned();
        Some((held, below))
    })
}

/// The descriptor of the held data directory above a path, the path of that directory, and the rest.
pub(super) fn begin(path: &Path) -> io::Result<Option<(OwnedFd, PathBuf, PathBuf)>> {
    let Some((held, below)) = holding(path) else { return Ok(None) };
    let at = held.enter(Path::new(""), OFlags::PATH, Missing::Refused)?;
    Ok(Some((at, held.path().to_owned(), below)))
}

/// Checks, before something is created at a path, that the data directory above it is in its place: a file created below its descriptor
/// would otherwise not be found at that path.
///
/// # Errors
/// [`Lost`].
pub fn check(path: &Path) -> Result<(), Lost> {
    holding(path).map_or(Ok(()), |(held, _)| held.check())
}

/// Opens a directory.
///
/// # Errors
/// If that fails.
pub fn enter(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match holding(path) {
        Some((held, below)) => held.enter(&below, flags, Missing::Refused),
        None => Ok(rustix::fs::open(path, DIRECTORY | flags, Mode::empty())?),
    }
}

/// Opens a directory; creates missing ones with this mode, unless the data directory is lost.
///
/// # Errors
/// If that fails, and if the data directory was removed or replaced.
pub fn enter_or_make(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    match holding(path) {
        Some((held, below)) => {
            held.check().map_err(io::Error::other)?;
            held.enter(&below, OFlags::empty(), Missing::Made(mode))
        }
        None => {
            DirBuilder::new().recursive(true).mode(mode).create(path)?;
            enter(path, OFlags::empty())
        }
    }
}

/// Opens a file. The file itself may be a link only outside of a data directory.
///
/// # Errors
/// If that fails.
pub fn open_file(path: &Path, flags: OFlags, mode: u32) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    Ok(match above(path)? {
        Some((at, name)) => rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW, mode)?.into(),
        None => rustix::fs::openat(CWD, path, flags, mode)?.into(),
    })
}

/// Renames a file within its directory.
///
/// # Errors
/// If that fails.
pub fn rename(path: &Path, to: &Path) -> io::Result<()> {
    match (above(path)?, above(to)?) {
        (Some((from, old)), Some((into, new))) => Ok(rustix::fs::renameat(from, old, into, new)?),
        _ => std::fs::rename(path, to),
    }
}

/// Removes a file.
///
/// # Errors
/// If that fails.
pub fn remove_file(path: &Path) -> io::Result<()> {
    unlink(path, AtFlags::empty())
}

/// Removes an empty directory.
///
/// # Errors
/// If that fails.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    unlink(path, AtFlags::REMOVEDIR)
}

fn unlink(path: &Path, flags: AtFlags) -> io::Result<()> {
    match above(path)? {
        Some((at, name)) => Ok(rustix::fs::unlinkat(at, name, flags)?),
        None => Ok(rustix::fs::unlinkat(CWD, path, flags)?),
    }
}

/// The directory above a path below a data directory, and its name there.
fn above(path: &Path) -> io::Result<Option<(OwnedFd, PathBuf)>> {
    let Some((held, below)) = holding(path) else { return Ok(None) };
    let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok(Some((held.enter(parent, OFlags::PATH, Missing::Refused)?, name.into())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::super::{DataDir, reach};
    use super::*;

    const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL);

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_is_made_behind_a_link_in_the_place_of_a_data_directory_nor_in_one_that_is_made_anew_sec_02() {
        let stage = tempfile::tempdir().unwrap();
        let [path, aside, elsewhere] = ["data", "aside", "elsewhere"].map(|name| stage.path().join(name));
        let held = DataDir::open(&path).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        enter_or_make(&path.join("logs/inner"), 0o700).unwrap();
        fs::rename(&path, &aside).unwrap();

        let made = || enter_or_make(&path.join("processes/a"), 0o700).unwrap_err();
        assert_eq!(made().to_string(), Lost::Removed.told());
        assert!(Lost::is_in(&made()) && !path.exists());
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(made().to_string(), Lost::Replaced.told());
        assert_eq!(check(&path.join("csi")), Err(Lost::Replaced));

        // Existing files are found in the held directory.
        let log = path.join("logs/inner/a.log");
        open_file(&log, NEW, 0o600).unwrap().write_all(b"line").unwrap();
        rename(&log, &path.join("logs/inner/b.log")).unwrap();
        assert_eq!(fs::read(aside.join("logs/inner/b.log")).unwrap(), b"line");
        remove_file(&path.join("logs/inner/b.log")).unwrap();
        remove_dir(&path.join("logs/inner")).unwrap();
        assert!(names(&aside.join("logs")).is_empty() && names(&elsewhere).is_empty());
        let reached = File::from(reach(&path.join("logs")).unwrap()).metadata().unwrap();
        assert_eq!(reached.ino(), fs::metadata(aside.join("logs")).unwrap().ino());

        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        enter_or_make(&path.join("processes/a"), 0o700).unwrap();
        drop(held);
        fs::remove_dir_all(&path).unwrap();
        enter_or_make(&path.join("processes/a"), 0o700).expect("no host holds it any more");
    }

    #[test]
    fn no_link_below_a_data_directory_is_followed_sec_02() {
        let stage = tempfile::tempdir().unwrap();
        let [path, elsewhere] = ["data", "elsewhere"].map(|name| stage.path().join(name));
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("file"), "theirs").unwrap();
        let _held = DataDir::open(&path).unwrap();
        symlink(&elsewhere, path.join("logs")).unwrap();
        symlink(elsewhere.join("file"), path.join("file")).unwrap();
        for refused in [
            enter(&path.join("logs"), OFlags::empty()).map(drop),
            enter_or_make(&path.join("logs/inner"), 0o700).map(drop),
            open_file(&path.join("logs/new"), NEW, 0o600).map(drop),
            open_file(&path.join("file"), OFlags::WRONLY | OFlags::TRUNC, 0).map(drop),
            rename(&path.join("file"), &path.join("logs/file")),
            remove_file(&path.join("logs/file")),
            reach(&path.join("logs")).map(drop).map_err(io::Error::other),
            enter(&path.join("logs/../logs"), OFlags::empty()).map(drop),
        ] {
            refused.expect_err("it would lead elsewhere");
        }
        assert_eq!(names(&elsewhere), ["file"]);
        assert_eq!(fs::read(elsewhere.join("file")).unwrap(), b"theirs");
    }
}
