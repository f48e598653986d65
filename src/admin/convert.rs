//! Converts our types to the wire types of the admin socket.

use callboard_actors::allocations::StopAllocationError;
use callboard_actors::shell::{AskError, StopStep};
use callboard_actors::supervisor::{ShutdownReport, TreeNode};
use callboard_actors::vocabulary::{Timestamp, milliseconds};
use callboard_proto::admin::v1 as wire;
use tonic::Status;

use crate::agent::{ReplaceError, TaskError};
use crate::tasks;

/// Milliseconds since the Unix epoch.
pub(super) fn unix_ms(at: Timestamp) -> u64 {
    milliseconds(at.since_epoch())
}

/// A tree of actors.
pub(super) fn tree(node: TreeNode) -> wire::TreeNode {
    wire::TreeNode {
        name: node.name,
        kind: node.kind,
        state: node.state,
        restarts: node.restarts,
        crashes: node.crashes,
        mailbox_depth: node.mailbox_depth.map(|depth| depth as u64),
        message: node.message,
        children: node.children.into_iter().map(tree).collect(),
        stops_within_ms: node.stops_within.map(milliseconds),
        kills_within_ms: node.kills_within.map(milliseconds),
        ended: node.ended.iter().map(step).collect(),
    }
}

/// A stopped part of a task.
pub(super) fn step(step: &StopStep) -> wire::ChildEnding {
    wire::ChildEnding {
        child: step.what.clone(),
        ending: step.ending.clone(),
        took_ms: milliseconds(step.took),
        left: step.is_left,
    }
}

/// The outcome of a stop: for each actor first what it stopped itself, then how it ended.
#[must_use]
pub fn stopped(report: &ShutdownReport) -> Vec<wire::ChildEnding> {
    report.children.iter().flat_map(|child| child.steps("host")).map(|stopped| step(&stopped)).collect()
}

/// Why an actor did not answer.
pub(super) fn unanswered(error: &AskError) -> Status {
    let text = error.to_string();
    match error {
        AskError::Busy { .. } => Status::resource_exhausted(text),
        AskError::NotRunning { .. } => Status::unavailable(text),
        AskError::Crashed { .. } | AskError::NotDurable { .. } | AskError::NotWritten { .. } => {
            Status::internal(text)
        }
    }
}

/// Why a replacement has no answer: it may have begun, and its outcome is carried out anyway.
pub(super) fn replaced_unheard(error: &AskError) -> Status {
    let status = unanswered(error);
    let next = "the replacement may be under way; `callboard status` shows both allocations";
    match error {
        AskError::NotRunning { .. } => Status::new(status.code(), format!("{}; {next}", status.message())),
        AskError::Busy { .. }
        | AskError::Crashed { .. }
        | AskError::NotDurable { .. }
        | AskError::NotWritten { .. } => status,
    }
}

/// Why a task was not started or stopped.
pub(super) fn refused(error: &TaskError) -> Status {
    let text = error.to_string();
    match error {
        TaskError::Unknown { .. } => Status::not_found(text),
        TaskError::Started { .. }
        | TaskError::Stopping { .. }
        | TaskError::NotRunning { .. }
        | TaskError::HostStopping { .. } => Status::failed_precondition(text),
        TaskError::NotStopped(error) => not_stopped(error),
    }
}

/// Why an allocation is not stopped, and which command stops it anyway.
fn not_stopped(error: &StopAllocationError) -> Status {
    match error {
        StopAllocationError::Unknown(unknown) => Status::not_found(unknown.to_string()),
        StopAllocationError::Used { allocation, .. } | StopAllocationError::Unclear { allocation, .. } => {
            Status::failed_precondition(format!(
                "{error}: `callboard stop --even-if-used {allocation}` leaves mounted what is in use, until the plugin is back"
            ))
        }
    }
}

/// Why an allocation was not replaced.
pub(super) fn not_replaced(error: &ReplaceError) -> Status {
    match error {
        ReplaceError::Task(error) => refused(error),
        ReplaceError::Itself { .. } | ReplaceError::OtherPlugin { .. } | ReplaceError::NeverInTime { .. } => {
            Status::invalid_argument(error.to_string())
        }
        ReplaceError::UnderWay { .. }
        | ReplaceError::NotHealthy { .. }
        | ReplaceError::NotStopped { .. }
        | ReplaceError::HostStopping { .. } => Status::failed_precondition(error.to_string()),
    }
}

/// Why a task of a driver was not started or stopped.
pub(super) fn task_refused(error: &tasks::TaskError) -> Status {
    use tasks::TaskError;
    let text = error.to_string();
    match error {
        TaskError::Unknown { .. } => Status::not_found(text),
        TaskError::OutOfReach { .. } | TaskError::Remains { .. } => Status::unavailable(text),
        TaskError::Removed { .. }
        | TaskError::Started { .. }
        | TaskError::Stopping { .. }
        | TaskError::NotRunning { .. }
        | TaskError::HostStopping { .. } => Status::failed_precondition(text),
    }
}
