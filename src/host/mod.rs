//! The host: owns everything that Callboard runs for a host program.
//!
//! ```text
//!                      supervisor
//!      ┌─────────┬─────────┼───────────┬─────────────┐
//!  persister  registry  instances  allocations   inventory      started in this order, stopped in reverse
//!      ▲ writes  │ feed ───► │ feed ─────┼───────────► │
//!      └─────────┘           │           │ feed ─────► └► the host
//!                one instance per     one per plugin workload: prepares, probes, registers,
//!                registration         watches, deregisters
//! ```
//!
//! Beside these, `processes` owns the processes of plugins and is started after the persister. `drivers` owns the task drivers in these
//! processes, with an eventor for each, and `catalog` has the available plugins: both are started after the processes and stopped before
//! them. `volumes` owns the volumes of CSI plugins, with an actor for each volume in use. It is stopped before all of these, so that
//! released volumes are undone while their plugin answers. [Parts](Part) of the host program come last, and are stopped first.
//!
//! A [`Host`] consists of addresses. It can be cloned and used from any thread; dropping it stops nothing.

mod builder;
mod error;
mod leases;
mod thread;
mod unwritten;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocations::Allocations;
use callboard_actors::catalog::Catalog;
use callboard_actors::csi::ListenerCheck;
use callboard_actors::datadir::Lost;
use callboard_actors::driver::client::DriverConnections;
use callboard_actors::drivers::{DriverLeases, Drivers};
use callboard_actors::eventor::TaskJournals;
use callboard_actors::instances::{self, Instances};
use callboard_actors::inventory::Inventory;
use callboard_actors::lease::Connections;
use callboard_actors::process::TaskProcesses;
use callboard_actors::processes::Processes;
use callboard_actors::registry::Registry;
use callboard_actors::shell::{Address, AskError, Database, Ending, Journal, Notices, StopMode, StopStep};
use callboard_actors::supervisor::{
    ChildEnding, DescribeTree, Shutdown, ShutdownReport, StopOutcome, Supervisor, TreeNode,
};
use callboard_actors::vocabulary::RunNumber;
use callboard_actors::volumes::Volumes;
use tokio::sync::watch;

pub use crate::launch::{EndingRest, Part, PartContext, PartLifecycle, PartsError};
pub use builder::HostBuilder;
pub use error::StartError;
pub use leases::Leases;
pub use thread::{BLOCKING_THREADS_MAX, HostThread, system};
pub use unwritten::Unwritten;

/// The pause before a stop is requested again if the supervisor did not accept the request.
const STOP_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A running host.
#[derive(Debug, Clone)]
pub struct Host {
    handles: Arc<Handles>,
}

/// The contents of a host handle; made by `launch`.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) data_dir: PathBuf,
    pub(crate) lost: watch::Receiver<Option<Lost>>,
    pub(crate) owner: Arc<str>,
    /// The database for a host program, which may not use the names of our own actors.
    pub(crate) database: Database,
    /// The database for our own actors.
    pub(crate) own_database: Database,
    pub(crate) notices: Notices,
    pub(crate) supervisor: Address<Supervisor>,
    pub(crate) registry: Address<Registry>,
    pub(crate) instances: Address<Instances>,
    pub(crate) connections: Connections,
    pub(crate) task_processes: TaskProcesses,
    pub(crate) inventory: Address<Inventory>,
    pub(crate) allocations: Address<Allocations>,
    pub(crate) processes: Address<Processes>,
    pub(crate) drivers: Address<Drivers>,
    pub(crate) driver_connections: DriverConnections,
    pub(crate) task_journals: TaskJournals,
    pub(crate) catalog: Address<Catalog>,
    pub(crate) volumes: Address<Volumes>,
    pub(crate) journal: Journal,
    pub(crate) ended: watch::Receiver<Option<HostEnd>>,
}

/// How a host ended.
#[derive(Debug, Clone)]
pub(crate) struct HostEnd {
    pub(crate) ending: Ending,
    /// The stopped parts, and what was left.
    pub(crate) steps: Vec<StopStep>,
}

impl Host {
    /// Begins to configure a host with its data in this directory. The directory is created if it does not exist.
    #[must_use]
    pub fn builder(data_dir: impl Into<PathBuf>) -> HostBuilder {
        HostBuilder::new(data_dir.into())
    }

