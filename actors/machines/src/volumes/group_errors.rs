//! The errors of groups of snapshots that concern several volumes.

use crate::vocabulary::PluginName;
use crate::vocabulary::text::escaped;
use crate::volume::VolumeKey;

/// The reason that a group of snapshots is not taken or deleted. Nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum GroupError {
    /// It contains no volume.
    #[error("the group of snapshots {} names no volume; name at least one", escaped(name))]
    NoVolumes {
        /// The name of the group.
        name: String,
    },
    /// It contains too many volumes.
    #[error(
        "the group of snapshots {} names {count} volumes, and at most {limit} are taken together; take several groups",
        escaped(name)
    )]
    TooManyVolumes {
        /// The name of the group.
        name: String,
        /// The number of named volumes.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// It names a volume twice.
    #[error("the group of snapshots {} names volume {volume} twice; name each volume once", escaped(name))]
    Twice {
        /// The name of the group.
        name: String,
        /// The volume.
        volume: VolumeKey,
    },
    /// Its volumes belong to two plugins.
    #[error(
        "the group of snapshots {} names volume {volume} of plugin {plugin} and volume {other} of plugin {other_plugin}; one plugin takes a \
         group, so take one for each",
        escaped(name)
    )]
    OtherPlugin {
        /// The name of the group.
        name: String,
        /// A volume.
        volume: VolumeKey,
        /// Its plugin.
        plugin: PluginName,
        /// Another volume.
        other: VolumeKey,
        /// The plugin of the other volume.
        other_plugin: PluginName,
    },
    /// A volume of it is being deleted.
    #[error("volume {volume} is being deleted, so it cannot be in the group of snapshots {}", escaped(name))]
    BeingDeleted {
        /// The name of the group.
        name: String,
        /// The volume.
        volume: VolumeKey,
    },
    /// Another group of this name is being taken (C002).
    #[error(
        "another group of snapshots {} of plugin {plugin} is being taken, ordered of volume {keeper}; take another name, wait for that one, or \
         force that order",
        escaped(name)
    )]
    SameName {
        /// The name of the group.
        name: String,
        /// The plugin.
        plugin: PluginName,
        /// The volume whose ledger has that order.
        keeper: VolumeKey,
    },
    /// It is not known yet what groups of the plugin are being taken.
    #[error(
        "cannot do anything about the group of snapshots {} yet: volume {unread} of its plugin has just been started and may be \
        taking it; try again",
        escaped(group)
    )]
    Unread {
        /// The name of the group, or its id.
        group: String,
        /// The volume whose ledger may have an order of it.
        unread: VolumeKey,
    },
    /// The group is being taken: after the deletion, the order would take it again.
    #[error(
        "the group of snapshots {} is not ready yet, as it was ordered of volume {keeper} under the name {}; wait until it is, or force that \
         order first",
        escaped(group_snapshot_id),
        escaped(name)
    )]
    BeingTaken {
        /// The id of the group.
        group_snapshot_id: String,
        /// Its name.
        name: String,
        /// The volume whose ledger has the order.
        keeper: VolumeKey,
    },
}

impl GroupError {
    /// Whether the same order may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::SameName { .. } | Self::BeingTaken { .. } | Self::Unread { .. } => true,
            Self::NoVolumes { .. }
            | Self::TooManyVolumes { .. }
            | Self::Twice { .. }
            | Self::OtherPlugin { .. }
            | Self::BeingDeleted { .. } => false,
        }
    }
}
