//! Describes the plugin's services and capabilities for the judge.

use std::collections::BTreeMap;

use callboard_actors::examiner::Surface;
use callboard_actors::vocabulary::{ControllerCapability, Expansion, NodeCapability, PluginCapability, Role};

use super::arguments::ExamArgs;
use crate::hostpath::Plugin;

/// The surface of a plugin with volumes, as its services answer it.
pub(super) fn surface(plugin: &Plugin, exam: &ExamArgs) -> Surface {
    let args = &plugin.args;
    let controller = plugin.controller_claims.iter().map(|claim| claim.as_str_name());
    let node = plugin.node_claims.iter().map(|claim| claim.as_str_name());
    let offers = [
        (PluginCapability::ControllerService, !args.without_controller),
        (PluginCapability::GroupControllerService, plugin.offers_groups()),
        (PluginCapability::VolumeAccessibilityConstraints, !args.topology.is_empty()),
    ];
    let mut needs_secrets = BTreeMap::<_, Vec<_>>::new();
    for (call, key) in &exam.needs_secret {
        needs_secrets.entry(*call).or_default().push(key.clone());
    }
    Surface {
        has_controller: args.role != Role::Node,
        has_node: args.role != Role::Controller,
        plugin: offers.into_iter().filter(|(_, is_offered)| *is_offered).map(|(offer, _)| offer).collect(),
        expansion: vec![if args.offline_expansion { Expansion::Offline } else { Expansion::Online }],
        controller: known(controller, ControllerCapability::ALL, ControllerCapability::as_str),
        node: known(node, NodeCapability::ALL, NodeCapability::as_str),
        nodes: std::iter::once(args.node_id()).chain(args.other_node.iter().cloned()).collect(),
        max_volumes: args.max_volumes.try_into().unwrap_or_default(),
        topology: args.topology().unwrap_or_default(),
        needs_secrets,
    }
}

/// The capabilities of these names.
fn known<T: Copy>(
    names: impl Iterator<Item = &'static str>,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Vec<T> {
    names.filter_map(|name| all.iter().copied().find(|capability| name_of(*capability) == name)).collect()
}
