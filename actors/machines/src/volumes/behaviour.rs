//! Dispatches the inputs of the owner of the volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{VolumeReported, VolumesAnswer, VolumesAsk};
use super::news::{VolumesNews, VolumesView};
use super::state::{
    Volumes, VolumesCall, VolumesChange, VolumesConfig, VolumesImage, VolumesOutcome, VolumesTimer,
};
use crate::kernel::{
    AskId, CallKey, CallLost, Input, Machine, StepContext, StopStep, await_endings_again, await_news,
};
use crate::vocabulary::{Attempt, Moment, Timestamp};
use crate::volume::VolumeAsk;

/// The deadline of calls that only send something to a child.
const HAND_OVER_DEADLINE: Duration = Duration::from_secs(10);
/// The margin between the end of the last child and the end of the owner.
const STOP_MARGIN: Duration = Duration::from_secs(1);

impl Machine for Volumes {
    const KIND: &'static str = "volumes";
    type Config = VolumesConfig;
    type Image = VolumesImage;
    type Ask = VolumesAsk;
    type Answer = VolumesAnswer;
    type Call = VolumesCall;
    type Outcome = VolumesOutcome;
    type Timer = VolumesTimer;
    type Change = VolumesChange;
    type News = VolumesNews;
    type View = VolumesView;

    fn restore(config: &VolumesConfig, image: VolumesImage, moment: Moment) -> Self {
        let mut volumes = Self {
            config: config.clone(),
            known: BTreeMap::new(),
            names: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
            in_ledger: image.in_ledger,
            created: BTreeSet::new(),
            unfit: BTreeMap::new(),
            deleting: image.deleting,
            entries: BTreeMap::new(),
            plugins: BTreeMap::new(),
            asks: BTreeMap::new(),
            sent: BTreeMap::new(),
            reads: BTreeMap::new(),
            asked: Attempt::default(),
            waiting: BTreeMap::new(),
            batches: BTreeMap::new(),
            unused: BTreeMap::new(),
            leaving: BTreeMap::new(),
            confirmation: None,
            life: Attempt::new(moment.random >> 16),
            stop: None,
            left: Vec::new(),
            stop_began: moment.now,
            steps: Vec::new(),
        };
        image.known.into_iter().for_each(|volume| volumes.know(volume));
        volumes
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.begin(cx),
            Input::Asked { id, asked_at, ask } => self.asked((*id, *asked_at), ask, cx),
            Input::Returned { key, call, outcome } => self.returned(*key, call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(mode) => self.stop_all(*mode, cx),
        }
    }

    fn view(&self) -> VolumesView {
        VolumesView { volumes: self.reports() }
    }

    /// Answers of a volume have waited for its own ledger.
    fn is_promise(ask: &VolumesAsk) -> bool {
        match ask {
            VolumesAsk::RegisterVolume(_)
            | VolumesAsk::ForgetVolume(_)
            | VolumesAsk::CreateVolume(_)
            | VolumesAsk::DeleteVolume(_)
            | VolumesAsk::ExpandVolume(_) => true,
            // Their changes are in the ledgers of their volumes.
            VolumesAsk::CreateSnapshot(_)
            | VolumesAsk::DeleteSnapshot(_)
            | VolumesAsk::ModifyVolume(_)
            | VolumesAsk::CreateGroupSnapshot(_)
            | VolumesAsk::DeleteGroupSnapshot(_) => false,
            VolumesAsk::Claim(_)
            | VolumesAsk::VolumeStats(_)
            | VolumesAsk::ListSnapshots(_)
            | VolumesAsk::DescribeGroupSnapshot(_)
            | VolumesAsk::ListVolumesOfPlugin(_)
            | VolumesAsk::GetCapacity(_)
            | VolumesAsk::ValidateVolume(_)
            | VolumesAsk::Release(_)
            | VolumesAsk::AllocationEnded(_)
            | VolumesAsk::ConfirmClaims(_)
            | VolumesAsk::ForceRelease(_)
            | VolumesAsk::DescribeVolume(_)
            | VolumesAsk::ListVolumes(_)
            | VolumesAsk::AwaitUnused(_)
            | VolumesAsk::VolumeReported(_) => false,
        }
    }

