//! Ends a session: the process of its plugin, and the session itself.

use std::time::Duration;

use super::calls::{Outcome, Reached, SessionCall, SessionTimer, Step, Trouble, TroubleKind};
use super::config::SessionMode;
use super::service::{Plugin, Service};
use super::state::{Ending, Link, Phase, Session, Then};
use super::status::{SessionEnding, SessionHealth};
use crate::kernel::{CALL_GRACE, CallKey, CallLost, StepContext, StopMode};
use crate::process::Lifetime;
use crate::processes::Recalled;
use crate::vocabulary::{Moment, Timestamp};

/// The time beyond its grace until a process is killed and reaped.
pub(super) const STOP_MARGIN: Duration = Duration::from_secs(10);

/// The beginning of the [reason](super::SessionStatus::reason) of a plugin whose process has ended; how it ended follows.
pub const PROCESS_ENDED: &str = "its process ended";

/// The reason why the state of a plugin is unknown after its restart was requested.
pub(crate) const RESTARTED: &str = "it is being restarted";

/// The part of its grace for SIGTERM, if it has not ended after the shutdown request: a quarter.
const SIGNAL_SHARE: u32 = 4;

impl<S: Service> Session<S> {
    // === Requests ===

    /// Restarts the plugin. A running process is ended, also a process that is still searched for and is found then. A launch in
    /// progress is not disturbed: its result is what was requested. Nor is a plugin that is not launched: its process may be the
    /// last one that can end what it runs.
    pub(super) fn restart<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        if let Phase::Ending(_, Then::Leave, _) | Phase::Gone = self.phase {
            return;
        }
        if self.config.not_launched.is_some() {
            return;
        }
        self.set_health(cx.moment(), SessionHealth::NoAnswerYet, RESTARTED.to_owned());
        match self.phase {
            Phase::Starting(Step::Launch) | Phase::Gone => {}
            Phase::Starting(Step::Recall) | Phase::Ending(..) => self.is_restart_due = true,
            Phase::Starting(_) | Phase::Watching | Phase::Resting | Phase::Pausing | Phase::Refused => {
                self.is_restart_due = true;
                self.backoff.reset();
                self.silent_failures = 0;
                self.end_process(Then::Anew, cx);
            }
        }
    }

    /// Ends the session. From here on nothing new is started, regardless of later events (I6, SHD-06).
    pub(super) fn stop<M: Plugin<S>>(&mut self, mode: StopMode, cx: &mut StepContext<M>) {
        self.stop = Some(match self.stop {
            // A stop request is not weakened by a later detach.
            Some(StopMode::Stop) => StopMode::Stop,
            Some(StopMode::Detach) | None => mode,
        });
        cx.cancel_timer(SessionTimer::Retry);
        cx.cancel_timer(SessionTimer::ReadOn);
        self.end_pings(cx);
        match self.phase {
            Phase::Gone => {}
            _ if self.is_left_running() => self.end_process(Then::Leave, cx),
            Phase::Starting(Step::Recall) => {
                self.phase = Phase::Ending(Ending::Recalling, Then::Leave, cx.now());
                if let Link::Up(..) = self.link {
                    cx.call(CallKey::default(), self.drain_deadline(), self.hang_up(Then::Leave));
                }
            }
            Phase::Starting(Step::Launch) => {
                self.phase = Phase::Ending(Ending::Stopping, Then::Leave, cx.now());
                self.stop_process(self.config.stop_grace, cx);
            }
            Phase::Starting(_) | Phase::Watching | Phase::Resting | Phase::Pausing | Phase::Refused => {
                self.end_process(Then::Leave, cx);
            }
            Phase::Ending(ending, _, since) => self.phase = Phase::Ending(ending, Then::Leave, since),
        }
    }

    /// Whether its process continues without the host. A process that the session is to end does not.
    fn is_left_running(&self) -> bool {
        self.stop == Some(StopMode::Detach)
            && self.config.process.lifetime == Lifetime::Surviving
            && self.config.mode == SessionMode::Serve
    }

    /// Whether it is known that none of its processes runs. During a recall or a launch there may be one.
    const fn is_known_to_be_gone(&self) -> bool {
        let is_between = match self.phase {
            Phase::Refused => true,
            Phase::Pausing => self.status.launches > 0,
            Phase::Starting(_) | Phase::Watching | Phase::Resting | Phase::Ending(..) | Phase::Gone => false,
        };
        is_between && self.process.is_none()
    }

    // === The end of its process ===

    /// Ends the process after the calls in flight, by a shutdown request if it is connected, and continues from there.
    pub(super) fn end_process<M: Plugin<S>>(&mut self, then: Then, cx: &mut StepContext<M>) {
        cx.cancel_timer(SessionTimer::Retry);
        cx.cancel_timer(SessionTimer::ReadOn);
        self.end_pings(cx);
        match self.link {
            Link::Up(..) => {
                self.phase = Phase::Ending(Ending::Draining, then, cx.now());
                let call = self.hang_up(then);
                self.call(self.drain_deadline(), call, cx);
            }
            Link::Down => self.drained(then, cx),
        }
    }

    /// Ends the leases, and gives calls in flight their time to end (SHD-04).
    fn hang_up(&self, then: Then) -> SessionCall<S::Step> {
        let (is_worth_retrying, reason) = match then {
            Then::Anew => (true, format!("the {} is being restarted", S::NOUN)),
            Then::Leave => (false, format!("the {} is being stopped", S::NOUN)),
        };
        SessionCall::HangUp { is_worth_retrying, reason, within: self.config.limits.drain_deadline }
    }

    fn drain_deadline(&self) -> Duration {
        self.config.limits.drain_deadline.saturating_add(CALL_GRACE)
    }

    /// No call is in flight.
    fn drained<M: Plugin<S>>(&mut self, then: Then, cx: &mut StepContext<M>) {
        if then == Then::Leave && self.is_left_running() && !self.is_known_to_be_gone() {
            return self.gone(SessionEnding::told("it was left running"), cx);
        }
        match (&self.process, &self.link) {
            (None, _) => self.process_left(then, SessionEnding::NothingRan, cx),
            (Some(_), Link::Up(..)) => {
                self.phase = Phase::Ending(Ending::ShutdownAnswer, then, cx.now());
                // An unanswered request must not use up the time for signals.
                let polite = self.config.polite_deadline;
                let deadline = polite.saturating_add(CALL_GRACE).min(self.polite_grace());
                self.call(deadline, SessionCall::ShutdownAnswer, cx);
            }
            (Some(_), Link::Down) => {
                self.phase = Phase::Ending(Ending::Stopping, then, cx.now());
                self.stop_process(self.config.stop_grace, cx);
            }
        }
    }

    pub(super) fn stop_process<M: Plugin<S>>(&mut self, grace: Duration, cx: &mut StepContext<M>) {
        if let Phase::Ending(_, then, since) = self.phase {
            self.phase = Phase::Ending(Ending::Stopping, then, since);
        }
        cx.cancel_timer(SessionTimer::Grace);
        let tag = self.process.as_ref().map(|process| process.tag);
        self.call(grace.saturating_add(STOP_MARGIN), SessionCall::StopProcess { tag, grace }, cx);
    }

    /// The grace to end after the shutdown request alone.
    fn polite_grace(&self) -> Duration {
        let grace = self.config.stop_grace;
        grace.saturating_sub(grace / SIGNAL_SHARE)
    }

    /// It received the shutdown request and is still there: in the rest of its grace SIGTERM requests the same of it, and of its whole
    /// group (SHD-07).
    pub(super) fn not_left<M: Plugin<S>>(&mut self, since: Timestamp, cx: &mut StepContext<M>) {
        self.stop_process(self.grace_left(cx.moment(), since), cx);
    }

    /// The rest of its grace.
    fn grace_left(&self, moment: Moment, since: Timestamp) -> Duration {
        self.config.stop_grace.saturating_sub(moment.now.since(since))
    }

    pub(super) fn ending_answered<M: Plugin<S>>(
        &mut self,
        (ending, then, since): (Ending, Then, Timestamp),
        outcome: &Outcome<S>,
        cx: &mut StepContext<M>,
    ) {
        match (ending, outcome) {
            (Ending::Recalling, Ok(Ok(Reached::Recalled(Recalled::Proven(launched))))) => {
                self.process = Some(launched.clone());
                self.status.pid = Some(launched.pid);
                self.await_end(cx);
                self.end_process(then, cx);
            }
            (Ending::Draining, _) => self.drained(then, cx),
            (Ending::Recalling, Ok(Ok(_))) => {
                self.process_left(then, SessionEnding::NothingRan, cx);
            }
            (Ending::Recalling, Ok(Err(Trouble { what, .. }))) => self.not_recalled(what, cx),
            (Ending::Recalling, Err(lost)) => self.not_recalled(&lost.to_string(), cx),
            // It answered that it ends, or it ended during the answer (D51). It may use its grace, except the last part.
            (Ending::ShutdownAnswer, Ok(Ok(_) | Err(Trouble { kind: TroubleKind::Silent, .. }))) => {
                self.phase = Phase::Ending(Ending::Leaving, then, since);
                cx.start_timer(SessionTimer::Grace, since + self.polite_grace());
            }
            // It does not support the request, or did not answer: every process understands signals (SHD-07).
            (
                Ending::ShutdownAnswer,
                Ok(Err(Trouble {
                    kind:
                        TroubleKind::Answered
                        | TroubleKind::Unimplemented
                        | TroubleKind::Refused
                        | TroubleKind::NotBegun,
                    ..
                }))
                | Err(CallLost::DeadlineExceeded(_) | CallLost::Crashed(_) | CallLost::Busy(_)),
            ) => self.stop_process(self.grace_left(cx.moment(), since), cx),
            (Ending::Stopping, Ok(Ok(Reached::Ended(how)))) => {
                self.process_left(then, SessionEnding::told(how.as_str()), cx);
            }
            (Ending::Stopping, Ok(Ok(_))) => {
                self.process_left(then, SessionEnding::NothingRan, cx);
            }
            (Ending::Stopping, Ok(Err(trouble))) => self.not_ended(then, &trouble.what, cx),
            (Ending::Stopping, Err(lost)) => self.not_ended(then, &lost.to_string(), cx),
            // No call is in progress.
            (Ending::Leaving, _) => {}
        }
    }

    /// Its process has ended, on request or by itself (PRC-05).
    pub(super) fn process_ended<M: Plugin<S>>(&mut self, how: &str, cx: &mut StepContext<M>) {
        let what = format!("{PROCESS_ENDED}: {how}");
        match self.phase {
            Phase::Ending(_, then, _) => {
                self.process_left(then, SessionEnding::told(how), cx);
            }
            Phase::Starting(_) | Phase::Watching | Phase::Resting => {
                self.cut(&what, cx);
                self.lost_process();
                self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
            }
            // The next attempt is already in progress, or waits for another program.
            Phase::Pausing | Phase::Refused => {
                self.cut(&what, cx);
                self.troubles.add(cx.now(), &what);
                self.lost_process();
                self.set_health(cx.moment(), SessionHealth::Unhealthy, what);
            }
            Phase::Gone => {}
        }
    }

    /// Continues after the end of its process.
    fn process_left<M: Plugin<S>>(&mut self, then: Then, ending: SessionEnding, cx: &mut StepContext<M>) {
        cx.cancel_timer(SessionTimer::Grace);
        self.cut(PROCESS_ENDED, cx);
        self.lost_process();
        match then {
            Then::Anew => self.advance(Step::Recall, cx),
            Then::Leave => self.gone(ending, cx),
        }
    }

    /// It is unknown whether there is a process to end. A session that was asked to end it gives up, so that its parent
    /// decides; a host that stops leaves the rest to the owner of the processes.
    fn not_recalled<M: Plugin<S>>(&mut self, what: &str, cx: &mut StepContext<M>) {
        self.troubles.add(cx.now(), what);
        let unclear = format!("unknown whether a process of it runs: {what}");
        match self.stop {
            None => cx.fail(unclear),
            Some(_) => self.gone(SessionEnding::told(unclear), cx),
        }
    }

    fn not_ended<M: Plugin<S>>(&mut self, then: Then, what: &str, cx: &mut StepContext<M>) {
        let what = format!("its process could not be ended: {what}");
        match then {
            Then::Anew => self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx),
            Then::Leave => self.gone(SessionEnding::told(what), cx),
        }
    }

    // === The end ===

    fn gone<M: Plugin<S>>(&mut self, ending: SessionEnding, cx: &mut StepContext<M>) {
        self.phase = Phase::Gone;
        cx.cancel_timer(SessionTimer::Reawait);
        self.set_health(cx.moment(), SessionHealth::Gone, ending.words().to_owned());
        self.status.ending = Some(ending);
    }
}
