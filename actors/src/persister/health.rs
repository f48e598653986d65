//! The health of the disk: whether it takes what is written, as every user of the database sees it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tracing::{error, info};

use crate::vocabulary::Timestamp;

/// How long a commit may take. Then the disk counts as sick, and the callers that wait for it are answered.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(3);

/// Whether the disk takes what is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DiskHealth {
    /// It does.
    #[default]
    Sound,
    /// It does not, or not within [`WRITE_DEADLINE`]. What was handed over is written when it is sound again.
    Sick {
        /// What is wrong.
        reason: String,
        /// Since when.
        since: Timestamp,
    },
}

impl DiskHealth {
    /// What is wrong, if something is.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Sound => None,
            Self::Sick { reason, .. } => Some(reason),
        }
    }
}

/// The health of one disk, shared by all who write to it. It outlives a persister that crashes and is opened again.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<watch::Sender<DiskHealth>>);

impl Disk {
    /// How it is.
    #[must_use]
    pub fn health(&self) -> DiskHealth {
        self.0.borrow().clone()
    }

    /// Hears of each change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<DiskHealth> {
        self.0.subscribe()
    }

    pub(super) fn is_sick(&self, path: &Path, reason: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.send_if_modified(|health| match health {
            DiskHealth::Sick { reason: known, .. } if known == reason => false,
            DiskHealth::Sick { reason: known, .. } => {
                reason.clone_into(known);
                true
            }
            DiskHealth::Sound => {
                error!(error = reason, path = %path.display(), "the disk takes no writes; nothing is registered, launched or started until it does");
                let (reason, since) = (reason.to_owned(), Timestamp::from_epoch(since));
                *health = DiskHealth::Sick { reason, since };
                true
            }
        });
    }

    pub(super) fn is_sound(&self, path: &Path) {
        self.0.send_if_modified(|health| {
            let was_sick = *health != DiskHealth::Sound;
            if was_sick {
                info!(path = %path.display(), "the disk takes writes again, and what waited for it is written");
                *health = DiskHealth::Sound;
            }
            was_sick
        });
    }
}
