//! Where a machine's changes go, and where it comes back from.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::LocalBoxFuture;

use super::machine::{Machine, Never};
use crate::persister::Settled;

/// Whose turn a write is: lives of the machine are numbered by `epoch`, the writes of its actor by `sequence`. When a write
/// fails, later ones of the same epoch never happen, since they were decided on top of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Grows each time the machine is rebuilt, and with each actor that is started. No two actors of a process share one, so
    /// that what a former actor of the same owner still had on its way is never taken for a write of the present one.
    pub epoch: u64,
    /// Grows with each write of an actor.
    pub sequence: u64,
}

/// How many rebuilds of one actor have epochs of their own.
const EPOCHS_EACH: u64 = 1 << 32;

/// How many actors were started in this process.
static ACTORS: AtomicU64 = AtomicU64::new(0);

/// The first epoch of an actor that starts now.
pub(crate) fn first_epoch() -> u64 {
    ACTORS.fetch_add(1, Ordering::Relaxed).saturating_mul(EPOCHS_EACH)
}

/// What became of a write that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It is as safe as it will get.
    Now,
    /// A [`Settled`] will tell.
    Later,
    /// It failed at once.
    Failed(String),
}

/// The store of one machine.
pub trait Store<M: Machine>: 'static {
    /// Tells whom to send [`Settled`] to. Called once, before anything else. A store that never answers [`Written::Later`]
    /// has no use for it.
    fn open(&mut self, settled: actix::Recipient<Settled>) {
        drop(settled);
    }

    /// Takes a change. Order is kept.
    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written;

    /// Reads everything back, behind all writes that were taken before.
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
