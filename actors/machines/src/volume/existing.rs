//! Handles the existence of a volume: the next call about it, and answers to callers.

use std::sync::Arc;

use super::existence::Origin;
use super::lifecycle::{CreateError, Created, DeleteError, Deleted, Exists};
use super::messages::VolumeAnswer;
use super::operation::Operation;
use super::record::{Desired, Step, Towards, VolumeSpec};
use super::state::{DeleteWaiter, Lifecycle, Volume};
use crate::kernel::{AskId, StepContext};

impl Volume {
    /// Whether it exists, in a word.
    pub(super) fn exists(&self) -> Exists {
        let Some(existence) = &self.record.existence else { return Exists::Absent };
        match (existence.desired, &existence.step, &existence.origin) {
            (Desired::Released, ..) => Exists::BeingDeleted,
            (Desired::Held, Step::Up(..), Origin::Registered) => Exists::Registered,
            (Desired::Held, Step::Up(..), Origin::Created(_)) if self.life.unfit.is_some() => Exists::Unfit,
            (Desired::Held, Step::Up(..), Origin::Created(_)) => Exists::Created,
            (Desired::Held, Step::Down | Step::GoingUp(_) | Step::GoingDown(_) | Step::Unknown(..), _) => {
                Exists::BeingCreated
            }
        }
    }

    /// The next call about its existence.
    pub(super) fn existence_operation(&self) -> Option<Operation> {
        let existence = self.record.existence.as_ref()?;
        match (existence.desired, &existence.step) {
            (Desired::Held, Step::Up(..)) | (Desired::Released, Step::Down) => None,
            (Desired::Released, Step::Up(..)) if !self.life.may_be_deleted => None,
            (_, Step::GoingUp(_) | Step::GoingDown(_)) => None,
            // A volume that is to be deleted and may exist is created once more first: only the answer has its id (C061).
            (_, Step::Unknown(Towards::Up, _)) | (Desired::Held, Step::Down) => Some(Operation::Create),
            (Desired::Released, Step::Up(..)) | (_, Step::Unknown(Towards::Down, _)) => {
                Some(Operation::Delete)
            }
        }
    }

    /// It is certain that the volume does not exist. Its former id has no meaning from now on.
    pub(super) fn gone(&mut self) {
        self.record.existence = None;
        self.record.spec = Arc::new(VolumeSpec {
            volume_id: String::new(),
            volume_context: Default::default(),
            ..VolumeSpec::clone(&self.record.spec)
        });
        self.life.unfit = None;
        self.life.may_be_deleted = false;
        self.life.tries = Default::default();
        self.expanded_bytes = None;
    }

    /// Whether it exists stays unknown until the plugin changes, or a caller asks again.
    pub(super) fn hold_existence(&mut self, reason: &str, cx: &mut StepContext<Self>) {
        self.life.tries.is_held = true;
        let Some(existence) = &self.record.existence else { return };
        let name = existence.args().map_or_else(String::new, |args| args.name.clone());
        let (volume, reason) = (self.record.spec.key.clone(), reason.to_owned());
        let error = CreateError::Unclear { volume: volume.clone(), name, reason: reason.clone() };
        self.answer_creates(&Err(error), cx);
        self.answer_deletes(&Err(DeleteError::Unclear { volume, reason }), cx);
    }

    /// Answers the callers whose creation or deletion has an outcome.
    pub(super) fn answer_existence(&mut self, cx: &mut StepContext<Self>) {
        let created = self.record.existence.as_ref().and_then(|existence| existence.volume.clone());
        match (self.exists(), created) {
            (Exists::Created, Some(volume)) => self.answer_creates(&Ok(Created { volume }), cx),
            (Exists::Unfit, Some(made)) => {
                let (volume, volume_id) = (self.record.spec.key.clone(), made.volume_id.clone());
                let reason = self.life.unfit.clone().unwrap_or_default();
                self.answer_creates(&Err(CreateError::Unfit { volume, volume_id, reason }), cx);
            }
            (Exists::Absent, _) => {
                for DeleteWaiter { id, did_exist } in std::mem::take(&mut self.life.deletes) {
                    self.answer(id, VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist })), cx);
                }
            }
            (
                Exists::Registered
                | Exists::BeingCreated
                | Exists::Created
                | Exists::Unfit
                | Exists::BeingDeleted,
                _,
            ) => {}
        }
    }

    pub(super) fn answer_creates(
        &mut self,
        answer: &Result<Created, CreateError>,
        cx: &mut StepContext<Self>,
    ) {
        for id in std::mem::take(&mut self.life.creates) {
            self.answer(id, VolumeAnswer::CreateVolume(answer.clone()), cx);
        }
    }

    pub(super) fn answer_deletes(
        &mut self,
        answer: &Result<Deleted, DeleteError>,
        cx: &mut StepContext<Self>,
    ) {
        for DeleteWaiter { id, .. } in std::mem::take(&mut self.life.deletes) {
            self.answer(id, VolumeAnswer::DeleteVolume(answer.clone()), cx);
        }
    }

    /// The host stops: operations that were begun are in the ledger.
    pub(super) fn stop_existence(&mut self, cx: &mut StepContext<Self>) {
        let volume = self.record.spec.key.clone();
        self.answer_creates(&Err(CreateError::Stopping { volume: volume.clone() }), cx);
        self.answer_deletes(&Err(DeleteError::Stopping { volume }), cx);
    }

    /// The time of a caller is over, if the caller waits for a creation or a deletion.
    pub(super) fn gave_up_on_existence(&mut self, id: AskId) -> Option<VolumeAnswer> {
        let (volume, doing) = (self.record.spec.key.clone(), self.doing());
        let Lifecycle { creates, deletes, .. } = &mut self.life;
        if let Some(place) = creates.iter().position(|waiter| *waiter == id) {
            creates.remove(place);
            return Some(VolumeAnswer::CreateVolume(Err(CreateError::Pending { volume, doing })));
        }
        let place = deletes.iter().position(|waiter| waiter.id == id)?;
        deletes.remove(place);
        Some(VolumeAnswer::DeleteVolume(Err(DeleteError::Pending { volume, doing })))
    }
}
