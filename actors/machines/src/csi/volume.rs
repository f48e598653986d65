//! The properties of volumes in requests and answers: capabilities, capacity, topology, condition.

use std::collections::BTreeMap;

use super::rules::{self, fault, inconsistent};
use super::secrets::{MountFlags, Secrets};
use crate::rpc::{Fault, Problem};
use crate::vocabulary::{NodeCapability, Topology};

/// Data of a plugin about a volume, for later calls. Opaque; stored and passed on unchanged (C059, C060, C074).
pub type Context = BTreeMap<String, String>;

/// How many nodes or workloads may use a volume at the same time, and how (`VolumeCapability.AccessMode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessMode {
    /// One node, reading and writing.
    SingleNodeWriter,
    /// One node, reading.
    SingleNodeReaderOnly,
    /// Several nodes, reading.
    MultiNodeReaderOnly,
    /// Several nodes, of which one writes.
    MultiNodeSingleWriter,
    /// Several nodes, reading and writing.
    MultiNodeMultiWriter,
    /// One workload on one node, reading and writing; alpha.
    SingleNodeSingleWriter,
    /// Several workloads on one node, reading and writing; alpha.
    SingleNodeMultiWriter,
}

impl AccessMode {
    /// All modes.
    pub const ALL: [Self; 7] = [
        Self::SingleNodeWriter,
        Self::SingleNodeReaderOnly,
        Self::MultiNodeReaderOnly,
        Self::MultiNodeSingleWriter,
        Self::MultiNodeMultiWriter,
        Self::SingleNodeSingleWriter,
        Self::SingleNodeMultiWriter,
    ];

    /// Its name in lower case and with dashes, as in `single-node-writer`: the form that operators type and see.
    #[must_use]
    pub fn word(self) -> String {
        self.as_str().to_ascii_lowercase().replace('_', "-")
    }

    /// Its name in the specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SingleNodeWriter => "SINGLE_NODE_WRITER",
            Self::SingleNodeReaderOnly => "SINGLE_NODE_READER_ONLY",
            Self::MultiNodeReaderOnly => "MULTI_NODE_READER_ONLY",
            Self::MultiNodeSingleWriter => "MULTI_NODE_SINGLE_WRITER",
            Self::MultiNodeMultiWriter => "MULTI_NODE_MULTI_WRITER",
            Self::SingleNodeSingleWriter => "SINGLE_NODE_SINGLE_WRITER",
            Self::SingleNodeMultiWriter => "SINGLE_NODE_MULTI_WRITER",
        }
    }

    /// Whether several nodes may have the volume at once (C075).
    #[must_use]
    pub const fn is_multi_node(self) -> bool {
        matches!(self, Self::MultiNodeReaderOnly | Self::MultiNodeSingleWriter | Self::MultiNodeMultiWriter)
    }

    /// Whether one node may publish the volume at several targets (C137, table C.5).
    #[must_use]
    pub const fn allows_several_targets(self) -> bool {
        self.is_multi_node() || matches!(self, Self::SingleNodeMultiWriter)
    }

    /// Whether it permits reading only.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::SingleNodeReaderOnly | Self::MultiNodeReaderOnly)
    }

    /// Whether it needs the capability `SINGLE_NODE_MULTI_WRITER` (C154).
    #[must_use]
    pub const fn is_alpha(self) -> bool {
        matches!(self, Self::SingleNodeSingleWriter | Self::SingleNodeMultiWriter)
    }

    /// The mode that replaces this mode at a plugin with the capability `SINGLE_NODE_MULTI_WRITER` (C154): a volume for one node is
    /// used by one allocation at a time.
    const fn refined(self) -> Self {
        match self {
            Self::SingleNodeWriter => Self::SingleNodeSingleWriter,
            other => other,
        }
    }
}

/// How a volume is mounted (`VolumeCapability.MountVolume`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MountVolume {
    /// The file system; empty leaves it to the plugin.
    pub fs_type: String,
    /// Mount flags; at most 4 KiB in total (C007).
    pub mount_flags: MountFlags,
    /// The group that owns the files; empty for none. Needs the capability `VOLUME_MOUNT_GROUP` (C155).
    pub volume_mount_group: String,
}

