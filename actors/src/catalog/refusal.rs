//! Why plugins are not used, and why they are not given out.

use std::path::PathBuf;
use std::time::Duration;

use super::messages::{BlockedBy, PluginSource};
use super::version::MalformedVersion;
use crate::hclspec::{ConfigErrors, MalformedSchema};
use crate::process::LaunchError;
use crate::vocabulary::text::escaped;
use crate::vocabulary::{PluginKey, PluginType};

/// Why a plugin cannot be used. Each tells what was tried on what; nothing that was launched for it is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its file name could mean another file, or be misread (SEC-05).
    #[error(
        "its file name is not plain; use letters, digits, '.', '_' and '-', at most 100, and no dot at the beginning"
    )]
    OddName,
    /// It is a link, which could lead out of the directory (SEC-05).
    #[error("it is a link; put the program itself into the plugin directory")]
    Link,
    /// It is a directory, a pipe, a device.
    #[error("it is no regular file")]
    NotAFile,
    /// Nobody may execute it.
    #[error("it is not executable; set its executable bits or take it out of the plugin directory")]
    NotExecutable,
    /// The configuration names what is not there.
    #[error(
        "it is configured, and there is neither such a file in the plugin directory nor such an internal plugin"
    )]
    Absent,
    /// It was not launched, or ended before it was ready.
    #[error(transparent)]
    Launch(LaunchError),
    /// It was launched and did not tell who it is.
    #[error("it was launched and could not be asked: {message}{}", ending.as_deref().map_or_else(String::new, |ending| format!("; its process ended: {ending}")))]
    Silent {
        /// What was tried, on what, and what came back.
        message: String,
        /// How its process ended, if that ended by itself.
        ending: Option<String>,
        /// Whether trying again may help.
        is_transient: bool,
    },
    /// Looking at it took too long or failed on our side; it is being ended.
    #[error("it could not be looked at: {0}")]
    Lost(String),
    /// It is of a type that this host does not run.
    #[error(
        "it is a {0} plugin: not supported yet; only its name and version were asked for, and it is not run"
    )]
    Unsupported(PluginType),
    /// It has a version that is none.
    #[error(transparent)]
    Version(MalformedVersion),
    /// Plugin and host speak no common version of their interface.
    #[error(
        "it offers interface {} and this host speaks {}; use another version of one of them",
        listed(offered),
        listed(spoken)
    )]
    ApiVersion {
        /// What the plugin offers.
        offered: Vec<String>,
        /// What this host speaks.
        spoken: Vec<String>,
    },
    /// Its schema is malformed.
    #[error(transparent)]
    Schema(MalformedSchema),
    /// Its configuration does not fit its schema.
    #[error("its configuration does not fit: {0}")]
    Config(ConfigErrors),
}

impl Refusal {
    /// Whether a later scan may find it usable without anybody having mended anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Launch(error) => error.is_transient(),
            Self::Silent { is_transient, .. } => *is_transient,
            Self::Lost(_) => true,
            Self::OddName
            | Self::Link
            | Self::NotAFile
            | Self::NotExecutable
            | Self::Absent
            | Self::Unsupported(_)
            | Self::Version(_)
            | Self::ApiVersion { .. }
            | Self::Schema(_)
            | Self::Config(_) => false,
        }
    }
}

/// Why the plugin directory could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The system did not let us.
    #[error("cannot read the plugin directory {directory}: {message}")]
    System {
        /// Which directory.
        directory: PathBuf,
        /// What the system said.
        message: String,
    },
    /// More files than are looked at.
    #[error("the plugin directory {directory} has more than {most} entries; it is not looked at")]
    TooMany {
        /// Which directory.
        directory: PathBuf,
        /// How many are looked at.
        most: usize,
    },
    /// The directory took too long, as a network file system may.
    #[error("the plugin directory {directory} was not read within {waited:?}")]
    TimedOut {
        /// Which directory.
        directory: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
}

impl DirectoryError {
    /// Whether the next scan may read it without anybody having mended anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::System { .. } | Self::TimedOut { .. } => true,
            Self::TooMany { .. } => false,
        }
    }
}

/// Why a plugin is not given out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No plugin of that type and name was found.
    #[error("there is no plugin {plugin}; it was looked for {}", directory.as_deref().map_or_else(|| "among internal plugins only".to_owned(), |directory| format!("in {} and among internal plugins", directory.display())))]
    Unknown {
        /// Which plugin.
        plugin: PluginKey,
        /// Where it was looked for.
        directory: Option<PathBuf>,
    },
    /// It is not among what is known, and the plugin directory could not be read.
    #[error("whether there is a plugin {plugin} is not known: {error}")]
    Unread {
        /// Which plugin.
        plugin: PluginKey,
        /// What is wrong with the directory.
        error: DirectoryError,
    },
    /// It is there and cannot be used.
    #[error("plugin {plugin} ({source_name}) is refused: {reason}")]
    Refused {
        /// Which plugin.
        plugin: PluginKey,
        /// Where it comes from.
        source_name: PluginSource,
        /// Why.
        reason: Box<Refusal>,
    },
    /// The file that was named is another plugin.
    #[error("file {} is {told} and not {plugin}", escaped(file))]
    Another {
        /// Which plugin was wanted.
        plugin: PluginKey,
        /// The file.
        file: String,
        /// Which plugin it says to be.
        told: PluginKey,
    },
    /// It is there and is to be left alone.
    #[error("plugin {plugin} is blocked: {}", by.as_str())]
    Blocked {
        /// Which plugin.
        plugin: PluginKey,
        /// By which list.
        by: BlockedBy,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("plugin {plugin} is not given out any more: the host is stopping")]
    Stopping {
        /// Which plugin.
        plugin: PluginKey,
    },
    /// Too many wait already.
    #[error("{waiting} others wait for the catalog already; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

impl ResolveError {
    /// Whether asking again later, or after another scan, can help without anybody having mended anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Refused { reason, .. } => reason.is_transient(),
            Self::Unread { error, .. } => error.is_transient(),
            Self::TooMany { .. } => true,
            Self::Unknown { .. } | Self::Another { .. } | Self::Blocked { .. } | Self::Stopping { .. } => {
                false
            }
        }
    }
}

/// Why a scan is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The host is stopping; nothing new starts (I6).
    #[error("plugins are not scanned any more: the host is stopping")]
    Stopping,
    /// Too many wait already.
    #[error("{waiting} others wait for the catalog already; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// Versions as a list for a sentence.
fn listed(versions: &[String]) -> String {
    if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
}
