//! What a driver decides: from nothing to fingerprints, and what a failure leads to.

use std::sync::Arc;
use std::time::Duration;

use super::failing::{confused, kind_of_lost};
use super::messages::{DescribeTroubles, DriverAnswer, DriverAsk, RestartNow};
use super::state::{
    Driver, DriverCall, DriverConfig, DriverMode, DriverTimer, Ending, Fingerprint, Link, Phase, Reached,
    Reading, StartStep, Then, Trouble, TroubleKind,
};
use super::{DriverHealth, DriverReport, DriverStage, MountSupport, Recent};
use crate::kernel::{CallKey, CallLost, Input, Machine, Never, StepContext};
use crate::process::Launched;
use crate::processes::Recalled;
use crate::vocabulary::{Attempt, BackoffState, Moment};

/// How much longer the shell waits for a call than the call itself does, so that the call's own words are heard.
pub(super) const CALL_GRACE: Duration = Duration::from_secs(2);
/// How long a call waits that waits for something to happen, before it is made again.
const WAIT_DEADLINE: Duration = Duration::from_secs(3_600);
/// How long it may take to find out what became of a process: its identity is looked at, and if it is not proven nothing is
/// done to it.
const RECALL_DEADLINE: Duration = Duration::from_secs(60);

pub(super) type Outcome = Result<Result<Reached, Trouble>, CallLost>;

impl Machine for Driver {
    const KIND: &'static str = "driver";
    type Config = DriverConfig;
    type Image = ();
    type Ask = DriverAsk;
    type Answer = DriverAnswer;
    type Call = DriverCall;
    type Outcome = Result<Reached, Trouble>;
    type Timer = DriverTimer;
    type Change = Never;
    type News = DriverReport;
    type View = DriverReport;

    fn restore(config: &DriverConfig, (): (), moment: Moment) -> Self {
        let report = DriverReport::of_nothing_yet(config.spec.name.clone(), moment.now);
        Self {
            config: config.clone(),
            phase: Phase::Starting(StartStep::Recall),
            process: None,
            link: Link::Down,
            report,
            told: None,
            told_mounts: MountSupport::Any,
            attempt: Attempt::default(),
            backoff: BackoffState::default(),
            silent_failures: 0,
            is_restart_due: false,
            troubles: Recent::default(),
            stop: None,
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.begin(cx),
            Input::Asked { id, ask: DriverAsk::RestartNow(RestartNow { number }), .. } => {
                self.report.restart = *number;
                self.restart(cx);
                cx.reply(*id, DriverAnswer::RestartNow(()));
            }
            Input::Asked { id, ask: DriverAsk::DescribeTroubles(DescribeTroubles), .. } => {
                let troubles = self.troubles.entries().to_vec();
                cx.reply(*id, DriverAnswer::DescribeTroubles(troubles));
            }
            Input::Returned { key, call, outcome } => self.returned(*key, call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(*timer, cx),
            Input::StopRequested(mode) => self.stop(*mode, cx),
        }
        self.tell(cx);
    }

    fn view(&self) -> DriverReport {
        self.report.clone()
    }
}

impl Driver {
    fn begin(&mut self, cx: &mut StepContext<Self>) {
        match self.config.mode {
            DriverMode::Serve => self.advance(StartStep::Recall, cx),
            DriverMode::Retire => {
                self.phase = Phase::Ending(Ending::Recalling, Then::Leave, cx.now());
                self.call(RECALL_DEADLINE, DriverCall::Advance(StartStep::Recall, None), cx);
            }
        }
    }

    fn elapsed(&mut self, timer: DriverTimer, cx: &mut StepContext<Self>) {
        match (timer, self.phase) {
            (DriverTimer::Retry, Phase::Pausing) => self.retry(cx),
            (DriverTimer::ReadOn, Phase::Resting) => {
                self.phase = Phase::Watching;
                self.call(WAIT_DEADLINE, DriverCall::ReadOn, cx);
            }
            (DriverTimer::Reawait, _) => self.await_end(cx),
            (DriverTimer::Grace, Phase::Ending(Ending::Leaving, _, since)) => {
                self.not_left(since, cx);
            }
            // What was waited for has come, or is not waited for any more.
            (
                DriverTimer::Retry,
                Phase::Starting(_)
                | Phase::Watching
                | Phase::Resting
                | Phase::Refused
                | Phase::Ending(..)
                | Phase::Gone,
            )
            | (
                DriverTimer::ReadOn,
                Phase::Starting(_)
                | Phase::Watching
                | Phase::Pausing
                | Phase::Refused
                | Phase::Ending(..)
                | Phase::Gone,
            )
            | (
                DriverTimer::Grace,
                Phase::Starting(_)
                | Phase::Watching
                | Phase::Resting
                | Phase::Pausing
                | Phase::Refused
                | Phase::Ending(
                    Ending::Recalling | Ending::Draining | Ending::ShutdownAnswer | Ending::Stopping,
                    ..,
                )
                | Phase::Gone,
            ) => {}
        }
    }

