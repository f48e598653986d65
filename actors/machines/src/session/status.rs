//! The state of a plugin as its session knows it.

use std::fmt;
use std::sync::Arc;

use crate::vocabulary::{Attempt, Generation, Timestamp};

/// The known health of a plugin. Unknown is a value of its own and is never treated as healthy or unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionHealth {
    /// It has not reported yet.
    NoAnswerYet,
    /// It runs, and finds nothing to drive (D105).
    Undetected,
    /// It does not serve: it reported that, or it is unavailable.
    Unhealthy,
    /// It serves.
    Healthy,
    /// It has been removed.
    Gone,
}

impl SessionHealth {
    /// The health as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoAnswerYet => "no answer yet",
            Self::Undetected => "undetected",
            Self::Unhealthy => "unhealthy",
            Self::Healthy => "healthy",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for SessionHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stage of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionStage {
    /// A search for a running process is in progress.
    Recalling,
    /// Its process is being started.
    Launching,
    /// Its process runs and is being connected to, identified, and configured.
    Connecting,
    /// Its fingerprints are read as they arrive.
    Watching,
    /// Something failed and is retried after a pause.
    Pausing,
    /// Its program is refused; it is launched again when the program has changed, or when a restart is requested.
    Refused,
    /// It is being ended, or detached from.
    Stopping,
    /// It has ended.
    Gone,
}

impl SessionStage {
    /// The stage as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recalling => "recalling",
            Self::Launching => "launching",
            Self::Connecting => "connecting",
            Self::Watching => "watching",
            Self::Pausing => "pausing",
            Self::Refused => "refused",
            Self::Stopping => "stopping",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for SessionStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a plugin that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionEnding {
    /// None of its processes ran.
    NothingRan,
    /// A process ran, or may have run, and ended in this way.
    Told {
        /// The description.
        how: String,
    },
}

impl SessionEnding {
    /// An ending with this description.
    #[must_use]
    pub fn told(how: impl Into<String>) -> Self {
        Self::Told { how: how.into() }
    }

    /// The description; empty if there is none.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::NothingRan => "",
            Self::Told { how } => how,
        }
    }
}

/// The state of a plugin as its session knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionStatus {
    /// The generation: it grows with each connection to a process of the plugin. Zero before the first one.
    pub generation: Generation,
    /// Its health.
    pub health: SessionHealth,
    /// Why it has this health: in the plugin's own words, or the attempted operation and its result.
    pub reason: String,
    /// Since when it has this health.
    pub since: Timestamp,
    /// How it ended; `None` as long as it is there.
    pub ending: Option<SessionEnding>,
    /// Its own version; `None` before it has reported it.
    pub version: Option<Arc<str>>,
    /// Its process, if one is known to run.
    pub pid: Option<u32>,
    /// Whether an earlier run of the host left this process running and it was found again.
    pub is_adopted: bool,
    /// The number of processes that were launched, without those that were refused.
    pub launches: u64,
    /// The number of the last requested restart; zero before the first.
    pub restart: Attempt,
}

impl SessionStatus {
    /// The state before the first step.
    #[must_use]
    pub fn of_nothing_yet(now: Timestamp) -> Self {
        Self {
            generation: Generation::default(),
            health: SessionHealth::NoAnswerYet,
            reason: String::new(),
            since: now,
            ending: None,
            version: None,
            pid: None,
            is_adopted: false,
            launches: 0,
            restart: Attempt::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_shown_in_words() {
        let healths = [
            (SessionHealth::NoAnswerYet, "no answer yet"),
            (SessionHealth::Undetected, "undetected"),
            (SessionHealth::Unhealthy, "unhealthy"),
            (SessionHealth::Healthy, "healthy"),
            (SessionHealth::Gone, "gone"),
        ];
        for (health, word) in healths {
            assert_eq!(health.to_string(), word);
        }
        let stages = [
            (SessionStage::Recalling, "recalling"),
            (SessionStage::Launching, "launching"),
            (SessionStage::Connecting, "connecting"),
            (SessionStage::Watching, "watching"),
            (SessionStage::Pausing, "pausing"),
            (SessionStage::Refused, "refused"),
            (SessionStage::Stopping, "stopping"),
            (SessionStage::Gone, "gone"),
        ];
        for (stage, word) in stages {
            assert_eq!(stage.to_string(), word);
        }
    }
}
