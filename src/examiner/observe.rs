//! Converts requests and answers for the judge. Only keys, sizes and digests of secrets and mount flags leave this file (C025).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use callboard_actors::examiner::{
    Answer, Capability, CapacityRange, Map, Request, SecretDigests, Source, TopologyWish, Withheld,
};
use callboard_proto::csi::v1 as wire;
use wire::volume_capability::AccessType;
use wire::volume_content_source::Type;

/// Makes the digests of one run: their key is random and never stored.
#[derive(Debug, Default)]
pub(super) struct Digests(RandomState);

impl Digests {
    fn withheld(&self, mut texts: Vec<String>) -> Withheld {
        texts.sort_unstable();
        let bytes = texts.iter().map(String::len).sum();
        Withheld { count: texts.len(), bytes, digest: Some(self.0.hash_one(&texts)) }
    }
}

/// A request of the wire.
pub(super) trait Observed {
    /// The request as the judge receives it.
    fn observed(&self, digests: &Digests) -> Request;
}

/// A field of a request.
trait Seen<T> {
    fn seen(self, digests: &Digests) -> T;
}

macro_rules! observed {
    ($($message:ident { $($field:ident),* })*) => {
        $(impl Observed for wire::$message {
            #[allow(unused_variables, reason = "some requests have no fields")]
            #[allow(clippy::needless_update, reason = "and others have all that are judged")]
            fn observed(&self, digests: &Digests) -> Request {
                // Without `..`, so that a field that is added to the message must also be added here.
                let Self { $($field),* } = self.clone();
                Request { $($field: $field.seen(digests),)* ..Request::default() }
            }
        })*
    };
}

observed! {
    GetPluginInfoRequest {}
    GetPluginCapabilitiesRequest {}
    ProbeRequest {}
    CreateVolumeRequest {
        name, capacity_range, volume_capabilities, parameters, secrets, volume_content_source, accessibility_requirements,
        mutable_parameters
    }
    DeleteVolumeRequest { volume_id, secrets }
    ControllerPublishVolumeRequest { volume_id, node_id, volume_capability, readonly, secrets, volume_context }
    ControllerUnpublishVolumeRequest { volume_id, node_id, secrets }
    ValidateVolumeCapabilitiesRequest {
        volume_id, volume_context, volume_capabilities, parameters, secrets, mutable_parameters
    }
    ListVolumesRequest { max_entries, starting_token }
    GetCapacityRequest { volume_capabilities, parameters, accessible_topology }
    ControllerGetCapabilitiesRequest {}
    CreateSnapshotRequest { source_volume_id, name, secrets, parameters }
    DeleteSnapshotRequest { snapshot_id, secrets }
    ListSnapshotsRequest { max_entries, starting_token, source_volume_id, snapshot_id, secrets }
    GetSnapshotRequest { snapshot_id, secrets }
    ControllerExpandVolumeRequest { volume_id, capacity_range, secrets, volume_capability }
    ControllerGetVolumeRequest { volume_id }
    ControllerModifyVolumeRequest { volume_id, secrets, mutable_parameters }
    GroupControllerGetCapabilitiesRequest {}
    CreateVolumeGroupSnapshotRequest { name, source_volume_ids, secrets, parameters }
    DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets }
    GetVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets }
    NodeStageVolumeRequest { volume_id, publish_context, staging_target_path, volume_capability, secrets, volume_context }
    NodeUnstageVolumeRequest { volume_id, staging_target_path }
    NodePublishVolumeRequest {
        volume_id, publish_context, staging_target_path, target_path, volume_capability, readonly, secrets, volume_context
    }
    NodeUnpublishVolumeRequest { volume_id, target_path }
    NodeGetVolumeStatsRequest { volume_id, volume_path, staging_target_path }
    NodeExpandVolumeRequest { volume_id, volume_path, capacity_range, staging_target_path, volume_capability, secrets }
    NodeGetCapabilitiesRequest {}
    NodeGetInfoRequest {}
}

macro_rules! as_it_is {
    ($($type:ty),*) => {
        $(impl Seen<$type> for $type {
            fn seen(self, _: &Digests) -> $type {
                self
            }
        })*
    };
}

