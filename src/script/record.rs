//! What happened while a script was played: lines for its output, and marks for a picture of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_actors::shell::{Journal, JournalEntry, JournalLine};
use tokio::time::Instant;

use super::drawn::Drawn;
use super::told;
use crate::picture::Mark;

/// Whose lines a script can choose to hear, in the order in which they are shown when they came at the same time.
pub(super) const VOICES: [&str; 8] =
    ["registry", "instances", "inventory", "allocations", "drivers", "processes", "host", "notices"];

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
    heard: BTreeSet<usize>,
    noted: Vec<Noted>,
    drawn: Drawn,
}

/// The record of one script. Clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Record(Arc<Mutex<Pages>>);

impl Record {
    /// Begins now, in the time of the runtime.
    pub(super) fn begin() -> Self {
        let pages = Pages {
            began: Instant::now(),
            heard: (0..VOICES.len()).collect(),
            noted: Vec::new(),
            drawn: Drawn::default(),
        };
        Self(Arc::new(Mutex::new(pages)))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let record = self.clone();
        Journal::new(move |JournalLine { actor, entry, .. }| record.pages().note(actor, &entry))
    }

    /// Notes something that a voice says.
    pub(super) fn say(&self, voice: &str, text: &str) {
        self.pages().say(voice, text);
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
    pub(super) fn in_picture(&self, draw: impl FnOnce(&mut Drawn)) {
        draw(&mut self.pages().drawn);
    }

    /// Everything that is in the picture, with each text as it is to be shown.
    pub(super) fn marks(&self, shown: impl Fn(&str) -> String) -> Vec<Mark> {
        self.pages().drawn.marks(shown)
    }
}

impl Pages {
    fn say(&mut self, voice: &str, text: &str) {
        let Some(place) = VOICES.iter().position(|known| *known == voice) else { return };
        if self.heard.contains(&place) {
            let at = self.began.elapsed();
            let lines =
                text.lines().map(|line| Noted { at, rank: 1 + place, text: format!("{voice}: {line}") });
            self.noted.extend(lines);
        }
    }

    fn note(&mut self, actor: &str, entry: &JournalEntry<'_>) {
        let owner = owner(actor);
        match told::entry(entry) {
            Some(text) if owner == actor => self.say(actor, &text),
            Some(text) => self.say(owner, &format!("{actor} {text}")),
            None => {}
        }
        self.drawn.note(actor, entry);
    }
}

/// Under whose name it is told what an actor does: its own, or its owner's.
fn owner(actor: &str) -> &str {
    match actor.split_once(' ') {
        Some(("instance", _)) => "instances",
        Some(("allocation", _)) => "allocations",
        Some(("driver" | "eventor", _)) => "drivers",
        Some(("process", _)) => "processes",
        Some(_) | None => actor,
    }
}
