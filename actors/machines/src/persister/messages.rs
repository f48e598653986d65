//! The messages between owners and the persister.

use super::codec;
use super::errors::WriteError;
use super::record::Record;

/// The owner of writes, for example `registry`, or one of many of a kind. Each owner has one ledger at a time, which is notified of the
/// outcome of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    kind: &'static str,
    number: u64,
}

impl Owner {
    /// The only owner of this kind.
    #[must_use]
    pub const fn new(kind: &'static str) -> Self {
        Self { kind, number: 0 }
    }

    /// One of many of a kind. Owners with the same number are the same.
    #[must_use]
    pub const fn numbered(kind: &'static str, number: u64) -> Self {
        Self { kind, number }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        self.kind
    }
}

/// A table of the database: byte keys to records, ordered by key.
///
/// Growing keys keep writes on few pages, so a growing number in big-endian order is the best key; random keys cost several
/// times as much in a large table. The names `meta` and `quarantine` are reserved for the persister. In the database of a
/// host the names of the tables of our own actors are refused as well; the documentation of a `Ledger` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table(pub &'static str);

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Inserts or replaces the record with this key.
    Put {
        /// The table of the record.
        table: Table,
        /// The key of the record.
        key: Vec<u8>,
        /// The record as encoded by [`encode`](super::encode), at most [`RECORD_BYTES_MAX`](super::RECORD_BYTES_MAX) long.
        record: Vec<u8>,
    },
    /// Removes a record. Idempotent: a missing record is not an error.
    Delete {
        /// The table of the record.
        table: Table,
        /// Its key.
        key: Vec<u8>,
        /// The name of the record for people; empty if its key is readable.
        name: String,
    },
}

impl Operation {
    /// Puts this record into the table of its type.
    #[must_use]
    pub fn put<R: Record>(key: impl Into<Vec<u8>>, record: &R) -> Self {
        Self::Put { table: R::TABLE, key: key.into(), record: codec::encode(record) }
    }

    /// Deletes the record with this key from the table of its type.
    #[must_use]
    pub fn delete<R: Record>(key: impl Into<Vec<u8>>) -> Self {
        Self::delete_named::<R>(key, String::new())
    }

    /// Deletes the record with this key, which is unreadable for people, and gives its name for them.
    #[must_use]
    pub fn delete_named<R: Record>(key: impl Into<Vec<u8>>, name: String) -> Self {
        Self::Delete { table: R::TABLE, key: key.into(), name }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Put { key, record, .. } => key.len() + record.len(),
            Self::Delete { key, .. } => key.len(),
        }
    }
}

/// Asks the persister to write these operations atomically: all of them or none.
///
/// There is no reply: one notification per commit tells the owner's ledger the progress. Writes reach the disk in the
/// order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The owner of this write.
    pub owner: Owner,
    /// Raised by the owner when writes were lost, before it hands them over again; pending writes of earlier epochs are dropped
    /// with the first one that is lost.
    pub epoch: u64,
    /// Grows with every write of an epoch.
    pub sequence: u64,
    /// The changes, in this order.
    pub operations: Vec<Operation>,
}

impl Write {
    /// Why it is refused, if it would never fit.
    #[must_use]
    pub fn too_large(&self) -> Option<WriteError> {
        let bytes = self.operations.iter().map(Operation::bytes).max().unwrap_or(0);
        let error = WriteError::TooLarge { owner: self.owner.kind(), bytes, limit: codec::RECORD_BYTES_MAX };
        (bytes > codec::RECORD_BYTES_MAX).then_some(error)
    }
}

/// A row whose last change is not on disk yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwrittenRow {
    /// The table of the row.
    pub table: Table,
    /// Its key.
    pub key: Vec<u8>,
    /// The record to be written; `None` if the row is to be deleted.
    pub record: Option<Vec<u8>>,
    /// The name for people of the row that is to be deleted; empty if its key is readable.
    pub name: String,
}

/// The content of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<R> {
    /// Every sound record with its key, ordered by key. Records of older schemas are migrated already.
    pub rows: Vec<(Vec<u8>, R)>,
    /// Records that could not be decoded (RES-08), ordered by key. They are in quarantine now and not reported again, except
    /// that records which cannot even be read ([`DecodeError::Missing`](super::DecodeError)) are reported each time.
    pub damaged: Vec<Damaged>,
}

/// A record that could not be decoded and was moved to quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The table of the record.
    pub table: Table,
    /// Its key, which may be the damaged part. Empty for records that cannot be read.
    pub key: Vec<u8>,
    /// The decode error.
    pub reason: super::DecodeError,
}
