//! Rate limit for the log lines that one plugin can cause, with a count of the lines that were dropped.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use super::clock::Clock;
use crate::vocabulary::{Allowance, Rate};

/// The delay between the first dropped line and the line with the count; lines dropped meanwhile are included.
const TOLD_AFTER: Duration = Duration::from_secs(5);

/// The rate for lines about the behaviour of one plugin, as opposed to its own output: bad events, health, broken streams.
pub(crate) const BEHAVIOUR_RATE: Rate = Rate { burst: 32, per_minute: 30 };

/// The rate limit of one plugin. It belongs to an actor, and logs an unreported count when it is dropped.
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
    /// A limit for the lines about this plugin.
    pub(crate) fn new(about: &dyn Display, rate: Rate) -> Self {
        let clock = Clock::system();
        let allowance = RefCell::new(Allowance::new(rate, clock.now()));
        Self(Rc::new(Inner { about: about.to_string(), clock, allowance, is_to_be_told: Cell::new(false) }))
    }

    /// Writes a line, or counts it as dropped. Must be called in a running actor system.
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
            // If it was dropped, its `Drop` has logged the count.
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
            tracing::warn!(%plugin, left_out, "suppressed log lines about a plugin that caused too many");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tell();
    }
}
