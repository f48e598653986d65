//! Checks the owner of the volumes against the messages that it received and the true state of each volume.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::instances::{InstanceReport, InstancesNews};
use callboard_actors::kernel::AskId;
use callboard_actors::shell::{AskError, Effect, FeedItem, Input, Machine};
use callboard_actors::vocabulary::{AllocationId, Attempt, Generation, Moment};
use callboard_machines::csi;
use callboard_machines::volume::{
    Done, Exists, Order, Released, Route, VolumeAnswer, VolumeAsk, VolumeKey, VolumeNews,
};
use callboard_machines::volumes::{
    Claim, KnownVolume, Release, Volumes, VolumesAnswer, VolumesAsk, VolumesCall, VolumesChange,
    VolumesOutcome,
};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Left;
use super::plugin::route_to;
use super::untold::Untold;

/// Observes every step of the owner of the volumes.
#[derive(Debug, Clone, Hash, Default)]
pub struct VolumesLaws {
    known: BTreeMap<VolumeKey, Arc<KnownVolume>>,
    /// The present lives of the actors, as the owner knows them.
    lives: BTreeMap<VolumeKey, Attempt>,
    /// The last report of the instances, and the last route that was sent.
    report: Option<InstanceReport>,
    sent: Route,
    /// The requests that the owner has not answered.
    asks: BTreeMap<AskId, VolumesAsk>,
    /// The generation that served the plugin when a caller began to wait until the plugin is unused.
    awaited: BTreeMap<AskId, Option<Generation>>,
    is_stopping: bool,
    /// The claims that were not refused since this run began.
    admitted: BTreeSet<(VolumeKey, AllocationId)>,
    untold: Untold,
    /// The volumes that were last reported as claimed or set up.
    shown: BTreeSet<VolumeKey>,
    /// The volumes that are really claimed or set up.
    pub(super) on_node: BTreeSet<VolumeKey>,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl VolumesLaws {
    fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        self.verdict.violation(law, what);
    }

    // === Its requests ===

    fn asked(&mut self, id: AskId, ask: &VolumesAsk, effects: &[Effect<Volumes>]) {
        let is_answered =
            |effect: &Effect<_>| matches!(effect, Effect::Reply(answered, _) if *answered == id);
        if let VolumesAsk::Claim(claim) = ask
            && !effects.iter().any(is_answered)
        {
            self.check_leaving(id, claim);
            self.admitted(claim);
        }
        if let VolumesAsk::VolumeReported(reported) = ask {
            let is_late = self.lives.get(&reported.volume) != Some(&reported.life);
            if let (false, VolumeNews::Changed(status)) = (is_late, &reported.news) {
                let is_here = !status.claims.is_empty() || !status.is_down();
                if is_here {
                    self.shown.insert(status.key.clone())
                } else {
                    self.shown.remove(&status.key)
                };
            }
            if is_late && matches!(reported.news, VolumeNews::Changed(_)) && effects.len() > 1 {
                let volume = &reported.volume;
                self.violation(Law::Reg8, || format!("what a former actor of {volume} said has effects"));
            }
        }
        if matches!(ask, VolumesAsk::AwaitUnused(_)) {
            self.awaited.insert(id, self.report.as_ref().map(|report| report.generation));
        }
        self.asks.insert(id, ask.clone());
    }

    /// Whether a volume is claimed or set up, or the owner has not received the report that this is over.
    fn may_be_on_node(&self, volume: &VolumeKey) -> bool {
        self.on_node.contains(volume) || self.shown.contains(volume)
    }

    /// A claim was not refused: it does not delay the stop of a leaving plugin, unless another instance has served since.
    fn check_leaving(&mut self, id: AskId, claim: &Claim) {
        let present = self.sent.node.as_ref().map(|node| node.generation);
        let is_taken_over =
            |former: Option<Generation>| former.is_some() && present.is_some() && present != former;
        let awaits = |(asked, served_by): (&AskId, &Option<Generation>)| {
            *asked < id && self.asks.contains_key(asked) && !is_taken_over(*served_by)
        };
        let is_awaited = self.awaited.iter().any(awaits);
        let is_new = self.admitted.insert((claim.volume.clone(), claim.allocation.clone()));
        if is_awaited && is_new && !self.may_be_on_node(&claim.volume) {
            let volume = &claim.volume;
            self.violation(Law::V13, || format!("{volume} is claimed while a stop of its plugin waits"));
        }
    }

