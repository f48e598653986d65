//! What outlives a single life of the agent: what it decided for its tasks, and their processes. It ends with the host.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

use actix::Recipient;
use callboard_actors::persister::Settled;
use callboard_actors::shell::{Store, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, Attempt};
use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;

use super::state::{Agent, Ended, Memory, Wanted};
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
}

impl fmt::Debug for AgentMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentMemory").field("decided", &self.decided).finish_non_exhaustive()
    }
}

impl AgentMemory {
    /// The store of the next life. What the last one left for a restart is to run again.
    pub(super) fn remembered(&self) -> Remembered {
        for memory in
            self.decided.borrow_mut().values_mut().filter(|memory| memory.wanted == Some(Wanted::Left))
        {
            memory.wanted = Some(Wanted::Running);
        }
        Remembered(Rc::clone(&self.decided))
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
