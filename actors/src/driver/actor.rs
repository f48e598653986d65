//! The effect handler of a driver: holds its one connection, and passes its reports on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::change::FileState;
use super::client::{DriverConnections, ServingProcess};
use super::generations::Generations;
use super::link::Link;
use super::owner::ProcessOwner;
use super::{Driver, DriverCall, DriverConfig, Reached, StartStep, Trouble, TroubleKind};
use super::{DriverHealth, DriverReport};
use crate::goplugin::Listener;
use crate::process::Launched;
use crate::processes::StopProcess;
use crate::shell::{
    Address, BEHAVIOUR_RATE, EffectHandler, LogLimit, NoStore, Running, Settings, Started,
    start as start_machine,
};

type Told = Box<dyn Fn(&DriverReport, bool)>;

/// Starts a driver at a vacant address. Its connection is among `connections` while it is open. `told` is called synchronously for
/// each published report, in order and without loss, with whether leases of its generation can be had. The last report says that the
/// driver is gone.
pub fn start(
    address: &Address<Driver>,
    config: DriverConfig,
    processes: Rc<dyn ProcessOwner>,
    (generations, connections): (Generations, DriverConnections),
    told: impl Fn(&DriverReport, bool) + 'static,
    settings: Settings,
) -> Running {
    let limit = LogLimit::new(&config.spec.name, BEHAVIOUR_RATE);
    let handler = Handler {
        config: config.clone(),
        processes,
        generations,
        connections,
        link: Rc::default(),
        launched: Rc::default(),
        told: Box::new(told),
        logged: None,
        limit,
    };
    start_machine(address, config, handler, NoStore, settings)
}

struct Handler {
    config: DriverConfig,
    processes: Rc<dyn ProcessOwner>,
    generations: Generations,
    connections: DriverConnections,
    /// The one connection to the plugin. There is no other.
    link: Rc<RefCell<Option<Link>>>,
    /// The state of its program before the latest launch.
    launched: Rc<Cell<FileState>>,
    told: Told,
    logged: Option<(DriverHealth, String)>,
    /// Limits the log of changes of its health, which may change as often as the driver reports.
    limit: LogLimit,
}

impl EffectHandler<Driver> for Handler {
    fn call(&mut self, call: DriverCall) -> Started<Result<Reached, Trouble>> {
        let name = self.config.process.clone();
        Started::Running(match call {
            DriverCall::Advance(StartStep::Recall, _) => self.processes.recall(name),
            DriverCall::Advance(StartStep::Launch, _) => {
                self.link.borrow_mut().take();
                let (owner, spec) = (Rc::clone(&self.processes), self.config.spec.launched_process());
                let (place, launched) =
                    (self.config.spec.process.executable.place(), Rc::clone(&self.launched));
                Box::pin(async move {
                    // Before the launch reads the file: from here on every change is detected.
                    launched.set(FileState::of(place).await);
                    owner.launch(name, spec).await
                })
            }
            DriverCall::AwaitChange => {
                let place = self.config.spec.process.executable.place();
                let refused = self.launched.get();
                Box::pin(async move {
                    refused.changed(place).await;
                    Ok(Reached::Done)
                })
            }
            DriverCall::Advance(_, Some(launched)) => self.dial(&launched),
            DriverCall::Advance(start_step, None) => {
                let deadline = self.config.limits.step_deadline;
                self.over_link(start_step.as_str(), |link| {
                    link.advance(start_step, &self.config.spec, deadline)
                })
            }
            DriverCall::Ping => {
                let deadline = self.config.limits.step_deadline;
                self.over_link(StartStep::Ping.as_str(), |link| {
                    link.advance(StartStep::Ping, &self.config.spec, deadline)
                })
            }
            DriverCall::ReadOn => self.over_link(StartStep::Watch.as_str(), Link::read_on),
            DriverCall::AwaitEnd(tag) => self.processes.await_end(name, tag),
            DriverCall::HangUp { is_worth_retrying, reason, within } => {
                let link = self.link.borrow();
                let hung_up = link.as_ref().map(|link| link.hang_up(is_worth_retrying, reason, within));
                Box::pin(async move {
                    if let Some(hung_up) = hung_up {
                        hung_up.await;
                    }
                    Ok(Reached::Done)
                })
            }
            DriverCall::ShutdownAnswer => {
                let deadline = self.config.spec.polite_deadline;
                self.over_link("the polite end", |link| link.shutdown(deadline))
            }
            DriverCall::StopProcess { tag, grace } => self.processes.stop(StopProcess { name, tag, grace }),
        })
    }

