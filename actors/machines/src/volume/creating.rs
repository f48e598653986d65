//! Creates a volume under one name, which a retry repeats until the plugin has answered whether the volume exists.

use std::sync::Arc;

use super::existence::{CreateArgs, Existence, Origin};
use super::lifecycle::{CreateError, CreateVolume};
use super::messages::VolumeAnswer;
use super::outcome::{Failure, Known, VolumeCall, VolumeOutcome};
use super::record::{Desired, Intent, Step, Towards, VolumeSpec};
use super::state::{Flight, Volume, VolumeTimer};
use super::steps::Begun;
use crate::csi::{self, Request, Secrets};
use crate::kernel::{AskId, CallLost, StepContext};
use crate::vocabulary::{Generation, Timestamp};

impl Volume {
    /// Accepts a creation, or repeats one.
    pub(super) fn create(
        &mut self,
        random: u64,
        (id, asked_at): (AskId, Timestamp),
        asked: &CreateVolume,
        cx: &mut StepContext<Self>,
    ) {
        if let Err(error) = self.admit_creation(asked) {
            cx.reply(id, VolumeAnswer::CreateVolume(Err(error)));
            return;
        }
        self.life.tries.is_held = false;
        if self.record.existence.is_none() {
            let args = CreateArgs::new(&self.record.spec.key, asked.volume.clone(), random);
            self.life.tries = Default::default();
            self.record.existence = Some(Existence::wanted(Arc::new(args)));
            // Before the call is made, its name and arguments are on disk (V5).
            self.keep_volume(cx);
        }
        self.life.creates.push(id);
        cx.start_timer(VolumeTimer::Waiter(id), asked_at + asked.within);
    }

    fn admit_creation(&self, asked: &CreateVolume) -> Result<(), CreateError> {
        let volume = self.record.spec.key.clone();
        if self.stopping.is_some() {
            return Err(CreateError::Stopping { volume });
        }
        let waiting = self.waiting();
        if waiting >= self.config.options.waiting_max {
            return Err(CreateError::Full { volume, waiting });
        }
        if let Err(fault) = asked.volume.request("new", Secrets::none()).check() {
            return Err(CreateError::Invalid { volume, reason: fault.to_string() });
        }
        let Some(existence) = &self.record.existence else { return Ok(()) };
        match (&existence.origin, existence.desired) {
            (Origin::Registered, Desired::Held) => {
                let volume_id = self.record.spec.volume_id.clone();
                Err(CreateError::Registered { volume, volume_id })
            }
            (_, Desired::Released) => Err(CreateError::BeingDeleted { volume }),
            (Origin::Created(args), Desired::Held) => {
                let asked = asked.volume.as_in(&args.volume);
                if args.volume == asked {
                    return Ok(());
                }
                let differences = args.volume.differences(&asked);
                Err(CreateError::OtherArguments { volume, differences })
            }
        }
    }

    pub(super) fn begin_create(
        &mut self,
        generation: Generation,
        cx: &mut StepContext<Self>,
    ) -> Option<Begun> {
        let knows_alpha = self.route.as_ref().and_then(|route| route.controller.as_ref())?.knows_alpha_modes;
        let existence = self.record.existence.as_mut()?;
        let was_unknown = !existence.step.is_down();
        if !was_unknown {
            existence.refine(knows_alpha);
        }
        let args = existence.args()?.clone();
        let intent = existence.step.intent().cloned().unwrap_or(Intent { args: (), generation });
        existence.step = Step::GoingUp(intent);
        self.keep_volume(cx);
        Some((VolumeCall::Create(self.record.spec.clone(), generation, args), was_unknown))
    }

    pub(super) fn create_returned(
        &mut self,
        flight: &Flight,
        outcome: &Result<VolumeOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(existence) = &mut self.record.existence else { return };
        let Step::GoingUp(intent) = existence.step.clone() else { return };
        let failure = match created(outcome) {
            Ok(volume) => {
                existence.step = Step::Up(intent, ());
                self.note_created(volume, cx);
                return;
            }
            Err(failure) => failure,
        };
        let is_certain = failure.known != Known::Unclear && !flight.was_unknown;
        let is_final = matches!(failure.known, Known::Refused | Known::Unsupported);
        let is_unwanted = existence.desired == Desired::Released;
        existence.step = if is_certain { Step::Down } else { Step::Unknown(Towards::Up, intent) };
        let is_spent = self.try_failed(cx.moment(), &flight.what, &failure);
        match is_certain {
            true if is_final || is_spent || is_unwanted => self.fail_creation(&failure.reason, cx),
            true => self.keep_volume(cx),
            // A refusal after an unclear try proves nothing about that try, and the same call would be refused again (C017).
            false if is_final => self.hold_existence(&failure.reason, cx),
            false => {}
        }
    }

    /// It exists: its id, its context and all other data in the plugin's answer are kept (C059, C060).
    fn note_created(&mut self, volume: csi::Volume, cx: &mut StepContext<Self>) {
        self.record.spec = Arc::new(VolumeSpec {
            volume_id: volume.volume_id.clone(),
            volume_context: volume.volume_context.clone(),
            ..VolumeSpec::clone(&self.record.spec)
        });
        if let Some(existence) = &mut self.record.existence {
            existence.volume = Some(Arc::new(volume));
            self.life.unfit = existence.unfit();
        }
        self.life.may_be_deleted = false;
        self.life.tries = Default::default();
        self.keep_volume(cx);
    }

    /// It is certain that nothing was created.
    fn fail_creation(&mut self, reason: &str, cx: &mut StepContext<Self>) {
        let error = self.life.tries.error.take();
        self.gone();
        self.life.tries.error = error;
        // It is forgotten before any caller is answered: a restart must not create it after all.
        self.forget_if_over(cx);
        let (volume, reason) = (self.record.spec.key.clone(), reason.to_owned());
        self.answer_creates(&Err(CreateError::Failed { volume, reason }), cx);
    }
}

/// The result of `CreateVolume`.
fn created(outcome: &Result<VolumeOutcome, CallLost>) -> Result<csi::Volume, Failure> {
    let unclear = |reason| Failure { known: Known::Unclear, reason };
    match outcome {
        Ok(VolumeOutcome::Created(created)) => created.clone(),
        Ok(_) => Err(unclear("the reply does not match the call".to_owned())),
        Err(lost @ CallLost::Busy(_)) => Err(Failure { known: Known::NotMade, reason: lost.to_string() }),
        Err(lost) => Err(unclear(lost.to_string())),
    }
}
