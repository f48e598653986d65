//! Task events without loss or duplicates.
//!
//! The protocol's event stream has no position: a host whose stream breaks loses the events of the gap (EVT-02). So each of
//! our events has a number within a named stream and is kept in a journal of bounded length. A host can ask for the events
//! after the last one that it received.
//!
//! ```text
//!  announce ─► journal: number it, keep it ─► file, if the journal is kept in one ─► every follower
//!
//!  host ──  callboard-events-after: <stream>:<sequence>  ──►
//!  host ◄── callboard-events-stream: <stream>             ── then the later events, and new events as they arrive
//!  host ◄── annotations callboard.stream, callboard.sequence ── each event
//! ```
//!
//! [`callboard_actors::driver`] defines these names; its eventor is the other end.
//!
//! - A host that sends no position (any host except ours) gets the events that no such host has received yet: after the plugin's start all
//!   of them, after a broken stream the events of the gap. So an agent that restarts misses no event of a plugin that it joins (T173).
//!   Events in flight when a stream breaks are lost.
//! - A host with a position in another stream gets the whole journal: it has no event of this stream.
//! - A follower has no queue: it reads the journal at its own pace. A follower that falls too far behind finds a gap in the numbers.
//!
//! A journal in memory begins a new stream with each process. A journal in a file continues the stream and its numbers, so even the death
//! of the plugin neither loses nor duplicates an announced event. After a reboot, and if the file is damaged, a new stream begins: numbers
//! that were lost must not be assigned to other events.

mod journal;

mod file;
mod position;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{io, mem};

use callboard_proto::drivers::{DriverTaskEvent, TaskConfig};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;

use self::file::JournalFile;
use self::journal::Journal;
pub use self::position::{EventsFrom, position_of};

/// The default number of events kept.
pub const EVENTS_KEPT: usize = 4_096;
/// The number of events that a follower reads from the journal at once.
const BATCH_EVENTS: usize = 64;

/// The events of a driver. Clones share them.
#[derive(Debug, Clone)]
pub struct Events(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    book: Mutex<Book>,
    /// The number of the last event sent to hosts that send no position.
    given: Mutex<u64>,
    /// The number of the last event; wakes followers.
    last: watch::Sender<u64>,
}

#[derive(Debug)]
struct Book {
    journal: Journal,
    file: Option<JournalFile>,
}

impl Events {
    /// Keeps the last `kept` events in memory, in a new stream.
    ///
    /// # Errors
    /// If the system gives no randomness for the name of the stream.
    pub fn in_memory(kept: usize) -> io::Result<Self> {
        let journal = Journal::new(super::random::hex::<16>()?, kept);
        Ok(Self::of(Book { journal, file: None }))
    }

    /// Keeps the last `kept` events in a file, and continues the stream in it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or another process has it open.
    pub fn in_file(path: &Path, kept: usize) -> io::Result<Self> {
        let (file, journal) = JournalFile::open(path, kept)?;
        Ok(Self::of(Book { journal, file: Some(file) }))
    }

    fn of(book: Book) -> Self {
        let given = book.journal.last();
        Self(Arc::new(Shared {
            book: Mutex::new(book),
            given: Mutex::new(given),
            last: watch::Sender::new(given),
        }))
    }

    /// Announces an event of a task; `task` is the configuration that the task was started with.
    pub fn tell(&self, task: &TaskConfig, message: impl Into<String>) {
        self.announce(DriverTaskEvent {
            task_id: task.id.clone(),
            alloc_id: task.alloc_id.clone(),
            task_name: task.name.clone(),
            message: message.into(),
            ..DriverTaskEvent::default()
        });
    }

    /// Keeps an event and sends it to every follower. Sets the time if it is missing, and always the number. Hosts find the
    /// handler of an event by its allocation and task name; an event without them reaches no handler (EVT-02).
    ///
    /// An event that cannot be written to the file is sent in a new stream: the old stream must not use numbers that are not on disk.
    pub fn announce(&self, mut event: DriverTaskEvent) {
        event.timestamp.get_or_insert_with(|| SystemTime::now().into());
        let mut book = self.0.book.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = book.write(&event) {
            tracing::error!(error = %error, "cannot write events to their file any more; starting a new stream");
            book.begin_anew();
        }
        book.journal.keep(event);
        let last = book.journal.last();
        drop(book);
        self.0.last.send_replace(last);
    }

