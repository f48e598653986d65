//! Runs the agent: calls the allocations, claims volumes, and holds the processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::agent::{
    Agent, AgentCall, AgentNews, AgentOptions, AgentOutcome, AllocationVolume, Answered, ClaimTrouble,
    LastExit, LaunchOrder, LaunchTrouble, TaskPhase, TaskReport,
};
use callboard_actors::allocations::{
    AllocationSpec, AllocationStopped, AllocationsNews, AllocationsView, PrepareError, StopAllocationError,
    TaskContext, UnknownAllocation,
};
use callboard_actors::instances::{AwaitHealthy, AwaitHealthyError};
use callboard_actors::process::ProcessName;
use callboard_actors::shell::{self, Address, Clock, EffectHandler, FeedItem, Running, Settings, Started};
use callboard_actors::vocabulary::{AllocationId, Attempt, Timestamp, milliseconds};
use callboard_actors::volume::ObservedEnd;
use futures_util::future::LocalBoxFuture;
use tokio::sync::oneshot;

use super::claims::VolumeClaims;
use super::held::{self, Held};
use super::memory::{AgentMemory, Endings};
use crate::config::process_name;
use crate::process::{Binder, LogSpec, ProcessSpec, launch};

/// Calls that are always in progress: for endings, and for notifications of the allocations.
const LISTENING_CALLS: usize = 2;

/// The calls of the agent to the owner of the allocations of plugin workloads.
pub trait AllocationService: 'static {
    /// Prepares an allocation for its next start.
    fn prepare(
        &self,
        spec: AllocationSpec,
    ) -> LocalBoxFuture<'static, Answered<Result<TaskContext, PrepareError>>>;
    /// Reopens an allocation whose process runs.
    fn adopt(
        &self,
        spec: AllocationSpec,
    ) -> LocalBoxFuture<'static, Answered<Result<TaskContext, PrepareError>>>;
    /// Reports that the process runs.
    fn started(
        &self,
        allocation: AllocationId,
    ) -> LocalBoxFuture<'static, Answered<Result<(), UnknownAllocation>>>;
    /// Reports that the process has ended, and how.
    fn exited(
        &self,
        allocation: AllocationId,
        how: String,
    ) -> LocalBoxFuture<'static, Answered<Result<(), UnknownAllocation>>>;
    /// Deregisters an allocation and removes its directories; with `even_if_used` also while volumes of its plugin are in use.
    fn stop(
        &self,
        allocation: AllocationId,
        even_if_used: bool,
    ) -> LocalBoxFuture<'static, Answered<Result<AllocationStopped, StopAllocationError>>>;
    /// Waits until an allocation has been healthy for a while.
    fn healthy(
        &self,
        awaited: AwaitHealthy,
    ) -> LocalBoxFuture<'static, Answered<Result<(), AwaitHealthyError>>>;
    /// Waits for the next notifications, or, with `afresh`, for a snapshot.
    fn follow(
        &mut self,
        afresh: bool,
    ) -> LocalBoxFuture<'static, Answered<Vec<FeedItem<AllocationsNews, AllocationsView>>>>;
}

/// Where the agent's processes live.
#[derive(Debug, Clone)]
pub struct ProcessHome {
    /// Binds them to this host.
    pub binder: Binder,
    /// The directory of the processes' output, one file for each allocation, with its name.
    pub log_dir: PathBuf,
}

/// Starts the agent at a vacant address. When it ends by force, its processes are killed, except those that survive the host.
pub fn start(
    address: &Address<Agent>,
    options: AgentOptions,
    allocations: impl AllocationService,
    volumes: Rc<dyn VolumeClaims>,
    home: ProcessHome,
    memory: AgentMemory,
    settings: Settings,
) -> Running {
    // Everything may begin or stop at once, with a call or two for each task.
    // A plugin that is slow to end may not delay the stop or start of another.
    let calls_max = 4 * options.allocations.len() + LISTENING_CALLS;
    let calls_running_max = settings.calls_running_max.max(calls_max);
    let calls_waiting_max = settings.calls_waiting_max.max(calls_max);
    let settings = Settings { calls_running_max, calls_waiting_max, ..settings };
    let names = options.allocations.iter().map(|allocation| &allocation.name);
    let surviving = names.filter_map(|name| Some((name.clone(), process_name(name).ok()?))).collect();
    let remembered = memory.remembered();
    let handler = Handler {
        allocations,
        volumes,
        home,
        memory,
        surviving,
        claims: BTreeMap::new(),
        told: BTreeMap::new(),
    };
    shell::start(address, options, handler, remembered, settings)
}

