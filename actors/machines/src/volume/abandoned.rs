//! What a claim leaves that was given up by force: its target, above which nothing stands in the way of undoing what claims share (C131).

use std::path::Path;

use super::force::{ForceRelease, ForceScope};
use super::moves::Move;
use super::outcome::{Failure, Known, Seen};
use super::record::{Abandoned, VolumeChange};
use super::state::Volume;
use crate::kernel::StepContext;

impl Volume {
    /// The targets that are abandoned if this is forced: of claims that may be published on what is kept.
    pub(super) fn abandoned_by(&self, asked: &ForceRelease) -> Vec<Abandoned> {
        let ForceScope::Claim(meant) = &asked.scope else { return Vec::new() };
        if self.record.stage.is_down() && self.record.attach.is_down() {
            return Vec::new();
        }
        let claim = self.claims.get(meant).filter(|claim| !claim.record.publish.is_down());
        let target = |path| Abandoned { path, allocation: meant.clone() };
        claim.map(|claim| target(claim.record.target_path.clone())).into_iter().collect()
    }

    /// Forgets the abandoned targets when nothing is left that is undone after them.
    pub(super) fn forget_abandoned(&mut self, cx: &mut StepContext<Self>) {
        if !self.is_down() {
            return;
        }
        for target in std::mem::take(&mut self.abandoned) {
            cx.persist(VolumeChange::ForgetAbandoned(target.path));
        }
    }

    /// An abandoned target was looked at.
    pub(super) fn abandoned_seen(&mut self, path: &Path, seen: Seen, cx: &mut StepContext<Self>) {
        let Some(target) = self.abandoned.iter().find(|target| target.path == path).cloned() else { return };
        let (allocation, path) = (&target.allocation, path.display());
        let reason = match seen {
            Seen::Nothing => {
                self.abandoned_tries = Default::default();
                self.abandoned.remove(&target);
                cx.persist(VolumeChange::ForgetAbandoned(target.path));
                return;
            }
            Seen::Present(mark) => format!("{mark} is at {path}"),
            Seen::BareStaging => format!("the staging directory is at {path}"),
            Seen::Dead(reason) | Seen::Unclear(reason) => format!("{path} cannot be looked at: {reason}"),
        };
        let reason = format!(
            "{reason}, from the claim of {allocation}; look whether a process still uses it, unmount it, and what it stands on is undone"
        );
        let failure = Failure { known: Known::NotNow, reason };
        self.try_failed(cx.moment(), &Move::LookAtAbandoned(target.path.clone()), &failure);
    }
}
