//! When a run of a task was begun, on the clock of process start times.
//!
//! That clock counts since the boot, and cannot be set. The wall clock is not used: it may be set back by hours while a run
//! lives; then a run would seem younger than it is, and its processes older than the run.

use std::time::Duration;

use crate::vocabulary::Timestamp;

/// The rounding margin: how much later than its real beginning a run may seem to have begun.
const MARGIN: Duration = Duration::from_secs(1);

/// The beginning of a run: none of its processes was started before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The boot id at that time.
    pub boot: String,
    /// The time since that boot, by a clock that cannot be set.
    pub since_boot: Duration,
}

/// Maps the clock of a host to the boot clock of its machine: both clocks, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootClock {
    /// The present boot id.
    pub boot: String,
    /// The time since the boot. Read it before `now`, so that a pause between the two readings makes runs seem older, not younger.
    pub since_boot: Duration,
    /// The clock of the host.
    pub now: Timestamp,
}

impl BootClock {
    /// The beginning of a run at a moment on the clock of the host. That clock may stand still while the machine is
    /// suspended, and the boot clock does not: then the run seems to have begun earlier than it did. So more processes may
    /// be of it, and none is excluded.
    #[must_use]
    pub fn begun(&self, at: Timestamp) -> Begun {
        let since_boot = (self.since_boot + at.since(self.now)).saturating_sub(self.now.since(at));
        Begun { boot: self.boot.clone(), since_boot }
    }
}

/// The clock of process start times.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct BootTime<'b> {
    /// The present boot id.
    pub boot: &'b str,
    /// The time since the boot.
    pub elapsed: Duration,
    /// Its resolution.
    pub ticks_per_second: u64,
}

impl Begun {
    /// The earliest start time of the run's processes, in ticks since the present boot. `None` if the recorded beginning is
    /// invalid, since it is in the future.
    #[must_use]
    pub fn ticks(&self, present: &BootTime<'_>) -> Option<u64> {
        if self.boot != present.boot {
            // All processes of this boot are younger.
            return Some(0);
        }
        if self.since_boot > present.elapsed {
            return None;
        }
        let earliest = self.since_boot.saturating_sub(MARGIN);
        let parts = u64::from(earliest.subsec_millis()) * present.ticks_per_second / 1_000;
        Some(earliest.as_secs().saturating_mul(present.ticks_per_second).saturating_add(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_millis(millis))
    }

    fn clock() -> BootClock {
        BootClock { boot: "boot".to_owned(), since_boot: Duration::from_secs(500), now: at(70_000) }
    }

    fn ticks(begun: &Begun, boot: &str, elapsed: u64) -> Option<u64> {
        begun.ticks(&BootTime { boot, elapsed: Duration::from_secs(elapsed), ticks_per_second: 100 })
    }

    #[test]
    fn when_a_run_was_begun_is_told_in_ticks_since_the_boot_with_a_second_to_spare() {
        assert_eq!(ticks(&clock().begun(at(73_250)), "boot", 600), Some((503 - 1) * 100 + 25));
        assert_eq!(ticks(&clock().begun(at(69_000)), "boot", 600), Some((499 - 1) * 100));
        let with_the_boot = Begun { since_boot: Duration::from_millis(300), ..clock().begun(at(0)) };
        assert_eq!(ticks(&with_the_boot, "boot", 600), Some(0));
    }

    #[test]
    fn every_process_of_a_later_boot_is_younger_than_the_run_and_a_beginning_that_lies_ahead_says_nothing() {
        let begun = clock().begun(at(70_000));
        assert_eq!(ticks(&begun, "another", 1), Some(0));
        assert_eq!(ticks(&begun, "boot", 499), None);
        assert_eq!(ticks(&begun, "boot", 500), Some(499 * 100));
    }
}
