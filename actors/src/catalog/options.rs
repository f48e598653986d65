//! What a host says of its plugins.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::goplugin::HandshakeTerms;
use crate::hclspec::Schema;
use crate::process::{Executable, Lifetime, START_TIMEOUT, STOP_GRACE};
use crate::vocabulary::{PluginKey, PluginType};

/// The version of the interface of drivers that Nomad's plugins speak.
pub const NOMAD_API_VERSION: &str = "v0.1.0";

/// What there is, what may be run, and within which limits.
#[derive(Debug, Clone)]
pub struct CatalogOptions {
    /// Where external plugins lie; `None` for internal ones only.
    pub directory: Option<PathBuf>,
    /// Which files of it may be launched besides those that are configured.
    pub allowed: Allowed,
    /// Names that are kept out: of files, of internal plugins, and those that plugins give themselves.
    pub blocked: BTreeSet<String>,
    /// What is configured, by the name of the file or of the internal plugin.
    pub entries: BTreeMap<String, PluginEntry>,
    /// Plugins that the host program brings along.
    pub internal: Vec<InternalPlugin>,
    /// Which versions of their interface this host speaks, for each type of plugin.
    pub api_versions: BTreeMap<PluginType, Vec<String>>,
    /// The terms on which plugins are started.
    pub handshake: HandshakeTerms,
    /// Which variables of the host every plugin gets as well; `None` for the usual ones of a process.
    pub inherit: Option<Vec<String>>,
    /// Its limits.
    pub limits: CatalogLimits,
}

impl CatalogOptions {
    /// No plugins at all, Nomad's terms and interface, and default limits.
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

/// Which files of the plugin directory may be launched (SEC-05). That a file is there is no permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// These, and those that are configured.
    Only(BTreeSet<String>),
    /// Every program in it: whoever may write into the directory may run programs as this host.
    Everything,
}

impl Default for Allowed {
    /// Only what is configured.
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

/// What is configured for one plugin.
#[derive(Clone)]
pub struct PluginEntry {
    /// Its arguments; for an internal plugin, further ones.
    pub arguments: Vec<String>,
    /// The SHA-256 digest that its file has to have (SEC-07).
    pub sha256: Option<[u8; 32]>,
    /// Its configuration, to be checked against its own schema; `None` leaves everything to its defaults.
    pub config: Option<ConfigSource>,
    /// Further entries of its environment. Values may be secrets and are not shown (SEC-06).
    pub environment: BTreeMap<String, String>,
    /// What happens to it when the host dies. The instance that is asked who it is always ends with the host.
    pub lifetime: Lifetime,
    /// How long it may take to say its handshake; `None` for the limit of the catalog.
    pub start_timeout: Option<Duration>,
    /// How long it may take to end; `None` for the limit of the catalog when it is asked who it is, and for the usual time when
    /// it serves.
    pub stop_grace: Option<Duration>,
}

impl PluginEntry {
    /// A plugin without arguments and configuration, that survives its host so that its tasks do.
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

/// A plugin's configuration as its author wrote it.
#[derive(Clone)]
pub enum ConfigSource {
    /// A table of the host's own TOML.
    Toml(toml::Table),
    /// A text in HCL's native syntax.
    Hcl(String),
}

/// A plugin that the host program brings along.
#[derive(Debug, Clone)]
pub struct InternalPlugin {
    /// Its type and name; it has to give itself the same name.
    pub plugin: PluginKey,
    /// Its version.
    pub version: String,
    /// Every version of its interface that it speaks.
    pub api_versions: Vec<String>,
    /// The program that serves it, most often the host program's own.
    pub executable: Executable,
    /// The arguments that make the program serve it.
    pub arguments: Vec<String>,
    /// What its configuration must look like; `None` for a plugin that takes none.
    pub schema: Option<Schema>,
}

/// Limits of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogLimits {
    /// How many plugins are asked at once, besides those that somebody waits for by their files. 4 by default.
    pub probes_at_once: usize,
    /// How many files the plugin directory may have. 256 by default.
    pub files_max: usize,
    /// How long reading the directory may take. 10 s by default.
    pub directory_deadline: Duration,
    /// How long a plugin may take to say its handshake. 60 s by default (D11).
    pub start_timeout: Duration,
    /// How long it may take to connect, and for each answer. 10 s by default.
    pub call_deadline: Duration,
    /// How long the polite request to end may take. 2 s by default (D60, D65).
    pub polite_deadline: Duration,
    /// How long it may take to end after that. 5 s by default.
    pub stop_grace: Duration,
    /// How many questions may wait. 256 by default.
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
