//! What the admin socket answers.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::{DescribePlugins, Description, Registry};
use callboard_actors::shell::{Address, AskError, Clock, FeedItem, Machine, StopMode};
use callboard_actors::vocabulary::AllocationId;
use callboard_proto::admin::v1 as wire;
use futures_util::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::compose::{self, Views};
use super::connections::{Peer, Staying};
use super::convert::{self, not_replaced, refused, task_refused, unanswered};
use super::disk;
use super::driven;
use super::events::Events;
use super::plugins;
use super::server::{ShutdownOrder, Sources};
use super::stopping::Stopping;
use super::tree::{self, DESCRIBE_DEADLINE, answered};
use super::watch;
use crate::agent::{Agent, Replace, StartTask, StopTask, TaskError, TaskStopped};
use crate::host::Host;
use crate::tasks::{self, Tasks};
use crate::timeline;

/// The longest timeout of a replacement.
const REPLACE_WITHIN_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How many may watch at once, or follow the timeline: fewer than there may be connections, so that room for others remains.
const WATCHERS_MAX: usize = 24;
/// How many may wait at once for the end of an allocation or task.
const WAITING_MAX: usize = 32;

/// Answers for a host.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) sources: Arc<Sources>,
    events: Events,
    watchers: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// The place of a call that takes long. Its connection is not closed meanwhile.
type LongCall = (OwnedSemaphorePermit, Option<Staying>);

fn long_call<T>(
    places: &Arc<Semaphore>,
    request: &Request<T>,
    refusal: impl FnOnce() -> String,
) -> Result<LongCall, Status> {
    let place = Arc::clone(places).try_acquire_owned();
    let place = place.map_err(|_none| Status::resource_exhausted(refusal()))?;
    Ok((place, request.extensions().get::<Peer>().map(Peer::stay)))
}

/// Lets through whom the kernel knows as our own user, or as root.
pub(super) fn check_peer(request: Request<()>) -> Result<Request<()>, Status> {
    let peer = request.extensions().get::<Peer>().and_then(|peer| peer.credentials.peer_cred);
    let ours = rustix::process::geteuid().as_raw();
    match peer.map(|peer| peer.uid()) {
        Some(uid) if uid == ours || uid == 0 => Ok(request),
        Some(uid) => {
            tracing::warn!(uid, "refused a peer on the admin socket");
            let text = format!("this host answers user {ours} and root, not user {uid}");
            Err(Status::permission_denied(text))
        }
        None => Err(Status::permission_denied("the kernel does not say who asks")),
    }
}

/// How many changes may come until a snapshot was read, without a warning of a slow subscriber.
const UNREAD_MAX: usize = 256;

/// What an actor shows to its subscribers, as of now.
async fn view<M: Machine>(address: &Address<M>) -> Result<M::View, AskError> {
    let mut subscription = address.subscribe("status", UNREAD_MAX)?;
    match subscription.next().await {
        Some(FeedItem::Snapshot { view, .. }) => Ok(view),
        // A subscription begins with a snapshot, unless its publisher ended.
        Some(FeedItem::Change { .. } | FeedItem::Lagged { .. }) | None => {
            Err(AskError::NotRunning { actor: address.name().to_owned() })
        }
    }
}

/// The same within the time that an actor has to describe itself, or an empty view and the reason.
async fn shown<M: Machine<View: Default>>(address: &Address<M>) -> (M::View, Option<wire::GoneActor>) {
    match answered(DESCRIBE_DEADLINE, view(address)).await {
        Ok(view) => (view, None),
        Err((_, reason)) => {
            let name = address.name().to_owned();
            (M::View::default(), Some(wire::GoneActor { name, reason, ended: false }))
        }
    }
}

/// How the active registration of each plugin was chosen; nothing if the registry does not answer.
async fn elections(registry: &Address<Registry>) -> Vec<Description> {
    answered(DESCRIBE_DEADLINE, registry.ask(DescribePlugins)).await.unwrap_or_default()
}

