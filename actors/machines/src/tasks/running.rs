//! Decisions for a task that starts or runs: which request its driver gets, and when.

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::departed::ADVICE;
use super::messages::{DriverProgress, TaskError, TasksNews};
use super::reach::Later;
use super::state::*;
use crate::kernel::{CallKey, CallLost, Gate, StepContext};
use crate::vocabulary::{Backoff, Timestamp};

/// The timeout of all other requests to a driver.
pub(super) const ASK_TIMEOUT: Duration = Duration::from_secs(60);
/// A call that waits for the end of a run is renewed at least this often.
const WAIT_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The backoff for failed requests to a driver.
pub(super) const TROUBLE_BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(250),
    longest: Duration::from_secs(15),
    jitter_percent: 10,
    reset_after: Duration::from_secs(60),
};

impl Task {
    pub(super) fn remember(&self, cx: &mut StepContext<Tasks>) {
        let change = TasksChange::State(self.config.name.clone(), Box::new(self.durable.clone()));
        cx.write(Gate::Promises, change);
    }

    pub(super) fn enter(&mut self, phase: Phase, note: impl Into<String>, cx: &mut StepContext<Tasks>) {
        self.enter_since(cx.now(), phase, note, cx);
    }

    /// Enters a phase that began at this time.
    fn enter_since(
        &mut self,
        since: Timestamp,
        phase: Phase,
        note: impl Into<String>,
        cx: &mut StepContext<Tasks>,
    ) {
        if self.told_as(self.phase) != self.told_as(phase) {
            self.since = since;
        }
        self.phase = phase;
        self.note = note.into();
        cx.publish(TasksNews::TaskChanged(Box::new(self.report())));
    }

    pub(super) fn note(&mut self, note: impl Into<String>, cx: &mut StepContext<Tasks>) {
        let note = note.into();
        if self.note != note {
            self.note = note;
            cx.publish(TasksNews::TaskChanged(Box::new(self.report())));
        }
    }

    pub(super) fn call(&self, timeout: Duration, call: TasksCall, cx: &mut StepContext<Tasks>) {
        let key = CallKey { attempt: self.durable.attempt, ..CallKey::default() };
        cx.call(key, timeout, call);
    }

    pub(super) fn run_key(&self) -> Option<RunKey> {
        let run = self.durable.run.as_ref()?;
        Some(RunKey { name: self.config.name.clone(), driver: run.driver.clone(), id: run.id.clone() })
    }

    /// Resumes from the state on disk.
    pub(super) fn pick_up(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        if self.durable.run.is_some() {
            self.unsure_since = cx.now();
            self.is_inherited = true;
            return self.take_up(scene, cx);
        }
        match self.durable.wanted {
            Some(Wanted::Ended) => {
                // The phase began when its end became known, not now.
                let ended = self.durable.exit.as_ref().map_or(cx.now(), |(_, heard)| *heard);
                self.enter_since(ended, Phase::Ended, "ended before", cx);
            }
            Some(Wanted::Failed) => self.enter(Phase::Failed, "given up before", cx),
            Some(Wanted::Running) => self.begin(scene, cx),
            None if self.config.start => self.begin(scene, cx),
            None | Some(Wanted::Stopped) => {}
        }
    }

    /// Queries its driver about a run with an unknown result.
    pub(super) fn take_up(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        let Some(run) = &self.durable.run else { return };
        let (next, note) = match &run.state {
            RunState::Intended => {
                (Next::Settle, format!("unknown whether {} was started; asking its driver", run.id))
            }
            RunState::Started(_) => (Next::Recover, format!("recovering {}", run.id)),
            RunState::Over { .. } => (Next::Clear, format!("{} is over; its driver is to forget it", run.id)),
        };
        if next == Next::Clear && self.cause.is_empty() {
            self.cause.clone_from(&note);
        }
        if self.durable.wanted == Some(Wanted::Stopped) {
            self.stop_began = cx.now();
            self.start_give_up(cx);
        }
        self.ready(scene, next, note, cx);
    }

