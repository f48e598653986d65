//! What is decided for one task on its way up: preparing, launching, running, and starting again. In between its volumes are claimed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::allocations::{PrepareError, TaskContext, UnknownAllocation};
use crate::kernel::{CallKey, CallLost, Effects};
use crate::vocabulary::{Moment, RestartHistory};

use super::behaviour::RETRY_PAUSE;
use super::calls::{AgentCall, AgentOutcome, AgentTimer, Answered, LaunchTrouble, Living, Unreleased};
use super::messages::{AgentNews, LastExit, TaskError};
use super::state::{Agent, AgentOptions, Goal, Phase, Task, Wanted};
use super::stopping::not_ended;

/// What is under way when a task is to stop has come back by then.
pub(super) const UNDER_WAY_TIMEOUT: Duration = Duration::from_secs(30);
/// Making directories and looking at a socket takes no longer.
const PREPARE_TIMEOUT: Duration = UNDER_WAY_TIMEOUT;
/// A process is started while its call is made; the rest is reserve.
const LAUNCH_TIMEOUT: Duration = UNDER_WAY_TIMEOUT;
/// A message to another actor of this host takes no longer.
const SAY_TIMEOUT: Duration = Duration::from_secs(10);

impl Task {
    pub(super) fn call(&self, timeout: Duration, call: AgentCall, effects: &mut Effects<Agent>) {
        let key = CallKey { attempt: self.memory.attempt, ..CallKey::default() };
        effects.call(key, timeout, call);
    }

    pub(super) fn remember(&self, effects: &mut Effects<Agent>) {
        effects.persist((self.config.name.clone(), self.memory.clone()));
    }

    /// Enters a phase, and says so.
    pub(super) fn enter(
        &mut self,
        moment: Moment,
        phase: Phase,
        event: impl Into<String>,
        effects: &mut Effects<Agent>,
    ) {
        if self.phase.told() != phase.told() {
            self.since = moment.now;
        }
        self.phase = phase;
        self.last_event = event.into();
        effects.publish(AgentNews::TaskChanged(self.report()));
    }

    /// Takes note of something that happened to it.
    pub(super) fn note(&mut self, event: &str, effects: &mut Effects<Agent>) {
        if self.last_event != event {
            self.last_event = event.to_owned();
            effects.publish(AgentNews::TaskChanged(self.report()));
        }
    }

    /// Goes on from what is remembered and from the process that is there.
    pub(super) fn pick_up(&mut self, moment: Moment, process: Option<&Living>, effects: &mut Effects<Agent>) {
        self.surveyed(process.is_some());
        match (self.memory.wanted, process) {
            (None, None) => {
                if self.config.start {
                    self.begin(moment, effects);
                }
            }
            // Without a memory it was left by an earlier run of the host, in which it was meant to run.
            (None | Some(Wanted::Running | Wanted::Returning), Some(living)) => {
                self.memory.wanted = Some(Wanted::Running);
                self.memory.attempt = living.attempt;
                self.remember(effects);
                self.runs(moment, living.pid, effects);
            }
            // Its process was ended on purpose.
            (Some(Wanted::Returning), None) => self.begin(moment, effects),
            (Some(Wanted::Running), None) => {
                let how = "its exit was not observed".to_owned();
                self.memory.exit = Some(LastExit { exit: None, how: how.clone(), at: moment.now });
                self.report_exit(moment, how, effects);
            }
            (Some(Wanted::Failed), None) => {
                self.release(moment, Goal::Fail("given up before".to_owned()), effects);
            }
            (Some(Wanted::Stopped | Wanted::Left | Wanted::Failed), _) => {
                self.wind_down(moment, process.map(|living| living.pid), effects);
            }
        }
    }