    /// Whether the journal holds an event for which `is_meant` is true.
    #[must_use]
    pub fn holds(&self, is_meant: impl Fn(&DriverTaskEvent) -> bool) -> bool {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner).journal.kept().any(is_meant)
    }

    /// The name of the stream.
    #[must_use]
    pub fn stream(&self) -> String {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner).journal.stream().to_owned()
    }

    /// Streams the events from a position, then new events as they arrive.
    pub fn follow(&self, from: &EventsFrom) -> impl Stream<Item = DriverTaskEvent> + Send + use<> {
        let shared = self.0.clone();
        let is_unplaced = *from == EventsFrom::Now;
        let cursor = match is_unplaced {
            true => *shared.given(),
            false => shared.book.lock().unwrap_or_else(PoisonError::into_inner).journal.cursor(from),
        };
        let last = shared.last.subscribe();
        let follower = Follower { last, shared, cursor, batch: Vec::new().into_iter(), is_unplaced };
        unfold(follower, |mut follower| async move {
            let event = follower.next().await?;
            Some((event, follower))
        })
    }
}

impl Shared {
    fn given(&self) -> MutexGuard<'_, u64> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the next events behind a cursor, and advances it.
    fn read(&self, cursor: &mut u64) -> Vec<DriverTaskEvent> {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let batch: Vec<_> = book.journal.after(*cursor).take(BATCH_EVENTS).collect();
        *cursor = book.journal.cursor_behind(*cursor, batch.len());
        batch
    }
}

impl Book {
    fn write(&mut self, event: &DriverTaskEvent) -> Option<io::Error> {
        let Self { journal, file } = self;
        file.as_mut()?.append(journal, event).err()
    }

    fn begin_anew(&mut self) {
        if let Some(file) = mem::take(&mut self.file) {
            file.give_up();
        }
        // Without randomness, a suffix makes the old name a new one.
        let name =
            super::random::hex::<16>().unwrap_or_else(|_| format!("{}-unwritten", self.journal.stream()));
        self.journal.rename(name);
    }
}

