//! Decisions about locating the processes of a running task (TH052). A later sweep may depend on the stored traces, if the
//! driver is gone by then and the processes no longer name the task. Locating never changes the state of the task.

use std::time::Duration;

use super::calls::*;
use super::handle::KeptHandle;
use super::state::*;
use crate::kernel::StepContext;
use crate::leftovers::Traces;

/// The timeout of one search.
const LOCATE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pauses before its processes are located again: a start takes a while, and the task creates processes of its own.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(55)];

impl Run {
    /// The driver's handle of the run, also after its end.
    pub(super) fn handle(&self) -> Option<Box<KeptHandle>> {
        match &self.state {
            RunState::Intended => None,
            RunState::Started(handle) => Some(handle.clone()),
            RunState::Over { handle, .. } => handle.clone(),
        }
    }
}

impl Task {
    /// Locates a run that its driver has just started or recovered, now and several times later.
    pub(super) fn locate(&mut self, cx: &mut StepContext<Tasks>) {
        self.looks = 0;
        self.locate_again(cx);
    }

    pub(super) fn locate_again(&mut self, cx: &mut StepContext<Tasks>) {
        let (Phase::Running | Phase::Stopping, Some(key), Some(run)) =
            (self.phase, self.run_key(), self.durable.run.as_ref())
        else {
            return;
        };
        let evidence = Box::new(run.evidence.clone());
        let call = TasksCall::Locate { run: key, handle: run.handle(), evidence };
        self.call(LOCATE_TIMEOUT, call, cx);
        if let Some(pause) = LOOK_AGAIN.get(self.looks) {
            cx.start_timer(TasksTimer::Locate(self.config.name.clone()), cx.now() + *pause);
        }
        self.looks += 1;
    }

    /// Stores the traces of its processes. If none was found, the earlier traces stay.
    pub(super) fn located(&mut self, answer: &Result<Traces, Trouble>, cx: &mut StepContext<Tasks>) {
        let (Ok(traces), Some(run)) = (answer, &mut self.durable.run) else { return };
        if !traces.is_empty() && run.evidence.traces != *traces {
            run.evidence.traces = traces.clone();
            self.remember(cx);
        }
    }
}
