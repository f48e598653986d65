//! The result of an operation: the answer of the plugin, and a look at the kernel (V7).

use std::fmt::Display;
use std::path::Path;

use super::operation::Operation;
use super::outcome::{Failure, Known, Seen, VolumeOutcome};
use crate::csi::Context;
use crate::kernel::CallLost;

/// The result of any operation.
pub(super) struct StepResult {
    /// The answer of the plugin; an empty context where it has no further data.
    pub(super) answer: Result<Context, Failure>,
    /// The observation of the kernel at its path.
    pub(super) seen: Seen,
}

impl StepResult {
    /// The result of an operation. A lost call, or the outcome of a call that was not made, leaves it unclear.
    pub(super) fn of(what: &Operation, outcome: &Result<VolumeOutcome, CallLost>) -> Self {
        let lost_track =
            |reason: String| Self { answer: Err(unclear(reason.clone())), seen: Seen::Unclear(reason) };
        let is_controller = matches!(what, Operation::Attach | Operation::Detach | Operation::Delete);
        let is_look =
            matches!(what, Operation::LookAtStage | Operation::LookAt(_) | Operation::LookAtAbandoned(_));
        match outcome {
            Ok(VolumeOutcome::Controller(result)) if is_controller => {
                Self { answer: result.clone(), seen: Seen::Nothing }
            }
            Ok(VolumeOutcome::Node(result, seen)) if !is_controller && !is_look => {
                Self { answer: result.clone().map(|()| Context::new()), seen: seen.clone() }
            }
            Ok(VolumeOutcome::Looked(seen)) if is_look => {
                Self { answer: Ok(Context::new()), seen: seen.clone() }
            }
            Ok(_) => lost_track("the reply does not match the call".to_owned()),
            Err(lost @ CallLost::Busy(_)) => {
                let failure = Failure { known: Known::NotMade, reason: lost.to_string() };
                Self { answer: Err(failure), seen: Seen::Unclear(lost.to_string()) }
            }
            Err(lost) => lost_track(lost.to_string()),
        }
    }

    /// The reason that an undone step is not down for certain, if so. It names the path, if there was a look and no other reason names what
    /// is there. A plugin that has the call, and answers that it does not have it, may have left something that no mount table shows.
    pub(super) fn not_down(self, what: &Operation, path: Option<&Path>, has_call: bool) -> Option<Failure> {
        let at = path.map(|path| format!(" at {}", path.display())).unwrap_or_default();
        let is_left_to_the_kernel = |failure: &Failure| match failure.known {
            Known::Absent => true,
            Known::Unsupported => !has_call,
            Known::NotMade | Known::Refused | Known::NotNow | Known::Unclear => false,
        };
        match (self.answer, self.seen) {
            (Ok(_), Seen::Nothing) => None,
            (Ok(_), Seen::Present(mark)) => Some(still_there(&mark, &at)),
            (Ok(_), Seen::BareStaging) => Some(still_there(&"the staging directory", &at)),
            (Ok(_), Seen::Dead(reason) | Seen::Unclear(reason)) => {
                Some(unclear(format!("it is confirmed, but cannot be checked: {reason}")))
            }
            // The kernel does not know attachments, so it may be attached all the same (C082).
            (Err(failure), _) if *what == Operation::Detach => Some(failure),
            (Err(failure), Seen::Nothing) if is_left_to_the_kernel(&failure) => None,
            // The plugin does not undo it, so an operator has to.
            (Err(failure), Seen::Present(mark)) if path.is_some() && is_left_to_the_kernel(&failure) => {
                let reason = format!(
                    "{}; but this is still mounted{at}: {mark}; unmount it by hand, then the next try succeeds",
                    failure.reason
                );
                Some(Failure { reason, ..failure })
            }
            (Err(failure), _) if failure.known == Known::Unsupported => {
                let reason = format!(
                    "{}; but it should have this call, so something may be left{at}: replace it by a plugin that answers it, or give that up by \
                     force",
                    failure.reason
                );
                Some(Failure { reason, ..failure })
            }
            (Err(failure), _) => Some(failure),
        }
    }
}

/// It may have been done, and may have to be done again.
pub(super) const fn unclear(reason: String) -> Failure {
    Failure { known: Known::Unclear, reason }
}

fn still_there(what: &dyn Display, at: &str) -> Failure {
    unclear(format!(
        "it is confirmed, and the kernel still has {what}{at}; unmount it by hand if the plugin does not"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::mark::Mark;
    use super::*;
    use crate::mounts::{BlockDevice, DeviceNumber};
    use crate::vocabulary::AllocationId;

    #[test]
    fn what_is_still_mounted_after_its_undo_is_told_with_its_path_and_what_to_do_c064_v7() {
        let undo = Operation::Unpublish(AllocationId::new("web").expect("a good id"));
        let told = |result, has_call| {
            let seen = Seen::Present(Mark::Device {
                mount: None,
                device: BlockDevice { number: DeviceNumber { major: 7, minor: 1 }, sequence: None },
            });
            let failure =
                StepResult { answer: result, seen }.not_down(&undo, Some(Path::new("/t")), has_call);
            let failure = failure.expect("it is there");
            (failure.known, failure.reason)
        };
        let refused = |known| Err(Failure { known, reason: "it is not found".to_owned() });
        let confirmed = "it is confirmed, and the kernel still has block device 7:1 at /t; unmount it by hand if the plugin does not".to_owned();
        assert_eq!(told(Ok(Context::new()), true), (Known::Unclear, confirmed));
        let by_hand = "it is not found; but this is still mounted at /t: block device 7:1; unmount it by hand, then the next try succeeds";
        for (known, has_call) in [(Known::Absent, true), (Known::Unsupported, false)] {
            assert_eq!(told(refused(known), has_call), (known, by_hand.to_owned()));
        }
        let denied = "it is not found; but it should have this call, so something may be left at /t: replace it by a plugin that answers it, or \
                      give that up by force";
        assert_eq!(told(refused(Known::Unsupported), true), (Known::Unsupported, denied.to_owned()));
    }
}
