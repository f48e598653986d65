//! A disk for the states of tasks that settles, fails or is cut off on request.

use std::collections::BTreeSet;

use callboard_actors::driver::TaskId;
use callboard_actors::shell::{Ticket, Written};
use callboard_actors::tasks::{Run, RunState, Tasks, TasksChange, TasksImage, Wanted};
use callboard_actors::vocabulary::AllocationId;

use crate::{Disk, Outcome, Settlement, Writes};

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct TasksDisk {
    image: TasksImage,
    writes: Writes<TasksChange>,
    /// The runs whose handle has been on disk.
    held: BTreeSet<TaskId>,
    /// Whether this run of the host has read it.
    is_read: bool,
}

impl TasksDisk {
    /// The number of pending writes.
    pub(super) fn waiting(&self) -> usize {
        self.writes.waiting()
    }

    /// The image from which a machine is built: the rows on disk, and the waiting writes as if they were there.
    pub(super) fn read(&mut self) -> TasksImage {
        let is_of_earlier_run = !std::mem::replace(&mut self.is_read, true);
        let returning = std::mem::take(&mut self.image.returning);
        let mut image = TasksImage { is_of_earlier_run, returning, ..self.image.clone() };
        self.writes.changes().for_each(|change| apply(&mut image, change.clone()));
        image
    }

    /// The run of a task on disk.
    pub(super) fn run(&self, name: &AllocationId) -> Option<&Run> {
        self.image.states.get(name)?.run.as_ref()
    }

    /// Whether it records that this run has ended, or nothing about the run any longer.
    pub(super) fn holds_end_of(&self, name: &AllocationId, run: &TaskId) -> bool {
        self.run(name).is_none_or(|held| held.id != *run || matches!(held.state, RunState::Over { .. }))
    }

    /// The runs on disk that are to end.
    pub(super) fn runs_to_end(&self) -> impl Iterator<Item = &TaskId> {
        let states = self.image.states.iter().filter(|(name, _)| is_to_rest(&self.image, name));
        states.filter_map(|(_, durable)| durable.run.as_ref()).map(|run| &run.id)
    }

    pub(super) fn has_held(&self, run: &TaskId) -> bool {
        self.held.contains(run)
    }

    /// Settles this many pending writes as one commit.
    pub(super) fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let mut on_disk = Vec::new();
        let settled = self.writes.settle(count, outcome, |change| on_disk.push(change));
        on_disk.into_iter().for_each(|change| self.apply(change));
        settled
    }

    /// The host is killed; this many pending writes had reached the disk.
    pub(super) fn begin_run(&mut self, reached: usize) {
        let mut on_disk = Vec::new();
        self.writes.begin_run(reached, |change| on_disk.push(change));
        on_disk.into_iter().for_each(|change| self.apply(change));
        self.is_read = false;
        self.image.returning.clear();
        let states = self.image.states.values();
        let present: BTreeSet<&TaskId> =
            states.filter_map(|durable| durable.run.as_ref()).map(|run| &run.id).collect();
        self.held.retain(|run| present.contains(run));
    }

    fn apply(&mut self, change: TasksChange) {
        if let TasksChange::State(_, durable) = &change
            && let Some(Run { id, state: RunState::Started(_), .. }) = &durable.run
        {
            self.held.insert(id.clone());
        }
        apply(&mut self.image, change);
    }
}

/// Whether the image requires that a task does not run.
pub(super) fn is_to_rest(image: &TasksImage, name: &AllocationId) -> bool {
    let wanted = image.states.get(name).and_then(|durable| durable.wanted);
    matches!(wanted, Some(Wanted::Stopped | Wanted::Failed))
}

fn apply(image: &mut TasksImage, change: TasksChange) {
    match change {
        TasksChange::State(name, durable) => {
            image.states.insert(name, *durable);
        }
        TasksChange::Log(name, log) => {
            image.logs.insert(name, *log);
        }
        TasksChange::Returns(name) => {
            image.returning.insert(name);
        }
        TasksChange::Forget(name) => {
            image.states.remove(&name);
            image.logs.remove(&name);
        }
        TasksChange::KeepDriver(driver, kept) => {
            image.drivers.insert(driver, *kept);
        }
        TasksChange::ForgetDriver(driver) => {
            image.drivers.remove(&driver);
        }
    }
}

impl Disk<Tasks> for TasksDisk {
    fn write(&mut self, ticket: Ticket, change: TasksChange) -> Written {
        match change {
            // This change is kept in memory only.
            TasksChange::Returns(_) => {
                self.apply(change);
                Written::Now
            }
            TasksChange::State(..)
            | TasksChange::Log(..)
            | TasksChange::Forget(_)
            | TasksChange::KeepDriver(..)
            | TasksChange::ForgetDriver(_) => self.writes.take(ticket, change),
        }
    }
}
