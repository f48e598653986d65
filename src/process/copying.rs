//! Copies the output of all processes to their logs: disks are slow, and a plugin that floods its output must not block the host. Two
//! threads serve all processes; a thread for each would cost a host with a thousand plugins a thousand threads.
//!
//! ```text
//!  pipes ──► reader: a chunk of each in its turn ──► queue ──► writer ──► logs
//!                 ▲                                              │
//!                 └────────── the log is free again ◄────────────┘
//! ```
//!
//! Both threads exist while a pipe is open. The reader never touches a disk. A log that has not accepted a chunk within [`HUNG_AFTER`]
//! hangs: until it accepts the chunk, the output of its process is read and dropped, so that the process does not block, and the log
//! records how much was dropped. The writer is then replaced, so that a hanging log costs one thread. The other logs wait for their turn
//! meanwhile and lose nothing, unless no other writer can be started: then logs that have waited that long hang, too.

mod writer;

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use callboard_actors::vocabulary::milliseconds;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use tokio::sync::oneshot;

use self::writer::{Hung, Writers, Written};
use super::log::LogFile;
use super::tail::Tail;

/// The size of one read.
const CHUNK_BYTES: usize = 16 * 1_024;
const STACK_BYTES: usize = 128 * 1_024;
/// How many pipe events are handled at once.
const EVENTS_MAX: usize = 64;
/// How long a log may take for a chunk before it hangs.
const HUNG_AFTER: Duration = Duration::from_secs(1);
/// The interval of that check.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// The number by which the writer wakes the reader.
const WAKE: u64 = u64::MAX;
/// One event for each pipe, and no further event until it is requested again.
const ONE: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);

/// All pipes that are open.
static COPIES: Mutex<Copies> =
    Mutex::new(Copies { events: None, waiting: BTreeMap::new(), open: 0, next: 0 });

struct Copies {
    /// The events that the reader waits for; `None` without a reader.
    events: Option<Arc<OwnedFd>>,
    /// All copies except the one that is being read.
    waiting: BTreeMap<u64, Copy>,
    open: usize,
    next: u64,
}

struct Copy {
    pipe: PipeReader,
    place: Place,
    tail: Tail,
    told: oneshot::Sender<()>,
}

/// Where the log of a copy is.
enum Place {
    /// Here.
    Free(LogFile),
    /// With the writer, since this time.
    Writing(Instant),
    /// With the writer for too long. This many bytes were dropped since.
    Hung { since: Instant, left_out: u64 },
}

/// Never locked during a read or a write.
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
    epoll::add(&*events, &pipe, EventData::new_u64(number), ONE)?;
    copies.open += 1;
    copies.waiting.insert(number, Copy { pipe, place: Place::Free(log), tail, told });
    Ok(ended)
}

/// Starts the threads. Without a pipe they wait for the first one.
fn begin(copies: &mut Copies) -> io::Result<Arc<OwnedFd>> {
    let events = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
    let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    epoll::add(&*events, &*wake, EventData::new_u64(WAKE), EventFlags::IN)?;
    let (written, returned) = channel();
    let writers = Writers::start(written, Arc::clone(&wake))?;
    let reader = Reader { events: Arc::clone(&events), wake, writers, returned, looked: Instant::now() };
    let thread = std::thread::Builder::new().name("process logs".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || reader.run())?;
    copies.events = Some(Arc::clone(&events));
    Ok(events)
}

struct Reader {
    events: Arc<OwnedFd>,
    wake: Arc<OwnedFd>,
    writers: Writers,
    returned: Receiver<Written>,
    /// The time of the last check for hanging logs.
    looked: Instant,
}

