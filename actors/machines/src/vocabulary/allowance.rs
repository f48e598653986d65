//! Limits the rate of events that an untrusted source causes.

use super::time::Timestamp;

/// The cost of one event, so that whole numbers suffice: the credit that a rate of one per minute earns in a minute, in microseconds.
const COST: u64 = 60_000_000;

/// The permitted rate of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The number at once, after a period without events.
    pub burst: u32,
    /// The number per minute in the long run.
    pub per_minute: u32,
}

/// Decides for each event whether it is within its rate, and counts the events that were not. Time is an input, and may
/// stand still; a time that goes back counts as standing still.
#[derive(Debug, Clone)]
pub struct Allowance {
    rate: Rate,
    /// The saved credit, in parts of [`COST`].
    saved: u64,
    /// The time up to which it was earned.
    since: Timestamp,
    left_out: u64,
}

impl Allowance {
    /// An unused allowance.
    #[must_use]
    pub const fn new(rate: Rate, now: Timestamp) -> Self {
        Self { rate, saved: rate.burst as u64 * COST, since: now, left_out: 0 }
    }

    /// Whether one more event may happen now. If not, it is counted as left out.
    pub fn take(&mut self, now: Timestamp) -> bool {
        let passed = u64::try_from(now.since(self.since).as_micros()).unwrap_or(u64::MAX);
        let earned = passed.saturating_mul(u64::from(self.rate.per_minute));
        let most = u64::from(self.rate.burst) * COST;
        self.saved = self.saved.saturating_add(earned).min(most);
        self.since = self.since.max(now);
        let left = self.saved.checked_sub(COST);
        match left {
            Some(left) => self.saved = left,
            None => self.leave_out(1),
        }
        left.is_some()
    }

    /// Counts events that were left out for another reason.
    pub const fn leave_out(&mut self, count: u64) {
        self.left_out = self.left_out.saturating_add(count);
    }

    /// The number of events left out since the last call; the caller must report it.
    pub const fn take_left_out(&mut self) -> u64 {
        std::mem::replace(&mut self.left_out, 0)
    }

    /// Whether there are left-out events to report.
    #[must_use]
    pub const fn has_left_out(&self) -> bool {
        self.left_out > 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RATE: Rate = Rate { burst: 3, per_minute: 60 };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_millis(millis))
    }

    #[test]
    fn a_burst_is_allowed_then_a_rate_and_the_rest_is_counted_log_03() {
        let mut allowance = Allowance::new(RATE, at(0));
        let allowed = (0..50_000).filter(|_| allowance.take(at(0))).count();
        assert_eq!((allowed, allowance.has_left_out()), (3, true));
        assert_eq!((allowance.take_left_out(), allowance.take_left_out()), (49_997, 0));
        assert!(!allowance.take(at(999)) && allowance.take(at(1_000)) && !allowance.take(at(1_001)));
        assert!(allowance.take(at(2_000)));
        allowance.leave_out(5);
        assert_eq!(allowance.take_left_out(), 7);
    }

    #[test]
    fn rest_saves_no_more_than_a_burst() {
        let mut allowance = Allowance::new(RATE, at(0));
        let allowed = (0..10).filter(|_| allowance.take(at(3_600_000))).count();
        assert_eq!(allowed, 3);
        assert!(!allowance.take(Timestamp::from_epoch(Duration::ZERO)), "time that goes back earns nothing");
        assert!(!allowance.take(at(3_600_999)) && allowance.take(at(3_601_000)));
    }

    #[test]
    fn a_rate_of_nothing_allows_nothing_and_the_longest_time_overflows_nothing() {
        let mut never = Allowance::new(Rate { burst: 0, per_minute: 9 }, at(0));
        assert!(!never.take(Timestamp::from_epoch(Duration::MAX)));
        let mut always = Allowance::new(Rate { burst: u32::MAX, per_minute: u32::MAX }, at(0));
        assert!(always.take(Timestamp::from_epoch(Duration::MAX)));
    }
}
