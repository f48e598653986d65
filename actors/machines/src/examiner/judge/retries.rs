//! The calls after an error: the same call with the same fields after a pause, its opposite, or none (table C.6).

use super::Asked;
use super::attempts::{Attempt, Attempts};
use super::known::Known;
use super::look::Look;
use super::steps::{Kind, Step};
use crate::csi::Call;
use crate::examiner::rule::Rule;
use crate::examiner::surface::Surface;
use crate::rpc::{Class, Code};

/// The shortest time that counts as a pause, in milliseconds.
const PAUSE_MIN: u64 = 2;
/// The pause from which on pauses need not grow, in milliseconds.
const PAUSE_LONG: u64 = 1000;
/// The shortest time in which a person can act, in milliseconds (C018).
const PERSON: u64 = 1000;

/// The rule that an unchanged retry after this code breaks.
const fn final_code(call: Call, code: Code) -> Option<Rule> {
    match (code, call) {
        (Code::InvalidArgument, _) => Some(Rule::C017),
        (Code::Unauthenticated, _) => Some(Rule::C020),
        (Code::AlreadyExists | Code::OutOfRange, Call::CreateVolume) => Some(Rule::C063),
        (Code::AlreadyExists, Call::ControllerPublishVolume) => Some(Rule::C077),
        (Code::AlreadyExists, Call::NodeStageVolume) => Some(Rule::C129),
        (Code::OutOfRange, Call::ControllerExpandVolume) => Some(Rule::C113),
        (Code::OutOfRange, Call::NodeExpandVolume) => Some(Rule::C153),
        (Code::FailedPrecondition, Call::NodeExpandVolume) => Some(Rule::C152),
        _ => None,
    }
}

/// A call has ended with a code: records the rules that a later call can break because of it.
pub(super) fn tried(call: Call, code: Code, look: &mut Look<'_>) {
    let rules = [
        final_code(call, code),
        (code == Code::Unimplemented).then_some(Rule::C019),
        (code == Code::PermissionDenied).then_some(Rule::C018),
        (call == Call::Probe && code == Code::FailedPrecondition).then_some(Rule::C041),
    ];
    for rule in rules.into_iter().flatten() {
        look.tried(rule);
    }
}

pub(super) fn judge(
    surface: &Surface,
    known: &Known,
    attempts: &Attempts,
    asked: Asked<'_>,
    look: &mut Look<'_>,
) {
    if attempts.is_unimplemented(asked.call) {
        look.broken(Rule::C019, "it was UNIMPLEMENTED, and capabilities have not been read since".to_owned());
    }
    let Some(before) = attempts.before(asked.call, asked.request) else { return };
    let pause = asked.at.saturating_sub(before.ended_at);
    same_fields(before, asked, look);
    if let Some(code) = before.code.filter(|_| asked.request.is_same(&before.request)) {
        if let Some(rule) = final_code(asked.call, code) {
            look.broken(rule, format!("the same request was answered with {code}"));
        }
        if code == Code::PermissionDenied && pause < PERSON {
            look.broken(Rule::C018, format!("it is repeated {pause} ms after PERMISSION_DENIED"));
        }
    }
    pauses(before, pause, asked.call, look);
    room(surface, known, before, asked, look);
}

/// A retry repeats its fields (C013), for calls that change something and whose fields can differ.
fn same_fields(before: &Attempt, asked: Asked<'_>, look: &mut Look<'_>) {
    let has_fields = matches!(
        asked.call,
        Call::CreateVolume
            | Call::CreateSnapshot
            | Call::CreateVolumeGroupSnapshot
            | Call::ControllerPublishVolume
            | Call::NodeStageVolume
            | Call::NodePublishVolume
    );
    let is_retry = before.code.is_none_or(|code| code.class() == Class::Unclear);
    if has_fields && is_retry {
        let difference = asked.request.difference(&before.request);
        look.check(Rule::C013, difference.is_none(), || {
            let code = before.code.map_or("an attempt that its caller left", Code::as_str);
            format!("{} differs from the attempt before, after {code}", difference.unwrap_or_default())
        });
    }
}

fn pauses(before: &Attempt, pause: u64, call: Call, look: &mut Look<'_>) {
    if before.code == Some(Code::Aborted) {
        let first = before.first_pause.unwrap_or_default();
        let has_shrunk = before.aborted >= 3 && pause < first && pause < PAUSE_LONG;
        look.check(Rule::C003, pause >= PAUSE_MIN && !has_shrunk, || {
            let count = before.aborted;
            format!(
                "it is repeated {pause} ms after ABORTED number {count}, and the first pause was {first} ms"
            )
        });
    }
    if call == Call::DeleteVolume && before.code == Some(Code::FailedPrecondition) {
        look.check(Rule::C065, pause >= PAUSE_MIN, || {
            format!("it is repeated {pause} ms after FAILED_PRECONDITION")
        });
    }
}

/// After `RESOURCE_EXHAUSTED` there must be room on the node first (C078).
fn room(surface: &Surface, known: &Known, before: &Attempt, asked: Asked<'_>, look: &mut Look<'_>) {
    let is_full = asked.call == Call::ControllerPublishVolume && before.code == Some(Code::ResourceExhausted);
    if !is_full || surface.max_volumes == 0 {
        return;
    }
    let node = &asked.request.node_id;
    let on_node = known.steps.all().filter(|(place, _)| place.kind == Kind::Attached && place.at == *node);
    let count = on_node.filter(|(_, step)| Step::is_up(step)).count() as u64;
    look.check(Rule::C078, count < surface.max_volumes, || {
        format!("node {node} has {count} volumes, of at most {}", surface.max_volumes)
    });
}