struct Handler<B> {
    allocations: B,
    volumes: Rc<dyn VolumeClaims>,
    home: ProcessHome,
    memory: AgentMemory,
    /// The names of the processes of allocations that survive the host.
    surviving: Vec<(AllocationId, ProcessName)>,
    /// Cancels the latest claim of each allocation.
    claims: BTreeMap<AllocationId, oneshot::Sender<()>>,
    /// The last log line of each allocation.
    told: BTreeMap<AllocationId, Told>,
}

/// The last log line of an allocation.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    phase: TaskPhase,
    restarts: u64,
    exit_at: Option<Timestamp>,
}

impl<B: AllocationService> EffectHandler<Agent> for Handler<B> {
    fn call(&mut self, call: AgentCall) -> Started<AgentOutcome> {
        Started::Running(match call {
            AgentCall::Survey => self.survey(),
            AgentCall::AwaitEndings => Box::pin(next_endings(Rc::clone(&self.memory.endings))),
            AgentCall::Follow { afresh } => {
                self.allocations.follow(afresh).into_outcome(AgentOutcome::Followed)
            }
            AgentCall::Adopt(spec) => self.allocations.adopt(spec).into_outcome(AgentOutcome::Adopted),
            AgentCall::Prepare(spec) => self.allocations.prepare(spec).into_outcome(AgentOutcome::Prepared),
            AgentCall::Claim { allocation, volumes, within } => self.claim(allocation, volumes, within),
            AgentCall::CallOff(allocation) => {
                // Without a receiver the claim has returned already.
                self.claims.remove(&allocation).map(|claim| claim.send(()));
                return Started::Done(AgentOutcome::CalledOff);
            }
            AgentCall::Release { allocation, observed, within } => self.release(allocation, observed, within),
            AgentCall::Launch(order) => return self.launch(order),
            AgentCall::Announce(allocation) => {
                self.allocations.started(allocation).into_outcome(AgentOutcome::Announced)
            }
            AgentCall::Withdraw { allocation, even_if_used } => {
                self.allocations.stop(allocation, even_if_used).into_outcome(AgentOutcome::Withdrawn)
            }
            AgentCall::End { allocation, grace } => {
                self.memory.stop(&allocation, grace);
                return Started::Done(AgentOutcome::EndAsked);
            }
            AgentCall::AwaitHealthy(awaited) => {
                self.allocations.healthy(awaited).into_outcome(AgentOutcome::AwaitedHealthy)
            }
            AgentCall::Report { allocation, how } => {
                self.allocations.exited(allocation, how).into_outcome(AgentOutcome::Reported)
            }
        })
    }

    fn published(&mut self, news: &AgentNews) {
        let AgentNews::TaskChanged(task) = news;
        self.log_decision(task);
    }
}

impl<B: AllocationService> Handler<B> {
    /// Logs a decision about an allocation: it is started again, was given up, or has stopped.
    fn log_decision(&mut self, task: &TaskReport) {
        let TaskReport { allocation, attempt, restarts, last_event, .. } = task;
        let exit_at = task.exit.as_ref().map(|last| last.at);
        let told = Told { phase: task.phase, restarts: *restarts, exit_at };
        let before = self.told.insert(allocation.clone(), told);
        let told_exit = |last: &LastExit| last.exit.map_or("unknown".to_owned(), |exit| exit.to_string());
        let exit = task.exit.as_ref().map_or_else(|| "none".to_owned(), told_exit);
        let is_new = before.as_ref().is_some_and(|before| before.phase != task.phase);
        // The end of its process has its own log line.
        let is_exit = before.as_ref().is_some_and(|before| before.exit_at != exit_at);
        let health = task.health_without_process();
        let pause_ms = task.due.map(|due| milliseconds(due.since(Clock::system().now())));
        match task.phase {
            TaskPhase::Waiting if before.is_some_and(|before| before.restarts < *restarts) => {
                tracing::warn!(%allocation, attempt = attempt.get(), restarts, health, exit, pause_ms, error = last_event, "an allocation is started again");
            }
            TaskPhase::Waiting if is_new && !is_exit && exit_at.is_some() => {
                tracing::warn!(%allocation, attempt = attempt.get(), restarts, health, exit, error = last_event, "an allocation is not started again yet");
            }
            TaskPhase::Waiting if is_new && !is_exit => {
                tracing::warn!(%allocation, attempt = attempt.get(), restarts, health, error = last_event, "an allocation is not started yet");
            }
            TaskPhase::Failed if is_new => {
                tracing::error!(%allocation, attempt = attempt.get(), restarts, health, exit, error = last_event, "an allocation was given up");
            }
            TaskPhase::Stopped if is_new => {
                tracing::info!(%allocation, attempt = attempt.get(), restarts, health, exit, how = last_event, "an allocation has stopped");
            }
            TaskPhase::Waiting
            | TaskPhase::Failed
            | TaskPhase::Stopped
            | TaskPhase::Starting
            | TaskPhase::Running
            | TaskPhase::Stopping => {}
        }
    }

