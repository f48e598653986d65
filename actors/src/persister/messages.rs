//! What one says to the persister, and what it says back.

use actix::{Message, Recipient};

use super::codec;
use super::errors::WriteError;
use super::record::Record;

/// Whose writes these are, for example `registry`. Each owner has one ledger, which is told how its writes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(pub &'static str);

/// A table of the database: from byte keys to records, ordered by key.
///
/// Keys that grow keep writes on few pages, so a growing number in big-endian order is the best key; scattered keys cost
/// several times as much in a large table. The names `meta` and `quarantine` belong to the persister.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table(pub &'static str);

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Writes a record, in place of the one that has this key.
    Put {
        /// Where the record lives.
        table: Table,
        /// The key below which it is found again.
        key: Vec<u8>,
        /// The record as [`encode`](super::encode) makes it, at most [`RECORD_BYTES_MAX`](super::RECORD_BYTES_MAX) long.
        record: Vec<u8>,
    },
    /// Removes a record. Removing one that is not there changes nothing.
    Delete {
        /// Where the record lives.
        table: Table,
        /// Its key.
        key: Vec<u8>,
    },
}

impl Operation {
    /// The change that stores this record in the table of its type.
    #[must_use]
    pub fn put<R: Record>(key: impl Into<Vec<u8>>, record: &R) -> Self {
        Self::Put { table: R::TABLE, key: key.into(), record: codec::encode(record) }
    }

    /// The change that removes the record with this key from the table of its type.
    #[must_use]
    pub fn delete<R: Record>(key: impl Into<Vec<u8>>) -> Self {
        Self::Delete { table: R::TABLE, key: key.into() }
    }

    /// How many bytes this change carries.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Put { key, record, .. } => key.len() + record.len(),
            Self::Delete { key, .. } => key.len(),
        }
    }
}

/// Tells the persister to bring these operations to disk, all of them or none.
///
/// There is no reply: one [`Settled`] per commit tells the owner's ledger how far its writes have come. Writes reach the
/// disk in the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Message)]
#[rtype(result = "()")]
pub struct Write {
    /// Whose write this is.
    pub owner: Owner,
    /// Which life of the owner's memory this write comes from. The owner raises it when a write has failed and it has
    /// begun again from what is on disk; what is still under way from before is then dropped unwritten.
    pub epoch: u64,
    /// Grows with every write of an epoch.
    pub sequence: u64,
    /// What to change, in this order.
    pub operations: Vec<Operation>,
}

/// News for a ledger: how the writes of its owner ended, in the order in which they were sent.
///
/// There is one per commit that held writes of the owner (one per epoch, should a commit hold two epochs of it).
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct Settled {
    /// The epoch of these writes.
    pub epoch: u64,
    /// The highest sequence among them.
    pub through: u64,
    /// Success: every write of this epoch up to `through` is on disk. An error: the writes of this epoch that were not
    /// settled before, whatever their sequence, and all that may still come with this epoch or an earlier one, are not
    /// acknowledged and will not be written. Of the commit that failed either everything or nothing is on disk, and only a
    /// [`load`](super::Persister::load) can tell which.
    pub outcome: Result<(), WriteError>,
}

/// Tells the persister who is to be told of an owner's writes. A second one replaces the first, which then hears no more.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct OpenLedger {
    /// Whose ledger this is.
    pub owner: Owner,
    /// Who is told.
    pub settled: Recipient<Settled>,
}

/// What a table held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<R> {
    /// Every sound record with its key, ordered by key. Records of older schemas are migrated already.
    pub rows: Vec<(Vec<u8>, R)>,
    /// What could not be read (RES-08), ordered by key. It is in quarantine now and will not be reported again, except that
    /// records which cannot even be found ([`DecodeError::Missing`](super::DecodeError)) are reported each time.
    pub damaged: Vec<Damaged>,
}

/// A record that could not be read and was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The table that it lay in.
    pub table: Table,
    /// Its key, which may itself be what is damaged. Empty for records that cannot be found.
    pub key: Vec<u8>,
    /// What is wrong with it.
    pub reason: super::DecodeError,
}
