//! What a failure leads to: always the same.

use std::time::Duration;

use super::DriverHealth;
use super::behaviour::Outcome;
use super::state::{
    Driver, DriverCall, DriverTimer, Link, Phase, Reached, StartStep, Then, Trouble, TroubleKind,
};
use crate::kernel::{CallKey, CallLost, StepContext};
use crate::vocabulary::Moment;

/// How soon the end of a process is asked for again after that failed.
const REAWAIT_PAUSE: Duration = Duration::from_secs(1);
/// How soon a launch is tried again of which nothing was begun.
const RELAUNCH_PAUSE: Duration = Duration::from_secs(1);
/// How long it may take to hang up.
const HANG_UP_DEADLINE: Duration = Duration::from_secs(2);
/// How long it is waited for another program, before that is asked for again.
const CHANGE_DEADLINE: Duration = Duration::from_secs(3_600);

impl Driver {
    pub(super) fn refused(&mut self, start_step: StartStep, trouble: &Trouble, cx: &mut StepContext<Self>) {
        match (start_step, trouble.kind) {
            // Nothing runs, so there is nothing to cut off.
            (StartStep::Launch, TroubleKind::Refused) => self.launch_refused(trouble, cx),
            (StartStep::Launch, TroubleKind::NotBegun) => self.launch_not_begun(trouble, cx),
            // A driver that has nothing to prepare need not have the call (D109).
            (StartStep::Initialise, TroubleKind::Unimplemented) => {
                self.read(cx, |reading| reading.is_initialised = true);
            }
            (
                StartStep::Initialise
                | StartStep::Recall
                | StartStep::Launch
                | StartStep::Dial
                | StartStep::Ping
                | StartStep::Identify
                | StartStep::Configure
                | StartStep::Capabilities
                | StartStep::Watch,
                _,
            ) => self.failed(trouble, cx),
        }
    }

    /// The one path that every failure takes, the first like any later one (HLT-04, HLT-05).
    pub(super) fn failed(&mut self, trouble: &Trouble, cx: &mut StepContext<Self>) {
        self.troubles.add(cx.now(), &trouble.what);
        match trouble.kind {
            TroubleKind::Silent => {
                self.silent_failures = self.silent_failures.saturating_add(1);
                self.cut(&trouble.what, cx);
                self.link = Link::Down;
            }
            TroubleKind::Answered
            | TroubleKind::Unimplemented
            | TroubleKind::Refused
            | TroubleKind::NotBegun => self.silent_failures = 0,
        }
        self.set_health(cx.moment(), DriverHealth::Unhealthy, trouble.what.clone());
        self.phase = Phase::Pausing;
        let pause = self.backoff.failed(&self.config.limits.backoff, cx.moment());
        cx.cancel_timer(DriverTimer::ReadOn);
        cx.start_timer(DriverTimer::Retry, cx.now() + pause);
    }

    /// Its program is refused: the same one is not tried again (SEC-07).
    fn launch_refused(&mut self, trouble: &Trouble, cx: &mut StepContext<Self>) {
        self.nothing_launched(cx.moment(), trouble, format!("refused: {}", trouble.what));
        self.backoff.reset();
        self.await_change(cx);
    }

    /// No process was launched, so pauses do not grow: it is launched as soon as it can be.
    fn launch_not_begun(&mut self, trouble: &Trouble, cx: &mut StepContext<Self>) {
        self.nothing_launched(cx.moment(), trouble, trouble.what.clone());
        self.phase = Phase::Pausing;
        cx.start_timer(DriverTimer::Retry, cx.now() + RELAUNCH_PAUSE);
    }

    /// A launch came to no process, and is not counted.
    fn nothing_launched(&mut self, moment: Moment, trouble: &Trouble, reason: String) {
        self.troubles.add(moment.now, &trouble.what);
        self.report.launches = self.report.launches.saturating_sub(1);
        self.set_health(moment, DriverHealth::Unhealthy, reason);
    }

    fn await_change(&mut self, cx: &mut StepContext<Self>) {
        self.phase = Phase::Refused;
        self.call(CHANGE_DEADLINE, DriverCall::AwaitChange, cx);
    }

    /// Its program has changed, or it cannot be said whether it has.
    pub(super) fn change_heard(&mut self, outcome: &Outcome, cx: &mut StepContext<Self>) {
        match outcome {
            Ok(Ok(_)) => self.advance(StartStep::Recall, cx),
            Err(CallLost::DeadlineExceeded(_)) => self.await_change(cx),
            Ok(Err(trouble)) => self.failed(trouble, cx),
            Err(lost @ (CallLost::Crashed(_) | CallLost::Busy(_))) => {
                let what = format!("{}: {lost}", self.report.reason);
                self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
            }
        }
    }

    pub(super) fn retry(&mut self, cx: &mut StepContext<Self>) {
        let is_mute = self.silent_failures >= self.config.limits.silent_until_replaced.max(1);
        if self.process.is_some() && (is_mute || self.is_restart_due) {
            self.silent_failures = 0;
            self.end_process(Then::Anew, cx);
        } else {
            self.advance(StartStep::Recall, cx);
        }
    }

    /// The process has ended, or it cannot be said.
    pub(super) fn end_heard(&mut self, outcome: &Outcome, cx: &mut StepContext<Self>) {
        match outcome {
            Ok(Ok(Reached::Ended(how))) => self.process_ended(how, cx),
            // Nothing happened for a long time.
            Err(CallLost::DeadlineExceeded(_)) => self.await_end(cx),
            Ok(Ok(_) | Err(_)) | Err(CallLost::Crashed(_) | CallLost::Busy(_)) => {
                cx.start_timer(DriverTimer::Reawait, cx.now() + REAWAIT_PAUSE);
            }
        }
    }

    pub(super) fn lost_process(&mut self) {
        self.process = None;
        self.link = Link::Down;
        self.silent_failures = 0;
        self.report.pid = None;
        self.report.is_adopted = false;
    }

    /// Its process is gone, or does not answer: callers are cut off.
    pub(super) fn cut(&self, reason: &str, cx: &mut StepContext<Self>) {
        if let Link::Up(..) = self.link {
            let (reason, within) = (reason.to_owned(), Duration::ZERO);
            let call = DriverCall::HangUp { is_worth_retrying: true, reason, within };
            cx.call(CallKey::default(), HANG_UP_DEADLINE, call);
        }
    }
}

/// A process that was asked and is silent is another thing than an owner of processes who is. A driver that has just answered
/// and takes long over its first fingerprint is not silent either.
pub(super) const fn kind_of_lost(start_step: StartStep) -> TroubleKind {
    match start_step {
        StartStep::Recall | StartStep::Launch | StartStep::Watch => TroubleKind::Answered,
        StartStep::Dial
        | StartStep::Ping
        | StartStep::Identify
        | StartStep::Configure
        | StartStep::Initialise
        | StartStep::Capabilities => TroubleKind::Silent,
    }
}

pub(super) fn confused(start_step: StartStep) -> Trouble {
    let what = format!("{start_step}: another question was answered than was asked");
    Trouble { kind: TroubleKind::Answered, what }
}
