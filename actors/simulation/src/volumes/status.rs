//! The status of a simulated volume.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::vocabulary::{AllocationId, VolumeName, VolumeNamespace};
use callboard_machines::csi;
use callboard_machines::volume::{
    ClaimStatus, Desired, Exists, GroupMember, GroupOrder, GroupStatus, OrderStatus, VolumeKey, VolumeSpec,
    VolumeStatus,
};

use super::plugin::plugin;
use super::volume::{Existence, Phase, VolumeModel};

/// The key of the volume at this place.
pub(super) fn key(place: usize) -> VolumeKey {
    VolumeKey {
        namespace: VolumeNamespace::new("n").expect("it is a name"),
        name: VolumeName::new(["v0", "v1"][place.min(1)]).expect("it is a name"),
    }
}

/// The place of the volume with this key.
pub(super) fn place_of(key: &VolumeKey) -> usize {
    usize::from(key.name.as_str() != "v0")
}

/// The allocation of this number.
pub(super) fn allocation(number: u8) -> AllocationId {
    AllocationId::new(format!("a{number}")).expect("it is an id")
}

/// The number of an allocation.
pub(super) fn number_of(id: &AllocationId) -> u8 {
    id.as_str().trim_start_matches('a').parse().unwrap_or_default()
}

/// The spec of the volume at this place; the id is the one at its plugin, `None` if it is yet to be created.
pub(super) fn spec(place: usize, id: Option<u8>) -> Arc<VolumeSpec> {
    let volume_id = id.map(|id| volume_id(place, id)).unwrap_or_default();
    let volume_context = csi::Context::new();
    Arc::new(VolumeSpec { key: key(place), plugin: plugin(), volume_id, volume_context })
}

/// The id of a spec.
pub(super) fn id_of(spec: &VolumeSpec) -> Option<u8> {
    spec.volume_id.rsplit_once('-')?.1.parse().ok()
}

/// The plugin's answer about a volume that it has created.
pub(super) fn created(place: usize, id: u8) -> Arc<csi::Volume> {
    Arc::new(csi::Volume { volume_id: volume_id(place, id), ..csi::Volume::default() })
}

/// No two volumes have the same id at their plugin.
pub(super) fn volume_id(place: usize, id: u8) -> String {
    format!("v{place}-{id}")
}

fn open_order() -> OrderStatus {
    OrderStatus {
        what: "modify it".to_owned(),
        state: "down",
        is_resting: false,
        error: None,
        snapshot: None,
        group: None,
    }
}

/// The name of the only group of snapshots.
pub(super) const GROUP: &str = "all";

fn open_group() -> OrderStatus {
    let member = |place| {
        let spec = spec(place, Some(0));
        GroupMember { volume: spec.key.clone(), volume_id: spec.volume_id.clone() }
    };
    let (name, members) = (GROUP.to_owned(), vec![member(0), member(1)]);
    let order = Arc::new(GroupOrder { name, members, parameters: BTreeMap::new() });
    let group = Some(GroupStatus { order, taken: None });
    OrderStatus { what: "take a group".to_owned(), group, ..open_order() }
}

/// The status of a volume whose actor knows this id.
pub(super) fn status(place: usize, volume: &VolumeModel, id: Option<u8>) -> VolumeStatus {
    let (exists, created) = match volume.existence {
        Some(Existence::BeingCreated) => (Exists::BeingCreated, None),
        Some(Existence::Created(id)) => (Exists::Created, Some(created(place, id))),
        Some(Existence::BeingDeleted(id)) => {
            (Exists::BeingDeleted, id.filter(|id| *id > 0).map(|id| created(place, id)))
        }
        None if id.is_some() => (Exists::Registered, None),
        None => (Exists::Absent, None),
    };
    let claims = volume.claims.iter().map(|(number, claim)| ClaimStatus {
        allocation: allocation(*number),
        usage: String::new(),
        staged_at: None,
        desired: if claim.phase == Phase::GoingDown { Desired::Released } else { Desired::Held },
        is_provisional: false,
        is_proven: claim.phase == Phase::Up,
        publish: match claim.phase {
            Phase::GoingUp => "going-up",
            Phase::Up => "up",
            Phase::GoingDown => "going-down",
        },
        path: "/t".into(),
        error: None,
    });
    let may_be_deleted = volume.child.as_ref().is_some_and(|child| child.may_be_deleted);
    let to_allow = match volume.existence {
        Some(Existence::BeingDeleted(id)) => id.filter(|_| !may_be_deleted),
        Some(Existence::BeingCreated | Existence::Created(_)) | None => None,
    };
    let ordered = volume.is_ordered.then(open_order).into_iter();
    VolumeStatus {
        abandoned: Vec::new(),
        key: key(place),
        plugin: plugin(),
        exists,
        created,
        deletion_to_allow: to_allow.map(|id| volume_id(place, id)),
        attach: "down",
        stage: if volume.is_staged { "up" } else { "down" },
        claims: claims.collect(),
        orders: ordered.chain(volume.has_group.then(open_group)).collect(),
        expanded_bytes: None,
        doing: "something".to_owned(),
        error: None,
    }
}
