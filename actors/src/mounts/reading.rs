//! Shares one reading among all callers that ask for it at the same time.
//!
//! The kernel writes the whole mount table for each reader, so with thousands of mounts a look that needs the table is expensive. Such
//! looks that run side by side share a reading: the next one that *begins* after they have asked. An earlier one could lack a mount that
//! was made before they asked. After a reading that took long and was not for one look alone, the next one waits for more looks, so that
//! many of them at once do not keep a processor busy with reading.
//!
//! Any thread may ask, so `actors/tests/threads` model-checks this file with shuttle.

use std::time::{Duration, Instant};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, thread};

/// A shorter reading is followed by another one at once, and so is a reading that was for one look alone.
const LONG: Duration = Duration::from_millis(2);
/// The factor of the pause after a long reading to its duration, and the limit of the pause.
const PAUSE_TIMES: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The last reading, and whether one is under way.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    state: Mutex<State<T>>,
    /// A reading has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// The number of readings that have begun.
    begun: u64,
    is_underway: bool,
    /// The result of the last reading, and its number.
    last: Option<(u64, Arc<T>)>,
    /// The number of looks that wait for another look's reading.
    waiting: usize,
    /// The earliest time of the next reading. `None`: at once.
    next_at: Option<Instant>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State { begun: 0, is_underway: false, last: None, waiting: 0, next_at: None }),
            ended: Condvar::new(),
        }
    }
}

impl<T> Reading<T> {
    /// The result of a reading that begins now or later. This thread reads, unless another one does it for both. It waits as long as two
    /// readings and the pauses before them take at most.
    pub(crate) fn get(&self, read: impl FnOnce() -> T) -> Arc<T> {
        let mut state = self.lock();
        let wanted = state.begun + 1;
        loop {
            if let Some((number, value)) = &state.last
                && *number >= wanted
            {
                return Arc::clone(value);
            }
            if !state.is_underway {
                break;
            }
            state.waiting += 1;
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.is_underway = true;
        let end = End(self);
        if let Some(pause) = state.next_at.map(|at| at.saturating_duration_since(Instant::now())) {
            drop(state);
            thread::sleep(pause);
            state = self.lock();
        }
        state.begun += 1;
        let number = state.begun;
        drop(state);
        let begun = Instant::now();
        let value = Arc::new(read());
        let mut state = self.lock();
        state.last = Some((number, Arc::clone(&value)));
        state.next_at = next_at(begun, Instant::now()).filter(|_| state.waiting > 0);
        drop(state);
        drop(end);
        value
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The earliest time of the next reading while many wait, after a reading from `begun` to `ended`; `None` if that is at once.
fn next_at(begun: Instant, ended: Instant) -> Option<Instant> {
    let took = ended.saturating_duration_since(begun);
    (took >= LONG).then(|| ended + (took * PAUSE_TIMES).min(PAUSE_MAX))
}

/// A reading that is under way. It ends even if its thread panics: then another thread reads.
struct End<'r, T>(&'r Reading<T>);

impl<T> Drop for End<'_, T> {
    fn drop(&mut self) {
        self.0.lock().is_underway = false;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reading_that_took_long_is_followed_by_a_pause() {
        let begun = Instant::now();
        let pause = |took| next_at(begun, begun + took).map(|at| at.duration_since(begun + took));
        assert_eq!(pause(Duration::from_micros(700)), None);
        assert_eq!(pause(Duration::from_millis(14)), Some(Duration::from_millis(42)));
        assert_eq!(pause(Duration::from_secs(2)), Some(PAUSE_MAX));
    }
}
