//! Checks code that threads share, under the schedules of a model checker.
//!
//! The files are the production code, compiled again with locks and atomics that the checker schedules. A model is small: two
//! threads with a few steps each. It is run under every schedule if there are few enough, else under many random schedules
//! with few changes of thread, since most races need only two or three. A failure prints the schedule that leads to
//! it. The memory model is sequentially consistent: a counter with relaxed atomics is a single number, read and written
//! alone, and everything else is behind a lock.

/// The locks, threads and time that the files use.
mod sync {
    use std::time::Duration;

    use shuttle::rand::{Rng, thread_rng};
    pub(crate) use shuttle::sync::*;
    pub(crate) use shuttle::thread;
    pub(crate) use std::sync::{LockResult, PoisonError};

    /// The schedule decides how long ago an instant was: no time at all, or longer than any wait.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) struct Instant(Duration);

    impl Instant {
        pub(crate) fn now() -> Self {
            Self(if thread_rng().gen_bool(0.5) { Duration::ZERO } else { Duration::from_secs(1) })
        }

        pub(crate) fn elapsed(self) -> Duration {
            Self::now().0
        }
    }

    impl std::ops::Add<Duration> for Instant {
        type Output = Self;

        fn add(self, span: Duration) -> Self {
            // Every wait ends at some time.
            Self(span)
        }
    }

    /// The schedule decides whether a wait ends before its condition holds, except for a wait of `Duration::MAX`.
    #[derive(Debug)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub(crate) const fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        pub(crate) fn wait_timeout_while<'l, T>(
            &self,
            mut guard: MutexGuard<'l, T>,
            within: Duration,
            mut condition: impl FnMut(&mut T) -> bool,
        ) -> LockResult<(MutexGuard<'l, T>, bool)> {
            while condition(&mut guard) {
                if within < Duration::MAX && thread_rng().gen_bool(0.5) {
                    return Ok((guard, true));
                }
                guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            Ok((guard, false))
        }
    }

    impl std::ops::Deref for Condvar {
        type Target = shuttle::sync::Condvar;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    /// A thread that works for an event loop.
    pub(crate) fn spawn_blocking(work: impl FnOnce() + Send + 'static) {
        thread::spawn(work);
    }
}

use callboard_actors::pauses;
use callboard_machines::{driver, kernel, vocabulary};

#[allow(
    dead_code,
    unreachable_pub,
    reason = "a model does not use all of what production does, nor export it"
)]
#[path = "../../src/shell"]
mod shell {
    pub(crate) mod clock;
    pub(crate) mod feed;
    pub(crate) mod journal;
    pub(crate) mod mailbox;
    pub(crate) mod notice;
}

#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../src/persister"]
mod persister {
    pub(crate) mod handoff;
    pub(crate) mod inbox;
    pub(crate) mod shared_queue;
    pub(crate) mod worker;

    pub(crate) use crate::writes::{messages, store};

    /// Two writes are a large batch here; in production it is 64.
    pub(crate) const fn is_large_batch(waiting: usize, _: usize) -> bool {
        waiting >= 2
    }
}

#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../src/process"]
mod process {
    pub(crate) mod plugin_log;

    pub(crate) use callboard_actors::process::ProcessName;
}

#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../src/mounts"]
mod mounts {
    pub(crate) mod reading;
    pub(crate) mod workers;
}

#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../src/lease"]
mod lease {
    pub(crate) mod gate;
}

#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../src/eventor"]
mod eventor {
    pub(crate) mod journals;

    pub(crate) use callboard_machines::eventor::{Journal, JournalId, Taken};
}

#[path = "../../../src/logging"]
mod logging {
    pub(crate) mod queue;
}

#[allow(dead_code, unreachable_pub, reason = "as above")]
#[path = "../../../src/process"]
mod outputs {
    pub(crate) use crate::logs::log;

    pub(crate) mod copying {
        use std::time::Duration;

        pub(crate) mod writer;

        const HUNG_AFTER: Duration = Duration::from_secs(1);
        const STACK_BYTES: usize = 128 * 1_024;
    }
}

/// The lines that the log thread reports are dropped: the model observes its position.
mod goplugin {
    pub(crate) use callboard_actors::goplugin::PluginLine;

    pub(crate) fn tell(_: &callboard_actors::process::ProcessName, _: &PluginLine) {}
}

mod feeds;
mod journals;
mod leases;
mod lines;
mod logs;
mod mailboxes;
mod notices;
mod readings;
mod standard_error;
mod task_journals;
mod tasks;
mod workers;
mod writes;

/// Runs a model under every schedule.
fn under_every_schedule(model: impl Fn() + Send + Sync + 'static) {
    shuttle::check_dfs(model, None);
}

/// Runs a model under many random schedules with few changes of thread, so that a race which needs up to three changes
/// is likely to be found.
fn under_many_schedules(model: impl Fn() + Send + Sync + 'static) {
    shuttle::check_pct(model, 2_000, 3);
}

/// Asserts that a model fails under some schedule: its invariants can be violated.
fn fails_under_some_schedule(model: impl Fn() + Send + Sync + 'static) {
    let run = std::panic::AssertUnwindSafe(|| shuttle::check_pct(model, 20_000, 3));
    assert!(std::panic::catch_unwind(run).is_err(), "the model does not notice that it is wrong");
}
