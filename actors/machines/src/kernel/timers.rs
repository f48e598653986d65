//! The timers of one machine, in order of time and then of setting.

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::Timestamp;

/// Which timers run, and which is next. Two timers of the same instant run in the order in which they were set.
#[derive(Debug, Clone, Hash)]
pub(super) struct Timers<T: Ord + Clone> {
    by_time: BTreeSet<(Timestamp, u64, T)>,
    by_name: BTreeMap<T, (Timestamp, u64)>,
    settings: u64,
}

impl<T: Ord + Clone> Default for Timers<T> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_name: BTreeMap::new(), settings: 0 }
    }
}

impl<T: Ord + Clone> Timers<T> {
    pub(super) fn start(&mut self, timer: T, at: Timestamp) {
        self.cancel(&timer);
        self.settings += 1;
        self.by_time.insert((at, self.settings, timer.clone()));
        self.by_name.insert(timer, (at, self.settings));
    }

    pub(super) fn cancel(&mut self, timer: &T) {
        if let Some((at, setting)) = self.by_name.remove(timer) {
            self.by_time.remove(&(at, setting, timer.clone()));
        }
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _, _)| *at)
    }

    /// How often a timer was set so far. Marks the present in [`pop_due`](Self::pop_due).
    pub(super) const fn settings(&self) -> u64 {
        self.settings
    }

    /// Takes the first one that is due, if it was set before the mark: timers that set each other anew for the same instant
    /// must let others have their turn.
    pub(super) fn pop_due(&mut self, now: Timestamp, mark: u64) -> Option<T> {
        let (at, setting, _) = self.by_time.first()?;
        if *at > now || *setting > mark {
            return None;
        }
        let (_, _, timer) = self.by_time.pop_first()?;
        self.by_name.remove(&timer);
        Some(timer)
    }

    pub(super) fn clear(&mut self) {
        self.by_time.clear();
        self.by_name.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn timers_of_one_instant_run_in_the_order_in_which_they_were_set() {
        let mut timers = Timers::default();
        for name in [5, 3, 4, 1] {
            timers.start(name, at(7));
        }
        let order: Vec<i32> = std::iter::from_fn(|| timers.pop_due(at(7), u64::MAX)).collect();
        assert_eq!(order, [5, 3, 4, 1]);
    }

    #[test]
    fn a_timer_set_again_runs_once_at_its_new_time() {
        let mut timers = Timers::default();
        timers.start("probe", at(1));
        timers.start("probe", at(9));
        assert_eq!(timers.pop_due(at(8), u64::MAX), None);
        assert_eq!(timers.pop_due(at(9), u64::MAX), Some("probe"));
        assert_eq!(timers.pop_due(at(99), u64::MAX), None);
    }

    #[test]
    fn a_timer_that_is_set_for_this_instant_while_others_run_waits_for_the_next_turn_scl_07() {
        let mut timers = Timers::default();
        timers.start("probe", at(1));
        let mark = timers.settings();
        assert_eq!(timers.pop_due(at(1), mark), Some("probe"));
        timers.start("probe", at(1));
        assert_eq!(timers.pop_due(at(1), mark), None);
        assert_eq!(timers.pop_due(at(1), timers.settings()), Some("probe"));
    }

    #[test]
    fn a_cancelled_timer_does_not_run() {
        let mut timers = Timers::default();
        timers.start("probe", at(1));
        timers.cancel(&"probe");
        assert_eq!(timers.pop_due(at(5), u64::MAX), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn nothing_runs_after_all_was_cleared() {
        let mut timers = Timers::default();
        timers.start("probe", at(1));
        timers.clear();
        assert_eq!((timers.pop_due(at(5), u64::MAX), timers.next()), (None, None));
        timers.start("probe", at(6));
        assert_eq!(timers.pop_due(at(6), u64::MAX), Some("probe"));
    }
}
