//! The groups of snapshots that a plugin has taken under one name, one after the other.

use std::sync::Arc;

use callboard_machines::csi::{Snapshot, VolumeGroupSnapshot};
use callboard_machines::volume::{Failure, Known, OrderResult};

/// The groups, which outlive every host.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Groups {
    /// Whether the plugin takes groups.
    pub(super) are_taken: bool,
    /// Whether a group is not ready yet when it is taken.
    is_late: bool,
    /// The number of the group that exists.
    pub(super) there: Option<u32>,
    is_ready: bool,
    /// How many groups were ever taken.
    ever: u32,
    /// The last group whose result a host has received.
    pub(super) heard: Option<u32>,
}

impl Groups {
    /// No group yet, and a plugin that takes groups.
    pub(super) fn of_a_plugin(is_late: bool) -> Self {
        Self { are_taken: true, is_late, ..Self::default() }
    }

    /// Takes a group, unless one exists.
    pub(super) const fn take(&mut self) {
        if self.there.is_some() {
            self.is_ready = true;
            return;
        }
        self.ever += 1;
        (self.there, self.is_ready) = (Some(self.ever), !self.is_late);
    }

    /// A request makes the group with this id ready.
    pub(super) fn ask_for(&mut self, id: &str) {
        self.is_ready |= self.there.map(id_of).as_deref() == Some(id);
    }

    pub(super) fn delete(&mut self, id: &str) {
        self.there = self.there.filter(|there| id_of(*there) != id);
    }

    /// The number of the last group, whether or not it still exists.
    pub(super) const fn last(&self) -> u32 {
        self.ever
    }

    /// The result that a host receives for the existing group.
    pub(super) fn told(&mut self) -> Result<OrderResult, Failure> {
        self.heard = self.there;
        let Some(there) = self.there else { return Err(absent()) };
        let group = VolumeGroupSnapshot { ready_to_use: self.is_ready, ..group(there) };
        Ok(OrderResult::Group(Arc::new(group)))
    }

    /// The result that a host receives for the group with this id.
    pub(super) fn told_of(&mut self, id: &str) -> Result<OrderResult, Failure> {
        if self.there.map(id_of).as_deref() == Some(id) { self.told() } else { Err(absent()) }
    }
}

fn absent() -> Failure {
    Failure { known: Known::Absent, reason: "there is no such group".to_owned() }
}

/// The id of the group with this number.
pub(super) fn id_of(number: u32) -> String {
    format!("g{number}")
}

/// The id of its only snapshot.
pub(super) fn snapshot_of(number: u32) -> String {
    format!("s{number}")
}

fn group(number: u32) -> VolumeGroupSnapshot {
    let snapshot = Snapshot {
        snapshot_id: snapshot_of(number),
        source_volume_id: "v".to_owned(),
        group_snapshot_id: id_of(number),
        ..Snapshot::default()
    };
    VolumeGroupSnapshot {
        group_snapshot_id: id_of(number),
        snapshots: vec![snapshot],
        ..VolumeGroupSnapshot::default()
    }
}
