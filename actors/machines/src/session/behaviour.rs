//! The decisions of a session, from the search for a process to the fingerprints.

use std::sync::Arc;
use std::time::Duration;

use super::calls::{Outcome, Reached, SessionCall, SessionTimer, Step, Trouble};
use super::config::SessionMode;
use super::failing::{confused, kind_of_lost};
use super::service::{Plugin, Service};
use super::state::{Ending, Link, Phase, Reading, Session, Then};
use crate::kernel::{CALL_GRACE, CallKey, Input, StepContext};
use crate::process::Launched;
use crate::processes::Recalled;
use crate::vocabulary::Attempt;

/// The deadline of a call that waits for an event; the call is then repeated.
pub(super) const WAIT_DEADLINE: Duration = Duration::from_secs(3_600);
/// The deadline for finding out the state of a process: its identity is checked, and a process that is not proven is
/// not touched.
const RECALL_DEADLINE: Duration = Duration::from_secs(60);

impl<S: Service> Session<S> {
    /// Handles one input of its machine. Messages to the machine do not concern the session.
    pub fn step<M: Plugin<S>>(&mut self, input: &Input<M>, cx: &mut StepContext<M>) {
        match input {
            Input::Resumed => self.begin(cx),
            Input::Returned { key, call, outcome } => self.returned(*key, call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(*timer, cx),
            Input::StopRequested(mode) => self.stop(*mode, cx),
            Input::Asked { .. } => {}
        }
    }

    /// Restarts the plugin, as a request with this number orders.
    pub fn restart_now<M: Plugin<S>>(&mut self, number: Attempt, cx: &mut StepContext<M>) {
        self.status.restart = number;
        self.restart(cx);
    }

    fn begin<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        match self.config.mode {
            SessionMode::Serve => self.advance(Step::Recall, cx),
            SessionMode::Retire => {
                self.phase = Phase::Ending(Ending::Recalling, Then::Leave, cx.now());
                self.call(RECALL_DEADLINE, SessionCall::Advance(Step::Recall, None), cx);
            }
        }
    }

    fn elapsed<M: Plugin<S>>(&mut self, timer: SessionTimer, cx: &mut StepContext<M>) {
        match (timer, self.phase) {
            (SessionTimer::Retry, Phase::Pausing) => self.retry(cx),
            (SessionTimer::ReadOn, Phase::Resting) => self.read_on(cx),
            (SessionTimer::Ping, Phase::Watching | Phase::Resting) => self.ping(cx),
            (SessionTimer::Reawait, _) => self.await_end(cx),
            (SessionTimer::Grace, Phase::Ending(Ending::Leaving, _, since)) => {
                self.not_left(since, cx);
            }
            // The awaited event has arrived, or is no longer awaited.
            (SessionTimer::Retry | SessionTimer::ReadOn | SessionTimer::Ping | SessionTimer::Grace, _) => {}
        }
    }

    // === Calls ===

    pub(super) fn call<M: Plugin<S>>(
        &mut self,
        deadline: Duration,
        call: SessionCall<S::Step>,
        cx: &mut StepContext<M>,
    ) {
        cx.call(self.call.begin(self.status.generation), deadline, call);
    }

    pub(super) fn advance<M: Plugin<S>>(&mut self, step: Step<S::Step>, cx: &mut StepContext<M>) {
        let limits = &self.config.limits;
        let deadline = match step {
            Step::Recall => RECALL_DEADLINE,
            Step::Launch => {
                let process = &self.config.process;
                process.start_timeout.saturating_add(process.stop_grace).saturating_add(limits.step_deadline)
            }
            Step::Watch => limits.fingerprint_deadline,
            Step::Dial | Step::Ping | Step::Identify | Step::Configure | Step::Own(_) => {
                limits.step_deadline.saturating_add(CALL_GRACE)
            }
        };
        self.phase = Phase::Starting(step);
        let to = self.process.clone().filter(|_| step == Step::Dial).map(Box::new);
        self.call(deadline, SessionCall::Advance(step, to), cx);
    }

    pub(super) fn await_end<M: Plugin<S>>(&self, cx: &mut StepContext<M>) {
        if let Some(process) = &self.process {
            cx.call(CallKey::default(), WAIT_DEADLINE, SessionCall::AwaitEnd(process.tag));
        }
    }

