//! The configuration of a volume.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use callboard_actors::vocabulary::Topology;
use callboard_actors::volume::{Usage, VolumeKey, VolumeSpec};

/// Where a secret is read for each call of a plugin. The secret itself is never in a configuration (V11, C025).
#[derive(Clone, PartialEq, Eq)]
pub enum SecretOrigin {
    /// The content of this file, without a line break at its end. Key `file`.
    File(PathBuf),
    /// The value of this variable of the host's environment. Key `env`.
    Environment(String),
}

/// One volume that exists at its plugin.
#[derive(Clone, PartialEq)]
pub struct VolumeConfig {
    /// Its identity on this host, its plugin, its id there and its context. Keys `namespace`, `name`, `plugin`, `id` and `context`.
    pub spec: VolumeSpec,
    /// How all of its users have it. Keys `access_mode`, `mount` and `block`, and `read_only`: whether it permits reading only.
    pub usage: Usage,
    /// Its size in bytes, if it is given. Key `capacity`.
    pub capacity_bytes: Option<u64>,
    /// From where it is accessible; empty means from everywhere. Key `topology`.
    pub accessible_topology: Vec<Topology>,
    /// Where its secrets are read, by their keys. Table `secrets`.
    pub secrets: BTreeMap<String, SecretOrigin>,
}

impl fmt::Debug for VolumeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeConfig")
            .field("key", &self.spec.key)
            .field("plugin", &self.spec.plugin)
            .field("volume_id", &self.spec.volume_id)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

/// A volume that a task uses. An entry of `task.volumes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskVolume {
    /// The volume. Key `name`, required: its name, or its namespace, a slash and its name.
    pub volume: VolumeKey,
    /// Where the task finds it, an absolute path. Key `destination`, required.
    pub destination: PathBuf,
    /// Whether the task only reads. Key `read_only`, false by default.
    pub read_only: bool,
}
