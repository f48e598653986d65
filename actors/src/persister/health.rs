//! The health of the disk, whether it takes writes, for all users of the database.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tracing::{error, info};

use crate::pauses::{LOOK, Pause};
use crate::vocabulary::Timestamp;

/// The deadline of a commit. After it the disk counts as sick, and the callers that wait for it are answered.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(3);

/// The time that a commit that began at `since` may still take before the disk counts as sick. A pause of the process in that time does
/// not count: after it, the commit has the time that it had left when the pause began, and at least [`LOOK`].
pub(super) fn patience(since: Instant, now: Instant, pause: Option<Pause>) -> Duration {
    let until = since + WRITE_DEADLINE;
    // A pause begins when the process was last known to run, which may be before the commit.
    let paused = pause.map(|pause| (pause.from.into_std().max(since), pause.until.into_std()));
    let until = match paused {
        Some((from, ended)) if from < until && from < ended => ended + (until - from).max(LOOK),
        Some(_) | None => until,
    };
    until.saturating_duration_since(now)
}

/// Whether the disk takes writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DiskHealth {
    /// It takes writes.
    #[default]
    Sound,
    /// It takes no writes, or not within [`WRITE_DEADLINE`]. Pending writes are written when it is sound again.
    Sick {
        /// The error.
        reason: String,
        /// The time at which it became sick.
        since: Timestamp,
    },
}

impl DiskHealth {
    /// The error of a sick disk.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Sound => None,
            Self::Sick { reason, .. } => Some(reason),
        }
    }
}

/// The health of one disk, shared by all who write to it. It outlives a persister that crashes and is opened again.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<watch::Sender<DiskHealth>>);

impl Disk {
    /// The present health.
    #[must_use]
    pub fn health(&self) -> DiskHealth {
        self.0.borrow().clone()
    }

    /// Returns a receiver of each change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<DiskHealth> {
        self.0.subscribe()
    }

    pub(super) fn is_sick(&self, path: &Path, reason: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.send_if_modified(|health| match health {
            DiskHealth::Sick { reason: known, .. } if known == reason => false,
            DiskHealth::Sick { reason: known, .. } => {
                reason.clone_into(known);
                true
            }
            DiskHealth::Sound => {
                error!(error = reason, path = %path.display(), "the disk takes no writes; new registrations and claims, launches of drivers and starts of tasks wait or are refused until it does");
                let (reason, since) = (reason.to_owned(), Timestamp::from_epoch(since));
                *health = DiskHealth::Sick { reason, since };
                true
            }
        });
    }

    pub(super) fn is_sound(&self, path: &Path) {
        self.0.send_if_modified(|health| {
            let was_sick = *health != DiskHealth::Sound;
            if was_sick {
                info!(path = %path.display(), "the disk takes writes again, and what waited for it is written");
                *health = DiskHealth::Sound;
            }
            was_sick
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_the_process_takes_nothing_of_the_time_of_a_commit_p3() {
        let start = Instant::now();
        let at = |tenths: u64| start + Duration::from_millis(100 * tenths);
        let pause = |from, until| {
            let [from, until] = [from, until].map(|tenths| tokio::time::Instant::from_std(at(tenths)));
            Some(Pause { number: 1, from, until, suspended: Duration::ZERO })
        };
        let left = |since, now, pause| patience(at(since), at(now), pause).as_millis() / 100;
        // The commit begins after 10 s.
        for (now, pause, expected, why) in [
            (100, None, 30, "it has its time"),
            (129, None, 1, "and no more"),
            (130, None, 0, "then the disk is sick"),
            (600, None, 0, "and stays so"),
            (600, pause(110, 600), 20, "a pause after 1 s leaves 2 s"),
            (619, pause(110, 600), 1, "and no more"),
            (620, pause(110, 600), 0, "then the disk is sick"),
            (600, pause(127, 600), 10, "what was answered meanwhile is looked at for 1 s at least"),
            (600, pause(96, 600), 30, "the process was last known to run before the commit began"),
            (130, pause(20, 90), 0, "an earlier pause is none of it"),
            (600, pause(130, 600), 0, "it had had its time when the pause began"),
        ] {
            assert_eq!(left(100, now, pause), expected, "{why}");
        }
    }
}
