//! Where a shell stands, and what it keeps for later.

use super::address::{Letter, ReplySender};
use super::calls::Returned;
use super::machine::{AskId, Machine, StopMode};
use crate::vocabulary::Timestamp;

/// Where the shell stands with its machine.
pub(super) enum Phase<M> {
    /// It reads the store, and will build the machine from it.
    Loading,
    /// The machine lives.
    Running(M),
    /// The machine crashed, or could not write; what it had written before must settle first.
    Settling(AfterSettling),
    /// A write or a load failed; it is tried again after a pause.
    Pausing,
    /// It is over.
    Ended,
}

/// What comes when everything that was written has settled.
#[derive(Clone, Copy)]
pub(super) enum AfterSettling {
    /// The store is read again at once.
    Load,
    /// The store could not write, and is left alone for a while.
    Pause,
}

/// Something that came in, as long as it has not been handled.
pub(super) enum Event<M: Machine> {
    /// Somebody handed this in, then.
    Letter(Letter<M>, Timestamp),
    Again(AskId, Unfinished<M>),
    Returned(Returned<M>),
}

/// What the present machine was told and has not finished. It is told again when the machine is rebuilt.
pub(super) enum Unfinished<M: Machine> {
    /// A question that no step has answered yet. Nobody may be waiting for the answer.
    Question { ask: M::Ask, asked_at: Timestamp, reply: Option<ReplySender<M>> },
    /// It was asked to end.
    Stop(StopMode),
}
