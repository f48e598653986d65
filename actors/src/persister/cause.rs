//! The cause of a database failure, reduced to the cases that are handled differently.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use callboard_machines::persister::{Table, WriteError};

use super::errors::{LoadError, OpenError};

#[derive(Debug, thiserror::Error)]
pub(super) enum Cause {
    #[error("it is closed")]
    Closed,
    #[error("{0}")]
    Io(io::Error),
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Runs a database operation, and maps every failure to a cause.
///
/// A panic is one of them: damaged bytes can make redb assert, and that must not take the host down (RES-08).
pub(super) fn attempt<T>(action: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, Cause> {
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Cause::from(error)),
        Err(panic) => Err(Cause::Damaged(text_of(panic.as_ref()))),
    }
}

impl From<redb::Error> for Cause {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => error.into(),
            error @ (redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen) => {
                Self::Io(io::Error::other(error.to_string()))
            }
            error => Self::Damaged(error.to_string()),
        }
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::IsADirectory => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Io(error),
        }
    }
}

impl Cause {
    pub(super) fn into_write_error(self, path: &Path) -> WriteError {
        let path = path.to_owned();
        match self {
            Self::Closed => WriteError::Closed { path },
            Self::Damaged(reason) => WriteError::Damaged { path, reason },
            Self::Io(error) => {
                let kind = error.kind();
                let source = Arc::new(error);
                match kind {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => WriteError::NoSpace { path, source },
                    ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                        WriteError::ReadOnly { path, source }
                    }
                    _ => WriteError::Io { path, source },
                }
            }
        }
    }

    pub(super) fn into_load_error(self, path: &Path, table: Table) -> LoadError {
        let (path, table) = (path.to_owned(), table.0);
        match self {
            Self::Closed => LoadError::Closed { path },
            Self::Damaged(reason) => LoadError::Damaged { path, table, reason },
            Self::Io(error) => LoadError::Io { path, table, source: Arc::new(error) },
        }
    }

    pub(super) fn into_open_error(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::Closed => OpenError::Io { path, source: io::Error::other("it is closed") },
            Self::Damaged(reason) => OpenError::Damaged { path, reason },
            Self::Io(source) => match source.kind() {
                ErrorKind::NotADirectory | ErrorKind::AlreadyExists => OpenError::NotADirectory { path },
                ErrorKind::InvalidFilename => {
                    let bytes = path.as_os_str().len();
                    OpenError::PathTooLong { path, bytes }
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => OpenError::NoSpace { path, source },
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    OpenError::NotWritable { path, source }
                }
                _ => OpenError::Io { path, source },
            },
        }
    }
}

pub(super) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("reading it failed an assertion: {}", text.unwrap_or("no text"))
}
