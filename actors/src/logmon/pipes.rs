//! Pipes in directories that tasks may write: created and verified relative to open directories, without following symlinks.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, chmodat, fstat, mkfifoat, openat, statat, unlinkat};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};
use rustix::process::geteuid;

use super::protocol::PipeId;
use crate::datadir;

const PIPE_MODE: Mode = Mode::from_raw_mode(0o600);
const DRAIN_BYTES: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(super) enum PipeError {
    /// A directory in the path is a symlink, a file, or missing.
    #[error("cannot use the directory {}: {source}; it has to be a directory, and no link", path.display())]
    Directory {
        /// The first such directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another file has the name of the pipe.
    #[error("{} is {what}, and no pipe of ours; remove it", path.display())]
    Foreign {
        /// Its path.
        path: PathBuf,
        /// Its type.
        what: &'static str,
    },
    /// An error of the system.
    #[error("cannot {doing} the pipe {}: {source}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The error.
        source: io::Error,
    },
}

/// An open directory, and its path for messages.
#[derive(Debug)]
pub(super) struct HeldDirectory {
    pub(super) descriptor: OwnedFd,
    pub(super) path: PathBuf,
}

impl HeldDirectory {
    /// Opens `directory` below `root`. Symlinks are followed on the way to the root, and not below it.
    pub(super) fn open(root: &Path, directory: &Path) -> Result<Self, PipeError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut path = root.to_owned();
        let failed = |path: &Path, source: Errno| PipeError::Directory {
            path: path.to_owned(),
            source: source.into(),
        };
        let opened = datadir::enter(root, OFlags::RDONLY);
        let mut descriptor =
            opened.map_err(|source| PipeError::Directory { path: root.to_owned(), source })?;
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

    /// Creates a pipe of mode 0600, or reuses an existing one if it is the `known` one, or fresh and ours. Opens it for
    /// reading and writing, which never blocks and keeps its content (T063).
    pub(super) fn make_pipe(
        &self,
        name: &str,
        known: Option<PipeId>,
    ) -> Result<(OwnedFd, PipeId), PipeError> {
        match mkfifoat(&self.descriptor, name, PIPE_MODE) {
            Ok(()) => {
                // Independent of the umask.
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
        // A driver may have given a known one to the user of its task (T062).
        if known != Some(id(&seen)) && seen.st_uid != geteuid().as_raw() {
            return foreign("a pipe of another user");
        }
        self.open_pipe(name, Some(id(&seen)))
    }

    /// Opens a pipe, and verifies that it is the `known` one, if given.
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

    /// Whether no file has this name.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        matches!(statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
    }

    /// Removes a pipe if it is this one. A file that has replaced it stays.
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

/// Enlarges the buffer of a pipe as far as the system permits: that only shortens waits.
pub(super) fn grow(pipe: impl AsFd, bytes: usize) {
    // Users have a quota; without room in it the size stays.
    let _ = fcntl_setpipe_size(pipe, bytes);
}

pub(super) fn waiting(pipe: impl AsFd) -> io::Result<u64> {
    Ok(ioctl_fionread(pipe)?)
}

/// Whether a writer may block.
pub(super) fn is_full(pipe: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&pipe, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&at_once)), Ok(0))
}

/// Drops the content of a pipe, and returns its size. `nowhere` is `/dev/null`.
pub(super) fn drain(pipe: impl AsFd, nowhere: impl AsFd) -> io::Result<u64> {
    let mut drained = 0;
    // Only the present content: a writer that continues must not block us.
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
        // A later replacement is detected too, and not removed.
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
        // Symlinks on the way to the root are the operator's choice.
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
