//! What a claim leaves that was given up by force, or whose row was damaged: its target. It goes on being undone, and what it stood on is not
//! undone before the kernel shows nothing there (C131).

use std::path::Path;

use super::force::{ForceRelease, ForceScope};
use super::moves::Move;
use super::outcome::{Failure, Known, Seen};
use super::record::{Abandoned, Mark, Usage, VolumeChange};
use super::returning::Came;
use super::state::Volume;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

/// What was found last about an abandoned target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Found {
    /// Its publication could not be undone at the plugin.
    Unclear,
    /// The kernel shows nothing there.
    Nothing,
}

impl Volume {
    /// The targets that are abandoned if this is forced: of claims that may be published on what is kept.
    pub(super) fn abandoned_by(&self, asked: &ForceRelease) -> Vec<Abandoned> {
        let ForceScope::Claim(meant) = &asked.scope else { return Vec::new() };
        if self.lost.contains(meant) {
            return self.targets_of_lost(meant, false);
        }
        if self.is_shared_down() {
            return Vec::new();
        }
        // Only what is released can be forced.
        let target = |path| Abandoned { path, allocation: meant.clone(), is_ended: true };
        let claim = self.claims.get(meant).filter(|claim| !claim.record.publish.is_down());
        claim.map(|claim| target(claim.record.target_path.clone())).into_iter().collect()
    }

    /// Where a claim may be published whose row was damaged: all claims share one capability (C138), and only whether it reads is not known.
    pub(super) fn targets_of_lost(&self, allocation: &AllocationId, is_ended: bool) -> Vec<Abandoned> {
        let attached = self.record.attach.intent().map(|intent| &intent.args.capability);
        let staged = self.record.stage.intent().map(|intent| &intent.args.capability);
        let Some(capability) = staged.or(attached) else { return Vec::new() };
        let target = |read_only| {
            let usage = Usage { capability: capability.clone(), read_only };
            let path = self.config.layout.target(&self.record.spec.key, allocation, &usage);
            Abandoned { path, allocation: allocation.clone(), is_ended }
        };
        [false, true].map(target).into()
    }

    /// The abandoned targets that are undone whatever else is held: their processes have ended, and no claim may be published there (V14).
    pub(super) fn ended_targets(&self) -> impl Iterator<Item = &Abandoned> {
        let is_used = |target: &Abandoned| {
            let mut claims = self.claims.values().filter(|claim| claim.record.target_path == target.path);
            claims.any(|claim| claim.is_provisional || !claim.record.publish.is_down())
        };
        self.abandoned.iter().filter(move |target| target.is_ended && !is_used(target))
    }

    pub(super) fn abandoned_at(&self, path: &Path) -> Option<&Abandoned> {
        self.abandoned.iter().find(|target| target.path == path)
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

    /// A claim is published, at a path where nothing was mounted before: nothing is left there of an earlier claim, and what is mounted there now
    /// is undone with this one.
    pub(super) fn supersede_abandoned(&mut self, id: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(claim) = self.claims.get(id) else { return };
        let path = &claim.record.target_path;
        if let Some(target) = self.abandoned.iter().find(|target| target.path == *path).cloned() {
            self.abandoned.remove(&target);
            cx.persist(VolumeChange::ForgetAbandoned(target.path));
        }
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

    /// What is done next about an abandoned target. While a process may use it, it is looked at until the kernel shows nothing there. Then, or at
    /// once, its publication is undone at the plugin (C133), and when that fails it is looked at what is left of it.
    pub(super) fn abandoned_move(&self, target: &Abandoned) -> Move {
        let found = self.found.as_ref().filter(|(path, _)| *path == target.path).map(|(_, found)| *found);
        let (path, is_gone) = (target.path.clone(), found == Some(Found::Nothing));
        match is_gone || target.is_ended && found.is_none() {
            true => Move::UnpublishAbandoned { path, is_gone },
            false => Move::LookAtAbandoned(path),
        }
    }

    /// The plugin was asked to undo what was published at an abandoned target. Such a claim was given up since these calls failed: when nothing is
    /// mounted there, they are not repeated without end.
    pub(super) fn abandoned_undone(&mut self, undo: &Move, came: Came, cx: &mut StepContext<Self>) {
        let Move::UnpublishAbandoned { path, is_gone } = undo else { return };
        if let Some(failure) = came.not_down(undo) {
            let is_last = self.try_failed(cx.moment(), undo, &failure);
            let is_final = is_last || matches!(failure.known, Known::Refused | Known::Unsupported);
            if !is_gone || !is_final {
                self.found = Some((path.clone(), Found::Unclear));
                return;
            }
        }
        self.abandoned_tries = Default::default();
        self.abandoned.retain(|target| target.path != *path);
        cx.persist(VolumeChange::ForgetAbandoned(path.clone()));
    }

    /// An abandoned target was looked at.
    pub(super) fn abandoned_seen(&mut self, path: &Path, seen: Seen, cx: &mut StepContext<Self>) {
        let Some(target) = self.abandoned_at(path).cloned() else { return };
        let (allocation, shown) = (&target.allocation, path.display());
        let (what, remedy) = match seen {
            Seen::Nothing => {
                self.found = Some((target.path, Found::Nothing));
                return;
            }
            Seen::Present(Mark::Device(device)) => (format!("device {device} is at {shown}"), "remove it"),
            Seen::Present(mark) => (format!("{mark} is at {shown}"), "unmount it"),
            Seen::BareStaging => (format!("the staging directory is mounted at {shown}"), "unmount it"),
            Seen::Dead(reason) | Seen::Unclear(reason) => {
                (format!("{shown} cannot be looked at ({reason})"), "unmount it if it is mounted")
            }
        };
        let reason = match self.abandoned_tries.error.as_deref() {
            Some(refused) if target.is_ended => format!(
                "{what}, from the claim of {allocation}, whose processes have ended; {refused}; {remedy}, and what it stands on is undone"
            ),
            _ => format!(
                "{what}, from the claim of {allocation}; look whether a process still uses it, {remedy}, and what it stands on is undone"
            ),
        };
        // It is no try of the undo.
        let failure = Failure { known: Known::NotMade, reason };
        self.try_failed(cx.moment(), &Move::LookAtAbandoned(target.path), &failure);
    }
}
