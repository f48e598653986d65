//! The type, the name and the role of a plugin.

use std::fmt;
use std::str::FromStr;

use super::names::PluginName;

/// The kind of service that a plugin offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PluginType {
    /// The controller half of a CSI storage plugin.
    CsiController,
    /// The node half of a CSI storage plugin.
    CsiNode,
    /// A task driver.
    Driver,
    /// A device plugin.
    Device,
}

/// Plugins with the same protocol and the same kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// CSI storage plugins: controller and node halves.
    Csi,
    /// Task drivers.
    Driver,
    /// Device plugins. Not supported yet.
    Device,
}

impl PluginType {
    /// All types, in the order of lists.
    pub const ALL: [Self; 4] = [Self::CsiController, Self::CsiNode, Self::Driver, Self::Device];

    /// The family that it belongs to.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::CsiController | Self::CsiNode => Family::Csi,
            Self::Driver => Family::Driver,
            Self::Device => Family::Device,
        }
    }

    /// Whether it is a half of a CSI plugin.
    #[must_use]
    pub const fn is_csi(self) -> bool {
        match self {
            Self::CsiController | Self::CsiNode => true,
            Self::Driver | Self::Device => false,
        }
    }

    /// The type as a word in configuration, rows, logs and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CsiController => "csi-controller",
            Self::CsiNode => "csi-node",
            Self::Driver => "driver",
            Self::Device => "device",
        }
    }
}

impl fmt::Display for PluginType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The maximum length of the part of a text that an error shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// A text that names no plugin type (R9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no plugin type; it is one of csi-controller, csi-node, driver, device")]
pub struct UnknownPluginType(
    /// The text, or its beginning.
    pub String,
);

impl FromStr for PluginType {
    type Err = UnknownPluginType;

    fn from_str(text: &str) -> Result<Self, UnknownPluginType> {
        let found = Self::ALL.into_iter().find(|plugin_type| plugin_type.as_str() == text);
        found.ok_or_else(|| UnknownPluginType(text.chars().take(SHOWN_CHARACTERS_MAX).collect()))
    }
}

/// The key of a plugin: its type and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginKey {
    /// The kind of service.
    pub plugin_type: PluginType,
    /// The name that the host gave it.
    pub name: PluginName,
}

impl PluginKey {
    /// A key of a type and a name.
    #[must_use]
    pub const fn new(plugin_type: PluginType, name: PluginName) -> Self {
        Self { plugin_type, name }
    }
}

impl fmt::Display for PluginKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.plugin_type, self.name)
    }
}

/// The role of an allocation for a CSI plugin: one half of it, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Serves the controller service only.
    Controller,
    /// Serves the node service only.
    Node,
    /// Serves both from one process; registered and removed as a whole (R5).
    Monolith,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Controller, Self::Node, Self::Monolith];

    /// The plugin types under which an allocation of this role registers.
    #[must_use]
    pub const fn plugin_types(self) -> &'static [PluginType] {
        match self {
            Self::Controller => &[PluginType::CsiController],
            Self::Node => &[PluginType::CsiNode],
            Self::Monolith => &[PluginType::CsiController, PluginType::CsiNode],
        }
    }

    /// The role as a word in configuration and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Node => "node",
            Self::Monolith => "monolith",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
