//! What is known of a plugin by its session.

use std::fmt;
use std::sync::Arc;

use crate::vocabulary::{Attempt, Generation, Timestamp};

/// What is known of a plugin's health. Not knowing is a value of its own and never rounded to a yes or a no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionHealth {
    /// It has not told yet.
    NoAnswerYet,
    /// It runs, and what it drives is not there (D105).
    Undetected,
    /// It does not serve: it said so itself, or it can't be had.
    Unhealthy,
    /// It serves.
    Healthy,
    /// It has been removed.
    Gone,
}

impl SessionHealth {
    /// The word for it.
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

/// What a plugin is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionStage {
    /// It is looked whether a process of it still runs.
    Recalling,
    /// Its process is being started.
    Launching,
    /// Its process runs and is being connected to, asked who it is, and configured.
    Connecting,
    /// Its fingerprints are read as they come.
    Watching,
    /// Something failed and is tried again after a pause.
    Pausing,
    /// Its program is refused; it is launched again when the program has changed, or when a restart is requested.
    Refused,
    /// It is being ended, or left.
    Stopping,
    /// It is over.
    Gone,
}

impl SessionStage {
    /// The word for it.
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

/// What became of a plugin that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionEnding {
    /// No process of it ran.
    NothingRan,
    /// A process of it ran, or may have run, and this became of it.
    Told {
        /// In words.
        how: String,
    },
}

impl SessionEnding {
    /// An ending in these words.
    #[must_use]
    pub fn told(how: impl Into<String>) -> Self {
        Self::Told { how: how.into() }
    }

    /// The words for it; none where there is nothing to tell.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::NothingRan => "",
            Self::Told { how } => how,
        }
    }
}

/// What is known of a plugin by its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionStatus {
    /// Which generation: it grows with each connection to a process of the plugin. Zero before the first one.
    pub generation: Generation,
    /// Its health.
    pub health: SessionHealth,
    /// Why it has this health: in the plugin's own words, or what was tried and what came back.
    pub reason: String,
    /// Since when it has this health.
    pub since: Timestamp,
    /// What became of it; `None` as long as it is there.
    pub ending: Option<SessionEnding>,
    /// Its own version; `None` before it has told.
    pub version: Option<Arc<str>>,
    /// Its process, while one is known to run.
    pub pid: Option<u32>,
    /// Whether that process was left running by an earlier run of the host and found again.
    pub is_adopted: bool,
    /// How many processes of it were launched, without those that were refused.
    pub launches: u64,
    /// The number of the last restart that was requested; zero before the first.
    pub restart: Attempt,
}

impl SessionStatus {
    /// What is known before the first step.
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
