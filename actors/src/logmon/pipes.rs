//! Pipes in directories where tasks may write: made, checked and opened relative to held directories, without following links.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, chmodat, fstat, mkfifoat, openat, statat, unlinkat,
};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};
use rustix::process::geteuid;

use super::protocol::PipeId;

/// The mode of every pipe.
const PIPE_MODE: Mode = Mode::from_raw_mode(0o600);
/// How much is thrown away at once.
const DRAIN_BYTES: usize = 1 << 20;

/// Why a pipe cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PipeError {
    /// A directory on the way is a link, a file, or not there.
    #[error("cannot use the directory {}: {source}; it has to be a directory, and no link", path.display())]
    Directory {
        /// The first one that cannot be used.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else has the name of the pipe.
    #[error("{} is {what}, and no pipe of ours; remove it", path.display())]
    Foreign {
        /// Its path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The system refused.
    #[error("cannot {doing} the pipe {}: {source}", path.display())]
    System {
        /// Its path.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// A directory that is held open, and its path, for people to read.
#[derive(Debug)]
pub(super) struct HeldDirectory {
    pub(super) descriptor: OwnedFd,
    pub(super) path: PathBuf,
}

impl HeldDirectory {
    /// Opens `directory` below `root`. Links are followed on the way to the root, and not below it.
    pub(super) fn open(root: &Path, directory: &Path) -> Result<Self, PipeError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut path = root.to_owned();
        let failed = |path: &Path, source: Errno| PipeError::Directory {
            path: path.to_owned(),
            source: source.into(),
        };
        let mut descriptor =
            openat(CWD, root, flags, Mode::empty()).map_err(|source| failed(&path, source))?;
        for part in directory {
            path.push(part);
            descriptor = openat(&descriptor, part, flags | OFlags::NOFOLLOW, Mode::empty())
                .map_err(|source| failed(&path, source))?;
        }
        Ok(Self { descriptor, path })
    }

    fn error(&self, doing: &'static str, name: &str) -> impl Fn(Errno) -> PipeError + use<> {
        let path = self.path.join(name);
        move |source| PipeError::System { path: path.clone(), doing, source: source.into() }
    }

    /// Makes a pipe of mode 0600, or takes the one that is there if it is the one that was `known` before, or fresh and ours. Gives
    /// it opened for reading and writing, which never waits and keeps what is in it (T063).
    pub(super) fn make_pipe(
        &self,
        name: &str,
        known: Option<PipeId>,
    ) -> Result<(OwnedFd, PipeId), PipeError> {
        match mkfifoat(&self.descriptor, name, PIPE_MODE) {
            Ok(()) => {
                // Whatever the mask of the process took away.
                let set = chmodat(&self.descriptor, name, PIPE_MODE, AtFlags::empty());
                set.map_err(self.error("set the mode of", name))?;
                return self.open_pipe(name, None);
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(self.error("make", name)(error)),
        }
        let seen =
            statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).map_err(self.error("look at", name))?;
        let foreign = |what| Err(PipeError::Foreign { path: self.path.join(name), what });
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Fifo => {}
            FileType::Symlink => return foreign("a link"),
            FileType::RegularFile => return foreign("a file"),
            _ => return foreign("something else"),
        }
        // One that was known may have been given to the user of its task by a driver (T062).
        if known != Some(id(&seen)) && seen.st_uid != geteuid().as_raw() {
            return foreign("a pipe of another user");
        }
        self.open_pipe(name, Some(id(&seen)))
    }

    /// Opens a pipe, which has to be this one if one is named.
    pub(super) fn open_pipe(
        &self,
        name: &str,
        known: Option<PipeId>,
    ) -> Result<(OwnedFd, PipeId), PipeError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let pipe = openat(&self.descriptor, name, flags, Mode::empty());
        let pipe = pipe.map_err(self.error("open", name))?;
        let seen = fstat(&pipe).map_err(self.error("look at", name))?;
        let is_pipe = FileType::from_raw_mode(seen.st_mode) == FileType::Fifo;
        if !is_pipe || known.is_some_and(|known| known != id(&seen)) {
            return Err(PipeError::Foreign {
                path: self.path.join(name),
                what: "not the pipe that was made",
            });
        }
        Ok((pipe, id(&seen)))
    }

    /// Removes a pipe if it is this one. What somebody else has put in its place stays.
    pub(super) fn remove_pipe(&self, name: &str, known: PipeId) -> Result<(), PipeError> {
        match statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(seen) if id(&seen) == known => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(self.error("look at", name)(error)),
        }
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error("remove", name)(error)),
        }
    }
}

const fn id(seen: &Stat) -> PipeId {
    PipeId { device: seen.st_dev, inode: seen.st_ino }
}

