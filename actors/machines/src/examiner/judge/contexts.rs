//! Compares ids, contexts and secrets with earlier values from the plugin and the orchestrator.

use std::collections::BTreeSet;

use super::Asked;
use super::known::Known;
use super::look::Look;
use crate::csi::Call;
use crate::examiner::request::{Map, Source};
use crate::examiner::rule::Rule;
use crate::examiner::surface::Surface;

pub(super) fn judge(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    ids(surface, known, asked, look);
    volume_context(known, asked, look);
    publish_context(surface, known, asked, look);
    nodes(surface, known, asked, look);
    snapshots(known, asked, look);
    tokens(known, asked, look);
}

fn ids(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let id = &asked.request.volume_id;
    if !surface.creates() || id.is_empty() {
        return;
    }
    let volume = known.volumes.get(id).filter(|volume| volume.name.is_some());
    let is_undo = matches!(
        asked.call,
        Call::DeleteVolume
            | Call::ControllerUnpublishVolume
            | Call::NodeUnstageVolume
            | Call::NodeUnpublishVolume
            | Call::ControllerGetVolume
    );
    let holds = volume.is_some_and(|volume| is_undo || !volume.is_deleted);
    look.check(Rule::C059, holds, || match volume {
        Some(_) => format!("volume {id} is deleted"),
        None => format!("no answer that its caller got has given the volume id {id:?}"),
    });
}

fn volume_context(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let rule = match asked.call {
        Call::ControllerPublishVolume => Rule::C073,
        Call::NodeStageVolume | Call::NodePublishVolume => Rule::C060,
        Call::ValidateVolumeCapabilities if !asked.request.volume_context.is_empty() => Rule::C060,
        _ => return,
    };
    let context = known.living(&asked.request.volume_id).and_then(|volume| volume.context.as_ref());
    if let Some(context) = context {
        let given = &asked.request.volume_context;
        look.check(rule, given == context, || {
            format!("the volume context differs: {}", differing(given, context))
        });
    }
}

fn publish_context(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    if !matches!(asked.call, Call::NodeStageVolume | Call::NodePublishVolume) {
        if asked.call == Call::ControllerUnpublishVolume {
            same_secrets(known, asked, look);
        }
        return;
    }
    if surface.has_controller && !surface.attaches() {
        let is_unset = request.publish_context.is_empty();
        look.check(Rule::C127, is_unset, || "the publish context is set".to_owned());
    }
    let volume = known.living(&request.volume_id);
    let context = volume.and_then(|volume| volume.publish_contexts.get(surface.own_node()));
    if let Some((context, _)) = context {
        let given = &request.publish_context;
        look.check(Rule::C074, given == context, || {
            format!("the publish context differs: {}", differing(given, context))
        });
    }
}

fn same_secrets(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let volume = known.volumes.get(&asked.request.volume_id);
    let publish = volume.and_then(|volume| volume.publish_contexts.get(&asked.request.node_id));
    if let Some((_, publish)) = publish {
        let is_same = publish.secrets == asked.request.secrets;
        look.check(Rule::C081, is_same, || {
            "the secrets differ from those of ControllerPublishVolume".to_owned()
        });
    }
}

/// The keys in which two maps differ.
fn differing(given: &Map, wished: &Map) -> String {
    let keys: BTreeSet<_> = given.keys().chain(wished.keys()).collect();
    let differing = keys.into_iter().filter(|key| given.get(*key) != wished.get(*key));
    let of = |key: &String| match (given.get(key), wished.get(key)) {
        (Some(_), Some(_)) => format!("{key} has another value"),
        (None, _) => format!("{key} is missing"),
        (_, None) => format!("{key} is not of the plugin"),
    };
    differing.map(of).collect::<Vec<_>>().join(", ")
}

fn nodes(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    match asked.call {
        Call::ControllerPublishVolume => {
            let node = &request.node_id;
            look.check(Rule::C071, surface.nodes.contains(node), || {
                format!("{node:?} is not a node id of this plugin ({})", surface.nodes.join(", "))
            });
            if surface.has_node && node == surface.own_node() {
                let is_known = known.node_id.is_some();
                look.check(Rule::C146, is_known, || "NodeGetInfo has never been answered".to_owned());
            }
        }
        Call::ControllerUnpublishVolume => {
            let is_named = !request.node_id.is_empty();
            look.check(Rule::C080, is_named, || "it has no node id, so it means all nodes".to_owned());
        }
        _ => {}
    }
    let on_own_node = match asked.call {
        Call::ControllerPublishVolume => request.node_id == surface.own_node(),
        Call::NodeStageVolume | Call::NodePublishVolume => true,
        _ => false,
    };
    let reach = known.living(&request.volume_id).map(|volume| &volume.topology);
    if let Some(reach) =
        reach.filter(|reach| on_own_node && !reach.is_empty() && !surface.topology.is_empty())
    {
        let is_within =
            |place: &Map| place.iter().all(|(key, value)| surface.topology.get(key) == Some(value));
        look.check(Rule::C036, reach.iter().any(is_within), || {
            format!("the volume cannot be reached from {}", surface.own_node())
        });
    }
}

fn snapshots(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    match (asked.call, &request.volume_content_source) {
        (Call::CreateVolume, Some(Source::Snapshot(id))) => {
            let size = known.snapshots.get(id).map_or(0, |snapshot| snapshot.size_bytes);
            let limit = request.capacity_range.map_or(0, |range| range.limit_bytes);
            look.check(Rule::C102, limit == 0 || limit >= size, || {
                format!("it is limited to {limit} bytes, and the snapshot has {size}")
            });
        }
        (Call::DeleteSnapshot, _) => {
            let group = known.snapshots.get(&request.snapshot_id).map_or("", |snapshot| &snapshot.group);
            look.check(Rule::C103, group.is_empty(), || format!("it belongs to the group {group}"));
        }
        (Call::DeleteVolumeGroupSnapshot | Call::GetVolumeGroupSnapshot, _) => {
            let Some(group) = known.groups.get(&request.group_snapshot_id) else { return };
            let given: BTreeSet<_> = request.snapshot_ids.iter().cloned().collect();
            let has_all = given == group.snapshots && request.snapshot_ids.len() == given.len();
            let has_secrets = group.creation.secrets == request.secrets;
            look.check(Rule::C106, has_all && has_secrets, || {
                let what = if has_all { "secrets" } else { "ids of its snapshots" };
                format!("the {what} are not those of the group")
            });
        }
        _ => {}
    }
}

fn tokens(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let token = &asked.request.starting_token;
    if !matches!(asked.call, Call::ListVolumes | Call::ListSnapshots) || token.is_empty() {
        return;
    }
    let key = (asked.call, token.clone());
    let (is_given, is_aborted) = (known.tokens.contains(&key), known.aborted_tokens.contains(&key));
    look.check(Rule::C093, is_given && !is_aborted, || {
        let problem = if is_given { "was answered with ABORTED" } else { "is not one of this list" };
        format!("the token {problem}")
    });
}
