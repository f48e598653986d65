//! Copies the output of all processes to their logs, on one thread: disks are slow, and a plugin that floods its output must not block the
//! host. A thread for each process would cost a host of a thousand plugins a thousand threads.
//!
//! The thread exists while a pipe is open. It reads a chunk of each pipe in its turn, so nobody's output waits for all of another one's. A
//! disk that hangs stops it; then processes wait when their pipes are full, as they would for that disk themselves.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use tokio::sync::oneshot;

use super::log::LogFile;
use super::tail::Tail;

/// The size of one read.
const CHUNK_BYTES: usize = 16 * 1_024;
const STACK_BYTES: usize = 128 * 1_024;
/// How many pipes are looked at in one go.
const EVENTS_MAX: usize = 64;

/// All pipes that are open.
static COPIES: Mutex<Copies> =
    Mutex::new(Copies { events: None, waiting: BTreeMap::new(), open: 0, next: 0 });

struct Copies {
    /// What the thread waits for; `None` without a thread.
    events: Option<Arc<OwnedFd>>,
    /// All but the one that is being read.
    waiting: BTreeMap<u64, Copy>,
    open: usize,
    next: u64,
}

struct Copy {
    pipe: PipeReader,
    log: LogFile,
    tail: Tail,
    told: oneshot::Sender<()>,
}

impl Copy {
    /// Reads what is there, but not more than a chunk. False when the last writer has closed the pipe.
    fn read_on(&mut self, chunk: &mut [u8]) -> bool {
        match self.pipe.read(chunk) {
            Ok(length @ 1..) => {
                self.tail.push(&chunk[..length]);
                self.log.append(&chunk[..length]);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
            Ok(0) => false,
        }
    }
}

/// Never held while anything is read or written.
fn copies() -> MutexGuard<'static, Copies> {
    COPIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies a pipe to a log until the last writer has closed the pipe; then notifies the receiver.
pub(super) fn copy(pipe: PipeReader, log: LogFile, tail: Tail) -> io::Result<oneshot::Receiver<()>> {
    let (told, ended) = oneshot::channel();
    let mut copies = copies();
    let events = match &copies.events {
        Some(events) => Arc::clone(events),
        None => begin(&mut copies)?,
    };
    let number = copies.next;
    copies.next += 1;
    epoll::add(&*events, &pipe, EventData::new_u64(number), EventFlags::IN)?;
    copies.open += 1;
    copies.waiting.insert(number, Copy { pipe, log, tail, told });
    Ok(ended)
}

/// Begins the thread. Without a pipe it waits for the first one.
fn begin(copies: &mut Copies) -> io::Result<Arc<OwnedFd>> {
    let events = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
    let waited_for = Arc::clone(&events);
    let thread = std::thread::Builder::new().name("process logs".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || run(&waited_for))?;
    copies.events = Some(Arc::clone(&events));
    Ok(events)
}

fn run(events: &OwnedFd) {
    let (mut ready, mut chunk) = (Vec::<Event>::with_capacity(EVENTS_MAX), vec![0; CHUNK_BYTES]);
    loop {
        match epoll::wait(events, spare_capacity(&mut ready), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("waiting for the output of processes failed: {error}"),
        }
        for event in ready.drain(..) {
            let number = event.data.u64();
            let taken = copies().waiting.remove(&number);
            let Some(mut copy) = taken else { continue };
            // What goes wrong with one log costs nobody else's.
            let read = catch_unwind(AssertUnwindSafe(|| copy.read_on(&mut chunk)));
            if read.unwrap_or(false) {
                copies().waiting.insert(number, copy);
                continue;
            }
            // A process between fork and exec may have the pipe too, so that closing it is not enough.
            let _ = epoll::delete(events, &copy.pipe);
            // The receiver may be gone.
            let _ = copy.told.send(());
            let mut copies = copies();
            copies.open -= 1;
            if copies.open == 0 {
                copies.events = None;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::log::{LogSpec, open};
    use super::*;

    fn threads() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("its threads");
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("process log")).count()
    }

    #[test]
    fn two_hundred_logs_have_one_thread_and_each_gets_its_own_lines_scl_02() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |number: usize| directory.path().join(format!("{number}.log"));
        let mut copying: Vec<_> = (0..200)
            .map(|number| {
                let (reader, writer) = io::pipe().expect("a pipe");
                let log = open(&LogSpec::at(path(number))).expect("it opens");
                let tail = Tail::default();
                (writer, tail.clone(), copy(reader, log, tail).expect("it is copied"))
            })
            .collect();
        // That of an earlier test may just be ending.
        assert!(threads() <= 2, "{} threads", threads());
        for line in 0..10 {
            for (number, (writer, _, _)) in copying.iter_mut().enumerate() {
                writeln!(writer, "line {line} of {number}").expect("it is read");
            }
        }
        for (number, (writer, tail, ended)) in copying.into_iter().enumerate() {
            drop(writer);
            ended.blocking_recv().expect("its end is told");
            let log = std::fs::read_to_string(path(number)).expect("the log");
            assert_eq!(log.lines().count(), 10);
            assert!(log.lines().all(|line| line.ends_with(&format!(" of {number}"))), "{log}");
            assert_eq!(tail.last_words(), Some(format!("line 9 of {number}")));
        }
    }

    #[test]
    fn a_process_that_floods_its_output_holds_up_no_other_log() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = |name: &str| open(&LogSpec::at(directory.path().join(name))).expect("it opens");
        let (flood, mut flooding) = io::pipe().expect("a pipe");
        let (quiet, mut writing) = io::pipe().expect("a pipe");
        let flooded = copy(flood, log("flood"), Tail::default()).expect("it is copied");
        let ended = copy(quiet, log("quiet"), Tail::default()).expect("it is copied");
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                flooding.write_all(&[b'x'; CHUNK_BYTES]).expect("it is read");
            }
        });
        writing.write_all(b"a quiet word\n").expect("it is read");
        drop(writing);
        ended.blocking_recv().expect("its end is told while the other goes on");
        assert_eq!(
            std::fs::read_to_string(directory.path().join("quiet")).expect("the log"),
            "a quiet word\n"
        );
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        thread.join().expect("no panic");
        flooded.blocking_recv().expect("its end is told too");
    }
}
