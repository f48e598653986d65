//! What the answers of a driver mean for a task: whether a start was one, and whether a trouble stays.

use callboard_actors::driver::client::{DriverError, ServingProcess, StartOutcome};
use callboard_actors::rpc::Code;

use super::calls::{RunKey, Started, Trouble};

/// What drivers on the official packages say of a task that they do not know; they have no code for it.
const UNKNOWN_TASK: &str = "task not found";

/// What is known of a start that this run of the host has asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    /// It waits for its driver to be there, and is asked then.
    Waiting,
    /// It was asked of this process, which has not answered.
    Unanswered(Option<ServingProcess>),
    /// The driver has said what came of it.
    Answered,
}

/// Whether a process that knows of no run can have no start of it under way. One that an earlier run of the host launched may
/// have been asked by that.
pub(super) fn is_proof(asked: Option<Asked>, process: Option<ServingProcess>) -> bool {
    match asked {
        Some(Asked::Answered) => true,
        Some(Asked::Waiting) => false,
        Some(Asked::Unanswered(before)) => {
            before.zip(process).is_some_and(|(before, process)| before.tag != process.tag)
        }
        None => process.is_some_and(|process| !process.is_adopted),
    }
}

/// A trouble that stays only if the driver itself says no; whatever is between it and us may pass.
pub(super) fn refused_for_good(error: DriverError) -> Trouble {
    let is_refusal = matches!(error, DriverError::Refused { .. });
    Trouble { is_transient: !is_refusal || error.is_transient(), ..passing(&error) }
}

/// A trouble that may pass. A driver whose process is gone is not there.
pub(super) fn passing(error: &DriverError) -> Trouble {
    let is_absent = matches!(error, DriverError::PluginGone { .. });
    Trouble { is_absent, ..Trouble::passing(error.to_string()) }
}

/// Whether the driver says that it knows no such task.
pub(super) fn is_unknown(error: &DriverError) -> bool {
    match error {
        DriverError::Refused { code, message, .. } => {
            *code == Code::NotFound || message.contains(UNKNOWN_TASK)
        }
        DriverError::PluginGone { .. }
        | DriverError::DeadlineExceeded { .. }
        | DriverError::Disconnected { .. }
        | DriverError::Malformed { .. } => false,
    }
}

pub(super) fn started(run: &RunKey, answer: Result<StartOutcome, DriverError>) -> Started {
    match answer {
        Ok(StartOutcome::Started { handle, .. }) => Started::Runs(Box::new(handle)),
        Ok(StartOutcome::Retry { reason }) => Started::Retry(reason),
        Ok(StartOutcome::Fatal { reason }) => Started::Fatal(reason),
        Err(error @ DriverError::Refused { recoverable: Some(true), .. }) => {
            Started::Retry(error.to_string())
        }
        Err(error @ DriverError::Refused { recoverable: Some(false), .. }) => {
            Started::Fatal(error.to_string())
        }
        Err(error @ DriverError::Refused { recoverable: None, code, .. }) => {
            refused_start(code, error.to_string())
        }
        Err(DriverError::PluginGone { asked, reason, .. }) => {
            let what =
                format!("driver {} ended in {} of task {}: {reason}", asked.driver, asked.rpc, run.name);
            Started::Unclear(Trouble::absent(what))
        }
        Err(
            error @ (DriverError::DeadlineExceeded { .. }
            | DriverError::Disconnected { .. }
            | DriverError::Malformed { .. }),
        ) => Started::Unclear(passing(&error)),
    }
}

