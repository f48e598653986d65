//! What an allocation says of the plugin it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::endpoint::SocketPath;
use super::failover::FailoverPolicy;
use super::names::AllocationId;
use super::plugin::PluginKey;

/// One allocation serves one plugin at one endpoint. Its identity is plugin and allocation (R1); the rest may change, and a
/// change is an update (R3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Registration {
    /// Which plugin is served.
    pub plugin: PluginKey,
    /// Who serves it.
    pub allocation: AllocationId,
    /// Where it listens.
    pub socket: SocketPath,
    /// The name the plugin gives itself, if it was asked (C030). A restored registration is proven by it (R8).
    pub provider: Option<Arc<str>>,
    /// The version the plugin gives itself, if it was asked.
    pub version: Option<Arc<str>>,
    /// What the host wants to find again beside it; Callboard does not look inside.
    pub options: Arc<BTreeMap<String, String>>,
    /// How the active registration of its plugin is chosen, if it says so.
    pub policy: Option<FailoverPolicy>,
}

impl Registration {
    /// Whether the other one serves the same plugin in the same way, under another policy or under the same.
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
