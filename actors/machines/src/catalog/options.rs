//! The options of the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::goplugin::HandshakeTerms;
use crate::hclspec::Schema;
use crate::process::{Executable, Lifetime, START_TIMEOUT, STOP_GRACE};
use crate::vocabulary::{PluginKey, PluginType};

/// The version of the driver interface that Nomad's plugins support.
pub const NOMAD_API_VERSION: &str = "v0.1.0";

/// The plugins, their permissions, and limits.
#[derive(Debug, Clone)]
pub struct CatalogOptions {
    /// The directory of external plugins; `None` for internal ones only.
    pub directory: Option<PathBuf>,
    /// The files that may be launched besides the configured ones.
    pub allowed: Allowed,
    /// The blocklist: names of files, of internal plugins, and names that plugins report.
    pub blocked: BTreeSet<String>,
    /// The configuration, by the name of the file or of the internal plugin.
    pub entries: BTreeMap<String, PluginEntry>,
    /// Plugins that the host program provides.
    pub internal: Vec<InternalPlugin>,
    /// The interface versions that this host supports, per plugin type.
    pub api_versions: BTreeMap<PluginType, Vec<String>>,
    /// The handshake terms for plugins.
    pub handshake: HandshakeTerms,
    /// The variables of the host that every plugin inherits; `None` for the default of a process.
    pub inherit: Option<Vec<String>>,
    /// Its limits.
    pub limits: CatalogLimits,
}

impl CatalogOptions {
    /// No plugins, Nomad's terms and interface, and default limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            directory: None,
            allowed: Allowed::default(),
            blocked: BTreeSet::new(),
            entries: BTreeMap::new(),
            internal: Vec::new(),
            api_versions: [(PluginType::Driver, vec![NOMAD_API_VERSION.to_owned()])].into(),
            handshake: HandshakeTerms::nomad(None),
            inherit: None,
            limits: CatalogLimits::default(),
        }
    }
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The files of the plugin directory that may be launched (SEC-05). The mere presence of a file is not a permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// These files, and the configured ones.
    Only(BTreeSet<String>),
    /// Every program in it: everyone who may write into the directory may run programs as this host.
    Everything,
}

impl Default for Allowed {
    /// Only the configured files.
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

/// The configuration of one plugin.
#[derive(Clone)]
pub struct PluginEntry {
    /// Its arguments; for an internal plugin, additional ones.
    pub arguments: Vec<String>,
    /// The required SHA-256 digest of its file (SEC-07).
    pub sha256: Option<[u8; 32]>,
    /// Its configuration, validated against its own schema; `None` for all defaults.
    pub config: Option<ConfigSource>,
    /// Additional environment variables. Values may be secrets and are not shown (SEC-06).
    pub environment: BTreeMap<String, String>,
    /// Whether it ends with the host. The temporary instance always ends with the host.
    pub lifetime: Lifetime,
    /// The handshake timeout; `None` for the limit of the catalog.
    pub start_timeout: Option<Duration>,
    /// The grace to end; `None` for the catalog's limit in probes, and the default of a process when it serves.
    pub stop_grace: Option<Duration>,
}

impl PluginEntry {
    /// A plugin without arguments and configuration that survives its host, so that its tasks do.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            arguments: Vec::new(),
            sha256: None,
            config: None,
            environment: BTreeMap::new(),
            lifetime: Lifetime::Surviving,
            start_timeout: None,
            stop_grace: None,
        }
    }
}

impl Default for PluginEntry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PluginEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginEntry")
            .field("arguments", &self.arguments)
            .field("sha256", &self.sha256.is_some())
            // Values may be secrets.
            .field("config", &self.config.is_some())
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .field("lifetime", &self.lifetime)
            .field("start_timeout", &self.start_timeout)
            .field("stop_grace", &self.stop_grace)
            .finish()
    }
}

/// The source text of a plugin's configuration.
#[derive(Clone)]
pub enum ConfigSource {
    /// A table of the host's own TOML.
    Toml(toml::Table),
    /// A text in HCL's native syntax.
    Hcl(String),
}

/// A plugin that the host program provides.
#[derive(Debug, Clone)]
pub struct InternalPlugin {
    /// Its type and name; it must report the same name.
    pub plugin: PluginKey,
    /// Its version.
    pub version: String,
    /// The interface versions that it supports.
    pub api_versions: Vec<String>,
    /// The program that serves it, usually the host program itself.
    pub executable: Executable,
    /// The arguments with which the program serves it.
    pub arguments: Vec<String>,
    /// Its configuration schema; `None` for a plugin that takes no configuration.
    pub schema: Option<Schema>,
}

/// Limits of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogLimits {
    /// How many plugins are probed concurrently, besides files that callers wait for. 4 by default.
    pub probes_at_once: usize,
    /// The limit of files in the plugin directory. 256 by default.
    pub files_max: usize,
    /// The timeout for reading the directory. 10 s by default.
    pub directory_deadline: Duration,
    /// The handshake timeout. 60 s by default (D11).
    pub start_timeout: Duration,
    /// The timeout for connecting, and for each answer. 10 s by default.
    pub call_deadline: Duration,
    /// The timeout of the shutdown call. 2 s by default (D60, D65).
    pub polite_deadline: Duration,
    /// The grace to end after that. 5 s by default.
    pub stop_grace: Duration,
    /// The limit of waiting callers. 256 by default.
    pub waiting_max: usize,
}

impl Default for CatalogLimits {
    fn default() -> Self {
        Self {
            probes_at_once: 4,
            files_max: 256,
            directory_deadline: Duration::from_secs(10),
            start_timeout: START_TIMEOUT,
            call_deadline: Duration::from_secs(10),
            polite_deadline: Duration::from_secs(2),
            stop_grace: STOP_GRACE,
            waiting_max: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_a_plugin_is_not_shown_where_a_host_is_looked_into_sec_06() {
        let mut entry = PluginEntry::new();
        entry.arguments = vec!["-v".to_owned()];
        entry.environment.insert("TOKEN".to_owned(), "canary-9".to_owned());
        entry.config = Some(ConfigSource::Hcl("password = \"canary-9\"".to_owned()));
        let shown = format!("{entry:?}");
        assert!(shown.contains("TOKEN") && shown.contains("-v") && !shown.contains("canary"), "{shown}");
    }
}