    fn published(&mut self, news: &DriverReport) {
        self.log(news);
        if news.health == DriverHealth::Gone
            && let Some(link) = &*self.link.borrow()
        {
            drop(link.hang_up(false, "the driver was stopped".to_owned(), Duration::ZERO));
        }
        let may_lend = self.link.borrow().as_ref().is_some_and(|link| link.may_lend(news.generation));
        (self.told)(news, may_lend);
    }
}

impl Handler {
    fn dial(&mut self, launched: &Launched) -> LocalBoxFuture<'static, Result<Reached, Trouble>> {
        // Callers of the old connection receive its end before the new one is open.
        self.link.borrow_mut().take();
        let Some(handshake) = launched.handshake.clone() else {
            let what = "its process was launched without a handshake, so its socket is unknown".to_owned();
            return Box::pin(std::future::ready(Err(Trouble { kind: TroubleKind::Answered, what })));
        };
        let generation = self.generations.next();
        let (spec, limits) = (self.config.spec.clone(), self.config.limits);
        let held = Rc::clone(&self.link);
        let process = ServingProcess { tag: launched.tag, is_adopted: launched.is_adopted };
        let (owner, launched) = (Rc::clone(&self.processes), launched.clone());
        let connections = self.connections.clone();
        Box::pin(async move {
            let prove = async |listener: &Listener| owner.prove(launched, listener.clone()).await;
            let served = (process, generation);
            let link = Link::dial(&handshake.endpoint, prove, served, &spec, &limits, connections).await?;
            *held.borrow_mut() = Some(link);
            Ok(Reached::Connected(generation))
        })
    }

    fn over_link(
        &self,
        what: &str,
        ask: impl FnOnce(&Link) -> LocalBoxFuture<'static, Result<Reached, Trouble>>,
    ) -> LocalBoxFuture<'static, Result<Reached, Trouble>> {
        match &*self.link.borrow() {
            Some(link) => ask(link),
            None => {
                let what = format!("{what}: there is no connection");
                Box::pin(std::future::ready(Err(Trouble { kind: TroubleKind::Silent, what })))
            }
        }
    }

    /// Logs only changes of health.
    fn log(&mut self, report: &DriverReport) {
        let DriverReport { name: driver, generation, health, reason, pid, .. } = report;
        let present = (*health, reason.clone());
        if self.logged.as_ref() == Some(&present) {
            return;
        }
        self.logged = Some(present);
        match health {
            DriverHealth::NoAnswerYet => tracing::debug!(%driver, "driver has not reported yet"),
            DriverHealth::Healthy => self.limit.say(|| {
                tracing::info!(%driver, generation = generation.get(), pid, reason, "driver is healthy");
            }),
            DriverHealth::Undetected => self.limit.say(|| {
                tracing::info!(
                    %driver, generation = generation.get(), pid, reason,
                    "driver is undetected: it found nothing that it supports"
                );
            }),
            DriverHealth::Unhealthy => self.limit.say(|| {
                tracing::warn!(%driver, generation = generation.get(), pid, error = %reason, "driver is unhealthy");
            }),
            DriverHealth::Gone => tracing::info!(%driver, generation = generation.get(), reason, "driver is gone"),
        }
    }
}
