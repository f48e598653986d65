//! A driver's handle between its client and the tasks that keep it.

use std::collections::BTreeMap;

use callboard_actors::driver::client::{MalformedHandle, StartOutcome, TaskHandle};

use super::{KeptHandle, Started};

/// A handle as the tasks keep it.
pub(super) fn kept(handle: &TaskHandle) -> KeptHandle {
    KeptHandle::new(&handle.to_bytes(), &handle.clone().without_environment().to_bytes(), handle.cores())
}

/// Reads a handle that was stored.
///
/// # Errors
/// If the bytes are not a handle.
pub(super) fn read(stored: &[u8]) -> Result<KeptHandle, MalformedHandle> {
    TaskHandle::from_bytes(stored).map(|handle| kept(&handle))
}

/// The handle as its driver gets it back, with this environment of its task.
///
/// # Errors
/// If the bytes are not a handle.
pub(super) fn given_back(
    handle: &KeptHandle,
    environment: &BTreeMap<String, String>,
) -> Result<TaskHandle, MalformedHandle> {
    TaskHandle::from_bytes(handle.bytes()).map(|handle| handle.with_environment(environment))
}

/// The result of a driver's answer to a start.
pub(super) fn started(outcome: StartOutcome) -> Started {
    match outcome {
        StartOutcome::Started { handle, .. } => Started::Runs(Box::new(kept(&handle))),
        StartOutcome::Retry { reason } => Started::Retry(reason),
        StartOutcome::Fatal { reason } => Started::Fatal(reason),
    }
}
