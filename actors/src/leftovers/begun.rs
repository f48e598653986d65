//! When a run was begun, on the clock that start times of processes are told in.

use std::time::Duration;

use crate::vocabulary::Timestamp;

/// How much later a process may seem to have been begun than it was: by clocks that are set, and by rounding.
const MARGIN: Duration = Duration::from_secs(60);

/// When a run was begun: no process of it was started before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The boot of the machine in which it was.
    pub boot: String,
    /// By the clock of the host then.
    pub at: Timestamp,
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// The clock of the host.
    pub(super) now: Timestamp,
    /// How long ago the machine was booted.
    pub(super) uptime: Duration,
    /// Ticks in a second.
    pub(super) ticks_per_second: u64,
}

impl Begun {
    /// A time before which no process of the run was started, in ticks since the boot. Where the clock was set back since, that is
    /// the boot.
    pub(super) fn ticks(&self, clocks: &Clocks) -> u64 {
        if clocks.now < self.at {
            return 0;
        }
        let ago = clocks.now.since(self.at) + MARGIN;
        let since_boot = clocks.uptime.saturating_sub(ago);
        let parts = u64::from(since_boot.subsec_millis()) * clocks.ticks_per_second / 1_000;
        since_boot.as_secs().saturating_mul(clocks.ticks_per_second).saturating_add(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn when_a_run_was_begun_is_told_in_ticks_with_a_minute_to_spare() {
        let begun = Begun { boot: "boot".to_owned(), at: at(10_000) };
        let ticks = |now, uptime| {
            let uptime = Duration::from_millis(uptime);
            begun.ticks(&Clocks { now: at(now), uptime, ticks_per_second: 100 })
        };
        assert_eq!(ticks(10_100, 1_000_500), (1_000 - 100 - 60) * 100 + 50);
        assert_eq!(ticks(10_100, 160_000), 0, "it was begun with the boot");
        assert_eq!(ticks(10_100, 1_000), 0, "the clock was set on since");
        assert_eq!(ticks(9_999, 1_000_000), 0, "the clock was set back since");
    }
}
