//! Classifies failed calls: the known effect, and the recommended reaction (table C.6, V4).

use super::call::Call;
use super::failure::Failure;
use crate::rpc::Code;

/// The known effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// The plugin reports that this call had no effect. Effects of earlier calls stay: every path that was ever staged or published still
    /// gets its undo (V5).
    NotDone,
    /// It may have had an effect. Only the same call or its inverse resolves this (V4); until then it counts as up when tearing down,
    /// and as down when setting up.
    Unknown,
    /// Another call on the same object is pending at the plugin (C003). The effect of that other call is unknown.
    InProgress,
}

/// The recommended reaction to a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reaction {
    /// Repeat the same call, with the same fields (C013), after an exponential backoff.
    Retry,
    /// Repeat it likewise, over a new lease: this generation takes no more calls.
    NewLease,
    /// Repeat it in the next run of the host: this one is stopping, and gives no more leases.
    NextRun,
    /// Begin the list again with an empty token (C093).
    RestartList,
    /// Repeat it when there is room: fewer volumes on the node (C078), more capacity, a larger quota.
    MakeRoom,
    /// Repeat it when its precondition is met: a volume in use is released, detached elsewhere or taken offline (C065, C077, C113,
    /// C129).
    MeetPrecondition,
    /// Check that the object exists and has this id, then repeat it. An undo of an object that is proven to be gone is done.
    Verify,
    /// Repeat it when an administrator has given the plugin a right (C018), or the secrets are repaired (C020).
    Authorize,
    /// Never repeat it unchanged: the same request fails again (C017, C152, C153).
    ChangeRequest,
    /// Never repeat it: the plugin lacks the capability (C019). Read its capabilities again.
    GiveUp,
    /// The answer breaks a rule: the same call most likely gets the same answer. Undo it, and report it to the vendor of the plugin.
    Report,
}

impl Reaction {
    /// Whether the same call may succeed after a pause, without any other action.
    #[must_use]
    pub const fn is_retry(self) -> bool {
        matches!(self, Self::Retry | Self::NewLease | Self::RestartList)
    }

    /// Whether the same call must never be repeated unchanged.
    #[must_use]
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::ChangeRequest | Self::GiveUp)
    }
}

/// The meaning of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outcome {
    /// Its known effect.
    pub effect: Effect,
    /// The recommended reaction.
    pub reaction: Reaction,
}

const fn outcome(effect: Effect, reaction: Reaction) -> Outcome {
    Outcome { effect, reaction }
}

/// The reaction when the lease has ended.
const fn elsewhere(host_stops: bool) -> Reaction {
    if host_stops { Reaction::NextRun } else { Reaction::NewLease }
}

impl Outcome {
    /// Classifies the failure of this call. A call that only reads has no effect, however it fails.
    #[must_use]
    pub fn of(call: Call, failure: &Failure) -> Self {
        let found = match failure {
            Failure::Request(fault) if fault.is_unsupported() => outcome(Effect::NotDone, Reaction::GiveUp),
            Failure::Request(_) => outcome(Effect::NotDone, Reaction::ChangeRequest),
            Failure::LeaseEnded { host_stops, .. } => outcome(Effect::NotDone, elsewhere(*host_stops)),
            Failure::TooMany { .. } => outcome(Effect::NotDone, Reaction::Retry),
            Failure::Lost { host_stops, .. } => outcome(Effect::Unknown, elsewhere(*host_stops)),
            Failure::DeadlineExceeded { .. } => outcome(Effect::Unknown, Reaction::Retry),
            Failure::Status { code, .. } => Self::of_code(call, *code),
            Failure::Answer(_) => outcome(Effect::Unknown, Reaction::Report),
        };
        if call.has_effect() { found } else { Self { effect: Effect::NotDone, ..found } }
    }

    fn of_code(call: Call, code: Code) -> Self {
        let unclear = outcome(Effect::Unknown, Reaction::Retry);
        let refused = |reaction| outcome(Effect::NotDone, reaction);
        match code {
            Code::Ok => outcome(Effect::Unknown, Reaction::Report),
            Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unavailable
            | Code::Internal
            | Code::DataLoss => unclear,
            Code::Aborted if call.lists() => refused(Reaction::RestartList),
            Code::Aborted => outcome(Effect::InProgress, Reaction::Retry),
            Code::ResourceExhausted if call.takes_snapshots() => refused(Reaction::MakeRoom),
            Code::ResourceExhausted => outcome(Effect::Unknown, Reaction::MakeRoom),
            Code::InvalidArgument => refused(Reaction::ChangeRequest),
            Code::PermissionDenied | Code::Unauthenticated => refused(Reaction::Authorize),
            Code::Unimplemented => refused(Reaction::GiveUp),
            // According to the plugin, an object that is not found cannot be up; the kernel may know better.
            Code::NotFound if call.is_undo() => outcome(Effect::Unknown, Reaction::Verify),
            Code::NotFound => refused(Reaction::Verify),
            Code::FailedPrecondition if call == Call::NodeExpandVolume => refused(Reaction::ChangeRequest),
            // These codes have a meaning only where the specification lists them (C022).
            Code::FailedPrecondition if call.has_preconditions() => refused(Reaction::MeetPrecondition),
            Code::AlreadyExists if call.inverse().is_some() => refused(Reaction::ChangeRequest),
            Code::OutOfRange if call.has_range() => refused(Reaction::ChangeRequest),
            Code::FailedPrecondition | Code::AlreadyExists | Code::OutOfRange => unclear,
        }
    }
}

