//! The events that a driver sent about a task: a short list that stores repeats once, and the position read so far.

use crate::driver::{EventPosition, Recent, TaskEventItem};
use crate::vocabulary::Timestamp;
use crate::vocabulary::text::bounded;

/// The limit for the text of an event, in bytes.
const WORDS_BYTES_MAX: usize = 512;

/// The events of a task. Each batch is stored in one write with its position, so no event is lost, and none counts twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventLog {
    /// The position of the last event taken.
    pub position: Option<EventPosition>,
    /// The number of items taken: events and gaps.
    pub taken: u64,
    /// The number of events received.
    pub told: u64,
    /// The number of events known to be missing.
    pub missed: u64,
    /// The first event, and the latest distinct ones (EVT-04).
    pub recent: Recent,
}

impl EventLog {
    /// Takes the next item.
    pub fn take(&mut self, now: Timestamp, item: &TaskEventItem) {
        self.taken += 1;
        match item {
            TaskEventItem::Event { event, position } => {
                self.told += 1;
                if position.is_some() {
                    self.position.clone_from(position);
                }
                self.recent.add(event.at.unwrap_or(now), &words(&event.message));
            }
            TaskEventItem::Gap { missed, reason } => {
                self.missed = self.missed.saturating_add(missed.unwrap_or(0));
                let text = match missed {
                    Some(missed) => format!("{missed} events are missing: {reason}"),
                    None => format!("events may be missing: {reason}"),
                };
                self.recent.add(now, &text);
            }
        }
    }
}

/// An event's text, on one line and truncated.
fn words(message: &str) -> String {
    let text = bounded(message.trim(), WORDS_BYTES_MAX);
    if text.is_empty() { "(an event without words)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::driver::{GapReason, TaskEvent, TaskKey};
    use crate::vocabulary::{AllocationId, TaskName};

    fn event(message: &str, sequence: u64) -> TaskEventItem {
        let task = TaskKey::new(AllocationId::new("a").unwrap(), TaskName::new("t").unwrap());
        let event = TaskEvent {
            task_id: "a".into(),
            task,
            at: None,
            message: message.into(),
            annotations: BTreeMap::new(),
        };
        TaskEventItem::Event { event: Arc::new(event), position: EventPosition::new("s", sequence).ok() }
    }

    #[test]
    fn events_are_folded_and_counted_and_gaps_are_told_evt_01_evt_04() {
        let mut log = EventLog::default();
        log.take(Timestamp::default(), &event("started", 1));
        (2..=10_001)
            .for_each(|sequence| log.take(Timestamp::default(), &event("cannot unmount\n", sequence)));
        let gap = TaskEventItem::Gap { missed: Some(7), reason: GapReason::HandlerTooSlow };
        log.take(Timestamp::default(), &gap);
        let told: Vec<_> = log.recent.entries().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["started", "cannot unmount (10000 times)", "7 events are missing: the handler was too slow"]
        );
        assert_eq!((log.taken, log.told, log.missed), (10_002, 10_001, 7));
        assert_eq!(log.position.unwrap().to_string(), "s:10001");
    }

    #[test]
    fn words_that_never_end_are_cut() {
        let mut log = EventLog::default();
        log.take(Timestamp::default(), &event(&"ü".repeat(1_000), 1));
        let text = &log.recent.entries()[0].text;
        assert!(text.len() <= WORDS_BYTES_MAX && text.ends_with("ü (2000 bytes in all)"), "{text}");
        log.take(Timestamp::default(), &event("", 2));
        assert_eq!(log.recent.entries()[1].text, "(an event without words)");
        log.take(Timestamp::default(), &event("\n\u{1b}[2J over\n there \n", 3));
        assert_eq!(log.recent.entries()[2].text, "\\u{1b}[2J over\\n there");
        assert_eq!(words(&"a".repeat(WORDS_BYTES_MAX)), "a".repeat(WORDS_BYTES_MAX));
    }
}
