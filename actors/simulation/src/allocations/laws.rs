//! Checks the owner of the allocations against a plain list of the host's unanswered messages about each allocation.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::allocation::{AllocationConfig, AllocationPhase, Task};
use callboard_actors::allocations::{
    Allocations, AllocationsAnswer, AllocationsAsk, AllocationsCall, AllocationsChange, AllocationsNews,
    AllocationsOutcome, Order,
};
use callboard_actors::shell::{AskId, Effect, Input, StopMode};
use callboard_actors::vocabulary::{AllocationId, Attempt, Health, Moment};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::known::{Known, NO_ASKER};

/// Observes every step of the owner of the allocations.
#[derive(Debug, Clone, Hash, Default)]
pub struct AllocationsLaws {
    pub(super) known: BTreeMap<AllocationId, Known>,
    last_life: Attempt,
    pub(super) ending: Option<StopMode>,
    /// The stops that wait until the volumes of the plugin are released.
    pub(super) waiting: BTreeMap<AskId, AllocationId>,
    /// The allocations whose supervisor was let go after too many crashes, so that nothing was cleaned up.
    pub(in super::super) abandoned: BTreeSet<AllocationId>,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl AllocationsLaws {
    /// A successor replaces the former owner, with its memory: callers that waited for an answer were refused.
    pub(in super::super) fn succeed(&mut self) {
        for known in self.known.values_mut() {
            known.orders.clear();
            (known.noted, known.is_down) = (NO_ASKER, true);
        }
    }

    /// The known state of an allocation.
    pub(in super::super) fn known(&self, allocation: &AllocationId) -> Option<&Known> {
        self.known.get(allocation)
    }

    fn violation(&mut self, what: impl FnOnce() -> String) {
        self.verdict.violation(Law::A5, what);
    }

    // === Its requests and notifications ===

    fn asked(&mut self, id: AskId, ask: &AllocationsAsk, effects: &[Effect<Allocations>]) {
        let Some((allocation, order)) = ordered(ask) else { return };
        if is_answered(id, effects) {
            return;
        }
        if self.waits(id, allocation, effects) {
            return;
        }
        self.check_asked_stop(ask);
        let spec = match ask {
            AllocationsAsk::PrepareAllocation(prepare) => Some(&prepare.spec),
            AllocationsAsk::AdoptAllocation(adopt) => Some(&adopt.spec),
            AllocationsAsk::TaskStarted(_)
            | AllocationsAsk::TaskExited(_)
            | AllocationsAsk::StopAllocation(_)
            | AllocationsAsk::ListAllocations(_)
            | AllocationsAsk::DescribeAllocations(_)
            | AllocationsAsk::AllocationReported(_) => None,
        };
        if let Some(spec) = spec {
            self.abandoned.remove(allocation);
            let known = self.known.entry(allocation.clone()).or_insert_with(|| Known::new(spec));
            let is_same = *known.spec == *spec;
            if !is_same {
                self.violation(|| format!("{allocation} is taken with other contents than before"));
            }
        }
        let Some(known) = self.known.get_mut(allocation) else {
            self.violation(|| format!("{order:?} is taken for {allocation}, which is not known"));
            return;
        };
        known.takes(id, &order);
        let is_told = |effect: &_| matches!(effect, Effect::Call { call: AllocationsCall::Tell { ask, .. }, .. } if *ask == id);
        if !known.is_down && !effects.iter().any(is_told) {
            self.violation(|| format!("the supervisor of {allocation} lives and is not told: {order:?}"));
        }
    }

    fn heard(&mut self, input: &Input<Allocations>) {
        match input {
            Input::Returned { outcome: Ok(AllocationsOutcome::Ended(ended)), .. } => {
                for ended in ended {
                    let known = self.known.get_mut(&ended.allocation);
                    if let Some(known) = known.filter(|known| known.life == ended.life) {
                        known.is_down = true;
                    }
                }
            }
            Input::StopRequested(mode) => {
                self.ending = Some(*mode);
                if *mode == StopMode::Stop {
                    self.known.values_mut().for_each(|known| known.task = Task::Leaving);
                }
            }
            Input::Resumed | Input::Asked { .. } | Input::Returned { .. } | Input::Elapsed(_) => {}
        }
    }

    // === Its effects ===

    fn called(&mut self, call: &AllocationsCall, input: &Input<Allocations>) {
        match call {
            AllocationsCall::Start { life, config } => self.started(*life, config, input),
            AllocationsCall::Tell { allocation, life, ask, order } => {
                self.told(allocation, *life, *ask, order);
            }
            AllocationsCall::Look { allocation, life }
            | AllocationsCall::End { allocation, life, .. }
            | AllocationsCall::Kill { allocation, life } => {
                let is_meant = self.known.get(allocation).is_some_and(|known| known.life == *life);
                if !is_meant {
                    self.violation(|| format!("life {life} of {allocation} is meant, which is over"));
                }
            }
            AllocationsCall::AwaitEndings
            | AllocationsCall::AwaitUnused { .. }
            | AllocationsCall::Describe(_) => {}
        }
    }

    fn started(&mut self, life: Attempt, config: &AllocationConfig, input: &Input<Allocations>) {
        let (allocation, ending) = (&config.spec.allocation, self.ending);
        let is_resuming = matches!(input, Input::Resumed);
        let is_new = life > self.last_life;
        self.last_life = self.last_life.max(life);
        let Some(known) = self.known.get_mut(allocation) else {
            self.violation(|| format!("a supervisor is started for {allocation}, which was not prepared"));
            return;
        };
        let is_taken_back = is_resuming && known.life == life;
        let found = if !is_new && !is_taken_back {
            Some(format!("life {life} of {allocation} begins a second time"))
        } else if !known.is_down && !is_taken_back {
            Some(format!("a second supervisor of {allocation} is started"))
        } else if *known.spec != config.spec {
            Some(format!("the supervisor of {allocation} is born with another spec"))
        } else if known.task != config.task {
            Some(format!("{allocation} is {:?}, and its supervisor is born as {:?}", known.task, config.task))
        } else if known.health != config.health && !is_taken_back {
            Some(format!("{allocation} was told as {}, and is born as {}", known.health, config.health))
        } else {
            None
        };
        (known.life, known.is_down, known.is_given_up) = (life, false, false);
        known.begins_anew();
        if let Some(what) = found {
            self.violation(|| what);
        }
        let is_last_work = ending == Some(StopMode::Stop) && config.task == Task::Leaving;
        if ending.is_some() && !is_last_work {
            self.verdict.violation(Law::S3, || "a supervisor is started while everything ends".to_owned());
        }
    }

    fn told(&mut self, allocation: &AllocationId, life: Attempt, ask: AskId, order: &Order) {
        let is_behind_stop = self.is_behind_stop(allocation, ask, order);
        let Some(known) = self.known.get_mut(allocation) else {
            self.violation(|| format!("{order:?} is told of {allocation}, which is not known"));
            return;
        };
        let found = if known.life != life || known.is_down {
            Some(format!("life {life} of {allocation} is told {order:?}, and is over"))
        } else if ask == NO_ASKER {
            // An answered order is sent again after the earlier unanswered ones.
            let is_so =
                matches!((order, known.task), (Order::Start, Task::Running) | (Order::Stop, Task::Leaving));
            (!is_so).then(|| format!("{order:?} is told of {allocation}, which was not requested"))
        } else if !known.is_order(ask, order) {
            Some(format!("{order:?} is told of {allocation}, which was not said or is answered"))
        } else if is_behind_stop {
            Some(format!("{order:?} is told of {allocation}, whose stop waits and came first"))
        } else if !known.is_next(ask) {
            Some(format!("{order:?} is told of {allocation} twice, or behind what came later"))
        } else {
            known.told = known.told.max(ask);
            known.told_ever += 1;
            None
        };
        if let Some(what) = found {
            self.violation(|| what);
        }
    }

    /// An allocation that could not be prepared is removed without a request.
    fn kept(&mut self, allocation: &AllocationId, task: Task, effects: &[Effect<Allocations>]) {
        let is_refusal = |effect: &_| {
            matches!(
                effect,
                Effect::Reply(
                    _,
                    AllocationsAnswer::PrepareAllocation(Err(_)) | AllocationsAnswer::AdoptAllocation(Err(_))
                )
            )
        };
        if let Some(known) = self.known.get_mut(allocation)
            && task == Task::Leaving
            && effects.iter().any(is_refusal)
        {
            known.task = task;
        }
    }

    fn published(&mut self, news: &AllocationsNews, input: &Input<Allocations>) {
        let allocation = match news {
            AllocationsNews::Changed(status) => &status.allocation,
            AllocationsNews::Task(event) => &event.allocation,
            AllocationsNews::RestartRequested { allocation, .. } => allocation,
            AllocationsNews::Gone(_) | AllocationsNews::Refused { .. } => return,
        };
        let is_given_up = matches!(input, Input::Returned { outcome: Ok(AllocationsOutcome::Ended(_)), .. });
        let is_late = match input {
            Input::Asked { ask: AllocationsAsk::AllocationReported(reported), .. } => {
                self.known.get(allocation).is_none_or(|known| known.life != reported.life)
            }
            Input::Asked { .. }
            | Input::Resumed
            | Input::Returned { .. }
            | Input::Elapsed(_)
            | Input::StopRequested(_) => false,
        };
        if is_late {
            self.verdict
                .violation(Law::Reg8, || format!("what a former supervisor of {allocation} said is told"));
        }
        let Some(known) = self.known.get_mut(allocation) else { return };
        known.is_given_up |= is_given_up;
        if let AllocationsNews::Changed(status) = news {
            known.health = status.health.clone();
            let is_registered = status.phase == AllocationPhase::Registered && known.task == Task::Running;
            known.is_registered |= is_registered && !is_given_up;
        }
    }

    /// A supervisor that was restarted has received all waiting orders, and all orders of a removed supervisor are answered.
    fn check(&mut self, input: &Input<Allocations>, effects: &[Effect<Allocations>]) {
        if !matches!(input, Input::Resumed) {
            for effect in effects {
                let Effect::Call { call: AllocationsCall::Start { config, .. }, .. } = effect else {
                    continue;
                };
                let allocation = &config.spec.allocation;
                let known = self.known.get(allocation);
                if known.is_some_and(|known| known.told_ever < known.orders.len()) {
                    self.violation(|| {
                        format!("the new supervisor of {allocation} is not told all that waits")
                    });
                }
            }
        }
        for effect in effects {
            let Effect::Publish(AllocationsNews::Gone(allocation)) = effect else { continue };
            let Some(known) = self.known.remove(allocation) else {
                self.violation(|| format!("{allocation} is gone, and was not there"));
                continue;
            };
            if known.is_given_up {
                self.abandoned.insert(allocation.clone());
            }
            let is_refused = effects.iter().any(|effect| matches!(effect, Effect::Reply(..)));
            if known.task != Task::Leaving && self.ending.is_none() && !is_refused {
                self.violation(|| format!("{allocation} is let go, and was not stopped"));
            }
            if !known.orders.is_empty() {
                self.verdict
                    .violation(Law::Shell7, || format!("{allocation} is gone, and orders wait for it"));
            }
        }
    }
}

impl LawChecker<Allocations> for AllocationsLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Allocations) {
        self.ending = None;
        self.waiting.clear();
        self.known.values_mut().for_each(|known| known.health = Health::Starting);
    }

    fn stepped(
        &mut self,
        _moment: Moment,
        input: &Input<Allocations>,
        effects: &[Effect<Allocations>],
        _machine: &Allocations,
    ) {
        if let Input::Asked { id, ask, .. } = input {
            self.asked(*id, ask, effects);
        }
        for effect in effects {
            if let Effect::Publish(news) = effect {
                self.published(news, input);
            }
        }
        self.end_waits(input, effects);
        self.heard(input);
        for effect in effects {
            match effect {
                Effect::Call { call, .. } => self.called(call, input),
                // A report is not an order.
                Effect::Reply(_, AllocationsAnswer::AllocationReported(())) => {}
                Effect::Reply(id, _) => self.forget(*id),
                Effect::Persist(_, AllocationsChange::Keep(allocation, record)) => {
                    self.kept(allocation, record.task, effects);
                }
                // A host that detaches does not publish that they are gone.
                Effect::Persist(_, AllocationsChange::Forget(allocation)) => {
                    if self.ending == Some(StopMode::Detach) {
                        self.known.remove(allocation);
                    }
                }
                Effect::Publish(_) | Effect::StartTimer(..) | Effect::CancelTimer(_) | Effect::Stop(_) => {}
            }
        }
        self.check(input, effects);
    }

    fn crashed(&mut self, input: &Input<Allocations>) {
        if let Input::Asked { id, .. } = input {
            self.forget(*id);
        }
    }

    fn panicked(&mut self, input: &Input<Allocations>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}

impl AllocationsLaws {
    fn forget(&mut self, id: AskId) {
        self.known.values_mut().for_each(|known| {
            known.orders.remove(&id);
            known.late.remove(&id);
        });
    }
}

pub(super) fn is_answered(id: AskId, effects: &[Effect<Allocations>]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Reply(answered, _) if *answered == id))
}

/// The order in a request, and its allocation.
fn ordered(ask: &AllocationsAsk) -> Option<(&AllocationId, Order)> {
    match ask {
        AllocationsAsk::PrepareAllocation(prepare) => Some((&prepare.spec.allocation, Order::Prepare)),
        AllocationsAsk::AdoptAllocation(adopt) => Some((&adopt.spec.allocation, Order::Adopt)),
        AllocationsAsk::TaskStarted(started) => Some((&started.allocation, Order::Start)),
        AllocationsAsk::TaskExited(exited) => Some((&exited.allocation, Order::Exit(exited.how.clone()))),
        AllocationsAsk::StopAllocation(stop) => Some((&stop.allocation, Order::Stop)),
        AllocationsAsk::ListAllocations(_)
        | AllocationsAsk::DescribeAllocations(_)
        | AllocationsAsk::AllocationReported(_) => None,
    }
}
