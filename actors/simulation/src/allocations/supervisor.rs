//! The supervisors of one allocation, as a plain model, with their surroundings: the registry's entry, and their messages in flight.

use std::collections::VecDeque;

use callboard_actors::allocation::{
    AllocationConfig, AllocationNews, AllocationPhase, AllocationStatus, AllocationStopped, PrepareError,
    Task,
};
use callboard_actors::allocations::{Order, OrderAnswer};
use callboard_actors::shell::{AskError, Ending, StopMode};
use callboard_actors::vocabulary::{Attempt, Health, Timestamp};

use super::event::SupervisorAct;

/// The answer of a supervisor, or the reason why it cannot answer.
pub(super) type Answered = Result<OrderAnswer, AskError>;

/// The true state of one allocation.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Entry {
    /// The living supervisor, if there is one.
    pub(super) supervisor: Option<Supervisor>,
    /// Whether the registry knows the plugin.
    pub(super) is_registered: bool,
    /// Whether its directories are there.
    pub(super) has_files: bool,
    /// Whether no actor could be asked to deregister it any longer.
    pub(super) is_excused: bool,
    /// The answers of supervisors, by the call of their owner.
    pub(super) answers: VecDeque<(u64, Answered)>,
    /// Their notifications, with their lives.
    pub(super) news: VecDeque<(Attempt, AllocationNews)>,
}

/// A living supervisor.
#[derive(Debug, Clone, Hash)]
pub(super) struct Supervisor {
    pub(super) life: Attempt,
    status: AllocationStatus,
    context: callboard_actors::allocation::TaskContext,
    /// Its knowledge of the task.
    pub(super) task: Task,
    /// Whether the plugin is to be deregistered, and the registry has not received that.
    owes: bool,
    /// The calls that wait for directories.
    preparing: Vec<u64>,
    stage: Stage,
}

/// The progress of its stop.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Stage {
    /// It does not stop.
    Serving,
    /// It cleans up everything; these calls wait for it. If the host ends, nothing remains to be done.
    Leaving { askers: Vec<u64>, is_last: bool },
    /// It has cleaned up everything, and still has to deregister.
    Owing,
}

impl Supervisor {
    pub(super) fn born(life: Attempt, config: AllocationConfig) -> Self {
        let AllocationConfig { spec, plan, task, health, .. } = config;
        let status = AllocationStatus {
            allocation: spec.allocation,
            task: spec.task,
            plugin: spec.plugin,
            role: spec.role,
            phase: AllocationPhase::Prepared,
            health,
            socket: plan.context.socket.clone(),
            since: Timestamp::default(),
            last_event: "born".to_owned(),
        };
        let stage = match task {
            Task::Leaving => Stage::Leaving { askers: Vec::new(), is_last: false },
            Task::NotStarted | Task::Running | Task::Exited => Stage::Serving,
        };
        let owes = matches!(task, Task::Exited | Task::Leaving);
        let context = plan.context;
        Self { life, status, context, task, owes, preparing: Vec::new(), stage }
    }

    /// Its status.
    pub(super) fn status(&self) -> AllocationStatus {
        self.status.clone()
    }

    fn stopping(&self) -> Answered {
        let allocation = self.status.allocation.clone();
        Ok(OrderAnswer::Prepared(Err(PrepareError::Stopping { allocation })))
    }

    fn waiting(&self) -> Vec<u64> {
        let askers = match &self.stage {
            Stage::Leaving { askers, .. } => askers.as_slice(),
            Stage::Serving | Stage::Owing => &[],
        };
        self.preparing.iter().chain(askers).copied().collect()
    }
}

fn report(deregistered: bool) -> AllocationStopped {
    let remark = (!deregistered).then(|| "could not be deregistered".to_owned());
    AllocationStopped { deregistered, remarks: remark.into_iter().collect() }
}

impl Entry {
    // === Requests of its owner ===

    /// The supervisor of this life receives an order. If it does not live, the answer is an error.
    pub(super) fn told(&mut self, call: u64, life: Attempt, order: &Order) {
        let Some(supervisor) = self.supervisor.as_mut().filter(|supervisor| supervisor.life == life) else {
            self.answers.push_back((call, Err(not_running())));
            return;
        };
        let is_serving = supervisor.stage == Stage::Serving;
        match order {
            Order::Prepare | Order::Adopt if is_serving => {
                if supervisor.task == Task::Running {
                    (supervisor.task, supervisor.owes) = (Task::Exited, true);
                }
                supervisor.preparing.push(call);
            }
            Order::Prepare | Order::Adopt => self.answers.push_back((call, supervisor.stopping())),
            Order::Start | Order::Exit(_) => {
                if is_serving {
                    let ends = matches!(order, Order::Exit(_));
                    supervisor.owes |= ends || self.is_registered && supervisor.task == Task::Running;
                    supervisor.task = if ends { Task::Exited } else { Task::Running };
                }
                self.answers.push_back((call, Ok(OrderAnswer::Noted)));
            }
            Order::Stop => self.begin_stopping(Some(call)),
        }
    }

