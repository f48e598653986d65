//! The steps of a simulated volume actor, and how they fail.

use std::sync::Arc;

use callboard_actors::shell::Ending;
use callboard_machines::volume::{
    ClaimError, CreateError, Created, DeleteError, Deleted, Done, OrderError, ReleaseError, VolumeAnswer,
    VolumeNews,
};
use callboard_machines::volumes::ChildEnded;

use super::child::{Child, Waits, claimed};
use super::event::VolumeAct;
use super::status::{allocation, created, key};
use super::volume::{Existence, Phase, VolumeModel};

/// One step that a volume does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ChildStep {
    Create,
    /// The creation in flight of a volume that is to be deleted reports the id.
    Find,
    Delete(u8),
    SetUp(u8),
    Undo(u8),
    Unstage,
    Order,
    Group,
}

impl VolumeModel {
    /// Whether a step can fail permanently. An undo is retried until it is confirmed, and a plugin does not refuse to delete a volume that
    /// does not exist (csi.proto, DeleteVolume: it replies OK).
    pub(super) const fn may_fail(&self, step: ChildStep) -> bool {
        match step {
            ChildStep::Create | ChildStep::Find | ChildStep::SetUp(_) => true,
            ChildStep::Delete(_) => self.there.is_some(),
            ChildStep::Undo(_) | ChildStep::Unstage | ChildStep::Order | ChildStep::Group => false,
        }
    }

    /// Its next step, if any. Claims of an earlier run wait for confirmation.
    pub(super) fn next_step(&self, child: &Child) -> Option<ChildStep> {
        let sets_up = !child.is_stopping;
        let claim = |phase| {
            let mut claims = self.claims.iter();
            claims.find(|(_, claim)| {
                claim.phase == phase && (phase != Phase::GoingUp || claim.run == child.run)
            })
        };
        match self.existence {
            Some(Existence::BeingCreated) if sets_up => return Some(ChildStep::Create),
            Some(Existence::BeingDeleted(None)) if sets_up => return Some(ChildStep::Find),
            Some(Existence::BeingDeleted(Some(id))) if sets_up && child.may_be_deleted => {
                return Some(ChildStep::Delete(id));
            }
            _ => {}
        }
        if let Some((number, _)) = claim(Phase::GoingUp).filter(|_| sets_up) {
            return Some(ChildStep::SetUp(*number));
        }
        if let Some((number, _)) = claim(Phase::GoingDown) {
            return Some(ChildStep::Undo(*number));
        }
        if self.is_staged && self.claims.is_empty() {
            return Some(ChildStep::Unstage);
        }
        match (self.is_ordered, self.has_group) {
            (true, _) if sets_up => Some(ChildStep::Order),
            (_, true) if sets_up => Some(ChildStep::Group),
            _ => None,
        }
    }

    /// The actor does something. Returns its ending, if the actor ended.
    pub(super) fn act(&mut self, place: usize, act: VolumeAct) -> Option<ChildEnded> {
        let (id, step) = self.child.as_ref().map(|child| (child.id, self.next_step(child)))?;
        match act {
            VolumeAct::Works => self.works(step?),
            VolumeAct::Fails => self.fails(place, step?),
            VolumeAct::GivesUp => self.oldest_gives_up(place),
            // Only the owner sees that: see `silenced`.
            VolumeAct::IsSilent => {}
            VolumeAct::FallsOverNext => {
                if let Some(child) = &mut self.child {
                    child.crashes_next = true;
                }
            }
            VolumeAct::Falls => return self.end(Ending::BudgetSpent("it crashed".to_owned())),
            VolumeAct::Ends => {
                let error = ReleaseError::Stopping { volume: key(place) };
                self.answer(|_| true, |_| VolumeAnswer::Release(Err(error.clone())));
                return self.end(Ending::Normal);
            }
        }
        self.keep_id(id);
        self.answer_releases();
        self.tell();
        None
    }

