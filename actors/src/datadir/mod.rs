//! The data directory of a host: whether it is ours, and whether it is still there while the host runs. A module, not an actor.
//!
//! A user that may write to it, or to a directory of ours in it, can put a link there; the host then writes, executes and removes files
//! elsewhere. So the directory is opened without following a link, and it and those below must be directories that only we may write
//! to. From then on only we, or root, can change their contents or put another directory in its place, since the directories on the way
//! to it are checked too (`reach`). It is kept open, which shows whether its path still leads to it; files below it are created and
//! opened from its descriptor (`held`).

mod held;
mod reach;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub use held::{check, enter, enter_or_make, open_file, remove_dir, remove_file, rename};
pub use reach::{reach, reach_or_make};

use held::Held;

/// The directories in it whose contents a host executes, removes, shows or connects to, and the directory of the state of drivers.
const BELOW: [&str; 6] = ["processes", "logs", "logmon", "csi", "users", "drivers"];
/// The permission that other users must not have: write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why a directory is not used. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// A link is in its place, which may lead elsewhere later.
    #[error("cannot use {}: it is a link to {}; give the directory itself, or mount it there", path.display(), to.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// Its target.
        to: PathBuf,
    },
    /// It belongs to another user, who could change everything in it.
    #[error(
        "cannot use {}: it belongs to user {owner}, and this host runs as user {ours}. Run the host as that user, or give it the \
         directory: chown -R {ours} {}",
        path.display(), path.display()
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this host.
        ours: u32,
    },
    /// Others may write to it.
    #[error("cannot use {}: others may write to it (mode {mode:04o}); make it ours alone: chmod go-w {}", path.display(), path.display())]
    OpenToOthers {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A directory or link above it belongs to neither root nor us.
    #[error(
        "cannot use {}: {} on the way to it belongs to user {owner}, who could put another directory in its place; give that to root \
         or to user {ours}, or choose another directory", path.display(), above.display()
    )]
    StrangerAbove {
        /// The directory.
        path: PathBuf,
        /// The one above it, or a link.
        above: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this host.
        ours: u32,
    },
    /// Others may write to a directory above it.
    #[error(
        "cannot use {}: others may write to {} on the way to it (mode {mode:04o}, without the sticky bit) and could put another \
         directory in its place: chmod go-w {}, or choose another directory", path.display(), above.display(), above.display()
    )]
    OpenAbove {
        /// The directory.
        path: PathBuf,
        /// The one above it.
        above: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Something that is not a directory is in the place of one of the host's own directories.
    #[error("cannot use {}: it is no directory; look what it is and remove it", path.display())]
    NotADirectory {
        /// Its path.
        path: PathBuf,
    },
    /// It cannot be created or opened.
    #[error("cannot open {}: {source}", path.display())]
    System {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// The reason why the path of a data directory no longer leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub enum Lost {
    /// Nothing is at the path.
    Removed,
    /// Another file or directory is at the path.
    Replaced,
}

impl Lost {
    /// Whether this error reports that a data directory is lost.
    #[must_use]
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }

    /// The event and the remedy.
    #[must_use]
    pub const fn told(self) -> &'static str {
        match self {
            Self::Removed => {
                "the data directory was removed or renamed while the host runs; what it stores is lost with its end. Put it back, or stop \
                 the host and start it again"
            }
            Self::Replaced => {
                "another directory is in the place of the data directory while the host runs; what it stores is lost with its end. Put \
                 the former one back, or stop the host and start it again"
            }
        }
    }
}

/// A data directory of ours, held open.
#[derive(Debug)]
pub struct DataDir(Arc<Held>);

impl DataDir {
    /// Creates the directory if it does not exist, opens it without following a link, and checks that it and the directories
    /// below are ours, and that no other user can change the directories above.
    ///
    /// # Errors
    /// [`DataDirError`] names the directory and what to do.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let system = |source| DataDirError::System { path: path.to_owned(), source };
        let path = &*std::path::absolute(path).map_err(system)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(system(io::ErrorKind::InvalidInput.into()));
        };
        let above = reach_or_make(parent)?;
        match rustix::fs::mkdirat(&above, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(system(error.into())),
        }
        let handle = match open_directory(&above, name, path) {
            Err(DataDirError::NotADirectory { .. }) => return Err(system(Errno::NOTDIR.into())),
            opened => opened?,
        };
        let handle = handle.ok_or_else(|| system(io::ErrorKind::NotFound.into()))?;
        for name in BELOW {
            open_directory(&handle, name.as_ref(), &path.join(name))?;
        }
        Ok(Self(Held::new(path, handle)))
    }

    /// Checks that its path still leads to it. An error of the file system proves nothing.
    ///
    /// # Errors
    /// [`Lost`]: removed or replaced.
    pub fn check(&self) -> Result<(), Lost> {
        self.0.check()
    }
}

