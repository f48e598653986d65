//! Gathers the status of a whole host: asks all actors at once, and names those that do not answer.

use callboard_actors::registry::{DescribePlugins, Description, Registry};
use callboard_actors::shell::{Address, AskError, Clock, FeedItem, Machine};
use callboard_actors::vocabulary::DriverName;
use callboard_proto::admin::v1 as wire;

use super::compose::{self, Connected, Views};
use super::server::Sources;
use super::tree::{self, DESCRIBE_DEADLINE, answered};
use super::volumes::ConfiguredVolume;
use super::{convert, disk, driven, plugins, volumes};
use crate::agent::Agent;
use crate::host::Host;
use crate::tasks::Tasks;

/// How many changes may arrive before a snapshot is read, without a warning of a slow subscriber.
const UNREAD_MAX: usize = 256;

/// The view that an actor publishes to its subscribers, as of now.
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

/// The same within the deadline for descriptions, or an empty view and the reason.
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

/// Asks all actors at once for their views, and records which did not answer.
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
        (volumes, no_volumes),
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
        shown(host.volumes()),
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
        volumes,
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
        no_volumes,
    ];
    (views, gone.into_iter().flatten().collect())
}

/// The connections to the plugins and drivers in these views. They are in a table, so no actor is asked.
fn connected(host: &Host, views: &Views) -> Connected {
    let (plugins, drivers) = (host.connections(), host.driver_connections());
    let reports = views.instances.reports.iter();
    let of_driver = |name: &DriverName| Some((drivers.endpoint_of(name)?, drivers.calls_of(name)));
    Connected {
        plugins: reports
            .map(|report| {
                let calls = plugins.calls_of(&report.plugin, report.generation);
                ((report.plugin.clone(), report.generation), calls)
            })
            .collect(),
        allocations: plugins.calls_by_allocation(),
        drivers: views
            .drivers
            .reports
            .iter()
            .filter_map(|report| Some((report.name.clone(), of_driver(&report.name)?)))
            .collect(),
    }
}

/// The status of the whole program. Actors that are gone are named, and the others are shown.
pub(super) async fn gather(sources: &Sources) -> wire::GetStatusResponse {
    let Sources { host, agent, tasks, logs, usage, .. } = sources;
    let stopping = sources.stopping.borrow().clone();
    let (views, mut gone) = views(host, agent, tasks).await;
    let (logs, usage) = (logs.borrow().clone(), usage.borrow().clone());
    let (is_stopping, started_at) = (stopping.is_some(), sources.started_at);
    let (limits, inventory_options) = (sources.limits, sources.inventory_options.clone());
    let configured = sources.volumes.configured().map(ConfiguredVolume::from).collect();
    let connected = connected(host, &views);
    let views = Views {
        logs,
        usage,
        connected,
        configured,
        is_stopping,
        started_at,
        limits,
        inventory_options,
        ..views
    };
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
        volumes: volumes::volumes(&views),
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
