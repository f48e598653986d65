//! The turns that a call of a volume takes (C001, C002): one call at a time is in flight for each volume, snapshot and group.

use std::collections::BTreeSet;

use super::group::GroupOrder;
use super::order::OrderCall;
use super::outcome::VolumeCall;
use super::record::{VolumeKey, VolumeSpec};
use crate::vocabulary::PluginName;

/// An object that a call affects. For each object, one call at a time is in flight (V2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Turn {
    /// A volume (C001).
    Volume(VolumeKey),
    /// The snapshot of this name with a plugin (C002).
    SnapshotNamed(PluginName, String),
    /// The snapshot with this id (C002).
    Snapshot(PluginName, String),
    /// The group of snapshots of this name, whose id is not known yet (C002).
    GroupNamed(PluginName, String),
    /// The group of snapshots with this id (C002).
    Group(PluginName, String),
}

impl VolumeCall {
    /// The turns that the call takes, all of them or none: that of its volume, and those of the objects of its order.
    #[must_use]
    pub fn turns(&self) -> BTreeSet<Turn> {
        let Some(spec) = self.spec() else { return BTreeSet::new() };
        let of_order = match self {
            Self::Order(_, _, call) => call.turns(spec),
            _ => Vec::new(),
        };
        of_order.into_iter().chain([Turn::Volume(spec.key.clone())]).collect()
    }
}

impl OrderCall {
    /// The turns that the order takes in addition to that of its volume.
    fn turns(&self, spec: &VolumeSpec) -> Vec<Turn> {
        let plugin = || spec.plugin.clone();
        let named = |group: &GroupOrder| {
            let members = group.members.iter().map(|member| Turn::Volume(member.volume.clone()));
            members.chain([Turn::GroupNamed(plugin(), group.name.clone())]).collect()
        };
        let of_group = |id: &String, snapshots: &[String]| {
            let snapshots = snapshots.iter().map(|id| Turn::Snapshot(plugin(), id.clone()));
            snapshots.chain([Turn::Group(plugin(), id.clone())]).collect()
        };
        match self {
            Self::Expand { .. } | Self::Grow(_) | Self::Modify { .. } => Vec::new(),
            Self::TakeSnapshot { name, taken, .. } => {
                let known = taken.iter().map(|id| Turn::Snapshot(plugin(), id.as_ref().to_owned()));
                known.chain([Turn::SnapshotNamed(plugin(), name.clone())]).collect()
            }
            Self::DeleteSnapshot { snapshot_id } => vec![Turn::Snapshot(plugin(), snapshot_id.clone())],
            Self::TakeGroup(group) => named(group),
            Self::DescribeGroup { group_snapshot_id, snapshot_ids }
            | Self::DeleteGroup { group_snapshot_id, snapshot_ids } => {
                of_group(group_snapshot_id, snapshot_ids)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::super::group::GroupMember;
    use super::*;
    use crate::vocabulary::{Generation, VolumeName, VolumeNamespace};

    fn spec(name: &str) -> Arc<VolumeSpec> {
        let namespace = VolumeNamespace::new("default").unwrap();
        let key = VolumeKey { namespace, name: VolumeName::new(name).unwrap() };
        let plugin = PluginName::new("zfs").unwrap();
        Arc::new(VolumeSpec {
            key,
            plugin,
            volume_id: format!("pool/{name}"),
            volume_context: BTreeMap::new(),
        })
    }

    fn turns(name: &str, call: OrderCall) -> BTreeSet<Turn> {
        VolumeCall::Order(spec(name), Generation::new(1), call).turns()
    }

    fn group(name: &str, volumes: [&str; 2]) -> OrderCall {
        let member = |name: &str| {
            let spec = spec(name);
            GroupMember { volume: spec.key.clone(), volume_id: spec.volume_id.clone() }
        };
        let members = volumes.into_iter().map(member).collect();
        OrderCall::TakeGroup(Arc::new(GroupOrder {
            name: name.to_owned(),
            members,
            parameters: BTreeMap::new(),
        }))
    }

    #[test]
    fn a_group_excludes_the_calls_of_each_of_its_volumes_and_of_its_name_c001_c002() {
        let taken = turns("a", group("weekly", ["a", "b"]));
        for name in ["a", "b"] {
            let of_volume = VolumeCall::Delete(spec(name), Generation::new(1)).turns();
            assert!(!taken.is_disjoint(&of_volume), "{name}");
        }
        assert!(taken.is_disjoint(&VolumeCall::Delete(spec("c"), Generation::new(1)).turns()));
        assert!(!taken.is_disjoint(&turns("c", group("weekly", ["c", "d"]))), "the same name");
        assert!(taken.is_disjoint(&turns("c", group("daily", ["c", "d"]))));
    }

    #[test]
    fn what_is_deleted_through_another_volume_is_known_to_be_the_same_c002() {
        let alone = |name, id: &str| turns(name, OrderCall::DeleteSnapshot { snapshot_id: id.to_owned() });
        assert!(!alone("a", "s1").is_disjoint(&alone("b", "s1")));
        assert!(alone("a", "s1").is_disjoint(&alone("b", "s2")));
        let ids = || ("g".to_owned(), vec!["s1".to_owned(), "s2".to_owned()]);
        let (group_snapshot_id, snapshot_ids) = ids();
        let described = turns("c", OrderCall::DescribeGroup { group_snapshot_id, snapshot_ids });
        let (group_snapshot_id, snapshot_ids) = ids();
        let deleted = turns("d", OrderCall::DeleteGroup { group_snapshot_id, snapshot_ids });
        assert!(!deleted.is_disjoint(&described) && !deleted.is_disjoint(&alone("a", "s2")));
    }

    #[test]
    fn a_snapshot_that_is_asked_for_by_its_name_again_is_not_deleted_by_its_id_meanwhile_c002() {
        let taken = |id: Option<&str>| {
            let (name, parameters) = ("nightly".to_owned(), BTreeMap::new());
            turns("a", OrderCall::TakeSnapshot { name, parameters, taken: id.map(Arc::from) })
        };
        let deleted = turns("b", OrderCall::DeleteSnapshot { snapshot_id: "s1".to_owned() });
        assert!(!taken(Some("s1")).is_disjoint(&deleted));
        assert!(taken(Some("s2")).is_disjoint(&deleted), "another snapshot");
        assert!(taken(None).is_disjoint(&deleted), "its id is not known yet");
        assert!(!taken(Some("s1")).is_disjoint(&taken(None)), "the same name");
    }
}
