//! Decides for one task that starts: preparing, claiming its volumes, launching, running, and restarting.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::allocations::{PrepareError, TaskContext, UnknownAllocation};
use crate::kernel::{CallKey, CallLost, StepContext};
use crate::vocabulary::{RestartHistory, Timestamp};

use super::behaviour::RETRY_PAUSE;
use super::calls::{AgentCall, AgentOutcome, AgentTimer, Answered, LaunchTrouble, Living, Unreleased};
use super::messages::{AgentNews, LastExit, TaskError};
use super::state::{Agent, AgentOptions, Goal, Phase, Task, Wanted};
use super::stopping::not_ended;

/// The timeout for calls that are pending when a task is to stop.
pub(super) const UNDER_WAY_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for making directories and looking at a socket.
const PREPARE_TIMEOUT: Duration = UNDER_WAY_TIMEOUT;
/// The timeout of a launch. A process is started while its call is made; the rest is reserve.
const LAUNCH_TIMEOUT: Duration = UNDER_WAY_TIMEOUT;
/// The timeout of a message to another actor of this host.
const SAY_TIMEOUT: Duration = Duration::from_secs(10);

impl Task {
    pub(super) fn call(&self, timeout: Duration, call: AgentCall, cx: &mut StepContext<Agent>) {
        let key = CallKey { attempt: self.memory.attempt, ..CallKey::default() };
        cx.call(key, timeout, call);
    }

    pub(super) fn remember(&self, cx: &mut StepContext<Agent>) {
        cx.persist((self.config.name.clone(), self.memory.clone()));
    }

    /// Enters a phase, and reports it.
    pub(super) fn enter(&mut self, phase: Phase, event: impl Into<String>, cx: &mut StepContext<Agent>) {
        self.enter_since(cx.now(), phase, event, cx);
    }

    /// Enters a phase that began at this time, and reports it.
    fn enter_since(
        &mut self,
        since: Timestamp,
        phase: Phase,
        event: impl Into<String>,
        cx: &mut StepContext<Agent>,
    ) {
        if self.phase.told() != phase.told() {
            self.since = since;
        }
        self.phase = phase;
        self.last_event = event.into();
        cx.publish(AgentNews::TaskChanged(self.report()));
    }

    /// Records an event of the task.
    pub(super) fn note(&mut self, event: &str, cx: &mut StepContext<Agent>) {
        if self.last_event != event {
            self.last_event = event.to_owned();
            cx.publish(AgentNews::TaskChanged(self.report()));
        }
    }

    /// Continues from what is remembered and from the existing process.
    pub(super) fn pick_up(&mut self, process: Option<&Living>, cx: &mut StepContext<Agent>) {
        self.surveyed(process.is_some());
        match (self.memory.wanted, process) {
            (None, None) => {
                if self.config.start {
                    self.begin(cx);
                }
            }
            // Without a memory it was left by an earlier run of the host, in which it was meant to run.
            (None | Some(Wanted::Running | Wanted::Returning), Some(living)) => {
                self.memory.wanted = Some(Wanted::Running);
                self.memory.attempt = living.attempt;
                self.remember(cx);
                self.runs(living.pid, living.started_at, cx);
            }
            // Its process was ended on purpose.
            (Some(Wanted::Returning), None) => self.begin(cx),
            (Some(Wanted::Running), None) => {
                let how = "its exit was not observed".to_owned();
                self.memory.exit = Some(LastExit { exit: None, how: how.clone(), at: cx.now() });
                self.report_exit(how, cx);
            }
            (Some(Wanted::Failed), None) => {
                self.release(Goal::Fail("given up before".to_owned()), cx);
            }
            (Some(Wanted::Stopped | Wanted::Left | Wanted::Failed), _) => {
                self.wind_down(process.map(|living| living.pid), cx);
            }
        }
    }

