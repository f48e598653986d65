//! The counters of an actor's mailbox: messages in flight against their limit, and totals.
//!
//! Senders of any thread are admitted concurrently, so `actors/tests/threads` model-checks this file with shuttle.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The counters of an actor. They survive its restarts.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) name: Arc<str>,
    limit: usize,
    in_flight: AtomicUsize,
    pub(crate) crashes: AtomicU64,
    pub(crate) rebuilds: AtomicU64,
    pub(crate) steps: AtomicU64,
}

/// The mailbox is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    /// How many messages are in flight.
    pub(crate) in_flight: usize,
    /// The limit of messages in flight.
    pub(crate) limit: usize,
}

/// Counts one message as in flight until it is dropped (RAII).
#[derive(Debug)]
pub(crate) struct Permit(Arc<Mailbox>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Mailbox {
    pub(crate) fn new(name: Arc<str>, limit: usize) -> Self {
        Self {
            name,
            limit,
            in_flight: AtomicUsize::new(0),
            crashes: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// How many messages are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Admits a message unless the limit is reached. A refused message is never counted, not even for a moment: otherwise it
    /// could displace another one for which there is room.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Permit, Full> {
        let limit = self.limit;
        let admitted = self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |in_flight| {
            (in_flight < limit).then_some(in_flight + 1)
        });
        match admitted {
            Ok(_) => Ok(Permit(Arc::clone(self))),
            Err(in_flight) => Err(Full { in_flight, limit }),
        }
    }

    /// Admits a message regardless of the limit.
    pub(crate) fn admit_whatever(self: &Arc<Self>) -> Permit {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Permit(Arc::clone(self))
    }
}
