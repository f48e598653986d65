//! Where a machine's changes go, and where it comes back from.

use futures_util::future::LocalBoxFuture;

use super::machine::{Machine, Never};
use crate::persister::Settled;

/// Whose turn a write is: lives of the machine are numbered by `epoch`, its writes within all lives by `sequence`. When a
/// write fails, later ones of the same epoch never happen, since they were decided on top of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Grows each time the machine is rebuilt.
    pub epoch: u64,
    /// Grows with each write.
    pub sequence: u64,
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
