//! The effect handler of an instance: holds its one connection and forwards its news.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::messages::InstanceReport;
use super::state::{Instance, InstanceCall, InstanceConfig, Reached};
use crate::csi::{Answer, CallError, Cause, Connection, Limits, Readiness, Rpc, Step};
use crate::shell::{Address, EffectHandler, NoStore, Running, Settings, start as start_machine};
use crate::vocabulary::{Health, SocketPath};

/// Starts an instance at a vacant address. `told` is called synchronously for each published report, in order and without
/// loss; the last one has health `Gone`.
pub fn start(
    address: &Address<Instance>,
    config: InstanceConfig,
    told: impl Fn(&InstanceReport) + 'static,
    settings: Settings,
) -> Running {
    let line = Line {
        socket: config.socket.clone(),
        limits: config.limits.connection,
        call_deadline: config.limits.call_deadline,
        connection: Rc::default(),
        told: Box::new(told),
    };
    start_machine(address, config, line, NoStore, settings)
}

/// The one connection to the plugin. No other actor connects to it (I2, HLT-01).
struct Line {
    socket: SocketPath,
    limits: Limits,
    call_deadline: Duration,
    connection: Rc<RefCell<Option<Connection>>>,
    told: Box<dyn Fn(&InstanceReport)>,
}

impl EffectHandler<Instance> for Line {
    fn call(&mut self, call: InstanceCall) -> LocalBoxFuture<'static, Result<Reached, CallError>> {
        match call {
            InstanceCall::Dial => self.dial(),
            InstanceCall::Ask(rpc) => self.ask(rpc),
        }
    }

    fn published(&mut self, news: &InstanceReport) {
        log(news);
        (self.told)(news);
    }
}

impl Line {
    fn dial(&mut self) -> LocalBoxFuture<'static, Result<Reached, CallError>> {
        // Drops the old connection first: a process that still listens on it sees it close before the new one opens.
        self.connection.borrow_mut().take();
        let held = Rc::clone(&self.connection);
        let (socket, limits) = (self.socket.clone(), self.limits);
        Box::pin(async move {
            let connection = Connection::dial(&socket, limits).await?;
            *held.borrow_mut() = Some(connection);
            Ok(Reached::Connected)
        })
    }

    fn ask(&self, rpc: Rpc) -> LocalBoxFuture<'static, Result<Reached, CallError>> {
        let connection = self.connection.borrow().clone();
        let (socket, deadline) = (self.socket.clone(), self.call_deadline);
        Box::pin(async move {
            let Some(connection) = connection else {
                let cause = Cause::Disconnected { detail: "there is no connection".to_owned() };
                return Err(CallError::new(Step::Call(rpc), socket, deadline, cause));
            };
            let answer = connection.call(rpc, deadline).await?;
            if answer == Answer::Probe(Readiness::NotReady) {
                tracing::debug!(%socket, "plugin is not ready");
            }
            Ok(Reached::Answered(answer))
        })
    }
}

fn log(report: &InstanceReport) {
    let InstanceReport { plugin, allocation, generation, health, remarks, .. } = report;
    match health {
        Health::Starting => tracing::debug!(%plugin, %allocation, %generation, "plugin is starting"),
        Health::Healthy => {
            tracing::info!(%plugin, %allocation, %generation, ?remarks, "plugin is healthy");
        }
        Health::Unhealthy { reason } => {
            tracing::warn!(%plugin, %allocation, %generation, error = %reason, "plugin is unhealthy");
        }
        Health::Gone => tracing::info!(%plugin, %allocation, %generation, "plugin's instance is gone"),
    }
}