/// What a driver's status says of a start. Most codes may as well come from whatever is between us and the driver, or from a
/// driver that has begun already: they are no proof that nothing runs.
fn refused_start(code: Code, reason: String) -> Started {
    match code {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Ok => Started::Unclear(Trouble::passing(reason)),
        Code::ResourceExhausted => Started::Retry(reason),
        // By the official packages all errors of a driver's own are unknown, those in the midst of a start too. The next two
        // are said of an answer that is too large, and of a run that there is.
        Code::Unknown | Code::OutOfRange | Code::AlreadyExists => Started::Refused(reason),
        Code::InvalidArgument
        | Code::NotFound
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::Unauthenticated => Started::Fatal(reason),
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::client::{Asked as AskedRpc, DriverRpc, TaskId};
    use callboard_actors::process::ProcessTag;
    use callboard_actors::vocabulary::{AllocationId, DriverName};

    use super::*;

    fn refused(code: Code, recoverable: Option<bool>) -> Started {
        let driver = DriverName::new("exec").unwrap();
        let asked = AskedRpc { driver, rpc: DriverRpc::StartTask };
        started(&run(), Err(DriverError::Refused { asked, code, message: "no".to_owned(), recoverable }))
    }

    fn run() -> RunKey {
        let name = AllocationId::new("web").unwrap();
        RunKey { name, driver: DriverName::new("exec").unwrap(), id: TaskId::new("a/web/1").unwrap() }
    }

    #[test]
    fn a_driver_that_dies_in_a_start_is_told_as_that_with_the_task_and_what_it_said_last_t141() {
        let driver = DriverName::new("exec").unwrap();
        let asked = AskedRpc { driver, rpc: DriverRpc::StartTask };
        let reason = "its process ended: exit code 2, last output: panic: nil map".to_owned();
        let gone = DriverError::PluginGone { asked, is_worth_retrying: true, reason };
        let Started::Unclear(trouble) = started(&run(), Err(gone)) else {
            panic!("nobody knows what it did")
        };
        assert!(trouble.is_absent && trouble.is_transient);
        assert_eq!(
            trouble.reason,
            "driver exec ended in StartTask of task web: its process ended: exit code 2, last output: panic: nil map"
        );
    }

    #[test]
    fn a_status_from_in_between_is_no_proof_that_a_task_was_not_started() {
        let unclear =
            [Code::DeadlineExceeded, Code::Cancelled, Code::Unavailable, Code::Aborted, Code::Internal];
        for code in unclear {
            assert!(matches!(refused(code, None), Started::Unclear(_)), "{code}");
        }
        assert!(matches!(refused(Code::Unknown, None), Started::Refused(_)));
        assert!(matches!(refused(Code::InvalidArgument, None), Started::Fatal(_)));
    }

    #[test]
    fn a_driver_that_knows_no_such_task_is_heard_by_its_code_or_its_words_t153() {
        let asked = || AskedRpc { driver: DriverName::new("exec").unwrap(), rpc: DriverRpc::DestroyTask };
        let says = |code, message: &str| DriverError::Refused {
            asked: asked(),
            code,
            message: message.to_owned(),
            recoverable: None,
        };
        assert!(is_unknown(&says(Code::NotFound, "no such task")));
        assert!(is_unknown(&says(Code::Unknown, "task not found for given id")));
        assert!(!is_unknown(&says(Code::Unknown, "cannot kill it")));
        let gone = DriverError::PluginGone {
            asked: asked(),
            is_worth_retrying: true,
            reason: "signal 9".to_owned(),
        };
        assert!(!is_unknown(&gone), "one that is not there has said nothing");
    }

    #[test]
    fn that_nothing_is_known_of_a_run_is_proof_only_where_no_start_of_it_can_be_under_way() {
        let process = |tag, is_adopted| Some(ServingProcess { tag: ProcessTag::new([tag; 16]), is_adopted });
        let asked = Some(Asked::Unanswered(process(1, false)));
        assert!(!is_proof(asked, process(1, false)), "it may be busy with it");
        assert!(is_proof(asked, process(2, false)), "it was never asked");
        assert!(is_proof(Some(Asked::Answered), process(1, false)), "it has answered");
        assert!(!is_proof(None, process(1, true)), "an earlier run of the host may have asked it");
        assert!(is_proof(None, process(1, false)), "nobody has asked it");
    }

    #[test]
    fn the_word_of_a_driver_counts_before_its_status_d110() {
        for code in [Code::Unknown, Code::Unavailable, Code::FailedPrecondition] {
            assert!(matches!(refused(code, Some(true)), Started::Retry(_)), "{code}");
            assert!(matches!(refused(code, Some(false)), Started::Fatal(_)), "{code}");
        }
    }
}
