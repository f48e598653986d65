//! The timers of one machine, in order of time and then of setting.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::vocabulary::Timestamp;

/// The running timers, and which is next. Two timers of the same instant run in the order in which they were set.
#[derive(Debug, Clone)]
pub(super) struct Timers<T: Ord + Clone> {
    by_time: BTreeSet<(Timestamp, u64, T)>,
    by_name: BTreeMap<T, Set>,
    settings: u64,
}

#[derive(Debug, Clone, Copy)]
struct Set {
    due: Timestamp,
    number: u64,
    set_at: Timestamp,
}

/// The time when a timer was set matters only after a pause of the process.
impl<T: Ord + Clone + Hash> Hash for Timers<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.by_time, self.settings).hash(state);
    }
}

impl<T: Ord + Clone> Default for Timers<T> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_name: BTreeMap::new(), settings: 0 }
    }
}

impl<T: Ord + Clone> Timers<T> {
    pub(super) fn start(&mut self, timer: T, due: Timestamp, set_at: Timestamp) {
        self.cancel(&timer);
        self.settings += 1;
        self.by_time.insert((due, self.settings, timer.clone()));
        self.by_name.insert(timer, Set { due, number: self.settings, set_at });
    }

    pub(super) fn cancel(&mut self, timer: &T) {
        if let Some(Set { due, number, .. }) = self.by_name.remove(timer) {
            self.by_time.remove(&(due, number, timer.clone()));
        }
    }

    /// Postpones the timers that were set by then.
    pub(super) fn postpone(&mut self, set_by: Timestamp, by: Duration) {
        for set in self.by_name.values_mut().filter(|set| set.set_at <= set_by) {
            set.due = set.due + by;
        }
        let due = |(timer, set): (&T, &Set)| (set.due, set.number, timer.clone());
        self.by_time = self.by_name.iter().map(due).collect();
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _, _)| *at)
    }

    /// The number of timer settings so far. Marks the present in [`pop_due`](Self::pop_due).
    pub(super) const fn settings(&self) -> u64 {
        self.settings
    }

    /// Takes the first timer that is due, if it was set before the mark: timers that set each other again for the same instant
    /// must not starve others.
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
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn timers_of_one_instant_run_in_the_order_in_which_they_were_set() {
        let mut timers = Timers::default();
        for name in [5, 3, 4, 1] {
            timers.start(name, at(7), at(0));
        }
        let order: Vec<i32> = std::iter::from_fn(|| timers.pop_due(at(7), u64::MAX)).collect();
        assert_eq!(order, [5, 3, 4, 1]);
    }

    #[test]
    fn a_timer_set_again_runs_once_at_its_new_time() {
        let mut timers = Timers::default();
        timers.start("probe", at(1), at(0));
        timers.start("probe", at(9), at(0));
        assert_eq!(timers.pop_due(at(8), u64::MAX), None);
        assert_eq!(timers.pop_due(at(9), u64::MAX), Some("probe"));
        assert_eq!(timers.pop_due(at(99), u64::MAX), None);
    }

    #[test]
    fn a_timer_that_is_set_for_this_instant_while_others_run_waits_for_the_next_turn_scl_07() {
        let mut timers = Timers::default();
        timers.start("probe", at(1), at(0));
        let mark = timers.settings();
        assert_eq!(timers.pop_due(at(1), mark), Some("probe"));
        timers.start("probe", at(1), at(0));
        assert_eq!(timers.pop_due(at(1), mark), None);
        assert_eq!(timers.pop_due(at(1), timers.settings()), Some("probe"));
    }

    #[test]
    fn a_cancelled_timer_does_not_run() {
        let mut timers = Timers::default();
        timers.start("probe", at(1), at(0));
        timers.cancel(&"probe");
        assert_eq!(timers.pop_due(at(5), u64::MAX), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn timers_that_were_set_before_a_pause_are_postponed_in_their_order_and_others_are_not() {
        let mut timers = Timers::default();
        timers.start("give up", at(30), at(0));
        timers.start("look", at(5), at(1));
        timers.start("set since", at(62), at(61));
        timers.postpone(at(2), Duration::from_secs(59));
        let mut order = Vec::new();
        for now in [at(61), at(63), at(64), at(88), at(89)] {
            order.extend(timers.pop_due(now, u64::MAX).map(|timer| (now, timer)));
        }
        assert_eq!(order, [(at(63), "set since"), (at(64), "look"), (at(89), "give up")]);
        timers.start("look", at(90), at(89));
        timers.postpone(at(2), Duration::from_secs(59));
        assert_eq!(timers.next(), Some(at(90)), "it was set after that pause");
    }

    #[test]
    fn nothing_runs_after_all_was_cleared() {
        let mut timers = Timers::default();
        timers.start("probe", at(1), at(0));
        timers.clear();
        assert_eq!((timers.pop_due(at(5), u64::MAX), timers.next()), (None, None));
        timers.start("probe", at(6), at(0));
        assert_eq!(timers.pop_due(at(6), u64::MAX), Some("probe"));
    }
}
