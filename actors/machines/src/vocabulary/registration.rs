//! The registration of a plugin by an allocation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::endpoint::SocketPath;
use super::failover::FailoverPolicy;
use super::names::AllocationId;
use super::plugin::PluginKey;

/// One allocation serves one plugin at one endpoint. Its identity is plugin and allocation (R1); everything else may change, and a
/// change is an update (R3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Registration {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// The socket at which it listens.
    pub socket: SocketPath,
    /// The name that the plugin reports, if it was asked (C030). A restored registration is proven by it (R8).
    pub provider: Option<Arc<str>>,
    /// The version that the plugin reports, if it was asked.
    pub version: Option<Arc<str>>,
    /// Data of the host; Callboard does not interpret it.
    pub options: Arc<BTreeMap<String, String>>,
    /// How the active registration of its plugin is chosen, if set.
    pub policy: Option<FailoverPolicy>,
}

impl Registration {
    /// Whether both serve the same plugin in the same way, under the same policy or another one.
    #[must_use]
    pub fn differs_only_in_policy(&self, other: &Self) -> bool {
        let Self { plugin, allocation, socket, provider, version, options, policy: _ } = self;
        *plugin == other.plugin
            && *allocation == other.allocation
            && *socket == other.socket
            && *provider == other.provider
            && *version == other.version
            && *options == other.options
    }
}