/// Lets a pipe hold more, as far as the system allows: it only makes waits shorter.
pub(super) fn grow(pipe: impl AsFd, bytes: usize) {
    // Users have a quota; without room in it the pipe stays as it is.
    let _ = fcntl_setpipe_size(pipe, bytes);
}

/// How many bytes wait in a pipe.
pub(super) fn waiting(pipe: impl AsFd) -> io::Result<u64> {
    Ok(ioctl_fionread(pipe)?)
}

/// Whether a writer may have to wait for room.
pub(super) fn is_full(pipe: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&pipe, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&at_once)), Ok(0))
}

/// Throws away what is in a pipe, and gives how much that was. `nowhere` is `/dev/null`.
pub(super) fn drain(pipe: impl AsFd, nowhere: impl AsFd) -> io::Result<u64> {
    let mut drained = 0;
    // As much as there is now, and no more: a writer that goes on must not hold us.
    let mut left = waiting(&pipe)?;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(DRAIN_BYTES).min(DRAIN_BYTES);
        match splice(&pipe, None, &nowhere, None, piece, SpliceFlags::NONBLOCK) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(count) => {
                drained += count as u64;
                left = left.saturating_sub(count as u64);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(drained)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    fn directory() -> (tempfile::TempDir, HeldDirectory) {
        let held = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(held.path().join("logs")).expect("a directory");
        let directory = HeldDirectory::open(held.path(), Path::new("logs")).expect("it is there");
        (held, directory)
    }

    #[test]
    fn a_pipe_is_made_with_mode_0600_and_found_again_th023_t060() {
        let (held, directory) = directory();
        let (_, made) = directory.make_pipe(".web.stdout.fifo", None).expect("it is made");
        let seen = statat(&directory.descriptor, ".web.stdout.fifo", AtFlags::SYMLINK_NOFOLLOW).unwrap();
        assert_eq!((seen.st_mode & 0o7777, FileType::from_raw_mode(seen.st_mode)), (0o600, FileType::Fifo));
        let (_, again) = directory.make_pipe(".web.stdout.fifo", Some(made)).expect("it is the same");
        assert_eq!(again, made);
        directory.remove_pipe(".web.stdout.fifo", made).expect("it is removed");
        assert_eq!(std::fs::read_dir(held.path().join("logs")).unwrap().count(), 0);
    }

    #[test]
    fn a_link_a_file_or_a_directory_in_the_place_of_a_pipe_is_refused_and_left_th023() {
        let (held, directory) = directory();
        let path = held.path().join("logs/.web.stdout.fifo");
        let target = held.path().join("target");
        assert!(Command::new("mkfifo").arg(&target).status().expect("it runs").success());
        symlink(&target, &path).expect("a link");
        let refused = directory.make_pipe(".web.stdout.fifo", None).unwrap_err().to_string();
        assert!(refused.contains("is a link"), "{refused}");
        assert!(directory.open_pipe(".web.stdout.fifo", None).is_err(), "a link is not followed");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "text").unwrap();
        let refused = directory.make_pipe(".web.stdout.fifo", None).unwrap_err().to_string();
        assert!(refused.contains("is a file"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
        // What was exchanged afterwards is noticed too, and not removed in the place of ours.
        std::fs::remove_file(&path).unwrap();
        let (_, ours) = directory.make_pipe(".web.stdout.fifo", None).unwrap();
        std::fs::rename(&target, &path).unwrap();
        assert!(directory.open_pipe(".web.stdout.fifo", Some(ours)).is_err());
        directory.remove_pipe(".web.stdout.fifo", ours).expect("nothing of ours is there");
        assert!(path.exists());
    }

    #[test]
    fn a_link_on_the_way_below_the_root_is_refused_th023() {
        let held = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(held.path().join("real/logs")).unwrap();
        symlink(held.path().join("real"), held.path().join("alloc")).unwrap();
        let refused = HeldDirectory::open(held.path(), Path::new("alloc/logs")).unwrap_err().to_string();
        assert!(refused.contains("alloc") && refused.contains("no link"), "{refused}");
        // What leads to the root is for the operator to choose.
        assert!(HeldDirectory::open(&held.path().join("alloc"), Path::new("logs")).is_ok());
    }

    #[test]
    fn a_full_pipe_is_told_from_one_with_room_and_is_emptied_th022() {
        let (_held, directory) = directory();
        let (pipe, _) = directory.make_pipe("a", None).unwrap();
        assert!(!is_full(&pipe));
        let mut written = 0;
        while let Ok(count) = rustix::io::write(&pipe, &[b'x'; 4_096]) {
            written += count as u64;
        }
        assert!(is_full(&pipe));
        let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
        assert_eq!(drain(&pipe, &nowhere).unwrap(), written);
        assert!(!is_full(&pipe) && waiting(&pipe).unwrap() == 0);
    }
}
