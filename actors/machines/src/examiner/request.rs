//! A request of any call, as received: also values that no well-formed type can hold.
//!
//! CSI gives a field the same name in every request that has it, so one struct holds them all. A field that a request does not have is
//! empty, like an unset field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A map of a request that is not secret.
pub type Map = BTreeMap<String, String>;

/// The stored part of texts that must not be shown or stored: their number and size, and a digest to compare them with others of the
/// same run of the examiner.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Withheld {
    /// The number of texts.
    pub count: usize,
    /// Their total bytes.
    pub bytes: usize,
    /// A digest with a key that only this run knows. It is never stored.
    #[serde(skip)]
    pub digest: Option<u64>,
}

/// Equal by the known values: without a digest only number and size are compared.
impl PartialEq for Withheld {
    fn eq(&self, other: &Self) -> bool {
        let digests_agree = match (self.digest, other.digest) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (None, _) | (_, None) => true,
        };
        (self.count, self.bytes) == (other.count, other.bytes) && digests_agree
    }
}

/// The stored part of the secrets of a request (C025): their keys, and a [`Withheld`] of their values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SecretDigests {
    /// The keys.
    pub keys: Vec<String>,
    /// The values, with the keys.
    pub values: Withheld,
}

/// A range of bytes; 0 is unset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityRange {
    /// At least.
    pub required_bytes: i64,
    /// At most.
    pub limit_bytes: i64,
}

/// A way to use a volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    /// Whether it is for a block volume. `None`: it has no access type.
    pub is_block: Option<bool>,
    /// The file system.
    pub fs_type: String,
    /// The mount flags, which may hold credentials (C025).
    pub mount_flags: Withheld,
    /// The group that owns the files.
    pub mount_group: String,
    /// The number of the access mode; 0: none.
    pub mode: i32,
}

/// Numbers of access modes in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessMode(pub i32);

impl AccessMode {
    /// `SINGLE_NODE_WRITER`.
    pub const SINGLE_NODE_WRITER: Self = Self(1);
    /// `SINGLE_NODE_MULTI_WRITER`.
    pub const SINGLE_NODE_MULTI_WRITER: Self = Self(7);

    /// Whether several nodes may have the volume at once.
    #[must_use]
    pub const fn is_for_several_nodes(self) -> bool {
        matches!(self.0, 3..=5)
    }

    /// Whether several targets of a node may have the volume at once (table C.5).
    #[must_use]
    pub fn is_for_several_targets(self) -> bool {
        self.is_for_several_nodes() || self == Self::SINGLE_NODE_MULTI_WRITER
    }
}

impl Capability {
    /// Its access mode.
    #[must_use]
    pub const fn access_mode(&self) -> AccessMode {
        AccessMode(self.mode)
    }
}

/// The source of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The snapshot of this id.
    Snapshot(String),
    /// A clone of the volume of this id.
    Volume(String),
    /// Neither is set.
    Missing,
}

/// The places where a volume has to be reachable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyWish {
    /// It has to be reachable from one of these.
    pub requisite: Vec<Map>,
    /// Preferred places, the best first.
    pub preferred: Vec<Map>,
}

/// The state of the paths of a request, observed when it arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenPaths {
    /// Whether the staging path is a directory. `None`: it was not checked.
    pub staging_is_directory: Option<bool>,
    /// Whether the target exists.
    pub target_exists: Option<bool>,
    /// Whether the parent of the target is a directory.
    pub target_has_parent: Option<bool>,
}

