//! The effect handler of an instance: holds its one connection and forwards its news.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use super::{
    ConnectionEnded, Instance, InstanceCall, InstanceConfig, InstanceLimits, InstanceReport, Reached,
};
use crate::csi::{Answer, CallError, Cause, Connection, ListenerCheck, Readiness, Rpc, Step};
use crate::lease::{ConnectionEnd, Connections, Gate, OpenConnection, RetireCause};
use crate::shell::{Address, EffectHandler, NoStore, Running, Settings, Started, start as start_machine};
use crate::vocabulary::{AllocationId, Attempt, Generation, Health, PluginKey, SocketPath};

/// Starts an instance at a vacant address. Its connection is among `connections` while it is open, and is made only to a listener that
/// `listeners` accepts. `told` is called synchronously for each published report, in order and without loss; the last one has health
/// `Gone`.
pub fn start(
    address: &Address<Instance>,
    config: InstanceConfig,
    connections: Connections,
    listeners: ListenerCheck,
    told: impl Fn(&InstanceReport) + 'static,
    settings: Settings,
) -> Running {
    let handler = Handler {
        address: address.clone(),
        dials: Attempt::default(),
        socket: config.socket.clone(),
        serves: (config.plugin.clone(), config.allocation.clone(), config.generation),
        limits: config.limits,
        connections,
        listeners,
        held: Rc::default(),
        told: Box::new(told),
    };
    start_machine(address, config, handler, NoStore, settings)
}

/// The connection of the instance, and its entry among the connections for leases.
struct Held {
    connection: Connection,
    open: OpenConnection,
}

/// Holds the one connection to the plugin. Nothing else connects to it (I2, HLT-01).
struct Handler {
    address: Address<Instance>,
    dials: Attempt,
    socket: SocketPath,
    serves: (PluginKey, AllocationId, Generation),
    limits: InstanceLimits,
    connections: Connections,
    listeners: ListenerCheck,
    held: Rc<RefCell<Option<Held>>>,
    told: Box<dyn Fn(&InstanceReport)>,
}

impl EffectHandler<Instance> for Handler {
    fn call(&mut self, call: InstanceCall) -> Started<Result<Reached, CallError>> {
        Started::Running(match call {
            InstanceCall::Dial => self.dial(),
            InstanceCall::Ask(rpc) => self.ask(rpc),
            InstanceCall::Drain(cause) => self.drain(cause),
        })
    }

    fn published(&mut self, news: &InstanceReport) {
        log(news, self.listeners.is_ending(&news.allocation));
        // Before its supervisor receives the report that it is healthy.
        if let Some(held) = &*self.held.borrow() {
            held.open.gate().set_lendable(news.health == Health::Healthy);
        }
        (self.told)(news);
    }
}

impl Handler {
    fn dial(&mut self) -> LocalBoxFuture<'static, Result<Reached, CallError>> {
        // Drops the old connection first: a process that still listens on it sees it close before the new one opens.
        drop(self.held.borrow_mut().take());
        self.dials = self.dials.next();
        let (connection, address) = (self.dials, self.address.clone());
        let held = Rc::clone(&self.held);
        let (connections, serves) = (self.connections.clone(), self.serves.clone());
        let (socket, limits, listeners) = (self.socket.clone(), self.limits, self.listeners.clone());
        Box::pin(async move {
            let gate = Arc::new(Gate::new(limits.calls_max));
            let ended = Arc::clone(&gate);
            let on_end = move |cut_off| {
                ended.close(ConnectionEnd::Lost);
                // An instance that has ended needs no news.
                let _ = address.notify(ConnectionEnded { connection, cut_off });
            };
            let allocation = serves.1.clone();
            let prove = async |listener: &_| listeners.check(&allocation, listener).await;
            let dialled = Connection::dial_proven(&socket, limits.connection, prove, on_end).await?;
            let bytes_max = limits.connection.answer_bytes_max;
            let open = connections.open(serves, dialled.channel(), bytes_max, gate);
            *held.borrow_mut() = Some(Held { connection: dialled, open });
            Ok(Reached::Connected { connection })
        })
    }

    fn ask(&self, rpc: Rpc) -> LocalBoxFuture<'static, Result<Reached, CallError>> {
        let held = self.held.borrow();
        let held = held.as_ref().map(|held| (held.connection.clone(), held.open.gate().enter_unlimited()));
        let (socket, deadline) = (self.socket.clone(), self.limits.call_deadline);
        Box::pin(async move {
            // A connection that has ended admits no calls; the call reports how it ended.
            let Some((connection, _pass)) = held else {
                let cause = Cause::Disconnected { detail: "there is no connection".to_owned() };
                return Err(CallError::new(Step::Call(rpc), socket, deadline, cause));
            };
            // Checked once in a round: a client that dials this path has to reach the reported plugin.
            if rpc == Rpc::Probe {
                connection.check_socket()?;
            }
            let (answer, remarks) = connection.call(rpc, deadline).await?;
            if answer == Answer::Probe(Readiness::NotReady) {
                tracing::debug!(%socket, "plugin is not ready");
            }
            Ok(Reached::Answered(answer, remarks))
        })
    }

    fn drain(&self, cause: RetireCause) -> LocalBoxFuture<'static, Result<Reached, CallError>> {
        let gate = self.held.borrow().as_ref().map(|held| Arc::clone(held.open.gate()));
        if let Some(gate) = &gate {
            gate.close(ConnectionEnd::Retired(cause));
        }
        Box::pin(async move {
            if let Some(gate) = gate {
                poll_fn(|context| gate.poll_drained(context)).await;
            }
            Ok(Reached::Drained)
        })
    }
}

/// Logs a report. The loss of a plugin whose process was asked to end is expected.
fn log(report: &InstanceReport, is_ending: bool) {
    let InstanceReport { plugin, allocation, generation, health, remarks, .. } = report;
    match health {
        Health::Starting => {
            tracing::debug!(%plugin, %allocation, generation = generation.get(), "plugin is starting")
        }
        Health::Healthy => {
            let remarks = remarks.join("; ");
            tracing::info!(%plugin, %allocation, generation = generation.get(), remarks, "plugin is healthy");
        }
        Health::Unhealthy { reason } if is_ending => {
            tracing::info!(%plugin, %allocation, generation = generation.get(), reason = %reason, "plugin is lost, as its process was asked to end");
        }
        Health::Unhealthy { reason } => {
            tracing::warn!(%plugin, %allocation, generation = generation.get(), error = %reason, "plugin is unhealthy");
        }
        Health::Gone => {
            tracing::info!(%plugin, %allocation, generation = generation.get(), "plugin's instance is gone")
        }
    }
}
