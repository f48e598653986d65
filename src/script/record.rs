//! Records the events of a played script: lines for its output, and marks for a picture of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_actors::shell::{Detail, FeedItem, Journal, JournalLine, Subscription};
use callboard_actors::vocabulary::Timestamp;
use tokio::time::Instant;

use crate::picture::Mark;
use crate::timeline::{self, Played};

/// The sources whose lines a script can choose to show, in the order of lines of the same time. No time passes while threads work for an
/// actor, so the order of arrival may differ from run to run, but the script must not.
pub(super) const VOICES: [&str; 9] = [
    "registry",
    "instances",
    "inventory",
    "allocations",
    "drivers",
    "processes",
    "volumes",
    "host",
    "notices",
];

/// How many entries of the journal may wait in the queue.
const ENTRIES_MAX: usize = 1_000_000;

/// A line that waits to be shown.
#[derive(Debug)]
struct Noted {
    at: Duration,
    rank: usize,
    text: String,
}

#[derive(Debug)]
struct Pages {
    began: Instant,
    /// The same time on the clock of the hosts.
    began_at: Timestamp,
    journal: Journal,
    entries: Subscription<JournalLine, ()>,
    heard: BTreeSet<usize>,
    noted: Vec<Noted>,
    drawn: Played,
}

/// The record of one script. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Record(Arc<Mutex<Pages>>);

impl Record {
    /// Begins now, in the time of the runtime; the clock of the hosts shows this time.
    pub(super) fn begin(began_at: Timestamp) -> Self {
        let journal = Journal::default();
        let entries = journal.follow("script", ENTRIES_MAX, Detail::Outcomes);
        let pages = Pages {
            began: Instant::now(),
            began_at,
            journal,
            entries,
            heard: (0..VOICES.len()).collect(),
            noted: Vec::new(),
            drawn: Played::default(),
        };
        Self(Arc::new(Mutex::new(pages)))
    }

    /// The pages, with all present entries of the journal.
    fn pages(&self) -> MutexGuard<'_, Pages> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.take_entries();
        pages
    }

    /// How long the script has been played, in virtual time.
    pub(super) fn elapsed(&self) -> Duration {
        self.pages().began.elapsed()
    }

    /// Sets the sources that the script shows from now on.
    pub(super) fn hear(&self, voices: BTreeSet<usize>) {
        self.pages().heard = voices;
    }

    /// The journal to which the actors of a host write.
    pub(super) fn journal(&self) -> Journal {
        self.pages().journal.clone()
    }

    /// Records a line of a source.
    pub(super) fn say(&self, voice: &str, text: &str) {
        let mut pages = self.pages();
        let at = pages.began.elapsed();
        pages.say(at, voice, text);
    }

    /// Records an answer; answers precede news.
    pub(super) fn answer(&self, text: String) {
        let mut pages = self.pages();
        let at = pages.began.elapsed();
        pages.noted.push(Noted { at, rank: 0, text });
    }

    /// Takes the lines since the last call, lines of one instant in the order of their sources, each with its time. If no time was to pass,
    /// answers precede all news.
    pub(super) fn take(&self, is_by_time: bool) -> Vec<(Duration, String)> {
        let mut noted = std::mem::take(&mut self.pages().noted);
        noted.sort_by_key(|noted| (!is_by_time && noted.rank > 0, noted.at.as_millis(), noted.rank));
        noted.into_iter().map(|noted| (noted.at, noted.text)).collect()
    }

    /// Puts a mark into the picture.
    pub(super) fn draw(&self, mark: Mark) {
        self.in_picture(|drawn| drawn.put(mark));
    }

    /// Draws something that depends on which actors live.
    pub(super) fn in_picture(&self, draw: impl FnOnce(&mut Played)) {
        let mut pages = self.pages();
        let at = pages.began.elapsed();
        pages.drawn.at(at);
        draw(&mut pages.drawn);
    }

    /// All marks of the picture, with each text converted by `shown`.
    pub(super) fn marks(&self, shown: impl Fn(&str) -> String) -> Vec<Mark> {
        self.pages().drawn.marks(shown)
    }
}

impl Pages {
    fn say(&mut self, at: Duration, voice: &str, text: &str) {
        let Some(place) = VOICES.iter().position(|known| *known == voice) else { return };
        if self.heard.contains(&place) {
            let lines =
                text.lines().map(|line| Noted { at, rank: 1 + place, text: format!("{voice}: {line}") });
            self.noted.extend(lines);
        }
    }

    fn take_entries(&mut self) {
        while let Some(item) = self.entries.try_next() {
            match item {
                FeedItem::Change { news: line, .. } => self.note(&line),
                FeedItem::Lagged { missed } => {
                    let text = format!("{missed} events are missing here: the script waited too long");
                    self.noted.push(Noted { at: self.began.elapsed(), rank: 0, text });
                }
                // The snapshot has no content.
                FeedItem::Snapshot { .. } => {}
            }
        }
    }

    fn note(&mut self, line: &JournalLine) {
        let (actor, at) = (&*line.actor, line.at.since(self.began_at));
        let owner = owner(actor);
        match timeline::sentence(&line.entry) {
            Some(text) if owner == actor => self.say(at, actor, &text),
            Some(text) => self.say(at, owner, &format!("{actor} {text}")),
            None => {}
        }
        self.drawn.at(at);
        self.drawn.note(line);
    }
}

/// The name under which the actions of an actor are shown: its own, or its owner's.
fn owner(actor: &str) -> &str {
    match actor.split_once(' ') {
        Some(("instance", _)) => "instances",
        Some(("allocation", _)) => "allocations",
        Some(("driver" | "eventor", _)) => "drivers",
        Some(("process", _)) => "processes",
        Some(("volume", _)) => "volumes",
        Some(_) | None => actor,
    }
}
