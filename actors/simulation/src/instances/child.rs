//! The laws of one instance.

use std::collections::BTreeSet;
use std::time::Duration;

use callboard_actors::csi::{Answer, CallError, Class, Readiness, Rpc};
use callboard_actors::instance::{
    Half, Instance, InstanceAsk, InstanceCall, InstanceConfig, InstanceReport, InstanceTimer, Reached,
};
use callboard_actors::shell::{CallKey, CallLost, Effect, Input, Machine};
use callboard_actors::vocabulary::{Fitness, Health, Moment, PluginCapability, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::calls::{is_declined, is_failure, needs_readiness, publishes_unhealthy};

/// Observes every step of one instance.
#[derive(Debug, Clone, Hash)]
pub struct InstanceLaws {
    config: InstanceConfig,
    /// The call in flight.
    flying: Option<(CallKey, InstanceCall)>,
    /// The results that were read over the present connection; `None` without one.
    read: Option<BTreeSet<Rpc>>,
    /// The capabilities of the plugin as a whole, as last read.
    offers: Vec<PluginCapability>,
    is_ready: bool,
    is_retired: bool,
    is_gone: bool,
    /// The wait for the calls in flight, when the instance retires.
    draining: Option<CallKey>,
    /// Whether that wait is over: no call is in flight, or the deadline has passed.
    is_drained: bool,
    /// Whether its connection has ended.
    is_lost: bool,
    has_ended: bool,
    was_healthy: bool,
    failures: u32,
    told: Option<InstanceReport>,
    was_built: bool,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl InstanceLaws {
    /// An instance with this configuration.
    #[must_use]
    pub const fn new(config: InstanceConfig) -> Self {
        Self {
            config,
            flying: None,
            read: None,
            offers: Vec::new(),
            is_ready: false,
            is_retired: false,
            is_gone: false,
            draining: None,
            is_drained: false,
            is_lost: false,
            has_ended: false,
            was_healthy: false,
            failures: 0,
            told: None,
            was_built: false,
            verdict: Verdict::NONE,
        }
    }

    /// Its configuration.
    #[must_use]
    pub const fn config(&self) -> &InstanceConfig {
        &self.config
    }

    fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        let plugin = &self.config.plugin;
        self.verdict.violation(law, || format!("instance of {plugin}: {}", what()));
    }

    // === Inputs ===

    /// Records an input. True if it ends the call in flight.
    fn hear(&mut self, input: &Input<Instance>) -> bool {
        match input {
            Input::Asked { ask: InstanceAsk::Retire(_), .. } | Input::StopRequested(_) => {
                self.is_retired = true;
                false
            }
            Input::Returned { key, .. } if self.draining.as_ref() == Some(key) => {
                self.is_drained = true;
                false
            }
            Input::Returned { key, outcome, .. } => match self.flying.take_if(|(flying, _)| flying == key) {
                Some((_, call)) => {
                    self.returned(call, outcome);
                    true
                }
                None => false,
            },
            Input::Asked { ask: InstanceAsk::ConnectionEnded(_), .. } => {
                if self.read.take().is_some() && !self.is_retired {
                    self.is_lost = true;
                }
                false
            }
            Input::Resumed
            | Input::Asked { ask: InstanceAsk::LookNow(_), .. }
            | Input::Elapsed(InstanceTimer::Look) => false,
        }
    }

    /// The instance ends with its one connection (I2).
    fn returned(&mut self, call: InstanceCall, outcome: &Result<Result<Reached, CallError>, CallLost>) {
        let had_connection = self.read.is_some();
        self.read_from(call, outcome);
        self.is_lost |= had_connection && self.read.is_none() && !self.is_retired;
    }

    fn read_from(&mut self, call: InstanceCall, outcome: &Result<Result<Reached, CallError>, CallLost>) {
        match (call, outcome) {
            (InstanceCall::Dial, Ok(Ok(Reached::Connected { .. }))) => self.read = Some(BTreeSet::new()),
            (InstanceCall::Ask(rpc), Ok(Ok(Reached::Answered(answer, _)))) if answer.rpc() == rpc => {
                self.is_ready |= matches!(answer, Answer::Probe(Readiness::Ready));
                if let Answer::PluginCapabilities { capabilities, .. } = answer {
                    self.offers.clone_from(capabilities);
                }
                if !matches!(answer, Answer::Probe(Readiness::NotReady)) && self.is_credible(answer) {
                    self.read.iter_mut().for_each(|read| {
                        read.insert(rpc);
                    });
                }
            }
            (InstanceCall::Ask(rpc), Ok(Err(error))) if self.may_decline(rpc, error) => {
                self.read.iter_mut().for_each(|read| {
                    read.insert(rpc);
                });
            }
            (_, Ok(Ok(_))) | (InstanceCall::Dial, Err(_)) => self.read = None,
            (_, Ok(Err(error))) => {
                if !matches!(
                    error.class(),
                    Class::Final
                        | Class::Unclear
                        | Class::DeadlineExceeded
                        | Class::Unimplemented
                        | Class::Fault
                ) {
                    self.read = None;
                }
            }
            (InstanceCall::Ask(_) | InstanceCall::Drain(_), Err(_)) => {}
        }
    }

    /// Whether an answer may be accepted: a plugin that calls itself by another name than it is registered under, or had
    /// before, is refused (C031).
    fn is_credible(&self, answer: &Answer) -> bool {
        let Answer::PluginInfo(identity) = answer else { return true };
        let told = self.told.as_ref().and_then(|report| report.fingerprint.as_ref());
        let known = told.or(self.config.predecessor.as_ref()).map(|known| &known.identity.provider);
        let names = known.into_iter().chain(&self.config.expected_provider);
        names.into_iter().all(|name| *name == identity.provider)
    }

    /// Whether a plugin may lack this call: a node plugin (C146), or a controller that names a service that it does not have (C034).
    pub(super) fn may_decline(&self, rpc: Rpc, error: &CallError) -> bool {
        let is_optional = match self.config.half {
            Half::Node => matches!(rpc, Rpc::NodeInfo | Rpc::ControllerCapabilities),
            Half::Controller => rpc == Rpc::GroupControllerCapabilities,
        };
        error.class() == Class::Unimplemented && is_optional
    }

    /// Whether everything that a healthy plugin must report was read over the present connection.
    fn has_read_all(&self) -> bool {
        let needed: &[Rpc] = match self.config.half {
            Half::Controller => {
                &[Rpc::PluginInfo, Rpc::PluginCapabilities, Rpc::Probe, Rpc::ControllerCapabilities]
            }
            Half::Node => {
                &[Rpc::PluginInfo, Rpc::PluginCapabilities, Rpc::Probe, Rpc::NodeCapabilities, Rpc::NodeInfo]
            }
        };
        let groups = Rpc::GroupControllerCapabilities;
        let has_groups = self.config.half == Half::Controller && self.is_offered(groups);
        let is_read = |read: &BTreeSet<Rpc>| needed.iter().all(|rpc| read.contains(rpc));
        self.read.as_ref().is_some_and(|read| is_read(read) && (!has_groups || read.contains(&groups)))
    }

    /// Whether the plugin named the service that a call belongs to (C033, C034).
    fn is_offered(&self, rpc: Rpc) -> bool {
        rpc.needs().is_none_or(|service| self.offers.contains(&service))
    }

    // === Effects ===

    fn calls(&mut self, key: CallKey, deadline: Duration, call: InstanceCall) {
        if matches!(call, InstanceCall::Drain(_)) {
            return self.drains(key, deadline);
        }
        if self.is_retired {
            self.violation(Law::I6, || format!("{call:?} begins although it retires"));
        }
        if let Some((_, flying)) = self.flying {
            self.violation(Law::I3, || format!("{call:?} begins while {flying:?} is under way"));
        }
        if key.generation != self.config.generation {
            self.violation(Law::Shell3, || format!("{call:?} is made for {key:?}"));
        }
        if let InstanceCall::Ask(rpc) = call {
            match &self.read {
                None => self.violation(Law::I2, || format!("{rpc} is asked without a connection")),
                Some(read) if rpc != Rpc::Probe && read.contains(&rpc) => {
                    self.violation(Law::I3, || format!("{rpc} is read a second time over one connection"));
                }
                Some(_) if !self.is_offered(rpc) => {
                    self.violation(Law::I3, || format!("{rpc} is asked of a plugin without that service"));
                }
                Some(_) if !self.is_ready && needs_readiness(rpc) => {
                    self.violation(Law::I3, || {
                        format!("{rpc} is asked of a plugin that has not said that it is ready")
                    });
                }
                Some(_) => {}
            }
        }
        self.flying = Some((key, call));
    }

    /// It waits for the calls in flight, its own and those of leases, no longer than its limit (SHD-04).
    fn drains(&mut self, key: CallKey, deadline: Duration) {
        if !self.is_retired {
            self.violation(Law::I1, || {
                "its connection takes no more calls although it does not retire".to_owned()
            });
        }
        if deadline > self.config.limits.retire_deadline {
            self.violation(Law::I1, || format!("it waits {deadline:?} for the calls in flight"));
        }
        self.draining = Some(key);
        // The result of its own call is stale from here on.
        self.flying = None;
    }

    fn publishes(&mut self, report: &InstanceReport) {
        if self.is_gone {
            self.violation(Law::I6, || format!("{} is told after its end", report.health));
        }
        if self.told.as_ref() == Some(report) {
            self.violation(Law::Scl5, || format!("{} is told twice", report.health));
        }
        if report.generation != self.config.generation || report.allocation != self.config.allocation {
            self.violation(Law::I1, || "the report is of another generation".to_owned());
        }
        if report.fitness == Fitness::Fit && report.health != Health::Healthy && !self.may_be_fit() {
            let (health, failures) = (&report.health, self.failures);
            self.violation(Law::R1b, || format!("it is called fit, {health} after {failures} failures"));
        }
        match &report.health {
            Health::Healthy => self.is_called_healthy(report),
            Health::Unhealthy { reason } if reason.is_empty() => {
                self.violation(Law::I5, || "it is unhealthy without a reason".to_owned());
            }
            Health::Gone => self.is_gone = true,
            Health::Starting | Health::Unhealthy { .. } => {}
        }
        self.told = Some(report.clone());
    }

    /// Failures are tolerated for a while after it was healthy; after the end of the former connection, until the first look has ended.
    fn may_be_fit(&self) -> bool {
        let was_fit = self.config.former.as_ref().is_some_and(|former| former.fitness == Fitness::Fit);
        if self.was_healthy {
            self.failures < self.config.limits.failures_until_unfit()
        } else {
            was_fit && self.failures == 0
        }
    }

    fn is_called_healthy(&mut self, report: &InstanceReport) {
        self.was_healthy = true;
        if !self.has_read_all() || report.fingerprint.is_none() {
            let read = self.read.clone();
            self.violation(Law::I2, || {
                format!("it is called healthy, and over its connection was read {read:?}")
            });
        }
    }

    /// When no call is in flight and it does not retire, the next look is scheduled.
    fn rests(&mut self, moment: Moment, next: Option<Timestamp>, machine: &Instance) {
        let Some(next) = next else {
            self.violation(Law::I4, || "a look is over, and none is to follow".to_owned());
            return;
        };
        let limits = &self.config.limits;
        let pause = next.since(moment.now);
        let longest = |span: Duration, percent: u32| span + span * percent / 100;
        let healthy = longest(limits.round, limits.round_jitter_percent);
        let failing = longest(limits.backoff.longest, limits.backoff.jitter_percent);
        let is_calm = machine.view().health == Health::Healthy && self.failures == 0;
        let bound = if is_calm { healthy } else { failing };
        if pause > bound || pause.is_zero() {
            self.violation(Law::I4, || format!("the next look comes in {pause:?}"));
        }
    }

    /// A failure counts, the first like any later one.
    fn failed(&mut self, machine: &Instance) {
        self.failures += 1;
        let report = machine.view();
        let is_tolerated = self.read.is_some() && self.failures < self.config.limits.failures_until_unhealthy;
        // A healthy instance that has lost its connection is looked at first.
        let is_told = matches!(report.health, Health::Unhealthy { .. })
            || self.is_lost && self.was_healthy && report.health == Health::Starting;
        if !is_tolerated && !is_told {
            let failures = self.failures;
            self.violation(Law::I4, || format!("failure {failures} leaves it {}", report.health));
        }
    }
}

impl LawChecker<Instance> for InstanceLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Instance) {
        if self.was_built {
            let generation = self.config.generation;
            self.violation(Law::I2, || format!("it is built again under generation {generation}"));
        }
        let config = self.config.clone();
        let verdict = std::mem::take(&mut self.verdict);
        *self = Self { verdict, was_built: true, ..Self::new(config) };
    }

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Instance>,
        effects: &[Effect<Instance>],
        machine: &Instance,
    ) {
        let was_gone = self.is_gone;
        let has_ended_call = self.hear(input);
        let mut next_look = None;
        let (mut has_called, mut ends) = (false, false);
        if has_ended_call && !self.is_retired && is_failure(self, input) {
            self.failed(machine);
        }
        if has_ended_call && is_declined(self, input) && publishes_unhealthy(effects) {
            self.violation(Law::I7, || {
                "a node plugin that declines what it may is called unhealthy for it".to_owned()
            });
        }
        for effect in effects {
            match effect {
                Effect::Call { key, deadline, call } => {
                    has_called = true;
                    self.calls(*key, *deadline, *call);
                }
                Effect::Publish(report) => self.publishes(report),
                Effect::StartTimer(InstanceTimer::Look, at) => next_look = Some(*at),
                Effect::Stop(_) => ends = true,
                Effect::Reply(..) | Effect::CancelTimer(_) => {}
                Effect::Persist(_, never) => match *never {},
            }
        }
        let health = machine.view().health;
        if health == Health::Healthy && self.read.is_none() && !self.is_retired {
            self.violation(Law::I2, || "it is called healthy without a connection".to_owned());
        }
        if health == Health::Healthy && has_ended_call && !is_failure(self, input) {
            self.failures = 0;
        }
        if self.is_lost && !ends && !self.has_ended {
            self.violation(Law::I2, || "its connection has ended, and it does not".to_owned());
        }
        self.has_ended |= ends;
        if has_ended_call && !has_called && !self.is_retired && !self.is_lost {
            self.is_ready = false;
            self.rests(moment, next_look, machine);
        }
        if self.is_retired && !was_gone && self.is_drained && !ends {
            self.violation(Law::I1, || "it retires, nothing is under way, and it does not end".to_owned());
        }
        if ends && !self.is_drained && !self.is_lost {
            self.violation(Law::A4, || "it ends without waiting for the calls in flight".to_owned());
        }
        if self.is_retired && !ends && !self.is_gone && !self.has_ended && self.draining.is_none() {
            self.violation(Law::I1, || "it retires, and nothing says when it ends at the latest".to_owned());
        }
    }

    fn panicked(&mut self, input: &Input<Instance>) {
        self.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
