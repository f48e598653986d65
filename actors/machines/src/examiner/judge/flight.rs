//! One call at a time for each volume, snapshot and group (C001, C002), and no call before the plugin is ready (C039, C041).

use std::collections::BTreeMap;

use super::known::Readiness;
use super::look::Look;
use super::{Asked, Flight};
use crate::csi::{Call, Service};
use crate::examiner::request::Request;
use crate::examiner::rule::Rule;

pub(super) fn judge(
    flights: &BTreeMap<u64, Flight>,
    readiness: Readiness,
    asked: Asked<'_>,
    look: &mut Look<'_>,
) {
    if let Some((rule, subject)) = subject_of(asked.call, asked.request) {
        let is_same =
            |flight: &Flight| subject_of(flight.call, &flight.request) == Some((rule, subject.clone()));
        let other = flights.iter().find(|(_, flight)| is_same(flight));
        look.check(rule, other.is_none(), || {
            let (number, call) = other.map_or((0, ""), |(number, flight)| (*number, flight.call.as_str()));
            format!("call {number} ({call}) on {subject} was in flight")
        });
    }
    if asked.call.service() == Service::Identity {
        return;
    }
    match readiness {
        Readiness::NotReady => look.broken(Rule::C039, "the last Probe said that it is not ready".to_owned()),
        Readiness::Failed => {
            look.broken(Rule::C041, "the last Probe failed with FAILED_PRECONDITION".to_owned());
        }
        Readiness::Unknown | Readiness::Ready => {}
    }
}

/// The object of a call. One call may be in flight for it.
fn subject_of(call: Call, request: &Request) -> Option<(Rule, String)> {
    let (rule, subject) = match call {
        Call::CreateVolume => (Rule::C001, format!("the volume named {}", request.name)),
        Call::CreateSnapshot => (Rule::C002, format!("the snapshot named {}", request.name)),
        Call::CreateVolumeGroupSnapshot => (Rule::C002, format!("the group named {}", request.name)),
        Call::DeleteSnapshot | Call::GetSnapshot => (Rule::C002, format!("snapshot {}", request.snapshot_id)),
        Call::DeleteVolumeGroupSnapshot | Call::GetVolumeGroupSnapshot => {
            (Rule::C002, format!("group {}", request.group_snapshot_id))
        }
        _ if !request.volume_id.is_empty() => (Rule::C001, format!("volume {}", request.volume_id)),
        _ => return None,
    };
    Some((rule, subject))
}