    /// Starts because a person says so: what failed before is forgiven.
    pub(super) fn start_anew(
        &mut self,
        moment: Moment,
        effects: &mut Effects<Agent>,
    ) -> Result<(), TaskError> {
        let allocation = self.config.name.clone();
        match self.phase {
            Phase::Stopped | Phase::Failed | Phase::Waiting { .. } => {
                self.memory.history = RestartHistory::default();
                self.memory.backoff.reset();
                self.memory.claims.begin_anew();
                effects.cancel_timer(AgentTimer::Start(allocation));
                self.begin(moment, effects);
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

    pub(super) fn begin(&mut self, moment: Moment, effects: &mut Effects<Agent>) {
        self.memory.wanted = Some(Wanted::Running);
        self.steps.clear();
        let living = self.memory.unended.processes.values().next().copied();
        self.memory.unended.is_awaited = living.is_some();
        if let Some(pid) = living {
            self.remember(effects);
            let event = format!("{}; starts again when that has ended", not_ended(pid));
            return self.enter(moment, Phase::Waiting { due: None }, event, effects);
        }
        self.memory.attempt = self.memory.attempt.next();
        self.remember(effects);
        self.enter(moment, Phase::Preparing, "preparing", effects);
        self.call(PREPARE_TIMEOUT, AgentCall::Prepare(self.spec()), effects);
    }

    /// Takes what came of a call that was made in its latest start.
    pub(super) fn returned(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        outcome: &AgentOutcome,
        effects: &mut Effects<Agent>,
    ) {
        match outcome {
            AgentOutcome::Prepared(answer) => {
                if self.phase == Phase::Preparing {
                    self.prepared(moment, options, answer, effects);
                }
            }
            AgentOutcome::Claimed(answer) => self.claimed(moment, options, Ok(answer), effects),
            AgentOutcome::Launched(born) => {
                // A process that ended at once has been reported already, and this comes too late.
                if self.phase == Phase::Launching {
                    self.launched(moment, options, born, effects);
                }
            }
            AgentOutcome::Adopted(answer) => self.adopted(moment, answer, effects),
            AgentOutcome::Announced(answer) => self.announced(moment, answer, effects),
            AgentOutcome::Withdrawn(answer) => self.withdrawn(moment, Ok(answer), effects),
            AgentOutcome::EndAsked | AgentOutcome::CalledOff => {}
            AgentOutcome::Reported(Ok(_)) => self.reported(moment, options, effects),
            AgentOutcome::Reported(Err(_)) => self.retry(moment, effects),
            AgentOutcome::Released(answer) => self.released(moment, options, answer.clone(), effects),
            // These belong to no task.
            AgentOutcome::Surveyed(_)
            | AgentOutcome::Endings(_)
            | AgentOutcome::Followed(_)
            | AgentOutcome::AwaitedHealthy(_) => {}
        }
    }

    /// Takes it that a call of its latest start has no outcome.
    pub(super) fn lost(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        call: &AgentCall,
        lost: &CallLost,
        effects: &mut Effects<Agent>,
    ) {
        match call {
            AgentCall::Prepare(_) if self.phase == Phase::Preparing => {
                let reason = format!("cannot be prepared: {lost}");
                match lost {
                    CallLost::DeadlineExceeded(_) => self.disk_is_sick(moment, options, &reason, effects),
                    CallLost::Crashed(_) | CallLost::Busy(_) => {
                        self.not_started(moment, options, reason, effects);
                    }
                }
            }
            AgentCall::Claim { .. } => self.claimed(moment, options, Err(lost), effects),
            AgentCall::Launch(_) if self.phase == Phase::Launching => {
                if !matches!(lost, CallLost::Busy(_)) {
                    self.lose_sight(effects);
                }
                self.not_started(moment, options, format!("cannot be launched: {lost}"), effects);
            }
            AgentCall::Announce(_) | AgentCall::Adopt(_) | AgentCall::Report { .. } => {
                self.retry(moment, effects)
            }
            AgentCall::Withdraw { .. } => self.withdrawn(moment, Err(lost), effects),
            AgentCall::End { .. } => self.end_again(effects),
            AgentCall::Release { .. } => {
                let unreleased = Unreleased { reason: lost.to_string(), goes_on: false };
                self.released(moment, options, Err(unreleased), effects);
            }
            // What belongs to a phase that is over, or to no task.
            AgentCall::Prepare(_)
            | AgentCall::CallOff(_)
            | AgentCall::Launch(_)
            | AgentCall::Survey
            | AgentCall::AwaitEndings
            | AgentCall::AwaitHealthy(_)
            | AgentCall::Follow { .. } => {}
        }
    }

    /// Starts its process, which finds its volumes by these variables.
    pub(super) fn launch(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        context: &TaskContext,
        volumes: &BTreeMap<String, String>,
        effects: &mut Effects<Agent>,
    ) {
        self.enter(moment, Phase::Launching, "launching", effects);
        self.call(LAUNCH_TIMEOUT, AgentCall::Launch(self.order(options, context, volumes)), effects);
    }

    fn launched(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        born: &Result<u32, LaunchTrouble>,
        effects: &mut Effects<Agent>,
    ) {
        match born {
            Ok(_) => self.process_started(effects),
            Err(LaunchTrouble { may_live: true, .. }) => self.lose_sight(effects),
            Err(LaunchTrouble { may_live: false, .. }) => {}
        }
        match (born, self.memory.wanted) {
            (Ok(pid), Some(Wanted::Running)) => self.runs(moment, *pid, effects),
            (Ok(pid), _) => self.wind_down(moment, Some(*pid), effects),
            (Err(trouble), _) => self.not_started(moment, options, trouble.reason.clone(), effects),
        }
    }

    fn runs(&mut self, moment: Moment, pid: u32, effects: &mut Effects<Agent>) {
        self.enter(moment, Phase::Running { pid }, format!("process {pid} runs"), effects);
        self.announce_again(effects);
    }

    /// Says that the process runs, if it does.
    pub(super) fn announce_again(&self, effects: &mut Effects<Agent>) {
        if matches!(self.phase, Phase::Running { .. }) {
            self.call(SAY_TIMEOUT, AgentCall::Announce(self.config.name.clone()), effects);
        }
    }

    fn announced(
        &mut self,
        moment: Moment,
        answer: &Answered<Result<(), UnknownAllocation>>,
        effects: &mut Effects<Agent>,
    ) {
        match answer {
            Ok(Ok(())) => {}
            // The allocations have lost it in a crash; it goes on and is adopted.
            Ok(Err(_unknown)) => {
                if matches!(self.phase, Phase::Running { .. }) {
                    self.call(PREPARE_TIMEOUT, AgentCall::Adopt(self.spec()), effects);
                }
            }
            Err(_) => self.retry(moment, effects),
        }
    }

    fn adopted(
        &mut self,
        moment: Moment,
        answer: &Answered<Result<TaskContext, PrepareError>>,
        effects: &mut Effects<Agent>,
    ) {
        match answer {
            Ok(Ok(_context)) => self.announce_again(effects),
            Ok(Err(refusal)) => self.restart(moment, &refusal.to_string(), effects),
            Err(_) => self.retry(moment, effects),
        }
    }

    pub(super) fn retry(&self, moment: Moment, effects: &mut Effects<Agent>) {
        effects.start_timer(AgentTimer::Retry(self.config.name.clone()), moment.now + RETRY_PAUSE);
    }

    /// Retries a message that was not answered.
    pub(super) fn say_again(&self, moment: Moment, effects: &mut Effects<Agent>) {
        match &self.phase {
            Phase::Running { .. } => self.announce_again(effects),
            Phase::Reporting { how } => self.say_exit(how.clone(), effects),
            Phase::Releasing { .. } => self.release_again(moment, effects),
            Phase::Stopped | Phase::Failed => self.release_late(effects),
            Phase::Waiting { .. }
            | Phase::Preparing
            | Phase::Claiming { .. }
            | Phase::Launching
            | Phase::Withdrawing { .. }
            | Phase::Ending { .. } => {}
        }
    }

    pub(super) fn report_exit(&mut self, moment: Moment, how: String, effects: &mut Effects<Agent>) {
        let event = format!("process ended: {how}");
        self.enter(moment, Phase::Reporting { how: how.clone() }, event, effects);
        self.say_exit(how, effects);
    }

    fn say_exit(&self, how: String, effects: &mut Effects<Agent>) {
        let call = AgentCall::Report { allocation: self.config.name.clone(), how };
        self.call(SAY_TIMEOUT, call, effects);
    }

    fn reported(&mut self, moment: Moment, options: &AgentOptions, effects: &mut Effects<Agent>) {
        if let Phase::Reporting { how } = &self.phase {
            let reason = format!("process ended: {how}");
            self.not_started(moment, options, reason, effects);
        }
    }

    /// It does not run, for this reason: it starts again after a pause, or is given up when its budget is spent.
    pub(super) fn not_started(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        reason: String,
        effects: &mut Effects<Agent>,
    ) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(moment, None, effects);
        }
        if let Some(budget) = &options.restart.budget
            && !self.memory.history.charge(budget, moment.now)
        {
            let spent =
                format!("{reason}; given up after {} restarts within {:?}", budget.limit, budget.window);
            self.memory.wanted = Some(Wanted::Failed);
            self.remember(effects);
            return self.withdraw(moment, None, Goal::Fail(spent), effects);
        }
        self.memory.restarts += 1;
        let pause = self.memory.backoff.failed(&options.restart.backoff, moment);
        self.start_later(moment, pause, &format!("{reason}; starts again"), effects);
    }

    /// Waits this long before it is started. `event` says why, and what happens then.
    pub(super) fn start_later(
        &mut self,
        moment: Moment,
        pause: Duration,
        event: &str,
        effects: &mut Effects<Agent>,
    ) {
        self.remember(effects);
        self.enter(moment, Phase::Waiting { due: Some(moment.now + pause) }, event, effects);
        effects.start_timer(AgentTimer::Start(self.config.name.clone()), moment.now + pause);
    }

    pub(super) fn start_time_has_come(&mut self, moment: Moment, effects: &mut Effects<Agent>) {
        if matches!(self.phase, Phase::Waiting { .. }) {
            self.begin(moment, effects);
        }
    }

    /// Ends its process so that it is started again.
    pub(super) fn restart(&mut self, moment: Moment, reason: &str, effects: &mut Effects<Agent>) {
        if let Phase::Running { pid } = self.phase {
            self.end(moment, pid, Goal::Restart(reason.to_owned()), effects);
        }
    }
}