/// Whether a volume is used as a block device or as a file system: exactly one of them (C058).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessType {
    /// As a block device.
    Block,
    /// As a mounted file system.
    Mount(MountVolume),
}

/// How a volume is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeCapability {
    /// As block device or file system.
    pub access_type: AccessType,
    /// The nodes or workloads that may use it at the same time.
    pub access_mode: AccessMode,
}

impl VolumeCapability {
    /// Checks the sizes (C004, C007).
    ///
    /// # Errors
    /// The rule that it breaks. Mount flags are not shown.
    pub fn check(&self) -> Result<(), Fault> {
        let AccessType::Mount(mount) = &self.access_type else { return Ok(()) };
        rules::string("fs_type", &mount.fs_type)?;
        rules::string("volume_mount_group", &mount.volume_mount_group)?;
        let bytes = mount.mount_flags.expose().iter().map(String::len).sum();
        match bytes > rules::MOUNT_FLAGS_BYTES_MAX {
            true => {
                let problem = Problem::TooLong { bytes, limit: rules::MOUNT_FLAGS_BYTES_MAX };
                Err(fault("C007", "mount_flags", problem))
            }
            false => Ok(()),
        }
    }

    /// This capability as it is requested of a plugin that has the capability `SINGLE_NODE_MULTI_WRITER`, or has not (C154).
    #[must_use]
    pub fn for_plugin(&self, knows_alpha: bool) -> Self {
        let mode = self.access_mode;
        Self { access_mode: if knows_alpha { mode.refined() } else { mode }, ..self.clone() }
    }

    /// A capability for each access type and mode.
    pub(crate) fn any() -> Vec<Self> {
        let types = [AccessType::Mount(MountVolume::default()), AccessType::Block];
        let of = |access_type: AccessType| {
            AccessMode::ALL.map(|access_mode| Self { access_type: access_type.clone(), access_mode })
        };
        types.into_iter().flat_map(of).collect()
    }

    /// Each capability that a claim may have if a plugin was asked for this capability (C154).
    #[must_use]
    pub fn claimed_as(&self) -> Vec<Self> {
        let claimed = AccessMode::ALL.into_iter().map(|access_mode| Self { access_mode, ..self.clone() });
        claimed.filter(|claimed| self.serves(claimed)).collect()
    }

    /// Whether this is the capability that a plugin is asked for when `claimed` is claimed, whichever modes the plugin knows (C154).
    #[must_use]
    pub fn serves(&self, claimed: &Self) -> bool {
        let is_mode_of = |mode: AccessMode| self.access_mode == mode || self.access_mode == mode.refined();
        self.access_type == claimed.access_type && is_mode_of(claimed.access_mode)
    }

    /// Checks that a node with these capabilities knows this mode (C154) and, if one is set, mounts for a group (C155).
    ///
    /// # Errors
    /// [`Problem::Unsupported`] with the missing capability.
    pub(super) fn check_node(&self, node: &[NodeCapability]) -> Result<(), Fault> {
        check_mode(self.access_mode, node.contains(&NodeCapability::SingleNodeMultiWriter))?;
        match &self.access_type {
            AccessType::Mount(mount) if !mount.volume_mount_group.is_empty() => {
                let needed = NodeCapability::VolumeMountGroup;
                supported("C155", "volume_mount_group", needed.as_str(), node.contains(&needed))
            }
            AccessType::Mount(_) | AccessType::Block => Ok(()),
        }
    }
}

/// The values of secrets, and the mount flags of capabilities.
pub(super) fn withheld<'r>(secrets: &'r Secrets, capabilities: &'r [VolumeCapability]) -> Vec<&'r str> {
    let flags = capabilities.iter().flat_map(|capability| match &capability.access_type {
        AccessType::Mount(mount) => mount.mount_flags.expose(),
        AccessType::Block => &[],
    });
    secrets.expose().values().chain(flags).map(String::as_str).collect()
}

