//! The effect handler of an allocation's supervisor.

use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::directory::Files;
use super::neighbours::Neighbours;
use super::{
    Allocation, AllocationCall, AllocationConfig, AllocationNews, AllocationOutcome, AllocationPhase,
    AllocationStatus, Listener,
};
use crate::csi::{self, Answer, CallError, Cause, Connection, Limits, Rpc, socket_file};
use crate::instances::AwaitRetired;
use crate::shell::{Address, EffectHandler, NoStore, Running, Settings, Started, start as start_actor};
use crate::vocabulary::{AllocationId, Health, PluginKey, RestartBudget, SocketPath};

/// Starts the supervisor of one allocation at a vacant address. `told` receives all its news without loss.
///
/// A crash ends it: its owner knows its state and starts another one.
pub fn start(
    address: &Address<Allocation>,
    config: AllocationConfig,
    neighbours: Rc<dyn Neighbours>,
    told: impl FnMut(AllocationNews) + 'static,
    settings: Settings,
) -> Running {
    let handler = Handler {
        allocation: config.spec.allocation.clone(),
        plugins: config.spec.plugins(),
        files: Files::new(config.plan.clone()),
        call_deadline: config.options.call_deadline,
        strict: config.options.strict,
        neighbours,
        told: Box::new(told),
    };
    let budget = RestartBudget { limit: 0, ..settings.budget };
    start_actor(address, config, handler, NoStore, Settings { budget, ..settings })
}

struct Handler {
    allocation: AllocationId,
    plugins: Vec<PluginKey>,
    files: Files,
    call_deadline: Duration,
    strict: bool,
    neighbours: Rc<dyn Neighbours>,
    told: Box<dyn FnMut(AllocationNews)>,
}

impl EffectHandler<Allocation> for Handler {
    fn call(&mut self, call: AllocationCall) -> Started<AllocationOutcome> {
        Started::Running(match call {
            AllocationCall::MakeDirectories(listener) => self.make_directories(listener),
            AllocationCall::FindSocket => Box::pin(find_socket(self.files.plan().context.socket.clone())),
            AllocationCall::Ask(rpc) => self.ask(rpc),
            AllocationCall::Register(message) => {
                let answer = self.neighbours.register(message);
                Box::pin(async move { AllocationOutcome::Registered(answer.await) })
            }
            AllocationCall::Deregister(message) => {
                let answer = self.neighbours.deregister(message);
                Box::pin(async move { AllocationOutcome::Deregistered(answer.await) })
            }
            AllocationCall::AskHealth => {
                let answer = self.neighbours.health_of(self.allocation.clone(), self.plugins.clone());
                Box::pin(async move { AllocationOutcome::Health(answer.await) })
            }
            AllocationCall::AwaitRetired => {
                let message = AwaitRetired { allocation: self.allocation.clone() };
                let answer = self.neighbours.await_retired(message);
                Box::pin(async move { AllocationOutcome::Retired(answer.await) })
            }
            AllocationCall::RemoveDirectory => {
                let removed = self.files.remove();
                Box::pin(async move { AllocationOutcome::Removed(removed.await) })
            }
        })
    }

    fn published(&mut self, news: &AllocationNews) {
        log(&self.allocation, news);
        (self.told)(news.clone());
    }
}

impl Handler {
    fn make_directories(&self, listener: Listener) -> LocalBoxFuture<'static, AllocationOutcome> {
        let made = self.files.make_ready(self.allocation.clone(), listener);
        Box::pin(async move { AllocationOutcome::Made(made.await) })
    }

    fn ask(&self, rpc: Rpc) -> LocalBoxFuture<'static, AllocationOutcome> {
        let (socket, deadline) = (self.files.plan().context.socket.clone(), self.call_deadline);
        let (allocation, listeners) = (self.allocation.clone(), self.neighbours.listeners());
        let limits = Limits { dial_deadline: deadline, strict: self.strict, ..Limits::default() };
        Box::pin(async move {
            let prove = async |listener: &_| listeners.check(&allocation, listener).await;
            let answer = ask_once(&socket, rpc, limits, prove).await;
            if let Err(error) = &answer {
                // Not ready yet is normal.
                tracing::debug!(%socket, %rpc, %error, "a plugin did not answer");
            }
            AllocationOutcome::Answered(answer)
        })
    }
}

async fn find_socket(socket: SocketPath) -> AllocationOutcome {
    let found = tokio::task::spawn_blocking(move || socket_file(&socket)).await;
    let crashed = |error: tokio::task::JoinError| Err(Cause::System { detail: error.to_string() });
    AllocationOutcome::Found(found.unwrap_or_else(crashed))
}

async fn ask_once(
    socket: &SocketPath,
    rpc: Rpc,
    limits: Limits,
    prove: impl AsyncFnOnce(&csi::Listener) -> Result<(), String>,
) -> Result<Answer, CallError> {
    let deadline = limits.dial_deadline;
    let connection = Connection::dial_proven(socket, limits, prove, |_| ()).await?;
    connection.call(rpc, deadline).await.map(|(answer, _)| answer)
}

/// The health of a process that exists and is not being stopped, if it is known. Only the owner of the workload knows whether
/// another process follows.
fn known_health(status: &AllocationStatus) -> Option<&'static str> {
    match (status.phase, &status.health) {
        (AllocationPhase::Stopping, _) | (_, Health::Starting | Health::Gone) => None,
        (_, health @ (Health::Healthy | Health::Unhealthy { .. })) => Some(health.as_str()),
    }
}

/// The latest event. An event from before its instance began to reconnect is outdated.
fn known_event(status: &AllocationStatus) -> &str {
    match (status.phase, &status.health) {
        (AllocationPhase::Registered, Health::Starting) => "its instance connects to it anew",
        _ => &status.last_event,
    }
}

fn log(allocation: &AllocationId, news: &AllocationNews) {
    match news {
        // Not ready yet is normal (A2).
        AllocationNews::Changed(status) if status.phase == AllocationPhase::Probing => {
            tracing::debug!(%allocation, plugin = %status.plugin, event = status.last_event, "not ready yet");
        }
        AllocationNews::Changed(status) => tracing::info!(
            %allocation,
            plugin = %status.plugin,
            phase = status.phase.as_str(),
            health = known_health(status),
            reason = status.health.reason(),
            event = known_event(status),
            "allocation changed"
        ),
        AllocationNews::Task(event) => {
            tracing::info!(%allocation, task = %event.task, kind = event.kind.as_str(), event = event.message, "task event");
        }
        AllocationNews::RestartRequested { reason } => {
            tracing::warn!(%allocation, error = reason, "restart requested");
        }
    }
}
