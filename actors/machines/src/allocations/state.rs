//! The state of the owner of the allocations. Data only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::messages::{AllocationStatus, AllocationStopped, PrepareError, TaskContext};
use crate::AskError;
use crate::allocation::{AllocationConfig, AllocationOptions, AllocationSpec, Layout, Plan, Task};
use crate::kernel::{AskId, Ending, StopMode, Vitals};
use crate::supervisor::DynamicChild;
use crate::vocabulary::{AllocationId, Attempt, Backoff, Probings, RestartBudget, Timestamp};
use crate::volumes::{AwaitUnused, AwaitUnusedError};

/// The options of the owner of the allocations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationsOptions {
    /// The base directories.
    pub layout: Layout,
    /// The options of each supervisor.
    pub each: AllocationOptions,
    /// The probing options that differ for these allocations.
    pub probings: Probings,
    /// The limit of allocations. 10,000 by default.
    pub allocations_max: usize,
    /// The limit of unanswered messages per allocation. 64 by default.
    pub orders_max: usize,
    /// How long an asked stop waits until the volumes of the plugin are released (V13). 10 s by default.
    pub unused_within: Duration,
    /// The restart budget of each supervisor.
    pub restart_budget: RestartBudget,
    /// The backoff before a restart.
    pub restart_pauses: Backoff,
}

impl AllocationsOptions {
    /// The default limits.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            each: AllocationOptions::default(),
            probings: Probings::default(),
            allocations_max: 10_000,
            orders_max: 64,
            unused_within: Duration::from_secs(10),
            restart_budget: RestartBudget::default(),
            restart_pauses: Backoff::default(),
        }
    }

    /// The options of the supervisor of this allocation.
    pub(super) fn of(&self, allocation: &AllocationId) -> AllocationOptions {
        let probing = self.probings.get(allocation).copied().unwrap_or_default();
        AllocationOptions {
            round: probing.interval.unwrap_or(self.each.round),
            call_deadline: probing.call_deadline.unwrap_or(self.each.call_deadline),
            strict: probing.strict.unwrap_or(self.each.strict),
            ..self.each
        }
    }

    /// The deadline of one order; a supervisor that exceeds it is stuck. Longer than all its own limits, which expire first.
    pub(super) fn order_deadline(&self) -> Duration {
        self.shutdown_deadline().saturating_add(Duration::from_secs(5))
    }

    /// The stop bound of all supervisors together; they stop concurrently. Stop their owner with a longer timeout.
    #[must_use]
    pub fn shutdown_deadline(&self) -> Duration {
        self.each.stop_deadline.saturating_add(self.each.directory_deadline.saturating_mul(2))
    }
}

/// The data that survives a crash of the owner and of a supervisor. It is kept in memory: after a restart of the host the
/// host itself reports what runs.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// The workload.
    pub spec: Arc<AllocationSpec>,
    /// Its paths.
    pub plan: Arc<Plan>,
    /// The life of its supervisor.
    pub life: Attempt,
    /// The last reported state of its task.
    pub task: Task,
    /// When that state was reported, and the number of the message: an order that is repeated after a crash of the owner and is
    /// older does not change the state of the task.
    pub said: (Timestamp, AskId),
    /// Whether its directories were ever created.
    pub is_prepared: bool,
    /// Whether it was registered since its task has started: volumes may depend on it (V13).
    pub is_registered: bool,
}

/// All records, as they are kept.
#[doc(hidden)]
#[derive(Debug, Clone, Hash, Default)]
pub struct AllocationsImage {
    /// One for each allocation.
    pub records: BTreeMap<AllocationId, Record>,
    /// The last life that was assigned.
    pub last_life: Attempt,
}

impl AllocationsImage {
    /// Applies a change.
    pub fn take(&mut self, change: AllocationsChange) {
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
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AllocationsChange {
    /// Insert or replace this record.
    Keep(AllocationId, Record),
    /// Remove this record.
    Forget(AllocationId),
}

/// An order for a supervisor, which it answers.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Order {
    /// Prepare a start.
    Prepare,
    /// Prepare around a task that runs already.
    Adopt,
    /// The task runs.
    Start,
    /// The task has ended in this way.
    Exit(String),
    /// Stop and clean up.
    Stop,
}

impl Order {
    pub(super) const fn prepares(&self) -> bool {
        matches!(self, Self::Prepare | Self::Adopt)
    }
}

/// The answer of a supervisor.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderAnswer {
    /// To [`Order::Prepare`] and [`Order::Adopt`].
    Prepared(Result<TaskContext, PrepareError>),
    /// To [`Order::Start`] and [`Order::Exit`].
    Noted,
    /// To [`Order::Stop`].
    Stopped(AllocationStopped),
}

