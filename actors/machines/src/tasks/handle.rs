//! The data by which a driver finds its task again, as the tasks store it: bytes that only the driver and its client interpret.

use std::fmt;
use std::sync::Arc;

/// A driver's handle of a run.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptHandle {
    bytes: Arc<[u8]>,
    stored: Arc<[u8]>,
    cores: Arc<str>,
}

impl KeptHandle {
    /// A handle with these bytes. The stored bytes lack the environment of its task, which may hold secrets (P6). `cores` are the exclusive
    /// cores of the task, in the list format of the Linux kernel; empty if it has none.
    #[must_use]
    pub fn new(bytes: &[u8], stored: &[u8], cores: &str) -> Self {
        Self { bytes: bytes.into(), stored: stored.into(), cores: cores.into() }
    }

    /// Its bytes; after a restart of the host, the stored bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes to store.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// The exclusive cores of its task.
    #[must_use]
    pub fn cores(&self) -> &str {
        &self.cores
    }
}

/// Omits its bytes, which may hold secrets.
impl fmt::Debug for KeptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptHandle").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_shows_none_of_its_secrets_p6() {
        let handle = KeptHandle::new(b"TOKEN=canary-7", b"TOKEN", "2-3");
        assert_eq!(format!("{handle:?}"), "KeptHandle { bytes: 14, .. }");
    }
}
