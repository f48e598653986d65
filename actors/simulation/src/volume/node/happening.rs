//! Events of a plugin and its mounts that come from outside.

use std::path::{Path, PathBuf};

use callboard_actors::vocabulary::AllocationId;
use callboard_machines::volume::{VolumeCall, VolumeOutcome};

use super::super::event::Answered;
use super::{Node, StepOf, Sure, step_of};

impl Node {
    /// The paths at which something is mounted.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = &PathBuf> {
        self.mounts.keys()
    }

    /// Unmounts the mount at this place from outside.
    pub(crate) fn pull_away(&mut self, place: usize) -> Option<PathBuf> {
        let path = self.mounts.keys().nth(place).cloned()?;
        self.mounts.remove(&path);
        self.bare.remove(&path);
        Some(path)
    }

    /// Every look at the mount at this place hangs.
    pub(crate) fn hang(&mut self, place: usize) {
        self.hung.extend(self.mounts.keys().nth(place).cloned());
    }

    /// Nothing hangs from now on, and operators unmount what was given up by force.
    pub(crate) fn heal(&mut self) {
        self.hung.clear();
        let is_used = |path: &&PathBuf| self.known.contains_key(&StepOf::Publish((*path).clone()));
        let given_up = self.abandoned.iter().chain(&self.left);
        let unused: Vec<_> = given_up.filter(|path| !is_used(path)).cloned().collect();
        unused.iter().for_each(|path| {
            self.mounts.remove(path);
        });
    }

    /// Another instance of the plugin serves. The call to the former one is cut, and its result is unclear.
    pub(crate) fn take_over(&mut self, stages: bool) -> Option<(u64, VolumeOutcome)> {
        self.generation += 1;
        // A plugin with other capabilities also knows other access modes.
        self.lacks_modes ^= self.stages != stages;
        self.stages = stages;
        self.answer(Answered::UnclearAfter)
    }

    /// Another host starts; the machine was booted in between, or not.
    pub(crate) fn begin_run(&mut self, is_reboot: bool) {
        self.seen.clear();
        if is_reboot {
            self.mounts.clear();
            self.bare.clear();
            self.hung.clear();
            // The plugin starts with the machine, and knows of no mount.
            let node = |step: &StepOf| matches!(step, StepOf::Stage(_) | StepOf::Publish(_));
            let steps: Vec<_> = self.known.keys().filter(|step| node(step)).cloned().collect();
            steps.into_iter().for_each(|step| self.note(step, Sure::Unsure));
        }
    }

    /// Its host gives up the claim of this allocation by force: operators must clean up its target.
    pub(crate) fn abandon(&mut self, allocation: &AllocationId) {
        let part = format!("/per-alloc/{allocation}/");
        let is_its =
            |step: &StepOf| matches!(step, StepOf::Publish(path) if path.to_string_lossy().contains(&part));
        let its: Vec<_> = self.known.keys().filter(|step| is_its(step)).cloned().collect();
        for step in its {
            if let StepOf::Publish(path) = &step {
                self.abandoned.insert(path.clone());
                if !self.is_unpublishing(path) {
                    self.owed.insert(path.clone());
                }
            }
            self.note(step, Sure::Down);
        }
        let flight = self.in_flight.as_mut();
        if let Some(flight) =
            flight.filter(|flight| step_of(&flight.call).is_some_and(|(step, _)| is_its(&step)))
        {
            flight.is_forgotten = true;
        }
    }

    /// Whether a target that was given up is mounted at the path of this step, which is certainly not set up.
    pub(in crate::volume) fn is_left_over(&self, step: &StepOf) -> bool {
        let is_down = self.sure(step) == Sure::Down;
        let is_given_up = |path: &PathBuf| self.abandoned.contains(path) || self.left.contains(path);
        is_down
            && matches!(step, StepOf::Publish(path) if is_given_up(path) && self.mounts.contains_key(path))
    }

    fn is_unpublishing(&self, path: &Path) -> bool {
        let call = self.in_flight.as_ref().map(|flight| &flight.call);
        matches!(call, Some(VolumeCall::Unpublish(_, _, other)) if other == path)
    }

    /// The obstacle to undoing the steps that claims share: an abandoned target at which something is mounted, or at which the plugin was
    /// not asked to undo anything.
    pub(crate) fn abandoned(&self) -> Option<(&PathBuf, &'static str)> {
        let mounted = self.abandoned.iter().find(|path| self.mounts.contains_key(*path));
        let owed = || self.owed.first().map(|path| (path, "was not unpublished"));
        mounted.map(|path| (path, "is mounted")).or_else(owed)
    }
}
