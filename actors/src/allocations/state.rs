//! What the owner of the allocations knows. Data only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::messages::{AllocationStatus, AllocationStopped, PrepareError, TaskContext};
use crate::allocation::{AllocationConfig, AllocationOptions, AllocationSpec, Layout, Plan, Task};
use crate::shell::{AskError, AskId, Ending, StopMode, Vitals};
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, BackoffState, RestartBudget, RestartHistory, Timestamp,
};

/// How the owner of the allocations is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationsOptions {
    /// Where everything lies.
    pub layout: Layout,
    /// How patient each supervisor is.
    pub each: AllocationOptions,
    /// How many allocations are taken. 10,000 by default.
    pub allocations_max: usize,
    /// How many messages for one allocation may wait for their answer. 64 by default.
    pub orders_max: usize,
    /// How often the supervisor of one allocation is started again after a crash.
    pub restart_budget: RestartBudget,
    /// How soon it is started again.
    pub restart_pauses: Backoff,
}

impl AllocationsOptions {
    /// The usual limits.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            each: AllocationOptions::default(),
            allocations_max: 10_000,
            orders_max: 64,
            restart_budget: RestartBudget::default(),
            restart_pauses: Backoff::default(),
        }
    }

    /// How long a supervisor may take for one order before it is taken for stuck: longer than each of its own limits, which
    /// all run out first.
    pub(super) fn order_deadline(&self) -> Duration {
        self.shutdown_deadline() + Duration::from_secs(5)
    }

    /// How long all supervisors together may take to stop, since they do it at once. Whoever stops their owner should be
    /// patient for a little longer.
    #[must_use]
    pub fn shutdown_deadline(&self) -> Duration {
        self.each.stop_deadline + 2 * self.each.directory_deadline
    }
}

/// What is to survive a crash of the owner, and of a supervisor. It is kept in memory: after a restart of the host the host
/// itself says again what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The workload.
    pub spec: Arc<AllocationSpec>,
    /// Its paths.
    pub plan: Arc<Plan>,
    /// Which life of a supervisor looks after it.
    pub life: Attempt,
    /// What its task was doing when it was last spoken of.
    pub task: Task,
    /// When that was said, and under which number: what is asked again after a crash of the owner and was said before it, tells
    /// nothing new of the task.
    pub said: (Timestamp, AskId),
    /// Whether its directories were ever made.
    pub is_prepared: bool,
}

/// All records, as they are kept.
#[derive(Debug, Clone, Default)]
pub struct AllocationsImage {
    /// One for each allocation.
    pub records: BTreeMap<AllocationId, Record>,
    /// The last life that was ever given.
    pub last_life: Attempt,
}

impl AllocationsImage {
    /// Takes a change in.
    pub(crate) fn take(&mut self, change: AllocationsChange) {
        match change {
            AllocationsChange::Keep(allocation, record) => {
                self.last_life = self.last_life.max(record.life);
                self.records.insert(allocation, record);
            }
            AllocationsChange::Forget(allocation) => {
                self.records.remove(&allocation);
            }
        }
    }
}

/// One change of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationsChange {
    /// Put this in.
    Keep(AllocationId, Record),
    /// Take it out.
    Forget(AllocationId),
}

/// Something that a supervisor is told, and answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Make everything ready for a start.
    Prepare,
    /// Make everything ready around a task that runs already.
    Adopt,
    /// The task runs.
    Start,
    /// The task has ended in this way.
    Exit(String),
    /// Put everything away.
    Stop,
}

impl Order {
    /// Whether everything is to be made ready.
    pub(super) const fn prepares(&self) -> bool {
        matches!(self, Self::Prepare | Self::Adopt)
    }
}

/// What a supervisor answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderAnswer {
    /// To [`Order::Prepare`] and [`Order::Adopt`].
    Prepared(Result<TaskContext, PrepareError>),
    /// To [`Order::Start`] and [`Order::Exit`].
    Noted,
    /// To [`Order::Stop`].
    Stopped(AllocationStopped),
}

