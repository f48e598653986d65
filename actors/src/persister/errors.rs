//! What can go wrong, one type for each conversation.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why writes did not reach the disk (P3). The persister lives on, and writing works again when the cause is gone.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// No space, or no quota, is left where the database lies.
    #[error("cannot write {path}: no space is left; free some and the next write succeeds")]
    NoSpace {
        /// The database file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The file system of the database is read-only now, or access to it was taken away.
    #[error("cannot write {path}: {source}; make the file system writable again and the next write succeeds")]
    ReadOnly {
        /// The database file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// Reading or writing failed otherwise.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The database file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The database contradicts itself.
    #[error("cannot write {path}: the database is damaged: {reason}")]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A record or its key is longer than allowed. Nothing of the write was stored.
    #[error("a write of {owner} has an operation of {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// Whose write it was.
        owner: &'static str,
        /// The length of its longest operation.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// More writes are waiting than the persister holds. Its owners should have refused work before it came to this.
    #[error("a write of {owner} was refused because {waiting} writes are waiting for the disk already")]
    Overloaded {
        /// Whose write it was.
        owner: &'static str,
        /// How many are waiting.
        waiting: usize,
    },
    /// The database was closed before this write was handed over.
    #[error("cannot write {path}: the database is closed")]
    Closed {
        /// The database file.
        path: PathBuf,
    },
    /// The persister has ended by itself before this write was on disk.
    #[error("cannot write {path}: whoever writes it has ended unexpectedly; it is opened again")]
    Ended {
        /// The database file.
        path: PathBuf,
    },
}

impl WriteError {
    /// Whether the same write can succeed later.
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
    /// A record was written by a later version of this program.
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
        /// The newest schema that is known.
        ours: u16,
    },
    /// The file could not be read.
    #[error("cannot load table {table} of {path}: {source}")]
    Io {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The pages of the file contradict each other.
    #[error("cannot load table {table} of {path}: the database is damaged: {reason}")]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// What was found.
        reason: String,
    },
    /// The database was closed before, or the persister's thread has ended.
    #[error("cannot load table {table} of {path}: the database is closed")]
    Closed {
        /// The database file.
        path: PathBuf,
        /// The table.
        table: &'static str,
    },
}

impl LoadError {
    /// Whether loading can succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

/// The persister's thread ended before the database could be closed in order. The file is sound nevertheless (P4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot close {path} in order: the thread of the persister has ended")]
pub struct CloseError {
    /// The database file.
    pub path: PathBuf,
}

/// Why a data directory could not be opened. The database file, if there is one, was not touched.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Something else than a directory is where the data directory, or a directory above it, should be.
    #[error(
        "cannot use {path} as data directory: it, or something above it, is not a directory; name another path"
    )]
    NotADirectory {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The path, or one of its parts, is longer than the system allows.
    #[error(
        "cannot use a data directory with a path of {bytes} bytes: it is too long for this system; name a shorter one"
    )]
    PathTooLong {
        /// The path that was tried.
        path: PathBuf,
        /// How long it is.
        bytes: usize,
    },
    /// This user may not write there, or the file system is read-only.
    #[error("cannot write {path}: {source}; give this user write access, or name another data directory")]
    NotWritable {
        /// The path that was tried.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No space, or no quota, is left there.
    #[error("cannot write {path}: no space is left; free some, or name another data directory")]
    NoSpace {
        /// The path that was tried.
        path: PathBuf,
        /// What the system said.
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
    /// The database was written by a later version of this program.
    #[error(
        "cannot open {path}: it has schema {theirs}, and {ours} is the newest known here; \
         run the version that wrote it, or a later one"
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The schema of the file.
        theirs: u32,
        /// The newest schema that is known.
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
        /// What was found.
        reason: String,
    },
    /// Opening failed otherwise.
    #[error("cannot open {path}: {source}")]
    Io {
        /// The path that was tried.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// Whether opening the same directory can succeed later without anyone naming another path or version.
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
