//! Finds, at the end of an exam, steps and objects that were never undone.

use super::known::Known;
use super::look::Tally;
use super::steps::{Doubt, Kind};
use crate::csi::Call;
use crate::examiner::report::Open;
use crate::examiner::rule::Rule;

/// Everything that is still up, or may be.
pub(super) fn open(known: &Known) -> Vec<Open> {
    let mut open: Vec<Open> = Vec::new();
    for (place, step) in known.steps.all() {
        let what = match place.kind {
            Kind::Attached => "published to node",
            Kind::Staged => "staged at",
            Kind::Published => "published at",
        };
        let what = format!("{what} {}: {}", place.at, step.state());
        open.push(Open { of: place.volume.clone(), what, number: step.number });
    }
    for (id, volume) in known.volumes.iter().filter(|(_, volume)| volume.name.is_some() && !volume.is_deleted)
    {
        open.push(Open { of: id.clone(), what: "not deleted".to_owned(), number: 0 });
        if let Some(number) = volume.expansion_due {
            open.push(Open { of: id.clone(), what: "not expanded on its node".to_owned(), number });
        }
    }
    for (name, number) in &known.unclear_creations {
        let what = "possibly created: neither repeated nor deleted".to_owned();
        open.push(Open { of: name.clone(), what, number: *number });
    }
    for (id, snapshot) in known.snapshots.iter().filter(|(_, snapshot)| !snapshot.is_ready) {
        open.push(Open {
            of: id.clone(),
            what: format!("not ready{}", in_group(&snapshot.group)),
            number: 0,
        });
    }
    open
}

fn in_group(group: &str) -> String {
    if group.is_empty() { String::new() } else { format!(", of group {group}") }
}

/// Everything should be undone by now: each remaining step or object breaks a rule.
pub(super) fn judge(known: &Known, tally: &mut Tally) {
    for (place, step) in known.steps.all() {
        let (rule, call) = match place.kind {
            Kind::Attached => (Rule::C062, Call::ControllerPublishVolume),
            Kind::Staged => (Rule::C130, Call::NodeStageVolume),
            Kind::Published => (Rule::C141, Call::NodePublishVolume),
        };
        let what = format!("at the end {} of volume {} is {}", place.at, place.volume, step.state());
        let is_settled = step.undo_called;
        tally.look(0, step.number, call).check(rule, false, || what.clone());
        if matches!(step.doubt, Some(Doubt::Left | Doubt::Code(_))) && !is_settled {
            tally.look(0, step.number, call).check(Rule::C014, false, || what);
        }
    }
    for (id, volume) in known.volumes.iter().filter(|(_, volume)| volume.name.is_some()) {
        let what = || format!("at the end volume {id} is not deleted");
        tally.look(0, 0, Call::CreateVolume).check(Rule::C062, volume.is_deleted, what);
        if let (Some(number), false) = (volume.expansion_due, volume.is_deleted) {
            let what = || format!("at the end volume {id} is not expanded on its node");
            tally.look(0, number, Call::ControllerExpandVolume).check(Rule::C111, false, what);
        }
    }
    for (name, number) in &known.unclear_creations {
        let what = || format!("at the end the volume named {name} may have been created");
        tally.look(0, *number, Call::CreateVolume).check(Rule::C014, false, what);
    }
}
