//! Stores the records of the plugin, each in a file of its own that is replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callboard_proto::csi::v1 as wire;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tonic::Status;

use super::failed_at;

pub(super) type Map = BTreeMap<String, String>;

/// How a volume is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Capability {
    pub(super) is_block: bool,
    pub(super) fs_type: String,
    pub(super) mount_flags: Vec<String>,
    pub(super) mount_group: String,
    /// A number of `VolumeCapability.AccessMode.Mode`.
    pub(super) mode: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Volume {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) capacity_bytes: i64,
    pub(super) is_block: bool,
    pub(super) is_in_memory: bool,
    pub(super) source: Option<Source>,
    pub(super) parameters: Map,
    pub(super) mutable_parameters: Map,
    /// Whether its content is complete.
    pub(super) is_ready: bool,
    /// The nodes that it is attached to.
    pub(super) attached: BTreeMap<String, Attached>,
}

/// The origin of a volume's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Source {
    Snapshot(String),
    Volume(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attached {
    pub(super) capability: Capability,
    pub(super) is_readonly: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) volume: String,
    pub(super) size_bytes: i64,
    /// Seconds since the Unix epoch.
    pub(super) created: i64,
    pub(super) is_block: bool,
    pub(super) group: Option<String>,
    /// Whether its content is complete.
    pub(super) is_ready: bool,
}

/// Snapshots of several volumes that were taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) volumes: Vec<String>,
    pub(super) snapshots: Vec<String>,
    /// Seconds since the Unix epoch.
    pub(super) created: i64,
}

/// The state of a volume on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OnNode {
    pub(super) staged: Option<Staged>,
    pub(super) published: BTreeMap<PathBuf, Published>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Staged {
    pub(super) path: PathBuf,
    pub(super) capability: Capability,
    /// A stage that was a lie: nothing was ever mounted, and the plugin behaves as if it were.
    #[serde(default)]
    pub(super) is_lie: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Published {
    pub(super) capability: Capability,
    pub(super) is_readonly: bool,
}

/// A kind of object with records.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// The directory of the records.
    const KIND: &'static str;
}

impl Record for Volume {
    const KIND: &'static str = "volumes";
}

impl Record for Snapshot {
    const KIND: &'static str = "snapshots";
}

impl Record for Group {
    const KIND: &'static str = "groups";
}

impl Record for OnNode {
    const KIND: &'static str = "node";
}

const KINDS: [&str; 4] = [Volume::KIND, Snapshot::KIND, Group::KIND, OnNode::KIND];
const CONTENT: &str = "content";

/// The directory of the plugin's records and of the content of its volumes.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
}

/// All records at one time.
pub(super) type Image = BTreeMap<PathBuf, Vec<u8>>;

impl Store {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        for name in KINDS.into_iter().chain([CONTENT]) {
            fs::create_dir_all(directory.join(name))?;
        }
        // Mounts are made at and from it, and their paths are compared with the kernel's.
        Ok(Self { directory: directory.canonicalize()? })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of the content of a volume or snapshot.
    pub(super) fn content(&self, id: &str) -> PathBuf {
        self.directory.join(CONTENT).join(id)
    }

    /// The record of this id. An id that this plugin never assigned has no record.
    pub(super) fn read<R: Record>(&self, id: &str) -> Result<Option<R>, Status> {
        if !is_id(id) {
            return Ok(None);
        }
        self.read_file(&self.file::<R>(id))
    }

    pub(super) fn write<R: Record>(&self, id: &str, record: &R) -> Result<(), Status> {
        let path = self.file::<R>(id);
        let bytes = serde_json::to_vec_pretty(record).map_err(|error| Status::internal(error.to_string()))?;
        replace(&path, &bytes).map_err(|error| failed_at("write", &path, &error))
    }

