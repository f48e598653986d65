//! Interprets a driver's answers about a task: whether a start took effect, and whether an error is permanent.

use super::calls::{Found, RunKey, Started, Trouble};
use crate::driver::{DriverError, DriverReport, DriverStage, ServingProcess};
use crate::drivers::NotDispensed;
use crate::rpc::Code;

/// The error text of drivers built on the official packages for an unknown task; they have no error code for it.
const UNKNOWN_TASK: &str = "task not found";

/// The progress of a start that this run of the host has requested.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    /// It waits for its driver, and is sent then.
    Waiting,
    /// It was sent to this process, which has not answered.
    Unanswered(Option<ServingProcess>),
    /// The driver has answered.
    Answered,
    /// It was not sent, and will not be sent.
    NeverSent,
}

/// Why there is no client, without the duration of the wait: the same reason is then not published again.
#[must_use]
pub fn not_dispensed(error: &NotDispensed) -> Trouble {
    let reason = match error {
        NotDispensed::NotReady { driver, .. } => format!("driver {driver} is not ready yet"),
        NotDispensed::NotHealthy { driver, health, reason, .. } => {
            format!("driver {driver} is {health}: {reason}")
        }
        NotDispensed::Unknown { .. }
        | NotDispensed::Blocked { .. }
        | NotDispensed::Refused { .. }
        | NotDispensed::Stopping { .. }
        | NotDispensed::TooMany { .. } => error.to_string(),
    };
    // A task outwaits the refusal of its driver: its program may be replaced.
    let is_transient = error.is_transient() || matches!(error, NotDispensed::Refused { .. });
    Trouble { is_transient, is_absent: true, reason }
}

/// Whether the answer "no such run" from `process` proves that no start of the run is in progress there. A process that an
/// earlier run of the host launched may have received a start from that run, so its answer proves nothing.
#[must_use]
pub fn is_proof(asked: Option<Asked>, process: Option<ServingProcess>) -> bool {
    match asked {
        Some(Asked::Answered | Asked::NeverSent) => true,
        Some(Asked::Waiting) => false,
        Some(Asked::Unanswered(before)) => {
            before.zip(process).is_some_and(|(before, process)| before.tag != process.tag)
        }
        None => process.is_some_and(|process| !process.is_adopted),
    }
}

/// The known state of a run whose driver is unavailable. A driver that is refused has no process, and none is left that received a start
/// of the run: it would have been found before the driver was launched, or has ended. So nothing can begin, unless a start still waits
/// for the driver.
///
/// # Errors
/// If the unavailability of the driver proves nothing about the run.
pub fn found_without(error: &NotDispensed, is_start_waiting: bool) -> Result<Found, Trouble> {
    let trouble = not_dispensed(error);
    match error {
        NotDispensed::Refused { .. } if !is_start_waiting => {
            Ok(Found::Nothing { words: trouble.reason, is_proof: true })
        }
        NotDispensed::Refused { .. }
        | NotDispensed::NotReady { .. }
        | NotDispensed::NotHealthy { .. }
        | NotDispensed::Unknown { .. }
        | NotDispensed::Blocked { .. }
        | NotDispensed::Stopping { .. }
        | NotDispensed::TooMany { .. } => Err(Trouble { is_transient: true, ..trouble }),
    }
}

/// Why a driver that received a start may still begin the run; `None` if no process that received it is left. A driver that has
/// launched a process, or was refused at the launch, has checked before that no process was left of an earlier run of the host.
#[must_use]
pub fn may_still_begin(report: Option<&DriverReport>) -> Option<String> {
    match report {
        Some(DriverReport { pid: Some(pid), .. }) => {
            Some(format!("its driver (process {pid}) may have received its start request and may still execute it"))
        }
        Some(DriverReport { stage: DriverStage::Refused, .. }) => None,
        Some(DriverReport { launches: 0, .. }) | None => Some(
            "its driver may have received its start request, and it is unknown whether a process of the driver is left that may \
            still execute it"
                .to_owned(),
        ),
        Some(_) => None,
    }
}

/// An error that is permanent only if the driver itself refused; an error in between is transient.
#[must_use]
pub fn refused_for_good(error: DriverError) -> Trouble {
    let is_refusal = matches!(error, DriverError::Refused { .. });
    Trouble { is_transient: !is_refusal || error.is_transient(), ..passing(&error) }
}

/// A transient error. If the driver's process is gone, the driver is absent.
#[must_use]
pub fn passing(error: &DriverError) -> Trouble {
    let is_absent = matches!(error, DriverError::PluginGone { .. });
    Trouble { is_absent, ..Trouble::passing(error.to_string()) }
}

