//! The output of a process: two files that outlive the host, and their readers (PRC-07, LOG-02 to LOG-04).
//!
//! ```text
//!  process ── append ──► stdout.log ── tail ──► handshake, last words
//!          ── append ──► stderr.log ── tail ──► lines ── queue ──► log thread ──► tracing
//!                           ▲                     │
//!                      space that was read is   positions, kept in the record
//!                      freed (hole)
//! ```
//!
//! A tail that fails is restarted after the last line that it read, which is logged; the process is not affected.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::fs::OFlags;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::plugin_log::{PluginLog, Progress};
use super::tail::{Known, Tail, Use};
use super::watcher::{Watch, Watcher};
use super::words::Words;
use super::{Dropped, Positions, ProcessName};
use crate::datadir;
use crate::goplugin::{Handshake, HandshakeError, HandshakeScan, LineReader};
use crate::kernel::panic_message;

/// The names of the two files, and of those of the previous launch.
const STDOUT: &str = "stdout.log";
const STDERR: &str = "stderr.log";
const STDOUT_BEFORE: &str = "stdout.previous.log";
const STDERR_BEFORE: &str = "stderr.previous.log";

/// The timeout for the end of a reader and of its logging. The next host logs the rest.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before a failed reader is restarted, and the longest such pause.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// Creates the output directory of a process, renames the files of the previous launch, and opens new ones for appending. A process with
/// a handshake is refused if the file system is full: the handshake could not be written, and the host would wait until its timeout.
pub(super) fn begin(directory: &Path, has_handshake: bool) -> io::Result<(File, File)> {
    datadir::enter_or_make(directory, 0o700)?;
    if let Some(reason) = without_room(directory).filter(|_| has_handshake) {
        return Err(io::Error::other(reason));
    }
    for (name, before) in [(STDOUT, STDOUT_BEFORE), (STDERR, STDERR_BEFORE)] {
        match datadir::rename(&directory.join(name), &directory.join(before)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
    let open = |name| datadir::open_file(&directory.join(name), flags, 0o600);
    Ok((open(STDOUT)?, open(STDERR)?))
}

/// Removes the files of a process without kept output, and its directory. Other files stay, and then the directory too.
pub(super) fn end(directory: &Path) {
    let remove = |name: &str| match datadir::remove_file(&directory.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    let removed = [STDOUT, STDERR, STDOUT_BEFORE, STDERR_BEFORE].into_iter().try_for_each(remove);
    if let Err(error) = removed.and_then(|()| datadir::remove_dir(directory))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(directory = %directory.display(), %error, "cannot remove the directory of a process");
    }
}

/// The reason if the file system is full: the last output of a process may be missing, including its handshake and its error.
pub(super) fn without_room(directory: &Path) -> Option<String> {
    let found = rustix::fs::statvfs(directory).ok()?;
    // Blocks that are reserved for root are free only for root.
    let free = if rustix::process::geteuid().is_root() { found.f_bfree } else { found.f_bavail };
    // A file system that counts no blocks gives no information.
    (free == 0 && found.f_blocks > 0).then(|| {
        format!(
            "no space is left on the file system of {}, so its output, and what it answers with, may be missing; make room there",
            directory.display()
        )
    })
}

#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) name: &'a ProcessName,
    pub(super) directory: &'a Path,
    pub(super) positions: Positions,
    pub(super) kept: u64,
    pub(super) watcher: &'a Rc<Watcher>,
    pub(super) plugin_log: &'a PluginLog,
}

pub(super) type PendingHandshake = oneshot::Receiver<Result<Handshake, HandshakeError>>;

#[derive(Debug)]
pub(super) struct Output {
    output: Stream,
    errors: Stream,
    advanced: Arc<Notify>,
    reported: RefCell<(Positions, Dropped)>,
}

impl Output {
    /// Starts to read both files from these positions, and scans for a handshake if a scan is given.
    pub(super) fn open(
        reading: &Reading<'_>,
        scan: Option<HandshakeScan>,
    ) -> io::Result<(Self, Option<PendingHandshake>)> {
        let advanced = Arc::new(Notify::new());
        let (scan, shaking) = match scan {
            Some(scan) => {
                let (tell, shaking) = oneshot::channel();
                (Some((scan, tell)), Some(shaking))
            }
            None => (None, None),
        };
        let Positions { output, errors } = reading.positions;
        let log = Use::Log {
            plugin: reading.name.clone(),
            reader: LineReader::default(),
            plugin_log: reading.plugin_log.clone(),
        };
        let output = Stream::open(reading, STDOUT, output, Use::Scan(scan), &advanced)?;
        let errors = Stream::open(reading, STDERR, errors, log, &advanced)?;
        let reported = RefCell::new((reading.positions, Dropped::default()));
        Ok((Self { output, errors, advanced, reported }, shaking))
    }

    pub(super) fn positions(&self) -> Positions {
        Positions { output: self.output.position(), errors: self.errors.position() }
    }

    fn dropped(&self) -> Dropped {
        let (output, errors) = (self.output.known.borrow().dropped, self.errors.known.borrow().dropped);
        Dropped { lines: output.lines + errors.lines, bytes: output.bytes + errors.bytes }
    }

    /// Waits until more was read, and logged if it is to be logged, than was reported last.
    pub(super) async fn advanced(&self) -> (Positions, Dropped) {
        loop {
            let advanced = self.advanced.notified();
            let now = (self.positions(), self.dropped());
            if *self.reported.borrow() != now {
                *self.reported.borrow_mut() = now;
                return now;
            }
            advanced.await;
        }
    }

    pub(super) fn last_lines(&self) -> (Vec<String>, Vec<String>) {
        (self.output.known.borrow().words.lines(), self.errors.known.borrow().words.lines())
    }

    pub(super) fn trace(&self) -> Option<String> {
        self.errors.known.borrow().words.trace()
    }

    /// Reads everything written so far, and waits until it is logged, with a timeout.
    pub(super) async fn close(&self) {
        let streams = [&self.output, &self.errors];
        streams.iter().for_each(|stream| stream.end());
        let closed = futures_util::future::join_all(streams.map(Stream::closed));
        if timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::debug!("a log does not advance; the next run of the host logs the rest");
        }
    }
}

