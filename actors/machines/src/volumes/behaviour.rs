//! The decisions of the owner of the volumes: dispatches its inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{VolumeReported, VolumesAnswer, VolumesAsk};
use super::news::{VolumesNews, VolumesView};
use super::state::{
    Volumes, VolumesCall, VolumesChange, VolumesConfig, VolumesImage, VolumesOutcome, VolumesTimer,
};
use crate::kernel::{AskId, CallKey, CallLost, Effects, Input, Machine, StopStep};
use crate::vocabulary::{Attempt, Moment, Timestamp};
use crate::volume::VolumeAsk;

/// The deadline of one call for the instances' news or for endings; then it is repeated.
const FOLLOW_DEADLINE: Duration = Duration::from_secs(3_600);
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
            following: Attempt::default(),
            stop: None,
            left: Vec::new(),
            stop_began: moment.now,
            steps: Vec::new(),
        };
        image.known.into_iter().for_each(|volume| volumes.know(volume));
        volumes
    }

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => self.begin(moment, effects),
            Input::Asked { id, asked_at, ask } => self.asked(moment, (*id, *asked_at), ask, effects),
            Input::Returned { key, call, outcome } => self.returned(moment, *key, call, outcome, effects),
            Input::Elapsed(timer) => self.elapsed(moment, timer, effects),
            Input::StopRequested(mode) => self.stop_all(moment, *mode, effects),
        }
    }

    fn view(&self) -> VolumesView {
        VolumesView { volumes: self.reports() }
    }

    /// What volumes answer has waited for their own ledgers.
    fn is_promise(ask: &VolumesAsk) -> bool {
        match ask {
            VolumesAsk::RegisterVolume(_)
            | VolumesAsk::ForgetVolume(_)
            | VolumesAsk::CreateVolume(_)
            | VolumesAsk::DeleteVolume(_)
            | VolumesAsk::ExpandVolume(_) => true,
            // What they change is in the ledgers of their volumes.
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
            // What is so already needs no write.
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

    /// A deletion rests on the row that says that it was asked for. Volumes write the rest into their own ledgers.
    fn awaits_disk(call: &VolumesCall) -> bool {
        matches!(call, VolumesCall::Ask { ask: VolumeAsk::DeleteVolume(_), .. })
    }

    fn stops_within(&self) -> Option<Duration> {
        Some(self.config.options.child_bound() + STOP_MARGIN)
    }

    fn stop_steps(&self) -> Vec<StopStep> {
        self.steps.clone()
    }
}

impl Volumes {
    /// Starts an actor for each volume of the ledger, so that undoing goes on.
    fn begin(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        self.call(VolumesCall::Sweep, effects);
        self.follow(true, effects);
        effects.call(CallKey::default(), FOLLOW_DEADLINE, VolumesCall::AwaitEndings);
        self.drop_stale_deletions(effects);
        for spec in std::mem::take(&mut self.in_ledger) {
            self.open(moment, &spec, effects);
            if let Some(entry) = self.entries.get_mut(&spec.key) {
                entry.is_unread = true;
            }
        }
        self.resume_deletions(moment, effects);
    }

    fn asked(
        &mut self,
        moment: Moment,
        (id, asked_at): (AskId, Timestamp),
        ask: &VolumesAsk,
        effects: &mut Effects<Self>,
    ) {
        match ask {
            VolumesAsk::RegisterVolume(asked) => {
                let registered = self.register(&asked.volume, effects);
                effects.reply(id, VolumesAnswer::RegisterVolume(registered));
            }
            VolumesAsk::ForgetVolume(asked) => {
                let forgotten = self.forget(&asked.volume, effects);
                effects.reply(id, VolumesAnswer::ForgetVolume(forgotten));
            }
            VolumesAsk::CreateVolume(asked) => self.create(moment, (id, asked_at), asked, effects),
            VolumesAsk::DeleteVolume(asked) => self.delete(moment, (id, asked_at), asked, effects),
            VolumesAsk::ExpandVolume(asked) => self.expand(moment, (id, asked_at), asked, effects),
            VolumesAsk::CreateSnapshot(_) | VolumesAsk::DeleteSnapshot(_) | VolumesAsk::ModifyVolume(_) => {
                self.order(moment, (id, asked_at), ask, effects);
            }
            VolumesAsk::CreateGroupSnapshot(asked) => {
                self.take_group(moment, (id, asked_at), asked, effects);
            }
            VolumesAsk::DeleteGroupSnapshot(asked) => {
                self.delete_group(moment, (id, asked_at), asked, effects);
            }
            VolumesAsk::VolumeStats(_)
            | VolumesAsk::ListSnapshots(_)
            | VolumesAsk::DescribeGroupSnapshot(_)
            | VolumesAsk::ListVolumesOfPlugin(_)
            | VolumesAsk::GetCapacity(_)
            | VolumesAsk::ValidateVolume(_) => self.question(id, ask, effects),
            VolumesAsk::Claim(asked) => self.claim(moment, (id, asked_at), asked, effects),
            VolumesAsk::Release(asked) => self.release(moment, (id, asked_at), asked, effects),
            VolumesAsk::AllocationEnded(asked) => {
                self.allocation_ended(moment, (id, asked_at), asked, effects);
            }
            VolumesAsk::ConfirmClaims(asked) => self.confirm(moment, id, asked, effects),
            VolumesAsk::ForceRelease(asked) => self.force(moment, id, asked, effects),
            VolumesAsk::DescribeVolume(asked) => {
                effects.reply(id, VolumesAnswer::DescribeVolume(self.describe(&asked.volume)));
            }
            VolumesAsk::ListVolumes(_) => {
                effects.reply(id, VolumesAnswer::ListVolumes(self.reports()));
            }
            VolumesAsk::AwaitUnused(asked) => self.await_unused(moment, (id, asked_at), asked, effects),
            VolumesAsk::VolumeReported(VolumeReported { volume, life, news }) => {
                self.reported(moment, volume, *life, news, effects);
                effects.reply(id, VolumesAnswer::VolumeReported(()));
            }
        }
    }

    fn elapsed(&mut self, moment: Moment, timer: &VolumesTimer, effects: &mut Effects<Self>) {
        match timer {
            VolumesTimer::Refollow => self.follow(true, effects),
            VolumesTimer::Stop(volume) => self.stopped_too_slowly(moment, volume, effects),
            VolumesTimer::Restart(volume) => self.restart_due(moment, volume, effects),
            VolumesTimer::Unused(id) => self.unused_overdue(moment, *id, effects),
            VolumesTimer::Leaving(plugin) => self.stays(plugin, effects),
            VolumesTimer::Delete(volume) => self.delete_again(moment, volume, effects),
        }
    }

    // === Calls ===

    pub(super) fn call(&self, call: VolumesCall, effects: &mut Effects<Self>) {
        effects.call(CallKey::default(), HAND_OVER_DEADLINE, call);
    }

    pub(super) fn follow(&mut self, afresh: bool, effects: &mut Effects<Self>) {
        self.following = self.following.next();
        let key = CallKey { attempt: self.following, ..CallKey::default() };
        effects.call(key, FOLLOW_DEADLINE, VolumesCall::Follow { afresh });
    }

    fn returned(
        &mut self,
        moment: Moment,
        key: CallKey,
        call: &VolumesCall,
        outcome: &Result<VolumesOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        match (call, outcome) {
            (VolumesCall::Follow { .. }, outcome) if key.attempt == self.following => {
                self.followed(moment, outcome, effects);
            }
            // A newer attempt to follow is pending.
            (VolumesCall::Follow { .. }, _) => {}
            (VolumesCall::AwaitEndings, outcome) => {
                effects.call(CallKey::default(), FOLLOW_DEADLINE, VolumesCall::AwaitEndings);
                if let Ok(VolumesOutcome::Ended(endings)) = outcome {
                    endings.iter().for_each(|ended| self.ended(moment, ended, effects));
                }
            }
            (VolumesCall::Ask { .. }, outcome) => self.answered(moment, key.attempt, outcome, effects),
            (VolumesCall::Read(_), outcome) => self.found(key, outcome, effects),
            (VolumesCall::Start { life, config }, Err(lost)) => {
                self.not_started(moment, &config.spec.key, *life, lost, effects);
            }
            (VolumesCall::SetRoute { plugin, .. }, Err(_)) => self.send_route(plugin, effects),
            // Their effect is reported as an ending. A timer kills a child that does not stop, repeatedly.
            (VolumesCall::Start { .. } | VolumesCall::SetRoute { .. }, Ok(_))
            | (VolumesCall::Sweep | VolumesCall::Stop { .. } | VolumesCall::Kill { .. }, _) => {}
        }
    }
}
