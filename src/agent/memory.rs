//! Keeps what survives one incarnation of the agent: its decisions for its tasks, and their processes. It ends with the host.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::{Rc, Weak};
use std::time::Duration;

use actix::Recipient;
use callboard_actors::agent::{
    AFTER_KILL, Agent, AllocationConfig, Ended, Living, Memory, left_running, not_ended,
};
use callboard_actors::persister::Settled;
use callboard_actors::process::{EndedBy, Launched, ProcessName, TaskProcesses};
use callboard_actors::processes::Processes as ProcessOwner;
use callboard_actors::shell::{Address, StopMode, StopStep, Store, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, Attempt, Timestamp};
use futures_util::future::{LocalBoxFuture, join_all};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::held::{End, Held, Surviving, recall};
use crate::process::ProcessExit;

type Processes = RefCell<BTreeMap<AllocationId, Kept>>;

/// A process of an allocation.
struct Kept {
    attempt: Attempt,
    started_at: Timestamp,
    process: Held,
}

/// Process ends that the machine has not received yet.
#[derive(Default)]
pub(super) struct Endings {
    pub(super) queue: RefCell<VecDeque<Ended>>,
    pub(super) arrived: Notify,
}

/// The state that a restarted agent at the same address takes over. When the last copy is dropped, the processes are killed.
#[derive(Clone, Default)]
pub struct AgentMemory {
    decided: Rc<RefCell<BTreeMap<AllocationId, Memory>>>,
    processes: Rc<Processes>,
    pub(super) endings: Rc<Endings>,
    /// Where the host is notified of the processes of allocations.
    known: TaskProcesses,
    /// The owner of the processes that survive the host.
    pub(super) owner: Option<Address<ProcessOwner>>,
}

impl fmt::Debug for AgentMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentMemory").field("decided", &self.decided).finish_non_exhaustive()
    }
}

impl AgentMemory {
    /// An empty memory. The processes that the agent launches are also added to `known`, and those that survive the host belong to `owner`.
    #[must_use]
    pub fn telling(known: TaskProcesses, owner: Address<ProcessOwner>) -> Self {
        Self { known, owner: Some(owner), ..Self::default() }
    }

    /// The store of the next incarnation.
    pub(super) fn remembered(&self) -> Remembered {
        self.decided.borrow_mut().values_mut().for_each(Memory::begin_life);
        Remembered(Rc::clone(&self.decided))
    }

    pub(super) fn living(&self) -> Vec<Living> {
        let processes = self.processes.borrow();
        let living = processes.iter().filter(|(_, kept)| !kept.process.has_ended());
        living
            .map(|(allocation, Kept { attempt, started_at, process })| Living {
                allocation: allocation.clone(),
                attempt: *attempt,
                pid: process.pid(),
                started_at: *started_at,
            })
            .collect()
    }

    pub(super) fn stop(&self, allocation: &AllocationId, grace: Duration) {
        if let Some(Kept { process, .. }) = self.processes.borrow().get(allocation) {
            self.known.end(allocation.clone());
            process.stop(grace);
        }
    }

    /// Takes over the processes that an earlier run of the host left for these allocations, if they are proven to be theirs (PRC-01).
    pub(super) async fn take_over(&self, surviving: Vec<(AllocationId, ProcessName)>) {
        let Some(owner) = &self.owner else { return };
        for (allocation, name) in surviving {
            let is_held = self.processes.borrow().contains_key(&allocation);
            if !is_held && let Some(launched) = recall(owner, &name).await {
                let pid = launched.pid;
                tracing::info!(%allocation, pid, "took over the running process of an allocation from an earlier run");
                self.hold_surviving(allocation, Attempt::default().next(), launched);
            }
        }
    }

    pub(super) fn hold_surviving(&self, allocation: AllocationId, attempt: Attempt, launched: Launched) {
        let Some(owner) = &self.owner else { return };
        let started_at = launched.started_at;
        let process = Surviving::of(owner.clone(), launched, Rc::downgrade(&self.processes));
        self.hold(allocation, attempt, started_at, Held::Surviving(process));
    }

