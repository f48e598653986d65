//! Manages the actors of the volumes: start, retirement, restart, and stop.

use std::collections::VecDeque;
use std::sync::Arc;

use super::claimants::Claimants;
use super::news::VolumesNews;
use super::purposes::{Purpose, Request};
use super::state::{ChildEnded, Deletion, Entry, LeftVolume, Vacancy, Volumes, VolumesCall, VolumesTimer};
use crate::kernel::{CallLost, Ending, StepContext, StopMode, StopStep};
use crate::supervisor::{ChildState, DynamicChild, Ended};
use crate::vocabulary::{AllocationId, Attempt, BackoffState};
use crate::volume::{
    self, Exists, VolumeAsk, VolumeConfig, VolumeKey, VolumeLayout, VolumeNews, VolumeSpec, VolumeStatus,
};

impl Volumes {
    /// A volume is in use from now on, or may be: its actor starts.
    pub(super) fn open(&mut self, spec: &Arc<VolumeSpec>, cx: &mut StepContext<Self>) {
        self.entries.insert(spec.key.clone(), Entry::new(spec.clone()));
        self.start_child(&spec.key, cx);
    }

    /// Starts the actor of a volume, and sends the waiting messages to it.
    pub(super) fn start_child(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        self.life = self.life.next();
        entry.child.start(self.life);
        entry.vacancy = Vacancy::Unproven;
        entry.before_life = self.asked;
        let queue = std::mem::take(&mut entry.queue);
        let config = VolumeConfig {
            layout: VolumeLayout::new(&self.config.data_dir, &entry.spec.plugin),
            spec: entry.spec.clone(),
            boot_id: self.config.boot_id.clone(),
            run: self.config.run,
            options: self.config.options.volume,
        };
        cx.cancel_timer(VolumesTimer::Restart(key.clone()));
        self.call(VolumesCall::Start { life: self.life, config: Box::new(config) }, cx);
        if !queue.iter().any(Request::deletes) {
            self.delete_again(key, cx);
        }
        for request in queue {
            self.send(key, request, cx);
        }
        // A confirmation of the host also holds for claims that are read only now (V14).
        if let Some(confirmation) = &self.confirmation {
            let ask = VolumeAsk::ConfirmClaims(confirmation.clone());
            self.send(key, Request { purpose: Purpose::Note, until: cx.now(), ask }, cx);
        }
        self.publish(key, cx);
    }

    // === Reports ===

    /// Handles the news of a volume. The status of an earlier incarnation is ignored (REG-08); an audit never is.
    pub(super) fn reported(
        &mut self,
        key: &VolumeKey,
        life: Attempt,
        news: &VolumeNews,
        cx: &mut StepContext<Self>,
    ) {
        match news {
            VolumeNews::Changed(status) => {
                let entry = self.entries.get_mut(key);
                let Some(entry) = entry.filter(|entry| entry.child.life() == Some(life)) else { return };
                let is_unread = std::mem::take(&mut entry.is_unread);
                if is_unread {
                    entry.claimants.read(status);
                }
                entry.status = Some(status.clone());
                entry.vacancy.note_report();
                if is_unread {
                    self.learn_ledger(key, status);
                }
                if status.exists == Exists::Unfit {
                    self.unfit.insert(key.clone(), status.clone());
                } else {
                    self.unfit.remove(key);
                }
                self.learn_id(key, status);
                self.decide_deletion(key, cx);
                self.learn_capacity(key, status.expanded_bytes, cx);
                self.publish(key, cx);
                self.check_vacancy(key, cx);
            }
            VolumeNews::ClaimFailed { allocation, reason } => {
                let (volume, allocation, reason) = (key.clone(), allocation.clone(), reason.clone());
                cx.publish(VolumesNews::ClaimFailed { volume, allocation, reason });
            }
            // Its actor logs it.
            VolumeNews::MountLost { .. } => {}
            VolumeNews::OrderFailed { what, reason } => {
                let (volume, what, reason) = (key.clone(), what.clone(), reason.clone());
                cx.publish(VolumesNews::OrderFailed { volume, what, reason });
            }
            VolumeNews::Forced(forced) => cx.publish(VolumesNews::Forced(forced.clone())),
        }
    }

    // === Retirement ===

    /// Asks the actor of a volume that seems vacant, or whose existence is unknown. Its reports may be older than the last claim; its
    /// answer is not.
    pub(super) fn check_vacancy(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let status = self.entries.get(key).and_then(|entry| entry.status.as_ref());
        let is_asked_for = status.is_some_and(|status| status.is_vacant() || self.is_news(status));
        let Some(entry) = self.entries.get_mut(key) else { return };
        if !is_asked_for || !entry.is_idle() || entry.vacancy != Vacancy::Unproven {
            return;
        }
        entry.vacancy = Vacancy::Asked;
        let until = cx.now();
        let ask = VolumeAsk::DescribeVolume(volume::DescribeVolume);
        self.send(key, Request { purpose: Purpose::Check, until, ask }, cx);
    }

