//! Handles failures, all in the same way.

use std::time::Duration;

use super::calls::{Outcome, Reached, SessionCall, SessionTimer, Step, Trouble, TroubleKind};
use super::service::{Plugin, Service};
use super::state::{Link, Phase, Session, Then};
use super::status::SessionHealth;
use crate::kernel::{CallKey, CallLost, StepContext};
use crate::vocabulary::Moment;

/// The pause before the end of a process is waited for again after that failed.
const REAWAIT_PAUSE: Duration = Duration::from_secs(1);
/// The pause before a launch is retried that did not begin.
const RELAUNCH_PAUSE: Duration = Duration::from_secs(1);
/// The deadline for hanging up.
const HANG_UP_DEADLINE: Duration = Duration::from_secs(2);
/// The deadline for waiting for another program; the wait is then repeated.
const CHANGE_DEADLINE: Duration = Duration::from_secs(3_600);

impl<S: Service> Session<S> {
    pub(super) fn refused<M: Plugin<S>>(
        &mut self,
        step: Step<S::Step>,
        trouble: &Trouble,
        cx: &mut StepContext<M>,
    ) {
        match (step, trouble.kind) {
            // Nothing runs, so there is nothing to cut off.
            (Step::Launch, TroubleKind::Refused) => self.launch_refused(trouble, cx),
            (Step::Launch, TroubleKind::NotBegun) => self.launch_not_begun(trouble, cx),
            // A plugin that has nothing to do for this call need not have it (D109).
            (Step::Own(own), TroubleKind::Unimplemented) if S::may_lack(own) => self.own_step_done(cx),
            (_, _) => self.failed(trouble, cx),
        }
    }

    /// The one path for every failure, the first like any later one (HLT-04, HLT-05).
    pub(super) fn failed<M: Plugin<S>>(&mut self, trouble: &Trouble, cx: &mut StepContext<M>) {
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
        self.set_health(cx.moment(), SessionHealth::Unhealthy, trouble.what.clone());
        self.phase = Phase::Pausing;
        let pause = self.backoff.failed(&self.config.limits.backoff, cx.moment());
        cx.cancel_timer(SessionTimer::ReadOn);
        self.end_pings(cx);
        cx.start_timer(SessionTimer::Retry, cx.now() + pause);
    }

    /// Its program is refused: the same one is not tried again (SEC-07).
    fn launch_refused<M: Plugin<S>>(&mut self, trouble: &Trouble, cx: &mut StepContext<M>) {
        self.nothing_launched(cx.moment(), trouble, format!("refused: {}", trouble.what));
        self.backoff.reset();
        self.await_change(cx);
    }

    /// No process was launched, so pauses do not grow: it is launched as soon as possible.
    fn launch_not_begun<M: Plugin<S>>(&mut self, trouble: &Trouble, cx: &mut StepContext<M>) {
        self.nothing_launched(cx.moment(), trouble, trouble.what.clone());
        self.phase = Phase::Pausing;
        cx.start_timer(SessionTimer::Retry, cx.now() + RELAUNCH_PAUSE);
    }

    /// A launch resulted in no process, and is not counted.
    fn nothing_launched(&mut self, moment: Moment, trouble: &Trouble, reason: String) {
        self.troubles.add(moment.now, &trouble.what);
        self.status.launches = self.status.launches.saturating_sub(1);
        self.set_health(moment, SessionHealth::Unhealthy, reason);
    }

    fn await_change<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        self.phase = Phase::Refused;
        self.call(CHANGE_DEADLINE, SessionCall::AwaitChange, cx);
    }

    /// Its program has changed, or it is unknown whether it has.
    pub(super) fn change_heard<M: Plugin<S>>(&mut self, outcome: &Outcome<S>, cx: &mut StepContext<M>) {
        match outcome {
            Ok(Ok(_)) => self.advance(Step::Recall, cx),
            Err(CallLost::DeadlineExceeded(_)) => self.await_change(cx),
            Ok(Err(trouble)) => self.failed(trouble, cx),
            Err(lost @ (CallLost::Crashed(_) | CallLost::Busy(_))) => {
                let what = format!("{}: {lost}", self.status.reason);
                self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
            }
        }
    }

    pub(super) fn retry<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        let is_mute = self.silent_failures >= self.config.limits.silent_until_replaced.max(1);
        if self.process.is_some() && (is_mute || self.is_restart_due) {
            self.silent_failures = 0;
            self.end_process(Then::Anew, cx);
        } else {
            self.advance(Step::Recall, cx);
        }
    }

    /// The process has ended, or its state is unknown.
    pub(super) fn end_heard<M: Plugin<S>>(&mut self, outcome: &Outcome<S>, cx: &mut StepContext<M>) {
        match outcome {
            Ok(Ok(Reached::Ended(how))) => self.process_ended(how, cx),
            // Nothing happened for a long time.
            Err(CallLost::DeadlineExceeded(_)) => self.await_end(cx),
            Ok(Ok(_) | Err(_)) | Err(CallLost::Crashed(_) | CallLost::Busy(_)) => {
                cx.start_timer(SessionTimer::Reawait, cx.now() + REAWAIT_PAUSE);
            }
        }
    }

    pub(super) fn lost_process(&mut self) {
        self.process = None;
        self.link = Link::Down;
        self.silent_failures = 0;
        self.status.pid = None;
        self.status.is_adopted = false;
    }

    /// Its process is gone, or does not answer: callers are cut off.
    pub(super) fn cut<M: Plugin<S>>(&self, reason: &str, cx: &mut StepContext<M>) {
        if let Link::Up(..) = self.link {
            let (reason, within) = (reason.to_owned(), Duration::ZERO);
            let call = SessionCall::HangUp { is_worth_retrying: true, reason, within };
            cx.call(CallKey::default(), HANG_UP_DEADLINE, call);
        }
    }
}

/// A process that was asked and is silent differs from an owner of processes that is silent. A plugin that has just answered
/// and takes long over its first fingerprint is not silent either.
pub(super) const fn kind_of_lost<T>(step: &Step<T>) -> TroubleKind {
    match step {
        Step::Recall | Step::Launch | Step::Watch => TroubleKind::Answered,
        Step::Dial | Step::Ping | Step::Identify | Step::Configure | Step::Own(_) => TroubleKind::Silent,
    }
}

pub(super) fn confused<S: Service>(step: Step<S::Step>) -> Trouble {
    let what = format!("{step}: the reply does not match the request");
    Trouble { kind: TroubleKind::Answered, what }
}
