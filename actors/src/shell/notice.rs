//! Notices of actors for the host: crashes, failed writes, dead letters, lagging subscribers.

use std::collections::VecDeque;
use std::fmt;

use super::feed::{Delivery, FeedSender, Subscription, feed};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many notices are kept for later readers.
const NOTICES_KEPT: usize = 256;
/// The queue capacity of each reader.
const NOTICE_QUEUE: usize = 256;

/// Why an input had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterCause {
    /// The step that handled it panicked.
    Crashed(String),
    /// It belongs to a call of an earlier life of the machine.
    Stale,
    /// The write that its effects depend on failed.
    NotDurable(String),
    /// The actor had ended.
    Ended,
}

impl fmt::Display for DeadLetterCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed(message) => write!(f, "the step crashed: {message}"),
            Self::Stale => f.write_str("it returned to a later incarnation of the machine"),
            Self::NotDurable(error) => write!(f, "the write failed: {error}"),
            Self::Ended => f.write_str("the actor has ended"),
        }
    }
}

/// An event that the host should handle or log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A step panicked; the machine was rebuilt and continues.
    Crashed {
        /// The actor.
        actor: String,
        /// The panic message.
        message: String,
        /// The number of its crashes so far.
        crashes: u64,
    },
    /// A write was refused or lost; the callers that waited for it are refused. Lost writes are handed over again.
    WriteFailed {
        /// The actor.
        actor: String,
        /// The error of the persister.
        error: String,
    },
    /// The state on disk could not be loaded; it is retried within the restart budget.
    LoadFailed {
        /// The actor.
        actor: String,
        /// The error of the persister.
        error: String,
    },
    /// An input had no effect.
    DeadLetter {
        /// The actor that received the input.
        actor: String,
        /// The input, formatted.
        input: String,
        /// Why it had no effect.
        cause: DeadLetterCause,
    },
    /// A subscriber lags: it did not read its feed in time, and misses changes until its next snapshot. Posted for the
    /// first, second, fourth, eighth lag of a subscriber, and so on.
    Lagged {
        /// The actor that publishes the feed.
        actor: String,
        /// The name that the subscriber gave itself.
        subscriber: String,
        /// The number of its lags so far.
        lags: u64,
    },
    /// A stored record was damaged and has been moved to the quarantine (RES-08).
    Quarantined {
        /// The table of the record.
        table: String,
        /// Its key, in hexadecimal digits.
        key: String,
        /// The decode error.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed { actor, message, crashes } => {
                write!(f, "{actor} crashed (crash {crashes}) and was rebuilt: {message}")
            }
            Self::WriteFailed { actor, error } => write!(f, "{actor} could not write: {error}"),
            Self::LoadFailed { actor, error } => write!(f, "{actor} could not read its records: {error}"),
            Self::DeadLetter { actor, input, cause } => write!(f, "{actor} dropped {input}: {cause}"),
            Self::Lagged { actor, subscriber, lags } => write!(
                f,
                "the subscriber {subscriber} of {actor} does not read fast enough and misses changes until it gets a new \
                 snapshot ({lags} times so far)"
            ),
            Self::Quarantined { table, key, reason } => {
                write!(f, "record {key} of {table} is damaged, and was moved to the quarantine: {reason}")
            }
        }
    }
}

#[derive(Default)]
struct Board {
    recent: VecDeque<Notice>,
    count: u64,
    readers: Vec<FeedSender<Notice, Vec<Notice>>>,
}

/// The notice board that all actors of a host post to. Cheap to clone; posting never waits.
#[derive(Clone, Default)]
pub struct Notices {
    board: Arc<Mutex<Board>>,
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("count", &self.lock().count).finish()
    }
}

impl Notices {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a notice to every reader, and logs it.
    pub fn post(&self, notice: Notice) {
        tracing::warn!(error = %notice, "notice");
        let mut board = self.lock();
        board.count += 1;
        let number = board.count;
        board.readers.retain(|reader| reader.change(number, notice.clone()) != Delivery::Abandoned);
        if board.recent.len() == NOTICES_KEPT {
            board.recent.pop_front();
        }
        board.recent.push_back(notice);
    }

    /// The latest notices, oldest first; at most 256.
    #[must_use]
    pub fn recent(&self) -> Vec<Notice> {
        self.lock().recent.iter().cloned().collect()
    }

    /// Subscribes to notices; begins with those that are kept.
    #[must_use]
    pub fn subscribe(&self) -> Subscription<Notice, Vec<Notice>> {
        let board = Arc::downgrade(&self.board);
        let (sender, subscription) = feed("notices".to_owned(), NOTICE_QUEUE, move || {
            let Some(board) = board.upgrade() else { return };
            let board = board.lock().unwrap_or_else(PoisonError::into_inner);
            let recent: Vec<Notice> = board.recent.iter().cloned().collect();
            for reader in &board.readers {
                if reader.is_behind() {
                    reader.snapshot(board.count, recent.clone());
                }
            }
        });
        let mut board = self.lock();
        sender.snapshot(board.count, board.recent.iter().cloned().collect());
        board.readers.push(sender);
        drop(board);
        subscription
    }
}
