//! Undoes the target of a claim that was given up by force, or whose row was damaged. Staging and attachment are undone only after the
//! kernel shows nothing there (C131), and the volume is down only after the target is undone.

use std::path::{Path, PathBuf};

use super::force::{Abandoned, ForceRelease, ForceScope};
use super::mark::Mark;
use super::messages::{Claim, ClaimError};
use super::operation::Operation;
use super::outcome::{Failure, Known, Seen};
use super::record::{Usage, VolumeChange};
use super::state::{self, Tries, Volume};
use super::step_result::StepResult;
use crate::csi::VolumeCapability;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

/// An abandoned target, and the progress of its undo.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) record: Abandoned,
    pub(super) tries: Tries,
    found: Option<Found>,
    /// The number of undos that have failed at the plugin since the kernel has shown nothing there.
    failed: u32,
}

/// The last result for an abandoned target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Found {
    /// Its publication could not be undone at the plugin.
    NotUndone,
    /// The kernel has shown nothing there.
    Nothing,
}

impl Target {
    pub(super) fn new(record: Abandoned) -> Self {
        Self { record, tries: Tries::default(), found: None, failed: 0 }
    }

    /// The plugin has changed, or a caller asks for it: it is tried at once, by the present state in the kernel.
    pub(super) fn again(&mut self) {
        self.tries.again();
        self.found = None;
    }

    /// While a process may use the target, it is looked at until the kernel shows nothing there. Then, or at once when its claim was
    /// released, its publication is undone at the plugin (C133); when that fails, or the plugin is away, the target is looked at.
    fn next(&self, has_node: bool) -> Operation {
        let path = self.record.path.clone();
        match self.found {
            Some(Found::Nothing) => Operation::UnpublishAbandoned(path),
            None if self.record.is_released && has_node => Operation::UnpublishAbandoned(path),
            Some(Found::NotUndone) | None => Operation::LookAtAbandoned(path),
        }
    }
}

impl Volume {
    /// The targets that are abandoned if this is forced: of claims that may be published from a step that is kept.
    pub(super) fn abandoned_by(&self, asked: &ForceRelease) -> Vec<Abandoned> {
        let ForceScope::Claim(meant) = &asked.scope else { return Vec::new() };
        if self.is_shared_down() {
            return Vec::new();
        }
        if self.lost.contains(meant) {
            return self.targets_of_lost(meant, false);
        }
        // Only a released claim can be forced.
        let target = |path| Abandoned { path, allocation: meant.clone(), is_released: true };
        let claim = self.claims.get(meant).filter(|claim| !claim.record.publish.is_down());
        claim.map(|claim| target(claim.record.target_path.clone())).into_iter().collect()
    }

    /// Whether a claim can be held beside the abandoned targets, which count as published for writing (V12).
    pub(super) fn admit_beside_abandoned(&self, asked: &Claim) -> Result<(), ClaimError> {
        let reason = match self.shared_capability() {
            Some(capability) => {
                let left = Usage { capability: capability.clone(), read_only: false };
                left.excludes(&self.asked_as(&asked.usage))
            }
            None => Some("it is not known how that claim uses the volume"),
        };
        let is_known = self.claims.contains_key(&asked.allocation);
        let Some(reason) = reason.filter(|_| !is_known) else { return Ok(()) };
        let mut others = self.abandoned.values().map(|target| &target.record);
        match others.find(|other| other.allocation != asked.allocation) {
            None => Ok(()),
            Some(Abandoned { allocation, .. }) => {
                let (volume, holder) = (self.record.spec.key.clone(), allocation.clone());
                Err(ClaimError::Abandoned { volume, holder, reason })
            }
        }
    }

    /// The paths where a claim with a damaged row may be published: whether it reads is not known, nor whether its mode was replaced
    /// (C154). If its plugin neither stages nor attaches and no other claim is left, nothing of its usage is known: then these are the
    /// paths of all access types and modes.
    pub(super) fn targets_of_lost(&self, allocation: &AllocationId, is_released: bool) -> Vec<Abandoned> {
        let of_other = || self.claims.values().next().map(|other| &other.record.usage.capability);
        let claimed = match self.shared_capability().or_else(of_other) {
            Some(shared) => shared.claimed_as(),
            None => VolumeCapability::any(),
        };
        let target = |capability: &VolumeCapability, read_only| {
            let usage = Usage { capability: capability.clone(), read_only };
            let path = self.config.layout.target(&self.record.spec.key, allocation, &usage);
            Abandoned { path, allocation: allocation.clone(), is_released }
        };
        claimed.iter().flat_map(|claimed| [false, true].map(|read_only| target(claimed, read_only))).collect()
    }

    /// Adds a target, and returns it as it is kept. A process of an earlier claim with the same target may be left.
    pub(super) fn abandon(&mut self, mut record: Abandoned) -> Abandoned {
        let earlier = self.abandoned.get(&record.path);
        record.is_released &= earlier.is_none_or(|earlier| earlier.record.is_released);
        self.abandoned.insert(record.path.clone(), Target::new(record.clone()));
        record
    }

    /// No process of an allocation uses any of its abandoned targets from now on.
    pub(super) fn let_go_abandoned(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let of_it = self.abandoned.values_mut().filter(|target| target.record.allocation == *allocation);
        for target in of_it {
            if !std::mem::replace(&mut target.record.is_released, true) {
                cx.persist(VolumeChange::KeepAbandoned(target.record.clone()));
            }
        }
    }

