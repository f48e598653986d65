//! Reads the secrets of volumes from their configured locations, for each call of a plugin (V11, C025).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::csi::{Call, Secrets};
use callboard_actors::volume::{SecretSource, VolumeKey};
use futures_util::future::LocalBoxFuture;
use rustix::fs::OFlags;

use super::secret_keys::{Keys, SecretKeys};
use crate::config::{SecretOrigin, VolumeConfig};

/// The longest secret, in bytes: all secrets of a call together have the same limit (C005).
const SECRET_BYTES_MAX: usize = 4_096;

/// The locations of the secrets of one volume, by their keys.
type Origins = BTreeMap<String, SecretOrigin>;

/// Reads the content of a file.
type Reader = Arc<dyn Fn(&Path) -> Result<String, String> + Send + Sync>;

/// The source of the secrets of a configuration. It has their locations, and stores no secret.
///
/// A volume that an earlier configuration had with secrets is not called without them: the data directory has its keys.
pub struct ConfiguredSecrets {
    /// The secrets in the configuration.
    volumes: BTreeMap<VolumeKey, Arc<OfVolume>>,
    /// Their keys, which must be on disk.
    wanted: Arc<Keys>,
    keys: SecretKeys,
    reader: Reader,
}

/// The secrets of one volume. At most one thread reads them: a thread that waits for a dead file system never ends.
struct OfVolume {
    key: VolumeKey,
    origins: Origins,
    /// The location that a thread reads at present, if any.
    read_now: Mutex<Option<String>>,
}

/// The permission of the only thread that reads the secrets of a volume. It ends when this is dropped.
struct Turn(Arc<OfVolume>);

impl ConfiguredSecrets {
    /// The secrets of these volumes, which are all volumes of a configuration. The data directory keeps their keys.
    #[must_use]
    pub fn of(data_dir: &Path, volumes: &[VolumeConfig]) -> Self {
        let origins = volumes.iter().map(|volume| (volume.key.clone(), volume.secrets.clone()));
        Self::read_by(Arc::new(content), data_dir, origins)
    }

    fn read_by(
        reader: Reader,
        data_dir: &Path,
        origins: impl IntoIterator<Item = (VolumeKey, Origins)>,
    ) -> Self {
        let volumes = origins.into_iter().map(|(key, origins)| {
            let of_volume = OfVolume { key: key.clone(), origins, read_now: Mutex::new(None) };
            (key, Arc::new(of_volume))
        });
        let volumes: BTreeMap<_, _> = volumes.collect();
        let wanted = volumes.values().map(|of| (of.key.to_string(), of.origins.keys().cloned().collect()));
        let wanted = Arc::new(wanted.collect());
        Self { volumes, wanted, keys: SecretKeys::of(data_dir), reader }
    }

    /// Records the keys of all volumes of the configuration, so that missing secrets are noticed when a volume leaves it.
    ///
    /// # Errors
    /// When they are not recorded.
    pub async fn keep(&self) -> Result<(), String> {
        self.keys.keep(Arc::clone(&self.wanted)).await
    }

    /// Forgets the secrets of a volume that is no longer in the configuration: it is deleted, or its name now means another volume.
    ///
    /// # Errors
    /// When that is not recorded.
    pub async fn forget(&self, volume: &VolumeKey) -> Result<(), String> {
        let name = volume.to_string();
        let has_none = || self.keys.known().is_some_and(|known| !known.contains_key(&name));
        if self.volumes.contains_key(volume) || has_none() {
            return Ok(());
        }
        self.keys.keep(Keys::from([(name, BTreeSet::new())]).into()).await
    }
}

/// The secrets of a volume that is not in the configuration: none, if it never had any.
fn of_unconfigured(volume: &VolumeKey, keys: &Keys) -> Result<Secrets, String> {
    let Some(keys) = keys.get(&volume.to_string()) else { return Ok(Secrets::none()) };
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    Err(format!(
        "an earlier configuration had volume {volume} with the secrets {}, and this one has no [[volume]] for it; put that back, with its \
         `secrets`, and restart the host",
        keys.join(", ")
    ))
}

