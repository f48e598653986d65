//! What can be said to the catalog, and what it says.

use std::collections::BTreeMap;
use std::fmt;

use super::refusal::{DirectoryError, Refusal, ResolveError, ScanError};
use super::state::Catalog;
use super::version::PluginVersion;
use crate::conversation;
use crate::process::ProcessSpec;
use crate::vocabulary::text::escaped;
use crate::vocabulary::{PluginKey, Timestamp};

/// Looks at every plugin anew: the directory is read, and each program in it that is permitted is launched once to tell who it
/// is. Answered when all have told or failed to; a scan that is under way when this is said does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanPlugins;

/// Asks for what is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPlugins;

/// Asks for all that is needed to run a plugin. Before the end of the first scan it waits for that, since any file may be a
/// higher version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvePlugin {
    /// Which plugin.
    pub plugin: PluginKey,
}

/// Asks for all that is needed to run the plugin of one file of the plugin directory, whatever other files there are. Answered
/// as soon as that file has told who it is: it waits for no other plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveFile {
    /// Which plugin the file has to be.
    pub plugin: PluginKey,
    /// The name of the file.
    pub file: String,
    /// Whether the file is asked anew though it has been asked before: somebody may have mended it.
    pub anew: bool,
}

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PluginSource {
    /// A program in the plugin directory, by its file name.
    External(String),
    /// Given by the host program, by its name.
    Internal(String),
}

impl PluginSource {
    /// The name of the file, or that under which the host program gave it.
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
            // Whoever can put a file there chose its name, which may hold anything.
            Self::External(name) => write!(f, "file {}", escaped(name)),
            Self::Internal(name) => write!(f, "internal plugin {name}"),
        }
    }
}

/// A plugin as it told of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPlugin {
    /// Its type and its own name.
    pub plugin: PluginKey,
    /// Its version.
    pub version: PluginVersion,
    /// Every version of its interface that it speaks.
    pub api_versions: Vec<String>,
    /// Where it comes from.
    pub source: PluginSource,
}

/// All that is needed to run a plugin.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedPlugin {
    /// What it told of itself.
    pub info: KnownPlugin,
    /// The version of the interface that both sides speak, spelt as the plugin spells it.
    pub api_version: String,
    /// What is to be run, and how.
    pub process: ProcessSpec,
    /// Its configuration, checked against its own schema and encoded as msgpack (D113). It may hold secrets.
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

/// A plugin that is not used, since another of the same type and name has a higher version, or came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedPlugin {
    /// What it told of itself.
    pub info: KnownPlugin,
    /// The version that is used.
    pub by_version: PluginVersion,
    /// Where that comes from.
    pub by: PluginSource,
}

/// A plugin that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPlugin {
    /// Where it comes from.
    pub source: PluginSource,
    /// Which plugin it is, if it came so far as to tell.
    pub plugin: Option<PluginKey>,
    /// Why.
    pub reason: Refusal,
}

/// A plugin that was left alone on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPlugin {
    /// Where it comes from.
    pub source: PluginSource,
    /// Which plugin it is, if it came so far as to tell.
    pub plugin: Option<PluginKey>,
    /// Which list says so.
    pub by: BlockedBy,
}

/// Which list keeps a plugin out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockedBy {
    /// It is neither on the list of what is allowed nor configured; it was not launched (SEC-05).
    NotAllowed,
    /// Its file name, or the name under which the host program gave it, is on the list of what is blocked; it was not launched.
    File,
    /// The name that it gave itself is on the list of what is blocked.
    Name,
}

impl BlockedBy {
    /// Why, as a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAllowed => "it is neither allowed nor configured",
            Self::File => "its file is on the list of what is blocked",
            Self::Name => "its name is on the list of what is blocked",
        }
    }
}

/// Everything that is known of plugins. Lists are in the order of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Plugins that can be used.
    pub found: BTreeMap<PluginKey, ResolvedPlugin>,
    /// Plugins that another one stands before.
    pub shadowed: Vec<ShadowedPlugin>,
    /// Plugins that cannot be used.
    pub refused: Vec<RefusedPlugin>,
    /// Plugins that were left alone on purpose.
    pub blocked: Vec<BlockedPlugin>,
    /// Why the plugin directory could not be read in the last scan, if it could not. Internal plugins are found all the same,
    /// and what is known of external ones is as old as the last scan that could.
    pub directory_error: Option<DirectoryError>,
    /// When the last scan ended; `None` before the first one did.
    pub scanned_at: Option<Timestamp>,
    /// Whether a scan is under way.
    pub is_scanning: bool,
}

conversation! {
    /// What is said to the catalog.
    pub enum CatalogAsk -> CatalogAnswer for Catalog {
        ScanPlugins => Result<Listing, ScanError>,
        ListPlugins => Listing,
        ResolvePlugin => Result<Box<ResolvedPlugin>, ResolveError>,
        ResolveFile => Result<Box<ResolvedPlugin>, ResolveError>,
    }
}

/// What subscribers are told at the end of a scan: only what is other than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogNews {
    /// A plugin can be used, that could not before.
    Found(Box<ResolvedPlugin>),
    /// A plugin is to be run in another way than before: another version, program or configuration.
    Changed(Box<ResolvedPlugin>),
    /// A plugin cannot be used any more. What runs of it goes on; whether to end it is for the reader to decide.
    Lost {
        /// Which plugin.
        plugin: PluginKey,
        /// Why it is refused now, if it is still there. With a reason that is transient another scan may find it again.
        reason: Option<Refusal>,
    },
    /// A plugin is refused, or for another reason than before.
    Refused(Box<RefusedPlugin>),
    /// A scan ended for the first time, or with other plugins than the one before; this follows what is told of each.
    Scanned {
        /// How many plugins can be used.
        found: usize,
        /// How many another one stands before.
        shadowed: usize,
        /// How many cannot be used.
        refused: usize,
        /// How many are left alone.
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
