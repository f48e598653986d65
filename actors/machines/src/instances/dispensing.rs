//! Dispenses plugins, checks them on demand, and waits for their instances to retire.

use std::time::Duration;

use super::messages::{AwaitRetiredError, CheckError, Dispense, DispenseError, Dispensed, InstancesAnswer};
use super::state::{Instances, InstancesCall, InstancesOutcome, InstancesTimer};
use crate::AskError;
use crate::kernel::{AskId, CallKey, CallLost, StepContext};
use crate::supervisor::ChildState;
use crate::vocabulary::{AllocationId, Attempt, Health, PluginKey, Timestamp};

/// The deadline of a check on demand: the connection and each call have their own timeouts.
const LOOK_DEADLINE: Duration = Duration::from_secs(120);

impl Instances {
    pub(super) fn waiting(&self) -> usize {
        self.dispensing.len() + self.checking.len() + self.retirement.len() + self.gates.len()
    }

    // === Dispensing ===

    pub(super) fn dispense(
        &mut self,
        id: AskId,
        asked_at: Timestamp,
        dispense: &Dispense,
        cx: &mut StepContext<Self>,
    ) {
        let Dispense { plugin, within } = dispense;
        let until = asked_at + *within;
        match self.present(plugin, cx.now().since(asked_at)) {
            _ if self.is_stopping => {
                let error = DispenseError::Stopping { plugin: plugin.clone() };
                cx.reply(id, InstancesAnswer::Dispense(Err(error)));
            }
            answer @ Ok(_) => cx.reply(id, InstancesAnswer::Dispense(answer)),
            answer @ Err(_) if until <= cx.now() => cx.reply(id, InstancesAnswer::Dispense(answer)),
            Err(_) if self.waiting() >= self.options.waiting_max => {
                let error = DispenseError::TooMany { waiting: self.waiting() };
                cx.reply(id, InstancesAnswer::Dispense(Err(error)));
            }
            Err(_) => {
                self.dispensing.add(plugin.clone(), id, asked_at);
                cx.start_timer(InstancesTimer::Dispense(plugin.clone(), id), until);
            }
        }
    }

    /// Answers all callers that wait for a plugin, if it is available now.
    pub(super) fn serve_waiting(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        if !self.dispensing.waits_for(plugin) {
            return;
        }
        let Ok(dispensed) = self.present(plugin, Duration::ZERO) else { return };
        for id in self.dispensing.take(plugin) {
            cx.cancel_timer(InstancesTimer::Dispense(plugin.clone(), id));
            cx.reply(id, InstancesAnswer::Dispense(Ok(dispensed.clone())));
        }
    }

    pub(super) fn dispense_ended(&mut self, plugin: &PluginKey, id: AskId, cx: &mut StepContext<Self>) {
        if let Some(since) = self.dispensing.remove(plugin, id) {
            let answer = self.present(plugin, cx.now().since(since));
            cx.reply(id, InstancesAnswer::Dispense(answer));
        }
    }

    /// The present answer for a plugin (RES-01).
    fn present(&self, plugin: &PluginKey, waited: Duration) -> Result<Dispensed, DispenseError> {
        let not_served = || DispenseError::NotServed { plugin: plugin.clone(), waited };
        let not_ready = |allocation: &AllocationId| DispenseError::NotReady {
            plugin: plugin.clone(),
            allocation: allocation.clone(),
            waited,
        };
        let Some(active) = self.active.get(plugin) else { return Err(not_served()) };
        let next = &active.registration.allocation;
        let Some(entry) = self.active_entry(plugin) else { return Err(not_ready(next)) };
        let report = &entry.report;
        if report.generation != active.generation {
            return Err(not_ready(next));
        }
        match (entry.child.state(), &report.health, &report.fingerprint) {
            (ChildState::Running(_), Health::Healthy, Some(fingerprint)) => Ok(Dispensed {
                plugin: plugin.clone(),
                allocation: report.allocation.clone(),
                socket: report.socket.clone(),
                generation: report.generation,
                fingerprint: fingerprint.clone(),
            }),
            (
                ChildState::Running(_) | ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp,
                Health::Unhealthy { reason },
                _,
            ) => Err(DispenseError::Unhealthy {
                plugin: plugin.clone(),
                allocation: report.allocation.clone(),
                reason: reason.clone(),
                waited,
            }),
            (ChildState::Running(_), Health::Starting | Health::Gone, _)
            | (ChildState::Running(_), Health::Healthy, None)
            | (
                ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp,
                Health::Starting | Health::Healthy | Health::Gone,
                _,
            )
            | (ChildState::Stopping(_), _, _) => Err(not_ready(next)),
        }
    }