    /// Starts on the request of a person: earlier failures are forgotten.
    pub(super) fn start_anew(&mut self, cx: &mut StepContext<Agent>) -> Result<(), TaskError> {
        let allocation = self.config.name.clone();
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Waiting { .. } => {
                self.memory.history = RestartHistory::default();
                self.memory.backoff.reset();
                self.memory.claims.begin_anew();
                cx.cancel_timer(AgentTimer::Start(allocation));
                self.begin(cx);
                Ok(())
            }
            Phase::Preparing
            | Phase::Claiming { .. }
            | Phase::Launching
            | Phase::Running { .. }
            | Phase::Reporting { .. } => {
                if self.memory.wanted == Some(Wanted::Running) {
                    Err(TaskError::Started { allocation, phase: self.phase.told() })
                } else {
                    Err(TaskError::Stopping { allocation })
                }
            }
            Phase::Withdrawing { .. } | Phase::Ending { .. } | Phase::Releasing { .. } => {
                Err(TaskError::Stopping { allocation })
            }
        }
    }

    pub(super) fn begin(&mut self, cx: &mut StepContext<Agent>) {
        self.memory.wanted = Some(Wanted::Running);
        self.steps.clear();
        let living = self.memory.unended.processes.values().next().copied();
        self.memory.unended.is_awaited = living.is_some();
        if let Some(pid) = living {
            self.remember(cx);
            let event = format!("{}; starts again when that has ended", not_ended(pid));
            return self.enter(Phase::Waiting { due: None }, event, cx);
        }
        self.memory.attempt = self.memory.attempt.next();
        self.remember(cx);
        self.enter(Phase::Preparing, "preparing", cx);
        self.call(PREPARE_TIMEOUT, AgentCall::Prepare(self.spec()), cx);
    }

    /// Handles the result of a call that was made in its latest start.
    pub(super) fn returned(
        &mut self,
        options: &AgentOptions,
        outcome: &AgentOutcome,
        cx: &mut StepContext<Agent>,
    ) {
        match outcome {
            AgentOutcome::Prepared(answer) => {
                if self.phase == Phase::Preparing {
                    self.prepared(options, answer, cx);
                }
            }
            AgentOutcome::Claimed(answer) => self.claimed(options, Ok(answer), cx),
            AgentOutcome::Launched(born) => {
                // A process that ended at once has been reported already, and this comes too late.
                if self.phase == Phase::Launching {
                    self.launched(options, born, cx);
                }
            }
            AgentOutcome::Adopted(answer) => self.adopted(answer, cx),
            AgentOutcome::Announced(answer) => self.announced(answer, cx),
            AgentOutcome::Withdrawn(answer) => self.withdrawn(Ok(answer), cx),
            AgentOutcome::EndAsked | AgentOutcome::CalledOff => {}
            AgentOutcome::Reported(Ok(_)) => self.reported(options, cx),
            AgentOutcome::Reported(Err(_)) => self.retry(cx),
            AgentOutcome::Released(answer) => self.released(options, answer.clone(), cx),
            // These belong to no task.
            AgentOutcome::Surveyed(_)
            | AgentOutcome::Endings(_)
            | AgentOutcome::Followed(_)
            | AgentOutcome::AwaitedHealthy(_) => {}
        }
    }

    /// Handles a call of its latest start that has no outcome.
    pub(super) fn lost(
        &mut self,
        options: &AgentOptions,
        call: &AgentCall,
        lost: &CallLost,
        cx: &mut StepContext<Agent>,
    ) {
        match call {
            AgentCall::Prepare(_) if self.phase == Phase::Preparing => {
                let reason = format!("cannot be prepared: {lost}");
                match lost {
                    CallLost::DeadlineExceeded(_) => self.disk_is_sick(options, &reason, cx),
                    CallLost::Crashed(_) | CallLost::Busy(_) => {
                        self.not_started(options, reason, cx);
                    }
                }
            }
            AgentCall::Claim { .. } => self.claimed(options, Err(lost), cx),
            AgentCall::Launch(_) if self.phase == Phase::Launching => {
                if !matches!(lost, CallLost::Busy(_)) {
                    self.lose_sight(cx);
                }
                self.not_started(options, format!("cannot be launched: {lost}"), cx);
            }
            AgentCall::Announce(_) | AgentCall::Adopt(_) | AgentCall::Report { .. } => self.retry(cx),
            AgentCall::Withdraw { .. } => self.withdrawn(Err(lost), cx),
            AgentCall::End { .. } => self.end_again(cx),
            AgentCall::Release { .. } => {
                let unreleased = Unreleased { reason: lost.to_string(), goes_on: false };
                self.released(options, Err(unreleased), cx);
            }
            // Calls of a phase that is over, or of no task.
            AgentCall::Prepare(_)
            | AgentCall::CallOff(_)
            | AgentCall::Launch(_)
            | AgentCall::Survey
            | AgentCall::AwaitEndings
            | AgentCall::AwaitHealthy(_)
            | AgentCall::Follow { .. } => {}
        }
    }

    /// Starts its process. The process finds its volumes by these variables.
    pub(super) fn launch(
        &mut self,
        options: &AgentOptions,
        context: &TaskContext,
        volumes: &BTreeMap<String, String>,
        cx: &mut StepContext<Agent>,
    ) {
        self.enter(Phase::Launching, "launching", cx);
        self.call(LAUNCH_TIMEOUT, AgentCall::Launch(self.order(options, context, volumes)), cx);
    }

    fn launched(
        &mut self,
        options: &AgentOptions,
        born: &Result<u32, LaunchTrouble>,
        cx: &mut StepContext<Agent>,
    ) {
        match born {
            Ok(_) => self.process_started(cx),
            Err(LaunchTrouble { may_live: true, .. }) => self.lose_sight(cx),
            Err(LaunchTrouble { may_live: false, .. }) => {}
        }
        match (born, self.memory.wanted) {
            (Ok(pid), Some(Wanted::Running)) => self.runs(*pid, cx.now(), cx),
            (Ok(pid), _) => self.wind_down(Some(*pid), cx),
            (Err(trouble), _) if trouble.is_of_disk => self.disk_is_sick(options, &trouble.reason, cx),
            (Err(trouble), _) => self.not_started(options, trouble.reason.clone(), cx),
        }
    }

    fn runs(&mut self, pid: u32, since: Timestamp, cx: &mut StepContext<Agent>) {
        self.enter_since(since, Phase::Running { pid }, format!("process {pid} runs"), cx);
        self.announce_again(cx);
    }

    /// Reports that the process runs, if it does.
    pub(super) fn announce_again(&self, cx: &mut StepContext<Agent>) {
        if matches!(self.phase, Phase::Running { .. }) {
            self.call(SAY_TIMEOUT, AgentCall::Announce(self.config.name.clone()), cx);
        }
    }

    fn announced(&mut self, answer: &Answered<Result<(), UnknownAllocation>>, cx: &mut StepContext<Agent>) {
        match answer {
            Ok(Ok(())) => {}
            // The allocations have lost it in a crash; its process continues and is adopted.
            Ok(Err(_unknown)) => {
                if matches!(self.phase, Phase::Running { .. }) {
                    self.call(PREPARE_TIMEOUT, AgentCall::Adopt(self.spec()), cx);
                }
            }
            Err(_) => self.retry(cx),
        }
    }

    fn adopted(&mut self, answer: &Answered<Result<TaskContext, PrepareError>>, cx: &mut StepContext<Agent>) {
        match answer {
            Ok(Ok(_context)) => self.announce_again(cx),
            Ok(Err(refusal)) => self.restart(&refusal.to_string(), cx),
            Err(_) => self.retry(cx),
        }
    }

    pub(super) fn retry(&self, cx: &mut StepContext<Agent>) {
        cx.start_timer(AgentTimer::Retry(self.config.name.clone()), cx.now() + RETRY_PAUSE);
    }

    /// Retries a message that was not answered.
    pub(super) fn say_again(&self, cx: &mut StepContext<Agent>) {
        match &self.phase {
            Phase::Running { .. } => self.announce_again(cx),
            Phase::Reporting { how } => self.say_exit(how.clone(), cx),
            Phase::Releasing { .. } => self.release_again(cx),
            Phase::Stopped | Phase::Failed => self.release_late(cx),
            Phase::Waiting { .. }
            | Phase::Preparing
            | Phase::Claiming { .. }
            | Phase::Launching
            | Phase::Withdrawing { .. }
            | Phase::Ending { .. } => {}
        }
    }

    pub(super) fn report_exit(&mut self, how: String, cx: &mut StepContext<Agent>) {
        let event = format!("process ended: {how}");
        self.enter(Phase::Reporting { how: how.clone() }, event, cx);
        self.say_exit(how, cx);
    }

    fn say_exit(&self, how: String, cx: &mut StepContext<Agent>) {
        let call = AgentCall::Report { allocation: self.config.name.clone(), how };
        self.call(SAY_TIMEOUT, call, cx);
    }

    fn reported(&mut self, options: &AgentOptions, cx: &mut StepContext<Agent>) {
        if let Phase::Reporting { how } = &self.phase {
            let reason = format!("process ended: {how}");
            self.not_started(options, reason, cx);
        }
    }

    /// It does not run, for this reason: it is started again after a pause, or given up when its budget is spent.
    pub(super) fn not_started(
        &mut self,
        options: &AgentOptions,
        reason: String,
        cx: &mut StepContext<Agent>,
    ) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(None, cx);
        }
        if let Some(budget) = &options.restart.budget
            && !self.memory.history.charge(budget, cx.now())
        {
            let spent =
                format!("{reason}; given up after {} restarts within {:?}", budget.limit, budget.window);
            self.memory.wanted = Some(Wanted::Failed);
            self.remember(cx);
            return self.withdraw(None, Goal::Fail(spent), cx);
        }
        self.memory.restarts += 1;
        let pause = self.memory.backoff.failed(&options.restart.backoff, cx.moment());
        self.start_later(pause, &format!("{reason}; starts again"), cx);
    }

    /// Waits this long before it is started. `event` gives the reason, and what happens next.
    pub(super) fn start_later(&mut self, pause: Duration, event: &str, cx: &mut StepContext<Agent>) {
        self.remember(cx);
        self.enter(Phase::Waiting { due: Some(cx.now() + pause) }, event, cx);
        cx.start_timer(AgentTimer::Start(self.config.name.clone()), cx.now() + pause);
    }

    pub(super) fn start_time_has_come(&mut self, cx: &mut StepContext<Agent>) {
        if matches!(self.phase, Phase::Waiting { .. }) {
            self.begin(cx);
        }
    }

    /// Ends its process so that it is started again.
    pub(super) fn restart(&mut self, reason: &str, cx: &mut StepContext<Agent>) {
        if let Phase::Running { pid } = self.phase {
            self.end(pid, Goal::Restart(reason.to_owned()), cx);
        }
    }
}
