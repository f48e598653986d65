//! What can be asked of a plugin and what it answers, as plain data.

use std::fmt;

use crate::vocabulary::{
    ControllerCapability, Expansion, Identity, NodeCapability, NodeInfo, PluginCapability,
};

/// A question to a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rpc {
    /// Who are you? Answered with [`Answer::PluginInfo`].
    PluginInfo,
    /// What do you offer as a whole? Answered with [`Answer::PluginCapabilities`].
    PluginCapabilities,
    /// Are you ready? Answered with [`Answer::Probe`]. May be asked at any time, though it is not free (C037).
    Probe,
    /// What can your controller do? Answered with [`Answer::ControllerCapabilities`].
    ControllerCapabilities,
    /// What can your node service do? Answered with [`Answer::NodeCapabilities`].
    NodeCapabilities,
    /// Which node is this to you? Answered with [`Answer::NodeInfo`]. Not every plugin must answer (C146).
    NodeInfo,
}

impl Rpc {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::PluginInfo,
        Self::PluginCapabilities,
        Self::Probe,
        Self::ControllerCapabilities,
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
            Self::NodeCapabilities => "NodeGetCapabilities",
            Self::NodeInfo => "NodeGetInfo",
        }
    }

    /// The capability without which it may not be called (C033). `None`: the identity and node services need none.
    #[must_use]
    pub const fn needs(self) -> Option<PluginCapability> {
        match self {
            Self::ControllerCapabilities => Some(PluginCapability::ControllerService),
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

/// What a probe says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// The plugin serves. An answer that leaves the matter open says so too (C038).
    Ready,
    /// The plugin is still preparing itself: wait, do not restart it, call nothing else (C039).
    NotReady,
}

/// A checked answer: within all limits, lists sorted and without doubles, unknown values left out (C011, C026).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Rpc::PluginInfo`].
    PluginInfo(Identity),
    /// To [`Rpc::PluginCapabilities`].
    PluginCapabilities {
        /// What the plugin as a whole offers.
        capabilities: Vec<PluginCapability>,
        /// When its volumes can grow.
        expansion: Vec<Expansion>,
    },
    /// To [`Rpc::Probe`].
    Probe(Readiness),
    /// To [`Rpc::ControllerCapabilities`].
    ControllerCapabilities(Vec<ControllerCapability>),
    /// To [`Rpc::NodeCapabilities`].
    NodeCapabilities(Vec<NodeCapability>),
    /// To [`Rpc::NodeInfo`].
    NodeInfo(NodeInfo),
}

impl Answer {
    /// The question it answers.
    #[must_use]
    pub const fn rpc(&self) -> Rpc {
        match self {
            Self::PluginInfo(_) => Rpc::PluginInfo,
            Self::PluginCapabilities { .. } => Rpc::PluginCapabilities,
            Self::Probe(_) => Rpc::Probe,
            Self::ControllerCapabilities(_) => Rpc::ControllerCapabilities,
            Self::NodeCapabilities(_) => Rpc::NodeCapabilities,
            Self::NodeInfo(_) => Rpc::NodeInfo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_controller_is_asked_by_permission_c033_c183() {
        for rpc in Rpc::ALL {
            let needed = (rpc == Rpc::ControllerCapabilities).then_some(PluginCapability::ControllerService);
            assert_eq!(rpc.needs(), needed, "{rpc}");
        }
    }
}