    /// Starts on an operator's request: earlier failures no longer count.
    pub(super) fn start_anew(
        &mut self,
        scene: &Scene<'_>,
        cx: &mut StepContext<Tasks>,
    ) -> Result<(), TaskError> {
        let name = self.config.name.clone();
        if !self.is_configured {
            return Err(TaskError::Removed { name });
        }
        match self.phase {
            Phase::Stopped | Phase::Ended | Phase::Failed | Phase::Waiting => {
                self.durable.restarted_at.clear();
                cx.cancel_timer(TasksTimer::Start(name));
                self.begin(scene, cx);
                Ok(())
            }
            Phase::OutOfReach => {
                self.durable.wanted = Some(Wanted::Running);
                self.remember(cx);
                self.out_of_reach.reset();
                self.take_up_again(scene, cx);
                Ok(())
            }
            Phase::Readying(_)
            | Phase::Starting
            | Phase::Settling
            | Phase::Recovering
            | Phase::Running
            | Phase::Stopping
            | Phase::Clearing
            | Phase::Sweeping(_) => match self.durable.wanted {
                Some(Wanted::Running) => Err(TaskError::Started { name, phase: self.phase.told() }),
                None | Some(Wanted::Stopped | Wanted::Ended | Wanted::Failed) => {
                    Err(TaskError::Stopping { name })
                }
            },
        }
    }

    /// Begins a run. Its intent and its id are on disk before its driver receives the start.
    pub(super) fn begin(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        if scene.shutdown != ShutdownState::Serving {
            return;
        }
        self.durable.wanted = Some(Wanted::Running);
        self.durable.attempt = self.durable.attempt.next();
        let identity = scene.options.identities.of(&self.config.name);
        let id = identity.run(self.durable.attempt, cx.random());
        let driver = self.config.driver.clone();
        let begun = scene.options.boot.as_ref().map(|boot| boot.begun(cx.now()));
        let evidence = RunEvidence { begun, ..RunEvidence::default() };
        self.durable.run = Some(Run { driver, id, state: RunState::Intended, evidence });
        self.ended = None;
        self.unreleased = None;
        self.cause.clear();
        self.sweeps = 0;
        self.refusal = None;
        (self.is_unsent, self.is_inherited) = (false, false);
        self.out_of_reach.reset();
        self.is_driver_absent = false;
        self.awaits_driver = false;
        self.remember(cx);
        self.await_disk(cx);
        self.ready(scene, Next::Start, "to be started", cx);
    }

    /// Prepares a request to its driver.
    pub(super) fn ready(
        &mut self,
        scene: &Scene<'_>,
        next: Next,
        note: impl Into<String>,
        cx: &mut StepContext<Tasks>,
    ) {
        self.enter(Phase::Readying(next), note, cx);
        self.proceed(scene, cx);
    }

    /// Sends the prepared request, if the driver is set up and its events are read.
    pub(super) fn proceed(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        let Phase::Readying(next) = self.phase else { return };
        let driver = self.driver().clone();
        match scene.progress(&driver) {
            Some(DriverProgress::Added) => {}
            Some(DriverProgress::Asking | DriverProgress::Leaving) => {
                return self.note(format!("waits for driver {driver}"), cx);
            }
            Some(DriverProgress::Pausing(reason)) => {
                let note = format!("waits for driver {driver}: {reason}");
                return self.wait_for_driver(next, note, cx);
            }
            Some(DriverProgress::Refused(reason)) => {
                let advice =
                    if scene.is_unconfigured(&driver) { format!("; {ADVICE}") } else { String::new() };
                let reason = format!("driver {driver} is unavailable: {reason}{advice}");
                return self.without_driver(scene, (next, reason), cx);
            }
            None => {
                let reason = format!("driver {driver} is not in the configuration any more");
                return self.without_driver(scene, (next, reason), cx);
            }
        }
        match &self.watch {
            Watch::On(at) if *at == driver => {}
            // The answer returns, and continues here.
            Watch::Asked(at) if *at == driver => return,
            Watch::No | Watch::Asked(_) | Watch::On(_) => return self.ask_to_watch(cx),
        }
        let Some(key) = self.run_key() else { return };
        match next {
            Next::Start | Next::StartAtLast if self.awaits_disk => {}
            Next::Start | Next::StartAtLast => self.order_start(key, cx),
            Next::Settle => {
                self.phase = Phase::Settling;
                self.call(ASK_TIMEOUT, TasksCall::Inspect(key), cx);
            }
            Next::Recover => self.recover(key, cx),
            Next::Clear => self.clear(cx),
        }
    }

