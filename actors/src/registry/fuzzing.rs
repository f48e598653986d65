//! Any bytes, as records of registrations.

use super::row::{CounterRow, RegistrationRow};
use crate::fuzzing::check_record;
use crate::persister::Quarantined;

/// The first byte says which record the others are.
///
/// # Panics
/// When what decodes does not come back as it was, or what does not decode is not told.
pub(crate) fn records(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 3 {
        0 => check_record::<RegistrationRow>(bytes),
        1 => check_record::<CounterRow>(bytes),
        _ => check_record::<Quarantined>(bytes),
    }
}