    pub(crate) fn from_handles(handles: Handles) -> Self {
        Self { handles: Arc::new(handles) }
    }

    /// The registrations and which of them are active: `Register`, `Deregister`, `List`, `Describe`, `WaitForPlugin`, subscriptions.
    #[must_use]
    pub fn registry(&self) -> &Address<Registry> {
        &self.handles.registry
    }

    /// The plugins that can receive work: `Dispense`, `CheckNow`, `HealthOf`, subscriptions.
    #[must_use]
    pub fn instances(&self) -> &Address<Instances> {
        &self.handles.instances
    }

    /// Calls to plugins: [`lease`](Leases::lease) gives clients of a healthy plugin, and [`driver`](Leases::driver) a client of a task
    /// driver, both bound to the present generation.
    #[must_use]
    pub fn leases(&self) -> Leases {
        let Handles { instances, connections, drivers, driver_connections, .. } = &*self.handles;
        Leases::new(
            instances::Leases::new(instances.clone(), connections.clone()),
            DriverLeases::new(drivers.clone(), driver_connections.clone()),
        )
    }

    /// The journals from which handlers of tasks read events.
    #[must_use]
    pub fn task_journals(&self) -> &TaskJournals {
        &self.handles.task_journals
    }

    pub(crate) fn driver_connections(&self) -> &DriverConnections {
        &self.handles.driver_connections
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.handles.connections
    }

    /// The processes of plugin tasks, as reported by the host program. It reports them before `TaskStarted`. From then on only the reported
    /// process, its descendants and its groups may listen at the socket of the allocation, unless [`TaskProcesses::set_listener`] or its
    /// `Probing` permits any process.
    #[must_use]
    pub fn task_processes(&self) -> &TaskProcesses {
        &self.handles.task_processes
    }

    pub(crate) fn listeners(&self) -> ListenerCheck {
        let (processes, ending) = (self.handles.task_processes.clone(), self.handles.task_processes.clone());
        ListenerCheck::new(move |allocation, listener| {
            processes.check(allocation, listener).map_err(|intruder| intruder.to_string())
        })
        .with_endings(move |allocation| ending.is_ending(allocation))
    }

    /// The offers of this node: `TakeInventory`, `AwaitFirst`, subscriptions.
    #[must_use]
    pub fn inventory(&self) -> &Address<Inventory> {
        &self.handles.inventory
    }

    /// The plugin workloads: `PrepareAllocation`, `TaskStarted`, `TaskExited`, `StopAllocation`, subscriptions.
    #[must_use]
    pub fn allocations(&self) -> &Address<Allocations> {
        &self.handles.allocations
    }

    /// The processes of plugins: `ListProcesses`, `LaunchProcess`, `StopProcess`, subscriptions. Processes of drivers belong to the
    /// drivers.
    #[must_use]
    pub fn processes(&self) -> &Address<Processes> {
        &self.handles.processes
    }

    /// The task drivers: `AddDriver`, `RegisterTaskHandler`, subscriptions. Calls go over [`leases`](Self::leases).
    #[must_use]
    pub fn drivers(&self) -> &Address<Drivers> {
        &self.handles.drivers
    }

    /// The available plugins: `ScanPlugins`, `ListPlugins`, `ResolvePlugin`, subscriptions.
    #[must_use]
    pub fn catalog(&self) -> &Address<Catalog> {
        &self.handles.catalog
    }

    /// The volumes of CSI plugins: `RegisterVolume`, `Claim`, `Release`, `ConfirmClaims`, subscriptions.
    #[must_use]
    pub fn volumes(&self) -> &Address<Volumes> {
        &self.handles.volumes
    }

    /// Crashes, failed writes, dead letters, damaged records.
    #[must_use]
    pub fn notices(&self) -> &Notices {
        &self.handles.notices
    }