/// Checks that a plugin, which knows the alpha modes or not, knows this mode (C154).
pub(super) fn check_mode(mode: AccessMode, knows_alpha: bool) -> Result<(), Fault> {
    supported("C154", "access_mode", "SINGLE_NODE_MULTI_WRITER", knows_alpha || !mode.is_alpha())
}

/// Refuses a field that needs a capability that the plugin does not have.
pub(super) const fn supported(
    rule: &'static str,
    field: &'static str,
    capability: &'static str,
    is_supported: bool,
) -> Result<(), Fault> {
    match is_supported {
        true => Ok(()),
        false => Err(fault(rule, field, Problem::Unsupported { capability })),
    }
}

/// Checks a required list of capabilities (C051, C009).
pub(super) fn check_capabilities(capabilities: &[VolumeCapability]) -> Result<(), Fault> {
    rules::some("C051", "volume_capabilities", capabilities.len())?;
    capabilities.iter().try_for_each(VolumeCapability::check)
}

/// Checks secrets: the size (C005) and the keys (C023). Neither keys nor values are shown.
///
/// # Errors
/// The rule that they break.
pub fn check_secrets(secrets: &Secrets) -> Result<(), Fault> {
    rules::map("secrets", secrets.expose())?;
    let is_key = |key: &String| {
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    match secrets.expose().keys().all(is_key) {
        true => Ok(()),
        false => {
            let detail = "have a key that is empty or holds more than letters, digits, '-', '_' and '.'";
            Err(inconsistent("C023", "secrets", detail))
        }
    }
}

/// The requested size of a volume, in bytes. Zero: the bound is not set; at least one is (C052). Equal bounds request an exact size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CapacityRange {
    /// The minimal size.
    pub required_bytes: u64,
    /// The maximal size.
    pub limit_bytes: u64,
}

impl CapacityRange {
    /// Checks that a bound is set, and that they do not cross (C052).
    ///
    /// # Errors
    /// The wrong bound.
    pub fn check(&self) -> Result<(), Fault> {
        let Self { required_bytes, limit_bytes } = *self;
        rules::number("C052", "required_bytes", required_bytes)?;
        rules::number("C052", "limit_bytes", limit_bytes)?;
        if required_bytes == 0 && limit_bytes == 0 {
            return Err(inconsistent("C052", "capacity_range", "has neither required_bytes nor limit_bytes"));
        }
        match limit_bytes > 0 && limit_bytes < required_bytes {
            true => {
                let detail = format!("is {limit_bytes}, below the required_bytes of {required_bytes}");
                Err(inconsistent("C052", "limit_bytes", detail))
            }
            false => Ok(()),
        }
    }

    /// Checks that a volume of this size is within the range (C052). Zero is an unknown size.
    ///
    /// # Errors
    /// [`Problem::Inconsistent`] for a volume that is too small or too large.
    pub fn check_size(&self, capacity_bytes: u64) -> Result<(), Fault> {
        let Self { required_bytes, limit_bytes } = *self;
        let told = |bound| inconsistent("C052", "capacity_bytes", format!("is {capacity_bytes}, {bound}"));
        match capacity_bytes {
            0 => Ok(()),
            bytes if bytes < required_bytes => Err(told(format!("below the {required_bytes} asked for"))),
            bytes if limit_bytes > 0 && bytes > limit_bytes => {
                Err(told(format!("above the {limit_bytes} asked for")))
            }
            _ => Ok(()),
        }
    }
}

/// The content of a new volume (`VolumeContentSource`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VolumeContentSource {
    /// The content of the snapshot with this id.
    Snapshot(String),
    /// The content of the volume with this id.
    Volume(String),
}

impl VolumeContentSource {
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Snapshot(id) => rules::plugin_id("snapshot_id", id),
            Self::Volume(id) => rules::plugin_id("volume_id", id),
        }
    }
}

/// The places from which a volume has to be accessible (C053, C054).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopologyRequirement {
    /// It has to be accessible from at least one of these places.
    pub requisite: Vec<Topology>,
    /// Preferred places, the best first; a subset of `requisite` if both are set.
    pub preferred: Vec<Topology>,
}

