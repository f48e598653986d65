//! Decodes arbitrary bytes as records of volumes: those of their ledgers and those of their owner.

use super::row::{DeletionRow, KnownRow};
use crate::fuzzing::check_record;
use crate::volume::{AbandonedRow, AuditRow, ClaimRow, LostClaimRow, OrderRow, VolumeRow};

/// The first byte selects the record type, the rest is the record.
///
/// # Panics
/// When the round trip of a decoded record changes it, or a failure to decode is not reported.
pub(crate) fn records(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 8 {
        0 => check_record::<VolumeRow>(bytes),
        1 => check_record::<ClaimRow>(bytes),
        2 => check_record::<AuditRow>(bytes),
        3 => check_record::<LostClaimRow>(bytes),
        4 => check_record::<KnownRow>(bytes),
        5 => check_record::<OrderRow>(bytes),
        6 => check_record::<AbandonedRow>(bytes),
        _ => check_record::<DeletionRow>(bytes),
    }
}
