//! Converts answers from the wire format to our types, or returns the rule that they break.

use std::collections::BTreeSet;

use callboard_proto::csi::v1 as wire;

use super::Readiness;
use super::check::{self, Leeway};
use crate::rpc::Fault;
use crate::vocabulary::{
    ControllerCapability, Expansion, GroupControllerCapability, Identity, NodeCapability, NodeInfo,
    PluginCapability, Topology,
};

/// The numbers of capabilities that this version does not know.
pub(super) type Unknown = BTreeSet<i32>;

/// A function that converts an enum value of the wire to a capability. The value 0, and unknown values of newer plugins, are skipped; the
/// unknown ones are added to the set (C026).
macro_rules! known {
    ($wire:path, $ours:ident { $($variant:ident),* $(,)? }) => {{
        use $wire as Wire;
        |number: i32, unknown: &mut Unknown| match Wire::try_from(number) {
            $(Ok(Wire::$variant) => Some($ours::$variant),)*
            Ok(Wire::Unknown) => None,
            Err(_) => {
                unknown.insert(number);
                None
            }
        }
    }};
}

/// The capabilities with these numbers, in order and without duplicates. Unknown numbers are left out, with a remark (C026).
fn capabilities<T: Ord>(
    kind: &'static str,
    numbers: impl Iterator<Item = i32>,
    leeway: &mut Leeway,
    known: impl Fn(i32, &mut Unknown) -> Option<T>,
) -> Vec<T> {
    let mut unknown = Unknown::new();
    let capabilities: BTreeSet<T> = numbers.filter_map(|number| known(number, &mut unknown)).collect();
    leeway.unknown(kind, &unknown);
    capabilities.into_iter().collect()
}

pub(super) fn identity(answer: wire::GetPluginInfoResponse, leeway: &mut Leeway) -> Result<Identity, Fault> {
    check::provider(&answer.name, leeway)?;
    check::length("C004", "vendor_version", &answer.vendor_version, check::STRING_BYTES_MAX)?;
    Ok(Identity {
        provider: answer.name.into(),
        version: answer.vendor_version.into(),
        manifest: check::map("manifest", answer.manifest)?,
    })
}

pub(super) type Offers = (Vec<PluginCapability>, Vec<Expansion>);