/// The calls of the owner.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum AllocationsCall {
    /// Start a supervisor, unless this life of it runs already.
    Start {
        /// The life of the supervisor.
        life: Attempt,
        /// The configuration of the supervisor.
        config: Box<AllocationConfig>,
    },
    /// Send an order to a supervisor.
    Tell {
        /// The allocation.
        allocation: AllocationId,
        /// The life of its supervisor.
        life: Attempt,
        /// The asker of the order.
        ask: AskId,
        /// The order.
        order: Order,
    },
    /// Query the status of a supervisor.
    Look {
        /// The allocation.
        allocation: AllocationId,
        /// The life of its supervisor.
        life: Attempt,
    },
    /// Ask a supervisor to stop.
    End {
        /// The allocation.
        allocation: AllocationId,
        /// The life of its supervisor.
        life: Attempt,
        /// The stop mode.
        mode: StopMode,
    },
    /// Kill a supervisor.
    Kill {
        /// The allocation.
        allocation: AllocationId,
        /// The life of its supervisor.
        life: Attempt,
    },
    /// Wait until supervisors have ended.
    AwaitEndings,
    /// Wait until the volumes of a plugin are unused, for a stop (V13).
    AwaitUnused {
        /// The caller that asked for the stop.
        id: AskId,
        /// The question to the owner of the volumes.
        asked: AwaitUnused,
    },
    /// Read the counters of all supervisors, for this asker.
    Describe(AskId),
}

/// The outcome of an [`AllocationsCall`].
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum AllocationsOutcome {
    /// It was done.
    Done,
    /// The answer of the supervisor, or the error of the call.
    Told(Result<OrderAnswer, AskError>),
    /// The status of a supervisor.
    Seen(Result<AllocationStatus, AskError>),
    /// The supervisors that have ended; at least one.
    Ended(Vec<SupervisorEnded>),
    /// The answer of the owner of the volumes, or the error of the call.
    Unused(Result<Result<(), AwaitUnusedError>, AskError>),
    /// The counters of the actors.
    Described(BTreeMap<AllocationId, Vitals>),
}

/// A supervisor has ended.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SupervisorEnded {
    /// The allocation.
    pub allocation: AllocationId,
    /// The life of its supervisor.
    pub life: Attempt,
    /// How it ended.
    pub ending: Ending,
}

/// The timers of the owner.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationsTimer {
    /// The next wait for endings of supervisors.
    AwaitEndings,
    /// The next start of a supervisor that crashed.
    Restart(AllocationId),
    /// The timeout for the report of a supervisor that has ended.
    ReportWait(AllocationId),
    /// The timeout of a shutdown.
    StopDeadline,
}

/// The owner of the allocations: one supervisor for each (A5, REG-07).
#[derive(Debug, Clone, Hash)]
pub struct Allocations {
    pub(super) options: AllocationsOptions,
    pub(super) entries: BTreeMap<AllocationId, Entry>,
    pub(super) last_life: Attempt,
    /// The stop mode of the host, if it is stopping.
    pub(super) ending: Option<StopMode>,
    /// The stops that wait until the volumes of the plugin are released, by asker.
    pub(super) waiting_stops: BTreeMap<AskId, AllocationId>,
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Entry {
    pub(super) record: Record,
    pub(super) status: AllocationStatus,
    /// Its supervisor.
    pub(super) child: DynamicChild,
    /// Its supervisor has ended, and no other supervisor follows.
    pub(super) is_over: bool,
    /// Why its supervisor was given up.
    pub(super) given_up: Option<String>,
    pub(super) leaving: Leaving,
    pub(super) orders: VecDeque<(AskId, Order)>,
    pub(super) crashes: u64,
}

/// Whether an allocation is being removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Leaving {
    No,
    /// It is being stopped, with the report of its supervisor once that has arrived.
    Stopping(Option<AllocationStopped>),
    /// Its first preparation failed and it is removed, with this error for the asker.
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

    #[test]
    fn a_supervisor_may_have_as_long_as_there_is_time() {
        let mut options = AllocationsOptions::new(Layout::new("/data", "/run/callboard").unwrap());
        options.each.directory_deadline = Duration::MAX;
        assert_eq!([options.shutdown_deadline(), options.order_deadline()], [Duration::MAX; 2]);
    }
}
