//! Handles the shutdown of all tasks.
//!
//! ```text
//!   serving ──► leaving: everything stops, or is left to its driver ──► closed: all have stopped or are left, writes pending ──► ended
//! ```

use super::behaviour::Scene;
use super::calls::*;
use super::messages::*;
use super::reach::Later;
use super::state::*;
use crate::kernel::{AskId, Input, Machine as _, StepContext, StopMode};

/// The reason why a task that was left to its driver is not stopped.
const TOO_LATE: &str = "the host had already left it running with its driver when the stop was requested";

impl Tasks {
    /// Stops the tasks. When the host detaches, tasks of a driver that survives its host are left to it. The next run of the host can
    /// recover whatever runs then. Of two requests [`StopMode::Stop`] wins, whichever comes first.
    pub(super) fn leave(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        match self.shutdown {
            ShutdownState::Leaving(StopMode::Detach) if mode == StopMode::Stop => {}
            ShutdownState::Serving => {}
            // All tasks are stopping already, and those out of reach have had their last retry.
            ShutdownState::Leaving(_) | ShutdownState::Closed(_) => return,
        }
        self.shutdown = ShutdownState::Leaving(mode);
        // Tasks that stopped earlier are not reported again, except if something may still run.
        self.tasks.iter_mut().filter(|task| task.phase.is_down()).for_each(|task| task.ended = None);
        let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
        for task in self.tasks.iter_mut().rev() {
            // A task in the middle of a start or a stop is still finished; a running task is left to its driver.
            if mode == StopMode::Stop || !scene.survives(task.driver()) {
                let is_wanted = task.durable.wanted == Some(Wanted::Running) || task.starts_after_stop;
                if mode == StopMode::Detach && is_wanted {
                    cx.record(TasksChange::Returns(task.config.name.clone()));
                }
                task.stop(&scene, cx);
            } else {
                task.call_off(cx);
            }
        }
    }

    /// Ends the actor when nothing is in progress for any task.
    pub(super) fn close_if_let_be(&mut self, cx: &mut StepContext<Self>) {
        let mode = match self.shutdown {
            ShutdownState::Serving | ShutdownState::Closed(_) => return,
            ShutdownState::Leaving(mode) => mode,
        };
        let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
        let is_done = |task: &Task| match mode {
            StopMode::Detach if scene.survives(task.driver()) => task.can_be_left(),
            StopMode::Stop | StopMode::Detach => task.phase.is_let_be(),
        };
        if self.tasks.iter().all(is_done) {
            self.shutdown = ShutdownState::Closed(mode);
            cx.stop();
        }
    }

    /// Handles inputs when the actor is about to end. An answer about a task no longer changes anything: its consequences
    /// would be cut off, and the report would be wrong. The next run of the host asks again.
    pub(super) fn step_when_closed(
        &mut self,
        mode: StopMode,
        input: &Input<Self>,
        cx: &mut StepContext<Self>,
    ) {
        match input {
            Input::Asked { id, ask, .. } => self.asked_when_closed(*id, ask, cx),
            Input::StopRequested(StopMode::Stop) if mode == StopMode::Detach => {
                self.shutdown = ShutdownState::Closed(StopMode::Stop);
                let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
                for task in self.tasks.iter_mut().rev().filter(|task| !task.phase.is_let_be()) {
                    task.stop_began = cx.now();
                    let reason = (TOO_LATE.to_owned(), Later::Pointless);
                    task.out_of_reach(&scene, reason, cx);
                }
            }
            Input::Resumed | Input::Returned { .. } | Input::Elapsed(_) | Input::StopRequested(_) => {}
        }
    }

    fn asked_when_closed(&self, id: AskId, ask: &TasksAsk, cx: &mut StepContext<Self>) {
        let answer = match ask {
            TasksAsk::StartTask(StartTask { name }) => {
                TasksAnswer::StartTask(Err(TaskError::HostStopping { name: name.clone() }))
            }
            TasksAsk::StopTask(StopTask { name }) => {
                let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
                let task = self.tasks.iter().find(|task| task.config.name == *name);
                let stopped = task.and_then(|task| task.stopped_already(&scene));
                TasksAnswer::StopTask(stopped.ok_or_else(|| match task {
                    None => TaskError::Unknown { name: name.clone() },
                    Some(task) if task.phase.is_down() => {
                        TaskError::NotRunning { name: name.clone(), phase: task.phase.told() }
                    }
                    Some(task) if task.phase == Phase::OutOfReach => task.not_stopped(task.note.clone()),
                    Some(task) => task.not_stopped(TOO_LATE.to_owned()),
                }))
            }
            TasksAsk::ListTasks(ListTasks) => TasksAnswer::ListTasks(self.view().tasks),
            TasksAsk::SetUpDriver(SetUpDriver { name }) => TasksAnswer::SetUpDriver(self.told_progress(name)),
        };
        cx.reply(id, answer);
    }
}