    /// The abandoned targets, in words.
    pub(super) fn abandoned_words(&self) -> Vec<String> {
        let words = |Abandoned { path, allocation, .. }: &Abandoned| {
            format!("what may be mounted at {}, from the claim of {allocation}", path.display())
        };
        self.abandoned.values().map(|target| words(&target.record)).collect()
    }

    /// The next operation of each abandoned target at which no claim may be published, whatever else is held. Claims of an earlier run are
    /// confirmed before (V14).
    pub(super) fn abandoned_operations(&self) -> impl Iterator<Item = Operation> {
        let has_node = self.node().is_some();
        let is_in_the_way = |claim: &state::Claim, path: &Path| {
            claim.is_provisional || claim.record.target_path == path && !claim.record.publish.is_down()
        };
        let is_idle = move |target: &&Target| {
            !self.claims.values().any(|claim| is_in_the_way(claim, &target.record.path))
        };
        self.abandoned.values().filter(is_idle).map(move |target| target.next(has_node))
    }

    /// The next operation of the abandoned target at which a claim is to be published.
    pub(super) fn abandoned_operation_at(&self, path: &Path) -> Option<Operation> {
        self.abandoned.get(path).map(|target| target.next(self.node().is_some()))
    }

    /// A claim is published, and the mount at its path is undone with it.
    pub(super) fn supersede_abandoned(&mut self, id: &AllocationId, cx: &mut StepContext<Self>) {
        let path = self.claims.get(id).map(|claim| claim.record.target_path.clone());
        if let Some(path) = path.filter(|path| self.abandoned.contains_key(path)) {
            self.forget_target(path, cx);
        }
    }

    /// Forgets the abandoned targets that are only looked at, when nothing is left that has to be undone after them.
    pub(super) fn forget_abandoned(&mut self, cx: &mut StepContext<Self>) {
        if self.is_shared_down() && self.are_unpublished() {
            self.forget_targets(|target| !target.record.is_released, cx);
        }
    }

    /// Forgets these abandoned targets.
    pub(super) fn forget_targets(&mut self, is_meant: fn(&Target) -> bool, cx: &mut StepContext<Self>) {
        let meant = self.abandoned.iter().filter(|(_, target)| is_meant(target));
        let paths: Vec<_> = meant.map(|(path, _)| path.clone()).collect();
        paths.into_iter().for_each(|path| self.forget_target(path, cx));
    }

    fn forget_target(&mut self, path: PathBuf, cx: &mut StepContext<Self>) {
        self.abandoned.remove(&path);
        cx.persist(VolumeChange::ForgetAbandoned(path));
    }

    /// The plugin was asked to undo the publication at an abandoned target. Such a claim was given up because these calls failed: when
    /// nothing is mounted there, they are not repeated without end.
    pub(super) fn abandoned_undone(&mut self, path: &Path, result: StepResult, cx: &mut StepContext<Self>) {
        let undo = Operation::UnpublishAbandoned(path.to_owned());
        if let Some(failure) = result.not_down(&undo, None, true) {
            self.try_failed(cx.moment(), &undo, &failure);
            let tries_max = self.config.options.tries_max;
            let Some(target) = self.abandoned.get_mut(path) else { return };
            let is_gone = target.found == Some(Found::Nothing);
            target.found = Some(Found::NotUndone);
            if failure.known == Known::NotMade || !is_gone {
                return;
            }
            target.failed += 1;
            let is_refused = matches!(failure.known, Known::Refused | Known::Unsupported);
            if !is_refused && target.failed < tries_max {
                return;
            }
        }
        self.forget_target(path.to_owned(), cx);
    }

    /// An abandoned target was looked at.
    pub(super) fn abandoned_seen(&mut self, path: &Path, seen: Seen, cx: &mut StepContext<Self>) {
        let Some(target) = self.abandoned.get_mut(path) else { return };
        let what = match seen {
            Seen::Nothing => {
                target.found = Some(Found::Nothing);
                return;
            }
            Seen::Present(Mark::Device { mount: None, device }) => format!("device {device} is there"),
            Seen::Present(mark) => format!("{mark} is there"),
            Seen::BareStaging => "the staging directory is mounted there".to_owned(),
            Seen::Dead(reason) | Seen::Unclear(reason) => format!("it cannot be checked ({reason})"),
        };
        let was_tried = target.found == Some(Found::NotUndone);
        (target.found, target.failed) = (None, 0);
        let Abandoned { allocation, is_released, .. } = &target.record;
        let reason = match (is_released, target.tries.error.as_deref().filter(|_| was_tried)) {
            (false, _) => format!(
                "{what}, from the claim of {allocation}, which was not released: unmount it when no process uses it any more"
            ),
            (true, Some(error)) => format!("{what}, from the claim of {allocation}; {error}; or unmount it"),
            (true, None) => {
                format!("{what}, from the claim of {allocation}; unmount it, or start its plugin")
            }
        };
        let failure = Failure { known: Known::NotNow, reason };
        self.try_failed(cx.moment(), &Operation::LookAtAbandoned(path.to_owned()), &failure);
    }
}
