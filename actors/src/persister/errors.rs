//! The errors of the persister, one type per operation.

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
    /// The queue of writes is full. Owners should have applied backpressure before it came to this.
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
    /// Whether the disk did not take the write: it is written when the disk does again.
    pub(super) const fn is_of_the_disk(&self) -> bool {
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

/// Why a table could not be loaded. Nothing was changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoadError {
    /// A record was written by a newer version of this program.
    #[error(
        "cannot load table {table} of {path}: it holds a record of schema {theirs}, and {ours} is the newest known here; \
         run the version that wrote it, or a later one"
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The schema of the record.
        theirs: u16,
        /// The newest schema that this program supports.
        ours: u16,
    },
    /// The file could not be read.
    #[error("cannot load table {table} of {path}: {source}")]
    Io {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The error of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The pages of the file are inconsistent.
    #[error("cannot load table {table} of {path}: the database is damaged: {reason}")]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The inconsistency.
        reason: String,
    },
    /// The database was closed already, or the persister's thread has ended.
    #[error("cannot load table {table} of {path}: the database is closed")]
    Closed {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
    },
}

impl LoadError {
    /// Whether a retry of the load can succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

/// Why a database was not closed in order. The file is sound nevertheless, and holds everything that was acknowledged (P4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The thread of the persister ended before.
    #[error("cannot close {path} in order: the thread of the persister has ended")]
    Ended {
        /// The database file.
        path: PathBuf,
    },
    /// The disk did not take what was handed over last.
    #[error("{writes} writes to {path} are lost: {reason}")]
    NotWritten {
        /// The database file.
        path: PathBuf,
        /// How many writes are not on disk.
        writes: usize,
        /// What was wrong with the disk.
        reason: String,
    },
}

/// Why a data directory could not be opened. The database file, if there is one, was not touched.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path of the data directory, or of a parent, exists and is not a directory.
    #[error(
        "cannot use {path} as data directory: it, or something above it, is not a directory; name another path"
    )]
    NotADirectory {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The path, or one of its components, exceeds the limit of the system.
    #[error(
        "cannot use a data directory with a path of {bytes} bytes: it is too long for this system; name a shorter one"
    )]
    PathTooLong {
        /// The path that was tried.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// This user has no write permission there, or the file system is read-only.
    #[error("cannot write {path}: {source}; give this user write access, or name another data directory")]
    NotWritable {
        /// The path that was tried.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// No space or no quota is left there.
    #[error("cannot write {path}: no space is left; free some, or name another data directory")]
    NoSpace {
        /// The path that was tried.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Another host uses this data directory (P5).
    #[error(
        "cannot use data directory {data_dir}: {holder} uses it; stop that host first, or name another data directory"
    )]
    Locked {
        /// The data directory.
        data_dir: PathBuf,
        /// The host that holds it.
        holder: super::Holder,
    },
    /// The database was written by a newer version of this program.
    #[error(
        "cannot open {path}: it has schema {theirs}, and {ours} is the newest known here; \
         run the version that wrote it, or a later one"
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The schema of the file.
        theirs: u32,
        /// The newest schema that this program supports.
        ours: u32,
    },
    /// The file is not a database of Callboard, or is damaged beyond single records.
    #[error(
        "cannot open {path}: it is damaged, or not a database of Callboard ({reason}); \
         move it away to start anew, or restore a copy"
    )]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Another I/O error.
    #[error("cannot open {path}: {source}")]
    Io {
        /// The path that was tried.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// Whether a retry with the same directory and the same version of the program can succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NoSpace { .. } | Self::Locked { .. } | Self::Io { .. } => true,
            Self::NotADirectory { .. }
            | Self::PathTooLong { .. }
            | Self::NotWritable { .. }
            | Self::Newer { .. }
            | Self::Damaged { .. } => false,
        }
    }
}
