//! The calls to a plugin and their answers, as plain data.

use std::fmt;

use crate::vocabulary::{
    ControllerCapability, Expansion, GroupControllerCapability, Identity, NodeCapability, NodeInfo,
    PluginCapability,
};

/// A call to a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rpc {
    /// Its name and version. Answered with [`Answer::PluginInfo`].
    PluginInfo,
    /// The capabilities of the plugin. Answered with [`Answer::PluginCapabilities`].
    PluginCapabilities,
    /// Whether it is ready. Answered with [`Answer::Probe`]. Permitted at any time, though it is not free (C037).
    Probe,
    /// The capabilities of its controller. Answered with [`Answer::ControllerCapabilities`].
    ControllerCapabilities,
    /// The capabilities of its group controller. Answered with [`Answer::GroupControllerCapabilities`].
    GroupControllerCapabilities,
    /// The capabilities of its node service. Answered with [`Answer::NodeCapabilities`].
    NodeCapabilities,
    /// The node as the plugin sees it. Answered with [`Answer::NodeInfo`]. Not every plugin must answer (C146).
    NodeInfo,
}

impl Rpc {
    /// All calls.
    pub const ALL: [Self; 7] = [
        Self::PluginInfo,
        Self::PluginCapabilities,
        Self::Probe,
        Self::ControllerCapabilities,
        Self::GroupControllerCapabilities,
        Self::NodeCapabilities,
        Self::NodeInfo,
    ];

    /// Its name in the specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PluginInfo => "GetPluginInfo",
            Self::PluginCapabilities => "GetPluginCapabilities",
            Self::Probe => "Probe",
            Self::ControllerCapabilities => "ControllerGetCapabilities",
            Self::GroupControllerCapabilities => "GroupControllerGetCapabilities",
            Self::NodeCapabilities => "NodeGetCapabilities",
            Self::NodeInfo => "NodeGetInfo",
        }
    }

    /// The capability that it requires (C033, C034). `None`: the identity and node services require none.
    #[must_use]
    pub const fn needs(self) -> Option<PluginCapability> {
        match self {
            Self::ControllerCapabilities => Some(PluginCapability::ControllerService),
            Self::GroupControllerCapabilities => Some(PluginCapability::GroupControllerService),
            Self::PluginInfo
            | Self::PluginCapabilities
            | Self::Probe
            | Self::NodeCapabilities
            | Self::NodeInfo => None,
        }
    }
}

impl fmt::Display for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// The plugin is ready. An answer without the field means the same (C038).
    Ready,
    /// The plugin is still initializing: wait, do not restart it, call nothing else (C039).
    NotReady,
}

/// A checked answer: within all limits, lists sorted and deduplicated, unknown values removed (C011, C026).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Rpc::PluginInfo`].
    PluginInfo(Identity),
    /// To [`Rpc::PluginCapabilities`].
    PluginCapabilities {
        /// The plugin capabilities.
        capabilities: Vec<PluginCapability>,
        /// When its volumes can be expanded.
        expansion: Vec<Expansion>,
    },
    /// To [`Rpc::Probe`].
    Probe(Readiness),
    /// To [`Rpc::ControllerCapabilities`].
    ControllerCapabilities(Vec<ControllerCapability>),
    /// To [`Rpc::GroupControllerCapabilities`].
    GroupControllerCapabilities(Vec<GroupControllerCapability>),
    /// To [`Rpc::NodeCapabilities`].
    NodeCapabilities(Vec<NodeCapability>),
    /// To [`Rpc::NodeInfo`].
    NodeInfo(NodeInfo),
}

impl Answer {
    /// The call that it answers.
    #[must_use]
    pub const fn rpc(&self) -> Rpc {
        match self {
            Self::PluginInfo(_) => Rpc::PluginInfo,
            Self::PluginCapabilities { .. } => Rpc::PluginCapabilities,
            Self::Probe(_) => Rpc::Probe,
            Self::ControllerCapabilities(_) => Rpc::ControllerCapabilities,
            Self::GroupControllerCapabilities(_) => Rpc::GroupControllerCapabilities,
            Self::NodeCapabilities(_) => Rpc::NodeCapabilities,
            Self::NodeInfo(_) => Rpc::NodeInfo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_controllers_are_asked_by_permission_c033_c034_c183() {
        for rpc in Rpc::ALL {
            let needed = match rpc {
                Rpc::ControllerCapabilities => Some(PluginCapability::ControllerService),
                Rpc::GroupControllerCapabilities => Some(PluginCapability::GroupControllerService),
                _ => None,
            };
            assert_eq!(rpc.needs(), needed, "{rpc}");
        }
    }
}