    fn is_new_promise(&self, ask: &VolumesAsk) -> bool {
        match ask {
            // An unchanged state needs no write.
            VolumesAsk::RegisterVolume(asked) => {
                !self.known.get(&asked.volume.spec.key).is_some_and(|known| known.has(&asked.volume))
            }
            VolumesAsk::CreateVolume(asked) => !self.is_being_created(&asked.volume),
            VolumesAsk::DeleteVolume(asked) => self.is_first_deletion(&asked.volume),
            VolumesAsk::ForgetVolume(asked) => self.known.contains_key(&asked.volume),
            VolumesAsk::ExpandVolume(_)
            | VolumesAsk::CreateSnapshot(_)
            | VolumesAsk::DeleteSnapshot(_)
            | VolumesAsk::ModifyVolume(_)
            | VolumesAsk::CreateGroupSnapshot(_)
            | VolumesAsk::DeleteGroupSnapshot(_)
            | VolumesAsk::VolumeStats(_)
            | VolumesAsk::ListSnapshots(_)
            | VolumesAsk::DescribeGroupSnapshot(_)
            | VolumesAsk::ListVolumesOfPlugin(_)
            | VolumesAsk::GetCapacity(_)
            | VolumesAsk::ValidateVolume(_)
            | VolumesAsk::Claim(_)
            | VolumesAsk::Release(_)
            | VolumesAsk::AllocationEnded(_)
            | VolumesAsk::ConfirmClaims(_)
            | VolumesAsk::ForceRelease(_)
            | VolumesAsk::DescribeVolume(_)
            | VolumesAsk::ListVolumes(_)
            | VolumesAsk::AwaitUnused(_)
            | VolumesAsk::VolumeReported(_) => false,
        }
    }

    /// A deletion depends on the row of its request, and on the removed rows of known volumes; a volume that is forgotten without a
    /// deletion, on the row of the known volume with its id. Volumes write the rest into their own ledgers.
    fn awaits_disk(call: &VolumesCall) -> bool {
        matches!(
            call,
            VolumesCall::Ask {
                ask: VolumeAsk::DeleteVolume(_) | VolumeAsk::AllowDeletion(_) | VolumeAsk::Disown(_),
                ..
            }
        )
    }

    fn stops_within(&self) -> Option<Duration> {
        Some(self.config.options.child_bound().saturating_add(STOP_MARGIN))
    }

    fn stop_steps(&self) -> Vec<StopStep> {
        self.steps.clone()
    }
}

impl Volumes {
    /// Starts an actor for each volume of the ledger, so that undoing continues.
    fn begin(&mut self, cx: &mut StepContext<Self>) {
        self.call(VolumesCall::Sweep, cx);
        await_news(VolumesCall::Follow { afresh: true }, cx);
        await_news(VolumesCall::AwaitEndings, cx);
        self.drop_stale_deletions(cx);
        for spec in std::mem::take(&mut self.in_ledger) {
            self.open(&spec, cx);
            if let Some(entry) = self.entries.get_mut(&spec.key) {
                entry.is_unread = true;
            }
        }
        self.resume_deletions(cx);
    }

