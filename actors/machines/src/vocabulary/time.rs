//! Time as an input.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, counted from the Unix epoch. It never goes back while a host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// The point that lies this long after the Unix epoch.
    #[must_use]
    pub const fn from_epoch(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// The duration since the Unix epoch.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// The time since `earlier`; zero if it is in the future.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A duration in whole milliseconds, as it is logged and sent: in a field with a name that ends with `_ms`.
#[must_use]
pub fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0.as_secs(), self.0.subsec_millis())
    }
}

/// The external inputs of a step: the time, and one random number for jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Moment {
    /// The present.
    pub now: Timestamp,
    /// A new random number, used for jitter.
    pub random: u64,
}

impl Moment {
    /// Adds jitter of plus or minus `percent` to a span, so that many actors do not act in one instant. A span of more than
    /// `u64::MAX` microseconds, some 584,000 years, is treated as that maximum.
    #[must_use]
    pub fn spread(self, span: Duration, percent: u32) -> Duration {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let width = (micros / 100).saturating_mul(u64::from(percent.min(100)));
        let offset = self.random % width.saturating_mul(2).saturating_add(1);
        Duration::from_micros((micros - width).saturating_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_span_stays_within_its_percentage() {
        for random in [0, 1, 7_777, 123_456_789, u64::MAX] {
            let moment = Moment { now: Timestamp::default(), random };
            let spread = moment.spread(Duration::from_secs(30), 10);
            assert!(spread >= Duration::from_secs(27) && spread <= Duration::from_secs(33), "{spread:?}");
        }
        assert_eq!(
            Moment { now: Timestamp::default(), random: 9 }.spread(Duration::ZERO, 10),
            Duration::ZERO
        );
    }

    #[test]
    fn a_span_is_spread_from_end_to_end() {
        let spread = |random| {
            let moment = Moment { now: Timestamp::default(), random };
            moment.spread(Duration::from_micros(100), 10).as_micros()
        };
        assert_eq!([0, 10, 20, 21].map(spread), [90, 100, 110, 90]);
    }

    #[test]
    fn the_longest_span_is_spread_as_well_and_no_point_in_time_is_too_late() {
        for random in [0, 7_777, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let moment = Moment { now: Timestamp::default(), random };
            for percent in [0, 10, 99, 100, 1_000] {
                let spread = moment.spread(Duration::MAX, percent);
                assert!(spread <= Duration::from_micros(u64::MAX), "{random} {percent}: {spread:?}");
            }
            assert!(
                moment.spread(Duration::MAX, 10) >= Duration::from_micros(u64::MAX / 100 * 90),
                "{random}"
            );
        }
        let late = Timestamp::from_epoch(Duration::from_secs(5)) + Duration::MAX;
        assert_eq!(late, Timestamp::from_epoch(Duration::MAX));
    }

    #[test]
    fn a_time_is_shown_in_seconds_to_the_millisecond() {
        assert_eq!(Timestamp::from_epoch(Duration::from_micros(7_042_999)).to_string(), "7.042");
    }

    #[test]
    fn nothing_is_before_the_beginning_of_time() {
        let at = |second| Timestamp::from_epoch(Duration::from_secs(second));
        assert_eq!(at(5) - Duration::from_secs(2), at(3));
        assert_eq!(at(1) - Duration::from_secs(2), at(0));
    }
}
