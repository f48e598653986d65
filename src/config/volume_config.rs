//! The configuration of a volume.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use callboard_actors::vocabulary::PluginName;
use callboard_actors::volume::{NewVolume, Usage, VolumeKey};
use callboard_actors::volumes::KnownVolume;

/// Where a secret is read for each call of a plugin. The secret itself is never in a configuration (V11, C025).
#[derive(Clone, PartialEq, Eq)]
pub enum SecretOrigin {
    /// The content of this file, without a line break at its end. Key `file`.
    File(PathBuf),
    /// The value of this variable of the host's environment. Key `env`.
    Environment(String),
}

/// The origin of a volume.
#[derive(Debug, Clone, PartialEq)]
pub enum VolumeOrigin {
    /// It exists at its plugin. Keys `id` and `context`; `capacity`: its size; `topology`: from where it is accessible, from everywhere by
    /// default.
    Registered(KnownVolume),
    /// Its plugin creates it before its first use. Table `create`; `capacity`: its least size; `topology`: it must be accessible from at
    /// least one of these places.
    Created(Box<NewVolume>),
}

/// One volume.
#[derive(Clone, PartialEq)]
pub struct VolumeConfig {
    /// Its identity on this host. Keys `namespace` and `name`.
    pub key: VolumeKey,
    /// Its plugin. Key `plugin`, required.
    pub plugin: PluginName,
    /// Its origin. Key `id` or `create`; one of them is required.
    pub origin: VolumeOrigin,
    /// How all of its users use it. Keys `access_mode`, `mount` and `block`, and `read_only`: whether it permits reading only.
    pub usage: Usage,
    /// Where its secrets are read, by their keys. Table `secrets`.
    pub secrets: BTreeMap<String, SecretOrigin>,
}

impl fmt::Debug for VolumeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeConfig")
            .field("key", &self.key)
            .field("plugin", &self.plugin)
            .field("origin", &self.origin)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}
