//! The capabilities and limits that the plugin claims to its callers, as far as rules depend on them.

use std::collections::BTreeMap;

use super::request::Map;
use crate::csi::Call;
use crate::vocabulary::{ControllerCapability, Expansion, NodeCapability, PluginCapability};

/// The examining plugin, as its callers see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surface {
    /// Whether it serves the controller, so that the judge sees controller calls.
    pub has_controller: bool,
    /// Whether it serves the node.
    pub has_node: bool,
    /// The capabilities of the plugin as a whole.
    pub plugin: Vec<PluginCapability>,
    /// When its volumes can be expanded.
    pub expansion: Vec<Expansion>,
    /// The capabilities of its controller.
    pub controller: Vec<ControllerCapability>,
    /// The capabilities of its node service.
    pub node: Vec<NodeCapability>,
    /// The nodes that it knows; its own is the first.
    pub nodes: Vec<String>,
    /// The most volumes of a node; 0: no limit.
    pub max_volumes: u64,
    /// The topology of its node; empty: anywhere.
    pub topology: Map,
    /// The keys of secrets that calls need (C024).
    pub needs_secrets: BTreeMap<Call, Vec<String>>,
}

impl Surface {
    /// Whether volumes are published to nodes by the controller, and these calls are seen.
    #[must_use]
    pub fn attaches(&self) -> bool {
        self.sees_controller() && self.controls(ControllerCapability::PublishUnpublishVolume)
    }

    /// Whether volumes are staged, and these calls are seen.
    #[must_use]
    pub fn stages(&self) -> bool {
        self.has_node && self.node.contains(&NodeCapability::StageUnstageVolume)
    }

    /// Whether it creates the volumes, so that every volume id was returned by it.
    #[must_use]
    pub fn creates(&self) -> bool {
        self.sees_controller() && self.controls(ControllerCapability::CreateDeleteVolume)
    }

    /// Whether there is a controller, as the plugin claims, and its calls are seen.
    fn sees_controller(&self) -> bool {
        self.has_controller && self.offers(PluginCapability::ControllerService)
    }

    /// Whether the controller claims this capability.
    #[must_use]
    pub fn controls(&self, capability: ControllerCapability) -> bool {
        self.controller.contains(&capability)
    }

    /// Whether the plugin claims this capability.
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