    fn returned<M: Plugin<S>>(
        &mut self,
        key: CallKey,
        call: &SessionCall<S::Step>,
        outcome: &Outcome<S>,
        cx: &mut StepContext<M>,
    ) {
        match call {
            SessionCall::AwaitEnd(tag) => {
                if self.process.as_ref().is_some_and(|process| process.tag == *tag) {
                    self.end_heard(outcome, cx);
                }
            }
            SessionCall::Ping => {
                if self.pings.call.came_back(key) {
                    self.pinged(outcome, cx);
                }
            }
            SessionCall::Advance(..)
            | SessionCall::ReadOn
            | SessionCall::AwaitChange
            | SessionCall::HangUp { .. }
            | SessionCall::ShutdownAnswer
            | SessionCall::StopProcess { .. } => {
                // An outcome of another generation or attempt is stale (REG-08).
                if self.call.came_back(key) {
                    self.answered(outcome, cx);
                }
            }
        }
    }

    fn answered<M: Plugin<S>>(&mut self, outcome: &Outcome<S>, cx: &mut StepContext<M>) {
        match self.phase {
            Phase::Starting(step) => match outcome {
                Ok(Ok(reached)) => self.reached(step, reached, cx),
                Ok(Err(trouble)) => self.refused(step, trouble, cx),
                Err(lost) => {
                    let what = format!("{step}: {lost}");
                    self.failed(&Trouble { kind: kind_of_lost(&step), what }, cx);
                }
            },
            Phase::Watching => self.read_on_answered(outcome, cx),
            Phase::Ending(ending, then, since) => {
                self.ending_answered((ending, then, since), outcome, cx);
            }
            Phase::Refused => self.change_heard(outcome, cx),
            // No call is in progress.
            Phase::Resting | Phase::Pausing | Phase::Gone => {}
        }
    }

    // === Progress ===

    fn reached<M: Plugin<S>>(
        &mut self,
        step: Step<S::Step>,
        reached: &Reached<S::Told>,
        cx: &mut StepContext<M>,
    ) {
        match (step, reached) {
            (Step::Recall, Reached::Recalled(Recalled::Proven(launched))) => self.found(launched, cx),
            (Step::Recall, Reached::Recalled(Recalled::Ended { .. } | Recalled::Unknown)) => {
                self.lost_process();
                self.launch(cx);
            }
            (Step::Launch, Reached::Launched(launched)) => self.runs(launched, cx),
            (Step::Dial, Reached::Connected(generation)) => {
                if let Some(process) = &self.process {
                    self.status.generation = *generation;
                    let is_configured = self.config.not_launched.is_some();
                    self.link = Link::Up(process.tag, Reading { is_configured, ..Reading::default() });
                }
                self.advance_to_next(cx);
            }
            (Step::Ping, Reached::Done) => self.read(cx, |reading| reading.is_pinged = true),
            (Step::Identify, Reached::Identified { version }) => {
                self.status.version = Some(Arc::clone(version));
                self.read(cx, |reading| reading.is_identified = true);
            }
            (Step::Configure, Reached::Done) => self.read(cx, |reading| reading.is_configured = true),
            (Step::Own(own), Reached::Done) => self.own_step_answered(own, None, cx),
            (Step::Own(own), Reached::Told(told)) => self.own_step_answered(own, Some(told), cx),
            (Step::Watch, Reached::Told(told)) => self.told(told, cx),
            (step, _) => self.failed(&confused::<S>(step), cx),
        }
    }

    /// Continues with one of its processes.
    pub(super) fn runs<M: Plugin<S>>(&mut self, launched: &Launched, cx: &mut StepContext<M>) {
        self.hold(launched, cx);
        self.advance_to_next(cx);
    }

    /// Records that one of its processes runs. A connection to this launch is kept.
    pub(super) fn hold<M: Plugin<S>>(&mut self, launched: &Launched, cx: &mut StepContext<M>) {
        let is_known = self.process.as_ref().is_some_and(|process| process.tag == launched.tag);
        self.status.pid = Some(launched.pid);
        self.status.is_adopted = launched.is_adopted;
        self.process = Some(launched.clone());
        if !is_known {
            self.await_end(cx);
        }
        match &mut self.link {
            Link::Up(tag, reading) if *tag == launched.tag => reading.is_pinged = false,
            Link::Up(..) | Link::Down => self.link = Link::Down,
        }
    }

    fn read<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>, note: impl FnOnce(&mut Reading)) {
        if let Link::Up(_, reading) = &mut self.link {
            note(reading);
        }
        self.advance_to_next(cx);
    }

    fn own_step_answered<M: Plugin<S>>(
        &mut self,
        step: S::Step,
        told: Option<&S::Told>,
        cx: &mut StepContext<M>,
    ) {
        if self.service.take(step, told) {
            self.own_step_done(cx);
        } else {
            self.failed(&confused::<S>(Step::Own(step)), cx);
        }
    }

    pub(super) fn own_step_done<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        self.read(cx, |reading| reading.own_steps += 1);
    }

    fn advance_to_next<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        self.advance(self.next_step(), cx);
    }
}