    // === Calls ===

    pub(super) fn call(&mut self, deadline: Duration, call: DriverCall, cx: &mut StepContext<Self>) {
        self.attempt = self.attempt.next();
        cx.call(self.key(), deadline, call);
    }

    const fn key(&self) -> CallKey {
        CallKey { generation: self.report.generation, attempt: self.attempt }
    }

    pub(super) fn advance(&mut self, start_step: StartStep, cx: &mut StepContext<Self>) {
        let limits = &self.config.limits;
        let deadline = match start_step {
            StartStep::Recall => RECALL_DEADLINE,
            StartStep::Launch => {
                let process = &self.config.spec.process;
                process.start_timeout.saturating_add(process.stop_grace).saturating_add(limits.step_deadline)
            }
            StartStep::Watch => limits.fingerprint_deadline,
            StartStep::Dial
            | StartStep::Ping
            | StartStep::Identify
            | StartStep::Configure
            | StartStep::Initialise
            | StartStep::Capabilities => limits.step_deadline.saturating_add(CALL_GRACE),
        };
        self.phase = Phase::Starting(start_step);
        let to = self.process.clone().filter(|_| start_step == StartStep::Dial).map(Box::new);
        self.call(deadline, DriverCall::Advance(start_step, to), cx);
    }

    pub(super) fn await_end(&self, cx: &mut StepContext<Self>) {
        if let Some(process) = &self.process {
            cx.call(CallKey::default(), WAIT_DEADLINE, DriverCall::AwaitEnd(process.tag));
        }
    }

    fn returned(&mut self, key: CallKey, call: &DriverCall, outcome: &Outcome, cx: &mut StepContext<Self>) {
        match call {
            DriverCall::AwaitEnd(tag) => {
                if self.process.as_ref().is_some_and(|process| process.tag == *tag) {
                    self.end_heard(outcome, cx);
                }
            }
            DriverCall::Advance(..)
            | DriverCall::ReadOn
            | DriverCall::AwaitChange
            | DriverCall::HangUp { .. }
            | DriverCall::ShutdownAnswer
            | DriverCall::StopProcess { .. } => {
                // What another generation or try comes back with says nothing of this one (REG-08).
                if key == self.key() {
                    self.answered(outcome, cx);
                }
            }
        }
    }

    fn answered(&mut self, outcome: &Outcome, cx: &mut StepContext<Self>) {
        match self.phase {
            Phase::Starting(start_step) => match outcome {
                Ok(Ok(reached)) => self.reached(start_step, reached, cx),
                Ok(Err(trouble)) => self.refused(start_step, trouble, cx),
                Err(lost) => {
                    let what = format!("{start_step}: {lost}");
                    self.failed(&Trouble { kind: kind_of_lost(start_step), what }, cx);
                }
            },
            Phase::Watching => match outcome {
                Ok(Ok(Reached::Fingerprinted(fingerprint))) => {
                    self.fingerprinted(fingerprint, cx);
                }
                // Nothing happened for a long time.
                Err(CallLost::DeadlineExceeded(_)) => {
                    self.call(WAIT_DEADLINE, DriverCall::ReadOn, cx);
                }
                Ok(Err(trouble)) => self.failed(trouble, cx),
                Ok(Ok(_)) => self.failed(&confused(StartStep::Watch), cx),
                Err(lost @ (CallLost::Crashed(_) | CallLost::Busy(_))) => {
                    let what = format!("{}: {lost}", StartStep::Watch);
                    self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
                }
            },
            Phase::Ending(ending, then, since) => {
                self.ending_answered((ending, then, since), outcome, cx);
            }
            Phase::Refused => self.change_heard(outcome, cx),
            // No call is under way.
            Phase::Resting | Phase::Pausing | Phase::Gone => {}
        }
    }

    // === Upwards ===

