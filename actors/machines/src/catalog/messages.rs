//! The messages and the news of the catalog.

use std::collections::BTreeMap;
use std::fmt;

use super::refusal::{DirectoryError, Refusal, ResolveError, ScanError};
use super::version::PluginVersion;
use crate::conversation;
use crate::process::ProcessSpec;
use crate::vocabulary::text::escaped;
use crate::vocabulary::{PluginKey, Timestamp};

/// Scans all plugins: reads the directory, and launches each permitted program once to query its identity. Answered when all
/// have answered or failed; a scan that is in progress already does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanPlugins;

/// Queries the present listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPlugins;

/// Resolves a plugin: returns everything that is needed to run it. Waits for the end of the first scan, since any file may be a
/// higher version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvePlugin {
    /// The plugin.
    pub plugin: PluginKey,
}

/// Resolves the plugin of one file of the plugin directory, independent of other files. Answered as soon as that file was
/// probed: it waits for no other plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveFile {
    /// The plugin that the file must be.
    pub plugin: PluginKey,
    /// The name of the file.
    pub file: String,
    /// Whether to probe the file again, since it may have been repaired.
    pub anew: bool,
}

/// The origin of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PluginSource {
    /// A program in the plugin directory, by its file name.
    External(String),
    /// Provided by the host program, by its name.
    Internal(String),
}

impl PluginSource {
    /// The name of the file, or the name that the host program uses.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::External(name) | Self::Internal(name) => name,
        }
    }
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The file name is untrusted and may contain any byte.
            Self::External(name) => write!(f, "file {}", escaped(name)),
            Self::Internal(name) => write!(f, "internal plugin {name}"),
        }
    }
}

/// The identity of a plugin, as it reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPlugin {
    /// Its type and its own name.
    pub plugin: PluginKey,
    /// Its version.
    pub version: PluginVersion,
    /// The interface versions that it supports.
    pub api_versions: Vec<String>,
    /// Its origin.
    pub source: PluginSource,
}

/// Everything that is needed to run a plugin.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedPlugin {
    /// Its identity.
    pub info: KnownPlugin,
    /// The negotiated interface version, spelt as the plugin spells it.
    pub api_version: String,
    /// The process that serves it.
    pub process: ProcessSpec,
    /// Its configuration, validated against its own schema and encoded as msgpack (D113). It may hold secrets.
    pub config: Vec<u8>,
}

impl fmt::Debug for ResolvedPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedPlugin")
            .field("info", &self.info)
            .field("api_version", &self.api_version)
            .field("process", &self.process)
            // Values may be secrets (SEC-06).
            .field("config", &format_args!("{} bytes", self.config.len()))
            .finish()
    }
}

/// A plugin that is not used, since another of the same type and name has a higher version or takes precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedPlugin {
    /// Its identity.
    pub info: KnownPlugin,
    /// The version that is used.
    pub by_version: PluginVersion,
    /// The origin of that version.
    pub by: PluginSource,
}

/// A plugin that is not usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPlugin {
    /// Its origin.
    pub source: PluginSource,
    /// The plugin, if its identity is known.
    pub plugin: Option<PluginKey>,
    /// The reason.
    pub reason: Refusal,
}

/// A plugin that is blocked by configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPlugin {
    /// Its origin.
    pub source: PluginSource,
    /// The plugin, if its identity is known.
    pub plugin: Option<PluginKey>,
    /// The list that blocks it.
    pub by: BlockedBy,
}

/// The list that blocks a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockedBy {
    /// It is neither allowed nor configured; it was not launched (SEC-05).
    NotAllowed,
    /// Its file name, or the name that the host program uses, is on the blocklist; it was not launched.
    File,
    /// The name that it reported is on the blocklist.
    Name,
}

impl BlockedBy {
    /// The reason as a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAllowed => "it is neither allowed nor configured",
            Self::File => "its file is on the list of what is blocked",
            Self::Name => "its name is on the list of what is blocked",
        }
    }
}

/// The result of the scans. Lists are ordered by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Usable plugins.
    pub found: BTreeMap<PluginKey, ResolvedPlugin>,
    /// Plugins that are shadowed by another one.
    pub shadowed: Vec<ShadowedPlugin>,
    /// Plugins that are not usable.
    pub refused: Vec<RefusedPlugin>,
    /// Plugins that are blocked by configuration.
    pub blocked: Vec<BlockedPlugin>,
    /// Why the last scan could not read the plugin directory, if so. Internal plugins are up to date nevertheless; external
    /// plugins are as of the last scan that could read it.
    pub directory_error: Option<DirectoryError>,
    /// When the last scan ended; `None` before the first one did.
    pub scanned_at: Option<Timestamp>,
    /// Whether a scan is in progress.
    pub is_scanning: bool,
}

conversation! {
    /// The messages of the catalog.
    pub enum CatalogAsk -> CatalogAnswer {
        ScanPlugins => Result<Listing, ScanError>,
        ListPlugins => Listing,
        ResolvePlugin => Result<Box<ResolvedPlugin>, ResolveError>,
        ResolveFile => Result<Box<ResolvedPlugin>, ResolveError>,
    }
}

/// The news at the end of a scan: only changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogNews {
    /// A plugin became usable.
    Found(Box<ResolvedPlugin>),
    /// A plugin must be run differently: another version, program or configuration.
    Changed(Box<ResolvedPlugin>),
    /// A plugin is no longer usable. Its running process continues; the subscriber decides whether to end it.
    Lost {
        /// The plugin.
        plugin: PluginKey,
        /// Why it is refused now, if it still exists. If the reason is transient, another scan may find it again.
        reason: Option<Refusal>,
    },
    /// A plugin is refused, or for a new reason.
    Refused(Box<RefusedPlugin>),
    /// The first scan ended, or a scan with changes; this follows the news about each plugin.
    Scanned {
        /// The number of usable plugins.
        found: usize,
        /// The number of shadowed plugins.
        shadowed: usize,
        /// The number of refused plugins.
        refused: usize,
        /// The number of blocked plugins.
        blocked: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Executable;
    use crate::vocabulary::{PluginName, PluginType};

    #[test]
    fn a_plugin_that_is_given_out_does_not_show_its_configuration_sec_06() {
        let info = KnownPlugin {
            plugin: PluginKey::new(PluginType::Driver, PluginName::new("exec").unwrap()),
            version: PluginVersion::new("1.0.0").unwrap(),
            api_versions: Vec::new(),
            source: PluginSource::External("exec".to_owned()),
        };
        let process = ProcessSpec::new(Executable::at("/plugins/exec"));
        let resolved =
            ResolvedPlugin { info, api_version: "v0.1.0".to_owned(), process, config: b"canary-9".to_vec() };
        let shown = format!("{resolved:?}");
        assert!(shown.contains("/plugins/exec") && shown.contains("8 bytes"), "{shown}");
    }
}
