//! The reasons why a host does not start.

use std::io;
use std::time::Duration;

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
    /// The owner of its data directory cannot be determined, for example of a copy beside its original.
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
    /// The deadlines of its volumes leave no time for a call to a plugin, so no call would ever be made.
    #[error(
        "the host did not start: VolumeOptions::call_deadline is {call_deadline:?} and VolumeOptions::look_deadline, which is a part of \
         it, is {look_deadline:?}, so that no time is left for a call of a volume; make call_deadline the longer one, best more than \
         twice as long"
    )]
    VolumeDeadlines {
        /// The deadline of each call with the look after it.
        call_deadline: Duration,
        /// The deadline of a look.
        look_deadline: Duration,
    },
    /// The caller is not in an actix system, which [`HostBuilder::start`](super::HostBuilder::start) needs.
    #[error(
        "the host did not start: HostBuilder::start runs it in the actix system of its caller, and there is none; in a plain tokio \
         program call HostBuilder::start_on_own_thread instead"
    )]
    NoSystem,
    /// Its thread could not be started.
    #[error("cannot start a thread for the host: {0}")]
    Thread(#[source] io::Error),
}

impl StartError {
    /// Whether the same start may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => error.is_transient(),
            Self::Ownership(error) => error.is_transient(),
            Self::Layout(_)
            | Self::Directory(_)
            | Self::Parts(_)
            | Self::VolumeDeadlines { .. }
            | Self::NoSystem => false,
            Self::Actors(_) | Self::Ended(_) | Self::Thread(_) => true,
        }
    }
}