/// Asks every actor at once what it shows, and notes which did not answer.
async fn views(host: &Host, agent: &Address<Agent>, tasks: &Address<Tasks>) -> (Views, Vec<wire::GoneActor>) {
    let (
        (registry, no_registry),
        elections,
        (instances, no_instances),
        (inventory, no_inventory),
        (allocations, no_allocations),
        (tasks, no_agent),
        (drivers, no_drivers),
        (processes, no_processes),
        (driven, no_tasks),
    ) = tokio::join!(
        shown(host.registry()),
        elections(host.registry()),
        shown(host.instances()),
        shown(host.inventory()),
        shown(host.allocations()),
        shown(agent),
        shown(host.drivers()),
        shown(host.processes()),
        shown(tasks),
    );
    let views = Views {
        registry,
        elections,
        instances,
        inventory,
        allocations,
        tasks,
        drivers,
        processes,
        driven,
        ..Views::default()
    };
    let gone = [
        no_registry,
        no_instances,
        no_inventory,
        no_allocations,
        no_agent,
        no_drivers,
        no_processes,
        no_tasks,
    ];
    (views, gone.into_iter().flatten().collect())
}

/// The status of the whole program. Actors that are gone are named, and the others are shown.
pub(super) async fn gather(sources: &Sources) -> wire::GetStatusResponse {
    let Sources { host, agent, tasks, logs, usage, .. } = sources;
    let stopping = sources.stopping.borrow().clone();
    let (views, mut gone) = views(host, agent, tasks).await;
    let (logs, usage) = (logs.borrow().clone(), usage.borrow().clone());
    let (is_stopping, started_at) = (stopping.is_some(), sources.started_at);
    let (limits, inventory_options) = (sources.limits, sources.inventory_options.clone());
    let views = Views { logs, usage, is_stopping, started_at, limits, inventory_options, ..views };
    for actor in &mut gone {
        if let Some(ended) = stopping.as_ref().and_then(|stopping| stopping.end_of(&actor.name)) {
            (actor.ended, actor.reason) = (true, ended);
        }
    }
    let stopping = match stopping {
        Some(stopping) => Some(stopping.status(&tree::host(host).await, Clock::system().now())),
        None => None,
    };
    wire::GetStatusResponse {
        host: Some(wire::HostStatus { stopping, ..host_status(sources) }),
        plugins: plugins::plugins(&views),
        allocations: compose::allocations(&views),
        drivers: driven::drivers(&views),
        tasks: driven::tasks(&views),
        gone,
    }
}

fn host_status(sources: &Sources) -> wire::HostStatus {
    wire::HostStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        data_dir: sources.host.data_dir().display().to_string(),
        run: sources.host.run_number().get(),
        started_at_unix_ms: convert::unix_ms(sources.started_at),
        cores: u32::try_from(sources.topology.enabled_cores().len()).unwrap_or(u32::MAX),
        cpu_mhz: sources.topology.usable_mhz(),
        cpu_speed_guessed: sources.topology.is_guessed(),
        control_groups: sources.control_groups.clone(),
        data_dir_problem: sources
            .host
            .data_dir_lost()
            .map_or_else(String::new, |lost| lost.told().to_owned()),
        stopping: None,
        disk: Some(disk::status(sources.host.database())),
    }
}

/// Whether a name is of no allocation; then it is of a task, or unknown.
const fn is_unknown<T>(answer: &Result<T, TaskError>) -> bool {
    matches!(answer, Err(TaskError::Unknown { .. }))
}

fn allocation_id(name: &str) -> Result<AllocationId, Status> {
    AllocationId::new(name).map_err(|error| Status::invalid_argument(error.to_string()))
}

