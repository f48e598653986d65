//! The decisions of an instance.

use std::sync::Arc;
use std::time::Duration;

use super::life::first_report;
use super::messages::{InstanceAnswer, InstanceAsk, InstanceReport, LookNow, Retire};
use super::reading::{Next, Refusal, remark};
use super::state::{
    Instance, InstanceCall, InstanceConfig, InstanceTimer, LOOKS_WAITING_MAX, Link, Phase, Reached,
};
use crate::csi::{Answer, CallError, Class, Rpc};
use crate::kernel::{AskId, CallKey, CallLost, Effects, Input, Machine, Never};
use crate::vocabulary::{Attempt, BackoffState, CsiFingerprint, Fitness, Health, Moment};

/// The margin between the call's own timeout and that of the shell, so that the call's own error is reported.
const CALL_GRACE: Duration = Duration::from_secs(2);

const OTHER_ANSWER: &str = "another question was answered than was asked";

impl Machine for Instance {
    const KIND: &'static str = "instance";
    type Config = InstanceConfig;
    type Image = ();
    type Ask = InstanceAsk;
    type Answer = InstanceAnswer;
    type Call = InstanceCall;
    type Outcome = Result<Reached, CallError>;
    type Timer = InstanceTimer;
    type Change = Never;
    type News = InstanceReport;
    type View = InstanceReport;

    fn restore(config: &InstanceConfig, (): (), moment: Moment) -> Self {
        let report = first_report(config, moment);
        Self {
            config: config.clone(),
            phase: Phase::Resting,
            link: Link::Down,
            report,
            told: None,
            attempt: Attempt::default(),
            was_healthy: false,
            failures: 0,
            backoff: BackoffState::default(),
            waiting: Vec::new(),
            retiring: Vec::new(),
        }
    }

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => {
                self.tell(effects);
                self.look(moment, effects);
            }
            Input::Asked { id, ask: InstanceAsk::LookNow(LookNow), .. } => {
                self.look_asked(moment, *id, effects);
            }
            Input::Asked { id, ask: InstanceAsk::Retire(Retire), .. } => {
                self.retiring.push(*id);
                self.retire(effects);
            }
            Input::Asked { id, ask: InstanceAsk::ConnectionEnded(ended), .. } => {
                self.connection_ended(moment, ended, effects);
                effects.reply(*id, InstanceAnswer::ConnectionEnded(()));
            }
            Input::Returned { key, outcome, .. } => self.returned(moment, *key, outcome, effects),
            Input::Elapsed(InstanceTimer::Look) => self.look_due(moment, effects),
            Input::StopRequested(_) => self.retire(effects),
        }
    }

    fn view(&self) -> InstanceReport {
        self.report.clone()
    }

    /// Its generation is one connection, which ends with the machine: another one would be another generation (I2).
    fn is_rebuilt() -> bool {
        false
    }
}

impl Instance {
    fn look_due(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        match self.phase {
            Phase::Resting => self.look(moment, effects),
            // A check is in progress, or none may start any more (I6).
            Phase::Asked(_) | Phase::Retiring | Phase::Gone => {}
        }
    }

    fn look_asked(&mut self, moment: Moment, id: AskId, effects: &mut Effects<Self>) {
        match self.phase {
            Phase::Asked(_) | Phase::Resting if self.waiting.len() >= LOOKS_WAITING_MAX => {
                effects.reply(id, InstanceAnswer::LookNow(self.report.clone()));
            }
            Phase::Asked(_) => self.waiting.push(id),
            Phase::Resting => {
                self.waiting.push(id);
                effects.cancel_timer(InstanceTimer::Look);
                self.look(moment, effects);
            }
            Phase::Retiring | Phase::Gone => {
                effects.reply(id, InstanceAnswer::LookNow(self.report.clone()));
            }
        }
    }

    // === Calls ===

    /// Starts a check, or continues it with the next call that is missing.
    fn look(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        match &self.link {
            Link::Down => self.call(InstanceCall::Dial, effects),
            Link::Up { reading, .. } => match reading.next(self.config.half) {
                Next::Ask(rpc) => self.call(InstanceCall::Ask(rpc), effects),
                Next::Complete(fingerprint, remarks) => self.complete(moment, fingerprint, remarks, effects),
            },
        }
    }

