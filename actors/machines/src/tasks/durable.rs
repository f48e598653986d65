//! Decisions for a task whose next step depends on a write: a start, the report that it runs, and the request that its driver forgets
//! how it ended. A sick disk delays them, and a stop overtakes them.

use super::behaviour::{SAY_TIMEOUT, Scene};
use super::calls::*;
use super::state::*;
use crate::kernel::StepContext;

impl Task {
    /// Waits until all earlier writes are on disk.
    pub(super) fn await_disk(&mut self, cx: &mut StepContext<Tasks>) {
        self.awaits_disk = true;
        self.disk_waits += 1;
        if let Some(run) = self.run_key() {
            self.call(SAY_TIMEOUT, TasksCall::AwaitDisk { run, number: self.disk_waits }, cx);
        }
    }

    /// The awaited writes are on disk. The task may have been stopped meanwhile.
    pub(super) fn on_disk(&mut self, scene: &Scene<'_>, number: u64, cx: &mut StepContext<Tasks>) {
        if number != self.disk_waits || !std::mem::take(&mut self.awaits_disk) {
            return;
        }
        match self.phase {
            Phase::Readying(Next::Start | Next::StartAtLast) if scene.shutdown == ShutdownState::Serving => {
                self.proceed(scene, cx);
            }
            Phase::Running => {
                self.since = cx.now();
                let id = self.durable.run.as_ref().map_or("it", |run| run.id.as_str());
                self.enter(Phase::Running, format!("{id} runs"), cx);
            }
            Phase::Settling => self.replace_driver(cx),
            Phase::Clearing => self.say_destroy(cx),
            Phase::Readying(_)
            | Phase::Starting
            | Phase::Recovering
            | Phase::Stopping
            | Phase::Sweeping(_)
            | Phase::Waiting
            | Phase::Stopped
            | Phase::Ended
            | Phase::Failed
            | Phase::OutOfReach => {}
        }
    }
}