    /// A claim was not refused: volume, node and plugin can accept it.
    fn admitted(&mut self, claim: &Claim) {
        let volume = &claim.volume;
        let Some(known) = self.known.get(volume) else {
            return self.violation(Law::V12, || format!("{volume} is claimed and not known"));
        };
        let claimed = self.asks.values().filter_map(|ask| match ask {
            VolumesAsk::Claim(claim) => Some(claim.volume.clone()),
            _ => None,
        });
        let on_node: BTreeSet<_> = self.on_node.iter().cloned().chain(claimed).collect();
        let fingerprint = self.report.as_ref().and_then(|report| report.fingerprint.as_ref());
        let Some(node) = fingerprint.and_then(|fingerprint| fingerprint.node_info.clone()) else { return };
        if on_node.contains(volume) || self.may_be_on_node(volume) {
            return;
        }
        if !known.is_reachable_from(node.topology.as_ref()) {
            self.violation(Law::V12, || format!("{volume} is claimed and out of reach"));
        }
        let used = on_node.len() as u64;
        if node.max_volumes.is_some_and(|limit| used >= limit) {
            self.violation(Law::V12, || format!("{volume} is claimed beside {on_node:?}: too many"));
        }
    }

    // === Its notifications ===

    fn returned(
        &mut self,
        call: &VolumesCall,
        outcome: Option<&VolumesOutcome>,
        effects: &[Effect<Volumes>],
    ) {
        match (call, outcome) {
            (VolumesCall::Follow { .. }, Some(VolumesOutcome::Followed(Ok(items)))) => {
                for item in items {
                    match item {
                        FeedItem::Snapshot { view, .. } => self.report = view.reports.first().cloned(),
                        FeedItem::Change { news: InstancesNews::Reported(report), .. } => {
                            self.report = Some(report.clone());
                        }
                        FeedItem::Change { news: InstancesNews::Left(_), .. } => self.report = None,
                        FeedItem::Change { .. } | FeedItem::Lagged { .. } => {}
                    }
                }
            }
            (VolumesCall::AwaitEndings, Some(VolumesOutcome::Ended(endings))) => {
                let is_late = endings.iter().all(|end| self.lives.get(&end.volume) != Some(&end.life));
                if is_late && effects.len() > 1 {
                    self.violation(Law::Reg8, || format!("{endings:?} are of former lives, with effects"));
                }
                for end in endings {
                    if self.lives.get(&end.volume) == Some(&end.life) {
                        self.lives.remove(&end.volume);
                    }
                }
            }
            _ => {}
        }
    }

    /// The last route that was sent is that of the last report.
    fn check_route(&mut self) {
        let route = route_to(self.report.as_ref());
        if self.sent != route {
            let sent = self.sent.clone();
            self.violation(Law::Res5, || format!("{sent:?} is the route, and {route:?} was reported"));
        }
    }

    // === Its effects ===

    fn called(&mut self, call: &VolumesCall) {
        match call {
            VolumesCall::SetRoute { route, .. } => self.sent = route.clone(),
            VolumesCall::Start { life, config } => {
                self.lives.insert(config.spec.key.clone(), *life);
            }
            VolumesCall::Stop { life, .. } if !self.is_stopping => {
                let stopped = self.lives.iter().find(|(_, living)| *living == life);
                let used = stopped.map(|(key, _)| key.clone()).filter(|key| self.on_node.contains(key));
                if let Some(volume) = used {
                    self.violation(Law::V15, || format!("the actor of {volume} is stopped under its claims"));
                }
            }
            VolumesCall::Ask { life, ask: VolumeAsk::PlaceOrder(placed) } => {
                self.ordered(*life, &placed.order)
            }
            VolumesCall::Stop { .. }
            | VolumesCall::Sweep
            | VolumesCall::Follow { .. }
            | VolumesCall::AwaitEndings
            | VolumesCall::Ask { .. }
            | VolumesCall::Read(_)
            | VolumesCall::Kill { .. } => {}
        }
    }

    /// The order of a group of snapshots goes to the first of its volumes.
    fn ordered(&mut self, life: Attempt, order: &Order) {
        let Order::TakeGroup(group) = order else { return };
        let keeper = group.members.iter().map(|member| &member.volume).min();
        let is_its = keeper.is_some_and(|keeper| self.lives.get(keeper) == Some(&life));
        if !is_its {
            self.violation(Law::C2, || {
                format!("life {life} has the order of a group that is kept by {keeper:?}")
            });
        }
    }

