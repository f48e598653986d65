//! Decisions for a task with a run that is over, or has to end: its remains are found and ended by evidence that does not come
//! from its driver. Only then another run may begin (TH040, TH041).

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::reach::Later;
use super::running::TROUBLE_BACKOFF;
use super::state::*;
use crate::driver::{TaskEnd, TaskExit};
use crate::kernel::StepContext;
use crate::vocabulary::Timestamp;

/// The timeout of a sweep: to find remains, kill them, wait for their end, and release the environment.
pub(super) const SWEEP_TIMEOUT: Duration = Duration::from_secs(60);
/// The number of attempts before the operator is notified.
const SWEEP_TRIES: u32 = 4;
/// The advice to the operator for processes that do not end.
const ADVICE: &str = "end it by hand";

impl Task {
    /// Ends the remains of its run.
    pub(super) fn sweep(&mut self, reply: DriverReply, cx: &mut StepContext<Tasks>) {
        cx.cancel_timer(TasksTimer::Again(self.config.name.clone()));
        let phase = Phase::Sweeping(reply);
        if self.phase.told() == phase.told() {
            self.phase = phase;
            self.note(self.cause.clone(), cx);
        } else {
            self.enter(phase, self.cause.clone(), cx);
        }
        self.say_sweep(cx);
    }

    pub(super) fn say_sweep(&mut self, cx: &mut StepContext<Tasks>) {
        let (Phase::Sweeping(reply), Some(key), Some(run)) =
            (self.phase, self.run_key(), self.durable.run.as_ref())
        else {
            return;
        };
        let driver = match (reply, &run.state) {
            (_, RunState::Over { exit, .. }) if exit.as_ref().is_some_and(TaskExit::is_certain) => Heard::End,
            (DriverReply::Received, _) => Heard::Answer,
            // An interrupted start may still begin, as long as the process that received it lives.
            (DriverReply::Unavailable | DriverReply::TimedOut, RunState::Intended) => Heard::NothingOfStart,
            (
                DriverReply::Unavailable | DriverReply::TimedOut,
                RunState::Started(_) | RunState::Over { .. },
            ) => Heard::Nothing,
        };
        let evidence = Box::new(run.evidence.clone());
        let call = TasksCall::Sweep { run: key, handle: run.handle(), evidence, driver };
        self.sweeps += 1;
        self.call(SWEEP_TIMEOUT, call, cx);
    }

    pub(super) fn swept(
        &mut self,
        scene: &Scene<'_>,
        answer: &Result<Swept, Trouble>,
        cx: &mut StepContext<Tasks>,
    ) {
        // An earlier sweep that is still in progress would kill anything started meanwhile: only the last one counts.
        self.sweeps = self.sweeps.saturating_sub(1);
        let Phase::Sweeping(reply) = self.phase else { return };
        if self.sweeps > 0 {
            return;
        }
        match answer {
            Ok(swept) => self.nothing_is_left(scene, reply, swept, cx),
            Err(trouble) => self.not_settled(scene, (reply, trouble), cx),
        }
    }

