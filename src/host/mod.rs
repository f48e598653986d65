//! The host: everything Callboard runs, as a host program holds it.
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
//! Beside these, `processes` owns the processes of plugins and is started behind the persister; `drivers` owns the task drivers that
//! run in them, with an eventor for each, and `catalog` knows which plugins there are: both are started behind the processes and
//! stopped before them. `volumes` owns the volumes of CSI plugins, with an actor for each that is in use; it is stopped before all of these, so
//! that what is released is undone while its plugin answers. [Parts](Part) of the host program's own come last, and are stopped first.
//!
//! A [`Host`] is a handful of addresses. It can be cloned and used from any thread; dropping it stops nothing.

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

/// The pause before a stop is requested again of a supervisor that did not accept the request.
const STOP_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A running host.
#[derive(Debug, Clone)]
pub struct Host {
    handles: Arc<Handles>,
}

/// What a host is held by; made by `launch`.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) data_dir: PathBuf,
    pub(crate) lost: watch::Receiver<Option<Lost>>,
    pub(crate) owner: Arc<str>,
    /// That of a host program, which may not use the names of our own actors.
    pub(crate) database: Database,
    /// That of our own actors.
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
    /// What it stopped, and what was left.
    pub(crate) steps: Vec<StopStep>,
}

impl Host {
    /// Begins to describe a host that keeps its data in this directory. The directory is made when it is not there.
    #[must_use]
    pub fn builder(data_dir: impl Into<PathBuf>) -> HostBuilder {
        HostBuilder::new(data_dir.into())
    }

    pub(crate) fn from_handles(handles: Handles) -> Self {
        Self { handles: Arc::new(handles) }
    }

    /// Who is registered, who is active: `Register`, `Deregister`, `List`, `Describe`, `WaitForPlugin`, subscriptions.
    #[must_use]
    pub fn registry(&self) -> &Address<Registry> {
        &self.handles.registry
    }

    /// Whom work can be sent to: `Dispense`, `CheckNow`, `HealthOf`, subscriptions.
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

    /// Where handlers of tasks open the journals that they read events from.
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

    /// The processes that plugins' tasks run in, as far as the host program says. It says so before `TaskStarted`, and from then on no process
    /// but that process, its descendants and its groups may listen at the socket of the allocation, unless
    /// [`TaskProcesses::set_listener`] or its `Probing` says that any process may.
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

    /// What this node offers: `TakeInventory`, `AwaitFirst`, subscriptions.
    #[must_use]
    pub fn inventory(&self) -> &Address<Inventory> {
        &self.handles.inventory
    }

    /// The workloads that carry plugins: `PrepareAllocation`, `TaskStarted`, `TaskExited`, `StopAllocation`, subscriptions.
    #[must_use]
    pub fn allocations(&self) -> &Address<Allocations> {
        &self.handles.allocations
    }

    /// The processes of plugins: `ListProcesses`, `LaunchProcess`, `StopProcess`, subscriptions. Those of drivers belong to
    /// the drivers.
    #[must_use]
    pub fn processes(&self) -> &Address<Processes> {
        &self.handles.processes
    }

    /// The task drivers: `AddDriver`, `RegisterTaskHandler`, subscriptions. Calls go over [`leases`](Self::leases).
    #[must_use]
    pub fn drivers(&self) -> &Address<Drivers> {
        &self.handles.drivers
    }

    /// Which plugins there are: `ScanPlugins`, `ListPlugins`, `ResolvePlugin`, subscriptions.
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

    /// What happens to its actors, in the one order in which it does. An actor of the host program's own that has this among its
    /// [`Settings`](callboard_actors::shell::Settings) writes there as well.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.handles.journal
    }

    /// Which run of the host on its data directory this is.
    #[must_use]
    pub fn run_number(&self) -> RunNumber {
        self.handles.database.run()
    }

    /// Where an actor of the host program's own stores its records: in tables and under an owner's name that no other actor uses. The
    /// names that our own actors use are refused; a [`Ledger`](callboard_actors::shell::Ledger) lists them. It is open until the host
    /// has stopped, so such an actor ends before.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.handles.database
    }

    /// Where our own actors store their records.
    pub(crate) fn own_database(&self) -> &Database {
        &self.handles.own_database
    }

    /// What a sick disk has not taken yet. Nothing waits for that but promises.
    #[must_use]
    pub fn unwritten(&self) -> Unwritten {
        Unwritten::of(&self.database().unwritten_rows())
    }

    /// Where it keeps its data.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.handles.data_dir
    }

    /// Whether the path of its data directory does not lead to the directory any more that it uses. Looked at every two seconds.
    #[must_use]
    pub fn data_dir_lost(&self) -> Option<Lost> {
        *self.handles.lost.borrow()
    }

    /// Changes with [`data_dir_lost`](Self::data_dir_lost).
    #[cfg(feature = "cli")]
    pub(crate) fn watch_data_dir(&self) -> watch::Receiver<Option<Lost>> {
        self.handles.lost.clone()
    }

    /// The mark of its data directory, 16 hexadecimal digits: what this host makes on the machine is distinguished by it from what other
    /// hosts make. It stays the same when the directory is moved or restored, and no copy shares it (TH053).
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

    /// Ends everything in order, and deregisters every allocation; calls in flight end, connections
    /// close, and the database is closed last. Every child has its own deadline, which follows from what is below it, so this is
    /// bounded; the report says how each one ended (S3), and what could not be ended
    /// ([`not_in_order`](ShutdownReport::not_in_order)). Calls that overlap get the same report. One after the end of the host gets one of a
    /// single child, `host`, with how it ended and what that had to leave ([`StopOutcome::EndedBefore`]).
    pub async fn stop(&self) -> ShutdownReport {
        self.shut_down(StopMode::Stop).await
    }

    /// Ends everything in order and leaves registrations and sockets in place for the next start of the host.
    pub async fn detach(&self) -> ShutdownReport {
        self.shut_down(StopMode::Detach).await
    }

    /// Waits until the host has ended, and says how: after [`stop`](Self::stop), or because it gave up.
    pub async fn ended(&self) -> Ending {
        self.end().await.ending
    }

    async fn end(&self) -> HostEnd {
        let mut ended = self.handles.ended.clone();
        let end = ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.unwrap_or(HostEnd { ending: Ending::Killed, steps: vec![] })
    }

    async fn shut_down(&self, mode: StopMode) -> ShutdownReport {
        // Allocations leave first, and no plugin is served then: what fails from now on says why.
        self.handles.connections.host_stops();
        let reason = loop {
            match self.handles.supervisor.ask(Shutdown { mode }).await {
                Ok(Ok(report)) => {
                    self.ended().await;
                    return report;
                }
                Ok(Err(error)) => break error.to_string(),
                Err(error @ AskError::NotRunning { .. }) => break error.to_string(),
                // It has not accepted this, and lives.
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
        // It has ended before, so nothing is left to stop. Whether that was in order depends on how it ended.
        let HostEnd { ending, steps: below } = self.end().await;
        let ending = StopOutcome::EndedBefore { reason, in_order: ending == Ending::Normal };
        let children = vec![ChildEnding { name: "host".to_owned(), ending, below, took: Duration::ZERO }];
        ShutdownReport { children, took: Duration::ZERO }
    }
}