    fn call(&mut self, call: InstanceCall, effects: &mut Effects<Self>) {
        let limits = &self.config.limits;
        let (phase, deadline) = match call {
            InstanceCall::Dial => {
                (Phase::Asked(call), limits.connection.dial_deadline.saturating_add(CALL_GRACE))
            }
            InstanceCall::Ask(_) => (Phase::Asked(call), limits.call_deadline.saturating_add(CALL_GRACE)),
            InstanceCall::Drain => (Phase::Retiring, limits.retire_deadline),
        };
        self.attempt = self.attempt.next();
        self.phase = phase;
        effects.call(self.key(), deadline, call);
    }

    const fn key(&self) -> CallKey {
        CallKey { generation: self.config.generation, attempt: self.attempt }
    }

    fn returned(
        &mut self,
        moment: Moment,
        key: CallKey,
        outcome: &Result<Result<Reached, CallError>, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        // The outcome of another generation or attempt is stale (REG-08).
        if key != self.key() {
            return;
        }
        match self.phase {
            Phase::Asked(call) => match outcome {
                Ok(Ok(reached)) => self.reached(moment, call, reached, effects),
                Ok(Err(error)) => self.refused(moment, call, error, effects),
                Err(lost) => self.lost(moment, call, lost, effects),
            },
            Phase::Retiring => self.leave(moment, effects),
            // No call is pending.
            Phase::Resting | Phase::Gone => {}
        }
    }

    fn reached(
        &mut self,
        moment: Moment,
        call: InstanceCall,
        reached: &Reached,
        effects: &mut Effects<Self>,
    ) {
        match (call, reached) {
            (InstanceCall::Dial, Reached::Connected { connection }) => {
                self.link = Link::Up { connection: *connection, reading: Box::default() };
                self.look(moment, effects);
            }
            (InstanceCall::Ask(rpc), Reached::Answered(answer, remarks)) if answer.rpc() == rpc => {
                self.answered(moment, (rpc, answer, remarks), effects);
            }
            (InstanceCall::Dial, Reached::Answered(..) | Reached::Drained) => {
                self.failed(moment, OTHER_ANSWER.to_owned(), effects);
            }
            (InstanceCall::Ask(_), Reached::Answered(..) | Reached::Connected { .. } | Reached::Drained)
            | (InstanceCall::Drain, _) => self.connection_lost(moment, OTHER_ANSWER.to_owned(), effects),
        }
    }

    fn answered(
        &mut self,
        moment: Moment,
        (rpc, answer, remarks): (Rpc, &Answer, &[String]),
        effects: &mut Effects<Self>,
    ) {
        let known = self.report.fingerprint.as_ref().or(self.config.predecessor.as_ref()).cloned();
        let Link::Up { reading, .. } = &mut self.link else { return };
        match reading.take(answer.clone(), &self.config, known.as_deref()) {
            Ok(()) => {
                reading.remark(remarks);
                self.look(moment, effects);
            }
            // Until the first ready answer, not ready is the normal start of a plugin and no failure.
            Err(refusal @ Refusal::NotReady) if !self.was_healthy => {
                self.set_health(moment, Health::Starting);
                if self.report.fitness == Fitness::Fit {
                    self.report.fitness = Fitness::Unfit { reason: refusal.to_string().into() };
                }
                self.look_again(moment, effects);
            }
            Err(refusal @ (Refusal::NotReady | Refusal::Broken(_))) => {
                let reason = format!("{rpc} on {}: {refusal}", self.config.socket);
                self.failed(moment, reason, effects);
            }
        }
    }

    fn refused(
        &mut self,
        moment: Moment,
        call: InstanceCall,
        error: &CallError,
        effects: &mut Effects<Self>,
    ) {
        if let (InstanceCall::Ask(rpc), Class::Unimplemented, Link::Up { reading, .. }) =
            (call, error.class(), &mut self.link)
            && reading.declined(rpc, self.config.half)
        {
            self.look(moment, effects);
            return;
        }
        match &self.link {
            Link::Up { .. } if is_hung_up(error.class()) => {
                self.connection_lost(moment, error.to_string(), effects);
            }
            Link::Up { .. } | Link::Down => self.failed(moment, error.to_string(), effects),
        }
    }

    /// The call itself was lost. The state of a dial is unknown then, so it is repeated.
    fn lost(&mut self, moment: Moment, call: InstanceCall, lost: &CallLost, effects: &mut Effects<Self>) {
        let what = match call {
            InstanceCall::Dial => "Dial",
            InstanceCall::Ask(rpc) => rpc.as_str(),
            InstanceCall::Drain => "Drain",
        };
        self.failed(moment, format!("{what} on {}: {lost}", self.config.socket), effects);
    }

