//! The errors of the persister, one type per operation.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::taken::NameTaken;

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
    /// The table belongs to others ([`TakenNames`](super::TakenNames)).
    #[error(transparent)]
    Taken(#[from] NameTaken),
    /// The database was closed already, or the persister's thread has ended.
    #[error("cannot read {path}: the database is closed")]
    Closed {
        /// The database file.
        path: PathBuf,
    },
}

impl LoadError {
    /// Whether a retry of the load can succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

/// Why a database was not closed in order. The file is sound nevertheless, and contains everything that was acknowledged (P4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The thread of the persister ended before.
    #[error("cannot close {path} in order: the thread of the persister has ended")]
    Ended {
        /// The database file.
        path: PathBuf,
    },
    /// The disk did not take the last writes.
    #[error("{writes} writes to {path} are lost: {reason}")]
    NotWritten {
        /// The database file.
        path: PathBuf,
        /// How many writes are not on disk.
        writes: usize,
        /// The error of the disk.
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