    fn works(&mut self, step: ChildStep) {
        match step {
            ChildStep::Create => {
                self.ids += 1;
                let id = self.ids;
                (self.there, self.existence) = (Some(id), Some(Existence::Created(id)));
                self.know(Some(id));
                let volume = created(self.place, id);
                let answer = move |_| VolumeAnswer::CreateVolume(Ok(Created { volume: volume.clone() }));
                self.answer(|waits| waits == Waits::Create, answer);
            }
            ChildStep::Find => {
                self.ids += 1;
                let id = self.ids;
                (self.there, self.existence) = (Some(id), Some(Existence::BeingDeleted(Some(id))));
                self.know(Some(id));
            }
            ChildStep::Delete(_) => {
                self.there = None;
                self.deleted();
            }
            ChildStep::SetUp(number) => {
                self.is_staged = true;
                self.claims.entry(number).and_modify(|claim| claim.phase = Phase::Up);
                self.answer(|waits| waits == Waits::Claim(number), |_| VolumeAnswer::Claim(Ok(claimed())));
            }
            ChildStep::Undo(number) => {
                self.claims.remove(&number);
            }
            ChildStep::Unstage => self.is_staged = false,
            ChildStep::Order => {
                self.is_ordered = false;
                self.answer(|waits| waits == Waits::Order, |_| VolumeAnswer::PlaceOrder(Ok(Done::Modified)));
            }
            ChildStep::Group => {
                self.has_group = false;
                let done = || Done::GroupTaken(Arc::default());
                self.answer(|waits| waits == Waits::Group, |_| VolumeAnswer::PlaceOrder(Ok(done())));
            }
        }
    }

    /// The volume is gone, and its callers are notified.
    fn deleted(&mut self) {
        self.gone();
        self.answer(
            |waits| matches!(waits, Waits::Delete(_)),
            |waits| {
                let did_exist = waits == Waits::Delete(true);
                VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist }))
            },
        );
    }

    fn fails(&mut self, place: usize, step: ChildStep) {
        let (volume, reason) = (key(place), "the plugin refuses it".to_owned());
        match step {
            ChildStep::Create => {
                self.gone();
                let error = CreateError::Failed { volume, reason };
                self.answer(
                    |waits| waits == Waits::Create,
                    |_| VolumeAnswer::CreateVolume(Err(error.clone())),
                );
            }
            ChildStep::Find => self.deleted(),
            ChildStep::Delete(id) => {
                self.existence = (id > 0).then_some(Existence::Created(id));
                self.know(Some(id));
                let error = DeleteError::Refused { volume, reason };
                self.answer(
                    |waits| matches!(waits, Waits::Delete(_)),
                    |_| VolumeAnswer::DeleteVolume(Err(error.clone())),
                );
            }
            ChildStep::SetUp(number) => {
                self.claims.entry(number).and_modify(|claim| claim.phase = Phase::GoingDown);
                let allocation = allocation(number);
                let failed =
                    VolumeNews::ClaimFailed { allocation: allocation.clone(), reason: reason.clone() };
                let life = self.child.as_ref().map(|child| child.life);
                self.news.extend(life.map(|life| (life, failed)));
                let error = ClaimError::Failed { volume, allocation, reason };
                self.answer(
                    |waits| waits == Waits::Claim(number),
                    |_| VolumeAnswer::Claim(Err(error.clone())),
                );
            }
            ChildStep::Undo(_) | ChildStep::Unstage | ChildStep::Order | ChildStep::Group => {}
        }
    }

    /// The actor is asked to stop: callers that want to set something up are refused.
    pub(super) fn refuse_stopping(&mut self) {
        let Some(child) = &mut self.child else { return };
        child.is_stopping = true;
        let volume = child.told.as_ref().map(|told| told.key.clone()).unwrap_or_else(|| key(0));
        let refused = move |waits| match waits {
            Waits::Claim(_) => VolumeAnswer::Claim(Err(ClaimError::Stopping { volume: volume.clone() })),
            Waits::Release(..) => {
                VolumeAnswer::Release(Err(ReleaseError::Stopping { volume: volume.clone() }))
            }
            Waits::Create => {
                VolumeAnswer::CreateVolume(Err(CreateError::Stopping { volume: volume.clone() }))
            }
            Waits::Delete(_) => {
                VolumeAnswer::DeleteVolume(Err(DeleteError::Stopping { volume: volume.clone() }))
            }
            Waits::Order | Waits::Group => {
                let what = "modify it".to_owned();
                VolumeAnswer::PlaceOrder(Err(OrderError::Stopping { volume: volume.clone(), what }))
            }
        };
        self.answer(|waits| !matches!(waits, Waits::Release(..)), refused);
    }
}
