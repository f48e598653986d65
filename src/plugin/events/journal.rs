//! The last events of a driver, numbered.

use std::collections::VecDeque;

use callboard_actors::driver::{SEQUENCE_ANNOTATION, STREAM_ANNOTATION};
use callboard_proto::drivers::DriverTaskEvent;

use super::position::EventsFrom;

/// The last events of a driver. Their numbers have no gaps; the first that is kept has the number `last - kept + 1`.
#[derive(Debug)]
pub(super) struct Journal {
    stream: String,
    last: u64,
    kept: VecDeque<DriverTaskEvent>,
    kept_max: usize,
}

impl Journal {
    /// Begins a stream.
    pub(super) fn new(stream: String, kept_max: usize) -> Self {
        Self { stream, last: 0, kept: VecDeque::new(), kept_max: kept_max.max(1) }
    }

    /// The name of the stream.
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

    /// All that is kept, in order.
    pub(super) fn kept(&self) -> impl ExactSizeIterator<Item = &DriverTaskEvent> {
        self.kept.iter()
    }

    /// Keeps the next event.
    pub(super) fn keep(&mut self, event: DriverTaskEvent) {
        self.last += 1;
        self.kept.push_back(event);
        while self.kept.len() > self.kept_max {
            self.kept.pop_front();
        }
    }

    /// Keeps an event of an earlier process, which has its number already. What went before it is not there any longer.
    pub(super) fn restore(&mut self, sequence: u64, event: DriverTaskEvent) {
        self.last = sequence.saturating_sub(1);
        self.keep(event);
    }

    /// Goes on under another name; what is kept has been said under the old one and is not said again.
    pub(super) fn rename(&mut self, stream: String) {
        self.stream = stream;
        self.kept.clear();
    }

    /// Where one begins to read.
    pub(super) fn cursor(&self, from: &EventsFrom) -> u64 {
        match from {
            EventsFrom::Now => self.last,
            EventsFrom::After(position) if *position.stream == *self.stream => {
                position.sequence.min(self.last)
            }
            // A position of another stream is none: its host has had nothing of this one.
            EventsFrom::Beginning | EventsFrom::After(_) => 0,
        }
    }

    /// The events with numbers above `cursor`, in order, each marked with its place. They are kept without the marks, since an
    /// event is kept once and seldom read more than once.
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

    /// Where one is who stood at `cursor` and has read `count` events from there.
    pub(super) fn cursor_behind(&self, cursor: u64, count: usize) -> u64 {
        if count == 0 { cursor } else { cursor.max(self.forgotten()) + count as u64 }
    }

    /// The number of the last event that is no longer kept.
    pub(super) fn forgotten(&self) -> u64 {
        self.last - self.kept.len() as u64
    }
}