    fn begin_stopping(&mut self, call: Option<u64>) {
        let Some(supervisor) = &mut self.supervisor else { return };
        match &mut supervisor.stage {
            Stage::Serving => {
                let refused = std::mem::take(&mut supervisor.preparing);
                let stopping = supervisor.stopping();
                self.answers.extend(refused.into_iter().map(|call| (call, stopping.clone())));
                let askers = call.into_iter().collect();
                supervisor.stage = Stage::Leaving { askers, is_last: false };
                (supervisor.task, supervisor.owes) = (Task::Leaving, true);
            }
            Stage::Leaving { askers, .. } => askers.extend(call),
            Stage::Owing => {
                let report = OrderAnswer::Stopped(report(false));
                self.answers.extend(call.map(|call| (call, Ok(report))));
            }
        }
    }

    /// The host ends. Returns the ending of the supervisor of this life, if that has ended.
    pub(super) fn stop(&mut self, life: Attempt, mode: StopMode) -> Option<Ending> {
        self.supervisor.as_ref().filter(|supervisor| supervisor.life == life)?;
        if mode == StopMode::Detach {
            return self.end(Ending::Normal);
        }
        self.begin_stopping(None);
        match &mut self.supervisor.as_mut()?.stage {
            Stage::Leaving { is_last, .. } => {
                *is_last = true;
                None
            }
            Stage::Serving | Stage::Owing => {
                self.is_excused = true;
                self.end(Ending::Normal)
            }
        }
    }

    /// It ends, and waiting callers are answered.
    pub(super) fn end(&mut self, ending: Ending) -> Option<Ending> {
        let supervisor = self.supervisor.take()?;
        self.answers.extend(supervisor.waiting().into_iter().map(|call| (call, Err(not_running()))));
        Some(ending)
    }

    // === Its actions ===

    /// Whether its supervisor can do this now.
    pub(super) fn can(&self, act: SupervisorAct) -> bool {
        let Some(supervisor) = &self.supervisor else { return false };
        let is_leaving = matches!(supervisor.stage, Stage::Leaving { .. });
        match act {
            SupervisorAct::Makes | SupervisorAct::FailsToMake => !supervisor.preparing.is_empty(),
            SupervisorAct::Registers => {
                let is_ready = supervisor.task == Task::Running && !supervisor.owes;
                is_ready && supervisor.stage == Stage::Serving && !self.is_registered
            }
            SupervisorAct::Deregisters => supervisor.owes,
            SupervisorAct::PutsAway => is_leaving && !supervisor.owes,
            SupervisorAct::PutsAwayInDebt => is_leaving && supervisor.owes,
            SupervisorAct::Tells => supervisor.status.health != Health::Healthy && self.is_registered,
            SupervisorAct::IsStuck => !supervisor.waiting().is_empty(),
            SupervisorAct::Crashes => true,
        }
    }

    /// The call that its supervisor has kept waiting longest.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.supervisor.as_ref()?.waiting().into_iter().min()
    }

    /// Its supervisor acts. Returns its ending, if it has ended.
    pub(super) fn act(&mut self, act: SupervisorAct) -> Option<Ending> {
        let supervisor = self.supervisor.as_mut()?;
        match act {
            SupervisorAct::Makes | SupervisorAct::FailsToMake => {
                let made = if act == SupervisorAct::Makes {
                    Ok(supervisor.context.clone())
                } else {
                    Err(PrepareError::SocketInUse { socket: supervisor.context.socket.clone() })
                };
                self.has_files |= act == SupervisorAct::Makes;
                let calls = std::mem::take(&mut supervisor.preparing).into_iter();
                self.answers.extend(calls.map(|call| (call, Ok(OrderAnswer::Prepared(made.clone())))));
                None
            }
            SupervisorAct::Registers => {
                (self.is_registered, self.is_excused) = (true, false);
                supervisor.status.phase = AllocationPhase::Registered;
                None
            }
            SupervisorAct::Deregisters => {
                (supervisor.owes, self.is_registered) = (false, false);
                if supervisor.stage == Stage::Owing { self.end(Ending::Normal) } else { None }
            }
            SupervisorAct::PutsAway => {
                self.put_away(true);
                self.end(Ending::Normal)
            }
            SupervisorAct::PutsAwayInDebt => {
                let is_last = matches!(supervisor.stage, Stage::Leaving { is_last: true, .. });
                self.put_away(false);
                self.is_excused |= is_last;
                if is_last { self.end(Ending::Normal) } else { None }
            }
            SupervisorAct::Tells => {
                supervisor.status.health = Health::Healthy;
                let news = AllocationNews::Changed(supervisor.status.clone());
                self.news.push_back((supervisor.life, news));
                None
            }
            // Only its owner sees that.
            SupervisorAct::IsStuck => None,
            SupervisorAct::Crashes => self.end(Ending::BudgetSpent("it crashed".to_owned())),
        }
    }

    fn put_away(&mut self, deregistered: bool) {
        let Some(supervisor) = &mut self.supervisor else { return };
        let stage = std::mem::replace(&mut supervisor.stage, Stage::Owing);
        let Stage::Leaving { askers, .. } = stage else { return };
        self.has_files = false;
        let stopped = OrderAnswer::Stopped(report(deregistered));
        self.answers.extend(askers.into_iter().map(|call| (call, Ok(stopped.clone()))));
    }
}

fn not_running() -> AskError {
    AskError::NotRunning { actor: "allocation".to_owned() }
}
