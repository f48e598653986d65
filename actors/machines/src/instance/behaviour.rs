//! The decisions of an instance.

use std::sync::Arc;
use std::time::Duration;

use super::life::first_report;
use super::messages::{InstanceAnswer, InstanceAsk, InstanceReport, LookNow, Retire};
use super::reading::{Next, Refusal, remark};
use super::state::{
    Instance, InstanceCall, InstanceConfig, InstanceTimer, LOOKS_WAITING_MAX, Link, Phase, Reached,
};
use crate::csi::{Answer, CallError, Cause, Class, Rpc};
use crate::kernel::{
    AskId, CALL_GRACE, CallKey, CallLost, Input, LastNews, Machine, Never, OneCall, StepContext,
};
use crate::lease::RetireCause;
use crate::vocabulary::{BackoffState, CsiFingerprint, Fitness, Health, Moment};

const OTHER_ANSWER: &str = "the reply does not match the request";

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
            told: LastNews::default(),
            pending: OneCall::default(),
            was_healthy: false,
            failures: 0,
            backoff: BackoffState::default(),
            waiting: Vec::new(),
            retiring: Vec::new(),
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {
                self.tell(cx);
                self.look(cx);
            }
            Input::Asked { id, ask: InstanceAsk::LookNow(LookNow), .. } => {
                self.look_asked(*id, cx);
            }
            Input::Asked { id, ask: InstanceAsk::Retire(Retire { cause }), .. } => {
                self.retiring.push(*id);
                self.retire(*cause, cx);
            }
            Input::Asked { id, ask: InstanceAsk::ConnectionEnded(ended), .. } => {
                self.connection_ended(ended, cx);
                cx.reply(*id, InstanceAnswer::ConnectionEnded(()));
            }
            Input::Returned { key, outcome, .. } => self.returned(*key, outcome, cx),
            Input::Elapsed(InstanceTimer::Look) => self.look_due(cx),
            Input::StopRequested(_) => self.retire(RetireCause::HostStops, cx),
        }
    }

    fn view(&self) -> InstanceReport {
        self.report.clone()
    }

    /// Not rebuilt: its generation is one connection, which ends with the machine; another connection would be another generation (I2).
    fn is_rebuilt() -> bool {
        false
    }
}

impl Instance {
    fn look_due(&mut self, cx: &mut StepContext<Self>) {
        match self.phase {
            Phase::Resting => self.look(cx),
            // A check is in progress, or none may start (I6).
            Phase::Asked(_) | Phase::Retiring | Phase::Gone => {}
        }
    }

    fn look_asked(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        match self.phase {
            Phase::Asked(_) | Phase::Resting if self.waiting.len() >= LOOKS_WAITING_MAX => {
                cx.reply(id, InstanceAnswer::LookNow(self.report.clone()));
            }
            Phase::Asked(_) => self.waiting.push(id),
            Phase::Resting => {
                self.waiting.push(id);
                cx.cancel_timer(InstanceTimer::Look);
                self.look(cx);
            }
            Phase::Retiring | Phase::Gone => {
                cx.reply(id, InstanceAnswer::LookNow(self.report.clone()));
            }
        }
    }

    // === Calls ===

    /// Starts a check, or continues it with the next call that is missing.
    fn look(&mut self, cx: &mut StepContext<Self>) {
        match &mut self.link {
            Link::Down => self.call(InstanceCall::Dial, cx),
            Link::Up { reading, .. } => match reading.next(self.config.half) {
                Next::Ask(rpc) => self.call(InstanceCall::Ask(rpc), cx),
                Next::Complete(fingerprint, remarks) => self.complete(fingerprint, remarks, cx),
            },
        }
    }

    fn call(&mut self, call: InstanceCall, cx: &mut StepContext<Self>) {
        let limits = &self.config.limits;
        let (phase, deadline) = match call {
            InstanceCall::Dial => {
                (Phase::Asked(call), limits.connection.dial_deadline.saturating_add(CALL_GRACE))
            }
            InstanceCall::Ask(_) => (Phase::Asked(call), limits.call_deadline.saturating_add(CALL_GRACE)),
            InstanceCall::Drain(_) => (Phase::Retiring, limits.retire_deadline),
        };
        self.phase = phase;
        cx.call(self.pending.begin(self.config.generation), deadline, call);
    }

    fn returned(
        &mut self,
        key: CallKey,
        outcome: &Result<Result<Reached, CallError>, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        // The outcome of another generation or attempt is stale (REG-08).
        if !self.pending.came_back(key) {
            return;
        }
        match self.phase {
            Phase::Asked(call) => match outcome {
                Ok(Ok(reached)) => self.reached(call, reached, cx),
                Ok(Err(error)) => self.refused(call, error, cx),
                Err(lost) => self.lost(call, lost, cx),
            },
            Phase::Retiring => self.leave(cx),
            // No call is pending.
            Phase::Resting | Phase::Gone => {}
        }
    }

    fn reached(&mut self, call: InstanceCall, reached: &Reached, cx: &mut StepContext<Self>) {
        match (call, reached) {
            (InstanceCall::Dial, Reached::Connected { connection }) => {
                self.link = Link::Up { connection: *connection, reading: Box::default() };
                self.look(cx);
            }
            (InstanceCall::Ask(rpc), Reached::Answered(answer, remarks)) if answer.rpc() == rpc => {
                self.answered((rpc, answer, remarks), cx);
            }
            (InstanceCall::Dial, Reached::Answered(..) | Reached::Drained) => {
                self.failed(OTHER_ANSWER.to_owned(), cx);
            }
            (InstanceCall::Ask(_), Reached::Answered(..) | Reached::Connected { .. } | Reached::Drained)
            | (InstanceCall::Drain(_), _) => self.connection_lost(OTHER_ANSWER.to_owned(), cx),
        }
    }

