//! Pauses of the whole process: it was stopped, its machine was suspended, or it got no processor for long.
//!
//! After a pause every deadline that passed meanwhile has expired at once, although the process could not check. So a host
//! [watches](watch) for pauses, and then
//!
//! - a call whose deadline passed in a pause continues for the time that it had left when the pause began, and at least for a second
//!   ([`within`]);
//! - the timers of its actors that were set before are postponed by the length of the pause, so they keep their order: first those
//!   that check, then those that give up;
//! - the clock of the shell includes the time for which the machine was suspended, which the monotonic clock leaves out.
//!
//! A pause concerns the process, so it is kept for the process. A program that does not watch for pauses, as under virtual time, has none.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// How often the process notes that it runs.
pub const NOTED_EVERY: Duration = Duration::from_millis(500);
/// A delay of the note by more than this is a pause. A busy machine delays a process by less.
const TOLERANCE: Duration = Duration::from_secs(2);
/// The minimum time for which a call whose deadline passed in a pause continues: enough to read an answer that arrived meanwhile.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

static STATE: Mutex<State> = Mutex::new(State { watchers: 0, noted: None, latest: None });
/// The total time for which the machine has been suspended, in nanoseconds, while it was watched.
static SUSPENDED: AtomicU64 = AtomicU64::new(0);

struct State {
    watchers: usize,
    /// When the process last ran.
    noted: Option<Noted>,
    latest: Option<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Noted {
    at: Instant,
    /// The time since the boot, suspended or not.
    since_boot: Duration,
}

impl Noted {
    fn now() -> Self {
        let since_boot = clock_gettime(ClockId::Boottime);
        let since_boot = Duration::new(since_boot.tv_sec.unsigned_abs(), since_boot.tv_nsec as u32);
        Self { at: Instant::now(), since_boot }
    }
}

/// A pause of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Its number, from 1.
    pub number: u64,
    /// The last time at which the process was known to run before it.
    pub from: Instant,
    /// The time at which its end was noticed.
    pub until: Instant,
    /// The time for which the machine was suspended; the monotonic clock stood still.
    pub suspended: Duration,
}

impl Pause {
    /// The time for which the process did not run.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.until - self.from + self.suspended
    }
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The latest pause, if there was one. A pause that has just ended is noticed here.
#[must_use]
pub fn latest() -> Option<Pause> {
    let mut state = lock();
    let before = state.noted?;
    let now = Noted::now();
    state.noted = Some(now);
    if let Some(suspended) = suspended_between(before, now) {
        let nanoseconds = u64::try_from(suspended.as_nanos()).unwrap_or(u64::MAX);
        SUSPENDED.fetch_add(nanoseconds, Ordering::Relaxed);
        let number = state.latest.map_or(1, |pause| pause.number + 1);
        state.latest = Some(Pause { number, from: before.at, until: now.at, suspended });
    }
    state.latest
}

/// The time for which the machine was suspended between two notes, if there was a pause.
fn suspended_between(before: Noted, now: Noted) -> Option<Duration> {
    let passed = now.since_boot.saturating_sub(before.since_boot);
    let suspended = passed.saturating_sub(now.at - before.at);
    // The two clocks are not read at the same instant.
    let suspended = if suspended > NOTED_EVERY { suspended } else { Duration::ZERO };
    (passed > NOTED_EVERY + TOLERANCE).then_some(suspended)
}

/// The total time for which the machine has been suspended, while it was watched.
#[must_use]
pub fn suspended() -> Duration {
    Duration::from_nanos(SUSPENDED.load(Ordering::Relaxed))
}

/// Watches for pauses until it is dropped, and reports each one.
pub async fn watch(mut paused: impl FnMut(Pause)) {
    let _watcher = Watcher::begin();
    let mut seen = latest().map(|pause| pause.number);
    loop {
        tokio::time::sleep(NOTED_EVERY).await;
        let pause = latest().filter(|pause| Some(pause.number) != seen);
        if let Some(pause) = pause {
            seen = Some(pause.number);
            paused(pause);
        }
    }
}

/// While there is no watcher, the process does not note that it runs.
struct Watcher;

impl Watcher {
    fn begin() -> Self {
        let mut state = lock();
        state.watchers += 1;
        if state.noted.is_none() {
            state.noted = Some(Noted::now());
        }
        Self
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = lock();
        state.watchers -= 1;
        if state.watchers == 0 {
            state.noted = None;
        }
    }
}

/// Waits for a future until a deadline. A deadline that passed in a pause of the process does not count: see the
/// [module](self).
///
/// # Errors
/// The deadline has passed.
pub async fn within<F: Future>(deadline: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = std::pin::pin!(future);
    let mut left = deadline;
    loop {
        let until = Instant::now().checked_add(left);
        match tokio::time::timeout(left, future.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(elapsed) => match until.and_then(|until| left_of(latest(), until)) {
                Some(more) => left = more,
                None => return Err(elapsed),
            },
        }
    }
}

/// If the deadline passed in the pause, the time that was left when the pause began, and at least [`LOOK`].
fn left_of(pause: Option<Pause>, deadline: Instant) -> Option<Duration> {
    let pause = pause.filter(|pause| (pause.from..=pause.until).contains(&deadline))?;
    Some((deadline - pause.from).max(LOOK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_passed_in_a_pause_goes_on_for_what_was_left_of_it_and_no_other_does() {
        let from = Instant::now();
        let at = |seconds| from + Duration::from_secs(seconds);
        let pause = Pause { number: 1, from, until: at(60), suspended: Duration::ZERO };
        assert_eq!(left_of(Some(pause), at(7)), Some(Duration::from_secs(7)));
        assert_eq!(left_of(Some(pause), at(0)), Some(LOOK), "what was answered meanwhile is read");
        assert_eq!(left_of(Some(pause), at(61)), None, "it has passed since");
        assert_eq!(left_of(None, at(7)), None);
    }

    #[test]
    fn a_gap_is_a_pause_whether_the_monotonic_clock_counts_it_or_not() {
        let noted = Noted { at: Instant::now(), since_boot: Duration::from_secs(100) };
        let after = |counted: u64, of: u64| {
            let [counted, of] = [counted, of].map(Duration::from_millis);
            suspended_between(noted, Noted { at: noted.at + counted, since_boot: noted.since_boot + of })
        };
        assert_eq!(after(500, 500), None);
        assert_eq!(after(60_000, 60_000), Some(Duration::ZERO), "it was stopped");
        assert_eq!(after(500, 60_500), Some(Duration::from_secs(60)), "the machine was suspended");
        assert_eq!(after(20_000, 60_000), Some(Duration::from_secs(40)), "both");
        assert_eq!(after(59_900, 60_000), Some(Duration::ZERO), "the clocks are read one after the other");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watcher_there_is_no_pause_and_a_deadline_is_one() {
        let begun = Instant::now();
        assert!(within(Duration::from_secs(60), std::future::pending::<()>()).await.is_err());
        assert_eq!(begun.elapsed(), Duration::from_secs(60));
    }
}
