//! Any bytes, as the record of a process.

use super::row::ProcessRow;

/// Takes the bytes as they would lie on disk behind their checksum.
///
/// # Panics
/// When what decodes does not come back as it was, or what does not decode is not told.
pub(crate) fn records(data: &[u8]) {
    crate::fuzzing::check_record::<ProcessRow>(data);
}
