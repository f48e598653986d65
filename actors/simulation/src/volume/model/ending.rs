//! Checks the final state of a volume once faults have stopped.

use callboard_actors::shell::Machine;
use callboard_actors::vocabulary::AllocationId;
use callboard_machines::volume::{Desired, VolumeImage};

use super::super::super::law::Law;
use super::super::node::StepOf;
use super::{VolumeModel, allocation, number_of};

impl VolumeModel {
    /// The world is at rest: everything that is held is set up, and nothing else is.
    pub(crate) fn check_end(&mut self) {
        let found = self.check_calm();
        if let Err((law, what)) = found {
            self.verdict.violation(law, || what);
        }
    }

    fn check_calm(&self) -> Result<(), (Law, String)> {
        if let Some((asker, asked)) = self.unanswered.iter().next() {
            return Err((Law::Shell7, format!("question {asker} was never answered: {asked:?}")));
        }
        let Some(machine) = self.owner.machine() else {
            return Err((Law::Shell4, "the volume does not live".to_owned()));
        };
        let status = machine.view();
        for claim in &status.claims {
            if claim.desired == Desired::Released {
                return Err((Law::V9, format!("{} is released, and not undone: {status}", claim.allocation)));
            }
            let is_held_up = status.doing.contains("other claims hold it");
            let is_damaged = self.owner.store.rows().lost.contains(&claim.allocation);
            if claim.publish != "up" && !is_held_up && !is_damaged {
                return Err((Law::V15, format!("{} waits for ever: {status}", claim.allocation)));
            }
        }
        for (number, user) in self.users.iter().filter(|(_, user)| user.is_holding || user.is_pending) {
            let has = status.claims.iter().any(|claim| number_of(&claim.allocation) == Some(*number));
            // A damaged claim can be given up while its processes live.
            if !has && !self.owner.store.is_damaged(&allocation(*number)) {
                let law = if user.is_holding { Law::V8 } else { Law::V15 };
                return Err((law, format!("a{number} has lost its claim: {status}")));
            }
        }
        let store = &self.owner.store;
        if store.forced() > self.published || !store.rows().audits.is_empty() {
            return Err((Law::V9, format!("a forced release has no audit that was published: {status}")));
        }
        self.check_grown()?;
        self.check_groups()?;
        self.check_nothing_is_left(status.claims.is_empty())
    }

    fn check_nothing_is_left(&self, is_unclaimed: bool) -> Result<(), (Law, String)> {
        let is_claimed = |path: &std::path::PathBuf| {
            let rows = self.owner.store.rows();
            let is_lost = |id: &AllocationId| path.to_string_lossy().contains(&format!("/per-alloc/{id}/"));
            rows.claims.iter().any(|claim| claim.target_path == *path) || rows.lost.iter().any(is_lost)
        };
        let left = self.node.mounts().find(|path| {
            let is_target = path.to_string_lossy().contains("/per-alloc/");
            is_target && !is_claimed(path) || !is_target && is_unclaimed
        });
        if let Some(left) = left.filter(|_| !self.is_forced) {
            return Err((Law::V5, format!("it has no claim, and {} is mounted", left.display())));
        }
        let step = self.node.maybe_up().find(|step| match step {
            StepOf::Publish(path) => !is_claimed(path),
            StepOf::Exist => false,
            StepOf::Attach | StepOf::Stage(_) => is_unclaimed,
        });
        if let Some(step) = step.filter(|_| !self.is_forced) {
            return Err((Law::V9, format!("it has no claim, and {step:?} may be up")));
        }
        // An order may wait for the next claim, or for its plugin.
        let rows = VolumeImage { orders: Vec::new(), ..self.owner.store.rows().clone() };
        if is_unclaimed && self.node.made.is_empty() && rows != VolumeImage::default() {
            return Err((Law::V9, format!("it has no claim, and rows are left in the ledger: {rows:?}")));
        }
        Ok(())
    }
}
