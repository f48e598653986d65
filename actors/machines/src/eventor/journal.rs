//! The bounded journal of one task: the events that its handler has not read yet.

use std::collections::VecDeque;

use crate::driver::{EventPosition, GapReason, TaskEventItem};

/// The default limit of unread events for one handler (EVT-01).
pub const JOURNAL_ITEMS_MAX: usize = 1_000;

/// Names the journal of a task. The journals are kept where effects are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JournalId {
    /// The journal of a handler, which opened it.
    Handler(u64),
    /// The journal of a task without a handler yet (EVT-02).
    Parked(u64),
}

/// The result of putting an event into a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It waits to be read.
    Kept,
    /// It was received before and is ignored.
    Had,
}

/// The unread events of one task, in order. Each event is in it once, however often a plugin repeats it. When
/// it is full the oldest event is dropped, and a gap with the exact count is put in its place (EVT-01).
#[derive(Debug, Clone, Hash)]
pub struct Journal {
    items: VecDeque<TaskEventItem>,
    limit: usize,
    fallen: u64,
    last: Option<EventPosition>,
    /// Whether a gap was added since the last event that has a position.
    is_gap_told: bool,
}

impl Journal {
    /// An empty journal of at most so many items, for a handler that has received everything up to `after`.
    #[must_use]
    pub fn new(limit: usize, after: Option<EventPosition>) -> Self {
        Self { items: VecDeque::new(), limit: limit.max(1), fallen: 0, last: after, is_gap_told: false }
    }

    /// Adds the next item: an event unless it was received before, a gap unless the last entry is the same. An event of another
    /// stream never follows without a gap, wherever it waited before (EVT-02).
    pub fn put(&mut self, item: TaskEventItem) -> Taken {
        match &item {
            TaskEventItem::Event { position: Some(position), .. } => {
                if self.last.as_ref().is_some_and(|last| position.is_had_after(last)) {
                    return Taken::Had;
                }
                let is_elsewhere = self.last.as_ref().is_some_and(|last| last.stream != position.stream);
                if is_elsewhere && !self.is_gap_told {
                    self.keep(TaskEventItem::Gap { missed: None, reason: GapReason::NewStream });
                }
                position.mark(&mut self.last);
                self.is_gap_told = false;
            }
            TaskEventItem::Event { position: None, .. } => {}
            // Two gaps of unknown size in a row mean the same as one.
            TaskEventItem::Gap { missed: None, .. } if self.items.back() == Some(&item) => return Taken::Had,
            TaskEventItem::Gap { .. } => self.is_gap_told = true,
        }
        self.keep(item);
        Taken::Kept
    }

    fn keep(&mut self, item: TaskEventItem) {
        if self.items.len() >= self.limit {
            self.drop_oldest();
        }
        self.items.push_back(item);
    }

    /// Drops the oldest event. Gaps among the oldest are not lost: their count is added to the count of dropped events, and a gap of
    /// unknown size stays.
    fn drop_oldest(&mut self) {
        match self.items.pop_front() {
            Some(TaskEventItem::Event { .. }) => self.fallen += 1,
            Some(TaskEventItem::Gap { missed: Some(missed), .. }) => self.fallen += missed,
            Some(gap @ TaskEventItem::Gap { missed: None, .. }) => {
                match self.items.pop_front() {
                    Some(TaskEventItem::Event { .. }) => self.fallen += 1,
                    Some(TaskEventItem::Gap { missed: Some(missed), .. }) => self.fallen += missed,
                    Some(TaskEventItem::Gap { missed: None, .. }) | None => {}
                }
                self.items.push_front(gap);
            }
            None => {}
        }
    }

    /// Takes out the next item.
    pub fn take(&mut self) -> Option<TaskEventItem> {
        if self.fallen > 0 {
            let missed = Some(std::mem::take(&mut self.fallen));
            return Some(TaskEventItem::Gap { missed, reason: GapReason::HandlerTooSlow });
        }
        self.items.pop_front()
    }

    /// The position of the last event.
    #[must_use]
    pub const fn last(&self) -> Option<&EventPosition> {
        self.last.as_ref()
    }

