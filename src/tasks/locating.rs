//! What is decided for one task that runs: when its processes are located, and what is remembered of that (TH052). A later search
//! for what is left of it may depend on it, when its driver is gone and its processes name it no more. Whatever comes of it,
//! the task is at what it was at.

use std::time::Duration;

use callboard_actors::driver::client::TaskHandle;
use callboard_actors::leftovers::Traces;
use callboard_actors::shell::Effects;
use callboard_actors::vocabulary::Moment;

use super::calls::*;
use super::state::*;

/// Looking takes no longer.
const LOCATE_PATIENCE: Duration = Duration::from_secs(30);
/// When its processes are located again after they were first: what starts a task is busy with that for a while, and the
/// task makes processes of its own.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(55)];

impl Run {
    /// By what its driver finds it, or found it.
    pub(super) fn handle(&self) -> Option<Box<TaskHandle>> {
        match &self.state {
            RunState::Intended => None,
            RunState::Started(handle) => Some(handle.clone()),
            RunState::Over { handle, .. } => handle.clone(),
        }
    }
}

impl Task {
    /// Its driver has just begun it, or taken it up again: it is located now and some times more.
    pub(super) fn locate(&mut self, moment: Moment, effects: &mut Effects<Tasks>) {
        self.looks = 0;
        self.locate_again(moment, effects);
    }

    /// The time to locate it has come.
    pub(super) fn locate_again(&mut self, moment: Moment, effects: &mut Effects<Tasks>) {
        let (Phase::Running | Phase::Stopping, Some(key), Some(run)) =
            (self.phase, self.run_key(), self.course.run.as_ref())
        else {
            return;
        };
        let evidence = Box::new(run.evidence.clone());
        let call = TasksCall::Locate { run: key, handle: run.handle(), evidence };
        self.call(LOCATE_PATIENCE, call, effects);
        if let Some(pause) = LOOK_AGAIN.get(self.looks) {
            effects.start_timer(TasksTimer::Locate(self.config.name.clone()), moment.now + *pause);
        }
        self.looks += 1;
    }

    /// Remembers where its processes are. Where none was found, what was known before holds on.
    pub(super) fn located(&mut self, answer: &Result<Traces, Trouble>, effects: &mut Effects<Tasks>) {
        let (Ok(traces), Some(run)) = (answer, &mut self.course.run) else { return };
        if !traces.is_empty() && run.evidence.traces != *traces {
            run.evidence.traces = traces.clone();
            self.remember(effects);
        }
    }
}