    fn kept(&mut self, change: &VolumesChange, input: &Input<Volumes>) {
        let (volume, is_so) = match change {
            VolumesChange::Keep(known) => {
                let is_registered = matches!(input, Input::Asked { ask: VolumesAsk::RegisterVolume(asked), .. }
                    if asked.volume == **known);
                let is_free = !self.on_node.contains(&known.spec.key);
                let created = created_in(input).map(|created| created.volume_id.clone());
                (&known.spec.key, is_registered && is_free || created.as_ref() == Some(&known.spec.volume_id))
            }
            VolumesChange::Forget(volume) => {
                let is_forgotten = matches!(input, Input::Asked { ask: VolumesAsk::ForgetVolume(_), .. });
                (volume, is_forgotten && !self.on_node.contains(volume) || says_deleted(input))
            }
            VolumesChange::Delete(volume) => {
                (volume, matches!(input, Input::Asked { ask: VolumesAsk::DeleteVolume(_), .. }))
            }
            VolumesChange::Stay(volume) => (volume, says_it_stays(input)),
        };
        if !is_so {
            self.violation(Law::C59, || format!("{volume} is known otherwise without a reason: {change:?}"));
        }
        match change {
            VolumesChange::Keep(known) => self.known.insert(volume.clone(), known.clone()),
            VolumesChange::Forget(_) => {
                // Unless its caller receives the answer now.
                self.untold.insert(volume.clone(), None);
                self.known.remove(volume)
            }
            VolumesChange::Delete(_) | VolumesChange::Stay(_) => None,
        };
    }

    /// Whether an earlier release, whose caller does not know its outcome, may have released the same claim.
    fn may_have_let_go(&self, asked: &Release) -> bool {
        let ends = |ask: &VolumesAsk| matches!(ask, VolumesAsk::AllocationEnded(ended) if ended.allocation == asked.allocation);
        self.untold.contains(&asked.volume, Some(&asked.allocation)) || self.asks.values().any(ends)
    }

    /// A success is the answer of the volume's actor to this request, or needs no actor.
    fn replied(&mut self, id: AskId, answer: &VolumesAnswer, input: &Input<Volumes>) {
        let Some(asked) = self.asks.remove(&id) else { return };
        let heard = match input {
            Input::Returned {
                call: VolumesCall::Ask { ask, .. },
                outcome: Ok(VolumesOutcome::Answered(Ok(answer))),
                ..
            } => Some((ask, answer)),
            _ => None,
        };
        let is_so = match (&asked, answer) {
            (VolumesAsk::Claim(asked), VolumesAnswer::Claim(Ok(claimed))) => matches!(heard,
                Some((VolumeAsk::Claim(claim), VolumeAnswer::Claim(Ok(heard))))
                    if claim.allocation == asked.allocation && heard == claimed),
            (VolumesAsk::CreateVolume(_), VolumesAnswer::CreateVolume(Ok(created))) => {
                matches!(heard, Some((_, VolumeAnswer::CreateVolume(Ok(heard)))) if heard == created)
            }
            (VolumesAsk::DeleteVolume(asked), VolumesAnswer::DeleteVolume(Ok(deleted)))
                if deleted.did_exist =>
            {
                // An earlier deletion may have done it.
                self.untold.contains(&asked.volume, None)
                    || matches!(heard, Some((_, VolumeAnswer::DeleteVolume(Ok(heard)))) if heard == deleted)
            }
            (VolumesAsk::CreateGroupSnapshot(_), VolumesAnswer::CreateGroupSnapshot(Ok(group))) => {
                matches!(heard, Some((_, VolumeAnswer::PlaceOrder(Ok(Done::GroupTaken(heard))))) if heard == group)
            }
            (VolumesAsk::Release(asked), VolumesAnswer::Release(Ok(released))) => match heard {
                Some((VolumeAsk::Release(release), VolumeAnswer::Release(Ok(heard)))) => {
                    let was_held = heard.was_held || released.was_held && self.may_have_let_go(asked);
                    release.allocation == asked.allocation
                        && Released { was_held, ..heard.clone() } == *released
                }
                Some(_) => false,
                None => matches!(input, Input::Asked { .. }) && !self.on_node.contains(&asked.volume),
            },
            _ => true,
        };
        self.untold.told(&asked, answer);
        if !is_so {
            self.violation(Law::V15, || format!("{answer:?} is told, and no actor has answered so"));
        }
    }
}

