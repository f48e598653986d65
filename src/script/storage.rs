//! The storage behind the plugins of a script: the created volumes, their sizes, their snapshots, and what is mounted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::mounts::MemoryMounts;

/// The storage of a script. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Storage {
    created: Arc<Mutex<Created>>,
    mounts: MemoryMounts,
}

#[derive(Debug, Default)]
struct Created {
    /// The name and the id of each volume.
    volumes: Vec<(String, String)>,
    /// The number of created volumes in all.
    count: u32,
    /// The size of each expanded volume, by its id.
    sizes: BTreeMap<String, i64>,
    snapshots: Vec<Taken>,
    /// The number of snapshots taken in all, and of groups.
    taken: (u32, u32),
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// Its name, or the name of its group.
    name: String,
    pub(super) id: String,
    /// The id of its volume.
    pub(super) source: String,
    /// The id of its group; empty for none.
    pub(super) group: String,
}

impl Storage {
    fn created(&self) -> MutexGuard<'_, Created> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the volume of this name, unless it exists (C050), and returns its id.
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

    /// Deletes the volume with this id, if it exists.
    pub(super) fn delete(&self, id: &str) {
        self.created().volumes.retain(|(_, other)| other != id);
    }

    /// Expands a volume, if it is smaller, and returns its size.
    pub(super) fn expand(&self, id: String, bytes: i64) -> i64 {
        let mut created = self.created();
        let size = created.sizes.entry(id).or_default();
        *size = bytes.max(*size);
        *size
    }

    /// Takes the snapshot of this name, unless it exists (C050).
    pub(super) fn take(&self, name: String, source: String) -> Option<Taken> {
        let mut created = self.created();
        if let Some(there) = created.snapshots.iter().find(|one| one.name == name && one.group.is_empty()) {
            return Some(there.clone());
        }
        Some(created.take(name, source, String::new()))
    }

    /// Takes the group of snapshots of this name, unless it exists (C050).
    pub(super) fn take_group(&self, name: &str, sources: Vec<String>) -> Vec<Taken> {
        let mut created = self.created();
        let is_its = |one: &&Taken| one.name == name && !one.group.is_empty();
        let there: Vec<_> = created.snapshots.iter().filter(is_its).cloned().collect();
        if !there.is_empty() {
            return there;
        }
        created.taken.1 += 1;
        let group = format!("group-{}", created.taken.1);
        sources.into_iter().map(|source| created.take(name.to_owned(), source, group.clone())).collect()
    }

    /// Deletes these snapshots, if they exist.
    pub(super) fn delete_snapshots(&self, ids: &[String]) {
        self.created().snapshots.retain(|one| !ids.contains(&one.id));
    }

    /// The ids of the created volumes that are not deleted.
    pub(super) fn volumes(&self) -> Vec<String> {
        self.created().volumes.iter().map(|(_, id)| id.clone()).collect()
    }

    /// The volumes that were expanded, with their sizes.
    pub(super) fn sizes(&self) -> Vec<(String, i64)> {
        self.created().sizes.iter().map(|(id, bytes)| (id.clone(), *bytes)).collect()
    }

    /// The snapshots that are not deleted.
    pub(super) fn snapshots(&self) -> Vec<Taken> {
        self.created().snapshots.clone()
    }

    /// The mounts.
    pub(super) const fn mounts(&self) -> &MemoryMounts {
        &self.mounts
    }
}

impl Created {
    fn take(&mut self, name: String, source: String, group: String) -> Taken {
        self.taken.0 += 1;
        let taken = Taken { name, id: format!("snapshot-{}", self.taken.0), source, group };
        self.snapshots.push(taken.clone());
        taken
    }
}
