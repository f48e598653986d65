//! The place of a task's state: a directory of its own below the task's directory.
//!
//! ```text
//!  <allocation>/<task>/.callboard/<short name of the task's id>/
//!    supervisor   locked while the supervisor lives; also its standard error
//!    state        the processes, and the exit; replaced atomically
//!    state.next   the next state, and until then the space reserved for it
//!    control      a FIFO that the supervisor reads
//!    announced    exists after the end of the task was announced
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, mkfifoat};
use rustix::io::Errno;

use super::config;
use super::record::TaskRecord;

/// The directory for our files below a task's directory.
const OURS: &str = ".callboard";
const STATE_BYTES_MAX: u64 = 64 * 1_024;
/// By how many bytes an exit lengthens the state at most. A longer reason needs additional space on the disk.
const EXIT_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskPlace(PathBuf);

/// SIGKILL.
pub(super) const KILL: i32 = 9;

/// A request to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Sends this signal to the main process of the task.
    Signal(i32),
    /// Sends this signal to its process group.
    SignalGroup(i32),
    /// Kills everything that belongs to it.
    Kill,
}

impl Order {
    /// Encodes it as one line, short enough for an atomic write.
    fn line(self) -> String {
        match self {
            Self::Signal(number) => format!("signal {number}\n"),
            Self::SignalGroup(number) => format!("group {number}\n"),
            Self::Kill => "kill\n".to_owned(),
        }
    }

    pub(super) const fn kills(&self) -> bool {
        matches!(self, Self::Kill | Self::Signal(KILL) | Self::SignalGroup(KILL))
    }

    pub(super) fn read(line: &str) -> Option<Self> {
        match line.trim().split_once(' ') {
            Some(("signal", number)) => Some(Self::Signal(number.parse().ok()?)),
            Some(("group", number)) => Some(Self::SignalGroup(number.parse().ok()?)),
            Some(_) => None,
            None => (line.trim() == "kill").then_some(Self::Kill),
        }
    }
}

impl TaskPlace {
    pub(super) fn of(task_directory: &Path, task_id: &str) -> Self {
        Self(task_directory.join(OURS).join(config::short_name(task_id)))
    }

    pub(super) const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the place. Idempotent.
    pub(super) fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let found = fs::symlink_metadata(&self.0)?;
        if found.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// Takes the lock of the supervisor; `None` if one lives. It is held until every copy of the descriptor is closed.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let file = open(&self.0.join("supervisor"), OpenOptions::new().append(true).create(true))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the FIFO and opens it for the supervisor: also for writing, so that it never reaches end of file.
    pub(super) fn listen(&self) -> io::Result<File> {
        let path = self.0.join("control");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
        open(&path, OpenOptions::new().read(true).write(true))
    }

    /// Sends a request to the supervisor. Returns whether there is one.
    pub(super) fn ask(&self, order: Order) -> io::Result<bool> {
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).expect("the flag has a small value");
        let opened = OpenOptions::new().write(true).custom_flags(nonblocking).open(self.0.join("control"));
        let mut fifo = match opened {
            Ok(fifo) => fifo,
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if !fifo.metadata()?.file_type().is_fifo() {
            return Ok(false);
        }
        fifo.write_all(order.line().as_bytes())?;
        Ok(true)
    }

