//! The layouts of the parts of volume rows. Bytes from disk are validated like any external input.
//!
//! Never add, remove or reorder fields or variants without a new schema of every row that has them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Usage, VolumeKey, VolumeSpec};
use crate::csi::{AccessMode, AccessType, MountFlags, MountVolume, VolumeCapability};
use crate::vocabulary::{PluginName, Timestamp, VolumeName, VolumeNamespace};

/// The layout of a type.
pub(crate) trait Part: Sized {
    /// The type that it encodes.
    type Of;

    /// The layout of a value.
    fn of(it: &Self::Of) -> Self;

    /// Decodes the value, or returns the violated rule.
    fn read(self) -> Result<Self::Of, String>;
}

impl Part for () {
    type Of = ();

    fn of((): &()) -> Self {}

    fn read(self) -> Result<(), String> {
        Ok(())
    }
}

/// The layout of a context or a topology.
impl Part for BTreeMap<String, String> {
    type Of = Self;

    fn of(it: &Self) -> Self {
        it.clone()
    }

    fn read(self) -> Result<Self, String> {
        Ok(self)
    }
}

impl<P: Part> Part for Option<P> {
    type Of = Option<P::Of>;

    fn of(it: &Self::Of) -> Self {
        it.as_ref().map(P::of)
    }

    fn read(self) -> Result<Self::Of, String> {
        self.map(P::read).transpose()
    }
}

impl<P: Part> Part for Vec<P> {
    type Of = Vec<P::Of>;

    fn of(it: &Self::Of) -> Self {
        it.iter().map(P::of).collect()
    }

    fn read(self) -> Result<Self::Of, String> {
        self.into_iter().map(P::read).collect()
    }
}

impl<P: Part> Part for Box<P> {
    type Of = Arc<P::Of>;

    fn of(it: &Self::Of) -> Self {
        Self::new(P::of(it))
    }

    fn read(self) -> Result<Self::Of, String> {
        (*self).read().map(Arc::new)
    }
}

/// A path that calls contain or at which directories are removed: absolute, and without any `..`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PathPart(OsString);

impl Part for PathPart {
    type Of = PathBuf;

    fn of(it: &PathBuf) -> Self {
        Self(it.clone().into_os_string())
    }

    fn read(self) -> Result<PathBuf, String> {
        let is_down = |part| matches!(part, Component::RootDir | Component::Normal(_));
        let path = Path::new(&self.0);
        let is_sound = path.is_absolute() && path.components().all(is_down);
        match is_sound && !self.0.as_encoded_bytes().contains(&0) {
            true => Ok(self.0.into()),
            false => Err("a path is not absolute, or has a way up or a zero byte".to_owned()),
        }
    }
}

/// Microseconds since the Unix epoch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TimePart(u64);

impl Part for TimePart {
    type Of = Timestamp;

    fn of(it: &Timestamp) -> Self {
        Self(u64::try_from(it.since_epoch().as_micros()).unwrap_or(u64::MAX))
    }

    fn read(self) -> Result<Timestamp, String> {
        Ok(Timestamp::from_epoch(Duration::from_micros(self.0)))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeyPart {
    namespace: String,
    name: String,
}

impl Part for KeyPart {
    type Of = VolumeKey;

    fn of(it: &VolumeKey) -> Self {
        Self { namespace: it.namespace.as_str().to_owned(), name: it.name.as_str().to_owned() }
    }

    fn read(self) -> Result<VolumeKey, String> {
        Ok(VolumeKey {
            namespace: VolumeNamespace::new(&self.namespace).map_err(|error| error.to_string())?,
            name: VolumeName::new(&self.name).map_err(|error| error.to_string())?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpecPart {
    key: KeyPart,
    plugin: String,
    volume_id: String,
    volume_context: BTreeMap<String, String>,
}

impl Part for SpecPart {
    type Of = VolumeSpec;

    fn of(it: &VolumeSpec) -> Self {
        let VolumeSpec { key, plugin, volume_id, volume_context } = it;
        Self {
            key: KeyPart::of(key),
            plugin: plugin.as_str().to_owned(),
            volume_id: volume_id.clone(),
            volume_context: volume_context.clone(),
        }
    }

    fn read(self) -> Result<VolumeSpec, String> {
        Ok(VolumeSpec {
            key: self.key.read()?,
            plugin: PluginName::new(&self.plugin).map_err(|error| error.to_string())?,
            volume_id: self.volume_id,
            volume_context: self.volume_context,
        })
    }
}

/// The access mode by its name in the specification; without a mount the volume is a block device.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CapabilityPart {
    access_mode: String,
    mount: Option<MountPart>,
}

#[derive(Debug, Serialize, Deserialize)]
struct MountPart {
    fs_type: String,
    flags: Vec<String>,
    group: String,
}

impl Part for CapabilityPart {
    type Of = VolumeCapability;

    fn of(it: &VolumeCapability) -> Self {
        let mount = match &it.access_type {
            AccessType::Block => None,
            AccessType::Mount(MountVolume { fs_type, mount_flags, volume_mount_group }) => Some(MountPart {
                fs_type: fs_type.clone(),
                flags: mount_flags.expose().to_vec(),
                group: volume_mount_group.clone(),
            }),
        };
        Self { access_mode: it.access_mode.as_str().to_owned(), mount }
    }

    fn read(self) -> Result<VolumeCapability, String> {
        let mode = AccessMode::ALL.into_iter().find(|mode| mode.as_str() == self.access_mode);
        let mount = |MountPart { fs_type, flags, group }| {
            let mount_flags = MountFlags::new(flags);
            AccessType::Mount(MountVolume { fs_type, mount_flags, volume_mount_group: group })
        };
        Ok(VolumeCapability {
            access_type: self.mount.map_or(AccessType::Block, mount),
            access_mode: mode.ok_or("an access mode is none of the specification")?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UsagePart {
    capability: CapabilityPart,
    read_only: bool,
}

impl Part for UsagePart {
    type Of = Usage;

    fn of(it: &Usage) -> Self {
        Self { capability: CapabilityPart::of(&it.capability), read_only: it.read_only }
    }

    fn read(self) -> Result<Usage, String> {
        Ok(Usage { capability: self.capability.read()?, read_only: self.read_only })
    }
}