macro_rules! request {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        /// The fields of a request, by their names in the specification.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        #[allow(missing_docs, reason = "each has the name that the specification describes")]
        pub struct Request {
            $($(#[$doc])* #[serde(skip_serializing_if = "is_default")] pub $field: $type,)*
            /// The secrets.
            #[serde(skip_serializing_if = "is_default")]
            pub secrets: SecretDigests,
            /// The observed state of its paths.
            #[serde(skip_serializing_if = "is_default")]
            pub seen: SeenPaths,
        }

        impl Request {
            /// The first field in which two requests differ, without secrets and observed paths.
            #[must_use]
            pub fn difference(&self, other: &Self) -> Option<&'static str> {
                $(if self.$field != other.$field {
                    return Some(stringify!($field));
                })*
                None
            }
        }
    };
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

request! {
    name: String,
    volume_id: String,
    node_id: String,
    snapshot_id: String,
    source_volume_id: String,
    group_snapshot_id: String,
    source_volume_ids: Vec<String>,
    snapshot_ids: Vec<String>,
    staging_target_path: String,
    target_path: String,
    volume_path: String,
    volume_capability: Option<Capability>,
    volume_capabilities: Vec<Capability>,
    capacity_range: Option<CapacityRange>,
    readonly: bool,
    parameters: Map,
    mutable_parameters: Map,
    volume_context: Map,
    publish_context: Map,
    volume_content_source: Option<Source>,
    accessibility_requirements: Option<TopologyWish>,
    accessible_topology: Option<Map>,
    max_entries: i32,
    starting_token: String,
}

impl Request {
    /// The string fields that are limited to 128 bytes, with their names: all except paths and the node id (C004, C006, C008).
    #[must_use]
    pub fn short_texts(&self) -> Vec<(&'static str, &str)> {
        let mut texts: Vec<(&str, &str)> = vec![
            ("name", &self.name),
            ("volume_id", &self.volume_id),
            ("snapshot_id", &self.snapshot_id),
            ("source_volume_id", &self.source_volume_id),
            ("group_snapshot_id", &self.group_snapshot_id),
            ("starting_token", &self.starting_token),
        ];
        texts.extend(self.source_volume_ids.iter().map(|id| ("source_volume_ids", id.as_str())));
        texts.extend(self.snapshot_ids.iter().map(|id| ("snapshot_ids", id.as_str())));
        for capability in self.capabilities() {
            texts.push(("fs_type", &capability.fs_type));
            texts.push(("volume_mount_group", &capability.mount_group));
        }
        match &self.volume_content_source {
            Some(Source::Snapshot(id) | Source::Volume(id)) => texts.push(("volume_content_source", id)),
            Some(Source::Missing) | None => {}
        }
        texts
    }

    /// The maps, with their names; without the secrets.
    #[must_use]
    pub fn maps(&self) -> Vec<(&'static str, &Map)> {
        let mut maps = vec![
            ("parameters", &self.parameters),
            ("mutable_parameters", &self.mutable_parameters),
            ("volume_context", &self.volume_context),
            ("publish_context", &self.publish_context),
        ];
        maps.extend(self.topologies().into_iter().map(|topology| ("topology", topology)));
        maps
    }

    /// All topologies.
    #[must_use]
    pub fn topologies(&self) -> Vec<&Map> {
        let wish = self.accessibility_requirements.iter();
        let wished = wish.flat_map(|wish| wish.requisite.iter().chain(&wish.preferred));
        wished.chain(&self.accessible_topology).collect()
    }

    /// All capabilities.
    pub fn capabilities(&self) -> impl Iterator<Item = &Capability> {
        self.volume_capability.iter().chain(&self.volume_capabilities)
    }

    /// Its access mode.
    #[must_use]
    pub fn access_mode(&self) -> AccessMode {
        self.volume_capability.as_ref().map_or(AccessMode(0), Capability::access_mode)
    }

    /// Whether it is the same request, secrets included.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.secrets == other.secrets && self.difference(other).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staging(path: &str) -> Request {
        Request { volume_id: "v".to_owned(), staging_target_path: path.to_owned(), ..Request::default() }
    }

    #[test]
    fn the_first_field_that_differs_is_named_c013() {
        assert_eq!(staging("/a").difference(&staging("/b")), Some("staging_target_path"));
        let seen = SeenPaths { target_exists: Some(true), ..SeenPaths::default() };
        assert_eq!(staging("/a").difference(&Request { seen, ..staging("/a") }), None);
    }

    #[test]
    fn secrets_are_compared_by_digest_and_stored_without_it_c025() {
        let with = |digest| {
            let values = Withheld { count: 1, bytes: 9, digest: Some(digest) };
            Request { secrets: SecretDigests { keys: vec!["token".to_owned()], values }, ..staging("/a") }
        };
        assert!(with(1).is_same(&with(1)) && !with(1).is_same(&with(2)));
        let stored = serde_json::to_string(&with(4711)).expect("plain data");
        assert!(!stored.contains("4711"), "{stored}");
        let restored: Request = serde_json::from_str(&stored).expect("plain data");
        assert!(restored.is_same(&with(4711)), "without a digest it may be the same");
    }

    #[test]
    fn what_is_empty_is_not_stored() {
        assert_eq!(serde_json::to_string(&Request::default()).expect("plain data"), "{}");
    }
}