    /// Waits for a driver that is not available yet. No start is in progress meanwhile.
    fn wait_for_driver(&mut self, next: Next, note: String, cx: &mut StepContext<Tasks>) {
        match next {
            Next::Start => self.enter(Phase::Readying(Next::StartAtLast), note, cx),
            Next::StartAtLast | Next::Settle | Next::Recover | Next::Clear => self.note(note, cx),
        }
    }

    /// Handles that its driver is unavailable.
    fn without_driver(
        &mut self,
        scene: &Scene<'_>,
        (next, reason): (Next, String),
        cx: &mut StepContext<Tasks>,
    ) {
        match next {
            Next::Start | Next::StartAtLast => self.not_started(reason, cx),
            Next::Settle | Next::Recover | Next::Clear => {
                let is_unconfigured = scene.is_unconfigured(self.driver());
                let later = if is_unconfigured { Later::Pointless } else { Later::Possible };
                self.out_of_reach(scene, (reason, later), cx);
            }
        }
    }

    /// Handles the result of a call about its present run.
    pub(super) fn returned(
        &mut self,
        scene: &Scene<'_>,
        call: &TasksCall,
        outcome: &Result<TasksOutcome, CallLost>,
        cx: &mut StepContext<Tasks>,
    ) {
        match outcome {
            Ok(TasksOutcome::Started(started)) => self.started(started, cx),
            Ok(TasksOutcome::Inspected(answer)) => self.inspected(answer, cx),
            Ok(TasksOutcome::Recovered(answer)) => self.recovered(answer, cx),
            Ok(TasksOutcome::DriverReplaced(answer)) => self.driver_replaced(answer, cx),
            Ok(TasksOutcome::Waited(answer)) => self.waited(scene, answer, cx),
            Ok(TasksOutcome::StopTaken(answer)) => self.stop_taken(answer, cx),
            Ok(TasksOutcome::Destroyed(answer)) => self.destroyed(answer, cx),
            Ok(TasksOutcome::Located(answer)) => self.located(answer, cx),
            Ok(TasksOutcome::Swept(answer)) => self.swept(scene, answer, cx),
            // These calls do not belong to a run.
            Ok(
                TasksOutcome::SetUp(_)
                | TasksOutcome::Dismissed(_)
                | TasksOutcome::Watched(_)
                | TasksOutcome::Events(_)
                | TasksOutcome::Sent(_)
                | TasksOutcome::OnDisk
                | TasksOutcome::Forgotten,
            ) => {}
            Err(lost) => self.lost(scene, call, lost, cx),
        }
    }

