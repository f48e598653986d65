//! Decides when a commit begins and how many of the queued writes it takes, to keep both the disk and the writers busy.
//!
//! With few writers, everything that arrives together shares one commit, since a sync costs more than all else. With many
//! writers that each wait for their answer before the next write, one commit for all would make both sides take turns: the
//! thread idles while they write, and they idle while the thread commits. So half of the writes are left for the next commit
//! as soon as the thread has idled for longer than a sync takes. From then on one half writes while the other is committed,
//! and the thread is never idle.

use std::time::Duration;

/// Fewer writes than this are never divided, and never started while more are arriving.
const LARGE_BATCH: usize = 64;

/// The shortest commit decays by this fraction with each commit: a disk may become slower.
const FORGETTING: u32 = 64;

/// The known properties of the disk: how long its commits take.
#[derive(Debug, Default)]
pub struct Pacing {
    /// The shortest commit, which is about the time of a sync; `None` before the first.
    shortest: Option<Duration>,
    last: Duration,
    settled: usize,
}

impl Pacing {
    /// A commit of so many writes took this long.
    pub fn committed(&mut self, writes: usize, took: Duration) {
        let remembered = self.shortest.map(|shortest| shortest + shortest / FORGETTING);
        self.shortest = Some(remembered.map_or(took, |remembered| remembered.min(took)));
        (self.last, self.settled) = (took, writes);
    }

    /// Whether this many writes are committed at once, although the writers of the last commit may write again.
    #[must_use]
    pub const fn is_enough(&self, waiting: usize) -> bool {
        is_large_batch(waiting, self.settled)
    }

    /// How many of the queued writes the next commit takes, after the thread was `idle` for this long.
    #[must_use]
    pub fn share(&self, waiting: usize, idle: Duration) -> usize {
        let Some(shortest) = self.shortest else { return waiting };
        // Writes that come much later than the last commit are not caused by it.
        let is_kept_waiting = shortest < idle && idle < self.last * 2;
        if waiting >= 2 * LARGE_BATCH && is_kept_waiting { waiting / 2 } else { waiting }
    }
}

/// Whether the queued writes are enough to start without the writers of the last commit, which had `settled` writes.
#[must_use]
pub const fn is_large_batch(waiting: usize, settled: usize) -> bool {
    waiting >= LARGE_BATCH && waiting >= settled / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_micros(200);

    fn after(writes: usize, took: Duration) -> Pacing {
        let mut pacing = Pacing::default();
        pacing.committed(1, SYNC);
        pacing.committed(writes, took);
        pacing
    }

    #[test]
    fn many_writes_that_keep_the_disk_waiting_are_divided_p1() {
        let pacing = after(512, 3 * SYNC);
        assert_eq!(pacing.share(512, 4 * SYNC), 256);
        assert_eq!(pacing.share(512, SYNC / 2), 512, "the disk has not waited");
        assert_eq!(pacing.share(100, 4 * SYNC), 100, "too few");
    }

    #[test]
    fn a_burst_after_a_pause_is_one_commit_p1() {
        assert_eq!(after(512, 3 * SYNC).share(512, Duration::from_secs(1)), 512);
        assert_eq!(Pacing::default().share(512, Duration::from_secs(1)), 512);
    }

    #[test]
    fn one_half_is_begun_with_while_the_other_is_answered_p1() {
        let pacing = after(256, 3 * SYNC);
        assert!(pacing.is_enough(256) && pacing.is_enough(128));
        assert!(!pacing.is_enough(100), "most of them are on their way");
        assert!(!after(3, SYNC).is_enough(3), "those who are few share what they can");
    }

    #[test]
    fn writes_are_divided_from_so_many_on_and_within_so_long_p1() {
        let pacing = after(512, 3 * SYNC);
        assert_eq!((pacing.share(127, 4 * SYNC), pacing.share(128, 4 * SYNC)), (127, 64));
        assert_eq!(pacing.share(512, SYNC + SYNC / FORGETTING), 512, "no longer than a sync takes");
        assert_eq!(pacing.share(512, SYNC + SYNC / 32), 256);
        assert_eq!(pacing.share(512, 6 * SYNC), 512, "much later than the last commit");
        assert!(after(128, SYNC).is_enough(64) && !after(100, SYNC).is_enough(63));
        assert!(after(200, SYNC).is_enough(100) && !after(200, SYNC).is_enough(99));
    }

    #[test]
    fn one_slow_commit_does_not_make_a_disk_slow() {
        let mut pacing = after(512, SYNC);
        pacing.committed(512, 20 * SYNC);
        assert_eq!(pacing.share(512, 2 * SYNC), 256);
    }

    #[test]
    fn a_disk_that_became_slower_is_taken_as_it_is() {
        let mut pacing = after(512, 3 * SYNC);
        (0..512).for_each(|_| pacing.committed(512, 20 * SYNC));
        assert_eq!(pacing.share(512, 4 * SYNC), 512, "a sync takes longer than the writes");
    }
}