    /// Holds a process until it has ended, and then reports how it ended.
    pub(super) fn hold(
        &self,
        allocation: AllocationId,
        attempt: Attempt,
        started_at: Timestamp,
        process: Held,
    ) {
        let pid = process.pid();
        self.known.add(allocation.clone(), pid);
        let known = self.known.clone();
        let kept = Kept { attempt, started_at, process: process.clone() };
        self.processes.borrow_mut().insert(allocation.clone(), kept);
        // Weak, so that a bound process is killed when the agent ends and no longer holds it.
        let processes = Rc::downgrade(&self.processes);
        let endings = Rc::clone(&self.endings);
        let ended = process.ended();
        actix_rt::spawn(async move {
            let end = ended.await;
            known.remove(&allocation, pid);
            forget(&processes, &allocation, attempt);
            let (exit, how) = match end {
                Some(end) => {
                    log_end(&allocation, attempt, pid, &end);
                    (end.exit, end.how)
                }
                None => (None, "its process is gone, and it is unknown how it ended".to_owned()),
            };
            endings.queue.borrow_mut().push_back(Ended { allocation, attempt, exit, how });
            endings.arrived.notify_one();
        });
    }

    /// Ends the processes that live without an agent, each within its grace period, and reports each. All are stopped at once. A host that
    /// detaches leaves those that survive it.
    pub async fn end_processes(&self, allocations: &[AllocationConfig], mode: StopMode) -> Vec<StopStep> {
        let began = Instant::now();
        let living: Vec<_> =
            self.processes.borrow().iter().map(|(name, kept)| (name.clone(), kept.process.clone())).collect();
        let ends = living.into_iter().rev().map(async |(name, process)| {
            let config = allocations.iter().find(|config| config.name == name);
            let what = format!("process/{name}");
            let pid = process.pid();
            if mode == StopMode::Detach && config.is_some_and(|config| config.survives) {
                return StopStep { what, ending: left_running(pid), took: Duration::ZERO, is_left: false };
            }
            let grace = config.map_or(Duration::ZERO, |config| config.stop_grace);
            self.known.end(name.clone());
            process.stop(grace);
            let ended = timeout(grace + AFTER_KILL, process.ended()).await;
            let is_left = ended.is_err();
            let ending = match ended {
                Ok(Some(end)) => format!("ended without the agent: {}", end.how),
                Ok(None) => "ended without the agent".to_owned(),
                Err(_elapsed) => not_ended(pid),
            };
            StopStep { what, ending, took: began.elapsed(), is_left }
        });
        join_all(ends).await
    }
}

/// Logs an end. An end that was not requested, or that needed SIGKILL, is a warning.
fn log_end(allocation: &AllocationId, attempt: Attempt, pid: u32, end: &End) {
    let exit = end.exit.map_or_else(|| "unknown".to_owned(), |exit| exit.to_string());
    match end.by {
        EndedBy::Request => {
            tracing::info!(%allocation, attempt = attempt.get(), pid, exit, "the process of an allocation ended when asked to");
        }
        EndedBy::Force => {
            tracing::warn!(%allocation, attempt = attempt.get(), pid, exit, "the process of an allocation was killed after its grace");
        }
        EndedBy::Itself => {
            let is_killed = end.exit.is_some_and(ProcessExit::is_from_outside);
            let last_output = end.last_words.as_deref().filter(|_| !is_killed).unwrap_or_default();
            tracing::warn!(%allocation, attempt = attempt.get(), pid, exit, last_output, "the process of an allocation ended by itself");
        }
    }
}

fn forget(processes: &Weak<Processes>, allocation: &AllocationId, attempt: Attempt) {
    if let Some(processes) = processes.upgrade() {
        let mut processes = processes.borrow_mut();
        if processes.get(allocation).is_some_and(|kept| kept.attempt == attempt) {
            processes.remove(allocation);
        }
    }
}

/// Keeps the decisions of the agent for its tasks.
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