    fn asked(&mut self, (id, asked_at): (AskId, Timestamp), ask: &VolumesAsk, cx: &mut StepContext<Self>) {
        match ask {
            VolumesAsk::RegisterVolume(asked) => {
                let registered = self.register(&asked.volume, cx);
                cx.reply(id, VolumesAnswer::RegisterVolume(registered));
            }
            VolumesAsk::ForgetVolume(asked) => {
                let forgotten = self.forget(&asked.volume, cx);
                cx.reply(id, VolumesAnswer::ForgetVolume(forgotten));
            }
            VolumesAsk::CreateVolume(asked) => self.create((id, asked_at), asked, cx),
            VolumesAsk::DeleteVolume(asked) => self.delete((id, asked_at), asked, cx),
            VolumesAsk::ExpandVolume(asked) => self.expand((id, asked_at), asked, cx),
            VolumesAsk::CreateSnapshot(_) | VolumesAsk::DeleteSnapshot(_) | VolumesAsk::ModifyVolume(_) => {
                self.order((id, asked_at), ask, cx);
            }
            VolumesAsk::CreateGroupSnapshot(asked) => {
                self.take_group((id, asked_at), asked, cx);
            }
            VolumesAsk::DeleteGroupSnapshot(asked) => {
                self.delete_group((id, asked_at), asked, cx);
            }
            VolumesAsk::VolumeStats(_)
            | VolumesAsk::ListSnapshots(_)
            | VolumesAsk::DescribeGroupSnapshot(_)
            | VolumesAsk::ListVolumesOfPlugin(_)
            | VolumesAsk::GetCapacity(_)
            | VolumesAsk::ValidateVolume(_) => self.question(id, ask, cx),
            VolumesAsk::Claim(asked) => self.claim((id, asked_at), asked, cx),
            VolumesAsk::Release(asked) => self.release((id, asked_at), asked, cx),
            VolumesAsk::AllocationEnded(asked) => {
                self.allocation_ended((id, asked_at), asked, cx);
            }
            VolumesAsk::ConfirmClaims(asked) => self.confirm(id, asked, cx),
            VolumesAsk::ForceRelease(asked) => self.force(id, asked, cx),
            VolumesAsk::DescribeVolume(asked) => {
                cx.reply(id, VolumesAnswer::DescribeVolume(self.describe(&asked.volume)));
            }
            VolumesAsk::ListVolumes(_) => {
                cx.reply(id, VolumesAnswer::ListVolumes(self.reports()));
            }
            VolumesAsk::AwaitUnused(asked) => self.await_unused((id, asked_at), asked, cx),
            VolumesAsk::VolumeReported(VolumeReported { volume, life, news }) => {
                self.reported(volume, *life, news, cx);
                cx.reply(id, VolumesAnswer::VolumeReported(()));
            }
        }
    }

    fn elapsed(&mut self, timer: &VolumesTimer, cx: &mut StepContext<Self>) {
        match timer {
            VolumesTimer::AwaitEndings => {
                await_news(VolumesCall::AwaitEndings, cx);
            }
            VolumesTimer::Refollow => await_news(VolumesCall::Follow { afresh: true }, cx),
            VolumesTimer::Stop(volume) => self.stopped_too_slowly(volume, cx),
            VolumesTimer::Restart(volume) => self.restart_due(volume, cx),
            VolumesTimer::Unused(id) => self.unused_overdue(*id, cx),
            VolumesTimer::Leaving(plugin) => self.stays(plugin, cx),
            VolumesTimer::Delete(volume) => self.delete_again(volume, cx),
            VolumesTimer::Decide(volume) => {
                self.decide_deletion(volume, cx);
                // For a volume that is not to be deleted, its answer decides.
                self.check_vacancy(volume, cx);
            }
        }
    }

    // === Calls ===

    pub(super) fn call(&self, call: VolumesCall, cx: &mut StepContext<Self>) {
        cx.call(CallKey::default(), HAND_OVER_DEADLINE, call);
    }

    fn returned(
        &mut self,
        key: CallKey,
        call: &VolumesCall,
        outcome: &Result<VolumesOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        match (call, outcome) {
            (VolumesCall::Follow { .. }, outcome) => self.followed(outcome, cx),
            (VolumesCall::AwaitEndings, outcome) => {
                let again = (VolumesCall::AwaitEndings, VolumesTimer::AwaitEndings);
                await_endings_again(outcome, again, cx);
                if let Ok(VolumesOutcome::Ended(endings)) = outcome {
                    endings.iter().for_each(|ended| self.ended(ended, cx));
                }
            }
            (VolumesCall::Ask { .. }, outcome) => self.answered(key.attempt, outcome, cx),
            (VolumesCall::Read(_), outcome) => self.found(key, outcome, cx),
            (VolumesCall::Start { life, config }, Err(lost)) => {
                self.not_started(&config.spec.key, *life, lost, cx);
            }
            (VolumesCall::SetRoute { plugin, .. }, Err(_)) => self.send_route(plugin, cx),
            // Their effect is reported as an ending. A timer repeatedly kills a child that does not stop.
            (VolumesCall::Start { .. } | VolumesCall::SetRoute { .. }, Ok(_))
            | (VolumesCall::Sweep | VolumesCall::Stop { .. } | VolumesCall::Kill { .. }, _) => {}
        }
    }
}
