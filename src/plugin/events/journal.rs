//! The last events of a driver, numbered.

use std::collections::VecDeque;

use callboard_actors::driver::{SEQUENCE_ANNOTATION, STREAM_ANNOTATION};
use callboard_proto::drivers::DriverTaskEvent;

use super::position::EventsFrom;

/// The last events of a driver. Numbers have no gaps; the first event kept has the number `last - kept + 1`.
#[derive(Debug)]
pub(super) struct Journal {
    stream: String,
    last: u64,
    kept: VecDeque<DriverTaskEvent>,
    kept_max: usize,
}

impl Journal {
    pub(super) fn new(stream: String, kept_max: usize) -> Self {
        Self { stream, last: 0, kept: VecDeque::new(), kept_max: kept_max.max(1) }
    }

    pub(super) fn stream(&self) -> &str {
        &self.stream
    }

    /// The number of the last event, 0 before the first.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    pub(super) const fn kept_max(&self) -> usize {
        self.kept_max
    }

    pub(super) fn kept(&self) -> impl ExactSizeIterator<Item = &DriverTaskEvent> {
        self.kept.iter()
    }

    pub(super) fn keep(&mut self, event: DriverTaskEvent) {
        self.last += 1;
        self.kept.push_back(event);
        while self.kept.len() > self.kept_max {
            self.kept.pop_front();
        }
    }

    /// Keeps an event of an earlier process under its old number. Earlier events are not kept.
    pub(super) fn restore(&mut self, sequence: u64, event: DriverTaskEvent) {
        self.last = sequence.saturating_sub(1);
        self.keep(event);
    }

    /// Continues as another stream. Kept events are dropped: they were sent under the old name and are not sent again.
    pub(super) fn rename(&mut self, stream: String) {
        self.stream = stream;
        self.kept.clear();
    }

    /// The cursor at which a reader starts.
    pub(super) fn cursor(&self, from: &EventsFrom) -> u64 {
        match from {
            EventsFrom::Now => self.last,
            EventsFrom::After(position) if *position.stream == *self.stream => {
                position.sequence.min(self.last)
            }
            // A position in another stream does not count: that host has no event of this stream.
            EventsFrom::Beginning | EventsFrom::After(_) => 0,
        }
    }

    /// The events with numbers above `cursor`, in order, each annotated with its position. The journal keeps them without annotations,
    /// since an event is kept once and rarely read more than once.
    pub(super) fn after(&self, cursor: u64) -> impl Iterator<Item = DriverTaskEvent> {
        let had = usize::try_from(cursor.saturating_sub(self.forgotten())).unwrap_or(usize::MAX);
        let numbers = cursor.max(self.forgotten()) + 1..;
        self.kept.iter().skip(had).zip(numbers).map(|(event, sequence)| self.marked(event, sequence))
    }

    fn marked(&self, event: &DriverTaskEvent, sequence: u64) -> DriverTaskEvent {
        let mut event = event.clone();
        event.annotations.reserve(2);
        event.annotations.insert(STREAM_ANNOTATION.to_owned(), self.stream.clone());
        event.annotations.insert(SEQUENCE_ANNOTATION.to_owned(), sequence.to_string());
        event
    }

    /// The cursor of a reader that was at `cursor` and has read `count` events.
    pub(super) fn cursor_behind(&self, cursor: u64, count: usize) -> u64 {
        if count == 0 { cursor } else { cursor.max(self.forgotten()) + count as u64 }
    }

    /// The number of the last event that has been dropped.
    pub(super) fn forgotten(&self) -> u64 {
        self.last - self.kept.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::EventPosition;

    use super::*;

    fn event(message: &str) -> DriverTaskEvent {
        DriverTaskEvent { message: message.to_owned(), ..DriverTaskEvent::default() }
    }

    fn journal(kept_max: usize, messages: &[&str]) -> Journal {
        let mut journal = Journal::new("s".to_owned(), kept_max);
        messages.iter().for_each(|message| journal.keep(event(message)));
        journal
    }

    /// The events a reader at `cursor` gets, each with its position.
    fn read(journal: &Journal, cursor: u64) -> Vec<String> {
        let told = |event: DriverTaskEvent| {
            let [stream, sequence] =
                [STREAM_ANNOTATION, SEQUENCE_ANNOTATION].map(|name| &event.annotations[name]);
            format!("{stream}:{sequence} {}", event.message)
        };
        journal.after(cursor).map(told).collect()
    }

    #[test]
    fn a_full_journal_forgets_the_oldest_and_its_numbers_say_so_evt_04() {
        let journal = journal(2, &["a", "b", "c", "d", "e"]);
        assert_eq!(
            (journal.stream(), journal.last(), journal.kept_max(), journal.forgotten()),
            ("s", 5, 2, 3)
        );
        assert_eq!(journal.kept().map(|event| &*event.message).collect::<Vec<_>>(), ["d", "e"]);
        for cursor in [0, 3] {
            assert_eq!(read(&journal, cursor), ["s:4 d", "s:5 e"]);
        }
        assert_eq!(read(&journal, 4), ["s:5 e"]);
        assert_eq!(read(&journal, 5), [""; 0]);
        let behind = [(0, 0), (0, 2), (3, 2), (4, 1)].map(|(at, count)| journal.cursor_behind(at, count));
        assert_eq!(behind, [0, 5, 5, 5]);
        assert_eq!(Journal::new("s".to_owned(), 0).kept_max(), 1, "the last event is always kept");
    }

    #[test]
    fn a_position_counts_in_its_own_stream_only_and_never_lies_ahead_evt_02() {
        let journal = journal(9, &["a", "b", "c"]);
        let after = |stream, sequence| EventsFrom::After(EventPosition::new(stream, sequence).unwrap());
        let begins =
            [EventsFrom::Now, EventsFrom::Beginning, after("s", 2), after("s", 99), after("another", 2)];
        assert_eq!(begins.map(|from| journal.cursor(&from)), [3, 0, 2, 3, 0]);
    }

    #[test]
    fn what_an_earlier_process_kept_goes_on_with_its_numbers_and_another_stream_says_nothing_again_evt_02() {
        let mut journal = journal(9, &["gone"]);
        journal.restore(7, event("a"));
        journal.restore(8, event("b"));
        assert_eq!((journal.last(), read(&journal, 7)), (8, vec!["s:8 b".to_owned()]));
        journal.rename("t".to_owned());
        journal.keep(event("c"));
        assert_eq!((journal.stream(), read(&journal, 0)), ("t", vec!["t:9 c".to_owned()]));
    }
}
