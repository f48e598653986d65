//! Checks the permitted uses of a snapshot: its deletion alone, and the sizes of volumes that are made from it.

use super::existence::CreateArgs;
use super::outcome::{Failure, Known};
use super::record::VolumeKey;
use crate::csi::{CapacityRange, Snapshot, VolumeContentSource};
use crate::vocabulary::text::escaped;

/// Checks that a snapshot is deleted alone, and not with its group (C103). The deletion goes through this volume.
///
/// # Errors
/// The snapshot belongs to a group, with the way to delete that group.
pub fn check_alone(volume: &VolumeKey, snapshot: &Snapshot) -> Result<(), Failure> {
    if snapshot.group_snapshot_id.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "it belongs to the group of snapshots {group}, and goes with it alone: delete the group instead, with all of its snapshots \
         ('volume snapshot group delete {volume} --id {group}')",
        group = escaped(&snapshot.group_snapshot_id)
    );
    Err(Failure { known: Known::Refused, reason })
}

impl CreateArgs {
    /// The snapshot that limits the size of the volume: the volume is made from it, with a requested size.
    #[must_use]
    pub fn sized_by(&self) -> Option<&str> {
        match (&self.volume.content_source, self.volume.capacity_range) {
            (Some(VolumeContentSource::Snapshot(id)), Some(_)) => Some(id),
            _ => None,
        }
    }

    /// Checks that the volume has room for a snapshot of this size (C102); zero is unknown.
    ///
    /// # Errors
    /// The volume is to be smaller, with both sizes.
    pub fn check_room_for(&self, snapshot_id: &str, bytes: u64) -> Result<(), Failure> {
        let CapacityRange { required_bytes, limit_bytes } = self.volume.capacity_range.unwrap_or_default();
        let most = if limit_bytes > 0 { limit_bytes } else { required_bytes };
        if most == 0 || most >= bytes {
            return Ok(());
        }
        let reason = format!(
            "snapshot {} has {bytes} bytes, and a volume from it is not smaller: ask for as many or more instead of {most}",
            escaped(snapshot_id)
        );
        Err(Failure { known: Known::Refused, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::super::existence::NewVolume;
    use super::*;

    #[test]
    fn a_volume_has_at_least_the_size_of_its_snapshot_as_far_as_both_are_known_c102() {
        let has_room = |required_bytes, limit_bytes, bytes| {
            let capacity_range = Some(CapacityRange { required_bytes, limit_bytes });
            let volume = NewVolume { capacity_range, ..NewVolume::default() };
            CreateArgs { name: "v".to_owned(), volume }.check_room_for("s", bytes).is_ok()
        };
        assert!(has_room(10, 0, 10) && has_room(0, 10, 10) && has_room(1, 10, 10), "it can be as large");
        assert!(!has_room(9, 0, 10) && !has_room(0, 9, 10) && !has_room(1, 9, 10), "it is smaller");
        assert!(has_room(9, 0, 0) && has_room(0, 0, 10), "a size is not known");
    }
}
