//! The errors of the owner of the volumes for orders.

use super::group_errors::GroupError;
use super::reasons::{NoAnswer, PluginLeaving, TooManyCallers, UnknownVolume};
use crate::vocabulary::PluginName;
use crate::vocabulary::text::escaped;
use crate::volume::{self, VolumeKey};

/// The reason that an order of a volume is not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OrderError {
    /// It is not known.
    #[error("{0}; create it first, or register it by a `[[volume]]` of the configuration")]
    Unknown(#[from] UnknownVolume),
    /// It is larger already, and a volume never becomes smaller.
    #[error(
        "volume {volume} has {capacity_bytes} bytes, and cannot be made smaller; ask for as many or more"
    )]
    Smaller {
        /// The volume.
        volume: VolumeKey,
        /// Its size.
        capacity_bytes: u64,
    },
    /// The plugin may be taking a snapshot of this name of another volume (C013). Nothing was begun.
    #[error(
        "another snapshot {} of plugin {plugin} is being taken, ordered of volume {keeper}; take another name, wait for that one, or force that \
         order",
        escaped(name)
    )]
    SameSnapshot {
        /// The name.
        name: String,
        /// The plugin.
        plugin: PluginName,
        /// The other volume.
        keeper: VolumeKey,
    },
    /// It is not known yet which snapshots of the plugin are being taken. Nothing was begun.
    #[error(
        "the snapshot {} is not taken yet, since volume {unread} of its plugin has just been started and may be taking one of this name; try \
         again",
        escaped(name)
    )]
    UnreadSnapshot {
        /// The name.
        name: String,
        /// The volume whose ledger may have an order of it.
        unread: VolumeKey,
    },
    /// The group of snapshots cannot be taken or deleted so.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// Too many callers wait. Nothing was begun.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The plugin is being stopped (V13).
    #[error(transparent)]
    PluginLeaving(#[from] PluginLeaving),
    /// The actor of the volume gave no answer. An order that was begun continues: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("cannot order anything of volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it, or it failed.
    #[error(transparent)]
    Refused(#[from] volume::OrderError),
}

impl OrderError {
    /// Whether the same order may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::TooManyCallers(_)
            | Self::PluginLeaving(_)
            | Self::SameSnapshot { .. }
            | Self::UnreadSnapshot { .. }
            | Self::Stopping { .. } => true,
            Self::Unknown(_) | Self::Smaller { .. } => false,
            Self::NoAnswer(no_answer) => no_answer.is_transient(),
            Self::Group(error) => error.is_transient(),
            Self::Refused(error) => error.is_transient(),
        }
    }
}
