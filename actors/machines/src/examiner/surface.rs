//! What the plugin claims to its callers, as far as rules depend on it.

use std::collections::BTreeMap;

use super::request::Map;
use crate::csi::Call;
use crate::vocabulary::{ControllerCapability, Expansion, NodeCapability, PluginCapability};

/// What the examining plugin is to its callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surface {
    /// Whether it serves the controller, so that the judge sees controller calls.
    pub has_controller: bool,
    /// Whether it serves the node.
    pub has_node: bool,
    /// What it offers as a whole.
    pub plugin: Vec<PluginCapability>,
    /// When its volumes can grow.
    pub expansion: Vec<Expansion>,
    /// What its controller can do.
    pub controller: Vec<ControllerCapability>,
    /// What its node service can do.
    pub node: Vec<NodeCapability>,
    /// The nodes that it knows; its own is the first.
    pub nodes: Vec<String>,
    /// The most volumes of a node; 0: no limit.
    pub max_volumes: u64,
    /// Where its node is; empty: anywhere.
    pub topology: Map,
    /// The keys of secrets that calls need (C024).
    pub needs_secrets: BTreeMap<Call, Vec<String>>,
}

impl Surface {
    /// Whether volumes are published to nodes by the controller, and that is seen.
    #[must_use]
    pub fn attaches(&self) -> bool {
        self.sees_controller() && self.controls(ControllerCapability::PublishUnpublishVolume)
    }

    /// Whether volumes are staged, and that is seen.
    #[must_use]
    pub fn stages(&self) -> bool {
        self.has_node && self.node.contains(&NodeCapability::StageUnstageVolume)
    }

    /// Whether volumes are made by it, so that every id of a volume is one that it gave.
    #[must_use]
    pub fn creates(&self) -> bool {
        self.sees_controller() && self.controls(ControllerCapability::CreateDeleteVolume)
    }

    /// Whether there is a controller, as the plugin claims, and its calls are seen.
    fn sees_controller(&self) -> bool {
        self.has_controller && self.offers(PluginCapability::ControllerService)
    }

    /// Whether the controller claims this.
    #[must_use]
    pub fn controls(&self, capability: ControllerCapability) -> bool {
        self.controller.contains(&capability)
    }

    /// Whether the plugin offers this.
    #[must_use]
    pub fn offers(&self, capability: PluginCapability) -> bool {
        self.plugin.contains(&capability)
    }

    /// Its own node.
    #[must_use]
    pub fn own_node(&self) -> &str {
        self.nodes.first().map_or("", String::as_str)
    }
}