    pub(super) fn remove<R: Record>(&self, id: &str) -> Result<(), Status> {
        let path = self.file::<R>(id);
        let removed = match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // Otherwise it could reappear after a power cut, and a volume that was undone would count as in use.
            removed => removed.and_then(|()| sync_parent(&path)),
        };
        removed.map_err(|error| failed_at("remove", &path, &error))
    }

    /// All records of a kind, by id.
    pub(super) fn all<R: Record>(&self) -> Result<Vec<R>, Status> {
        let directory = self.directory.join(R::KIND);
        let unread = |error: io::Error| failed_at("list", &directory, &error);
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).map_err(unread)? {
            let path = entry.map_err(unread)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
        files.sort();
        files.iter().filter_map(|file| self.read_file(file).transpose()).collect()
    }

    fn file<R: Record>(&self, id: &str) -> PathBuf {
        self.directory.join(R::KIND).join(format!("{id}.json"))
    }

    fn read_file<R: Record>(&self, path: &Path) -> Result<Option<R>, Status> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed_at("read", path, &error)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Status::data_loss(format!("{} is no record of this plugin: {error}", path.display()))
        })
    }

    /// All records, for a later restore.
    pub(super) fn image(&self) -> io::Result<Image> {
        let mut image = Image::new();
        for kind in KINDS {
            for entry in fs::read_dir(self.directory.join(kind))? {
                let path = entry?.path();
                image.insert(path.clone(), fs::read(path)?);
            }
        }
        Ok(image)
    }

    /// Restores the records.
    pub(super) fn restore(&self, image: &Image) -> io::Result<()> {
        for path in self.image()?.into_keys().filter(|path| !image.contains_key(path)) {
            fs::remove_file(path)?;
        }
        image.iter().try_for_each(|(path, bytes)| replace(path, bytes))
    }
}

/// Replaces a file as a whole; it is on disk when this returns.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(fresh, path)?;
    // Then the name is on disk as well.
    sync_parent(path)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// The id for this name: always the same id.
pub(super) fn id_of(kind: &str, name: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    let hex: String = digest[..10].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}-{hex}")
}

/// Whether it may be an id of this plugin; then it can name a file.
fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    id.len() <= 64 && !id.is_empty() && id.bytes().all(is_plain)
}

impl Volume {
    pub(super) fn told(&self, topology: Option<&Map>) -> wire::Volume {
        let segments = topology.map(|map| map.clone().into_iter().collect());
        wire::Volume {
            capacity_bytes: self.capacity_bytes,
            volume_id: self.id.clone(),
            volume_context: [("name".to_owned(), self.name.clone())].into(),
            content_source: self.source.as_ref().map(Source::told),
            accessible_topology: segments.map(|segments| wire::Topology { segments }).into_iter().collect(),
        }
    }
}

impl Source {
    fn told(&self) -> wire::VolumeContentSource {
        use wire::volume_content_source::{SnapshotSource, Type, VolumeSource};
        let told = match self {
            Self::Snapshot(id) => Type::Snapshot(SnapshotSource { snapshot_id: id.clone() }),
            Self::Volume(id) => Type::Volume(VolumeSource { volume_id: id.clone() }),
        };
        wire::VolumeContentSource { r#type: Some(told) }
    }
}

impl Snapshot {
    pub(super) fn told(&self) -> wire::Snapshot {
        wire::Snapshot {
            size_bytes: self.size_bytes,
            snapshot_id: self.id.clone(),
            source_volume_id: self.volume.clone(),
            creation_time: Some(prost_types::Timestamp { seconds: self.created, nanos: 0 }),
            ready_to_use: self.is_ready,
            group_snapshot_id: self.group.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_its_name_and_no_other_text_leads_out_of_the_directory() {
        assert_eq!(id_of("vol", "a"), id_of("vol", "a"));
        assert_ne!(id_of("vol", "a"), id_of("vol", "b"));
        assert!(is_id(&id_of("vol", &"x".repeat(500))));
        for text in ["", "..", "../a", "a/b", "a\0", &"x".repeat(65)] {
            assert!(!is_id(text), "{text:?}");
        }
    }

    #[test]
    fn what_was_forgotten_is_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path()).expect("it can be made");
        store.write("a", &OnNode::default()).expect("room");
        let before = store.image().expect("it can be read");
        let staged = OnNode { published: [].into(), staged: None };
        store.write("b", &staged).expect("room");
        store.remove::<OnNode>("a").expect("it is there");
        store.restore(&before).expect("room");
        assert_eq!(store.image().expect("it can be read"), before);
        assert_eq!(store.read::<OnNode>("b").expect("it can be read"), None);
    }
}