    // === The end of a check ===

    fn complete(
        &mut self,
        moment: Moment,
        fingerprint: Arc<CsiFingerprint>,
        mut remarks: Vec<String>,
        effects: &mut Effects<Self>,
    ) {
        let before = self.config.predecessor.as_ref().or(self.report.fingerprint.as_ref());
        remarks.extend(remark(&fingerprint, before));
        self.report.remarks = remarks;
        self.report.fingerprint = Some(fingerprint);
        self.set_health(moment, Health::Healthy);
        self.report.fitness = Fitness::Fit;
        self.was_healthy = true;
        self.failures = 0;
        self.backoff.reset();
        let round = moment.spread(self.config.limits.round, self.config.limits.round_jitter_percent);
        self.rest(moment, round, effects);
    }

    fn failed(&mut self, moment: Moment, reason: String, effects: &mut Effects<Self>) {
        self.failures = self.failures.saturating_add(1);
        let is_tolerated = match (&self.report.health, &self.link) {
            (Health::Healthy, Link::Up { .. }) => self.failures < self.config.limits.failures_until_unhealthy,
            (Health::Healthy, Link::Down)
            | (Health::Starting | Health::Unhealthy { .. } | Health::Gone, Link::Up { .. } | Link::Down) => {
                false
            }
        };
        if !self.was_healthy || self.failures >= self.config.limits.failures_until_unfit() {
            self.report.fitness = Fitness::Unfit { reason: reason.as_str().into() };
        }
        if !is_tolerated {
            self.set_health(moment, Health::Unhealthy { reason });
        }
        self.look_again(moment, effects);
    }

    fn look_again(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        let pause = self.backoff.failed(&self.config.limits.backoff, moment);
        self.rest(moment, pause, effects);
    }

    /// Ends a check: publishes changes, and schedules the next check.
    fn rest(&mut self, moment: Moment, pause: Duration, effects: &mut Effects<Self>) {
        if let Link::Up { reading, .. } = &mut self.link {
            reading.forget_readiness();
        }
        self.phase = Phase::Resting;
        effects.start_timer(InstanceTimer::Look, moment.now + pause);
        self.tell(effects);
        self.answer_looks(effects);
    }

    fn answer_looks(&mut self, effects: &mut Effects<Self>) {
        for id in self.waiting.drain(..) {
            effects.reply(id, InstanceAnswer::LookNow(self.report.clone()));
        }
    }

    pub(super) fn set_health(&mut self, moment: Moment, health: Health) {
        if self.report.health.as_str() != health.as_str() {
            self.report.since = moment.now;
        }
        self.report.health = health;
    }

    /// Publishes the report if it differs from the last one (SCL-05).
    pub(super) fn tell(&mut self, effects: &mut Effects<Self>) {
        if self.told.as_ref() != Some(&self.report) {
            effects.publish(self.report.clone());
            self.told = Some(self.report.clone());
        }
    }

    // === The end ===

    /// Begins no more calls, and waits for those in flight. The outcome of its own one is stale from here on.
    fn retire(&mut self, effects: &mut Effects<Self>) {
        match self.phase {
            Phase::Asked(_) | Phase::Resting => {
                self.call(InstanceCall::Drain, effects);
                self.answer_looks(effects);
            }
            // It is retiring already.
            Phase::Retiring => {}
            Phase::Gone => self.answer_goodbyes(effects),
        }
    }

    /// Publishes `Gone`. The connection, and calls that are still in flight, end with the actor.
    fn leave(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        self.phase = Phase::Gone;
        self.set_health(moment, Health::Gone);
        self.tell(effects);
        self.answer_looks(effects);
        self.answer_goodbyes(effects);
        effects.stop();
    }

    fn answer_goodbyes(&mut self, effects: &mut Effects<Self>) {
        for id in self.retiring.drain(..) {
            effects.reply(id, InstanceAnswer::Retire(self.report.clone()));
        }
    }
}

/// Whether an error means that this connection is unusable.
const fn is_hung_up(class: Class) -> bool {
    match class {
        Class::Disconnected
        | Class::Absent
        | Class::Refused
        | Class::Busy
        | Class::Denied
        | Class::NotASocket => true,
        Class::Final | Class::Unclear | Class::DeadlineExceeded | Class::Unimplemented | Class::Fault => {
            false
        }
    }
}