impl TopologyRequirement {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let Self { requisite, preferred } = self;
        rules::some("C054", "accessibility_requirements", requisite.len() + preferred.len())?;
        for topology in requisite.iter().chain(preferred) {
            rules::some("C055", "segments", topology.len())?;
            rules::topology(topology)?;
        }
        match requisite.is_empty() || preferred.iter().all(|place| requisite.contains(place)) {
            true => Ok(()),
            false => Err(inconsistent("C054", "preferred", "has a topology that is not in requisite")),
        }
    }

    /// Whether a volume that is accessible from these places is accessible from one of the requisite places. No places means from
    /// everywhere; without requisite places any place satisfies this.
    pub(super) fn is_met_by(&self, accessible: &[Topology]) -> bool {
        let is_at = |place: &Topology| accessible.iter().any(|part| is_within(place, part));
        accessible.is_empty() || self.requisite.is_empty() || self.requisite.iter().any(is_at)
    }
}

/// Whether a place has every segment of another place. Keys are compared without case (C055).
fn is_within(place: &Topology, part: &Topology) -> bool {
    let has = |(key, value): (&String, &String)| {
        place.iter().any(|(own, there)| own.eq_ignore_ascii_case(key) && there == value)
    };
    part.iter().all(has)
}

/// A volume as its plugin describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Volume {
    /// Its size in bytes; zero if it is unknown.
    pub capacity_bytes: u64,
    /// Its id with the plugin; every later call has exactly this id (C059).
    pub volume_id: String,
    /// Passed on unchanged to every call that takes one (C059, C060).
    pub volume_context: Context,
    /// The source that it was made of.
    pub content_source: Option<VolumeContentSource>,
    /// The places from which it is accessible; empty means from everywhere.
    pub accessible_topology: Vec<Topology>,
}

impl Volume {
    /// Checks sizes and formats (C004, C005, C055).
    pub(super) fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.volume_id)?;
        rules::map("volume_context", &self.volume_context)?;
        self.content_source.as_ref().map_or(Ok(()), VolumeContentSource::check)?;
        self.accessible_topology.iter().try_for_each(rules::topology)
    }
}

/// Whether a volume is in order, as reported by its plugin; for people and not for programs (C095).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeCondition {
    /// Whether the volume has a problem.
    pub abnormal: bool,
    /// The problem or state. Text of the plugin: show it by [`crate::vocabulary::text::quoted`].
    pub message: String,
}

/// Where a volume is published, and its condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeStatus {
    /// Ids of nodes. Some may be unknown to this host (C094).
    pub published_node_ids: Vec<String>,
    /// Its condition; `None` if the plugin does not report it.
    pub volume_condition: Option<VolumeCondition>,
}