    fn nothing_is_left(
        &mut self,
        scene: &Scene<'_>,
        reply: DriverReply,
        swept: &Swept,
        cx: &mut StepContext<Tasks>,
    ) {
        let Some(run) = &self.durable.run else { return };
        let exit = match (&run.state, reply) {
            (RunState::Over { exit, .. }, _) => exit.clone(),
            (RunState::Intended, _) => {
                // The host ended before its driver had answered, and the run never had an effect.
                self.is_unsent |= self.is_inherited && !swept.has_killed;
                None
            }
            (RunState::Started(_), _) => {
                let reason = format!("its driver was unavailable to stop it: {}", swept.words);
                Some(TaskExit { end: TaskEnd::Unknown(reason), oom_killed: false })
            }
        };
        if let Some(refusal) = self.refusal.take()
            && !swept.has_killed
            && !exit.as_ref().is_some_and(TaskExit::is_certain)
        {
            // Its driver may run it in a way that cannot be found.
            let reason = format!(
                "it cannot be ended: {refusal}; {}, so it may run where it cannot be seen",
                swept.words
            );
            return self.out_of_reach(scene, (reason, Later::Possible), cx);
        }
        if let Some(exit) = exit.clone().filter(|exit| !exit.is_certain()) {
            self.durable.exit = Some((exit, cx.now()));
        }
        self.troubles.reset();
        self.unreleased.clone_from(&swept.unreleased);
        self.note.clone_from(&self.cause);
        // After a normal end this is not worth a note.
        if swept.has_killed
            || reply != DriverReply::Received
            || !exit.as_ref().is_some_and(TaskExit::is_certain)
        {
            let so_far = if self.note.is_empty() { String::new() } else { format!("{}; ", self.note) };
            self.note = format!("{so_far}{}", swept.words);
        }
        self.after_run(scene, exit, cx);
    }

    /// It is unknown whether something is left, so nothing may be started.
    fn not_settled(
        &mut self,
        scene: &Scene<'_>,
        (reply, trouble): (DriverReply, &Trouble),
        cx: &mut StepContext<Tasks>,
    ) {
        let so_far = if self.cause.is_empty() { String::new() } else { format!("{}; ", self.cause) };
        let note = format!("{so_far}{trouble}");
        match reply {
            DriverReply::Unavailable => {
                // Its driver may come back in time, and is queried again.
                self.is_driver_absent = false;
                self.phase = match self.durable.run.as_ref().map(|run| &run.state) {
                    Some(RunState::Intended) => Phase::Settling,
                    Some(RunState::Started(_)) => Phase::Recovering,
                    Some(RunState::Over { .. }) | None => Phase::Clearing,
                };
                self.speak_later(note, cx);
            }
            DriverReply::Received if trouble.is_transient && self.troubles.failures() < SWEEP_TRIES => {
                self.speak_later(note, cx);
            }
            DriverReply::Received | DriverReply::TimedOut => {
                let advice = if trouble.is_transient { format!("; {ADVICE}") } else { String::new() };
                let reason = format!("{note}{advice}");
                self.out_of_reach(scene, (reason, Later::Possible), cx);
            }
        }
    }

    /// Its driver did not answer: the request is retried, unless the task has to stop and the driver is absent.
    pub(super) fn not_answered(&mut self, trouble: &Trouble, note: String, cx: &mut StepContext<Tasks>) {
        self.is_driver_absent = trouble.is_absent;
        if self.stops_alone(cx.now()) {
            return self.stop_alone(&note, cx);
        }
        self.note(note, cx);
        let pause = self.troubles.failed(&TROUBLE_BACKOFF, cx.moment());
        let mut at = cx.now() + pause;
        if self.is_driver_absent && self.durable.wanted == Some(Wanted::Stopped) {
            at = at.min(self.stop_time().max(cx.now()));
        }
        cx.start_timer(TasksTimer::Again(self.config.name.clone()), at);
    }

    /// Whether it has to stop while its driver is absent. A run that was never used is ended at once; any other run is given
    /// the time of a stop, in which its driver may come back.
    pub(super) fn stops_alone(&self, now: Timestamp) -> bool {
        let Some(run) = &self.durable.run else { return false };
        let is_due = match run.state {
            RunState::Intended | RunState::Over { .. } => true,
            RunState::Started(_) => now >= self.stop_time(),
        };
        self.is_driver_absent && self.durable.wanted == Some(Wanted::Stopped) && is_due
    }

    pub(super) fn stop_alone(&mut self, why: &str, cx: &mut StepContext<Tasks>) {
        why.clone_into(&mut self.cause);
        self.sweep(DriverReply::Unavailable, cx);
    }

    /// The time at which its driver would have killed it.
    fn stop_time(&self) -> Timestamp {
        self.stop_began + self.config.shutdown_delay + self.config.stop_grace
    }
}
