//! Reaches a directory step by step from the root of the file system, through directories that no other user can change.
//!
//! A user that may rename a directory, or a link, on the way can put another directory at the end of it. So each one must belong to root or
//! to us, and be writable by no other user or be sticky (others can rename only their own files there). Links are followed, since they are
//! checked as well. Below a data directory that a host of this process holds, the first step begins at its descriptor, and no link is
//! followed. Each step begins at the descriptor of the one before, so nothing is exchanged between check and use.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{DataDirError, WRITABLE_BY_OTHERS, held};

/// The limit of links that are followed, as in the kernel.
const LINKS_MAX: u32 = 40;
/// Only the owner of a file renames it in a directory with this bit.
const STICKY: u32 = 0o1000;
pub(super) const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory at an absolute path, for names below it only. Only root and we can put another one in the place of it or of a
/// directory or link on the way.
///
/// # Errors
/// [`DataDirError`] names the file that others can change, or the error of the system.
pub fn reach(path: &Path) -> Result<OwnedFd, DataDirError> {
    Way::to(path)?.walk(|_, _| Err(Errno::NOENT))
}

/// Like [`reach`]; creates missing directories, accessible only to us.
///
/// # Errors
/// As [`reach`].
pub fn reach_or_make(path: &Path) -> Result<OwnedFd, DataDirError> {
    Way::to(path)?.walk(|at, name| match rustix::fs::mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    })
}

struct Way<'a> {
    end: &'a Path,
    at: OwnedFd,
    /// The path of that directory.
    place: PathBuf,
    /// The names that remain, the next one last.
    names: Vec<OsString>,
    links: u32,
    /// Whether it began at a data directory that is held open.
    is_below_held: bool,
    /// The owner of the root of the file system: in a user namespace, root itself may be a user without a number.
    owner_of_all: u32,
}

impl<'a> Way<'a> {
    fn to(end: &'a Path) -> Result<Self, DataDirError> {
        let mut way = Self::from_root(end)?;
        let held =
            held::begin(end).map_err(|source| DataDirError::System { path: end.to_owned(), source })?;
        if let Some((at, place, below)) = held {
            (way.at, way.place, way.names, way.is_below_held) = (at, place, names(&below), true);
        }
        Ok(way)
    }

    fn from_root(end: &'a Path) -> Result<Self, DataDirError> {
        let root = || {
            let at = rustix::fs::openat(CWD, "/", STEP, Mode::empty())?;
            let owner = rustix::fs::fstat(&at)?.st_uid;
            Ok((at, owner))
        };
        let (at, owner_of_all) = root().map_err(|error| system(end, error))?;
        let names = names(end);
        Ok(Self { end, at, place: PathBuf::from("/"), names, links: 0, is_below_held: false, owner_of_all })
    }

    fn walk(
        mut self,
        make: impl Fn(&OwnedFd, &OsString) -> Result<(), Errno>,
    ) -> Result<OwnedFd, DataDirError> {
        let found = rustix::fs::fstat(&self.at).map_err(|error| system(self.end, error))?;
        self.check(&found)?;
        while let Some(name) = self.names.pop() {
            let opened = match rustix::fs::openat(&self.at, &name, STEP, Mode::empty()) {
                Err(Errno::NOENT) => make(&self.at, &name)
                    .and_then(|()| rustix::fs::openat(&self.at, &name, STEP, Mode::empty())),
                opened => opened,
            };
            let looked = opened.and_then(|next| rustix::fs::fstat(&next).map(|found| (next, found)));
            let (next, found) = looked.map_err(|error| system(self.end, error))?;
            let above = self.place.clone();
            if name == ".." {
                _ = self.place.pop()
            } else {
                self.place.push(name)
            }
            self.check(&found)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => self.at = next,
                FileType::Symlink => self.follow(&next, above)?,
                _ => return Err(system(self.end, Errno::NOTDIR)),
            }
        }
        Ok(self.at)
    }

    fn follow(&mut self, link: &OwnedFd, above: PathBuf) -> Result<(), DataDirError> {
        self.links += 1;
        let target = match self.links {
            ..=LINKS_MAX if !self.is_below_held => rustix::fs::readlinkat(link, "", Vec::new()),
            _ => Err(Errno::LOOP),
        };
        let target = target.map_err(|error| system(self.end, error))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        self.place = above;
        if target.is_absolute() {
            let root = Self::from_root(self.end)?;
            (self.at, self.place) = (root.at, root.place);
        }
        self.names.extend(names(&target));
        Ok(())
    }

    /// Checks that no other user can change the file here.
    fn check(&self, found: &Stat) -> Result<(), DataDirError> {
        let (owner, ours) = (found.st_uid, rustix::process::geteuid().as_raw());
        let (path, above) = (self.end.to_owned(), self.place.clone());
        if ![0, ours, self.owner_of_all].contains(&owner) {
            return Err(DataDirError::StrangerAbove { path, above, owner, ours });
        }
        let mode = found.st_mode & 0o7777;
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if is_directory && mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0 {
            return Err(DataDirError::OpenAbove { path, above, mode });
        }
        Ok(())
    }
}

