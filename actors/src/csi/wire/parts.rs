//! The parts that several messages share.

use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use wire::volume_capability::{self as usage, access_mode::Mode};

use super::field::{At, Field, message, required_part};
use crate::csi::rules::{fault, malformed};
use crate::csi::{
    AccessMode, AccessType, CapacityRange, MountFlags, MountVolume, TopologyRequirement, Volume,
    VolumeCapability, VolumeCondition, VolumeContentSource,
};
use crate::rpc::{Fault, Problem};
use crate::vocabulary::{Timestamp, Topology};

message!(CapacityRange = wire::CapacityRange { required_bytes: "C052", limit_bytes: "C052" });

message!(TopologyRequirement = wire::TopologyRequirement { requisite, preferred });

message!(
    Volume = wire::Volume {
        capacity_bytes: "C052",
        volume_id,
        volume_context,
        content_source,
        accessible_topology,
    }
);

message!(VolumeCondition = wire::VolumeCondition { abnormal, message });

required_part! {
    CapacityRange = wire::CapacityRange,
    Volume = wire::Volume,
    VolumeCapability = wire::VolumeCapability,
}

impl Field<wire::Topology> for Topology {
    fn put(&self) -> wire::Topology {
        wire::Topology { segments: self.put() }
    }

    fn take(topology: wire::Topology, at: At) -> Result<Self, Fault> {
        Self::take(topology.segments, at)
    }
}

impl Field<wire::VolumeCapability> for VolumeCapability {
    fn put(&self) -> wire::VolumeCapability {
        let access_type = match &self.access_type {
            AccessType::Block => usage::AccessType::Block(usage::BlockVolume {}),
            AccessType::Mount(mount) => usage::AccessType::Mount(usage::MountVolume {
                fs_type: mount.fs_type.clone(),
                mount_flags: mount.mount_flags.expose().to_vec(),
                volume_mount_group: mount.volume_mount_group.clone(),
            }),
        };
        let mode = mode(self.access_mode).into();
        wire::VolumeCapability {
            access_mode: Some(usage::AccessMode { mode }),
            access_type: Some(access_type),
        }
    }

    fn take(capability: wire::VolumeCapability, _: At) -> Result<Self, Fault> {
        let missing = |field| fault("C058", field, Problem::Empty);
        let access_type = match capability.access_type.ok_or(missing("access_type"))? {
            usage::AccessType::Block(usage::BlockVolume {}) => AccessType::Block,
            usage::AccessType::Mount(mount) => AccessType::Mount(MountVolume {
                fs_type: mount.fs_type,
                mount_flags: MountFlags::new(mount.mount_flags),
                volume_mount_group: mount.volume_mount_group,
            }),
        };
        let usage::AccessMode { mode } = capability.access_mode.ok_or(missing("access_mode"))?;
        Ok(Self { access_type, access_mode: mode_from(mode)? })
    }
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

impl Field<wire::VolumeContentSource> for VolumeContentSource {
    fn put(&self) -> wire::VolumeContentSource {
        use wire::volume_content_source::{SnapshotSource, Type, VolumeSource};
        let kind = match self.clone() {
            Self::Snapshot(snapshot_id) => Type::Snapshot(SnapshotSource { snapshot_id }),
            Self::Volume(volume_id) => Type::Volume(VolumeSource { volume_id }),
        };
        wire::VolumeContentSource { r#type: Some(kind) }
    }

    fn take(source: wire::VolumeContentSource, _: At) -> Result<Self, Fault> {
        use wire::volume_content_source::Type;
        Ok(match source.r#type.ok_or(fault("C057", "volume_content_source", Problem::Empty))? {
            Type::Snapshot(snapshot) => Self::Snapshot(snapshot.snapshot_id),
            Type::Volume(volume) => Self::Volume(volume.volume_id),
        })
    }
}

impl Field<prost_types::Timestamp> for Timestamp {
    fn put(&self) -> prost_types::Timestamp {
        let since = self.since_epoch();
        prost_types::Timestamp { seconds: since.as_secs().put(), nanos: since.subsec_nanos().put() }
    }

    fn take(time: prost_types::Timestamp, at: At) -> Result<Self, Fault> {
        let seconds = Field::take(time.seconds, at)?;
        match u32::try_from(time.nanos) {
            Ok(nanos) if nanos < 1_000_000_000 => Ok(Self::from_epoch(Duration::new(seconds, nanos))),
            _ => Err(malformed(at.rule, at.field, &time.nanos.to_string(), "0 to 999999999 nanoseconds")),
        }
    }
}
