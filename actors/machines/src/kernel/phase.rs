//! The phase of a kernel, and the inputs that it defers.

use super::machine::{Machine, StopMode};
use super::port::Terms;
use crate::vocabulary::Timestamp;

/// The phase of a kernel with respect to its machine.
#[derive(Debug, Clone, Hash)]
pub(super) enum Phase<M> {
    /// The store is being read; the machine will be built from it.
    Loading,
    /// The machine runs.
    Running(M),
    /// The machine crashed, or could not write; its earlier writes must settle first.
    Settling(AfterSettling),
    /// A write or a load failed; the store is read again after a pause, which ends at this time.
    Pausing(Timestamp),
    /// It has ended.
    Ended,
}

/// The next action after all writes have settled.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) enum AfterSettling {
    /// The store is read again at once.
    Load,
    /// The store could not write, and is not used during a pause.
    Pause,
}

/// The inputs that arrived while there was no machine, in the order of arrival.
#[derive(Debug, Clone, Hash)]
pub(super) enum Deferred<M: Machine, T: Terms<M>> {
    /// A question, and when it came.
    Question { ask: M::Ask, asked_at: Timestamp, asker: T::Asker },
    /// A request to stop.
    Stop(StopMode),
    /// A subscriber.
    Subscriber(T::Reader),
    /// Subscribers that lag request a new snapshot.
    Resync,
    /// The journal requests a snapshot.
    Describe,
    /// The actor is made to crash.
    Crash(&'static str),
    /// The actor is made to give up.
    GiveUp(&'static str),
}

impl<M: Machine, T: Terms<M>> Deferred<M, T> {
    /// The request to stop, if it is one.
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

/// An input that the present machine has received and not finished. It is handed over again when the machine is rebuilt.
#[derive(Debug, Clone, Hash)]
pub(super) enum Unfinished<M: Machine, T: Terms<M>> {
    /// A question that no step has answered yet.
    Question { ask: M::Ask, asked_at: Timestamp, asker: T::Asker },
    /// It was asked to end.
    Stop(StopMode),
}

impl<M: Machine, T: Terms<M>> Unfinished<M, T> {
    /// The request to stop, if it is one.
    pub(super) const fn stop(&mut self) -> Option<&mut StopMode> {
        match self {
            Self::Stop(mode) => Some(mode),
            Self::Question { .. } => None,
        }
    }
}
