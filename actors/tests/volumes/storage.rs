//! The volumes and snapshots that a test's plugin has stored.

use std::collections::BTreeMap;

/// One volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: i64,
    pub(crate) bytes_on_node: i64,
    pub(crate) parameters: BTreeMap<String, String>,
}

/// All volumes and snapshots, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storage {
    pub(crate) volumes: BTreeMap<String, Stored>,
    /// Each with its volume.
    pub(crate) snapshots: BTreeMap<String, String>,
}

impl Storage {
    /// Creates a volume; an existing volume stays.
    pub(crate) fn create(&mut self, id: String, bytes: i64) {
        self.volumes.entry(id).or_insert(Stored { bytes, ..Stored::default() });
    }

    pub(crate) fn delete(&mut self, id: &str) {
        self.volumes.remove(id);
    }

    pub(crate) fn volume(&mut self, id: &str) -> &mut Stored {
        self.volumes.get_mut(id).expect("there is such a volume")
    }

    pub(crate) fn take_snapshot(&mut self, id: String, of: String) {
        self.snapshots.entry(id).or_insert(of);
    }

    pub(crate) fn delete_snapshot(&mut self, id: &str) {
        self.snapshots.remove(id);
    }
}
