//! The handlers of tasks: the items that each was handed, has read, and should have.

use std::collections::BTreeMap;

use callboard_actors::driver::{EventPosition, GapReason, TaskEventItem};
use callboard_actors::eventor::{Journal, JournalId, Taken};

use super::super::law::Law;
use super::super::law_checker::Verdict;
use super::environment::{Environment, marked};

/// The state of one handler. It outlives hosts if the handler writes it down.
#[derive(Debug, Clone, Copy, Hash, Default)]
struct HandlerState {
    /// The last event: the launch of the plugin, and the number within the task.
    last: Option<(u64, u32)>,
    /// Whether a gap was reported since.
    is_gap_told: bool,
    /// The last event before it registered: it need not have events up to this one.
    begun: Option<(u64, u32)>,
    /// How many events and missing events were put into the journal.
    kept: u64,
    /// How many were read from it.
    read: u64,
}

/// One journal, with its name.
#[derive(Debug, Clone, Hash)]
struct Subscriber {
    sink: JournalId,
    task: Option<u8>,
    journal: Journal,
    heir: Option<JournalId>,
    is_ended: bool,
    had: HandlerState,
    position: Option<EventPosition>,
}

/// All handlers of one driver's tasks.
#[derive(Debug, Clone, Hash, Default)]
pub struct Subscribers {
    list: Vec<Subscriber>,
    /// The state that each task's handler wrote down before its host ended.
    written: BTreeMap<u8, (HandlerState, Option<EventPosition>)>,
    journal_items: usize,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl Subscribers {
    /// No task has a handler yet. Journals of sinks that are not read hold this number of items.
    #[must_use]
    pub fn new(journal_items: usize) -> Self {
        Self { journal_items, ..Self::default() }
    }

    fn violation(&mut self, law: Law, what: String) {
        self.verdict.violation(law, || what);
    }

    // === Sinks ===

    /// A handler of a task registers, with a journal of this number of items: it continues from the position that the task's last
    /// handler of an earlier run wrote down.
    pub(super) fn comes(&mut self, sink: JournalId, task: u8, limit: usize, environment: &Environment) {
        let (had, position) = self.written.remove(&task).unwrap_or_default();
        let begun = had.last.is_none().then(|| environment.latest_of(task)).flatten();
        let had = HandlerState { last: had.last, begun, ..HandlerState::default() };
        self.list.push(Subscriber {
            sink,
            task: Some(task),
            journal: Journal::new(limit, position.clone()),
            heir: None,
            is_ended: false,
            had,
            position,
        });
    }

    /// Whether this sink is known here.
    pub(super) fn knows(&self, sink: JournalId) -> bool {
        self.list.iter().any(|subscriber| subscriber.sink == sink)
    }

    /// Whether a handler waits that was not notified that no more events come.
    pub(super) fn is_waiting(&self) -> bool {
        self.list.iter().any(|subscriber| subscriber.task.is_some() && !subscriber.is_ended)
    }

    fn place(&mut self, sink: JournalId) -> usize {
        if let Some(place) = self.list.iter().position(|subscriber| subscriber.sink == sink) {
            return place;
        }
        self.list.push(Subscriber {
            sink,
            task: None,
            journal: Journal::new(self.journal_items, None),
            heir: None,
            is_ended: false,
            had: HandlerState::default(),
            position: None,
        });
        self.list.len() - 1
    }

    /// The position of the last event that was put into a sink, or that its handler had before.
    pub(super) fn position(&mut self, sink: JournalId) -> Option<EventPosition> {
        let place = self.place(sink);
        self.list[place].journal.last().cloned()
    }

    pub(super) fn put(&mut self, sink: JournalId, item: TaskEventItem) {
        let mut place = self.place(sink);
        while let Some(heir) = self.list[place].heir {
            place = self.place(heir);
        }
        let subscriber = &mut self.list[place];
        // Its handler was notified that no more events come, and waits for nothing.
        if subscriber.is_ended {
            return;
        }
        let weight = weight(&item);
        if subscriber.journal.put(item) == Taken::Kept {
            subscriber.had.kept += weight;
        }
    }

    pub(super) fn hand_over(&mut self, from: JournalId, to: JournalId) {
        let place = self.place(from);
        while let Some(item) = self.list[place].journal.take() {
            self.put(to, item);
        }
        self.list[place].heir = Some(to);
    }

    pub(super) fn end(&mut self, sink: JournalId) {
        let place = self.place(sink);
        self.list[place].is_ended = true;
    }

    /// The host is gone. Handlers that wrote down a position continue from there in the next run.
    pub(super) fn next_run(&mut self) {
        for subscriber in std::mem::take(&mut self.list) {
            if let (Some(task), Some(position)) = (subscriber.task, subscriber.position) {
                self.written.insert(task, (subscriber.had, Some(position)));
            }
        }
    }

    // === Reading ===

    /// Whether items wait for a handler.
    pub(super) fn has_unread(&self) -> bool {
        self.list.iter().any(|subscriber| subscriber.task.is_some() && !subscriber.journal.is_empty())
    }

    /// Every handler reads its waiting items.
    pub(super) fn read(&mut self) {
        for place in 0..self.list.len() {
            if self.list[place].task.is_none() {
                continue;
            }
            while let Some(item) = self.list[place].journal.take() {
                self.list[place].had.read += weight(&item);
                self.reads(place, &item);
            }
            let HandlerState { kept, read, .. } = self.list[place].had;
            if kept != read {
                self.violation(
                    Law::Evt1,
                    format!("{kept} events were put into a journal, and its reader knows of {read}"),
                );
            }
        }
        self.list.retain(|subscriber| !(subscriber.is_ended && subscriber.journal.is_empty()));
    }

    fn reads(&mut self, place: usize, item: &TaskEventItem) {
        let subscriber = &mut self.list[place];
        match item {
            TaskEventItem::Gap { missed, reason } => {
                subscriber.had.is_gap_told = true;
                if *reason == GapReason::HandlerTooSlow && missed.is_none_or(|missed| missed == 0) {
                    self.violation(Law::Evt1, "a slow handler is not told how much it missed".to_owned());
                }
            }
            TaskEventItem::Event { event, position } => {
                let (launch, ordinal) = marked(event);
                let HandlerState { last, is_gap_told, .. } = subscriber.had;
                subscriber.had.last = Some((launch, ordinal));
                subscriber.had.is_gap_told = false;
                subscriber.position.clone_from(position);
                let Some(last) = last else { return };
                if (launch, ordinal) <= last {
                    self.violation(Law::Evt2, format!("event {launch}.{ordinal} comes after {last:?}"));
                } else if (launch, ordinal) != (last.0, last.1 + 1) && !is_gap_told {
                    let what = format!("event {launch}.{ordinal} follows on {last:?}, and no gap is told");
                    self.violation(Law::Evt2, what);
                }
            }
        }
    }

    /// At rest, the handler of each task has had its latest event, or knows that something is missing.
    pub(super) fn check_calm(&mut self, environment: &Environment) {
        let latest = |subscriber: &Subscriber| subscriber.task.and_then(|task| environment.latest_of(task));
        let late: Vec<_> = self
            .list
            .iter()
            .filter(|subscriber| {
                !subscriber.is_ended && subscriber.heir.is_none() && subscriber.task.is_some()
            })
            .filter_map(|subscriber| Some((latest(subscriber)?, subscriber.had)))
            .filter(|(latest, had)| latest.1 > 0 && had.begun != Some(*latest))
            .filter(|(latest, had)| had.last != Some(*latest) && !had.is_gap_told)
            .collect();
        for (latest, had) in late {
            // The first events of a plugin without positions may come before any handler listens.
            if environment.stream().is_some() || had.last.is_some() {
                let what =
                    format!("all is calm, {latest:?} was told, and its handler knows of {:?}", had.last);
                self.violation(Law::Evt2, what);
            }
        }
    }
}

fn weight(item: &TaskEventItem) -> u64 {
    match item {
        TaskEventItem::Event { .. } => 1,
        TaskEventItem::Gap { missed, .. } => missed.unwrap_or(0),
    }
}
