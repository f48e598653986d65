//! A group of snapshots in the ledger: snapshots of several volumes, which the plugin takes at one point in time.
//!
//! The order belongs to the first of its volumes by key. The ledger of that volume keeps it, and its actor makes its calls. The order names
//! the other volumes, and no call of theirs is in flight meanwhile: see [`VolumeCall::turns`](super::VolumeCall::turns).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::record::VolumeKey;
use crate::csi::{CreateVolumeGroupSnapshotRequest, Fault, Request as _, Secrets, VolumeGroupSnapshot};
use crate::vocabulary::text;

/// The number of volumes that are named in words; of more, the first and their number.
const NAMED_MAX: usize = 4;

/// A volume in a group, with one snapshot there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupMember {
    /// The volume.
    pub volume: VolumeKey,
    /// Its id with the plugin.
    pub volume_id: String,
}

/// A group of snapshots that is to be taken. A retry repeats all of it (C013, C050).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupOrder {
    /// The name that the plugin receives, the same in every try (C050).
    pub name: String,
    /// The volumes, each once, in the order of their keys.
    pub members: Vec<GroupMember>,
    /// Parameters of the plugin.
    pub parameters: BTreeMap<String, String>,
}

impl GroupOrder {
    /// The request for it.
    #[must_use]
    pub fn request(&self, secrets: Secrets) -> CreateVolumeGroupSnapshotRequest {
        CreateVolumeGroupSnapshotRequest {
            name: self.name.clone(),
            source_volume_ids: self.members.iter().map(|member| member.volume_id.clone()).collect(),
            secrets,
            parameters: self.parameters.clone(),
        }
    }

    /// Checks the request to the plugin by itself.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Fault> {
        self.request(Secrets::none()).check()
    }

    /// Whether the group contains this volume.
    #[must_use]
    pub fn has(&self, volume: &VolumeKey) -> bool {
        self.members.iter().any(|member| member.volume == *volume)
    }

    /// Whether a group that a plugin has taken has one snapshot of each of these volumes, and no other snapshot.
    pub(super) fn is(&self, group: &VolumeGroupSnapshot) -> bool {
        let wanted: BTreeSet<_> = self.members.iter().map(|member| &member.volume_id).collect();
        let taken: BTreeSet<_> = group.snapshots.iter().map(|snapshot| &snapshot.source_volume_id).collect();
        wanted == taken && group.snapshots.len() == taken.len()
    }
}

/// The continuation of a sentence after "take".
impl fmt::Display for GroupOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> =
            self.members.iter().take(NAMED_MAX).map(|member| member.volume.to_string()).collect();
        write!(f, "group of snapshots {} of {}", text::escaped(&self.name), named.join(", "))?;
        match self.members.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            others => write!(f, " and {others} more"),
        }
    }
}

/// The part of an order that a plugin has taken and that is not ready yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Taken {
    /// The snapshot with this id.
    Snapshot(Arc<str>),
    /// This group.
    Group(Arc<VolumeGroupSnapshot>),
}

impl Taken {
    /// Its id with the plugin.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Snapshot(id) => id,
            Self::Group(group) => &group.group_snapshot_id,
        }
    }

    /// The ids of its snapshots.
    pub(super) fn snapshot_ids(&self) -> Vec<String> {
        match self {
            Self::Snapshot(id) => vec![id.to_string()],
            Self::Group(group) => {
                group.snapshots.iter().map(|snapshot| snapshot.snapshot_id.clone()).collect()
            }
        }
    }
}
