//! Reads the task events of a driver.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_proto::drivers as wire;

use super::{Fault, MESSAGE_BYTES_MAX, timestamp};
use crate::driver::{
    EventPosition, SEQUENCE_ANNOTATION, STREAM_ANNOTATION, TaskEvent, TaskEventItem, TaskKey,
};
use crate::vocabulary::text::{bounded, quoted};
use crate::vocabulary::{AllocationId, TaskName};

/// Most annotations that an event may have.
const ANNOTATIONS_MAX: usize = 64;

/// Reads an event with its position. An event without a valid task is refused: it never becomes an event of default values.
/// `stream` is the name of its stream, if the plugin reported it; the events of a stream almost always share it.
pub(in crate::driver::client) fn event(
    told: wire::DriverTaskEvent,
    stream: Option<&Arc<str>>,
) -> Result<TaskEventItem, Fault> {
    let allocation = AllocationId::new(&told.alloc_id).map_err(|error| error.to_string())?;
    let task = TaskName::new(&told.task_name).map_err(|error| error.to_string())?;
    if told.annotations.len() > ANNOTATIONS_MAX {
        return Err(format!("{} annotations; at most {ANNOTATIONS_MAX} are read", told.annotations.len()));
    }
    let (mut marks, mut annotations) = ((None, None), BTreeMap::new());
    for (key, value) in told.annotations {
        match key.as_str() {
            STREAM_ANNOTATION => marks.0 = Some(value),
            SEQUENCE_ANNOTATION => marks.1 = Some(value),
            _ => {
                annotations.insert(key, value);
            }
        }
    }
    let event = TaskEvent {
        task_id: Arc::from(told.task_id),
        task: TaskKey::new(allocation, task),
        at: timestamp("timestamp", told.timestamp)?,
        message: bounded(&told.message, MESSAGE_BYTES_MAX),
        annotations,
    };
    Ok(TaskEventItem::Event { event: Arc::new(event), position: position(marks, stream)? })
}

fn position(
    marks: (Option<String>, Option<String>),
    stream: Option<&Arc<str>>,
) -> Result<Option<EventPosition>, Fault> {
    let (name, sequence) = match marks {
        (Some(name), Some(sequence)) => (name, sequence),
        (None, None) => return Ok(None),
        (Some(_), None) | (None, Some(_)) => return Err("it has half a position".to_owned()),
    };
    let sequence = sequence.parse().map_err(|_| format!("its sequence is \"{}\"", quoted(&sequence)))?;
    match stream {
        Some(known) if **known == *name && sequence > 0 => {
            Ok(Some(EventPosition { stream: Arc::clone(known), sequence }))
        }
        Some(_) | None => EventPosition::new(&name, sequence).map(Some).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_default_values_is_refused() {
        assert!(event(wire::DriverTaskEvent::default(), None).is_err());
    }

    #[test]
    fn an_event_has_a_whole_position_or_none() {
        let told = |marks: &[(&str, &str)]| wire::DriverTaskEvent {
            alloc_id: "a".to_owned(),
            task_name: "t".to_owned(),
            annotations: marks.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            ..Default::default()
        };
        let stream: Arc<str> = "s".into();
        let position = |marks: &[(&str, &str)]| match event(told(marks), Some(&stream)) {
            Ok(TaskEventItem::Event { position, event }) => Ok((position, event.annotations.len())),
            Ok(TaskEventItem::Gap { .. }) => unreachable!("an event is no gap"),
            Err(fault) => Err(fault),
        };
        let whole = [(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, "7"), ("other", "x")];
        assert_eq!(position(&whole), Ok((EventPosition::new("s", 7).ok(), 1)));
        let shared = position(&whole).unwrap().0.unwrap().stream;
        assert!(Arc::ptr_eq(&shared, &stream), "a name that is known is not written anew");
        let elsewhere = [(STREAM_ANNOTATION, "other"), (SEQUENCE_ANNOTATION, "7")];
        assert_eq!(position(&elsewhere), Ok((EventPosition::new("other", 7).ok(), 0)));
        assert_eq!(position(&whole[2..]), Ok((None, 1)));
        assert!(position(&[(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, "0")]).is_err());
        assert!(position(&whole[..1]).is_err());
        assert!(position(&[(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, "-1")]).is_err());
    }

    #[test]
    fn an_event_has_so_many_annotations_and_no_more() {
        let told = |count: usize| wire::DriverTaskEvent {
            alloc_id: "a".to_owned(),
            task_name: "t".to_owned(),
            annotations: (0..count).map(|number| (number.to_string(), String::new())).collect(),
            ..Default::default()
        };
        assert!(event(told(ANNOTATIONS_MAX), None).is_ok());
        assert!(event(told(ANNOTATIONS_MAX + 1), None).is_err());
    }

    #[test]
    fn an_error_is_short_however_long_the_mark_of_an_event() {
        let long = "\u{1b}".repeat(1 << 16);
        let marks = [(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, &long)];
        let told = wire::DriverTaskEvent {
            alloc_id: "a".to_owned(),
            task_name: "t".to_owned(),
            annotations: marks.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..Default::default()
        };
        assert!(event(told, None).expect_err("it is no number").len() < 4_096);
    }
}