#[derive(Debug)]
struct Stream {
    known: Rc<RefCell<Known>>,
    watch: Rc<Watch>,
    ended: watch::Receiver<bool>,
    task: AbortHandle,
}

impl Stream {
    fn open(
        reading: &Reading<'_>,
        name: &str,
        position: u64,
        purpose: Use,
        advanced: &Arc<Notify>,
    ) -> io::Result<Self> {
        let path: PathBuf = reading.directory.join(name);
        let file = Arc::new(datadir::open_file(&path, OFlags::RDWR, 0)?);
        let watch = Rc::new(reading.watcher.watch(&path));
        let known = Known {
            read: position,
            progress: Arc::new(Progress::new(Arc::clone(advanced))),
            words: Words::default(),
            dropped: Dropped::default(),
            is_closing: false,
            advanced: Arc::clone(advanced),
        };
        let known = Rc::new(RefCell::new(known));
        let tail = Tail::new(path, file, Rc::clone(&watch), Rc::clone(&known), purpose, reading.kept);
        let (tell, ended) = watch::channel(false);
        let task = actix_rt::spawn(async move {
            read_on(tail).await;
            tell.send_replace(true);
        });
        let task = task.abort_handle();
        Ok(Self { known, watch, ended, task })
    }

    fn position(&self) -> u64 {
        let known = self.known.borrow();
        known.progress.position(known.read)
    }

    fn end(&self) {
        self.known.borrow_mut().is_closing = true;
        self.watch.wake();
    }

    async fn closed(&self) {
        // A reader that was aborted has ended too.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
        let progress = Arc::clone(&self.known.borrow().progress);
        progress.settled().await;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Restarts a failed reader, with a growing pause (LOG-04).
async fn read_on(mut tail: Tail) {
    let mut pause = RETRY_FIRST;
    loop {
        let fault = match AssertUnwindSafe(tail.run()).catch_unwind().await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic_message(&*panic),
        };
        tracing::warn!(
            path = %tail.path.display(), error = fault,
            "output reader failed; resuming after the last line, lines of this moment may be logged twice"
        );
        tail.resume();
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_LONGEST);
    }
}
