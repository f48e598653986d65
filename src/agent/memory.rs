//! What outlives a single life of the agent: what it decided for its tasks, and their processes. It ends with the host.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use actix::Recipient;
use callboard_actors::persister::Settled;
use callboard_actors::process::TaskProcesses;
use callboard_actors::shell::{StopStep, Store, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, Attempt};
use futures_util::future::{LocalBoxFuture, join_all};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::state::{Agent, Ended, Memory, Wanted};
use super::stopping::{AFTER_KILL, not_ended};
use crate::config::AllocationConfig;
use crate::process::Process;

pub(super) type Processes = RefCell<BTreeMap<AllocationId, (Attempt, Process)>>;

/// Process ends that the machine has not received yet.
#[derive(Default)]
pub(super) struct Endings {
    pub(super) queue: RefCell<VecDeque<Ended>>,
    pub(super) arrived: Notify,
}

/// What an agent that is started again at the same address takes over. When the last copy is dropped, the processes are killed.
#[derive(Clone, Default)]
pub struct AgentMemory {
    decided: Rc<RefCell<BTreeMap<AllocationId, Memory>>>,
    pub(super) processes: Rc<Processes>,
    pub(super) endings: Rc<Endings>,
    /// Where the host is told which processes the allocations have.
    pub(super) known: TaskProcesses,
}

impl fmt::Debug for AgentMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentMemory").field("decided", &self.decided).finish_non_exhaustive()
    }
}

impl AgentMemory {
    /// Nothing yet. The processes that the agent launches are also added to these.
    #[must_use]
    pub fn telling(known: TaskProcesses) -> Self {
        Self { known, ..Self::default() }
    }

    /// The store of the next life.
    pub(super) fn remembered(&self) -> Remembered {
        begin_life(&mut self.decided.borrow_mut());
        Remembered(Rc::clone(&self.decided))
    }

    /// Ends the processes that live without an agent, each within its grace, and reports each. All are asked at once.
    pub async fn end_processes(&self, allocations: &[AllocationConfig]) -> Vec<StopStep> {
        let began = Instant::now();
        let living: Vec<_> = self
            .processes
            .borrow()
            .iter()
            .map(|(name, (_, process))| (name.clone(), process.clone()))
            .collect();
        let ends = living.into_iter().rev().map(async |(name, process)| {
            let config = allocations.iter().find(|config| config.name == name);
            let grace = config.map_or(Duration::ZERO, |config| config.stop_grace);
            process.stop(grace);
            let ended = timeout(grace + AFTER_KILL, process.ended()).await;
            let is_left = ended.is_err();
            let ending = match ended {
                Ok(ending) => format!("ended without the agent: {ending}"),
                Err(_elapsed) => not_ended(process.pid()),
            };
            StopStep { what: format!("process/{name}"), ending, took: began.elapsed(), is_left }
        });
        join_all(ends).await
    }
}

/// What the last life left is to run again.
pub(super) fn begin_life(decided: &mut BTreeMap<AllocationId, Memory>) {
    for memory in decided.values_mut().filter(|memory| memory.wanted == Some(Wanted::Left)) {
        memory.wanted = Some(Wanted::Returning);
    }
}

/// Keeps what the agent decided for its tasks.
#[derive(Debug)]
pub(super) struct Remembered(Rc<RefCell<BTreeMap<AllocationId, Memory>>>);

impl Store<Agent> for Remembered {
    fn open(&mut self, _settled: Recipient<Settled>) {}

    fn write(&mut self, _ticket: Ticket, (allocation, memory): (AllocationId, Memory)) -> Written {
        self.0.borrow_mut().insert(allocation, memory);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<BTreeMap<AllocationId, Memory>, String>> {
        Box::pin(std::future::ready(Ok(self.0.borrow().clone())))
    }
}
