//! Why plugins are not usable, and why they are not resolved.

use std::path::PathBuf;
use std::time::Duration;

use super::messages::{BlockedBy, PluginSource};
use super::version::MalformedVersion;
use crate::hclspec::{ConfigErrors, MalformedSchema};
use crate::process::LaunchError;
use crate::vocabulary::text::escaped;
use crate::vocabulary::{PluginKey, PluginType};

/// Why a plugin is not usable. Each message names the failed operation and its object; no process of the plugin is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its file name is ambiguous or misleading (SEC-05).
    #[error(
        "its file name is not plain; use letters, digits, '.', '_' and '-', at most 100, and no dot at the beginning"
    )]
    OddName,
    /// It is a symlink, which could lead out of the directory (SEC-05).
    #[error("it is a link; put the program itself into the plugin directory")]
    Link,
    /// It is not a regular file: it is a directory, a pipe or a device.
    #[error("it is no regular file")]
    NotAFile,
    /// It has no execute permission.
    #[error("it is not executable; set its executable bits or take it out of the plugin directory")]
    NotExecutable,
    /// The configuration names a plugin that does not exist.
    #[error(
        "it is configured, and there is neither such a file in the plugin directory nor such an internal plugin"
    )]
    Absent,
    /// It could not be launched, or ended before it was ready.
    #[error(transparent)]
    Launch(LaunchError),
    /// It was launched and did not answer.
    #[error("it was launched but did not identify itself: {message}{}", ending.as_deref().map_or_else(String::new, |ending| format!("; its process ended: {ending}")))]
    Silent {
        /// The failed operation and its error.
        message: String,
        /// How its process ended, if by itself.
        ending: Option<String>,
        /// Whether a retry may succeed.
        is_transient: bool,
    },
    /// The probe timed out or crashed; its process is being ended.
    #[error("it could not be examined: {0}")]
    Lost(String),
    /// This host does not support its type.
    #[error(
        "it is a {0} plugin: not supported yet; only its name and version were asked for, and it is not run"
    )]
    Unsupported(PluginType),
    /// Its version is malformed.
    #[error(transparent)]
    Version(MalformedVersion),
    /// Plugin and host have no common interface version.
    #[error(
        "it offers interface {} and this host speaks {}; use another version of one of them",
        listed(offered),
        listed(spoken)
    )]
    ApiVersion {
        /// The versions that the plugin offers.
        offered: Vec<String>,
        /// The versions that this host supports.
        spoken: Vec<String>,
    },
    /// Its schema is malformed.
    #[error(transparent)]
    Schema(MalformedSchema),
    /// Its configuration does not match its schema.
    #[error("its configuration does not fit: {0}")]
    Config(ConfigErrors),
}

impl Refusal {
    /// Whether a later scan may find it usable without a repair.
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
    /// An error of the system.
    #[error("cannot read the plugin directory {directory}: {message}")]
    System {
        /// The directory.
        directory: PathBuf,
        /// The error.
        message: String,
    },
    /// It exceeds the limit of files.
    #[error("the plugin directory {directory} has more than {most} entries; it is not scanned")]
    TooMany {
        /// The directory.
        directory: PathBuf,
        /// The limit.
        most: usize,
    },
    /// Reading the directory timed out, as on a network file system.
    #[error("the plugin directory {directory} was not read within {waited:?}")]
    TimedOut {
        /// The directory.
        directory: PathBuf,
        /// The timeout.
        waited: Duration,
    },
}

impl DirectoryError {
    /// Whether the next scan may succeed without a repair.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::System { .. } | Self::TimedOut { .. } => true,
            Self::TooMany { .. } => false,
        }
    }
}

/// Why a plugin is not resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No plugin of that type and name was found.
    #[error("there is no plugin {plugin}; it was looked for {}", directory.as_deref().map_or_else(|| "among internal plugins only".to_owned(), |directory| format!("in {} and among internal plugins", directory.display())))]
    Unknown {
        /// The plugin.
        plugin: PluginKey,
        /// The plugin directory that was searched.
        directory: Option<PathBuf>,
    },
    /// It is unknown, and the plugin directory could not be read.
    #[error("cannot tell whether plugin {plugin} exists: {error}")]
    Unread {
        /// The plugin.
        plugin: PluginKey,
        /// The error of the directory.
        error: DirectoryError,
    },
    /// It exists and is not usable.
    #[error("plugin {plugin} ({source_name}) is refused: {reason}")]
    Refused {
        /// The plugin.
        plugin: PluginKey,
        /// Its origin.
        source_name: PluginSource,
        /// The reason.
        reason: Box<Refusal>,
    },
    /// The named file is another plugin.
    #[error("file {} is plugin {told}, not {plugin}", escaped(file))]
    Another {
        /// The requested plugin.
        plugin: PluginKey,
        /// The file.
        file: String,
        /// The plugin that it reported.
        told: PluginKey,
    },
    /// It exists and is blocked.
    #[error("plugin {plugin} is blocked: {}", by.as_str())]
    Blocked {
        /// The plugin.
        plugin: PluginKey,
        /// The list that blocks it.
        by: BlockedBy,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot provide plugin {plugin}: the host is stopping")]
    Stopping {
        /// The plugin.
        plugin: PluginKey,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for the catalog; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

impl ResolveError {
    /// Whether a retry later, or after another scan, may succeed without a repair.
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

/// Why a scan is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot scan plugins: the host is stopping")]
    Stopping,
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for the catalog; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

fn listed(versions: &[String]) -> String {
    if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
}