impl fmt::Debug for ConfiguredSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConfiguredSecrets").field(&self.volumes.keys()).finish()
    }
}

impl SecretSource for ConfiguredSecrets {
    fn secrets(&self, volume: &VolumeKey, _call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>> {
        let keys = self.keys.clone();
        let of_volume = match self.volumes.get(volume) {
            None => {
                let volume = volume.clone();
                return Box::pin(async move { of_unconfigured(&volume, &*keys.read().await?) });
            }
            // Independent of the disk: it needs no secrets.
            Some(of_volume) if of_volume.origins.is_empty() => {
                return Box::pin(std::future::ready(Ok(Secrets::none())));
            }
            Some(of_volume) => of_volume,
        };
        let turn = match Turn::begin(of_volume) {
            Ok(turn) => turn,
            Err(reason) => return Box::pin(std::future::ready(Err(reason))),
        };
        let (reader, wanted) = (Arc::clone(&self.reader), Arc::clone(&self.wanted));
        Box::pin(async move {
            // From the first call on its inverse may be due, whatever the configuration is by then.
            let name = turn.0.key.to_string();
            if keys.known().is_none_or(|known| known.get(&name) != wanted.get(&name)) {
                keys.keep(wanted).await?;
            }
            // A file may be on a disk that does not respond: then the caller gives up, and the permission of this thread does not end.
            let reading = actix_rt::task::spawn_blocking(move || turn.read(&*reader));
            reading.await.map_err(|error| error.to_string())?
        })
    }
}

impl OfVolume {
    fn read_now(&self) -> MutexGuard<'_, Option<String>> {
        self.read_now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn begin(of_volume: &Arc<OfVolume>) -> Result<Self, String> {
        let mut read_now = of_volume.read_now();
        if let Some(what) = &*read_now {
            return Err(format!(
                "a secret of volume {} is not read again: the last read of {what} has not answered yet; look whether its file system \
                 answers",
                of_volume.key
            ));
        }
        *read_now = Some("its secrets".to_owned());
        Ok(Self(Arc::clone(of_volume)))
    }

