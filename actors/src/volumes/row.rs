//! The rows of known volumes on disk.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::KnownVolume;
use crate::persister::{Record, Table};
use crate::volume::{KeyPart, Part, SpecPart, VolumeKey, row};

/// Known volumes, by the key of the volume: each name follows its length.
pub const KNOWN_TABLE: Table = Table("known_volumes");

/// A row of [`KNOWN_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRow(pub(super) KnownVolume);

row!(KnownRow, KnownPart, KNOWN_TABLE);

#[derive(Serialize, Deserialize)]
struct KnownPart {
    spec: Box<SpecPart>,
    capacity_bytes: Option<u64>,
    accessible_topology: Vec<BTreeMap<String, String>>,
}

impl Part for KnownPart {
    type Of = KnownVolume;

    fn of(it: &KnownVolume) -> Self {
        let KnownVolume { spec, capacity_bytes, accessible_topology } = it;
        Self {
            spec: Part::of(spec),
            capacity_bytes: *capacity_bytes,
            accessible_topology: accessible_topology.clone(),
        }
    }

    fn read(self) -> Result<KnownVolume, String> {
        let Self { spec, capacity_bytes, accessible_topology } = self;
        let known = KnownVolume { spec: spec.read()?, capacity_bytes, accessible_topology };
        known.check().map_err(|fault| fault.to_string())?;
        Ok(known)
    }
}

/// The volumes that are being deleted, by the key of the volume: each name follows its length.
pub const DELETION_TABLE: Table = Table("volume_deletions");

/// A row of [`DELETION_TABLE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionRow(pub(super) VolumeKey);

row!(DeletionRow, KeyPart, DELETION_TABLE);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::persister::{decode, encode};
    use crate::vocabulary::{PluginName, VolumeName, VolumeNamespace};
    use crate::volume::VolumeSpec;

    fn known() -> KnownVolume {
        let spec = VolumeSpec {
            key: VolumeKey {
                namespace: VolumeNamespace::new("d").unwrap(),
                name: VolumeName::new("v").unwrap(),
            },
            plugin: PluginName::new("zfs").unwrap(),
            volume_id: "id".to_owned(),
            volume_context: BTreeMap::from([("pool".to_owned(), "t".to_owned())]),
        };
        KnownVolume {
            spec: Arc::new(spec),
            capacity_bytes: Some(5),
            accessible_topology: vec![BTreeMap::from([("zone".to_owned(), "a".to_owned())])],
        }
    }

    /// The encoding of this version. It must stay readable: a change of these bytes, in our code or in a library, needs a
    /// new schema and a migration.
    #[test]
    fn p2_known_volumes_have_these_bytes_whatever_library_writes_them() {
        let (row, bytes) = (
            KnownRow(known()),
            b"\x01\x00\x01d\x01v\x03zfs\x02id\x01\x04pool\x01t\x01\x05\x01\x01\x04zone\x01a",
        );
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<KnownRow>(bytes).unwrap(), row);
    }

    #[test]
    fn p2_deletions_have_these_bytes_whatever_library_writes_them() {
        let (row, bytes) = (DeletionRow(known().spec.key.clone()), b"\x01\x00\x01d\x01v");
        assert_eq!(encode(&row).escape_ascii().to_string(), bytes.escape_ascii().to_string());
        assert_eq!(decode::<DeletionRow>(bytes).unwrap(), row);
    }

    #[test]
    fn a_known_volume_that_no_message_may_register_is_refused_c004() {
        let mut nameless = known();
        Arc::make_mut(&mut nameless.spec).volume_id.clear();
        let told = decode::<KnownRow>(&encode(&KnownRow(nameless))).unwrap_err().to_string();
        assert!(told.contains("volume_id"), "{told}");
    }
}