    // === Checking ===

    pub(super) fn check_now(&mut self, id: AskId, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        if self.is_stopping {
            let error = CheckError::Stopping { plugin: plugin.clone() };
            cx.reply(id, InstancesAnswer::CheckNow(Err(error)));
            return;
        }
        let place = self.active_place(plugin);
        match place.as_ref().and_then(|place| self.entries.get(place)).map(|entry| entry.child.state()) {
            None => {
                let error = CheckError::NotServed { plugin: plugin.clone() };
                cx.reply(id, InstancesAnswer::CheckNow(Err(error)));
            }
            Some(ChildState::Running(_)) if self.waiting() >= self.options.waiting_max => {
                let error = CheckError::TooMany { waiting: self.waiting() };
                cx.reply(id, InstancesAnswer::CheckNow(Err(error)));
            }
            Some(ChildState::Running(life)) => {
                if !self.checking.waits_for(plugin) {
                    self.look(plugin, life, cx);
                }
                self.checking.add(plugin.clone(), id, cx.now());
            }
            Some(ChildState::GivenUp) => {
                place.iter().for_each(|place| self.revive(place, cx));
                self.answer_check(id, plugin, cx);
            }
            // No instance can check it; the known state gives the reason.
            Some(ChildState::Stopping(_) | ChildState::Waiting(_) | ChildState::Pausing) => {
                self.answer_check(id, plugin, cx);
            }
        }
    }

    /// Moves callers that wait for a check to the instance that serves now, or answers them that there is none.
    pub(super) fn move_checks(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        if !self.checking.waits_for(plugin) {
            return;
        }
        match self.active_entry(plugin).map(|entry| entry.child.state()) {
            Some(ChildState::Running(life)) if self.looking.get(plugin) == Some(&life) => {}
            Some(ChildState::Running(life)) => self.look(plugin, life, cx),
            // Its successor checks.
            Some(ChildState::Waiting(_)) => {}
            Some(ChildState::Stopping(_)) if self.wanted_again(plugin) => {}
            Some(ChildState::Stopping(_) | ChildState::Pausing | ChildState::GivenUp) | None => {
                self.answer_checks(plugin, cx);
            }
        }
    }

    /// Whether the active registration is to have an instance.
    fn wanted_again(&self, plugin: &PluginKey) -> bool {
        !self.is_stopping && self.active_place(plugin).is_some_and(|place| self.wanted.contains_key(&place))
    }

    pub(super) fn look(&mut self, plugin: &PluginKey, life: Attempt, cx: &mut StepContext<Self>) {
        self.looking.insert(plugin.clone(), life);
        let look = InstancesCall::Look { plugin: plugin.clone(), life };
        cx.call(CallKey::default(), LOOK_DEADLINE, look);
    }

    /// A check has ended, successfully or not. The instance reported before it answered, so the state is up to date. An instance that has
    /// ended without an answer has lost its connection or crashed: its end decides.
    pub(super) fn looked(
        &mut self,
        plugin: &PluginKey,
        life: Attempt,
        outcome: &Result<InstancesOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let has_ended = matches!(outcome, Ok(InstancesOutcome::Looked(Err(AskError::NotRunning { .. }))));
        let current = self.active_entry(plugin).and_then(|entry| entry.child.life());
        // Callers of an instance that has ended were answered at its end (REG-08).
        if current == Some(life) && !has_ended {
            self.answer_checks(plugin, cx);
        }
    }

    pub(super) fn answer_checks(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        self.looking.remove(plugin);
        for id in self.checking.take(plugin) {
            self.answer_check(id, plugin, cx);
        }
    }

    fn answer_check(&self, id: AskId, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        // For an instance that leaves: its last report.
        let report = self.active_entry(plugin).map(|entry| &entry.report).or_else(|| self.shown.get(plugin));
        let report = report.cloned();
        let answer = report.ok_or_else(|| CheckError::NotServed { plugin: plugin.clone() });
        cx.reply(id, InstancesAnswer::CheckNow(answer));
    }

    // === Waiting for the end ===

