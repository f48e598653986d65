//! Formats the reports of a driver about its tasks and their configuration as lines of a script.

use callboard_actors::driver::{GapReason, TaskEventItem};
use callboard_actors::hclspec::{Spec, Value};

/// An item that a handler of a task receives.
pub(super) fn event(item: &TaskEventItem) -> String {
    match item {
        TaskEventItem::Event { event, position } => match position {
            Some(position) => format!("{} ({}:{})", event.message, position.stream, position.sequence),
            None => event.message.clone(),
        },
        TaskEventItem::Gap { missed, reason } => {
            let missed = missed.map_or("some".to_owned(), |missed| missed.to_string());
            let why = match reason {
                GapReason::HandlerTooSlow => "the handler was too slow",
                GapReason::NotAnnounced => "the task was not announced",
                GapReason::Interrupted => "the stream was interrupted",
                GapReason::NewStream => "the driver began a new stream",
                GapReason::Forgotten => "the driver has forgotten them",
            };
            format!("{missed} are missing: {why}")
        }
    }
}

/// The schema of a task's configuration, one line for each entry.
pub(super) fn schema(spec: &Spec) -> String {
    match spec {
        Spec::Object(fields) => fields.values().map(schema).collect::<Vec<_>>().join("\n"),
        Spec::Array(values) => values.iter().map(schema).collect::<Vec<_>>().join("\n"),
        Spec::Attribute { name, kind, is_required } => format!("{name}: {kind}{}", needed(*is_required)),
        Spec::BlockAttributes { name, element, is_required } => {
            format!("{name}: a block of {element}{}", needed(*is_required))
        }
        Spec::Block { name, is_required, nested } => {
            format!("{name}: a block{}\n{}", needed(*is_required), schema(nested))
        }
        Spec::BlockList { name, nested, .. }
        | Spec::BlockSet { name, nested, .. }
        | Spec::BlockMap { name, nested, .. } => format!("{name}: blocks\n{}", schema(nested)),
        Spec::Default { primary, fallback } => format!("{}, else {}", schema(primary), schema(fallback)),
        Spec::Literal(value) => self::value(value),
    }
}

const fn needed(is_required: bool) -> &'static str {
    if is_required { ", required" } else { "" }
}

/// A value that a driver receives.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::List(values) => {
            format!("[{}]", values.iter().map(self::value).collect::<Vec<_>>().join(", "))
        }
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key} = {}", self::value(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
