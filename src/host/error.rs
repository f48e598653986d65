//! Why a host does not start.

use std::io;

use callboard_actors::allocation::LayoutError;
use callboard_actors::datadir::DataDirError;
use callboard_actors::ownership::OwnershipError;
use callboard_actors::persister::OpenError;
use callboard_actors::supervisor;

use crate::launch::PartsError;

/// Why a host did not start. Nothing runs after this, and nothing was left half-done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its database cannot be opened; the error names the path and what to do.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// Its data directory is a link, belongs to another user, or others may write to it.
    #[error(transparent)]
    Directory(#[from] DataDirError),
    /// Whose its data directory is cannot be settled, such as that of a copy beside its original.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// Its directories cannot hold what must lie in them.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Its parts cannot be put in order, or one of them belongs to another host.
    #[error("the host did not start: {0}")]
    Parts(#[from] PartsError),
    /// One of its actors did not start; those before it were stopped again.
    #[error("the host did not start: {0}")]
    Actors(#[from] supervisor::StartError),
    /// Its root supervisor ended while it started.
    #[error("the host ended while it started: {0}")]
    Ended(String),
    /// No thread could be had for it.
    #[error("cannot start a thread for the host: {0}")]
    Thread(#[source] io::Error),
}

impl StartError {
    /// Whether the same start may well succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => error.is_transient(),
            Self::Ownership(error) => error.is_transient(),
            Self::Layout(_) | Self::Directory(_) | Self::Parts(_) => false,
            Self::Actors(_) | Self::Ended(_) | Self::Thread(_) => true,
        }
    }
}