    fn answered(&mut self, (rpc, answer, remarks): (Rpc, &Answer, &[String]), cx: &mut StepContext<Self>) {
        let known = self.report.fingerprint.as_ref().or(self.config.predecessor.as_ref()).cloned();
        let Link::Up { reading, .. } = &mut self.link else { return };
        match reading.take(answer.clone(), &self.config, known.as_deref()) {
            Ok(()) => {
                reading.remark(remarks);
                self.look(cx);
            }
            // Until the first ready answer, not ready is the normal start of a plugin and not a failure.
            Err(refusal @ Refusal::NotReady) if !self.was_healthy => {
                self.set_health(cx.moment(), Health::Starting);
                if self.report.fitness == Fitness::Fit {
                    self.report.fitness = Fitness::Unfit { reason: refusal.to_string().into() };
                }
                self.look_again(cx);
            }
            Err(refusal @ (Refusal::NotReady | Refusal::Broken(_))) => {
                let reason = format!("{rpc} on {}: {refusal}", self.config.socket);
                self.failed(reason, cx);
            }
        }
    }

    fn refused(&mut self, call: InstanceCall, error: &CallError, cx: &mut StepContext<Self>) {
        if let (InstanceCall::Ask(rpc), Class::Unimplemented, Link::Up { reading, .. }) =
            (call, error.class(), &mut self.link)
            && reading.declined(rpc, self.config.half)
        {
            self.look(cx);
            return;
        }
        match (&self.link, error.cause()) {
            (Link::Up { .. }, Cause::CutOff { .. }) => self.cut_off(error.to_string(), cx),
            (Link::Up { .. }, _) if is_hung_up(error.class()) => {
                self.connection_lost(error.to_string(), cx);
            }
            (Link::Up { .. } | Link::Down, _) => self.failed(error.told(), cx),
        }
    }

    /// The call itself was lost. The state of a dial is then unknown, so the dial is repeated.
    fn lost(&mut self, call: InstanceCall, lost: &CallLost, cx: &mut StepContext<Self>) {
        let what = match call {
            InstanceCall::Dial => "Dial",
            InstanceCall::Ask(rpc) => rpc.as_str(),
            InstanceCall::Drain(_) => "Drain",
        };
        self.failed(format!("{what} on {}: {lost}", self.config.socket), cx);
    }

    // === The end of a check ===

    fn complete(
        &mut self,
        fingerprint: Arc<CsiFingerprint>,
        mut remarks: Vec<String>,
        cx: &mut StepContext<Self>,
    ) {
        let before = self.config.predecessor.as_ref().or(self.report.fingerprint.as_ref());
        remarks.extend(remark(&fingerprint, before));
        self.report.remarks = remarks;
        self.report.fingerprint = Some(fingerprint);
        self.set_health(cx.moment(), Health::Healthy);
        self.report.fitness = Fitness::Fit;
        self.was_healthy = true;
        self.failures = 0;
        self.backoff.reset();
        let round = cx.moment().spread(self.config.limits.round, self.config.limits.round_jitter_percent);
        self.rest(round, cx);
    }

    fn failed(&mut self, reason: String, cx: &mut StepContext<Self>) {
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
            self.set_health(cx.moment(), Health::Unhealthy { reason });
        }
        self.look_again(cx);
    }

    fn look_again(&mut self, cx: &mut StepContext<Self>) {
        let pause = self.backoff.failed(&self.config.limits.backoff, cx.moment());
        self.rest(pause, cx);
    }

    /// Ends a check: publishes changes, and schedules the next check.
    fn rest(&mut self, pause: Duration, cx: &mut StepContext<Self>) {
        if let Link::Up { reading, .. } = &mut self.link {
            reading.forget_readiness();
        }
        self.phase = Phase::Resting;
        cx.start_timer(InstanceTimer::Look, cx.now() + pause);
        self.tell(cx);
        self.answer_looks(cx);
    }

    fn answer_looks(&mut self, cx: &mut StepContext<Self>) {
        for id in self.waiting.drain(..) {
            cx.reply(id, InstanceAnswer::LookNow(self.report.clone()));
        }
    }

    pub(super) fn set_health(&mut self, moment: Moment, health: Health) {
        if self.report.health.as_str() != health.as_str() {
            self.report.since = moment.now;
        }
        self.report.health = health;
    }

    /// Publishes the report if it differs from the last one (SCL-05).
    pub(super) fn tell(&mut self, cx: &mut StepContext<Self>) {
        self.told.publish(&self.report, cx);
    }

    // === The end ===

    /// Starts no more calls, and waits for those in flight. The outcome of its own call is stale from here on.
    fn retire(&mut self, cause: RetireCause, cx: &mut StepContext<Self>) {
        match self.phase {
            Phase::Asked(_) | Phase::Resting => {
                self.call(InstanceCall::Drain(cause), cx);
                self.answer_looks(cx);
            }
            // It is retiring already.
            Phase::Retiring => {}
            Phase::Gone => self.answer_retirements(cx),
        }
    }

    /// Publishes `Gone`. The connection, and calls that are still in flight, end with the actor.
    fn leave(&mut self, cx: &mut StepContext<Self>) {
        self.phase = Phase::Gone;
        self.set_health(cx.moment(), Health::Gone);
        self.tell(cx);
        self.answer_looks(cx);
        self.answer_retirements(cx);
        cx.stop();
    }

    fn answer_retirements(&mut self, cx: &mut StepContext<Self>) {
        for id in self.retiring.drain(..) {
            cx.reply(id, InstanceAnswer::Retire(self.report.clone()));
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
