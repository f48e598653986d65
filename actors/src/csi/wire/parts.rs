//! The parts that several messages share.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use wire::volume_capability::{self as usage, access_mode::Mode};

use crate::csi::rules::{fault, malformed};
use crate::csi::{
    AccessMode, AccessType, CapacityRange, MountFlags, MountVolume, Secrets, TopologyRequirement, Volume,
    VolumeCapability, VolumeCondition, VolumeContentSource,
};
use crate::rpc::{Fault, Problem};
use crate::vocabulary::{Timestamp, Topology};

pub(super) type WireMap = HashMap<String, String>;

pub(super) fn map(entries: &BTreeMap<String, String>) -> WireMap {
    entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(super) fn map_from(entries: WireMap) -> BTreeMap<String, String> {
    entries.into_iter().collect()
}

pub(super) fn secrets(secrets: &Secrets) -> WireMap {
    map(secrets.expose())
}

pub(super) fn secrets_from(entries: WireMap) -> Secrets {
    Secrets::new(map_from(entries))
}

pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn number_from(rule: &'static str, field: &'static str, value: i64) -> Result<u64, Fault> {
    u64::try_from(value).map_err(|_| fault(rule, field, Problem::Negative { value }))
}

pub(super) fn entries_max(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

pub(super) fn entries_max_from(rule: &'static str, field: &'static str, value: i32) -> Result<u32, Fault> {
    u32::try_from(value).map_err(|_| fault(rule, field, Problem::Negative { value: value.into() }))
}

/// A part that must be there.
pub(super) fn required<T>(rule: &'static str, field: &'static str, part: Option<T>) -> Result<T, Fault> {
    part.ok_or(fault(rule, field, Problem::Empty))
}

/// A path that may be left out.
pub(super) fn optional(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

pub(super) fn capability(capability: &VolumeCapability) -> wire::VolumeCapability {
    let access_type = match &capability.access_type {
        AccessType::Block => usage::AccessType::Block(usage::BlockVolume {}),
        AccessType::Mount(mount) => usage::AccessType::Mount(usage::MountVolume {
            fs_type: mount.fs_type.clone(),
            mount_flags: mount.mount_flags.expose().to_vec(),
            volume_mount_group: mount.volume_mount_group.clone(),
        }),
    };
    let mode = mode(capability.access_mode).into();
    wire::VolumeCapability { access_mode: Some(usage::AccessMode { mode }), access_type: Some(access_type) }
}

pub(super) fn capability_from(capability: wire::VolumeCapability) -> Result<VolumeCapability, Fault> {
    let access_type = match required("C058", "access_type", capability.access_type)? {
        usage::AccessType::Block(usage::BlockVolume {}) => AccessType::Block,
        usage::AccessType::Mount(mount) => AccessType::Mount(MountVolume {
            fs_type: mount.fs_type,
            mount_flags: MountFlags::new(mount.mount_flags),
            volume_mount_group: mount.volume_mount_group,
        }),
    };
    let usage::AccessMode { mode } = required("C058", "access_mode", capability.access_mode)?;
    Ok(VolumeCapability { access_type, access_mode: mode_from(mode)? })
}

const fn mode(mode: AccessMode) -> Mode {
    match mode {
        AccessMode::SingleNodeWriter => Mode::SingleNodeWriter,
        AccessMode::SingleNodeReaderOnly => Mode::SingleNodeReaderOnly,
        AccessMode::MultiNodeReaderOnly => Mode::MultiNodeReaderOnly,
        AccessMode::MultiNodeSingleWriter => Mode::MultiNodeSingleWriter,
        AccessMode::MultiNodeMultiWriter => Mode::MultiNodeMultiWriter,
        AccessMode::SingleNodeSingleWriter => Mode::SingleNodeSingleWriter,
        AccessMode::SingleNodeMultiWriter => Mode::SingleNodeMultiWriter,
    }
}

fn mode_from(number: i32) -> Result<AccessMode, Fault> {
    let found = AccessMode::ALL.into_iter().find(|ours| mode(*ours) as i32 == number);
    found.ok_or_else(|| {
        malformed("C058", "access_mode", &number.to_string(), "a mode that this version knows")
    })
}

pub(super) fn capabilities(capabilities: &[VolumeCapability]) -> Vec<wire::VolumeCapability> {
    capabilities.iter().map(capability).collect()
}

pub(super) fn capabilities_from(
    capabilities: Vec<wire::VolumeCapability>,
) -> Result<Vec<VolumeCapability>, Fault> {
    capabilities.into_iter().map(capability_from).collect()
}

/// The capability of a request that needs one.
pub(super) fn required_capability(
    capability: Option<wire::VolumeCapability>,
) -> Result<VolumeCapability, Fault> {
    capability_from(required("C009", "volume_capability", capability)?)
}

pub(super) fn range(range: &CapacityRange) -> wire::CapacityRange {
    let CapacityRange { required_bytes, limit_bytes } = *range;
    wire::CapacityRange { required_bytes: number(required_bytes), limit_bytes: number(limit_bytes) }
}

pub(super) fn range_from(range: wire::CapacityRange) -> Result<CapacityRange, Fault> {
    Ok(CapacityRange {
        required_bytes: number_from("C052", "required_bytes", range.required_bytes)?,
        limit_bytes: number_from("C052", "limit_bytes", range.limit_bytes)?,
    })
}

pub(super) fn source(source: &VolumeContentSource) -> wire::VolumeContentSource {
    use wire::volume_content_source::{SnapshotSource, Type, VolumeSource};
    let kind = match source.clone() {
        VolumeContentSource::Snapshot(snapshot_id) => Type::Snapshot(SnapshotSource { snapshot_id }),
        VolumeContentSource::Volume(volume_id) => Type::Volume(VolumeSource { volume_id }),
    };
    wire::VolumeContentSource { r#type: Some(kind) }
}

pub(super) fn source_from(source: wire::VolumeContentSource) -> Result<VolumeContentSource, Fault> {
    use wire::volume_content_source::Type;
    Ok(match required("C057", "volume_content_source", source.r#type)? {
        Type::Snapshot(snapshot) => VolumeContentSource::Snapshot(snapshot.snapshot_id),
        Type::Volume(volume) => VolumeContentSource::Volume(volume.volume_id),
    })
}

pub(super) fn topology(topology: &Topology) -> wire::Topology {
    wire::Topology { segments: map(topology) }
}

pub(super) fn topology_from(topology: wire::Topology) -> Topology {
    map_from(topology.segments)
}

fn topologies(places: &[Topology]) -> Vec<wire::Topology> {
    places.iter().map(topology).collect()
}

fn topologies_from(places: Vec<wire::Topology>) -> Vec<Topology> {
    places.into_iter().map(topology_from).collect()
}

pub(super) fn requirement(requirement: &TopologyRequirement) -> wire::TopologyRequirement {
    let TopologyRequirement { requisite, preferred } = requirement;
    wire::TopologyRequirement { requisite: topologies(requisite), preferred: topologies(preferred) }
}

pub(super) fn requirement_from(requirement: wire::TopologyRequirement) -> TopologyRequirement {
    TopologyRequirement {
        requisite: topologies_from(requirement.requisite),
        preferred: topologies_from(requirement.preferred),
    }
}

pub(super) fn volume(volume: &Volume) -> wire::Volume {
    wire::Volume {
        capacity_bytes: number(volume.capacity_bytes),
        volume_id: volume.volume_id.clone(),
        volume_context: map(&volume.volume_context),
        content_source: volume.content_source.as_ref().map(source),
        accessible_topology: topologies(&volume.accessible_topology),
    }
}

/// The volume of an answer, which must be there.
pub(super) fn volume_from(volume: Option<wire::Volume>) -> Result<Volume, Fault> {
    let volume = required("C059", "volume", volume)?;
    Ok(Volume {
        capacity_bytes: number_from("C052", "capacity_bytes", volume.capacity_bytes)?,
        volume_id: volume.volume_id,
        volume_context: map_from(volume.volume_context),
        content_source: volume.content_source.map(source_from).transpose()?,
        accessible_topology: topologies_from(volume.accessible_topology),
    })
}

pub(super) fn condition(condition: &VolumeCondition) -> wire::VolumeCondition {
    wire::VolumeCondition { abnormal: condition.abnormal, message: condition.message.clone() }
}

pub(super) fn condition_from(condition: wire::VolumeCondition) -> VolumeCondition {
    VolumeCondition { abnormal: condition.abnormal, message: condition.message }
}

pub(super) fn time(time: Timestamp) -> prost_types::Timestamp {
    let since = time.since_epoch();
    prost_types::Timestamp { seconds: number(since.as_secs()), nanos: entries_max(since.subsec_nanos()) }
}

pub(super) fn time_from(time: prost_types::Timestamp) -> Result<Timestamp, Fault> {
    let seconds = number_from("C011", "creation_time", time.seconds)?;
    match u32::try_from(time.nanos) {
        Ok(nanos) if nanos < 1_000_000_000 => Ok(Timestamp::from_epoch(Duration::new(seconds, nanos))),
        _ => Err(malformed("C011", "creation_time", &time.nanos.to_string(), "0 to 999999999 nanoseconds")),
    }
}
