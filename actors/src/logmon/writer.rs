//! The log writer: a separate process that reads the pipes of all tasks of one data directory.
//!
//! One loop waits for pipes and for the host, and never for a disk. Each stream has turns of bounded length; its pipe is
//! polled again after a turn, so that no stream delays another one by more than a turn.

mod host;
mod serve;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};

use self::serve::Writer;
use crate::machine::Locked;

/// The lock file: one log writer per directory.
pub(super) const LOCK_FILE: &str = "lock";
pub(super) const SOCKET_FILE: &str = "control.sock";
/// The timeout for the lock: a log writer that is ending releases it soon.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a log writer cannot run.
#[derive(Debug, thiserror::Error)]
pub enum WriterError {
    /// Another one is running.
    #[error("another log writer serves {}", directory.display())]
    Taken {
        /// Its directory.
        directory: PathBuf,
    },
    /// An error of the system.
    #[error("cannot {doing} in {}: {source}", directory.display())]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// Its directory.
        directory: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Runs as the log writer of a directory: reads pipes and writes files as the host requests, until asked to end, until the
/// directory is removed, or after some seconds without a host and without pipes. Returns only then.
///
/// # Errors
/// When another one is running, or the system refuses the lock, the socket or the event queue.
pub fn write_logs(directory: &Path) -> Result<(), WriterError> {
    let failed = |doing| {
        let directory = directory.to_owned();
        move |source: io::Error| WriterError::System { doing, directory, source }
    };
    // A separate session: a signal that ends the host, such as Ctrl-C in its terminal, must not end this. Fails for a group
    // leader, which has a separate group already.
    let _ = setsid();
    raise_descriptors();
    let mut making = DirBuilder::new();
    making.recursive(true).mode(0o700).create(directory).map_err(failed("make the directory"))?;
    let lock = lock(directory)?;
    let listener = listen(directory).map_err(failed("listen"))?;
    let writer = Writer::new(directory, lock, listener).map_err(failed("wait for events"))?;
    writer.run().map_err(failed("wait for events"))
}

/// Raises the limit of file descriptors to its maximum, since each stream needs a few. No child inherits it.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // With the present limit fewer tasks have their logs collected; the others are reported.
    let _ = setrlimit(Resource::Nofile, raised);
}

fn lock(directory: &Path) -> Result<Locked, WriterError> {
    let failed =
        |source| WriterError::System { doing: "take the lock", directory: directory.to_owned(), source };
    let mut options = OpenOptions::new();
    let lock = options.create(true).truncate(false).write(true).mode(0o600).open(directory.join(LOCK_FILE));
    let lock = lock.map_err(failed)?;
    Locked::within(lock, LOCK_TIMEOUT)
        .map_err(failed)?
        .ok_or_else(|| WriterError::Taken { directory: directory.to_owned() })
}

/// Listens at a short path, independent of the length of the directory's path (SEC-01).
fn listen(directory: &Path) -> io::Result<UnixListener> {
    let held = hold(directory)?;
    let path = short(&held, SOCKET_FILE);
    // A former owner has ended, since we have the lock.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn hold(directory: &Path) -> io::Result<OwnedFd> {
    Ok(open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

pub(super) fn short(held: &OwnedFd, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", held.as_raw_fd()))
}

fn is_removed(file: &File) -> bool {
    file.metadata().is_ok_and(|seen| seen.nlink() == 0)
}