    pub(super) fn retirement_asked(
        &mut self,
        id: AskId,
        asked_at: Timestamp,
        allocation: &AllocationId,
        cx: &mut StepContext<Self>,
    ) {
        if !self.is_talked_to(allocation) {
            cx.reply(id, InstancesAnswer::AwaitRetired(Ok(())));
        } else if self.waiting() >= self.options.waiting_max {
            let error = AwaitRetiredError::TooMany { waiting: self.waiting() };
            cx.reply(id, InstancesAnswer::AwaitRetired(Err(error)));
        } else {
            self.retirement.add(allocation.clone(), id, asked_at);
            let until = (asked_at + self.options.retirement_deadline).max(cx.now());
            cx.start_timer(InstancesTimer::AwaitRetired(allocation.clone(), id), until);
        }
    }

    /// Whether an instance is connected to an allocation, or will be after its pause.
    fn is_talked_to(&self, allocation: &AllocationId) -> bool {
        self.entries.values().any(|entry| match entry.child.state() {
            ChildState::Running(_)
            | ChildState::Stopping(_)
            | ChildState::Waiting(_)
            | ChildState::Pausing => entry.report.allocation == *allocation,
            ChildState::GivenUp => false,
        })
    }

    /// Answers all callers that wait for the instances of an allocation, if none is left. Called when an instance has ended.
    pub(super) fn answer_retirement(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        if !self.retirement.waits_for(allocation) || self.is_talked_to(allocation) {
            return;
        }
        for id in self.retirement.take(allocation) {
            cx.cancel_timer(InstancesTimer::AwaitRetired(allocation.clone(), id));
            cx.reply(id, InstancesAnswer::AwaitRetired(Ok(())));
        }
    }

    pub(super) fn retirement_overdue(
        &mut self,
        allocation: &AllocationId,
        id: AskId,
        cx: &mut StepContext<Self>,
    ) {
        if let Some(since) = self.retirement.remove(allocation, id) {
            let waited = cx.now().since(since);
            let error = AwaitRetiredError::StillServing { allocation: allocation.clone(), waited };
            cx.reply(id, InstancesAnswer::AwaitRetired(Err(error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::super::state::{ChildEnded, Entry, InstancesOptions};
    use super::*;
    use crate::kernel::{Effect, Ending, Machine};
    use crate::registry::{Entry as Registered, Standing};
    use crate::surroundings::begun;
    use crate::vocabulary::{
        Generation, Moment, PluginName, PluginType, Registration, RegistrationNumber, SocketPath,
    };

    /// One allocation of one plugin.
    fn registered(number: u64) -> Registered {
        let name = format!("p{number}");
        Registered {
            number: RegistrationNumber::new(number),
            registration: Arc::new(Registration {
                plugin: PluginKey::new(PluginType::CsiNode, PluginName::new(&name).unwrap()),
                allocation: AllocationId::new(&name).unwrap(),
                socket: SocketPath::new(format!("/run/{name}.sock")).unwrap(),
                provider: None,
                version: None,
                options: Arc::default(),
                policy: None,
            }),
            generation: Generation::new(number),
            standing: Standing::Confirmed,
            since: begun(),
        }
    }

    #[test]
    fn the_ends_of_thousands_that_are_waited_for_cost_no_more_than_each_its_own_scl_08() {
        const COUNT: u64 = 2_500;
        let mut cx = StepContext::new(Moment { now: begun(), random: 0 });
        let mut instances = Instances::restore(&InstancesOptions::default(), (), cx.moment());
        let mut ends = Vec::new();
        for number in 1..=COUNT {
            let registered = registered(number);
            let Registration { plugin, allocation, .. } = &*registered.registration;
            let mut entry = Entry::new(&registered, begun());
            let life = Attempt::new(number);
            entry.child.start(life);
            instances.entries.insert((plugin.clone(), allocation.clone()), entry);
            let (plugin, allocation) = (plugin.clone(), allocation.clone());
            ends.push(ChildEnded { plugin, allocation, life, ending: Ending::Normal });
        }
        for (number, end) in (1..).zip(&ends) {
            let id = AskId::new(number);
            instances.retirement_asked(id, begun(), &end.allocation, &mut cx);
        }
        instances.stop(&mut cx);
        let replies = |cx: &mut StepContext<Instances>| {
            cx.drain().filter(|effect| matches!(effect, Effect::Reply(..))).count()
        };
        assert_eq!(replies(&mut cx), 0, "all are waited for");
        let began = Instant::now();
        for end in &ends {
            instances.ended(end, &mut cx);
            assert_eq!(replies(&mut cx), 1, "{}", end.allocation);
        }
        // With a scan of all callers at each end it takes minutes.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}
