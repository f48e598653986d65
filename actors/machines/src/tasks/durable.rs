//! Decisions for a task whose next step rests on what was written: a start, the report that it runs, and that its driver forgets
//! how it ended. A sick disk holds them up, and a stop goes past them.

use super::behaviour::{SAY_TIMEOUT, Scene};
use super::calls::*;
use super::state::*;
use crate::kernel::Effects;
use crate::vocabulary::Moment;

impl Task {
    /// Waits until everything that was written so far is on disk.
    pub(super) fn await_disk(&mut self, effects: &mut Effects<Tasks>) {
        self.awaits_disk = true;
        self.disk_waits += 1;
        if let Some(run) = self.run_key() {
            self.call(SAY_TIMEOUT, TasksCall::AwaitDisk { run, number: self.disk_waits }, effects);
        }
    }

    /// What it waited for is on disk. It may have been stopped meanwhile.
    pub(super) fn on_disk(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        number: u64,
        effects: &mut Effects<Tasks>,
    ) {
        if number != self.disk_waits || !std::mem::take(&mut self.awaits_disk) {
            return;
        }
        match self.phase {
            Phase::Readying(Next::Start | Next::StartAtLast) if scene.life == Life::Serving => {
                self.proceed(moment, scene, effects);
            }
            Phase::Running => {
                self.since = moment.now;
                let id = self.course.run.as_ref().map_or("it", |run| run.id.as_str());
                self.enter(moment, Phase::Running, format!("{id} runs"), effects);
            }
            Phase::Settling => self.replace_driver(effects),
            Phase::Clearing => self.say_destroy(effects),
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
