//! Decides when output that cannot be written is dropped.

use std::time::Duration;

/// How long a disk may fail or hang before a full pipe is drained, so that its task continues (TH022).
pub const DISK_TIMEOUT: Duration = Duration::from_secs(5);
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Why a stream is not written, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    None,
    /// It waits for a disk, which may hang.
    Waiting {
        /// When the turn was queued.
        handed: Duration,
        /// When the disk last finished any work, for any stream.
        progress: Duration,
    },
    Refused {
        since: Duration,
    },
}

/// Whether the content of a stream's pipe must be dropped. A pipe that is not full is never drained; and a disk that is only
/// slow makes tasks wait, without loss.
pub fn has_to_drop(now: Duration, hindrance: Hindrance, is_pipe_full: bool) -> bool {
    let since = match hindrance {
        Hindrance::None => return false,
        Hindrance::Waiting { handed, progress } => handed.max(progress),
        Hindrance::Refused { since } => since,
    };
    is_pipe_full && now.saturating_sub(since) >= DISK_TIMEOUT
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn only_a_full_pipe_whose_disk_refuses_or_hangs_for_long_is_emptied_th022() {
        let refused = Hindrance::Refused { since: at(10) };
        assert!(!has_to_drop(at(14), refused, true), "the disk may recover");
        assert!(has_to_drop(at(15), refused, true));
        assert!(!has_to_drop(at(1_000), refused, false), "no writer waits for room");
        let hangs = Hindrance::Waiting { handed: at(10), progress: at(9) };
        assert!(has_to_drop(at(15), hangs, true));
        let slow = Hindrance::Waiting { handed: at(10), progress: at(40) };
        assert!(!has_to_drop(at(44), slow, true), "a slow disk gets on");
        assert!(!has_to_drop(at(1_000), Hindrance::None, true));
    }
}
