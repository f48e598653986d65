//! Calls and fields only with the capability that they need, and with the secrets that they need.

use super::Asked;
use super::look::Look;
use crate::csi::{Call, Service};
use crate::examiner::request::{AccessMode, Source};
use crate::examiner::rule::Rule;
use crate::examiner::surface::Surface;
use crate::vocabulary::{ControllerCapability, NodeCapability, PluginCapability};

pub(super) fn judge(surface: &Surface, asked: Asked<'_>, look: &mut Look<'_>) {
    services(surface, asked.call, look);
    calls(surface, asked.call, look);
    fields(surface, asked, look);
    modes(surface, asked, look);
    if let Some(needed) = surface.needs_secrets.get(&asked.call) {
        let given = &asked.request.secrets.keys;
        let missing: Vec<_> = needed.iter().filter(|key| !given.contains(key)).cloned().collect();
        look.check(Rule::C024, missing.is_empty(), || {
            format!("the secret {} is missing", missing.join(", "))
        });
    }
}

/// Calls of a service that only some plugins have.
fn services(surface: &Surface, call: Call, look: &mut Look<'_>) {
    let (rule, needed) = match call.service() {
        Service::Controller => (Rule::C033, PluginCapability::ControllerService),
        Service::GroupController => (Rule::C034, PluginCapability::GroupControllerService),
        _ => return,
    };
    look.check(rule, surface.offers(needed), || format!("the plugin does not offer {needed}"));
}

/// Calls that only some plugins have.
fn calls(surface: &Surface, call: Call, look: &mut Look<'_>) {
    use ControllerCapability as Controller;
    let controller = match call {
        Call::CreateVolume | Call::DeleteVolume => Controller::CreateDeleteVolume,
        Call::ControllerPublishVolume | Call::ControllerUnpublishVolume => Controller::PublishUnpublishVolume,
        Call::ListVolumes => Controller::ListVolumes,
        Call::GetCapacity => Controller::GetCapacity,
        Call::CreateSnapshot | Call::DeleteSnapshot => Controller::CreateDeleteSnapshot,
        Call::ListSnapshots => Controller::ListSnapshots,
        Call::GetSnapshot => Controller::GetSnapshot,
        Call::ControllerExpandVolume => Controller::ExpandVolume,
        Call::ControllerGetVolume => Controller::GetVolume,
        Call::ControllerModifyVolume => Controller::ModifyVolume,
        _ => return of_node(surface, call, look),
    };
    let rule = if controller == Controller::PublishUnpublishVolume { Rule::C070 } else { Rule::Gate };
    look.check(rule, surface.controls(controller), || format!("the controller does not claim {controller}"));
}

fn of_node(surface: &Surface, call: Call, look: &mut Look<'_>) {
    let (rule, needed): (_, &[_]) = match call {
        Call::NodeStageVolume | Call::NodeUnstageVolume => {
            (Rule::C120, &[NodeCapability::StageUnstageVolume])
        }
        Call::NodeGetVolumeStats => {
            (Rule::C144, &[NodeCapability::GetVolumeStats, NodeCapability::VolumeCondition])
        }
        Call::NodeExpandVolume => (Rule::Gate, &[NodeCapability::ExpandVolume]),
        _ => return,
    };
    let is_claimed = needed.iter().any(|capability| surface.node.contains(capability));
    look.check(rule, is_claimed, || format!("the node does not claim {}", needed[0]));
}

/// Fields that only some plugins understand.
fn fields(surface: &Surface, asked: Asked<'_>, look: &mut Look<'_>) {
    use ControllerCapability as Controller;
    let request = asked.request;
    let lacks = |capability: Controller| move || format!("the controller does not claim {capability}");
    let is_placed = surface.offers(PluginCapability::VolumeAccessibilityConstraints);
    let constraints = || "the plugin does not offer VOLUME_ACCESSIBILITY_CONSTRAINTS".to_owned();
    if request.accessibility_requirements.is_some() {
        look.check(Rule::C053, is_placed, constraints);
    }
    if request.accessible_topology.is_some() {
        look.check(Rule::C097, is_placed, constraints);
    }
    if asked.call == Call::CreateVolume && !request.mutable_parameters.is_empty() {
        look.check(Rule::C056, surface.controls(Controller::ModifyVolume), lacks(Controller::ModifyVolume));
    }
    match &request.volume_content_source {
        Some(Source::Volume(_)) => {
            look.check(Rule::C057, surface.controls(Controller::CloneVolume), lacks(Controller::CloneVolume));
        }
        Some(Source::Snapshot(_)) => {
            let needed = Controller::CreateDeleteSnapshot;
            look.check(Rule::C057, surface.controls(needed), lacks(needed));
        }
        Some(Source::Missing) => look.check(Rule::C057, false, || "the source is neither".to_owned()),
        None => {}
    }
    if asked.call == Call::ControllerPublishVolume && request.readonly {
        let needed = Controller::PublishReadonly;
        look.check(Rule::C072, surface.controls(needed), lacks(needed));
    }
}

/// Access modes and mount groups that only some plugins understand.
fn modes(surface: &Surface, asked: Asked<'_>, look: &mut Look<'_>) {
    let knows_modes = match asked.call.service() {
        Service::Node => surface.node.contains(&NodeCapability::SingleNodeMultiWriter),
        _ => surface.controls(ControllerCapability::SingleNodeMultiWriter),
    };
    for capability in asked.request.capabilities() {
        if knows_modes {
            let is_old = capability.access_mode() == AccessMode::SINGLE_NODE_WRITER;
            look.check(Rule::C154, !is_old, || "the mode is SINGLE_NODE_WRITER".to_owned());
        }
        if !capability.mount_group.is_empty() && asked.call.service() == Service::Node {
            let is_claimed = surface.node.contains(&NodeCapability::VolumeMountGroup);
            look.check(Rule::C155, is_claimed, || "the node does not claim VOLUME_MOUNT_GROUP".to_owned());
        }
    }
}
