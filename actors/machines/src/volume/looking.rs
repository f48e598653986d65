//! Handles the results of looks at the paths of a volume (V7).

use std::path::Path;

use super::mark::{Mark, Proof};
use super::messages::{ClaimError, VolumeAnswer};
use super::news::VolumeNews;
use super::operation::Operation;
use super::outcome::{Failure, Known, Seen};
use super::record::{Step, Towards};
use super::state::Volume;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

impl Volume {
    /// A staging path was looked at before it is reused.
    pub(super) fn stage_seen(&mut self, seen: Seen, cx: &mut StepContext<Self>) {
        let Step::Up(_, proof) = &self.record.stage else { return };
        match agrees(proof, &seen) {
            Ok(true) => self.is_stage_proven = true,
            Ok(false) => self.staging_is_lost(&seen, cx),
            Err(reason) => {
                let failure = Failure { known: Known::Unclear, reason };
                if self.try_failed(cx.moment(), &Operation::LookAtStage, &failure) {
                    self.give_up(&Operation::LookAtStage, &failure.reason, cx);
                }
            }
        }
    }

    /// A target path was looked at before it is handed out again.
    pub(super) fn target_seen(&mut self, id: &AllocationId, seen: Seen, cx: &mut StepContext<Self>) {
        let Some(claim) = self.claims.get_mut(id) else { return };
        let Step::Up(intent, proof) = &claim.record.publish else { return };
        match agrees(proof, &seen) {
            Ok(true) => {
                claim.is_proven = true;
                claim.tries = Default::default();
                self.supersede_abandoned(id, cx);
            }
            Ok(false) => {
                cx.publish(mount_lost(&claim.record.target_path, proof, &seen));
                claim.record.publish = Step::Unknown(Towards::Up, intent.clone());
                claim.is_stale = true;
            }
            // Its users are not disturbed: it stays, and callers get the error that it is not proven.
            Err(reason) => {
                let path = claim.record.target_path.clone();
                claim.tries.hold(&reason);
                let waiters = std::mem::take(&mut claim.waiters);
                let volume = self.record.spec.key.clone();
                let error = ClaimError::Unproven { volume, path, reason };
                for waiter in waiters {
                    self.answer(waiter, VolumeAnswer::Claim(Err(error.clone())), cx);
                }
            }
        }
    }

    /// The plugin refuses a publication for now. It may have forgotten that the volume is staged, even where the kernel shows a mount, and
    /// that may be the reason of the refusal (C.6): it is asked to stage the volume again, with the same arguments, unless the volume is
    /// published for another claim, or may be.
    pub(super) fn doubt_staging_of_refused(&mut self, id: &AllocationId) {
        let Step::Up(intent, _) = &self.record.stage else { return };
        if !self.node().is_some_and(|node| node.stages) {
            return;
        }
        let is_unused =
            self.claims.iter().all(|(other, claim)| other == id || claim.record.publish.is_down());
        if is_unused && self.abandoned.is_empty() && self.lost.is_empty() {
            self.record.stage = Step::Unknown(Towards::Up, intent.clone());
        }
    }

    /// A staging path does not have the recorded mount.
    fn staging_is_lost(&mut self, seen: &Seen, cx: &mut StepContext<Self>) {
        let Step::Up(intent, proof) = &self.record.stage else { return };
        if proof.mark.is_some() {
            cx.publish(mount_lost(&intent.args.staging_path, proof, seen));
        }
        // A missing staging is unknown (V14); it is written to the ledger when it is undone.
        self.record.stage = Step::Unknown(Towards::Up, intent.clone());
        self.is_stage_stale = true;
    }

    /// Nothing is mounted where the volume is staged, and the plugin has published that directory for this claim: the mount was lost, or
    /// the plugin never made one. The staging is undone and made again, unless it never had a mount and other claims are published from it.
    pub(super) fn doubt_staging(&mut self, id: &AllocationId, cx: &mut StepContext<Self>) {
        let Step::Up(_, proof) = &self.record.stage else { return };
        let had_mount = proof.mark.is_some();
        if had_mount || self.claims.iter().all(|(other, claim)| other == id || claim.record.publish.is_down())
        {
            self.staging_is_lost(&Seen::Nothing, cx);
        }
    }
}

/// The news that a path does not have the recorded mount.
fn mount_lost(path: &Path, proof: &Proof, seen: &Seen) -> VolumeNews {
    let before = proof.mark.as_ref().map_or_else(|| "nothing".to_owned(), Mark::to_string);
    let now = match seen {
        Seen::Present(mark) => format!("there is {mark} now"),
        Seen::BareStaging => "there is the staging directory now".to_owned(),
        Seen::Nothing => "there is nothing now".to_owned(),
        Seen::Dead(reason) | Seen::Unclear(reason) => format!("it does not answer: {reason}"),
    };
    VolumeNews::MountLost { path: path.to_owned(), reason: format!("it was {before}, and {now}") }
}

/// Whether the observed mount is the recorded one; the reason if that is unknown.
fn agrees(proof: &Proof, seen: &Seen) -> Result<bool, String> {
    match (seen, &proof.mark) {
        (Seen::Unclear(reason), _) => Err(reason.clone()),
        (Seen::Present(mark), Some(recorded)) => Ok(recorded.is(mark)),
        (Seen::Nothing, None) => Ok(true),
        (Seen::Present(_), None) | (Seen::Nothing, Some(_)) | (Seen::BareStaging | Seen::Dead(_), _) => {
            Ok(false)
        }
    }
}
