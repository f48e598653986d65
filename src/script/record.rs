//! What happened while a script was played: lines for its output, and marks for a picture of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_actors::registry::RegistryView;
use callboard_actors::shell::{Journal, JournalEntry, JournalLine};
use callboard_actors::vocabulary::AllocationId;
use tokio::time::Instant;

use super::told;
use crate::picture::{Arrow, Mark, Sign};
use crate::timeline::{Line, Teller, Voice};

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
    teller: Teller,
    workloads: BTreeSet<AllocationId>,
    marks: Vec<Mark>,
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
            teller: Teller::default(),
            workloads: BTreeSet::new(),
            marks: Vec::new(),
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

    // === The picture ===

    /// A new run of the host begins with what its registry holds.
    pub(super) fn begin_run(&self, view: &RegistryView) {
        let mut pages = self.pages();
        pages.teller = Teller::default();
        let lines = pages.teller.begin(view);
        lines.into_iter().for_each(|line| pages.draw_line(line));
    }

    /// From now on this allocation has a supervisor.
    pub(super) fn add_workload(&self, allocation: &AllocationId) {
        self.pages().workloads.insert(allocation.clone());
    }

    /// Puts a mark into the picture.
    pub(super) fn draw(&self, mark: Mark) {
        self.pages().marks.push(mark);
    }

    /// Everything that is in the picture.
    pub(super) fn marks(&self) -> Vec<Mark> {
        self.pages().marks.clone()
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
        let actor = actor.to_owned();
        match entry {
            JournalEntry::Published { news } => {
                let lines = self.teller.tell(*news);
                lines.into_iter().for_each(|line| self.draw_line(line));
            }
            JournalEntry::Writing { write } => self.marks.push(Mark::GateCloses { actor, write: *write }),
            JournalEntry::OnDisk { through } => {
                self.marks.push(Mark::GateOpens { actor, through: *through });
            }
            JournalEntry::WriteFailed { error } => {
                self.marks.push(Mark::GatesFall { actor: actor.clone() });
                self.sign(actor, Sign::Trouble, format!("not written: {error}"));
            }
            JournalEntry::Crashed { message } => self.sign(actor, Sign::Crash, format!("crashed: {message}")),
            JournalEntry::Built { is_rebuilt: true } => self.sign(actor, Sign::Restart, "rebuilt".to_owned()),
            JournalEntry::Built { is_rebuilt: false } => {}
            JournalEntry::Ended { ending, .. } => self.draw_end(actor, ending),
        }
    }

    fn draw_end(&mut self, actor: String, ending: &callboard_actors::shell::Ending) {
        use callboard_actors::shell::Ending;
        match ending {
            Ending::Normal => {}
            Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_) | Ending::Killed => {
                self.sign(actor, Sign::Crash, told::ending(ending));
            }
        }
    }

    fn sign(&mut self, actor: String, sign: Sign, text: String) {
        // An instance is drawn with its owner, and an eventor with its driver.
        let (column, text) = match actor.split_once(' ') {
            Some(("instance", about)) => ("instances".to_owned(), format!("{about} {text}")),
            Some(("eventor", driver)) => (format!("driver {driver}"), format!("its eventor {text}")),
            Some(_) | None => (actor, text),
        };
        self.marks.push(Mark::Sign { actor: column, text, about: String::new(), sign });
    }

    fn draw_line(&mut self, line: Line) {
        if let Voice::Allocation(allocation) = &line.from
            && line.to == Voice::Registry
            && !self.workloads.contains(allocation)
        {
            // The script itself has spoken for it.
            return;
        }
        let about = about(&line);
        let (from, to, text) = (name(&line.from), name(&line.to), line.message);
        self.marks.push(if line.to == Voice::Everyone {
            Mark::Sign { actor: from, text, about, sign: Sign::News }
        } else {
            Mark::Message { from, to, text, about, arrow: Arrow::Said }
        });
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

/// The column of a voice: a script plays the host.
fn name(voice: &Voice) -> String {
    match voice {
        Voice::Agent | Voice::You | Voice::Timeline => "host".to_owned(),
        Voice::Allocation(_)
        | Voice::Process(_)
        | Voice::Registry
        | Voice::Instances
        | Voice::Inventory
        | Voice::Drivers
        | Voice::Driver(_)
        | Voice::Tasks
        | Voice::Task(_)
        | Voice::Actor(_)
        | Voice::Everyone
        | Voice::Disk => voice.to_string(),
    }
}

/// The plugin that a line is about, with its generation.
fn about(line: &Line) -> String {
    match (&line.plugin, line.generation) {
        (Some(plugin), Some(generation)) => format!("{plugin} @{generation}"),
        (Some(plugin), None) => plugin.to_string(),
        (None, Some(generation)) => format!("@{generation}"),
        (None, None) => String::new(),
    }
}
