//! A short list of recent events that stores repeats once (EVT-04).

use std::fmt;

use super::Timestamp;

/// The default number of entries.
pub const RECENT_ENTRIES: usize = 10;

/// One event, which happened once or repeatedly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Folded {
    /// The event.
    pub text: String,
    /// The time of its first occurrence.
    pub first: Timestamp,
    /// The time of its last occurrence.
    pub last: Timestamp,
    /// The number of occurrences.
    pub count: u64,
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count > 1 {
            write!(f, "{} ({} times)", self.text, self.count)
        } else {
            f.write_str(&self.text)
        }
    }
}

/// The recent events: the very first event, and the latest distinct ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recent {
    entries: Vec<Folded>,
    limit: usize,
}

impl Recent {
    /// An empty list with this limit of entries; at least two, the first and the last.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit: limit.max(2) }
    }

    /// The list with these stored entries. Entries over the limit are dropped.
    #[must_use]
    pub fn from_entries(limit: usize, mut entries: Vec<Folded>) -> Self {
        let limit = limit.max(2);
        entries.truncate(limit);
        Self { entries, limit }
    }

    /// Adds an event. An event that is in the list already is counted and moves to the end, except the very first, which keeps its place.
    /// If the list is full, the oldest event except the very first is dropped.
    pub fn add(&mut self, now: Timestamp, text: &str) {
        let Some(place) = self.entries.iter().position(|entry| entry.text == text) else {
            if self.entries.len() >= self.limit {
                self.entries.remove(1);
            }
            self.entries.push(Folded { text: text.to_owned(), first: now, last: now, count: 1 });
            return;
        };
        let entry = &mut self.entries[place];
        entry.last = now;
        entry.count = entry.count.saturating_add(1);
        if place > 0 {
            self.entries[place..].rotate_left(1);
        }
    }

    /// The entries: the very first, then the others by the time of their last occurrence.
    #[must_use]
    pub fn entries(&self) -> &[Folded] {
        &self.entries
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self::new(RECENT_ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(second))
    }

    #[test]
    fn ten_thousand_equal_failures_are_one_entry_and_the_first_cause_stays_evt_04() {
        let mut recent = Recent::new(3);
        recent.add(at(0), "no disk");
        for second in 1..=10_000 {
            recent.add(at(second), "cannot unmount");
        }
        for (second, text) in [(10_001, "a"), (10_002, "b"), (10_003, "cannot unmount"), (10_004, "c")] {
            recent.add(at(second), text);
        }
        let told: Vec<String> = recent.entries().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["no disk", "cannot unmount", "c"], "what was gone began anew");
        recent.add(at(10_005), "cannot unmount");
        recent.add(at(10_006), "no disk");
        let told: Vec<String> = recent.entries().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["no disk (2 times)", "c", "cannot unmount (2 times)"], "the first stays the first");
        let mut recent = Recent::default();
        (0..10_000).for_each(|second| recent.add(at(second), "cannot unmount"));
        let folded =
            Folded { text: "cannot unmount".to_owned(), first: at(0), last: at(9_999), count: 10_000 };
        assert_eq!(recent.entries(), [folded]);
    }

    #[test]
    fn a_list_that_was_stored_goes_on_where_it_was_evt_04() {
        let mut recent = Recent::new(3);
        for (second, text) in [(1, "a"), (2, "b"), (3, "c")] {
            recent.add(at(second), text);
        }
        let stored = recent.entries().to_vec();
        assert_eq!(Recent::from_entries(3, stored.clone()), recent);
        assert_eq!(
            Recent::from_entries(0, stored).entries(),
            &recent.entries()[..2],
            "there is room for two"
        );
    }
}