    /// The volume is proven vacant: its actor is no longer needed.
    pub(super) fn retire(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        self.stop_child(key, StopMode::Stop, cx);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.vacancy = Vacancy::Proven;
        let plugin = entry.spec.plugin.clone();
        self.answer_unused(&plugin, cx);
    }

    fn stop_child(&mut self, key: &VolumeKey, mode: StopMode, cx: &mut StepContext<Self>) {
        let due = cx.now() + self.config.options.child_bound();
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(life) = entry.child.stop(VolumesTimer::Stop(key.clone()), due, cx) {
            self.call(VolumesCall::Stop { life, mode }, cx);
        }
    }

    pub(super) fn stopped_too_slowly(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let again = cx.now() + self.config.options.child_bound();
        let Some(entry) = self.entries.get(key) else { return };
        if let Some(life) = entry.child.overdue(VolumesTimer::Stop(key.clone()), again, cx) {
            self.call(VolumesCall::Kill { life }, cx);
        }
    }

    // === The end of an actor ===

    pub(super) fn ended(&mut self, ended: &ChildEnded, cx: &mut StepContext<Self>) {
        let ChildEnded { volume, life, ending } = ended;
        let end = self.entries.get(volume).and_then(|entry| entry.child.ended(*life));
        match end {
            Some(_) if self.stop.is_some() => self.left(volume, unexpected(ending), cx),
            Some(Ended::OnRequest) => self.retired(volume, cx),
            Some(Ended::ByItself) => self.fell(volume, ending, cx),
            // An earlier incarnation (REG-08).
            None => {}
        }
    }

    pub(super) fn not_started(
        &mut self,
        volume: &VolumeKey,
        life: Attempt,
        lost: &CallLost,
        cx: &mut StepContext<Self>,
    ) {
        let ending = Ending::Failed(format!("it could not be started: {lost}"));
        self.ended(&ChildEnded { volume: volume.clone(), life, ending }, cx);
    }

    /// The actor of a vacant volume has ended. Messages that arrived meanwhile start the next one.
    fn retired(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        cx.cancel_timer(VolumesTimer::Stop(key.clone()));
        if self.entries.get(key).is_some_and(|entry| !entry.queue.is_empty()) {
            return self.start_child(key, cx);
        }
        cx.cancel_timer(VolumesTimer::Delete(key.clone()));
        cx.cancel_timer(VolumesTimer::Decide(key.clone()));
        self.entries.remove(key);
        self.publish(key, cx);
    }

    /// The actor of a volume has ended without a request. Its successor resumes from the ledger.
    fn fell(&mut self, key: &VolumeKey, ending: &Ending, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let options = &self.config.options;
        let policy = (&options.restart_budget, &options.restart_backoff);
        let is_restarted = entry.child.fell(VolumesTimer::Restart(key.clone()), policy, cx);
        let next = if is_restarted {
            "it is started again"
        } else {
            "restart budget exhausted, so it is started again only with the next message for the volume"
        };
        entry.fallen = Some(format!("{ending}; {next}").into());
        entry.is_unread = true;
        self.publish(key, cx);
    }

    pub(super) fn restart_due(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let is_pausing = |entry: &Entry| entry.child.state() == ChildState::Pausing;
        if self.entries.get(key).is_some_and(is_pausing) {
            self.start_child(key, cx);
        }
    }

    // === The stop ===

    /// Stops all actors at once. Everything that is still set up is in the ledger, and the next start resumes it.
    pub(super) fn stop_all(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        // Actors that were asked to leave everything in place are now asked to undo released claims.
        let is_stronger = self.stop == Some(StopMode::Detach) && mode == StopMode::Stop;
        if self.stop.is_none() {
            self.stop_began = cx.now();
        }
        self.stop = Some(mode);
        self.refuse_all_unused(cx);
        self.refuse_reads(cx);
        let entries: Vec<_> =
            self.entries.iter().map(|(key, entry)| (key.clone(), entry.child.state())).collect();
        for (key, child) in entries {
            self.refuse_queue(&key, "the host stops", cx);
            match child {
                ChildState::Running(_) => self.stop_child(&key, mode, cx),
                ChildState::Stopping(life) if is_stronger => {
                    self.call(VolumesCall::Stop { life, mode }, cx);
                    cx.start_timer(
                        VolumesTimer::Stop(key.clone()),
                        cx.now() + self.config.options.child_bound(),
                    );
                }
                ChildState::Stopping(_) => {}
                ChildState::Pausing | ChildState::GivenUp => {
                    cx.cancel_timer(VolumesTimer::Restart(key.clone()));
                    let fallen = Some("its actor had failed before".to_owned());
                    self.left(&key, fallen, cx);
                }
            }
        }
        self.end_if_done(cx);
    }

