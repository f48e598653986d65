//! The log writer: a process of its own that reads the pipes of all tasks of one data directory.
//!
//! One loop waits for pipes and for the host, and never for a disk. Each stream has its turns, of bounded length; a pipe that has had one
//! is listened to again after it, so that no stream costs another one more than a turn.

mod host;
mod serve;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};

use self::serve::Writer;

/// The lock that there is only one log writer under.
pub(super) const LOCK_FILE: &str = "lock";
/// Where it listens.
pub(super) const SOCKET_FILE: &str = "control.sock";
/// How long the lock is waited for: one that ends gives it back soon.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is tried meanwhile.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why a log writer does not run.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    /// There is one already.
    #[error("another log writer serves {}", directory.display())]
    Taken {
        /// Its directory.
        directory: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {doing} in {}: {source}", directory.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// Its directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Is the log writer of a directory: reads pipes and writes files as the host says, until told to end, until the directory is gone, or
/// until it has had neither a host nor a pipe for some seconds. Does not come back before.
///
/// # Errors
/// When there is one already, or the system refuses the lock, the socket or what waits for events.
pub fn write_logs(directory: &Path) -> Result<(), WriterError> {
    let failed = |doing| {
        let directory = directory.to_owned();
        move |source: io::Error| WriterError::System { doing, directory, source }
    };
    // A session of its own: what ends the host, such as a key in its terminal, must not end this. Who leads a group already is told no,
    // and has been given a group of its own.
    let _ = setsid();
    raise_descriptors();
    let mut making = DirBuilder::new();
    making.recursive(true).mode(0o700).create(directory).map_err(failed("make the directory"))?;
    let lock = lock(directory)?;
    let listener = listen(directory).map_err(failed("listen"))?;
    let writer = Writer::new(directory, lock, listener).map_err(failed("wait for events"))?;
    writer.run().map_err(failed("wait for events"))
}

/// Each stream takes a few descriptors, so as many as may be are asked for. Nothing is started that would inherit the limit.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // With the limit as it is, fewer tasks have their logs collected, and those that do not are told of.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn lock(directory: &Path) -> Result<File, WriterError> {
    let failed =
        |source| WriterError::System { doing: "take the lock", directory: directory.to_owned(), source };
    let mut options = OpenOptions::new();
    let lock = options.create(true).truncate(false).write(true).mode(0o600).open(directory.join(LOCK_FILE));
    let lock = lock.map_err(failed)?;
    let began = Instant::now();
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(WriterError::Taken { directory: directory.to_owned() });
            }
            Err(error) => return Err(failed(error.into())),
        }
    }
}

/// Listens at a path that is short whatever the path of the directory is (SEC-01).
fn listen(directory: &Path) -> io::Result<UnixListener> {
    let held = hold(directory)?;
    let path = short(&held, SOCKET_FILE);
    // Whoever had it before has ended, since we have the lock.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Opens a directory to reach what is in it.
pub(super) fn hold(directory: &Path) -> io::Result<OwnedFd> {
    Ok(open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A short path of what is in a directory that is held open.
pub(super) fn short(held: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", held.as_raw_fd()))
}

/// Whether a file that is held open has no name any more.
fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|seen| seen.nlink() == 0)
}
