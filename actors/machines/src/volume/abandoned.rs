//! What a claim leaves that was given up by force: its target, above which nothing stands in the way of undoing what claims share (C131).

use std::path::Path;

use super::force::{ForceRelease, ForceScope};
use super::moves::Move;
use super::outcome::{Failure, Known, Seen};
use super::record::{Abandoned, Mark, Usage, VolumeChange};
use super::state::Volume;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

impl Volume {
    /// The targets that are abandoned if this is forced: of claims that may be published on what is kept.
    pub(super) fn abandoned_by(&self, asked: &ForceRelease) -> Vec<Abandoned> {
        let ForceScope::Claim(meant) = &asked.scope else { return Vec::new() };
        if self.lost.contains(meant) {
            return self.targets_of_lost(meant);
        }
        if self.is_shared_down() {
            return Vec::new();
        }
        let claim = self.claims.get(meant).filter(|claim| !claim.record.publish.is_down());
        let target = |path| Abandoned { path, allocation: meant.clone() };
        claim.map(|claim| target(claim.record.target_path.clone())).into_iter().collect()
    }

    /// Where a claim may be published whose row was damaged: all claims share one capability (C138), and only whether it reads is not known.
    pub(super) fn targets_of_lost(&self, allocation: &AllocationId) -> Vec<Abandoned> {
        let attached = self.record.attach.intent().map(|intent| &intent.args.capability);
        let staged = self.record.stage.intent().map(|intent| &intent.args.capability);
        let Some(capability) = staged.or(attached) else { return Vec::new() };
        let target = |read_only| {
            let usage = Usage { capability: capability.clone(), read_only };
            let path = self.config.layout.target(&self.record.spec.key, allocation, &usage);
            Abandoned { path, allocation: allocation.clone() }
        };
        [false, true].map(target).into()
    }

    /// The abandoned targets, in words.
    pub(super) fn abandoned_words(&self) -> Vec<String> {
        let words = |target: &Abandoned| {
            format!(
                "what may be mounted at {}, from the claim of {}",
                target.path.display(),
                target.allocation
            )
        };
        self.abandoned.iter().map(words).collect()
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
        let (what, remedy) = match seen {
            Seen::Nothing => {
                self.abandoned_tries = Default::default();
                self.abandoned.remove(&target);
                cx.persist(VolumeChange::ForgetAbandoned(target.path));
                return;
            }
            Seen::Present(Mark::Device(device)) => (format!("device {device} is at {path}"), "remove it"),
            Seen::Present(mark) => (format!("{mark} is at {path}"), "unmount it"),
            Seen::BareStaging => (format!("the staging directory is mounted at {path}"), "unmount it"),
            Seen::Dead(reason) | Seen::Unclear(reason) => {
                (format!("{path} cannot be looked at ({reason})"), "unmount it if it is mounted")
            }
        };
        let reason = format!(
            "{what}, from the claim of {allocation}; look whether a process still uses it, {remedy}, and what it stands on is undone"
        );
        let failure = Failure { known: Known::NotNow, reason };
        self.try_failed(cx.moment(), &Move::LookAtAbandoned(target.path.clone()), &failure);
    }
}