impl VolumeStatus {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let limit = rules::NODE_ID_BYTES_MAX;
        self.published_node_ids
            .iter()
            .try_for_each(|id| rules::filled("C006", "published_node_ids", id, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{map, mount};
    use super::*;

    #[test]
    fn a_range_has_a_bound_and_bounds_that_do_not_cross_c052() {
        let check = |required_bytes, limit_bytes| {
            let range = CapacityRange { required_bytes, limit_bytes };
            range.check().map_err(|fault| format!("{}: {fault}", fault.rule))
        };
        for (required, limit) in [(1, 0), (0, 1), (1, 1), (1, 2), (0, i64::MAX.unsigned_abs())] {
            assert_eq!(check(required, limit), Ok(()));
        }
        let none = "C052: capacity_range has neither required_bytes nor limit_bytes";
        assert_eq!(check(0, 0).expect_err("no bound"), none);
        let crossed = "C052: limit_bytes is 1, below the required_bytes of 2";
        assert_eq!(check(2, 1).expect_err("crossed"), crossed);
        assert!(check(1 << 63, 0).is_err() && check(0, 1 << 63).is_err());
    }

    #[test]
    fn a_size_outside_of_the_range_is_a_fault_and_an_unknown_one_is_not_c052() {
        let range = CapacityRange { required_bytes: 5, limit_bytes: 7 };
        let sizes: Vec<u64> = (0..10).filter(|size| range.check_size(*size).is_ok()).collect();
        assert_eq!(sizes, [0, 5, 6, 7]);
        assert_eq!(CapacityRange { limit_bytes: 0, ..range }.check_size(u64::MAX), Ok(()));
    }

    #[test]
    fn mount_flags_over_4_kib_are_refused_and_not_shown_c007_c025() {
        let with_flags = |bytes: usize| {
            let mut capability = mount();
            if let AccessType::Mount(mount) = &mut capability.access_type {
                mount.mount_flags = MountFlags::new(vec!["x".repeat(bytes - 1), "y".to_owned()]);
            }
            capability.check()
        };
        assert_eq!(with_flags(4096), Ok(()));
        let fault = with_flags(4097).expect_err("too long");
        assert_eq!(
            (fault.rule, &*fault.to_string()),
            ("C007", "mount_flags has 4097 bytes, at most 4096 are allowed")
        );
    }

    /// Holds C027.
    #[test]
    fn only_what_the_node_can_do_is_asked_of_it_c154_c155() {
        let mut capability = mount();
        assert_eq!(capability.check_node(&[]), Ok(()));
        capability.access_mode = AccessMode::SingleNodeSingleWriter;
        assert_eq!(capability.check_node(&[]).expect_err("alpha").rule, "C154");
        assert_eq!(capability.check_node(&[NodeCapability::SingleNodeMultiWriter]), Ok(()));
        capability.access_mode = AccessMode::MultiNodeMultiWriter;
        if let AccessType::Mount(mount) = &mut capability.access_type {
            mount.volume_mount_group = "100".to_owned();
        }
        assert_eq!(capability.check_node(&[]).expect_err("no group").rule, "C155");
        assert_eq!(capability.check_node(&[NodeCapability::VolumeMountGroup]), Ok(()));
    }

    #[test]
    fn keys_of_secrets_are_plain_and_never_shown_c023_c025() {
        let check = |key: &str| check_secrets(&Secrets::new(map(&[(key, "value")])));
        assert_eq!((check("user.NAME-1_x"), check_secrets(&Secrets::none())), (Ok(()), Ok(())));
        for bad in ["", "ein Wort", "ü", "a/b"] {
            let fault = check(bad).expect_err(bad);
            assert_eq!(
                (fault.rule, &*fault.to_string()),
                (
                    "C023",
                    "secrets have a key that is empty or holds more than letters, digits, '-', '_' and '.'"
                )
            );
        }
        assert_eq!(check(&"k".repeat(4096)).expect_err("too long").rule, "C005");
    }

    #[test]
    fn preferred_places_are_among_the_requisite_ones_c054() {
        let (a, b) = (map(&[("zone", "a")]), map(&[("zone", "b")]));
        let check = |requisite: &[&Topology], preferred: &[&Topology]| {
            let owned = |places: &[&Topology]| places.iter().map(|&place| place.clone()).collect();
            TopologyRequirement { requisite: owned(requisite), preferred: owned(preferred) }.check()
        };
        assert_eq!((check(&[&a, &b], &[&b]), check(&[], &[&a]), check(&[&a], &[])), (Ok(()), Ok(()), Ok(())));
        assert_eq!(check(&[], &[]).expect_err("nothing").rule, "C054");
        assert_eq!(check(&[&a], &[&b]).expect_err("elsewhere").rule, "C054");
        assert_eq!(check(&[&Topology::new()], &[]).expect_err("no segment").rule, "C055");
        assert_eq!(check(&[&map(&[("zone", "-")])], &[]).expect_err("malformed").rule, "C055");
    }

    #[test]
    fn modes_say_who_may_share_a_volume_c075_c137() {
        let of = |is: fn(AccessMode) -> bool| AccessMode::ALL.map(|mode| u8::from(is(mode)));
        assert_eq!(of(AccessMode::is_multi_node), [0, 0, 1, 1, 1, 0, 0]);
        assert_eq!(of(AccessMode::allows_several_targets), [0, 0, 1, 1, 1, 0, 1]);
        assert_eq!(of(AccessMode::is_read_only), [0, 1, 1, 0, 0, 0, 0]);
    }
}