/// Opens a directory below another one, if it exists, and checks that it is ours.
fn open_directory(
    at: impl std::os::fd::AsFd,
    name: &OsStr,
    path: &Path,
) -> Result<Option<File>, DataDirError> {
    let system = |source| DataDirError::System { path: path.to_owned(), source };
    let handle = match rustix::fs::openat(at, name, reach::STEP | OFlags::DIRECTORY, Mode::empty()) {
        Ok(handle) => File::from(handle),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(match std::fs::read_link(path) {
                Ok(to) => DataDirError::Link { path: path.to_owned(), to },
                Err(_) => DataDirError::NotADirectory { path: path.to_owned() },
            });
        }
        Err(error) => return Err(system(error.into())),
    };
    let found = handle.metadata().map_err(system)?;
    let (owner, ours) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != ours {
        return Err(DataDirError::NotOurs { path: path.to_owned(), owner, ours });
    }
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(DataDirError::OpenToOthers { path: path.to_owned(), mode: found.mode() & 0o7777 });
    }
    Ok(Some(handle))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn refused(path: &Path) -> String {
        DataDir::open(path).expect_err("it is not ours alone").to_string()
    }

    #[test]
    fn a_data_directory_is_no_link_and_neither_is_what_is_below_it() {
        let stage = tempfile::tempdir().unwrap();
        let (real, link) = (stage.path().join("real"), stage.path().join("link"));
        DataDir::open(&real).unwrap();
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o7777, 0o700);
        symlink(&real, &link).unwrap();
        assert!(refused(&link).contains(&format!("it is a link to {}", real.display())));
        for name in BELOW {
            symlink(stage.path(), real.join(name)).unwrap();
            assert!(refused(&real).contains(&format!("{}: it is a link", real.join(name).display())));
            fs::remove_file(real.join(name)).unwrap();
        }
        fs::write(real.join("logs"), "").unwrap();
        assert!(refused(&real).contains("it is no directory; look what it is"));
    }

    #[test]
    fn a_data_directory_that_others_may_write_to_is_refused_with_what_to_do() {
        let stage = tempfile::tempdir().unwrap();
        let path = stage.path().join("data");
        fs::create_dir_all(path.join("processes")).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set(&path, 0o770);
        assert!(
            refused(&path)
                .contains(&format!("(mode 0770); make it ours alone: chmod go-w {}", path.display()))
        );
        set(&path, 0o755);
        set(&path.join("processes"), 0o707);
        assert!(refused(&path).contains("processes"));
        set(&path.join("processes"), 0o711);
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn a_host_of_root_does_not_use_the_directory_of_another_user() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("NOT RUN: only root can make a directory of another user");
            return;
        }
        let stage = tempfile::tempdir().unwrap();
        chown(stage.path(), Some(65_534), None).unwrap();
        let told = refused(stage.path());
        assert!(told.contains("it belongs to user 65534, and this host runs as user 0"), "{told}");
        assert!(told.contains(&format!("chown -R 0 {}", stage.path().display())), "{told}");
    }

    #[test]
    fn a_directory_that_is_removed_or_replaced_is_noticed_and_so_is_its_return() {
        let stage = tempfile::tempdir().unwrap();
        let (path, aside) = (stage.path().join("data"), stage.path().join("aside"));
        let held = DataDir::open(&path).unwrap();
        assert_eq!(held.check(), Ok(()));
        fs::rename(&path, &aside).unwrap();
        assert_eq!(held.check(), Err(Lost::Removed));
        fs::create_dir(&path).unwrap();
        assert_eq!(held.check(), Err(Lost::Replaced));
        fs::remove_dir(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        assert_eq!(held.check(), Ok(()));
    }
}
