//! Decodes arbitrary bytes as the answers of a driver.

use callboard_proto::drivers as wire;
use prost::Message;

use super::from_wire::{self, Fault};
use super::{StartOutcome, TaskHandle, TaskState};
use crate::driver::AttributeValue;
use crate::driver::{EventPosition, SEQUENCE_ANNOTATION, STREAM_ANNOTATION, TaskEventItem};
use crate::fuzzing::check_told;

/// Longest message of a driver that is kept, in bytes.
const MESSAGE_BYTES: usize = 4_096;

/// The first byte selects the answer that the others are decoded as. A result never contains more than the answer did, and only a
/// complete report of success is a success (EVT-05).
///
/// # Panics
/// When a result violates that.
pub(crate) fn answers(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 11 {
        0 => read(bytes, from_wire::fingerprint, |fingerprint, _| {
            assert!(fingerprint.description.len() <= MESSAGE_BYTES, "a description");
            let is_number = |value: &AttributeValue| match value {
                AttributeValue::Float(value) => value.is_finite(),
                AttributeValue::Integer(_) | AttributeValue::Text(_) | AttributeValue::Bool(_) => true,
            };
            assert!(fingerprint.attributes.values().all(|attribute| is_number(&attribute.value)));
        }),
        1 => read(bytes, from_wire::capabilities, |offers, _| {
            assert!(offers.network_modes.windows(2).all(|pair| pair[0] < pair[1]), "{offers:?}");
        }),
        2 => read(bytes, from_wire::started, |outcome, _| match outcome {
            StartOutcome::Started { handle, .. } => check_handle(&handle),
            StartOutcome::Retry { reason } | StartOutcome::Fatal { reason } => {
                assert!(reason.len() <= MESSAGE_BYTES, "a reason");
            }
        }),
        3 => read(bytes, from_wire::waited, |exit, told: wire::WaitTaskResponse| {
            let is_zero = |result: &wire::ExitResult| result.exit_code == 0 && result.signal == 0;
            let is_success = told.err.is_empty() && told.result.as_ref().is_some_and(is_zero);
            assert_eq!(exit.is_success(), is_success, "{told:?}");
            check_told(&exit);
        }),
        4 => read(bytes, from_wire::inspected, |status, _| {
            assert_eq!(status.exit.is_some(), status.state == TaskState::Exited, "{status:?}");
        }),
        5 => read(bytes, from_wire::stats, |_, _| ()),
        6 => read(bytes, from_wire::executed, |outcome, told: wire::ExecTaskResponse| {
            assert!(told.result.is_some() || !outcome.exit.is_success(), "{told:?}");
        }),
        7 => read(bytes, from_wire::created_network, |_, _| ()),
        8 => read(bytes, |told| from_wire::event(told, None), |item, _| check_event(&item)),
        9 => match TaskHandle::from_bytes(bytes) {
            Ok(handle) => check_handle(&handle),
            Err(error) => check_told(&error),
        },
        _ => match std::str::from_utf8(bytes).map(str::parse::<EventPosition>) {
            Ok(Ok(position)) => assert_eq!(position.to_string().parse(), Ok(position)),
            Ok(Err(error)) => check_told(&error),
            Err(_) => (),
        },
    }
}

fn read<W: Message + Default + Clone, T>(
    bytes: &[u8],
    convert: impl Fn(W) -> Result<T, Fault>,
    check: impl Fn(T, W),
) {
    let Ok(answer) = W::decode(bytes) else { return };
    match convert(answer.clone()) {
        Ok(taken) => check(taken, answer),
        Err(fault) => check_told(&fault),
    }
}

fn check_handle(handle: &TaskHandle) {
    assert!(!handle.task_id().is_empty(), "a handle names its task");
    let stored = handle.clone().without_environment();
    assert_eq!(TaskHandle::from_bytes(&stored.to_bytes()).as_ref(), Ok(&stored));
    assert_eq!(TaskHandle::from_bytes(&handle.to_bytes()).as_ref(), Ok(handle));
}

fn check_event(item: &TaskEventItem) {
    let TaskEventItem::Event { event, position } = item else { panic!("an event is no gap") };
    assert!(event.message.len() <= MESSAGE_BYTES, "a message");
    let marks = [STREAM_ANNOTATION, SEQUENCE_ANNOTATION];
    assert!(marks.iter().all(|mark| !event.annotations.contains_key(*mark)), "{event:?}");
    assert!(position.as_ref().is_none_or(|position| position.sequence > 0), "{position:?}");
}