/// The names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let named = |component: Component<'_>| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(named).collect()
}

fn system(path: &Path, error: Errno) -> DataDirError {
    DataDirError::System { path: path.to_owned(), source: io::Error::from(error) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};

    use super::*;

    const STRANGER: u32 = 65_534;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    fn refused(path: &Path) -> String {
        reach_or_make(path).expect_err("others can change the way to it").to_string()
    }

    #[test]
    fn what_lies_below_a_directory_that_others_may_write_to_is_refused_unless_that_is_sticky_sec_02() {
        let stage = tempfile::tempdir().unwrap();
        let (above, path) = (stage.path().join("above"), stage.path().join("above/inner/data"));
        reach_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        for mode in [0o770, 0o707, 0o777] {
            set(&above, mode);
            let told = refused(&path);
            let words = format!("others may write to {} on the way to it (mode {mode:04o}", above.display());
            assert!(told.contains(&words), "{told}");
            assert!(told.contains(&format!("chmod go-w {}", above.display())), "{told}");
            assert!(reach(&path).is_err());
            refused(&above.join("new"));
            assert!(!above.join("new").exists(), "nothing is made below it");
        }
        set(&above, 0o1777);
        reach(&path).unwrap();
        assert!(matches!(reach(&above.join("absent")), Err(DataDirError::System { .. })));
    }

    #[test]
    fn links_on_the_way_are_followed_where_only_we_can_change_them() {
        let stage = tempfile::tempdir().unwrap();
        let (real, open) = (stage.path().join("real"), stage.path().join("open"));
        fs::create_dir_all(real.join("data")).unwrap();
        symlink("real/../real", stage.path().join("link")).unwrap();
        symlink(stage.path().join("link"), stage.path().join("again")).unwrap();
        let reached = fs::File::from(reach(&stage.path().join("again/data")).unwrap());
        assert_eq!(reached.metadata().unwrap().ino(), fs::metadata(real.join("data")).unwrap().ino());
        fs::create_dir(&open).unwrap();
        symlink(&real, open.join("link")).unwrap();
        set(&open, 0o777);
        let told = refused(&open.join("link/data"));
        assert!(told.contains(&format!("others may write to {}", open.display())), "{told}");
        symlink("round", stage.path().join("round")).unwrap();
        assert!(refused(&stage.path().join("round/data")).contains("cannot open"));
    }

    #[test]
    fn what_a_stranger_owns_on_the_way_is_refused_also_a_link_in_a_sticky_directory() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("NOT RUN: only root can make a directory of another user");
            return;
        }
        let stage = tempfile::tempdir().unwrap();
        let (theirs, sticky) = (stage.path().join("theirs"), stage.path().join("sticky"));
        fs::create_dir_all(theirs.join("data")).unwrap();
        fs::create_dir_all(sticky.join("data")).unwrap();
        chown(&theirs, Some(STRANGER), None).unwrap();
        set(&sticky, 0o1777);
        symlink("data", sticky.join("link")).unwrap();
        reach(&sticky.join("link")).unwrap();
        lchown(sticky.join("link"), Some(STRANGER), None).unwrap();
        for (path, above) in [(theirs.join("data"), theirs), (sticky.join("link"), sticky.join("link"))] {
            let told = refused(&path);
            let words = format!("{} on the way to it belongs to user {STRANGER}", above.display());
            assert!(told.contains(&words), "{told}");
        }
    }
}
