//! Limits retries: backoff and restart budget.
//!
//! Both are pure: they receive the time and a random number.

use std::collections::VecDeque;
use std::time::Duration;

use super::time::{Moment, Timestamp};

/// The pauses between retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// The longest pause; each pause doubles the one before it up to here.
    pub longest: Duration,
    /// The jitter of a pause, in percent of itself to either side.
    pub jitter_percent: u32,
    /// After this long without a failure the next pause is the first one again.
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            jitter_percent: 10,
            reset_after: Duration::from_secs(60),
        }
    }
}

/// The state of a [`Backoff`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BackoffState {
    failures: u32,
    last_failure: Option<Timestamp>,
}

impl BackoffState {
    /// Records a failure and returns the pause before the next attempt.
    pub fn failed(&mut self, policy: &Backoff, moment: Moment) -> Duration {
        let calm = policy.reset_after.saturating_add(policy.longest);
        if self.last_failure.is_some_and(|last| moment.now.since(last) >= calm) {
            self.failures = 0;
        }
        let doublings = self.failures.min(20);
        self.failures = self.failures.saturating_add(1);
        self.last_failure = Some(moment.now);
        let pause = policy.first.saturating_mul(1 << doublings).min(policy.longest);
        moment.spread(pause, policy.jitter_percent)
    }

    /// Resets it: the next failure is followed by the first pause.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The number of failures since the last reset.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

/// The limit of restarts: at most `limit` within any `window` (OTP's intensity and period).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RestartBudget {
    /// Restarts allowed within the window. Zero allows none.
    pub limit: u32,
    /// The length of the sliding window.
    pub window: Duration,
}

impl Default for RestartBudget {
    fn default() -> Self {
        Self { limit: 5, window: Duration::from_secs(60) }
    }
}

/// The restarts that still count against a [`RestartBudget`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RestartHistory {
    at: VecDeque<Timestamp>,
    total: u64,
}

impl RestartHistory {
    /// Charges one restart. False means that the budget is spent and this restart must not happen.
    pub fn charge(&mut self, budget: &RestartBudget, now: Timestamp) -> bool {
        while self.at.front().is_some_and(|first| now.since(*first) > budget.window) {
            self.at.pop_front();
        }
        if self.at.len() >= budget.limit as usize {
            return false;
        }
        self.at.push_back(now);
        self.total += 1;
        true
    }

    /// The number of all restarts ever charged.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment { now: Timestamp::from_epoch(Duration::from_secs(seconds)), random: 500_000 }
    }

    const POLICY: Backoff = Backoff {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(8),
        jitter_percent: 0,
        reset_after: Duration::from_secs(60),
    };

    #[test]
    fn a_pause_may_be_as_long_as_there_is_time() {
        let [longest, reset_after] = [Duration::MAX; 2];
        let policy = Backoff { longest, reset_after, jitter_percent: 10, ..POLICY };
        let mut state = BackoffState::default();
        let pauses: Vec<u64> = (0..2).map(|s| state.failed(&policy, at(s)).as_millis() as u64).collect();
        assert!(pauses[0] < pauses[1], "{pauses:?}");
        let endless = Backoff { first: Duration::MAX, ..policy };
        assert!(state.failed(&endless, at(9)) > Duration::from_secs(1 << 40));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut state = BackoffState::default();
        let pauses: Vec<u64> = (0..6).map(|s| state.failed(&POLICY, at(s)).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn failures_are_counted_until_there_is_calm() {
        let mut state = BackoffState::default();
        for second in 0..3 {
            assert_eq!(u64::from(state.failures()), second);
            state.failed(&POLICY, at(second));
        }
        state.failed(&POLICY, at(2 + 60 + 8));
        assert_eq!(state.failures(), 1);
        state.reset();
        assert_eq!(state.failures(), 0);
    }

    #[test]
    fn calm_brings_the_first_pause_back() {
        let mut state = BackoffState::default();
        for second in 0..5 {
            state.failed(&POLICY, at(second));
        }
        assert_eq!(state.failed(&POLICY, at(4 + 60 + 8)).as_secs(), 1);
    }

    #[test]
    fn the_budget_slides_with_time() {
        let budget = RestartBudget { limit: 2, window: Duration::from_secs(10) };
        let mut history = RestartHistory::default();
        assert!(history.charge(&budget, at(0).now));
        assert!(history.charge(&budget, at(5).now));
        assert!(!history.charge(&budget, at(10).now), "two within ten seconds are spent");
        assert!(history.charge(&budget, at(11).now), "the first one has left the window");
        assert_eq!(history.total(), 3);
    }

    #[test]
    fn a_budget_of_zero_allows_nothing() {
        let budget = RestartBudget { limit: 0, window: Duration::from_secs(10) };
        assert!(!RestartHistory::default().charge(&budget, at(0).now));
    }
}