/// What the owner has done for it.
#[derive(Debug, Clone)]
pub enum AllocationsCall {
    /// Start a supervisor, unless this life of it runs already.
    Start {
        /// Which life this will be.
        life: Attempt,
        /// What it is born with.
        config: Box<AllocationConfig>,
    },
    /// Tell a supervisor something.
    Tell {
        /// Which allocation.
        allocation: AllocationId,
        /// Which life of its supervisor.
        life: Attempt,
        /// Whose question it answers.
        ask: AskId,
        /// What to tell.
        order: Order,
    },
    /// Ask a supervisor how it is.
    Look {
        /// Which allocation.
        allocation: AllocationId,
        /// Which life of its supervisor.
        life: Attempt,
    },
    /// Ask a supervisor to end in this way.
    End {
        /// Which allocation.
        allocation: AllocationId,
        /// Which life of its supervisor.
        life: Attempt,
        /// How.
        mode: StopMode,
    },
    /// End a supervisor by force.
    Kill {
        /// Which allocation.
        allocation: AllocationId,
        /// Which life of its supervisor.
        life: Attempt,
    },
    /// Wait until supervisors have ended.
    AwaitEndings,
    /// Look at the actors of all supervisors, for this question.
    Describe(AskId),
}

/// What came of an [`AllocationsCall`].
#[derive(Debug, Clone)]
pub enum AllocationsOutcome {
    /// It was done.
    Done,
    /// What a supervisor answered, or that it could not.
    Told(Result<OrderAnswer, AskError>),
    /// How a supervisor is.
    Seen(Result<AllocationStatus, AskError>),
    /// These have ended; at least one.
    Ended(Vec<SupervisorEnded>),
    /// What can be seen of the actors.
    Described(BTreeMap<AllocationId, Vitals>),
}

/// A supervisor has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorEnded {
    /// Of which allocation.
    pub allocation: AllocationId,
    /// Which life.
    pub life: Attempt,
    /// How.
    pub ending: Ending,
}

/// What the owner waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllocationsTimer {
    /// The next start of a supervisor that crashed.
    Restart(AllocationId),
    /// The end of waiting for the report of a supervisor that has ended.
    Farewell(AllocationId),
    /// The end of patience with a shutdown.
    Patience,
}

/// The owner of the allocations: one supervisor for each, by ownership (A5, REG-07).
#[derive(Debug, Clone)]
pub struct Allocations {
    pub(super) options: AllocationsOptions,
    pub(super) entries: BTreeMap<AllocationId, Entry>,
    pub(super) last_life: Attempt,
    /// How the host is ending, if it is.
    pub(super) ending: Option<StopMode>,
}

/// One allocation.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) record: Record,
    pub(super) status: AllocationStatus,
    pub(super) supervisor: Supervisor,
    pub(super) leaving: Leaving,
    /// What was asked and not answered, in order.
    pub(super) orders: VecDeque<(AskId, Order)>,
    pub(super) restarts: RestartHistory,
    pub(super) pauses: BackoffState,
    pub(super) crashes: u64,
}

/// What the actor of a supervisor is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Supervisor {
    Running,
    /// It crashed and is started again after a pause.
    Pausing,
    /// It crashed too often.
    GivenUp(String),
    /// It has ended in order.
    Ended,
}

/// Whether an allocation is on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It is not.
    No,
    /// It is being stopped; the report is there when its supervisor has given it.
    Stopping(Option<AllocationStopped>),
    /// It could not be prepared the first time and goes again, with this error for who asked.
    Refused(AskId, Order, PrepareError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_is_taken_for_stuck_only_after_all_its_own_limits_ran_out() {
        let layout = Layout::new("/data", "/run/callboard").unwrap();
        let options = AllocationsOptions::new(layout);
        assert!(options.order_deadline() > options.shutdown_deadline());
        assert!(options.shutdown_deadline() > options.each.stop_deadline + options.each.directory_deadline);
    }
}
