//! A plain model of the owner of a supervisor: its knowledge of the task, and the unanswered messages.
//!
//! It exists only for the small world, which would be too large with the owner of production in it; the simulator runs that one. It
//! lets a supervisor continue after a failed preparation, where the real owner has it sign off or detach: both are tried at every instant
//! anyway, and its other messages then are more than a supervisor ever receives. Any process may listen on the socket, since
//! its effect on a supervisor is an answer like any other.

use std::collections::BTreeMap;

use callboard_actors::allocation::{AllocationAsk, NoteStart, Task};
use callboard_actors::vocabulary::Health;

/// The knowledge of an owner, given to a supervisor that continues the work of a former one.
#[derive(Debug, Clone, Hash)]
pub(super) struct Owner {
    pub(super) task: Task,
    /// The health that was last reported.
    pub(super) health: Health,
    pub(super) unanswered: BTreeMap<u64, AllocationAsk>,
}

impl Owner {
    /// The owner of a task that was never mentioned.
    pub(super) const fn new() -> Self {
        Self { task: Task::NotStarted, health: Health::Starting, unanswered: BTreeMap::new() }
    }

    /// Records a message, with the number under which it waits for its answer.
    pub(super) fn says(&mut self, asker: u64, ask: AllocationAsk) {
        self.task = match (self.task, &ask) {
            (Task::Leaving, _) | (_, AllocationAsk::StopSupervision(_)) => Task::Leaving,
            (_, AllocationAsk::NoteStart(_)) => Task::Running,
            (_, AllocationAsk::NoteExit(_)) | (Task::Running | Task::Exited, AllocationAsk::MakeReady(_)) => {
                Task::Exited
            }
            (
                task,
                AllocationAsk::MakeReady(_)
                | AllocationAsk::NoteHealth(_)
                | AllocationAsk::NoteDisk(_)
                | AllocationAsk::DescribeAllocation(_),
            ) => task,
        };
        self.unanswered.insert(asker, ask);
    }

    /// The messages for the next supervisor: all unanswered ones, and a start that followed an unanswered preparation.
    pub(super) fn says_again(&self) -> (Vec<(u64, AllocationAsk)>, Option<AllocationAsk>) {
        let waits = |is_meant: fn(&AllocationAsk) -> bool| self.unanswered.values().any(is_meant);
        let is_hasty = self.task == Task::Running
            && waits(|ask| matches!(ask, AllocationAsk::MakeReady(_)))
            && !waits(|ask| matches!(ask, AllocationAsk::NoteStart(_)));
        let again = self.unanswered.iter().map(|(asker, ask)| (*asker, ask.clone()));
        (again.collect(), is_hasty.then_some(AllocationAsk::NoteStart(NoteStart)))
    }

    /// The host is killed: the task may continue to run, and the next start of the host reports it.
    pub(super) fn forgets(&mut self) {
        (self.task, self.health) = (Task::NotStarted, Health::Starting);
        self.unanswered.clear();
    }
}