    /// The number of waiting items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len() + usize::from(self.fallen > 0)
    }

    /// Whether no item waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::driver::{TaskEvent, TaskKey};
    use crate::vocabulary::{AllocationId, TaskName};

    fn event(number: u64) -> TaskEventItem {
        let task = TaskKey::new(AllocationId::new("a").unwrap(), TaskName::new("t").unwrap());
        let event = TaskEvent {
            task_id: "a/t".into(),
            task,
            at: None,
            message: number.to_string(),
            annotations: BTreeMap::new(),
        };
        let position = EventPosition::new("s", number).ok();
        TaskEventItem::Event { event: Arc::new(event), position }
    }

    fn read(journal: &mut Journal) -> Vec<String> {
        std::iter::from_fn(|| journal.take())
            .map(|item| match item {
                TaskEventItem::Event { event, .. } => event.message.clone(),
                TaskEventItem::Gap { missed, reason } => format!("{missed:?} {reason}"),
            })
            .collect()
    }

    #[test]
    fn who_falls_behind_is_told_exactly_how_much_is_missing_evt_01() {
        let mut journal = Journal::new(3, None);
        for number in 1..=10 {
            assert_eq!(journal.put(event(number)), Taken::Kept);
        }
        assert_eq!(read(&mut journal), ["Some(7) the handler was too slow", "8", "9", "10"]);
        assert!(journal.is_empty());
    }

    #[test]
    fn what_a_plugin_repeats_is_had_once_evt_02() {
        let mut journal = Journal::new(10, EventPosition::new("s", 2).ok());
        for number in [1, 2, 3, 4, 3, 4, 5] {
            journal.put(event(number));
        }
        assert_eq!(read(&mut journal), ["3", "4", "5"]);
        assert_eq!(journal.put(event(5)), Taken::Had, "also when it has been read");
    }

    #[test]
    fn an_event_of_another_stream_never_follows_without_a_gap_evt_02() {
        let gap = TaskEventItem::Gap { missed: None, reason: GapReason::NewStream };
        let told = format!("None {}", GapReason::NewStream);
        let mut journal = Journal::new(10, EventPosition::new("old", 7).ok());
        (1..=2).for_each(|number| {
            journal.put(event(number));
        });
        assert_eq!(
            read(&mut journal),
            [told.as_str(), "1", "2"],
            "what waited in another journal brings no gap along"
        );
        let mut journal = Journal::new(10, EventPosition::new("old", 7).ok());
        journal.put(gap);
        assert_eq!(read(&mut journal), [told.as_str()]);
        journal.put(event(1));
        assert_eq!(read(&mut journal), ["1"], "it was told already, and read");

        let TaskEventItem::Event { event: placeless, .. } = event(0) else { unreachable!("it is one") };
        let mut journal = Journal::new(10, EventPosition::new("old", 7).ok());
        journal.put(TaskEventItem::Gap { missed: None, reason: GapReason::NewStream });
        journal.put(TaskEventItem::Event { event: placeless, position: None });
        journal.put(event(1));
        assert_eq!(read(&mut journal), [told.as_str(), "0", "1"], "an event without a place is of no stream");
    }

    #[test]
    fn a_gap_of_unknown_size_is_not_lost_in_a_full_journal_and_not_told_twice() {
        let gap = TaskEventItem::Gap { missed: None, reason: GapReason::Interrupted };
        let mut journal = Journal::new(2, None);
        journal.put(gap.clone());
        assert_eq!(journal.put(gap), Taken::Had);
        (1..=5).for_each(|number| {
            journal.put(event(number));
        });
        assert_eq!(
            read(&mut journal),
            ["Some(4) the handler was too slow", "None the stream was interrupted", "5"]
        );
    }

    #[test]
    fn what_falls_out_of_a_full_journal_is_counted_also_where_it_was_a_count_evt_01() {
        let gap = |missed, reason| TaskEventItem::Gap { missed, reason };
        let mut journal = Journal::new(2, None);
        journal.put(gap(Some(3), GapReason::NotAnnounced));
        assert_eq!((journal.len(), journal.is_empty()), (1, false));
        journal.put(event(1));
        journal.put(event(2));
        assert_eq!(journal.len(), 3, "what fell is one more thing to be read");
        journal.put(event(3));
        assert_eq!(read(&mut journal), ["Some(4) the handler was too slow", "2", "3"]);
        assert_eq!((journal.len(), journal.is_empty()), (0, true));
        let mut journal = Journal::new(3, None);
        journal.put(gap(None, GapReason::Interrupted));
        journal.put(gap(Some(2), GapReason::NotAnnounced));
        (1..=3).for_each(|number| {
            journal.put(event(number));
        });
        let told = ["Some(3) the handler was too slow", "None the stream was interrupted", "2", "3"];
        assert_eq!(read(&mut journal), told);
    }
}