    fn read(self, reader: &dyn Fn(&Path) -> Result<String, String>) -> Result<Secrets, String> {
        let OfVolume { key: volume, origins, .. } = &*self.0;
        let mut secrets = BTreeMap::new();
        for (key, origin) in origins {
            let secret = match origin {
                SecretOrigin::File(path) => {
                    let shown = path.display();
                    *self.0.read_now() = Some(format!("the file {shown}"));
                    reader(path).map_err(|error| {
                        format!(
                            "a secret of volume {volume} cannot be read from the file {shown}: {error}; correct the file"
                        )
                    })?
                }
                // The variable is not shown: its name may have been mistaken for the secret.
                SecretOrigin::Environment(variable) => std::env::var(variable).map_err(|_| {
                    format!(
                        "a variable that `secrets` of volume {volume} names is not set in the environment of the host, or is no text; \
                         restart the host with it"
                    )
                })?,
            };
            secrets.insert(key.clone(), secret);
        }
        Ok(Secrets::new(secrets))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.read_now() = None;
    }
}

/// The content of a file without a line break at its end. It must be a regular file: another kind could block its reader.
fn content(path: &Path) -> Result<String, String> {
    let options = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = i32::try_from(options.bits()).map_err(|error| error.to_string())?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| error.to_string())?;
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = SECRET_BYTES_MAX + "\r\n".len();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > limit {
        return Err(format!("it has more than {SECRET_BYTES_MAX} bytes, which no plugin takes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use callboard_actors::vocabulary::{VolumeName, VolumeNamespace};
    use futures_util::FutureExt as _;

    use super::*;

    fn key() -> VolumeKey {
        let (namespace, name) = (VolumeNamespace::new("default"), VolumeName::new("data"));
        VolumeKey { namespace: namespace.unwrap(), name: name.unwrap() }
    }

    fn source(data_dir: &Path, origins: &[(&str, SecretOrigin)]) -> ConfiguredSecrets {
        let origins = origins.iter().map(|(key, origin)| ((*key).to_owned(), origin.clone()));
        ConfiguredSecrets::read_by(Arc::new(content), data_dir, [(key(), origins.collect())])
    }

    /// An undo that is refused without them would leave the volume forever, and a creation would make another volume.
    #[actix::test]
    async fn a_volume_that_left_the_configuration_is_not_called_without_its_secrets_c081() {
        let directory = tempfile::tempdir().unwrap();
        let call = Call::ControllerUnpublishVolume;
        let variable = SecretOrigin::Environment("PATH".to_owned());
        let first = source(directory.path(), &[("password", variable.clone())]);
        assert!(!first.secrets(&key(), call).await.unwrap().is_empty());

        let without = ConfiguredSecrets::of(directory.path(), &[]);
        let told = without.secrets(&key(), call).await.unwrap_err();
        let path = std::env::var("PATH").unwrap();
        assert!(
            told.contains("volume default/data with the secrets password") && !told.contains(&path),
            "{told}"
        );

        // It is configured again; and then its name refers to another volume.
        let again = source(directory.path(), &[("password", variable)]);
        assert!(!again.secrets(&key(), call).await.unwrap().is_empty());
        without.secrets(&key(), call).await.unwrap_err();
        without.forget(&key()).await.unwrap();
        assert!(without.secrets(&key(), call).await.unwrap().is_empty());
        let later = ConfiguredSecrets::of(directory.path(), &[]);
        assert!(later.secrets(&key(), call).await.unwrap().is_empty());
    }

    /// A host was updated, or its volumes were only looked at: no call was made that needed secrets.
    #[actix::test]
    async fn keys_are_kept_without_a_call_and_a_configuration_without_secrets_ends_that_c081() {
        let directory = tempfile::tempdir().unwrap();
        let call = Call::ControllerUnpublishVolume;
        let variable = SecretOrigin::Environment("PATH".to_owned());
        source(directory.path(), &[("password", variable)]).keep().await.unwrap();
        let gone = || ConfiguredSecrets::of(directory.path(), &[]);
        gone().secrets(&key(), call).await.unwrap_err();
        let without = source(directory.path(), &[]);
        assert!(without.secrets(&key(), call).await.unwrap().is_empty());
        without.keep().await.unwrap();
        assert!(gone().secrets(&key(), call).await.unwrap().is_empty(), "its last entry had none");
    }

    /// An unreadable file does not affect volumes that never had a secret.
    #[actix::test]
    async fn a_file_of_keys_that_cannot_be_read_keeps_no_configured_volume_without_secrets_waiting_v9() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret-keys.json");
        fs::write(&path, "{").unwrap();
        let without = source(directory.path(), &[]);
        assert!(without.secrets(&key(), Call::NodeStageVolume).await.unwrap().is_empty());
        let gone = ConfiguredSecrets::of(directory.path(), &[]);
        let told = gone.secrets(&key(), Call::NodeStageVolume).await.unwrap_err();
        assert!(told.contains("secret-keys.json"), "{told}");
        fs::remove_file(&path).unwrap();
        assert!(gone.secrets(&key(), Call::NodeStageVolume).await.unwrap().is_empty(), "without a restart");
    }

    #[actix::test]
    async fn no_secret_is_given_before_it_is_on_disk_that_the_volume_has_some_c081() {
        let directory = tempfile::tempdir().unwrap();
        let full = directory.path().join("gone");
        let variable = SecretOrigin::Environment("PATH".to_owned());
        let source = source(&full, &[("path", variable)]);
        let told = source.secrets(&key(), Call::CreateVolume).await.unwrap_err();
        assert!(told.contains("cannot record the secret keys"), "{told}");
        fs::create_dir(&full).unwrap();
        assert!(!source.secrets(&key(), Call::CreateVolume).await.unwrap().is_empty());
    }

    /// A file system that hangs takes no more threads, however often the caller retries.
    #[actix::test]
    async fn secrets_that_hang_take_one_thread_and_are_read_again_once_they_answer_v11_vol_08() {
        let (begin, begun) = mpsc::channel();
        let (answer, answers) = mpsc::channel::<&str>();
        let answers = Mutex::new(answers);
        let reader = move |_: &Path| {
            begin.send(()).map_err(|error| error.to_string())?;
            let answers = answers.lock().map_err(|error| error.to_string())?;
            answers.recv().map(str::to_owned).map_err(|error| error.to_string())
        };
        let origin = ("password".to_owned(), SecretOrigin::File("/dead/password".into()));
        let directory = tempfile::tempdir().unwrap();
        let origins = [(key(), Origins::from([origin]))];
        let source = ConfiguredSecrets::read_by(Arc::new(reader), directory.path(), origins);
        let mut first = source.secrets(&key(), Call::NodeStageVolume);
        while begun.try_recv().is_err() {
            assert!((&mut first).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        // The caller has given up.
        drop(first);
        for _ in 0..3 {
            let refused = source.secrets(&key(), Call::NodeStageVolume).await.unwrap_err();
            let told = "the last read of the file /dead/password has not answered yet";
            assert!(refused.contains("volume default/data") && refused.contains(told), "{refused}");
        }
        assert!(begun.try_recv().is_err(), "no other thread reads");
        answer.send("late").unwrap();
        answer.send("new").unwrap();
        // The thread ends its turn on its own.
        let secrets = loop {
            match source.secrets(&key(), Call::NodeStageVolume).await {
                Ok(secrets) => break secrets,
                Err(reason) => assert!(reason.contains("has not answered yet"), "{reason}"),
            }
        };
        assert_eq!(secrets.expose()["password"], "new");
    }

    #[actix::test]
    async fn a_secret_is_read_anew_for_each_call_without_the_line_break_at_its_end_v11() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let origins = [
            ("password", SecretOrigin::File(path.clone())),
            ("path", SecretOrigin::Environment("PATH".to_owned())),
        ];
        let source = source(directory.path(), &origins);
        for (written, expected) in
            [("one\n", "one"), ("two\r\n", "two"), (" three\n\n", " three\n"), ("", "")]
        {
            fs::write(&path, written).unwrap();
            let secrets = source.secrets(&key(), Call::NodeStageVolume).await.unwrap();
            assert_eq!(secrets.expose()["password"], expected);
            assert_eq!(secrets.expose()["path"], std::env::var("PATH").unwrap());
        }
        let shown = format!("{source:?}");
        assert!(!shown.contains("PATH") && !shown.contains("password"), "{shown}");
    }

    #[actix::test]
    async fn a_volume_without_secrets_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let secrets = source(directory.path(), &[]).secrets(&key(), Call::CreateVolume).await.unwrap();
        assert!(secrets.is_empty());
        let secrets =
            ConfiguredSecrets::of(directory.path(), &[]).secrets(&key(), Call::CreateVolume).await.unwrap();
        assert!(secrets.is_empty());
    }

    #[actix::test]
    async fn a_secret_that_cannot_be_read_is_an_error_that_names_its_file_and_shows_nothing_of_it_v11_c025() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let shown = path.display().to_string();
        let read = async || {
            let source = source(directory.path(), &[("k-canary", SecretOrigin::File(path.clone()))]);
            source.secrets(&key(), Call::CreateVolume).await.unwrap_err()
        };
        let missing = read().await;
        assert!(missing.contains("volume default/data") && missing.contains(&shown), "{missing}");
        fs::write(&path, "canary".repeat(SECRET_BYTES_MAX)).unwrap();
        let long = read().await;
        assert!(long.contains(&shown) && long.contains("4096 bytes"), "{long}");
        fs::write(&path, b"canary\xff").unwrap();
        let binary = read().await;
        assert!(binary.contains(&shown) && binary.contains("no text"), "{binary}");
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let pipe = read().await;
        assert!(pipe.contains(&shown) && pipe.contains("no regular file"), "{pipe}");
        let variable = SecretOrigin::Environment("CANARY_OF_A_SECRET".to_owned());
        let unset = source(directory.path(), &[("k-canary", variable)]);
        let unset = unset.secrets(&key(), Call::CreateVolume).await.unwrap_err();
        assert!(unset.contains("volume default/data"), "{unset}");
        for error in [missing, long, binary, pipe, unset] {
            assert!(!error.to_lowercase().contains("canary"), "{error}");
        }
    }
}