impl Reader {
    fn run(mut self) {
        let (mut ready, mut chunk) = (Vec::<Event>::with_capacity(EVENTS_MAX), vec![0; CHUNK_BYTES]);
        loop {
            let limit = self.writers.has_work().then_some(&LOOK_EVERY);
            match epoll::wait(&*self.events, spare_capacity(&mut ready), limit) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("waiting for the output of processes failed: {error}"),
            }
            for event in ready.drain(..) {
                let number = event.data.u64();
                if number == WAKE {
                    // Only the counter matters; reading resets it.
                    let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                } else if self.read_on(number, &mut chunk) {
                    return;
                }
            }
            while let Ok(Written { number, log }) = self.returned.try_recv() {
                self.is_free(number, log);
            }
            if self.looked.elapsed() >= HUNG_AFTER / 2 {
                self.looked = Instant::now();
                self.look_for_hung();
            }
        }
    }

    /// Reads available bytes, at most one chunk. Returns true at the end of the last pipe.
    fn read_on(&mut self, number: u64, chunk: &mut [u8]) -> bool {
        let taken = copies().waiting.remove(&number);
        let Some(mut copy) = taken else { return false };
        // The pipe of a hung log is still polled when the log becomes free and accepts the notice. Reading continues after that.
        if matches!(copy.place, Place::Writing(_)) {
            self.put_back(number, copy);
            return false;
        }
        let length = match copy.pipe.read(chunk) {
            Ok(0) => return self.close(copy),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(_) => return self.close(copy),
        };
        copy.tail.push(&chunk[..length]);
        copy.place = match copy.place {
            Place::Free(log) if length > 0 => {
                self.writers.take(number, log, chunk[..length].to_vec());
                Place::Writing(Instant::now())
            }
            Place::Hung { since, left_out } => Place::Hung { since, left_out: left_out + length as u64 },
            place => place,
        };
        self.put_back(number, copy);
        false
    }

    /// Keeps a copy. Its pipe is read further unless its log is about to accept a chunk.
    fn put_back(&self, number: u64, copy: Copy) {
        if !matches!(copy.place, Place::Writing(_)) {
            let asked = epoll::modify(&*self.events, &copy.pipe, EventData::new_u64(number), ONE);
            asked.expect("the pipe was added, and is open");
        }
        copies().waiting.insert(number, copy);
    }

    fn is_free(&mut self, number: u64, log: LogFile) {
        let taken = copies().waiting.remove(&number);
        // A closed pipe no longer needs a log.
        let Some(mut copy) = taken else { return };
        copy.place = match copy.place {
            Place::Hung { since, left_out: left_out @ 1.. } => {
                let hung = since.elapsed();
                tracing::warn!(
                    path = %log.path().display(), left_out, hung_ms = milliseconds(hung),
                    "the log of a process can be written again"
                );
                let seconds = hung.as_secs();
                let notice =
                    format!("\n[{left_out} bytes left out: this log could not be written for {seconds} s]\n");
                self.writers.take(number, log, notice.into_bytes());
                Place::Writing(Instant::now())
            }
            Place::Free(_) | Place::Writing(_) | Place::Hung { .. } => Place::Free(log),
        };
        self.put_back(number, copy);
    }

    /// Continues to read the pipes of hanging logs, and has the others written.
    fn look_for_hung(&mut self) {
        let is_late =
            |copy: &Copy| matches!(copy.place, Place::Writing(since) if since.elapsed() >= HUNG_AFTER);
        let hung: Vec<u64> = match self.writers.replace_hung() {
            Hung::None => return,
            Hung::One(number) => vec![number],
            Hung::Queue => {
                copies().waiting.iter().filter(|(_, copy)| is_late(copy)).map(|(number, _)| *number).collect()
            }
        };
        for number in hung {
            let taken = copies().waiting.remove(&number);
            let Some(mut copy) = taken else { continue };
            if let Place::Writing(since) = copy.place {
                copy.place = Place::Hung { since, left_out: 0 };
            }
            self.put_back(number, copy);
        }
    }

    fn close(&self, copy: Copy) -> bool {
        // A process between fork and exec may have the pipe too, so closing it is not enough.
        let _ = epoll::delete(&*self.events, &copy.pipe);
        if let Place::Hung { left_out, .. } = copy.place {
            tracing::warn!(left_out, "cannot write the log of a process that has ended");
        }
        // The receiver may be gone.
        let _ = copy.told.send(());
        let mut copies = copies();
        copies.open -= 1;
        if copies.open == 0 {
            copies.events = None;
        }
        copies.open == 0
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use rustix::event::{PollFd, PollFlags, poll};

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
        // The threads of an earlier test may just be ending.
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
            assert_eq!(
                tail.last_words(),
                Some(format!("line 7 of {number} | line 8 of {number} | line 9 of {number}"))
            );
        }
    }

    #[test]
    fn a_log_that_hangs_holds_up_neither_its_process_nor_another_log() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut disk, hanging) = io::pipe().expect("a pipe");
        let hung = LogFile::over(File::from(OwnedFd::from(hanging)));
        let ((loud, mut writing), (quiet, mut speaking)) =
            (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
        let loud_ended = copy(loud, hung, Tail::default()).expect("it is copied");
        // The pipe in place of a disk takes 64 KiB, and so does the pipe of the process.
        writing.write_all(&vec![b'x'; 1_024 * 1_024]).expect("it is read");
        let log = open(&LogSpec::at(directory.path().join("quiet"))).expect("it opens");
        let quiet_ended = copy(quiet, log, Tail::default()).expect("it is copied");
        speaking.write_all(b"a quiet word\n").expect("it is read");
        drop(speaking);
        quiet_ended.blocking_recv().expect("its end is told while the other log hangs");
        assert_eq!(
            std::fs::read_to_string(directory.path().join("quiet")).expect("the log"),
            "a quiet word\n"
        );

        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains("bytes left out: this log could not be written for") {
            let mut chunk = [0; CHUNK_BYTES];
            let length = disk.read(&mut chunk).expect("it is open");
            read.extend_from_slice(&chunk[..length]);
        }
        writing.write_all(b"it goes on\n").expect("it is read");
        drop(writing);
        let mut rest = String::new();
        disk.read_to_string(&mut rest).expect("the log is closed with its pipe");
        assert!(rest.ends_with("it goes on\n"), "{rest}");
        loud_ended.blocking_recv().expect("its end is told");
    }

    /// Whether the copy of this pipe waits for its log.
    fn is_writing(pipe: &PipeReader) -> bool {
        let number = |pipe: &PipeReader| rustix::fs::fstat(pipe).expect("it is open").st_ino;
        let sought = number(pipe);
        let is_so = |copy: &Copy| number(&copy.pipe) == sought && matches!(copy.place, Place::Writing(_));
        copies().waiting.values().any(is_so)
    }

    #[test]
    fn what_a_process_writes_while_its_log_takes_the_notice_is_not_lost() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut disk, hanging) = io::pipe().expect("a pipe");
        let hung = LogFile::over(File::from(OwnedFd::from(hanging)));
        let (loud, mut writing) = io::pipe().expect("a pipe");
        let seen = loud.try_clone().expect("a copy");
        let until = |holds: &dyn Fn() -> bool| {
            let began = Instant::now();
            while !holds() {
                assert!(began.elapsed() < Duration::from_secs(30), "the log is in another state");
                std::thread::yield_now();
            }
        };
        let unread = |pipe: &PipeReader| rustix::io::ioctl_fionread(pipe).expect("a pipe");
        let loud_ended = copy(loud, hung, Tail::default()).expect("it is copied");
        // The pipe in place of a disk takes four chunks; the fifth hangs, and then the sixth is dropped.
        writing.write_all(&vec![b'x'; 6 * CHUNK_BYTES]).expect("it is read");
        until(&|| unread(&seen) == 0 && !is_writing(&seen));
        // The fifth is written now, and there is no room for the notice.
        disk.read_exact(&mut vec![0; CHUNK_BYTES]).expect("it is open");
        until(&|| is_writing(&seen));
        writing.write_all(b"it goes on\n").expect("there is room");
        // When the end of another pipe is reported, the reader has handled all earlier events.
        let (other, closed) = io::pipe().expect("a pipe");
        let log = open(&LogSpec::at(directory.path().join("other"))).expect("it opens");
        let other_ended = copy(other, log, Tail::default()).expect("it is copied");
        drop(closed);
        other_ended.blocking_recv().expect("its end is told");
        let (mut read, mut next) = (Vec::new(), vec![0; CHUNK_BYTES]);
        let told = |read: &[u8]| {
            let text = String::from_utf8_lossy(read);
            // On a slow machine the notice may hang as well, and that is then reported.
            text.ends_with("s]\nit goes on\n") || text.contains("[11 bytes left out")
        };
        while !told(&read) {
            let mut fds = [PollFd::new(&disk, PollFlags::IN)];
            let more = poll(&mut fds, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).expect("it is open");
            assert!(more > 0, "the line is neither written nor told as left out");
            let length = disk.read(&mut next).expect("it is open");
            read.extend_from_slice(&next[..length]);
            let tail = read.len().saturating_sub(CHUNK_BYTES);
            read.drain(..tail);
        }
        drop(writing);
        loud_ended.blocking_recv().expect("its end is told");
    }

    #[test]
    fn a_log_that_waits_behind_one_that_hangs_loses_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (mut disk, hanging) = io::pipe().expect("a pipe");
        let hung = LogFile::over(File::from(OwnedFd::from(hanging)));
        let ((loud, mut writing), (quiet, mut speaking)) =
            (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
        let (loud_seen, quiet_seen) = (loud.try_clone().expect("a copy"), quiet.try_clone().expect("a copy"));
        let await_unread = |pipe: &PipeReader, bytes: u64| {
            while rustix::io::ioctl_fionread(pipe).expect("a pipe") != bytes {
                std::thread::yield_now();
            }
        };
        let log = open(&LogSpec::at(directory.path().join("quiet"))).expect("it opens");
        let quiet_ended = copy(quiet, log, Tail::default()).expect("it is copied");
        let loud_ended = copy(loud, hung, Tail::default()).expect("it is copied");
        // The pipe in place of a disk takes four chunks; the fifth hangs, and the rest stays in the pipe of the process.
        writing.write_all(&vec![b'x'; 6 * CHUNK_BYTES]).expect("it is read");
        await_unread(&loud_seen, CHUNK_BYTES as u64);
        speaking.write_all(b"one\n").expect("it is read");
        await_unread(&quiet_seen, 0);
        speaking.write_all(b"two\n").expect("it is read");
        drop(speaking);
        quiet_ended.blocking_recv().expect("its end is told while the other log hangs");
        assert_eq!(std::fs::read_to_string(directory.path().join("quiet")).expect("the log"), "one\ntwo\n");

        drop(writing);
        std::thread::spawn(move || io::copy(&mut disk, &mut io::sink()));
        loud_ended.blocking_recv().expect("its end is told");
    }

    /// Holds C176.
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
