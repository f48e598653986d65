//! Decodes arbitrary bytes as the record of a process.

use super::row::ProcessRow;

/// The bytes are those on disk after the checksum.
///
/// # Panics
/// When the round trip of a decoded record changes it, or a failure to decode is not reported.
pub(crate) fn records(data: &[u8]) {
    crate::fuzzing::check_record::<ProcessRow>(data);
}