    /// Handles a call without a result.
    fn lost(&mut self, scene: &Scene<'_>, call: &TasksCall, lost: &CallLost, cx: &mut StepContext<Tasks>) {
        let trouble = Trouble::passing(lost.to_string());
        match call {
            TasksCall::Start(..) => {
                self.started(&Started::Unclear(trouble), cx);
            }
            TasksCall::Inspect(_) => self.inspected(&Err(trouble), cx),
            TasksCall::ReplaceDriver(_) => self.driver_replaced(&Err(trouble), cx),
            TasksCall::Recover(..) => self.recovered(&Err(trouble), cx),
            TasksCall::Wait(_) => match lost {
                CallLost::DeadlineExceeded(_) => self.wait(cx),
                CallLost::Crashed(_) | CallLost::Busy(_) => self.waited(scene, &Err(trouble), cx),
            },
            TasksCall::Stop { .. } => self.stop_taken(&Err(trouble), cx),
            TasksCall::Destroy(_) => self.destroyed(&Err(trouble), cx),
            // The next search replaces it.
            TasksCall::Locate { .. } => {}
            TasksCall::Sweep { .. } => self.swept(scene, &Err(trouble), cx),
            // These calls do not belong to a run.
            TasksCall::SetUp(_)
            | TasksCall::SetUpUnconfigured(..)
            | TasksCall::Dismiss { .. }
            | TasksCall::Watch { .. }
            | TasksCall::ReadEvents { .. }
            | TasksCall::Forget { .. }
            | TasksCall::CallOff(_)
            | TasksCall::AwaitDisk { .. }
            | TasksCall::AwaitSent(_) => {}
        }
    }

    /// Handles that it runs: it continues, or is stopped, as wanted. It is reported as running if it is wanted to run and its handle is
    /// on disk.
    pub(super) fn go_on(&mut self, note: String, cx: &mut StepContext<Tasks>) {
        self.is_driver_absent = false;
        if self.durable.wanted == Some(Wanted::Running) {
            self.out_of_reach.reset();
            let open = if self.awaits_disk { ", which is not on disk yet" } else { "" };
            self.enter(Phase::Running, format!("{note}{open}"), cx);
        } else {
            self.phase = Phase::Running;
        }
        self.attend(cx);
    }

    /// Waits for its end, and stops it if it is not wanted to run.
    pub(super) fn attend(&mut self, cx: &mut StepContext<Tasks>) {
        self.wait(cx);
        self.locate(cx);
        if self.durable.wanted != Some(Wanted::Running) {
            self.order_stop(cx);
        }
    }

    pub(super) fn wait(&self, cx: &mut StepContext<Tasks>) {
        if let (Phase::Running | Phase::Stopping, Some(key)) = (self.phase, self.run_key()) {
            self.call(WAIT_TIMEOUT, TasksCall::Wait(key), cx);
        }
    }

    /// Retries the request to its driver after a pause.
    pub(super) fn speak_later(&mut self, note: String, cx: &mut StepContext<Tasks>) {
        self.note(note, cx);
        let pause = self.troubles.failed(&TROUBLE_BACKOFF, cx.moment());
        cx.start_timer(TasksTimer::Again(self.config.name.clone()), cx.now() + pause);
    }

    pub(super) fn speak_again(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        let Some(key) = self.run_key() else { return };
        if self.may_stop_alone() && self.stops_alone(cx.now()) {
            return self.stop_alone(&self.note.clone(), cx);
        }
        match self.phase {
            Phase::Readying(Next::Start | Next::StartAtLast) if scene.shutdown != ShutdownState::Serving => {}
            Phase::Readying(_) => self.proceed(scene, cx),
            Phase::Settling => self.call(ASK_TIMEOUT, TasksCall::Inspect(key), cx),
            Phase::Recovering => self.recover(key, cx),
            Phase::Stopping => self.say_stop(cx),
            Phase::Clearing if self.awaits_disk => {}
            Phase::Clearing => self.say_destroy(cx),
            Phase::Sweeping(_) => self.say_sweep(cx),
            Phase::Starting => self.start_takes_long(cx),
            // No request is pending.
            Phase::Stopped
            | Phase::Ended
            | Phase::Failed
            | Phase::OutOfReach
            | Phase::Waiting
            | Phase::Running => {}
        }
    }

    pub(super) fn start_time_has_come(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        if self.phase == Phase::Waiting {
            self.begin(scene, cx);
        }
    }
}