impl Service {
    pub(super) fn new(sources: Sources, events: Events) -> Self {
        Self {
            sources: Arc::new(sources),
            events,
            watchers: Arc::new(Semaphore::new(WATCHERS_MAX)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }

    fn watcher<T>(&self, request: &Request<T>) -> Result<LongCall, Status> {
        long_call(&self.watchers, request, || {
            format!("{WATCHERS_MAX} clients watch this host already and no more may; end one of them")
        })
    }

    fn waiter<T>(&self, request: &Request<T>) -> Result<LongCall, Status> {
        long_call(&self.waiting, request, || {
            format!(
                "{WAITING_MAX} clients wait for an end already and no more may; try again when one of them has it"
            )
        })
    }

    fn stopping(&self) -> Option<Stopping> {
        self.sources.stopping.borrow().clone()
    }

    /// Stops an allocation, or a task where no allocation has this name.
    async fn stop(&self, name: &AllocationId) -> Result<Result<TaskStopped, Status>, AskError> {
        let stopped = self.sources.agent.ask(StopTask { allocation: name.clone() }).await?;
        if is_unknown(&stopped) {
            let stopped = self.sources.tasks.ask(tasks::StopTask { name: name.clone() }).await?;
            return Ok(stopped.map_err(|error| task_refused(&error)));
        }
        Ok(stopped.map_err(|error| refused(&error)))
    }
}

#[tonic::async_trait]
impl wire::admin_server::Admin for Service {
    async fn get_status(
        &self,
        request: Request<wire::GetStatusRequest>,
    ) -> Result<Response<wire::GetStatusResponse>, Status> {
        let mut status = gather(&self.sources).await;
        self.events.tell(&request.into_inner().name, &mut status);
        Ok(Response::new(status))
    }

    async fn get_tree(
        &self,
        _request: Request<wire::GetTreeRequest>,
    ) -> Result<Response<wire::GetTreeResponse>, Status> {
        let root = tree::tree(&self.sources.host).await;
        Ok(Response::new(wire::GetTreeResponse { root: Some(convert::tree(root)) }))
    }

    async fn start_allocation(
        &self,
        request: Request<wire::StartAllocationRequest>,
    ) -> Result<Response<wire::StartAllocationResponse>, Status> {
        let allocation = allocation_id(&request.into_inner().name)?;
        if self.stopping().is_some() {
            let text = format!("{allocation} is not started: the host is stopping");
            return Err(Status::failed_precondition(text));
        }
        let answer = self.sources.agent.ask(StartTask { allocation: allocation.clone() }).await;
        let started = answer.map_err(|error| unanswered(&error))?;
        if is_unknown(&started) {
            let answer = self.sources.tasks.ask(tasks::StartTask { name: allocation }).await;
            answer.map_err(|error| unanswered(&error))?.map_err(|error| task_refused(&error))?;
        } else {
            started.map_err(|error| refused(&error))?;
        }
        Ok(Response::new(wire::StartAllocationResponse {}))
    }

    async fn stop_allocation(
        &self,
        request: Request<wire::StopAllocationRequest>,
    ) -> Result<Response<wire::StopAllocationResponse>, Status> {
        let _place = self.waiter(&request)?;
        let allocation = allocation_id(&request.into_inner().name)?;
        let answer = self.stop(&allocation).await;
        // An actor that has ended with the host has stopped what it ran.
        let report = match (answer, self.stopping()) {
            (Ok(stopped), _) => stopped?.steps.iter().map(convert::step).collect::<Vec<_>>(),
            (Err(AskError::NotRunning { .. }), Some(stopping)) => stopping.stopped(&allocation)?,
            (Err(error), _) => return Err(unanswered(&error)),
        };
        let unwritten = disk::unwritten(self.sources.host.database());
        let report = report.into_iter().chain(unwritten).collect();
        Ok(Response::new(wire::StopAllocationResponse { report }))
    }

    async fn replace_allocation(
        &self,
        request: Request<wire::ReplaceAllocationRequest>,
    ) -> Result<Response<wire::ReplaceAllocationResponse>, Status> {
        let _place = self.waiter(&request)?;
        let wire::ReplaceAllocationRequest { name, with, healthy_for_ms, within_ms } = request.into_inner();
        let replace = Replace {
            allocation: allocation_id(&name)?,
            with: allocation_id(&with)?,
            healthy_for: Duration::from_millis(healthy_for_ms),
            within: Duration::from_millis(within_ms).min(REPLACE_WITHIN_MAX),
        };
        let answer = self.sources.agent.ask(replace).await;
        let stopped = answer.map_err(|error| unanswered(&error))?;
        let stopped = stopped.map_err(|error| not_replaced(&error))?;
        let report = stopped.steps.iter().map(convert::step).collect();
        Ok(Response::new(wire::ReplaceAllocationResponse { report }))
    }

    async fn shutdown(
        &self,
        request: Request<wire::ShutdownRequest>,
    ) -> Result<Response<wire::ShutdownResponse>, Status> {
        // Every caller gets an answer, however many there are.
        let _staying = request.extensions().get::<Peer>().map(Peer::stay);
        let mode = if request.into_inner().detach { StopMode::Detach } else { StopMode::Stop };
        let (reply, stopped) = oneshot::channel();
        let ended = |_| Status::unavailable("the host is ending already");
        self.sources.shutdown.send(ShutdownOrder { mode, reply }).await.map_err(|_| ended(()))?;
        let stopped = stopped.await.map_err(|_| ended(()))?;
        Ok(Response::new(wire::ShutdownResponse { report: convert::stopped(&stopped) }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<wire::WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<wire::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let place = self.watcher(&request)?;
        let watching = watch::Watching::begin(Arc::clone(&self.sources));
        Ok(Response::new(Box::pin(while_held(place, watching.into_stream()))))
    }

    type TimelineStream = Pin<Box<dyn Stream<Item = Result<wire::Said, Status>> + Send>>;

    async fn timeline(
        &self,
        request: Request<wire::TimelineRequest>,
    ) -> Result<Response<Self::TimelineStream>, Status> {
        let place = self.watcher(&request)?;
        let Sources { host, agent, tasks, .. } = &*self.sources;
        let lines = timeline::follow(host.clone(), agent, tasks, request.into_inner().gates);
        Ok(Response::new(Box::pin(while_held(place, ReceiverStream::new(lines).map(Ok)))))
    }
}

/// The same stream, which keeps a place for as long as it is there.
fn while_held<T>(place: LongCall, stream: impl Stream<Item = T>) -> impl Stream<Item = T> {
    stream.map(move |item| {
        let _held = &place;
        item
    })
}

#[cfg(test)]
mod tests {
    use callboard_actors::inventory::AwaitFirst;
    use callboard_actors::persister::Settled;
    use callboard_actors::registry::{self, RegistryOptions, SocketCheck};
    use callboard_actors::shell::{Settings, Store, Ticket, Written};
    use futures_util::future::{LocalBoxFuture, pending};

    use super::*;

    /// A disk that does not answer.
    struct HungDisk;

    impl Store<Registry> for HungDisk {
        fn open(&mut self, _: actix::Recipient<Settled>) {}

        fn write(&mut self, _: Ticket, _: <Registry as Machine>::Change) -> Written {
            Written::Later
        }

        fn load(&mut self) -> LocalBoxFuture<'static, Result<<Registry as Machine>::Image, String>> {
            Box::pin(pending())
        }
    }

    #[test]
    fn an_actor_that_waits_for_its_disk_does_not_hold_up_the_status() {
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().start_paused(true).build().expect("a runtime")
        };
        actix_rt::System::with_tokio_rt(runtime).block_on(async {
            let address = Address::vacant("registry", 1);
            let options = RegistryOptions::default();
            let check = SocketCheck { deadline: options.check_deadline };
            let running = registry::start(&address, options, check, HungDisk, Settings::default());
            let (_, gone) = shown(&address).await;
            assert_eq!(gone.expect("it shows nothing").reason, "no answer within 1s");
            running.kill();
        });
    }

    #[test]
    fn an_actor_that_is_gone_is_shown_as_gone_and_the_rest_is_shown() {
        actix_rt::System::new().block_on(async {
            let data_dir = tempfile::tempdir().expect("a temporary directory");
            let host = Host::builder(data_dir.path()).start().await.expect("it starts");
            let (agent, tasks) = (Address::vacant("agent", 1), Address::vacant("tasks", 1));
            host.inventory().ask(AwaitFirst).await.expect("it runs");
            let (views, gone) = views(&host, &agent, &tasks).await;
            let names: Vec<_> = gone.iter().map(|gone| gone.name.as_str()).collect();
            assert_eq!(names, ["agent", "tasks"]);
            assert!(gone[0].reason.contains("agent is not running"), "{gone:?}");
            assert!(views.inventory.first.is_some(), "the inventory of the host is shown");
            host.stop().await;
        });
    }
}