/// Whether the driver reports that it does not know the task.
#[must_use]
pub fn is_unknown(error: &DriverError) -> bool {
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

/// The result of a start that was not sent. If the release of its volumes is not recorded, the run is not over: they are released after
/// another proof that nothing is left of the run.
#[must_use]
pub fn not_sent(trouble: Trouble, released: Result<(), Trouble>) -> Started {
    match released {
        Ok(()) => Started::NotAsked(trouble),
        Err(unreleased) => Started::Unreleased(Trouble::passing(format!("{trouble}; {unreleased}"))),
    }
}

/// Interprets the error of a start that was sent.
#[must_use]
pub fn failed_start(run: &RunKey, error: DriverError) -> Started {
    match error {
        error @ DriverError::Refused { recoverable: Some(true), .. } => Started::Retry(error.to_string()),
        error @ DriverError::Refused { recoverable: Some(false), .. } => Started::Fatal(error.to_string()),
        error @ DriverError::Refused { recoverable: None, code, .. } => {
            refused_start(code, error.to_string())
        }
        DriverError::PluginGone { asked, reason, .. } => {
            let what =
                format!("driver {} ended in {} of task {}: {reason}", asked.driver, asked.rpc, run.name);
            Started::Unclear(Trouble::absent(what))
        }
        error @ (DriverError::DeadlineExceeded { .. }
        | DriverError::Disconnected { .. }
        | DriverError::Malformed { .. }) => Started::Unclear(passing(&error)),
    }
}

/// Interprets the status of a failed start. Most codes may also come from the transport, or from a driver that has already
/// begun: they do not prove that nothing runs.
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
        // In the official packages all errors of a driver's own code have the code `Unknown`, even those in the middle of a
        // start. `OutOfRange` means that the answer is too large, `AlreadyExists` that the run exists.
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
    use std::time::Duration;

    use super::*;
    use crate::driver::{Asked as AskedRpc, DriverHealth, DriverRpc, TaskId};
    use crate::process::ProcessTag;
    use crate::vocabulary::{AllocationId, DriverName, Timestamp};

    fn refused(code: Code, recoverable: Option<bool>) -> Started {
        let driver = DriverName::new("exec").unwrap();
        let asked = AskedRpc { driver, rpc: DriverRpc::StartTask };
        failed_start(&run(), DriverError::Refused { asked, code, message: "no".to_owned(), recoverable })
    }

    fn run() -> RunKey {
        let name = AllocationId::new("web").unwrap();
        RunKey { name, driver: DriverName::new("exec").unwrap(), id: TaskId::new("a/web/1").unwrap() }
    }

    #[test]
    fn a_driver_that_is_awaited_longer_gives_no_other_reason() {
        let driver = DriverName::new("exec").unwrap();
        let of = |seconds| {
            let waited = Duration::from_secs(seconds);
            let not_ready = NotDispensed::NotReady { driver: driver.clone(), waited };
            let (health, reason) = (DriverHealth::Unhealthy, "no pool".to_owned());
            let driver = driver.clone();
            let not_healthy = NotDispensed::NotHealthy { driver, health, reason, waited };
            [not_ready, not_healthy].map(|error| not_dispensed(&error).reason)
        };
        assert_eq!(of(5), of(6));
        assert_eq!(of(5), ["driver exec is not ready yet", "driver exec is unhealthy: no pool"]);
    }

    #[test]
    fn a_task_outwaits_the_refusal_of_its_driver_and_nothing_else_that_lasts() {
        let driver = DriverName::new("exec").unwrap();
        let reason = "refused: it is not there".to_owned();
        let refused = not_dispensed(&NotDispensed::Refused { driver: driver.clone(), reason });
        assert!(refused.is_transient && refused.is_absent);
        assert!(refused.reason.starts_with("driver exec is refused: it is not there; "), "{refused}");
        for lasting in [NotDispensed::Blocked { driver: driver.clone() }, NotDispensed::Stopping { driver }] {
            assert!(!not_dispensed(&lasting).is_transient, "{lasting}");
        }
    }

    #[test]
    fn a_driver_that_dies_in_a_start_is_told_as_that_with_the_task_and_what_it_said_last_t141() {
        let driver = DriverName::new("exec").unwrap();
        let asked = AskedRpc { driver, rpc: DriverRpc::StartTask };
        let reason = "its process ended: exit code 2, last output: panic: nil map".to_owned();
        let gone = DriverError::PluginGone { asked, is_worth_retrying: true, reason };
        let Started::Unclear(trouble) = failed_start(&run(), gone) else {
            panic!("it is unknown what it did")
        };
        assert!(trouble.is_absent && trouble.is_transient);
        assert_eq!(
            trouble.reason,
            "driver exec ended in StartTask of task web: its process ended: exit code 2, last output: panic: nil map"
        );
    }

    #[test]
    fn a_run_whose_volumes_are_not_released_is_not_over_although_it_was_not_started_v8() {
        let trouble = Trouble::lasting("no such image");
        assert_eq!(not_sent(trouble.clone(), Ok(())), Started::NotAsked(trouble.clone()));
        let unreleased = not_sent(trouble, Err(Trouble::passing("the volumes do not run")));
        let expected = Trouble::passing("no such image; the volumes do not run");
        assert_eq!(unreleased, Started::Unreleased(expected));
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
        assert!(is_proof(None, process(1, false)), "it was not asked");
    }

    #[test]
    fn the_word_of_a_driver_counts_before_its_status_d110() {
        for code in [Code::Unknown, Code::Unavailable, Code::FailedPrecondition] {
            assert!(matches!(refused(code, Some(true)), Started::Retry(_)), "{code}");
            assert!(matches!(refused(code, Some(false)), Started::Fatal(_)), "{code}");
        }
    }

    #[test]
    fn a_driver_that_is_refused_has_nothing_that_may_still_begin_a_run_t3() {
        let unknown = DriverReport::of_nothing_yet(DriverName::new("exec").unwrap(), Timestamp::default());
        assert!(may_still_begin(None).is_some() && may_still_begin(Some(&unknown)).is_some());
        let refused = DriverReport { stage: DriverStage::Refused, ..unknown.clone() };
        assert_eq!(may_still_begin(Some(&refused)), None);
        let launched = DriverReport { launches: 1, ..unknown };
        assert_eq!(may_still_begin(Some(&launched)), None);
        let runs = DriverReport { pid: Some(7), ..launched };
        assert!(may_still_begin(Some(&runs)).is_some());
    }
}