as_it_is!(String, Vec<String>, bool, i32);

impl Seen<Map> for HashMap<String, String> {
    fn seen(self, _: &Digests) -> Map {
        self.into_iter().collect()
    }
}

impl Seen<SecretDigests> for HashMap<String, String> {
    fn seen(self, digests: &Digests) -> SecretDigests {
        let mut keys: Vec<_> = self.keys().cloned().collect();
        keys.sort_unstable();
        // The key, a separator byte that no text contains, and the value.
        let entries = self.iter().map(|(key, value)| format!("{key}\0{value}")).collect();
        let values = digests.withheld(entries);
        let bytes = values.bytes - values.count;
        SecretDigests { keys, values: Withheld { bytes, ..values } }
    }
}

impl<T, U: Seen<T>> Seen<Option<T>> for Option<U> {
    fn seen(self, digests: &Digests) -> Option<T> {
        self.map(|value| value.seen(digests))
    }
}

impl Seen<Vec<Capability>> for Vec<wire::VolumeCapability> {
    fn seen(self, digests: &Digests) -> Vec<Capability> {
        self.into_iter().map(|capability| capability.seen(digests)).collect()
    }
}

impl Seen<Capability> for wire::VolumeCapability {
    fn seen(self, digests: &Digests) -> Capability {
        let mode = self.access_mode.map_or(0, |mode| mode.mode);
        match self.access_type {
            Some(AccessType::Mount(mount)) => Capability {
                is_block: Some(false),
                fs_type: mount.fs_type,
                mount_flags: digests.withheld(mount.mount_flags),
                mount_group: mount.volume_mount_group,
                mode,
            },
            Some(AccessType::Block(_)) => Capability { is_block: Some(true), mode, ..Capability::default() },
            None => Capability { mode, ..Capability::default() },
        }
    }
}

impl Seen<CapacityRange> for wire::CapacityRange {
    fn seen(self, _: &Digests) -> CapacityRange {
        CapacityRange { required_bytes: self.required_bytes, limit_bytes: self.limit_bytes }
    }
}

impl Seen<Source> for wire::VolumeContentSource {
    fn seen(self, _: &Digests) -> Source {
        match self.r#type {
            Some(Type::Snapshot(source)) => Source::Snapshot(source.snapshot_id),
            Some(Type::Volume(source)) => Source::Volume(source.volume_id),
            None => Source::Missing,
        }
    }
}

impl Seen<Map> for wire::Topology {
    fn seen(self, digests: &Digests) -> Map {
        self.segments.seen(digests)
    }
}

impl Seen<TopologyWish> for wire::TopologyRequirement {
    fn seen(self, _: &Digests) -> TopologyWish {
        TopologyWish { requisite: places(self.requisite), preferred: places(self.preferred) }
    }
}

fn places(topologies: Vec<wire::Topology>) -> Vec<Map> {
    topologies.into_iter().map(|topology| topology.segments.into_iter().collect()).collect()
}

/// An answer of the wire.
pub(super) trait Told {
    /// The answer as the judge receives it. Most answers have no content that later calls depend on.
    fn told(&self) -> Answer {
        Answer::default()
    }
}

macro_rules! tells_nothing {
    ($($message:ident)*) => {
        $(impl Told for wire::$message {})*
    };
}

tells_nothing! {
    GetPluginInfoResponse GetPluginCapabilitiesResponse DeleteVolumeResponse ControllerUnpublishVolumeResponse
    ValidateVolumeCapabilitiesResponse GetCapacityResponse ControllerGetCapabilitiesResponse DeleteSnapshotResponse
    ControllerGetVolumeResponse ControllerModifyVolumeResponse GroupControllerGetCapabilitiesResponse
    DeleteVolumeGroupSnapshotResponse NodeStageVolumeResponse NodeUnstageVolumeResponse NodePublishVolumeResponse
    NodeUnpublishVolumeResponse NodeGetVolumeStatsResponse NodeExpandVolumeResponse NodeGetCapabilitiesResponse
}