    /// Which processes live, including those that an earlier run of the host has left.
    fn survey(&self) -> LocalBoxFuture<'static, AgentOutcome> {
        let (memory, surviving) = (self.memory.clone(), self.surviving.clone());
        Box::pin(async move {
            memory.take_over(surviving).await;
            AgentOutcome::Surveyed(memory.living())
        })
    }

    fn claim(
        &mut self,
        user: AllocationId,
        volumes: Vec<AllocationVolume>,
        within: Duration,
    ) -> LocalBoxFuture<'static, AgentOutcome> {
        let claimed = self.volumes.claim(user.clone(), volumes, within);
        let (call_off, called_off) = oneshot::channel();
        self.claims.insert(user.clone(), call_off);
        Box::pin(async move {
            let claimed = tokio::select! {
                claimed = claimed => claimed,
                Ok(()) = called_off => {
                    let reason = "the claim was cancelled".to_owned();
                    return AgentOutcome::Claimed(Err(ClaimTrouble { reason, is_transient: true }));
                }
            };
            if let Err(trouble) = &claimed {
                let (error, is_transient) = (trouble.to_string(), trouble.is_transient);
                tracing::warn!(allocation = %user, error, is_transient, "the volumes of an allocation are not claimed");
            }
            AgentOutcome::Claimed(claimed)
        })
    }

    fn release(
        &self,
        user: AllocationId,
        observed: ObservedEnd,
        within: Duration,
    ) -> LocalBoxFuture<'static, AgentOutcome> {
        let released = self.volumes.ended(user.clone(), observed, within);
        Box::pin(async move {
            let released = released.await;
            match &released {
                Ok(()) => tracing::info!(allocation = %user, "the volumes of an allocation are released"),
                Err(error) => {
                    tracing::warn!(allocation = %user, %error, "the volumes of an allocation are not released yet");
                }
            }
            AgentOutcome::Released(released)
        })
    }

    fn launch(&self, order: LaunchOrder) -> Started<AgentOutcome> {
        if order.survives {
            let memory = self.memory.clone();
            return Started::running(async move {
                AgentOutcome::Launched(launch_surviving(&memory, order).await)
            });
        }
        // Now and not in the future, so that the machine's orders and the actual processes never differ.
        Started::Done(AgentOutcome::Launched(self.launch_bound(order)))
    }

    fn launch_bound(&self, order: LaunchOrder) -> Result<u32, LaunchTrouble> {
        let LaunchOrder { allocation, attempt, program, arguments, environment, .. } = order;
        let log = LogSpec::at(self.home.log_dir.join(format!("{allocation}.log")));
        let spec = ProcessSpec { name: allocation.to_string(), program, arguments, environment, log };
        let process = launch(&spec, &self.home.binder);
        let process = process.map_err(|error| LaunchTrouble::not_started(error.to_string()))?;
        let pid = process.pid();
        log_start(&allocation, attempt, pid, &spec.program);
        self.memory.hold(allocation, attempt, Clock::system().now(), Held::Bound(process));
        Ok(pid)
    }
}

async fn launch_surviving(memory: &AgentMemory, order: LaunchOrder) -> Result<u32, LaunchTrouble> {
    let homeless = || LaunchTrouble::not_started("this agent has no place for processes that survive it");
    let owner = memory.owner.clone().ok_or_else(homeless)?;
    let LaunchOrder { allocation, attempt, program, .. } = order.clone();
    let name = process_name(&allocation).map_err(|error| LaunchTrouble::not_started(error.to_string()))?;
    let launched = held::launch(owner, name, order).await?;
    let pid = launched.pid;
    log_start(&allocation, attempt, pid, &program);
    memory.hold_surviving(allocation, attempt, launched);
    Ok(pid)
}

fn log_start(allocation: &AllocationId, attempt: Attempt, pid: u32, program: &Path) {
    tracing::info!(%allocation, attempt = attempt.get(), pid, program = %program.display(), "the process of an allocation started");
}

async fn next_endings(endings: Rc<Endings>) -> AgentOutcome {
    loop {
        let ended: Vec<_> = endings.queue.borrow_mut().drain(..).collect();
        if !ended.is_empty() {
            return AgentOutcome::Endings(ended);
        }
        endings.arrived.notified().await;
    }
}

/// Converts a request to the allocations into a call of the machine.
trait IntoOutcome<T> {
    fn into_outcome(self, wrap: fn(T) -> AgentOutcome) -> LocalBoxFuture<'static, AgentOutcome>;
}

impl<T: 'static> IntoOutcome<T> for LocalBoxFuture<'static, T> {
    fn into_outcome(self, wrap: fn(T) -> AgentOutcome) -> LocalBoxFuture<'static, AgentOutcome> {
        Box::pin(async move { wrap(self.await) })
    }
}
