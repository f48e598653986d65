//! Which volumes are called with secrets, and by which keys: an undo may be due, or a creation, when the configuration has forgotten its
//! volume. It would be made without the secrets that it needs (C081), so the call waits instead.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::volume::VolumeKey;
use tempfile::NamedTempFile;

/// The file in the data directory.
const FILE: &str = "secret-keys.json";

/// The keys of the secrets of each volume, by its name.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// The keys of the secrets of volumes, as the data directory has them; never a secret (V11).
#[derive(Debug)]
pub(super) struct SecretKeys {
    path: PathBuf,
    /// What the file has, as far as it is known; why it cannot be read, if so.
    known: Mutex<Result<Arc<Keys>, String>>,
    /// One writes at a time. It may wait for a disk, so no actor does.
    writing: Mutex<()>,
}

impl SecretKeys {
    /// Reads those of this data directory.
    pub(super) fn open(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        let known = Mutex::new(read(&path).map(Arc::new));
        Self { path, known, writing: Mutex::default() }
    }

    /// The keys with which a volume was configured. Touches no disk.
    ///
    /// # Errors
    /// The file cannot be read, so it is not known.
    pub(super) fn of(&self, volume: &VolumeKey) -> Result<BTreeSet<String>, String> {
        Ok(self.known()?.get(&volume.to_string()).cloned().unwrap_or_default())
    }

    /// Writes down the keys of these volumes before any of them is called with secrets, and forgets those of `without`. Waits for the
    /// disk.
    ///
    /// # Errors
    /// That is not written down.
    pub(super) fn keep(&self, with: &Keys, without: &BTreeSet<String>) -> Result<(), String> {
        self.change(|keys| {
            keys.retain(|volume, _| !without.contains(volume));
            keys.extend(with.iter().map(|(volume, of_volume)| (volume.clone(), of_volume.clone())));
        })
    }

    fn change(&self, change: impl FnOnce(&mut Keys)) -> Result<(), String> {
        let _turn = lock(&self.writing);
        // What could not be read is tried again: it may have been corrected.
        let known = self.known().or_else(|_| read(&self.path).map(Arc::new))?;
        let mut changed = Keys::clone(&known);
        change(&mut changed);
        if changed != *known {
            write(&self.path, &changed).map_err(|error| {
                let path = self.path.display();
                format!("which secrets volumes have cannot be written to {path}: {error}; make room, or mend the disk")
            })?;
        }
        *lock(&self.known) = Ok(Arc::new(changed));
        Ok(())
    }

    fn known(&self) -> Result<Arc<Keys>, String> {
        lock(&self.known).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(path: &Path) -> Result<Keys, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "the file {}, which says which volumes need secrets, cannot be read: {error}; correct it, or remove it when each such volume \
             is in the configuration",
            path.display()
        )
    };
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(&error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Keys::new()),
        Err(error) => Err(failed(&error)),
    }
}

/// Replaces the file as a whole: after a crash there is the former one, or this one.
fn write(path: &Path, keys: &Keys) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(directory)?;
    serde_json::to_writer_pretty(&mut file, keys)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use callboard_actors::vocabulary::{VolumeName, VolumeNamespace};

    use super::*;

    fn volume(name: &str) -> VolumeKey {
        let namespace = VolumeNamespace::new("default").unwrap();
        VolumeKey { namespace, name: VolumeName::new(name).unwrap() }
    }

    fn keys(of: &[(&str, &[&str])]) -> Keys {
        let of_volume = |(name, keys): &(&str, &[&str])| {
            (volume(name).to_string(), keys.iter().map(|key| (*key).to_owned()).collect())
        };
        of.iter().map(of_volume).collect()
    }

    #[test]
    fn keys_outlive_the_configuration_that_had_them_c081() {
        let directory = tempfile::tempdir().unwrap();
        let first = SecretKeys::open(directory.path());
        assert_eq!(first.of(&volume("a")), Ok(BTreeSet::new()));
        first.keep(&keys(&[("a", &["user", "password"]), ("b", &["token"])]), &BTreeSet::new()).unwrap();
        let second = SecretKeys::open(directory.path());
        let kept = second.of(&volume("a")).unwrap();
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), ["password", "user"]);
        // The next configuration has `b` without secrets, and `c` with one.
        second.keep(&keys(&[("c", &["token"])]), &[volume("b").to_string()].into()).unwrap();
        let third = SecretKeys::open(directory.path());
        let has_some = |name| !third.of(&volume(name)).unwrap().is_empty();
        assert_eq!(["a", "b", "c"].map(has_some), [true, false, true]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_and_not_overwritten_until_it_is_corrected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "{").unwrap();
        let damaged = SecretKeys::open(directory.path());
        let told = damaged.of(&volume("a")).unwrap_err();
        assert!(told.contains(&path.display().to_string()) && told.contains("remove it"), "{told}");
        let wanted = keys(&[("a", &["password"])]);
        damaged.keep(&wanted, &BTreeSet::new()).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
        fs::write(&path, r#"{"default/b": ["token"]}"#).unwrap();
        damaged.keep(&wanted, &BTreeSet::new()).unwrap();
        assert!(["a", "b"].into_iter().all(|name| !damaged.of(&volume(name)).unwrap().is_empty()));
    }

    #[test]
    fn what_cannot_be_written_down_is_not_taken_for_known() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let told = SecretKeys::open(&gone).keep(&keys(&[("a", &["k"])]), &BTreeSet::new()).unwrap_err();
        assert!(told.contains("cannot be written") && told.contains("gone"), "{told}");
    }
}