    /// Notes the remains of a volume for the report of a stop (S3).
    fn left(&mut self, key: &VolumeKey, fallen: Option<String>, cx: &mut StepContext<Self>) {
        cx.cancel_timer(VolumesTimer::Stop(key.clone()));
        cx.cancel_timer(VolumesTimer::Delete(key.clone()));
        cx.cancel_timer(VolumesTimer::Decide(key.clone()));
        let Some(entry) = self.entries.remove(key) else { return };
        let status = entry.status.as_deref();
        let goes_on = match entry.changes() {
            _ if self.deleting.contains(key) => "its deletion is not done; ",
            Some(_) => "its creation is not done; ",
            None => "",
        };
        // The last report may be older than a claim.
        let seems_vacant =
            goes_on.is_empty() && entry.claimants.is_empty() && status.is_some_and(VolumeStatus::is_vacant);
        if entry.vacancy != Vacancy::Proven && !seems_vacant {
            let (ending, is_left) = left_as(status, fallen);
            let ending = format!("{goes_on}{ending}");
            let is_left = is_left && self.stop == Some(StopMode::Stop);
            let took = cx.now().since(self.stop_began);
            self.steps.push(StopStep { what: format!("volume/{key}"), ending, took, is_left });
            let (plugin, in_use) = (entry.spec.plugin.clone(), entry.in_use());
            self.left.push(LeftVolume { plugin, in_use, is_unread: entry.status.is_none() });
        }
        self.end_if_done(cx);
    }

    /// Ends when no actor is left and every caller got its answer.
    pub(super) fn end_if_done(&self, cx: &mut StepContext<Self>) {
        if self.stop.is_some() && self.entries.is_empty() && self.asks.is_empty() {
            cx.stop();
        }
    }
}

/// The ending of an actor that was to stop, unless it is the expected one.
fn unexpected(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Normal => None,
        Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_) | Ending::Killed => {
            Some(ending.to_string())
        }
    }
}

/// The state in which a stop leaves a volume in use, and whether a part of it was to be undone. Held claims are kept on purpose: the claims
/// of allocations that the host runs itself are released before.
fn left_as(status: Option<&VolumeStatus>, fallen: Option<String>) -> (String, bool) {
    let is_left = fallen.is_some() || !status.is_some_and(VolumeStatus::is_kept);
    let state = match status {
        Some(status) if status.is_kept() => status.kept(),
        Some(status) => format!("it is left as {status}"),
        None => "its state is unknown".to_owned(),
    };
    let fallen = fallen.map_or_else(String::new, |fallen| format!("{fallen}; "));
    (format!("{fallen}{state}; the next start goes on with it"), is_left)
}

impl Vacancy {
    /// The actor has reported. Its answer may be older.
    const fn note_report(&mut self) {
        if matches!(self, Self::Asked) {
            *self = Self::ReportedSince;
        }
    }

    /// The actor has answered, and has not proven the vacancy.
    pub(super) const fn note_answer(&mut self) {
        if matches!(self, Self::Asked | Self::ReportedSince) {
            *self = Self::Unproven;
        }
    }
}

impl LeftVolume {
    /// Whether an allocation may have a claim.
    pub(super) fn may_be_claimed_by(&self, allocation: &AllocationId) -> bool {
        self.is_unread || self.in_use.claims.contains(allocation)
    }
}

impl Entry {
    fn new(spec: Arc<VolumeSpec>) -> Self {
        Self {
            child: DynamicChild::new(ChildState::Pausing),
            spec,
            status: None,
            claimants: Claimants::default(),
            queue: VecDeque::new(),
            in_flight: 0,
            before_life: Attempt::default(),
            last_begun: Attempt::default(),
            last_change: Attempt::default(),
            is_settled: false,
            vacancy: Vacancy::Unproven,
            is_unread: false,
            deletion: Deletion::default(),
            delete_tries: BackoffState::default(),
            decide_tries: BackoffState::default(),
            fallen: None,
        }
    }

    /// Whether an allocation may have a claim, gets one with the next incarnation of the actor, or had one that is still being undone.
    pub(super) fn may_be_claimed_by(&self, allocation: &AllocationId) -> bool {
        self.status.is_none() || self.is_claimed_by(allocation) || self.shows_claim_of(allocation)
    }

    /// Whether the last report of its actor has a claim of the allocation, or one that is being undone.
    pub(super) fn shows_claim_of(&self, allocation: &AllocationId) -> bool {
        let claims = self.status.iter().flat_map(|status| &status.claims);
        claims.into_iter().any(|claim| claim.allocation == *allocation)
    }

    /// Whether it is known that an allocation has claimed it, and not known that this claim is over.
    pub(super) fn is_claimed_by(&self, allocation: &AllocationId) -> bool {
        let is_its_claim = |request: &Request| matches!(&request.ask, VolumeAsk::Claim(claim) if claim.allocation == *allocation);
        self.claimants.contains(allocation) || self.queue.iter().any(is_its_claim)
    }
}