/// A subscriber of the events.
struct Follower {
    shared: Arc<Shared>,
    last: watch::Receiver<u64>,
    cursor: u64,
    batch: std::vec::IntoIter<DriverTaskEvent>,
    /// Whether its host sends no positions, so that `given` records its progress.
    is_unplaced: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<DriverTaskEvent> {
        loop {
            if let Some(event) = self.batch.next() {
                if self.is_unplaced
                    && let Some(position) = position_of(&event)
                {
                    let mut given = self.shared.given();
                    *given = position.sequence.max(*given);
                }
                return Some(event);
            }
            self.last.borrow_and_update();
            let batch = self.shared.read(&mut self.cursor);
            if batch.is_empty() {
                // `shared` holds the sender, so the sender lives as long as this follower.
                self.last.changed().await.ok()?;
            }
            self.batch = batch.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::EventPosition;
    use futures_util::StreamExt;

    use super::*;

    fn event(message: &str) -> DriverTaskEvent {
        DriverTaskEvent { task_id: "t".to_owned(), message: message.to_owned(), ..Default::default() }
    }

    async fn heard(events: &Events, from: &EventsFrom, count: usize) -> Vec<(u64, String)> {
        let stream = events.follow(from).take(count);
        let heard = stream.map(|event| (position_of(&event).expect("marked").sequence, event.message));
        tokio::time::timeout(std::time::Duration::from_secs(30), heard.collect()).await.expect("in time")
    }

    fn after(stream: &str, sequence: u64) -> EventsFrom {
        EventsFrom::After(EventPosition::new(stream, sequence).expect("well formed"))
    }

    #[tokio::test]
    async fn who_says_where_it_was_hears_all_that_came_after_and_nothing_twice_evt_02() {
        let events = Events::in_memory(10).expect("randomness");
        ["one", "two", "three"].into_iter().for_each(|message| events.announce(event(message)));
        let position = after(&events.stream(), 1);
        let rest = heard(&events, &position, 2).await;
        assert_eq!(rest, [(2, "two".to_owned()), (3, "three".to_owned())]);
        assert_eq!(heard(&events, &after("another", 99), 3).await.len(), 3);
        assert_eq!(heard(&events, &EventsFrom::read(Some("-:0")).expect("well formed"), 3).await.len(), 3);
    }

    #[tokio::test]
    async fn who_falls_behind_the_journal_sees_the_numbers_leap_evt_04() {
        let events = Events::in_memory(3).expect("randomness");
        (1..=10).for_each(|number| events.announce(event(&number.to_string())));
        let position = after(&events.stream(), 2);
        let numbers: Vec<_> = heard(&events, &position, 3).await.into_iter().map(|(n, _)| n).collect();
        assert_eq!(numbers, [8, 9, 10]);
    }

    #[tokio::test]
    async fn a_host_without_a_position_gets_the_events_that_none_without_one_has_got_t173() {
        let events = Events::in_memory(10).expect("randomness");
        events.announce(event("before"));
        {
            let mut following = std::pin::pin!(events.follow(&EventsFrom::Now));
            events.announce(event("after"));
            assert_eq!(following.next().await.expect("it goes on").message, "before");
            assert_eq!(following.next().await.expect("it goes on").message, "after");
        }
        events.announce(event("meanwhile"));
        let mut following = std::pin::pin!(events.follow(&EventsFrom::Now));
        assert_eq!(following.next().await.expect("it goes on").message, "meanwhile");
        assert_eq!(heard(&events, &EventsFrom::read(Some("-:0")).expect("well formed"), 3).await.len(), 3);
    }

    #[tokio::test]
    async fn a_stream_in_a_file_goes_on_after_the_death_of_its_process_evt_02() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("events");
        let first = Events::in_file(&path, 3).expect("a new file");
        (1..=20).for_each(|number| first.announce(event(&number.to_string())));
        let stream = first.stream();
        assert!(Events::in_file(&path, 3).is_err(), "one process at a time");
        drop(first);
        // A process that is killed while it writes leaves half a line.
        let mut torn = std::fs::OpenOptions::new().append(true).open(&path).expect("the file");
        io::Write::write_all(&mut torn, b"{\"sequence\":21,\"task").expect("room");
        let second = Events::in_file(&path, 3).expect("the file");
        assert_eq!(second.stream(), stream);
        second.announce(event("21"));
        let position = after(&stream, 18);
        let rest = heard(&second, &position, 3).await;
        assert_eq!(rest, [(19, "19".to_owned()), (20, "20".to_owned()), (21, "21".to_owned())]);
    }

    #[tokio::test]
    async fn no_number_is_given_out_again_after_a_new_start_of_the_machine_or_damage_evt_02() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("events");
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
        let of_earlier_boot = |text: String| text.replace(boot_id.trim(), "an earlier boot");
        let of_earlier_version = |text: String| text.replace("boot_id", "something");
        let without_head = |text: String| text.replacen('{', "", 1);
        let damaged = |text: String| text.replace("\"sequence\":2", "\0\0\0");
        let ways: [&dyn Fn(String) -> String; 4] =
            [&of_earlier_boot, &of_earlier_version, &without_head, &damaged];
        for change in ways {
            let first = Events::in_file(&path, 9).expect("a file");
            ["one", "two", "three"].into_iter().for_each(|message| first.announce(event(message)));
            let position = after(&first.stream(), 3);
            drop(first);
            let text = std::fs::read_to_string(&path).expect("the file");
            let changed = change(text.clone());
            assert_ne!(text, changed);
            std::fs::write(&path, changed).expect("room");
            let second = Events::in_file(&path, 9).expect("what is damaged hinders no start");
            second.announce(event("four"));
            assert_eq!(heard(&second, &position, 1).await, [(1, "four".to_owned())], "a new stream");
        }
    }
}