    /// The events of all actors in their total order. An actor of the host program that has this journal among its
    /// [`Settings`](callboard_actors::shell::Settings) writes there as well.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.handles.journal
    }

    /// The number of this run of the host on its data directory.
    #[must_use]
    pub fn run_number(&self) -> RunNumber {
        self.handles.database.run()
    }

    /// The database in which an actor of the host program stores its records: in tables and under an owner's name that no other actor uses.
    /// The names of our own actors are refused; a [`Ledger`](callboard_actors::shell::Ledger) lists them. It is open until the host has
    /// stopped, so such an actor ends before.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.handles.database
    }

    /// The database in which our own actors store their records.
    pub(crate) fn own_database(&self) -> &Database {
        &self.handles.own_database
    }

    /// The writes that a sick disk has not taken yet. Only promises wait for them.
    #[must_use]
    pub fn unwritten(&self) -> Unwritten {
        Unwritten::of(&self.database().unwritten_rows())
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.handles.data_dir
    }

    /// Whether the path of its data directory no longer leads to the directory that it uses. Checked every two seconds.
    #[must_use]
    pub fn data_dir_lost(&self) -> Option<Lost> {
        *self.handles.lost.borrow()
    }

    /// Changes with [`data_dir_lost`](Self::data_dir_lost).
    #[cfg(feature = "cli")]
    pub(crate) fn watch_data_dir(&self) -> watch::Receiver<Option<Lost>> {
        self.handles.lost.clone()
    }

    /// The mark of its data directory, 16 hexadecimal digits. It distinguishes what this host makes on the machine from what other hosts
    /// make. It stays the same when the directory is moved or restored, and no copy shares it (TH053).
    #[must_use]
    pub fn owner_mark(&self) -> &str {
        &self.handles.owner
    }

    /// The root of all actors: `DescribeTree`, `RestartChild`, subscriptions. To end the host, use [`stop`](Self::stop) or
    /// [`detach`](Self::detach).
    #[must_use]
    pub fn supervisor(&self) -> &Address<Supervisor> {
        &self.handles.supervisor
    }

    /// All actors as a tree, with their states, restarts and mailbox depths.
    ///
    /// # Errors
    /// [`AskError`] when the host has ended.
    pub async fn tree(&self) -> Result<TreeNode, AskError> {
        self.handles.supervisor.ask(DescribeTree).await
    }

    /// Ends everything in order, and deregisters every allocation. Calls in flight end, connections close, and the database is closed last.
    /// Every child has its own deadline, which follows from what is below it, so this is bounded. The report has the ending of each child
    /// (S3), and what could not be ended ([`not_in_order`](ShutdownReport::not_in_order)). Overlapping calls get the same report. A call
    /// after the end of the host gets a report with a single child, `host`: how it ended, and what it had to leave
    /// ([`StopOutcome::EndedBefore`]).
    pub async fn stop(&self) -> ShutdownReport {
        self.shut_down(StopMode::Stop).await
    }

    /// Ends everything in order and leaves registrations and sockets in place for the next start of the host.
    pub async fn detach(&self) -> ShutdownReport {
        self.shut_down(StopMode::Detach).await
    }

    /// Waits until the host has ended, and returns how: after [`stop`](Self::stop), or because it gave up.
    pub async fn ended(&self) -> Ending {
        self.end().await.ending
    }

    async fn end(&self) -> HostEnd {
        let mut ended = self.handles.ended.clone();
        let end = ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.unwrap_or(HostEnd { ending: Ending::Killed, steps: vec![] })
    }

    async fn shut_down(&self, mode: StopMode) -> ShutdownReport {
        // Allocations leave first, and no plugin is served after that: failures from now on give this reason.
        self.handles.connections.host_stops();
        let reason = loop {
            match self.handles.supervisor.ask(Shutdown { mode }).await {
                Ok(Ok(report)) => {
                    self.ended().await;
                    return report;
                }
                Ok(Err(error)) => break error.to_string(),
                Err(error @ AskError::NotRunning { .. }) => break error.to_string(),
                // It has not accepted this request, and lives.
                Err(
                    AskError::Busy { .. }
                    | AskError::Crashed { .. }
                    | AskError::NotDurable { .. }
                    | AskError::NotWritten { .. },
                ) => {
                    tokio::time::sleep(STOP_RETRY_PAUSE).await;
                }
            }
        };
        // It has already ended, so nothing is left to stop. How it ended decides whether that was in order.
        let HostEnd { ending, steps: below } = self.end().await;
        let ending = StopOutcome::EndedBefore { reason, in_order: ending == Ending::Normal };
        let children = vec![ChildEnding { name: "host".to_owned(), ending, below, took: Duration::ZERO }];
        ShutdownReport { children, took: Duration::ZERO }
    }
}