    fn reached(&mut self, start_step: StartStep, reached: &Reached, cx: &mut StepContext<Self>) {
        match (start_step, reached) {
            (StartStep::Recall, Reached::Recalled(Recalled::Proven(launched))) => self.found(launched, cx),
            (StartStep::Recall, Reached::Recalled(Recalled::Ended { .. } | Recalled::Unknown)) => {
                self.lost_process();
                self.launch(cx);
            }
            (StartStep::Launch, Reached::Launched(launched)) => self.runs(launched, cx),
            (StartStep::Dial, Reached::Connected(generation)) => {
                if let Some(process) = &self.process {
                    self.report.generation = *generation;
                    let is_configured = self.config.spec.not_launched.is_some();
                    self.link = Link::Up(process.tag, Reading { is_configured, ..Reading::default() });
                }
                self.advance_to_next(cx);
            }
            (StartStep::Ping, Reached::Done) => self.read(cx, |reading| reading.is_pinged = true),
            (StartStep::Identify, Reached::Identified { version }) => {
                self.report.version = Some(Arc::clone(version));
                self.read(cx, |reading| reading.is_identified = true);
            }
            (StartStep::Configure, Reached::Done) => self.read(cx, |reading| reading.is_configured = true),
            (StartStep::Initialise, Reached::Done) => self.read(cx, |reading| reading.is_initialised = true),
            (StartStep::Capabilities, Reached::Capable(capabilities)) => {
                self.told_mounts = capabilities.mounts;
                self.report.capabilities = Some(Arc::new(capabilities.clone()));
                self.report.resolve_mounts(self.told_mounts);
                self.read(cx, |reading| reading.is_capable = true);
            }
            (StartStep::Watch, Reached::Fingerprinted(fingerprint)) => {
                self.fingerprinted(fingerprint, cx);
            }
            (
                StartStep::Recall
                | StartStep::Launch
                | StartStep::Dial
                | StartStep::Ping
                | StartStep::Identify
                | StartStep::Configure
                | StartStep::Initialise
                | StartStep::Capabilities
                | StartStep::Watch,
                _,
            ) => self.failed(&confused(start_step), cx),
        }
    }

    /// Goes on with a process of it.
    pub(super) fn runs(&mut self, launched: &Launched, cx: &mut StepContext<Self>) {
        self.hold(launched, cx);
        self.advance_to_next(cx);
    }

    /// Notes that a process of it runs. A connection that leads to this launch is kept.
    pub(super) fn hold(&mut self, launched: &Launched, cx: &mut StepContext<Self>) {
        let is_known = self.process.as_ref().is_some_and(|process| process.tag == launched.tag);
        self.report.pid = Some(launched.pid);
        self.report.is_adopted = launched.is_adopted;
        self.process = Some(launched.clone());
        if !is_known {
            self.await_end(cx);
        }
        match &mut self.link {
            Link::Up(tag, reading) if *tag == launched.tag => reading.is_pinged = false,
            Link::Up(..) | Link::Down => self.link = Link::Down,
        }
    }

    pub(super) fn read(&mut self, cx: &mut StepContext<Self>, note: impl FnOnce(&mut Reading)) {
        if let Link::Up(_, reading) = &mut self.link {
            note(reading);
        }
        self.advance_to_next(cx);
    }

    fn advance_to_next(&mut self, cx: &mut StepContext<Self>) {
        let next = match &self.link {
            Link::Down => StartStep::Dial,
            Link::Up(_, reading) => reading.next(),
        };
        self.advance(next, cx);
    }

    fn fingerprinted(&mut self, fingerprint: &Fingerprint, cx: &mut StepContext<Self>) {
        let Fingerprint { health, description, attributes } = fingerprint;
        self.silent_failures = 0;
        self.set_health(cx.moment(), *health, description.clone());
        if *self.report.attributes != *attributes {
            self.report.attributes = Arc::new(attributes.clone());
        }
        self.report.resolve_mounts(self.told_mounts);
        self.phase = Phase::Resting;
        cx.start_timer(DriverTimer::ReadOn, cx.now() + self.config.limits.fingerprint_pause);
    }

    // === What is reported ===

    pub(super) fn set_health(&mut self, moment: Moment, health: DriverHealth, reason: String) {
        if self.report.health != health {
            self.report.since = moment.now;
        }
        self.report.health = health;
        self.report.reason = reason;
    }

    /// Tells the report if it is another than the last one told (SCL-05).
    pub(super) fn tell(&mut self, cx: &mut StepContext<Self>) {
        self.report.stage = match self.phase {
            Phase::Starting(StartStep::Recall) => DriverStage::Recalling,
            Phase::Starting(StartStep::Launch) => DriverStage::Launching,
            Phase::Starting(_) => DriverStage::Connecting,
            Phase::Watching | Phase::Resting => DriverStage::Watching,
            Phase::Pausing => DriverStage::Pausing,
            Phase::Refused => DriverStage::Refused,
            Phase::Ending(..) => DriverStage::Stopping,
            Phase::Gone => DriverStage::Gone,
        };
        if self.told.as_ref() != Some(&self.report) {
            cx.publish(self.report.clone());
            self.told = Some(self.report.clone());
        }
    }
}