    pub(super) fn read(&self) -> io::Result<Option<TaskRecord>> {
        let mut text = Vec::new();
        match open(&self.0.join("state"), OpenOptions::new().read(true)) {
            Ok(file) => file.take(STATE_BYTES_MAX).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Writes the state atomically: a reader gets either the old or the new state.
    pub(super) fn write(&self, record: &TaskRecord) -> io::Result<()> {
        let state = serde_json::to_vec(record)?;
        let next = self.next_state()?;
        // Overwrites the reserved space, which is available even on a full disk.
        (&next).write_all(&state)?;
        next.set_len(state.len() as u64)?;
        next.sync_data()?;
        fs::rename(self.0.join("state.next"), self.0.join("state"))
    }

    /// Reserves the space that the record needs with its exit. Then the exit can be recorded even on a full disk, if the file system writes
    /// in place.
    pub(super) fn reserve(&self, record: &TaskRecord) -> io::Result<()> {
        let bytes = serde_json::to_vec(record)?.len() + EXIT_BYTES;
        (&self.next_state()?).write_all(&vec![0; bytes])
    }

    fn next_state(&self) -> io::Result<File> {
        open(&self.0.join("state.next"), OpenOptions::new().write(true).create(true).truncate(false))
    }

    pub(super) fn is_announced(&self) -> bool {
        self.0.join("announced").exists()
    }

    pub(super) fn set_announced(&self) -> io::Result<()> {
        open(&self.0.join("announced"), OpenOptions::new().append(true).create(true)).map(drop)
    }

    /// Removes the files of this module, and the place if it is empty then.
    pub(super) fn remove(&self) -> io::Result<()> {
        for name in ["control", "state.next", "state", "announced", "supervisor"] {
            gone(fs::remove_file(self.0.join(name)))?;
        }
        gone(fs::remove_dir(&self.0))?;
        // Other tasks of the same name may have their places beside it.
        let _ = self.0.parent().map(fs::remove_dir);
        Ok(())
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("the flag has a small value");
    options.mode(0o600).custom_flags(no_follow).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    use super::super::record::{EndStatus, ProcessIdentity, TaskEnd};
    use super::*;

    #[test]
    fn what_is_reserved_becomes_the_next_state_p3() {
        let directory = tempfile::tempdir().unwrap();
        let place = TaskPlace::at(directory.path().join("place"));
        place.make().unwrap();
        let me = ProcessIdentity { pid: 1, start_ticks: 2 };
        let mut record = TaskRecord {
            boot_id: "boot".to_owned(),
            supervisor: me.clone(),
            task: me,
            tag: "tag".to_owned(),
            digest: "digest".to_owned(),
            context: None,
            groups: Vec::new(),
            started_at: Duration::ZERO,
            ended: None,
        };
        place.write(&record).unwrap();
        place.reserve(&record).unwrap();
        let reserved = fs::metadata(place.path().join("state.next")).unwrap();
        let at = Duration::new(u32::MAX.into(), 999_999_999);
        record.ended = Some(TaskEnd { status: EndStatus::Code(i32::MIN), oom_killed: false, at });
        assert!(reserved.len() >= serde_json::to_vec(&record).unwrap().len() as u64);
        place.write(&record).unwrap();
        let state = fs::metadata(place.path().join("state")).unwrap();
        assert_eq!(state.ino(), reserved.ino());
        assert_eq!(place.read().unwrap(), Some(record));
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        for order in [Order::Signal(15), Order::SignalGroup(2), Order::Kill] {
            assert_eq!(Order::read(&order.line()), Some(order));
        }
        for nonsense in ["", "signal", "signal x", "group", "die 9", "kill 9"] {
            assert_eq!(Order::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_place_knows_whether_its_supervisor_lives_and_leaves_nothing_behind_prc_09() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = TaskPlace::of(&directory.path().join("main"), "task/1");
        place.make().expect("room");
        let lock = place.lock().expect("a file").expect("it is free");
        assert!(place.lock().expect("a file").is_none());
        assert!(!place.ask(Order::Kill).expect("no error"), "there is no listener");
        let control = place.listen().expect("room");
        assert!(place.ask(Order::Kill).expect("room"));
        drop((control, lock));
        assert!(!place.ask(Order::Kill).expect("no error"), "there is no listener any more");
        assert!(place.lock().expect("a file").is_some());
        place.remove().expect("it is ours");
        place.remove().expect("it is gone already");
        assert_eq!(fs::read_dir(directory.path().join("main")).expect("the task's own").count(), 0);
    }
}