/// The created volume in this input, if the input is an answer of a volume about it.
fn created_in(input: &Input<Volumes>) -> Option<&csi::Volume> {
    match answer_in(input)? {
        VolumeAnswer::CreateVolume(Ok(created)) => Some(&created.volume),
        VolumeAnswer::DescribeVolume(status) => status.created.as_deref(),
        _ => None,
    }
}

fn says_deleted(input: &Input<Volumes>) -> bool {
    match answer_in(input) {
        Some(VolumeAnswer::DeleteVolume(Ok(_))) => true,
        Some(VolumeAnswer::DescribeVolume(status)) => {
            matches!(status.exists, Exists::Absent | Exists::Registered)
        }
        _ => false,
    }
}

/// Whether this reports that a volume is not being deleted: its deletion was refused, by a sick disk for instance, or the volume exists.
fn says_it_stays(input: &Input<Volumes>) -> bool {
    if let Input::Returned { call, outcome: Ok(VolumesOutcome::Answered(Err(error))), .. } = input {
        let is_deletion = matches!(call, VolumesCall::Ask { ask: VolumeAsk::DeleteVolume(_), .. });
        return is_deletion && matches!(error, AskError::NotDurable { is_begun: false, .. });
    }
    match answer_in(input) {
        Some(VolumeAnswer::CreateVolume(Ok(_))) => true,
        Some(VolumeAnswer::DeleteVolume(Err(error))) => !error.goes_on(),
        Some(VolumeAnswer::DescribeVolume(status)) => status.exists.is_there(),
        _ => false,
    }
}

fn answer_in(input: &Input<Volumes>) -> Option<&VolumeAnswer> {
    match input {
        Input::Returned { outcome: Ok(VolumesOutcome::Answered(answer)), .. } => answer.as_ref().ok(),
        _ => None,
    }
}

impl LawChecker<Volumes> for VolumesLaws {
    fn rebuilt(&mut self, _: Moment, machine: &Volumes) {
        let known = machine.view().volumes.into_iter().filter(|report| report.is_known);
        let known = known.map(|report| (report.volume.spec.key.clone(), report.volume)).collect();
        let (verdict, on_node) = (std::mem::take(&mut self.verdict), std::mem::take(&mut self.on_node));
        *self = Self { known, verdict, on_node, ..Self::default() };
    }

    fn stepped(&mut self, _: Moment, input: &Input<Volumes>, effects: &[Effect<Volumes>], _: &Volumes) {
        match input {
            Input::Asked { id, ask, .. } => self.asked(*id, ask, effects),
            Input::Returned { call, outcome, .. } => self.returned(call, outcome.as_ref().ok(), effects),
            Input::StopRequested(_) => self.is_stopping = true,
            Input::Resumed | Input::Elapsed(_) => {}
        }
        for effect in effects {
            match effect {
                Effect::Persist(_, change) => self.kept(change, input),
                Effect::Reply(id, answer) => self.replied(*id, answer, input),
                Effect::Call { call, .. } => self.called(call),
                Effect::Publish(_) | Effect::StartTimer(..) | Effect::CancelTimer(_) | Effect::Stop(_) => {}
            }
        }
        self.check_route();
    }

    fn crashed(&mut self, input: &Input<Volumes>) {
        if let Input::Asked { id, .. } = input {
            self.asks.remove(id);
        }
    }

    fn panicked(&mut self, input: &Input<Volumes>) {
        self.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }

    fn left(&mut self, left: &Left<Volumes>, is_durable: bool) {
        let Left::Answer(Some(_), answer) = left else { return };
        let is_promise = matches!(
            **answer,
            VolumesAnswer::RegisterVolume(Ok(_))
                | VolumesAnswer::ForgetVolume(Ok(_))
                | VolumesAnswer::CreateVolume(Ok(_))
                | VolumesAnswer::DeleteVolume(Ok(_))
        );
        if is_promise && !is_durable {
            self.violation(Law::Shell1, || format!("{answer:?} left before it was on disk"));
        }
    }
}