impl Call {
    /// Whether it answers page by page.
    const fn lists(self) -> bool {
        matches!(self, Self::ListVolumes | Self::ListSnapshots)
    }

    /// Whether it takes snapshots: it fails without room for a snapshot (C105).
    const fn takes_snapshots(self) -> bool {
        matches!(self, Self::CreateSnapshot | Self::CreateVolumeGroupSnapshot)
    }

    /// Whether `FAILED_PRECONDITION` is among its errors in the specification.
    const fn has_preconditions(self) -> bool {
        matches!(
            self,
            Self::DeleteVolume
                | Self::ControllerPublishVolume
                | Self::DeleteSnapshot
                | Self::ControllerExpandVolume
                | Self::CreateVolumeGroupSnapshot
                | Self::DeleteVolumeGroupSnapshot
                | Self::GetMetadataAllocated
                | Self::GetMetadataDelta
                | Self::NodeStageVolume
                | Self::NodePublishVolume
        )
    }

    /// Whether `OUT_OF_RANGE` is among its errors in the specification.
    const fn has_range(self) -> bool {
        matches!(
            self,
            Self::CreateVolume
                | Self::ControllerExpandVolume
                | Self::NodeExpandVolume
                | Self::GetMetadataAllocated
                | Self::GetMetadataDelta
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::rules;
    use super::*;
    use crate::rpc::Problem;

    fn of(call: Call, code: Code) -> Outcome {
        Outcome::of(call, &Failure::Status { code, message: String::new() })
    }

    fn reactions(call: Call) -> BTreeMap<&'static str, Reaction> {
        Code::ALL.into_iter().map(|code| (code.as_str(), of(call, code).reaction)).collect()
    }

    #[test]
    fn what_only_reads_has_no_effect_however_it_fails_c016() {
        for call in Call::ALL.into_iter().filter(|call| !call.has_effect()) {
            assert!(Code::ALL.iter().all(|code| of(call, *code).effect == Effect::NotDone), "{call}");
            let lost = Failure::Lost { detail: "broken pipe".to_owned(), host_stops: false };
            assert_eq!(Outcome::of(call, &lost), outcome(Effect::NotDone, Reaction::NewLease), "{call}");
        }
    }

    /// Holds C003.
    #[test]
    fn an_unclear_code_leaves_every_step_unknown_and_is_repeated_c012_c016_v4() {
        let unclear = [
            Code::Cancelled,
            Code::Unknown,
            Code::DeadlineExceeded,
            Code::Unavailable,
            Code::Internal,
            Code::DataLoss,
        ];
        for call in Call::ALL.into_iter().filter(|call| call.has_effect()) {
            for code in unclear {
                assert_eq!(of(call, code), outcome(Effect::Unknown, Reaction::Retry), "{call} {code}");
            }
            let exhausted = of(call, Code::ResourceExhausted);
            let effect = if call.takes_snapshots() { Effect::NotDone } else { Effect::Unknown };
            assert_eq!(exhausted, outcome(effect, Reaction::MakeRoom), "{call}");
            assert_eq!(of(call, Code::Aborted), outcome(Effect::InProgress, Reaction::Retry), "{call}");
        }
    }

    #[test]
    fn a_snapshot_without_room_fails_c105() {
        for call in [Call::CreateSnapshot, Call::CreateVolumeGroupSnapshot] {
            let full = of(call, Code::ResourceExhausted);
            assert_eq!(full, outcome(Effect::NotDone, Reaction::MakeRoom), "{call}");
            assert!(!full.reaction.is_retry(), "{call}");
        }
    }

    /// Holds C104 and C108.
    #[test]
    fn a_final_code_is_never_repeated_unchanged_c017_c018_c019_c020() {
        for call in Call::ALL {
            let expected = [
                (Code::InvalidArgument, Reaction::ChangeRequest, true),
                (Code::Unimplemented, Reaction::GiveUp, true),
                (Code::PermissionDenied, Reaction::Authorize, false),
                (Code::Unauthenticated, Reaction::Authorize, false),
            ];
            for (code, reaction, is_permanent) in expected {
                assert_eq!(of(call, code), outcome(Effect::NotDone, reaction), "{call} {code}");
                assert_eq!((reaction.is_permanent(), reaction.is_retry()), (is_permanent, false));
            }
        }
    }

    #[test]
    fn a_code_that_a_call_does_not_list_leaves_the_outcome_unknown_c022() {
        for (call, code) in [
            (Call::NodeUnstageVolume, Code::FailedPrecondition),
            (Call::NodeUnpublishVolume, Code::AlreadyExists),
            (Call::ControllerUnpublishVolume, Code::OutOfRange),
            (Call::DeleteVolume, Code::AlreadyExists),
            (Call::NodePublishVolume, Code::OutOfRange),
        ] {
            assert_eq!(of(call, code), outcome(Effect::Unknown, Reaction::Retry), "{call} {code}");
        }
    }

    #[test]
    fn what_a_step_depends_on_is_put_right_first_c065_c077_c078_c113_c129() {
        for call in [
            Call::DeleteVolume,
            Call::DeleteSnapshot,
            Call::ControllerPublishVolume,
            Call::ControllerExpandVolume,
            Call::NodeStageVolume,
            Call::NodePublishVolume,
        ] {
            let refused = outcome(Effect::NotDone, Reaction::MeetPrecondition);
            assert_eq!(of(call, Code::FailedPrecondition), refused, "{call}");
        }
        let full = of(Call::ControllerPublishVolume, Code::ResourceExhausted).reaction;
        assert!(!full.is_retry() && !full.is_permanent());
    }

    #[test]
    fn an_expansion_on_the_node_is_not_repeated_over_a_precondition_or_a_range_c152_c153() {
        for code in [Code::FailedPrecondition, Code::OutOfRange] {
            let refused = outcome(Effect::NotDone, Reaction::ChangeRequest);
            assert_eq!(of(Call::NodeExpandVolume, code), refused, "{code}");
        }
    }

    #[test]
    fn what_exists_with_other_arguments_is_not_asked_for_again_c063_c077_c129() {
        for call in Call::ALL.into_iter().filter(|call| call.inverse().is_some()) {
            let refused = outcome(Effect::NotDone, Reaction::ChangeRequest);
            assert_eq!(of(call, Code::AlreadyExists), refused, "{call}");
        }
    }

    #[test]
    fn what_is_not_found_is_verified_and_an_undo_of_it_is_not_done_for_that_c082_c143() {
        for call in Call::ALL.into_iter().filter(|call| call.has_effect()) {
            let effect = if call.is_undo() { Effect::Unknown } else { Effect::NotDone };
            assert_eq!(of(call, Code::NotFound), outcome(effect, Reaction::Verify), "{call}");
        }
    }

    #[test]
    fn a_list_whose_token_is_stale_begins_again_c093() {
        for call in [Call::ListVolumes, Call::ListSnapshots] {
            assert_eq!(of(call, Code::Aborted).reaction, Reaction::RestartList);
            assert!(Reaction::RestartList.is_retry());
        }
        assert_eq!(reactions(Call::GetCapacity)["ABORTED"], Reaction::Retry);
    }

    #[test]
    fn without_an_answer_only_what_was_sent_is_unknown_v4() {
        let stage = |failure: &Failure| Outcome::of(Call::NodeStageVolume, failure);
        let fault = |problem| rules::fault("C120", "NodeStageVolume", problem);
        let detail = || "why".to_owned();
        let cases = [
            (
                Failure::Request(fault(Problem::Unsupported { capability: "X" })),
                Effect::NotDone,
                Reaction::GiveUp,
            ),
            (Failure::Request(fault(Problem::Empty)), Effect::NotDone, Reaction::ChangeRequest),
            (
                Failure::LeaseEnded { detail: detail(), host_stops: false },
                Effect::NotDone,
                Reaction::NewLease,
            ),
            (Failure::LeaseEnded { detail: detail(), host_stops: true }, Effect::NotDone, Reaction::NextRun),
            (Failure::TooMany { detail: detail() }, Effect::NotDone, Reaction::Retry),
            (Failure::Lost { detail: detail(), host_stops: false }, Effect::Unknown, Reaction::NewLease),
            (Failure::Lost { detail: detail(), host_stops: true }, Effect::Unknown, Reaction::NextRun),
            (Failure::DeadlineExceeded { after: Duration::from_secs(1) }, Effect::Unknown, Reaction::Retry),
            (Failure::Answer(fault(Problem::Empty)), Effect::Unknown, Reaction::Report),
        ];
        for (failure, effect, reaction) in cases {
            assert_eq!(stage(&failure), outcome(effect, reaction), "{failure:?}");
        }
        assert_eq!(of(Call::CreateVolume, Code::Ok), outcome(Effect::Unknown, Reaction::Report));
    }
}
