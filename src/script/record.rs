//! What happened while a script was played: lines for its output, and marks for a picture of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_actors::shell::{Detail, FeedItem, Journal, JournalLine, Subscription};
use callboard_actors::vocabulary::Timestamp;
use tokio::time::Instant;

use crate::picture::Mark;
use crate::timeline::{self, Played};

/// Whose lines a script can choose to hear, in the order in which they are shown when they came at the same time. No time passes
/// while threads work for an actor, so the order in which they came may differ from run to run, and the script shall not.
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

/// How many entries of the journal may wait to be looked at.
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
    /// The same by the clock of the hosts.
    began_at: Timestamp,
    journal: Journal,
    entries: Subscription<JournalLine, ()>,
    heard: BTreeSet<usize>,
    noted: Vec<Noted>,
    drawn: Played,
}

/// The record of one script. Clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Record(Arc<Mutex<Pages>>);

impl Record {
    /// Begins now, in the time of the runtime; the clock of the hosts shows this.
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

    /// The pages, with all that the journal has by now.
    fn pages(&self) -> MutexGuard<'_, Pages> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.take_entries();
        pages
    }

    /// How long the script has been played, in its own time.
    pub(super) fn elapsed(&self) -> Duration {
        self.pages().began.elapsed()
    }

    /// Whom the script hears from now on.
    pub(super) fn hear(&self, voices: BTreeSet<usize>) {
        self.pages().heard = voices;
    }

    /// The journal in which the actors of a host write.
    pub(super) fn journal(&self) -> Journal {
        self.pages().journal.clone()
    }

    /// Notes something that a voice says.
    pub(super) fn say(&self, voice: &str, text: &str) {
        let mut pages = self.pages();
        let at = pages.began.elapsed();
        pages.say(at, voice, text);
    }

    /// Notes an answer; answers stand before news.
    pub(super) fn answer(&self, text: String) {
        let mut pages = self.pages();
        let at = pages.began.elapsed();
        pages.noted.push(Noted { at, rank: 0, text });
    }

    /// Takes the lines since this was last done, those of one instant in the order of their voices, with the time at which
    /// each came. Where no time was to pass, answers stand before all news.
    pub(super) fn take(&self, is_by_time: bool) -> Vec<(Duration, String)> {
        let mut noted = std::mem::take(&mut self.pages().noted);
        noted.sort_by_key(|noted| (!is_by_time && noted.rank > 0, noted.at.as_millis(), noted.rank));
        noted.into_iter().map(|noted| (noted.at, noted.text)).collect()
    }

    /// Puts a mark into the picture.
    pub(super) fn draw(&self, mark: Mark) {
        self.in_picture(|drawn| drawn.put(mark));
    }

    /// Draws something of which it matters who lives.
    pub(super) fn in_picture(&self, draw: impl FnOnce(&mut Played)) {
        let mut pages = self.pages();
        let at = pages.began.elapsed();
        pages.drawn.at(at);
        draw(&mut pages.drawn);
    }

    /// Everything that is in the picture, with each text as it is to be shown.
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
                // It has no content.
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
