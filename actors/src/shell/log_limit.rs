//! Keeps within bounds what one stranger can have written into our log, and tells how much was left out.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use super::clock::Clock;
use crate::vocabulary::{Allowance, Rate};

/// How long after the first line that was left out it is told how many were; those that follow meanwhile are among them.
const TOLD_AFTER: Duration = Duration::from_secs(5);

/// For lines about one plugin that tell of what it did, as opposed to what it said: bad events, changes of health, streams
/// that break off.
pub(crate) const DEEDS: Rate = Rate { burst: 32, per_minute: 30 };

/// The lines of our log that one stranger causes. It belongs to an actor, and tells what it has not told when it goes.
#[derive(Debug, Clone)]
pub(crate) struct LogLimit(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    about: String,
    clock: Clock,
    allowance: RefCell<Allowance>,
    is_to_be_told: Cell<bool>,
}

impl LogLimit {
    /// A limit for the lines about this stranger.
    pub(crate) fn new(about: &dyn Display, rate: Rate) -> Self {
        let clock = Clock::system();
        let allowance = RefCell::new(Allowance::new(rate, clock.now()));
        Self(Rc::new(Inner { about: about.to_string(), clock, allowance, is_to_be_told: Cell::new(false) }))
    }

    /// Has a line written, or counts it among those that are left out. To be called in a running actor system.
    pub(crate) fn say(&self, write: impl FnOnce()) {
        let now = self.0.clock.now();
        if self.0.allowance.borrow_mut().take(now) {
            write();
        } else if !self.0.is_to_be_told.replace(true) {
            self.tell_later();
        }
    }

    fn tell_later(&self) {
        let inner = Rc::downgrade(&self.0);
        actix_rt::spawn(async move {
            tokio::time::sleep(TOLD_AFTER).await;
            // Whoever is gone has told it.
            if let Some(inner) = inner.upgrade() {
                inner.is_to_be_told.set(false);
                inner.tell();
            }
        });
    }
}

impl Inner {
    fn tell(&self) {
        let left_out = self.allowance.borrow_mut().take_left_out();
        if left_out > 0 {
            let plugin = &self.about;
            tracing::warn!(%plugin, left_out, "lines of this log about a plugin were left out, since it caused too many");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tell();
    }
}
