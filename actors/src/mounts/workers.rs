//! Keeps threads that wait for more work before they end: starting a thread for each look costs more than most looks.
//!
//! Work never waits for a thread that is busy and may hang: it goes to a waiting thread, or to a new one.
//!
//! Any thread may give work, so `actors/tests/threads` model-checks this file with shuttle.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, thread};

/// The time that a thread waits for more work, by default.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// The maximum number of waiting threads; further ones end after their work. By default it equals the limit of threads at work: looks
/// arrive in bursts, and each burst would start most of them again.
const WAITING_MAX: usize = 32;
/// The stack of a thread; the deepest work parses the mount table, on the heap.
const STACK_BYTES: usize = 256 * 1_024;

type Work = Box<dyn FnOnce() + Send>;

/// The threads of one owner. When it is dropped, waiting threads end, and the others after their work.
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    /// The time that a thread waits for more work.
    idle_max: Duration,
    state: Mutex<State>,
    /// There is work, or the owner has gone.
    changed: Condvar,
}

/// There is never more work than waiting threads.
#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    /// The number of waiting threads, including those for which there is work already.
    waiting: usize,
    is_over: bool,
}

impl Default for Workers {
    fn default() -> Self {
        Self::waiting_for(IDLE_MAX)
    }
}

impl Workers {
    /// Threads that wait for more work for this time.
    pub(crate) fn waiting_for(idle_max: Duration) -> Self {
        Self(Arc::new(Shared { idle_max, state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Runs this on a waiting thread, or on a new one.
    ///
    /// # Errors
    /// If no thread could be started.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.waiting > state.work.len() {
            state.work.push_back(Box::new(work));
            drop(state);
            self.0.changed.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("mounts".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            work();
            while let Some(work) = shared.next() {
                work();
            }
        })?;
        Ok(())
    }
}

impl Shared {
    /// Waits for work. `None`: enough others wait, none arrived in that time, or the owner is gone.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        if state.waiting >= WAITING_MAX {
            return None;
        }
        state.waiting += 1;
        let mut is_late = false;
        loop {
            let work = state.work.pop_front();
            if work.is_some() || is_late || state.is_over {
                state.waiting -= 1;
                return work;
            }
            let (next, waited) =
                self.changed.wait_timeout(state, self.idle_max).unwrap_or_else(PoisonError::into_inner);
            (state, is_late) = (next, waited.timed_out());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}
