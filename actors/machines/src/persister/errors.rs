//! The error of a write.

use std::hash::{Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why writes did not reach the disk (P3). The persister continues, and writing works again when the cause is gone.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// No space or no quota is left on the file system of the database.
    #[error("cannot write {path}: no space is left; free some and the next write succeeds")]
    NoSpace {
        /// The database file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The file system of the database has become read-only, or access was revoked.
    #[error("cannot write {path}: {source}; make the file system writable again and the next write succeeds")]
    ReadOnly {
        /// The database file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// Another I/O error.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The database file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The database is inconsistent.
    #[error("cannot write {path}: the database is damaged: {reason}")]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// The inconsistency.
        reason: String,
    },
    /// A record or its key is over the size limit. Nothing of the write was stored.
    #[error("a write of {owner} has an operation of {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// The owner of the write.
        owner: &'static str,
        /// The size of its longest operation.
        bytes: usize,
        /// The size limit.
        limit: usize,
    },
    /// The queue of writes is full. Owners should have applied backpressure before.
    #[error("a write of {owner} was refused because {waiting} writes are waiting for the disk already")]
    Overloaded {
        /// The owner of the write.
        owner: &'static str,
        /// The number of queued writes.
        waiting: usize,
    },
    /// The database was closed before this write was handed over.
    #[error("cannot write {path}: the database is closed")]
    Closed {
        /// The database file.
        path: PathBuf,
    },
    /// The persister crashed before this write was on disk.
    #[error("cannot write {path}: its writer has ended unexpectedly; the file is opened again")]
    Ended {
        /// The database file.
        path: PathBuf,
    },
}

/// By its text, since an error of the system has no hash.
impl Hash for WriteError {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_string().hash(state);
    }
}

impl WriteError {
    /// Whether the disk did not take the write: it is written when the disk takes writes again.
    #[must_use]
    pub const fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::ReadOnly { .. } | Self::Io { .. })
    }

    /// Whether a retry of the same write can succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NoSpace { .. }
            | Self::ReadOnly { .. }
            | Self::Io { .. }
            | Self::Overloaded { .. }
            | Self::Ended { .. } => true,
            Self::Damaged { .. } | Self::TooLarge { .. } | Self::Closed { .. } => false,
        }
    }
}
