//! One reading for all that ask for it at once.
//!
//! The kernel writes the whole mount table for each reader, so with thousands of mounts the table is what a look costs. Looks that run
//! side by side share a reading: the next one that *begins* after they have asked. An earlier one could lack a mount that was made
//! before they asked.
//!
//! Any thread may ask, so `actors/tests/threads` model-checks this file with shuttle.

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What is read, and whether it is being read.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    state: Mutex<State<T>>,
    /// A reading has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// How many readings have begun.
    begun: u64,
    is_underway: bool,
    /// What the last reading brought, and its number.
    last: Option<(u64, Arc<T>)>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State { begun: 0, is_underway: false, last: None }), ended: Condvar::new() }
    }
}

impl<T> Reading<T> {
    /// What a reading brings that begins now or later. This thread reads, unless another one does it for both. It waits as long as
    /// a reading takes, twice at most.
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
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.begun += 1;
        state.is_underway = true;
        let number = state.begun;
        drop(state);
        let end = End(self);
        let value = Arc::new(read());
        self.lock().last = Some((number, Arc::clone(&value)));
        drop(end);
        value
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reading that is underway. It ends although its thread panics: another one reads then.
struct End<'r, T>(&'r Reading<T>);

impl<T> Drop for End<'_, T> {
    fn drop(&mut self) {
        self.0.lock().is_underway = false;
        self.0.ended.notify_all();
    }
}
