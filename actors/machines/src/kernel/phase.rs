//! Where a kernel stands with its machine, and what it keeps for later.

use super::machine::{Machine, StopMode};
use super::port::Terms;
use crate::vocabulary::Timestamp;

/// Where the kernel stands with its machine.
#[derive(Debug, Clone, Hash)]
pub(super) enum Phase<M> {
    /// The store is being read; the machine will be built from it.
    Loading,
    /// The machine lives.
    Running(M),
    /// The machine crashed, or could not write; what it had written before must settle first.
    Settling(AfterSettling),
    /// A write or a load failed; the store is read again after a pause, which ends then.
    Pausing(Timestamp),
    /// It is over.
    Ended,
}

/// What comes when everything that was written has settled.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) enum AfterSettling {
    /// The store is read again at once.
    Load,
    /// The store could not write, and is left alone for a while.
    Pause,
}

/// What came in while there was no machine, in the order in which it came.
#[derive(Debug, Clone, Hash)]
pub(super) enum Deferred<M: Machine, T: Terms<M>> {
    /// A question, and when it came.
    Question { ask: M::Ask, asked_at: Timestamp, asker: T::Asker },
    /// A request to stop.
    Stop(StopMode),
    /// A subscriber.
    Subscriber(T::Reader),
    /// Those subscribers that fell behind want a new snapshot.
    Resync,
    /// The journal wants a snapshot.
    Describe,
    /// The actor is made to crash.
    Crash(&'static str),
    /// The actor is made to give up.
    GiveUp(&'static str),
}

impl<M: Machine, T: Terms<M>> Deferred<M, T> {
    /// The order to end, if it is one.
    pub(super) const fn stop(&mut self) -> Option<&mut StopMode> {
        match self {
            Self::Stop(mode) => Some(mode),
            Self::Question { .. }
            | Self::Subscriber(_)
            | Self::Resync
            | Self::Describe
            | Self::Crash(_)
            | Self::GiveUp(_) => None,
        }
    }
}

/// What the present machine has received and not finished. It is handed over again when the machine is rebuilt.
#[derive(Debug, Clone, Hash)]
pub(super) enum Unfinished<M: Machine, T: Terms<M>> {
    /// A question that no step has answered yet.
    Question { ask: M::Ask, asked_at: Timestamp, asker: T::Asker },
    /// It was asked to end.
    Stop(StopMode),
}

impl<M: Machine, T: Terms<M>> Unfinished<M, T> {
    /// The order to end, if it is one.
    pub(super) const fn stop(&mut self) -> Option<&mut StopMode> {
        match self {
            Self::Stop(mode) => Some(mode),
            Self::Question { .. } => None,
        }
    }
}
