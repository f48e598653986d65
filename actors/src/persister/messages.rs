//! The messages of the persister to owners of writes.

use actix::{Message, Recipient};

use super::{Owner, WriteError};

/// Notification for a ledger: the outcome of its owner's writes, in the order in which they were sent.
///
/// There is one per commit that held writes of the owner (one per epoch, should a commit hold two epochs of it).
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Settled {
    /// The epoch of these writes.
    pub epoch: u64,
    /// The highest sequence among them.
    pub through: u64,
    /// Success: every write of this epoch up to `through` is on disk. An error: all unsettled writes of this epoch, whatever
    /// their sequence, and all later writes of this epoch or an earlier one are not acknowledged and will not be written.
    /// The failed commit is on disk entirely or not at all, and only a [`load`](super::Persister::load) can show which.
    pub outcome: Result<(), WriteError>,
}

/// The recipient of an owner's write results.
pub(super) type Listener = Recipient<Settled>;

/// Sets the recipient of an owner's write results. A second one replaces the first, which is no longer notified.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct OpenLedger {
    /// The owner of the ledger.
    pub owner: Owner,
    /// The recipient of the results.
    pub settled: Recipient<Settled>,
}
