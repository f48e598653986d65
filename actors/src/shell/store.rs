//! The store of a machine: its changes are written to it and loaded from it.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::LocalBoxFuture;

use crate::kernel::{Machine, Never, Ticket, Written};
use crate::persister::{Disk, Settled};

/// The number of epochs reserved for each actor: one each time its writes are lost or refused.
const EPOCHS_EACH: u64 = 1 << 32;

static ACTORS: AtomicU64 = AtomicU64::new(0);

/// The first epoch of an actor that starts now.
pub(crate) fn first_epoch() -> u64 {
    ACTORS.fetch_add(1, Ordering::Relaxed).saturating_mul(EPOCHS_EACH)
}

/// The store of one machine.
pub trait Store<M: Machine>: 'static {
    /// Sets the recipient of [`Settled`]. Called once, first. A store that never answers [`Written::Later`] can ignore it.
    fn open(&mut self, settled: actix::Recipient<Settled>) {
        drop(settled);
    }

    /// The disk that it writes to, if that disk can be sick: new promises are then refused at once.
    fn disk(&self) -> Option<Disk> {
        None
    }

    /// Writes a change. Order is kept.
    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written;

    /// Loads everything, behind all writes that were handed over before.
    fn load(&mut self) -> LocalBoxFuture<'static, Result<M::Image, String>>;
}

/// The store of a machine that stores nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStore;

impl<M: Machine<Image = (), Change = Never>> Store<M> for NoStore {
    fn write(&mut self, _ticket: Ticket, change: Never) -> Written {
        match change {}
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