pub(super) fn plugin_capabilities(
    answer: wire::GetPluginCapabilitiesResponse,
    leeway: &mut Leeway,
) -> Result<Offers, Fault> {
    use wire::plugin_capability::{Type, service, volume_expansion};
    let types = || answer.capabilities.iter().filter_map(|capability| capability.r#type.as_ref());
    let services = types().filter_map(|one| match one {
        Type::Service(service) => Some(service.r#type),
        Type::VolumeExpansion(_) => None,
    });
    let modes = types().filter_map(|one| match one {
        Type::VolumeExpansion(expansion) => Some(expansion.r#type),
        Type::Service(_) => None,
    });
    let service = known!(
        service::Type,
        PluginCapability {
            ControllerService,
            VolumeAccessibilityConstraints,
            GroupControllerService,
            SnapshotMetadataService,
        }
    );
    let mode = known!(volume_expansion::Type, Expansion { Online, Offline });
    let offered = capabilities("service", services, leeway, service);
    Ok((offered, capabilities("volume expansion", modes, leeway, mode)))
}

pub(super) fn readiness(answer: wire::ProbeResponse, _: &mut Leeway) -> Result<Readiness, Fault> {
    Ok(match answer.ready {
        Some(false) => Readiness::NotReady,
        Some(true) | None => Readiness::Ready,
    })
}

pub(super) fn controller_capabilities(
    answer: wire::ControllerGetCapabilitiesResponse,
    leeway: &mut Leeway,
) -> Result<Vec<ControllerCapability>, Fault> {
    use wire::controller_service_capability::{Type, rpc};
    let numbers = answer.capabilities.into_iter().filter_map(|capability| {
        let Type::Rpc(rpc) = capability.r#type?;
        Some(rpc.r#type)
    });
    let known = known!(
        rpc::Type,
        ControllerCapability {
            CreateDeleteVolume,
            PublishUnpublishVolume,
            ListVolumes,
            GetCapacity,
            CreateDeleteSnapshot,
            ListSnapshots,
            CloneVolume,
            PublishReadonly,
            ExpandVolume,
            ListVolumesPublishedNodes,
            VolumeCondition,
            GetVolume,
            SingleNodeMultiWriter,
            ModifyVolume,
            GetSnapshot,
        }
    );
    Ok(capabilities("controller", numbers, leeway, known))
}

pub(super) fn group_controller_capabilities(
    answer: wire::GroupControllerGetCapabilitiesResponse,
    leeway: &mut Leeway,
) -> Result<Vec<GroupControllerCapability>, Fault> {
    use wire::group_controller_service_capability::{Type, rpc};
    let numbers = answer.capabilities.into_iter().filter_map(|capability| {
        let Type::Rpc(rpc) = capability.r#type?;
        Some(rpc.r#type)
    });
    let known = known!(rpc::Type, GroupControllerCapability { CreateDeleteGetVolumeGroupSnapshot });
    Ok(capabilities("group controller", numbers, leeway, known))
}

pub(super) fn node_capabilities(
    answer: wire::NodeGetCapabilitiesResponse,
    leeway: &mut Leeway,
) -> Result<Vec<NodeCapability>, Fault> {
    use wire::node_service_capability::{Type, rpc};
    let numbers = answer.capabilities.into_iter().filter_map(|capability| {
        let Type::Rpc(rpc) = capability.r#type?;
        Some(rpc.r#type)
    });
    let known = known!(
        rpc::Type,
        NodeCapability {
            StageUnstageVolume,
            GetVolumeStats,
            ExpandVolume,
            VolumeCondition,
            SingleNodeMultiWriter,
            VolumeMountGroup,
        }
    );
    Ok(capabilities("node", numbers, leeway, known))
}

pub(super) fn node_info(answer: wire::NodeGetInfoResponse, leeway: &mut Leeway) -> Result<NodeInfo, Fault> {
    check::filled("C006", "node_id", &answer.node_id, check::NODE_ID_BYTES_MAX)?;
    Ok(NodeInfo {
        node_id: answer.node_id,
        max_volumes: check::limit("max_volumes_per_node", answer.max_volumes_per_node, leeway)?,
        topology: answer.accessible_topology.map(topology).transpose()?.flatten(),
    })
}

/// A topology without segments is equivalent to none (C148).
fn topology(answer: wire::Topology) -> Result<Option<Topology>, Fault> {
    let segments = check::map("accessible_topology", answer.segments)?;
    check::topology(&segments)?;
    Ok((!segments.is_empty()).then_some(segments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(number: i32) -> wire::PluginCapability {
        let service = wire::plugin_capability::Service { r#type: number };
        wire::PluginCapability { r#type: Some(wire::plugin_capability::Type::Service(service)) }
    }

    fn grows(number: i32) -> wire::PluginCapability {
        let expansion = wire::plugin_capability::VolumeExpansion { r#type: number };
        wire::PluginCapability { r#type: Some(wire::plugin_capability::Type::VolumeExpansion(expansion)) }
    }

    #[test]
    fn every_number_of_the_wire_is_read_as_the_capability_of_the_same_name() {
        let of_wire = (1..=15).map(|number| {
            wire::controller_service_capability::rpc::Type::try_from(number).expect("known").as_str_name()
        });
        let capability = |number| wire::ControllerServiceCapability {
            r#type: Some(wire::controller_service_capability::Type::Rpc(
                wire::controller_service_capability::Rpc { r#type: number },
            )),
        };
        let answer =
            wire::ControllerGetCapabilitiesResponse { capabilities: (1..=15).map(capability).collect() };
        let ours = controller_capabilities(answer, &mut Leeway::default()).expect("no rule is broken");
        assert!(of_wire.eq(ours.iter().map(|c| c.as_str())));
    }

    #[test]
    fn lists_are_sorted_without_doubles_and_unknown_values_are_left_out_c026() {
        let none = wire::PluginCapability { r#type: None };
        let capabilities = vec![
            grows(2),
            service(99),
            service(4),
            none,
            service(0),
            service(1),
            grows(7),
            grows(1),
            service(1),
        ];
        let answer = wire::GetPluginCapabilitiesResponse { capabilities };
        let mut leeway = Leeway { strict: true, ..Leeway::default() };
        let (offered, expansion) = plugin_capabilities(answer, &mut leeway).expect("no rule is broken");
        assert_eq!(offered, [PluginCapability::ControllerService, PluginCapability::SnapshotMetadataService]);
        assert_eq!(expansion, [Expansion::Online, Expansion::Offline]);
        let service = "a service capability of the plugin is unknown to this version and left out: 99";
        let mode = "a volume expansion capability of the plugin is unknown to this version and left out: 7";
        assert_eq!(leeway.remarks, [service, mode]);
    }

    #[test]
    fn a_probe_that_leaves_the_matter_open_means_ready_c038() {
        let read = |ready| {
            readiness(wire::ProbeResponse { ready }, &mut Leeway::default()).expect("no rule is broken")
        };
        assert_eq!(read(None), Readiness::Ready);
        assert_eq!(read(Some(true)), Readiness::Ready);
        assert_eq!(read(Some(false)), Readiness::NotReady);
    }

    #[test]
    fn no_limit_of_volumes_is_none_and_a_negative_one_too_with_a_remark_unless_strict_c147() {
        let info = |max_volumes_per_node, leeway: &mut Leeway| {
            let answer = wire::NodeGetInfoResponse {
                node_id: "n".repeat(256),
                max_volumes_per_node,
                accessible_topology: Some(wire::Topology::default()),
            };
            node_info(answer, leeway)
        };
        let (mut lenient, mut strict) = (Leeway::default(), Leeway { strict: true, ..Leeway::default() });
        let unlimited = info(0, &mut strict).expect("no rule is broken");
        assert_eq!((unlimited.max_volumes, unlimited.topology), (None, None));
        assert_eq!(info(3, &mut strict).expect("no rule is broken").max_volumes, Some(3));
        assert_eq!(info(-1, &mut strict).expect_err("negative").rule, "C147");
        assert!(strict.remarks.is_empty());
        assert_eq!(info(-1, &mut lenient).expect("it is harmless").max_volumes, None);
        let remark = "max_volumes_per_node is -1, below zero; it counts as no limit";
        assert_eq!(lenient.remarks, [remark]);
    }

    #[test]
    fn a_node_id_has_one_to_256_bytes_c006() {
        let info = |bytes| {
            let answer = wire::NodeGetInfoResponse { node_id: "n".repeat(bytes), ..Default::default() };
            node_info(answer, &mut Leeway::default())
        };
        assert!(info(256).is_ok());
        assert_eq!(info(0).expect_err("empty").rule, "C006");
        assert_eq!(info(257).expect_err("too long").rule, "C006");
    }
}