impl Told for wire::ProbeResponse {
    fn told(&self) -> Answer {
        Answer { ready: self.ready, ..Answer::default() }
    }
}

impl Told for wire::CreateVolumeResponse {
    fn told(&self) -> Answer {
        let volume = self.volume.clone().unwrap_or_default();
        Answer {
            volume_id: volume.volume_id,
            volume_context: volume.volume_context.into_iter().collect(),
            accessible_topology: places(volume.accessible_topology),
            ..Answer::default()
        }
    }
}

impl Told for wire::ControllerPublishVolumeResponse {
    fn told(&self) -> Answer {
        Answer { publish_context: self.publish_context.clone().into_iter().collect(), ..Answer::default() }
    }
}

impl Told for wire::ControllerExpandVolumeResponse {
    fn told(&self) -> Answer {
        Answer { node_expansion_required: self.node_expansion_required, ..Answer::default() }
    }
}

impl Told for wire::ListVolumesResponse {
    fn told(&self) -> Answer {
        Answer { next_token: self.next_token.clone(), ..Answer::default() }
    }
}

impl Told for wire::ListSnapshotsResponse {
    fn told(&self) -> Answer {
        Answer { next_token: self.next_token.clone(), ..Answer::default() }
    }
}

fn snapshot(snapshot: Option<&wire::Snapshot>) -> Answer {
    let snapshot = snapshot.cloned().unwrap_or_default();
    Answer {
        snapshot_id: snapshot.snapshot_id,
        size_bytes: snapshot.size_bytes,
        group_snapshot_id: snapshot.group_snapshot_id,
        ready: Some(snapshot.ready_to_use),
        ..Answer::default()
    }
}

impl Told for wire::CreateSnapshotResponse {
    fn told(&self) -> Answer {
        snapshot(self.snapshot.as_ref())
    }
}

impl Told for wire::GetSnapshotResponse {
    fn told(&self) -> Answer {
        snapshot(self.snapshot.as_ref())
    }
}

fn group(group: Option<&wire::VolumeGroupSnapshot>) -> Answer {
    let group = group.cloned().unwrap_or_default();
    Answer {
        group_snapshot_id: group.group_snapshot_id,
        snapshot_ids: group.snapshots.into_iter().map(|snapshot| snapshot.snapshot_id).collect(),
        ready: Some(group.ready_to_use),
        ..Answer::default()
    }
}

impl Told for wire::CreateVolumeGroupSnapshotResponse {
    fn told(&self) -> Answer {
        group(self.group_snapshot.as_ref())
    }
}

impl Told for wire::GetVolumeGroupSnapshotResponse {
    fn told(&self) -> Answer {
        group(self.group_snapshot.as_ref())
    }
}

impl Told for wire::NodeGetInfoResponse {
    fn told(&self) -> Answer {
        Answer { node_id: self.node_id.clone(), ..Answer::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_mount_flags_are_withheld_and_can_be_compared_c025() {
        let digests = Digests::default();
        let request = |secret: &str, flag: &str| {
            let mount = wire::volume_capability::MountVolume {
                mount_flags: vec![flag.to_owned()],
                ..wire::volume_capability::MountVolume::default()
            };
            let capability = wire::VolumeCapability {
                access_type: Some(AccessType::Mount(mount)),
                ..wire::VolumeCapability::default()
            };
            let request = wire::NodeStageVolumeRequest {
                secrets: [("token".to_owned(), secret.to_owned())].into(),
                volume_capability: Some(capability),
                ..wire::NodeStageVolumeRequest::default()
            };
            request.observed(&digests)
        };
        let first = request("canary-1", "password=canary-2");
        assert!(!format!("{first:?}").contains("canary"), "{first:?}");
        assert_eq!((first.secrets.keys.clone(), first.secrets.values.bytes), (vec!["token".to_owned()], 13));
        assert!(first.is_same(&request("canary-1", "password=canary-2")));
        assert_ne!(first.secrets, request("canary-3", "password=canary-2").secrets);
        assert_eq!(first.difference(&request("canary-1", "password=canary-4")), Some("volume_capability"));
    }
}
