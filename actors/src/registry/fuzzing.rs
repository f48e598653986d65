//! Decodes arbitrary bytes as records of registrations.

use super::row::RegistrationRow;
use crate::fuzzing::check_record;
use crate::persister::Quarantined;

/// The first byte selects the record type, the rest is the record.
///
/// # Panics
/// When the round trip of a decoded record changes it, or a failure to decode is not reported.
pub(crate) fn records(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 2 {
        0 => check_record::<RegistrationRow>(bytes),
        _ => check_record::<Quarantined>(bytes),
    }
}
