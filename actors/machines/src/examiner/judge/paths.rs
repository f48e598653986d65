//! Staging paths and targets: which side makes them, and the volume that they belong to.

use std::path::Path;

use super::Asked;
use super::known::Known;
use super::look::Look;
use super::steps::Kind;
use crate::csi::Call;
use crate::examiner::rule::Rule;
use crate::examiner::surface::Surface;

pub(super) fn judge(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    match asked.call {
        Call::NodeStageVolume => staging(known, asked, look),
        Call::NodeUnstageVolume => unstaging(known, asked, look),
        Call::NodePublishVolume => {
            staging_of_publish(surface, known, asked, look);
            target(known, asked, look);
        }
        Call::NodeGetVolumeStats if surface.stages() => {
            let is_sent = !asked.request.staging_target_path.is_empty();
            look.check(Rule::C144, is_sent, || "the staging path is missing".to_owned());
        }
        _ => {}
    }
}

fn staging(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    let path = &request.staging_target_path;
    let other = known.steps.of(&request.volume_id, Kind::Staged).find(|(at, _)| at != path);
    let problem = if !Path::new(path).is_absolute() {
        Some(format!("{path:?} is not absolute"))
    } else if request.seen.staging_is_directory == Some(false) {
        Some(format!("{path:?} is not a directory, as the examiner sees it"))
    } else {
        other.map(|(at, step)| format!("its staging at {at} is {}", step.state()))
    };
    look.check(Rule::C125, problem.is_none(), || problem.unwrap_or_default());
}

/// Unstage names the path that was staged.
fn unstaging(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    let path = &request.staging_target_path;
    let is_staged = known.steps.get(&request.volume_id, Kind::Staged, path).is_some();
    if let Some((at, step)) = known.steps.of(&request.volume_id, Kind::Staged).next() {
        look.check(Rule::C130, is_staged, || {
            format!("its staging at {at} is {}, not at {path:?}", step.state())
        });
    }
}

fn staging_of_publish(surface: &Surface, known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    if !surface.has_node {
        return;
    }
    let request = asked.request;
    let path = &request.staging_target_path;
    let staged = known.steps.of(&request.volume_id, Kind::Staged).next().map(|(at, _)| at);
    let problem = match (surface.stages(), path.is_empty(), staged) {
        (true, true, _) => Some("the staging path is missing".to_owned()),
        (true, false, Some(at)) if at != path => {
            Some(format!("the volume is staged at {at}, not at {path:?}"))
        }
        (false, false, _) => Some("there is a staging path, and the plugin does not stage".to_owned()),
        (true, false, _) | (false, true, _) => None,
    };
    look.check(Rule::C135, problem.is_none(), || problem.unwrap_or_default());
}

fn target(known: &Known, asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    let path = &request.target_path;
    let is_first = !known.targets.contains(path);
    let other = known.steps.all().find(|(place, _)| {
        place.kind == Kind::Published && place.at == *path && place.volume != request.volume_id
    });
    let problem = if !Path::new(path).is_absolute() {
        Some(format!("{path:?} is not absolute"))
    } else if let Some((place, _)) = other {
        Some(format!("{path:?} is a target of volume {}", place.volume))
    } else if request.seen.target_has_parent == Some(false) {
        Some(format!("the parent of {path:?} is not a directory, as the examiner sees it"))
    } else if is_first && request.seen.target_exists == Some(true) {
        Some(format!("there is something at {path:?} before it was published"))
    } else {
        None
    };
    look.check(Rule::C136, problem.is_none(), || problem.unwrap_or_default());
}
