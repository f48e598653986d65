//! Decides when a commit begins and how much of what waits it takes, so that neither the disk nor those who write stand still.
//!
//! Where few write, everything that comes in one go shares one commit, since a sync costs more than all else. Where many write
//! and each waits for its answer before it writes again, one commit for all would have two sides take turns: the thread works
//! while nobody writes, and everybody writes while the thread waits. So half of them are left for the next commit as soon as
//! the thread has waited for longer than a sync takes; from then on one half writes while the other is brought to disk, and the
//! thread goes from the one straight on to the other.

use std::time::Duration;

/// Fewer than this are never divided, and never begun with while more are on their way.
const CROWD: usize = 64;

/// The shortest commit is forgotten slowly, by this part of itself with each commit: a disk may become slower.
const FORGETTING: u32 = 64;

/// What is known of the commits so far.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// The shortest of them, which is about what a sync takes; `None` before the first.
    shortest: Option<Duration>,
    /// How long the last one took.
    last: Duration,
    /// How many writes were in it.
    settled: usize,
}

impl Pacing {
    /// Notes a commit.
    pub(super) fn committed(&mut self, writes: usize, took: Duration) {
        let remembered = self.shortest.map(|shortest| shortest + shortest / FORGETTING);
        self.shortest = Some(remembered.map_or(took, |remembered| remembered.min(took)));
        (self.last, self.settled) = (took, writes);
    }

    /// Whether so many writes are begun with at once, while those of the last commit, which were answered just now, may write
    /// again.
    pub(super) const fn is_enough(&self, waiting: usize) -> bool {
        is_crowd(waiting, self.settled)
    }

    /// How many of the writes that wait come into the next commit, when nothing was to be done for so long.
    pub(super) fn share(&self, waiting: usize, idle: Duration) -> usize {
        let Some(shortest) = self.shortest else { return waiting };
        // Who comes much later than the last commit does not come because of it.
        let is_kept_waiting = shortest < idle && idle < self.last * 2;
        if waiting >= 2 * CROWD && is_kept_waiting { waiting / 2 } else { waiting }
    }
}

/// Whether so many who wait are a crowd that need not wait for those of the commit before, of whom there were so many.
pub(super) const fn is_crowd(waiting: usize, settled: usize) -> bool {
    waiting >= CROWD && waiting >= settled / 2
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
    fn a_crowd_that_keeps_the_disk_waiting_is_divided_p1() {
        let pacing = after(512, 3 * SYNC);
        assert_eq!(pacing.share(512, 4 * SYNC), 256);
        assert_eq!(pacing.share(512, SYNC / 2), 512, "the disk has not waited");
        assert_eq!(pacing.share(100, 4 * SYNC), 100, "no crowd");
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
    fn a_crowd_is_divided_from_so_many_on_and_within_so_long_p1() {
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
        assert_eq!(pacing.share(512, 4 * SYNC), 512, "a sync takes longer than the crowd");
    }
}
