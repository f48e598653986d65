//! The storage behind the plugins of a script: which volumes were created, and what is mounted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::mounts::MemoryMounts;

/// The storage of a script. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Storage {
    created: Arc<Mutex<Created>>,
    mounts: MemoryMounts,
}

#[derive(Debug, Default)]
struct Created {
    /// The name and the id of each volume.
    volumes: Vec<(String, String)>,
    /// How many were created in all.
    count: u32,
}

impl Storage {
    fn created(&self) -> MutexGuard<'_, Created> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the volume of this name, unless it is there (C050), and gives its id.
    pub(super) fn create(&self, name: String) -> String {
        let mut created = self.created();
        if let Some((_, id)) = created.volumes.iter().find(|(other, _)| *other == name) {
            return id.clone();
        }
        created.count += 1;
        let id = format!("volume-{}", created.count);
        created.volumes.push((name, id.clone()));
        id
    }

    /// Deletes the volume with this id, if it is there.
    pub(super) fn delete(&self, id: &str) {
        self.created().volumes.retain(|(_, other)| other != id);
    }

    /// The ids of the volumes that were created, and not deleted.
    pub(super) fn volumes(&self) -> Vec<String> {
        self.created().volumes.iter().map(|(_, id)| id.clone()).collect()
    }

    /// What is mounted.
    pub(super) const fn mounts(&self) -> &MemoryMounts {
        &self.mounts
    }
}
