//! Decisions for a task that starts or runs: which request its driver gets, and when.

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::departed::ADVICE;
use super::messages::{DriverCourse, TaskError, TasksNews};
use super::reach::Later;
use super::state::*;
use crate::kernel::{CallKey, CallLost, Effects, Gate};
use crate::vocabulary::{Backoff, Moment};

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
    pub(super) fn remember(&self, effects: &mut Effects<Tasks>) {
        let change = TasksChange::Course(self.config.name.clone(), Box::new(self.course.clone()));
        effects.write(Gate::Promises, change);
    }

    pub(super) fn enter(
        &mut self,
        moment: Moment,
        phase: Phase,
        note: impl Into<String>,
        effects: &mut Effects<Tasks>,
    ) {
        if self.told_as(self.phase) != self.told_as(phase) {
            self.since = moment.now;
        }
        self.phase = phase;
        self.note = note.into();
        effects.publish(TasksNews::TaskChanged(Box::new(self.report())));
    }

    pub(super) fn note(&mut self, note: impl Into<String>, effects: &mut Effects<Tasks>) {
        let note = note.into();
        if self.note != note {
            self.note = note;
            effects.publish(TasksNews::TaskChanged(Box::new(self.report())));
        }
    }

    pub(super) fn call(&self, timeout: Duration, call: TasksCall, effects: &mut Effects<Tasks>) {
        let key = CallKey { attempt: self.course.attempt, ..CallKey::default() };
        effects.call(key, timeout, call);
    }

    pub(super) fn run_key(&self) -> Option<RunKey> {
        let run = self.course.run.as_ref()?;
        Some(RunKey { name: self.config.name.clone(), driver: run.driver.clone(), id: run.id.clone() })
    }

    /// Resumes from the state on disk.
    pub(super) fn pick_up(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        if self.course.run.is_some() {
            self.unsure_since = moment.now;
            self.is_inherited = true;
            return self.take_up(moment, scene, effects);
        }
        match self.course.wanted {
            Some(Wanted::Ended) => {
                // The phase began when its end became known, not now.
                let ended = self.course.exit.as_ref().map_or(moment.now, |(_, heard)| *heard);
                self.enter(Moment { now: ended, ..moment }, Phase::Ended, "ended before", effects);
            }
            Some(Wanted::Failed) => self.enter(moment, Phase::Failed, "given up before", effects),
            Some(Wanted::Running) => self.begin(moment, scene, effects),
            None if self.config.start => self.begin(moment, scene, effects),
            None | Some(Wanted::Stopped) => {}
        }
    }

    /// Asks its driver about a run of which it is not known what became of it.
    pub(super) fn take_up(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        let Some(run) = &self.course.run else { return };
        let (next, note) = match &run.state {
            RunState::Intended => {
                (Next::Settle, format!("whether {} was started is not known; asking its driver", run.id))
            }
            RunState::Started(_) => (Next::Recover, format!("recovering {}", run.id)),
            RunState::Over { .. } => (Next::Clear, format!("{} is over; its driver is to forget it", run.id)),
        };
        if next == Next::Clear && self.cause.is_empty() {
            self.cause.clone_from(&note);
        }
        if self.course.wanted == Some(Wanted::Stopped) {
            self.stop_began = moment.now;
            self.start_give_up(moment, effects);
        }
        self.ready(moment, scene, next, note, effects);
    }

    /// Starts on an operator's request: earlier failures no longer count.
    pub(super) fn start_anew(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        effects: &mut Effects<Tasks>,
    ) -> Result<(), TaskError> {
        let name = self.config.name.clone();
        if !self.is_configured {
            return Err(TaskError::Removed { name });
        }
        match self.phase {
            Phase::Stopped | Phase::Ended | Phase::Failed | Phase::Waiting => {
                self.course.restarted_at.clear();
                effects.cancel_timer(TasksTimer::Start(name));
                self.begin(moment, scene, effects);
                Ok(())
            }
            Phase::OutOfReach => {
                self.course.wanted = Some(Wanted::Running);
                self.remember(effects);
                self.out_of_reach.reset();
                self.take_up_again(moment, scene, effects);
                Ok(())
            }
            Phase::Readying(_)
            | Phase::Starting
            | Phase::Settling
            | Phase::Recovering
            | Phase::Running
            | Phase::Stopping
            | Phase::Clearing
            | Phase::Sweeping(_) => match self.course.wanted {
                Some(Wanted::Running) => Err(TaskError::Started { name, phase: self.phase.told() }),
                None | Some(Wanted::Stopped | Wanted::Ended | Wanted::Failed) => {
                    Err(TaskError::Stopping { name })
                }
            },
        }
    }

    /// Begins a run. Its intent and its id are on disk before its driver receives the start.
    pub(super) fn begin(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        if scene.life != Life::Serving {
            return;
        }
        self.course.wanted = Some(Wanted::Running);
        self.course.attempt = self.course.attempt.next();
        let identity = scene.options.identities.of(&self.config.name);
        let id = identity.run(self.course.attempt, moment.random);
        let driver = self.config.driver.clone();
        let begun = scene.options.boot.as_ref().map(|boot| boot.begun(moment.now));
        let evidence = RunEvidence { begun, ..RunEvidence::default() };
        self.course.run = Some(Run { driver, id, state: RunState::Intended, evidence });
        self.steps.clear();
        self.cause.clear();
        self.sweeps = 0;
        self.refusal = None;
        (self.is_unsent, self.is_inherited) = (false, false);
        self.out_of_reach.reset();
        self.is_driver_absent = false;
        self.awaits_driver = false;
        self.remember(effects);
        self.await_disk(effects);
        self.ready(moment, scene, Next::Start, "to be started", effects);
    }

    /// Prepares a request to its driver.
    pub(super) fn ready(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        next: Next,
        note: impl Into<String>,
        effects: &mut Effects<Tasks>,
    ) {
        self.enter(moment, Phase::Readying(next), note, effects);
        self.proceed(moment, scene, effects);
    }

    /// Sends the prepared request, if the driver is brought and its events are read.
    pub(super) fn proceed(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        let Phase::Readying(next) = self.phase else { return };
        let driver = self.driver().clone();
        match scene.course(&driver) {
            Some(DriverCourse::Brought) => {}
            Some(DriverCourse::Asking | DriverCourse::Leaving) => {
                return self.note(format!("waits for driver {driver}"), effects);
            }
            Some(DriverCourse::Pausing(reason)) => {
                let note = format!("waits for driver {driver}: {reason}");
                return self.wait_for_driver(moment, next, note, effects);
            }
            Some(DriverCourse::Refused(reason)) => {
                let advice = if scene.has_departed(&driver) { format!("; {ADVICE}") } else { String::new() };
                let reason = format!("driver {driver} cannot be had: {reason}{advice}");
                return self.without_driver(moment, scene, (next, reason), effects);
            }
            None => {
                let reason = format!("driver {driver} is not in the configuration any more");
                return self.without_driver(moment, scene, (next, reason), effects);
            }
        }
        match &self.watch {
            Watch::On(at) if *at == driver => {}
            // That comes back, and goes on here.
            Watch::Asked(at) if *at == driver => return,
            Watch::No | Watch::Asked(_) | Watch::On(_) => return self.ask_to_watch(effects),
        }
        let Some(key) = self.run_key() else { return };
        match next {
            Next::Start | Next::StartAtLast if self.awaits_disk => {}
            Next::Start | Next::StartAtLast => self.order_start(moment, key, effects),
            Next::Settle => {
                self.phase = Phase::Settling;
                self.call(ASK_TIMEOUT, TasksCall::Inspect(key), effects);
            }
            Next::Recover => self.recover(key, effects),
            Next::Clear => self.clear(moment, effects),
        }
    }

    /// Waits for a driver that is not available yet. No start is in progress meanwhile.
    fn wait_for_driver(&mut self, moment: Moment, next: Next, note: String, effects: &mut Effects<Tasks>) {
        match next {
            Next::Start => self.enter(moment, Phase::Readying(Next::StartAtLast), note, effects),
            Next::StartAtLast | Next::Settle | Next::Recover | Next::Clear => self.note(note, effects),
        }
    }

    /// Handles that its driver cannot be had.
    fn without_driver(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        (next, reason): (Next, String),
        effects: &mut Effects<Tasks>,
    ) {
        match next {
            Next::Start | Next::StartAtLast => self.not_started(moment, reason, effects),
            Next::Settle | Next::Recover | Next::Clear => {
                let has_departed = scene.has_departed(self.driver());
                let later = if has_departed { Later::Pointless } else { Later::Possible };
                self.out_of_reach(moment, scene, (reason, later), effects);
            }
        }
    }

    /// Handles the result of a call about its present run.
    pub(super) fn returned(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        call: &TasksCall,
        outcome: &Result<TasksOutcome, CallLost>,
        effects: &mut Effects<Tasks>,
    ) {
        match outcome {
            Ok(TasksOutcome::Started(started)) => self.started(moment, started, effects),
            Ok(TasksOutcome::Inspected(answer)) => self.inspected(moment, answer, effects),
            Ok(TasksOutcome::Recovered(answer)) => self.recovered(moment, answer, effects),
            Ok(TasksOutcome::DriverReplaced(answer)) => self.driver_replaced(moment, answer, effects),
            Ok(TasksOutcome::Waited(answer)) => self.waited(moment, scene, answer, effects),
            Ok(TasksOutcome::StopTaken(answer)) => self.stop_taken(moment, answer, effects),
            Ok(TasksOutcome::Destroyed(answer)) => self.destroyed(moment, answer, effects),
            Ok(TasksOutcome::Located(answer)) => self.located(answer, effects),
            Ok(TasksOutcome::Swept(answer)) => self.swept(moment, scene, answer, effects),
            // These calls belong to no run.
            Ok(
                TasksOutcome::Brought(_)
                | TasksOutcome::Dismissed(_)
                | TasksOutcome::Watched(_)
                | TasksOutcome::Events(_)
                | TasksOutcome::Sent(_)
                | TasksOutcome::OnDisk
                | TasksOutcome::Forgotten,
            ) => {}
            Err(lost) => self.lost(moment, scene, call, lost, effects),
        }
    }

    /// Handles a call without a result.
    fn lost(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        call: &TasksCall,
        lost: &CallLost,
        effects: &mut Effects<Tasks>,
    ) {
        let trouble = Trouble::passing(lost.to_string());
        match call {
            TasksCall::Start(..) => {
                self.started(moment, &Started::Unclear(trouble), effects);
            }
            TasksCall::Inspect(_) => self.inspected(moment, &Err(trouble), effects),
            TasksCall::ReplaceDriver(_) => self.driver_replaced(moment, &Err(trouble), effects),
            TasksCall::Recover(..) => self.recovered(moment, &Err(trouble), effects),
            TasksCall::Wait(_) => match lost {
                CallLost::DeadlineExceeded(_) => self.wait(effects),
                CallLost::Crashed(_) | CallLost::Busy(_) => {
                    self.waited(moment, scene, &Err(trouble), effects)
                }
            },
            TasksCall::Stop { .. } => self.stop_taken(moment, &Err(trouble), effects),
            TasksCall::Destroy(_) => self.destroyed(moment, &Err(trouble), effects),
            // The next search makes up for it.
            TasksCall::Locate { .. } => {}
            TasksCall::Sweep { .. } => self.swept(moment, scene, &Err(trouble), effects),
            // These calls belong to no run.
            TasksCall::Bring(_)
            | TasksCall::BringBack(..)
            | TasksCall::Dismiss { .. }
            | TasksCall::Watch { .. }
            | TasksCall::ReadEvents { .. }
            | TasksCall::Forget { .. }
            | TasksCall::CallOff(_)
            | TasksCall::AwaitDisk { .. }
            | TasksCall::AwaitSent(_) => {}
        }
    }

    /// Handles that it runs: it continues, or is stopped, as wanted. It is reported as running if it is to run and its handle is
    /// on disk.
    pub(super) fn go_on(&mut self, moment: Moment, note: String, effects: &mut Effects<Tasks>) {
        self.is_driver_absent = false;
        if self.course.wanted == Some(Wanted::Running) {
            self.out_of_reach.reset();
            let open = if self.awaits_disk { ", which is not on disk yet" } else { "" };
            self.enter(moment, Phase::Running, format!("{note}{open}"), effects);
        } else {
            self.phase = Phase::Running;
        }
        self.attend(moment, effects);
    }

    /// Hears of its end, and stops it if it is not to run.
    pub(super) fn attend(&mut self, moment: Moment, effects: &mut Effects<Tasks>) {
        self.wait(effects);
        self.locate(moment, effects);
        if self.course.wanted != Some(Wanted::Running) {
            self.order_stop(moment, effects);
        }
    }

    pub(super) fn wait(&self, effects: &mut Effects<Tasks>) {
        if let (Phase::Running | Phase::Stopping, Some(key)) = (self.phase, self.run_key()) {
            self.call(WAIT_TIMEOUT, TasksCall::Wait(key), effects);
        }
    }

    /// Retries the request to its driver after a pause.
    pub(super) fn speak_later(&mut self, moment: Moment, note: String, effects: &mut Effects<Tasks>) {
        self.note(note, effects);
        let pause = self.troubles.failed(&TROUBLE_BACKOFF, moment);
        effects.start_timer(TasksTimer::Again(self.config.name.clone()), moment.now + pause);
    }

    pub(super) fn speak_again(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        let Some(key) = self.run_key() else { return };
        if self.may_stop_alone() && self.stops_alone(moment.now) {
            return self.stop_alone(moment, &self.note.clone(), effects);
        }
        match self.phase {
            Phase::Readying(Next::Start | Next::StartAtLast) if scene.life != Life::Serving => {}
            Phase::Readying(_) => self.proceed(moment, scene, effects),
            Phase::Settling => self.call(ASK_TIMEOUT, TasksCall::Inspect(key), effects),
            Phase::Recovering => self.recover(key, effects),
            Phase::Stopping => self.say_stop(moment, effects),
            Phase::Clearing if self.awaits_disk => {}
            Phase::Clearing => self.say_destroy(effects),
            Phase::Sweeping(_) => self.say_sweep(effects),
            Phase::Starting => self.start_takes_long(effects),
            // No request is pending.
            Phase::Stopped
            | Phase::Ended
            | Phase::Failed
            | Phase::OutOfReach
            | Phase::Waiting
            | Phase::Running => {}
        }
    }

    pub(super) fn start_time_has_come(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        effects: &mut Effects<Tasks>,
    ) {
        if self.phase == Phase::Waiting {
            self.begin(moment, scene, effects);
        }
    }
}
