//! Records which volumes are called with secrets, and the keys of these secrets. An undo or a creation may be due when the volume has left
//! the configuration. It would be made without the secrets that it needs (C081), so the call waits instead.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

/// The file in the data directory.
const FILE: &str = "secret-keys.json";

/// The keys of the secrets of each volume, by its name; none for a volume without secrets.
pub(super) type Keys = BTreeMap<String, BTreeSet<String>>;

/// The keys of the secrets of volumes, as recorded in the data directory; never a secret (V11). Clones share them.
#[derive(Debug, Clone)]
pub(super) struct SecretKeys(Arc<File>);

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// The content of the file, once it was read.
    known: Mutex<Option<Arc<Keys>>>,
    /// Held by the only thread that reads or writes: a disk that does not respond occupies no further threads.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl SecretKeys {
    /// The keys in this data directory. Does not access the disk.
    pub(super) fn of(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        Self(Arc::new(File { path, known: Mutex::default(), turn: Arc::default() }))
    }

    /// The content of the file, if it was read. Does not access the disk.
    pub(super) fn known(&self) -> Option<Arc<Keys>> {
        self.0.known()
    }

    /// The content of the file. After an error it is read again, since the file may have been corrected.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) async fn read(&self) -> Result<Arc<Keys>, String> {
        match self.known() {
            Some(known) => Ok(known),
            None => self.at_work(File::read).await,
        }
    }

    /// Records these keys in the file. The keys of other volumes stay as they are.
    ///
    /// # Errors
    /// When they are not recorded.
    pub(super) async fn keep(&self, wanted: Arc<Keys>) -> Result<(), String> {
        self.at_work(move |file| file.keep(&wanted)).await
    }

    /// Works on the file, in a thread, one at a time. The work continues when this future is dropped.
    async fn at_work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&File) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        let file = Arc::clone(&self.0);
        let working = actix_rt::task::spawn_blocking(move || {
            let _turn = turn;
            work(&file)
        });
        working.await.map_err(|error| error.to_string())?
    }
}

impl File {
    fn known(&self) -> Option<Arc<Keys>> {
        lock(&self.known).clone()
    }

    fn read(&self) -> Result<Arc<Keys>, String> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let read = Arc::new(read(&self.path)?);
        *lock(&self.known) = Some(Arc::clone(&read));
        Ok(read)
    }

    fn keep(&self, wanted: &Keys) -> Result<(), String> {
        let known = self.read()?;
        let mut changed = Keys::clone(&known);
        changed.extend(wanted.iter().map(|(volume, keys)| (volume.clone(), keys.clone())));
        changed.retain(|_, keys| !keys.is_empty());
        if changed == *known {
            return Ok(());
        }
        write(&self.path, &changed).map_err(|error| {
            let path = self.path.display();
            format!(
                "cannot record the secret keys of volumes in {path}: {error}; make room, or repair the disk"
            )
        })?;
        *lock(&self.known) = Some(Arc::new(changed));
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(path: &Path) -> Result<Keys, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "cannot read {}, which records which volumes need secrets: {error}; correct it, or remove it when each such volume \
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

/// Replaces the file as a whole: after a crash the old or the new file exists.
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

    use super::*;

    async fn keep(keys: &SecretKeys, volume: &str) -> Result<(), String> {
        keys.keep(Keys::from([(volume.to_owned(), ["password".to_owned()].into())]).into()).await
    }

    #[actix::test]
    async fn keys_outlive_the_run_that_wrote_them_c081() {
        let directory = tempfile::tempdir().unwrap();
        let first = SecretKeys::of(directory.path());
        assert_eq!(first.known(), None, "no disk was touched");
        assert!(first.read().await.unwrap().is_empty());
        keep(&first, "default/a").await.unwrap();
        let second = SecretKeys::of(directory.path());
        assert_eq!(second.read().await.unwrap()["default/a"], ["password".to_owned()].into());
        second.keep(Keys::from([("default/a".to_owned(), BTreeSet::new())]).into()).await.unwrap();
        assert!(SecretKeys::of(directory.path()).read().await.unwrap().is_empty());
    }

    #[actix::test]
    async fn a_file_that_cannot_be_read_is_named_not_overwritten_and_read_again_until_it_is_corrected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "{").unwrap();
        let keys = SecretKeys::of(directory.path());
        let told = keys.read().await.unwrap_err();
        assert!(told.contains(&path.display().to_string()) && told.contains("remove it"), "{told}");
        keep(&keys, "default/a").await.unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
        fs::write(&path, r#"{"default/b": ["token"]}"#).unwrap();
        assert!(keys.read().await.unwrap().contains_key("default/b"));
        keep(&keys, "default/a").await.unwrap();
        assert_eq!(keys.known().unwrap().len(), 2);
    }

    #[actix::test]
    async fn what_cannot_be_written_down_is_not_taken_for_known() {
        let directory = tempfile::tempdir().unwrap();
        let keys = SecretKeys::of(&directory.path().join("gone"));
        let told = keep(&keys, "default/a").await.unwrap_err();
        assert!(told.contains("cannot record the secret keys") && told.contains("gone"), "{told}");
        assert!(keys.known().unwrap().is_empty());
    }
}
