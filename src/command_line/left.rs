//! Makes a stop command fail if something could not be ended (S3, S4).

use callboard_proto::admin::v1 as wire;

/// Something did not end in order, and may still be there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not everything has ended in order: {0}")]
pub(super) struct Left(String);

impl Left {
    /// Checks that everything that was to end has ended.
    ///
    /// # Errors
    /// What may be left, and what is known of it.
    pub(super) fn check(report: &[wire::ChildEnding]) -> Result<(), Self> {
        let left = report.iter().filter(|child| child.left);
        let left: Vec<_> = left.map(|child| format!("{}: {}", child.child, child.ending)).collect();
        if left.is_empty() { Ok(()) } else { Err(Self(left.join("; "))) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use callboard_actors::shell::StopStep;
    use callboard_actors::supervisor::{ChildEnding, ShutdownReport, StopOutcome};

    use super::*;
    use crate::admin::stopped;

    fn report(is_left: bool, processes: StopOutcome) -> ShutdownReport {
        let took = Duration::ZERO;
        let web = StopStep { what: "task/web".into(), ending: "as told".into(), took, is_left };
        let child = |name: &str, ending, below| ChildEnding { name: name.into(), ending, below, took };
        let tasks = child("tasks", StopOutcome::Stopped, vec![web]);
        ShutdownReport { children: vec![tasks, child("processes", processes, vec![])], took }
    }

    #[test]
    fn a_stop_that_leaves_something_fails_and_says_what_s3_s4() {
        let reason = "it gave up: processes could not be ended: driver-exec (pid 4711)".to_owned();
        let left = Left::check(&stopped(&report(true, StopOutcome::Crashed { reason }))).unwrap_err();
        assert_eq!(
            left.to_string(),
            "not everything has ended in order: task/web: as told; host/processes: did not stop in order: it gave up: \
             processes could not be ended: driver-exec (pid 4711)"
        );
    }

    #[test]
    fn a_stop_fails_over_each_ending_that_is_not_in_order_s3() {
        let reason = String::new;
        let deadline = Duration::from_secs(1);
        for (ending, is_in_order) in [
            (StopOutcome::Stopped, true),
            (StopOutcome::EndedBefore { reason: reason(), in_order: true }, true),
            (StopOutcome::EndedBefore { reason: reason(), in_order: false }, false),
            (StopOutcome::NotStarted, true),
            (StopOutcome::Killed { deadline }, false),
            (StopOutcome::Crashed { reason: reason() }, false),
            (StopOutcome::Stuck { reason: reason() }, false),
        ] {
            let report = report(false, ending);
            assert_eq!(Left::check(&stopped(&report)).is_ok(), is_in_order, "{report:?}");
            assert_eq!(report.not_in_order().count(), usize::from(!is_in_order), "{report:?}");
        }
    }
}
