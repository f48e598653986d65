//! Runs tasks through the drivers of the host, in production.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocdir::TaskNames;
use callboard_actors::driver::client::{DriverClient, DriverError, TaskState};
use callboard_actors::driver::{DriverCapabilities, EventPosition, TaskKey};
use callboard_actors::drivers::{
    Drivers, ForgetTaskHandler, ListDrivers, NoSuchDriver, RegisterTaskHandler, RemoveDriver, RestartDriver,
    Wanted,
};
use callboard_actors::eventor::{JOURNAL_ITEMS_MAX, TaskJournals};
use callboard_actors::leftovers::Traces;
use callboard_actors::processes::Processes;
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, DriverName};

use super::actor::{Asking, Runners, Watching};
use super::driver_setup::{set_up, set_up_unconfigured};
use super::endings::ending_of;
use super::exits::{confirmed, exit_of};
use super::plugins::Plugins;
use super::prepare::Preparer;
use super::remains::{Living, Remains};
use super::starts::{Starts, not_leased};
use super::{
    ADVICE, Found, Heard, KeptDriver, KeptHandle, RunEvidence, RunKey, Started, Swept, TaskIdentities,
    Trouble, Waited, failed_start, handle, is_unknown, not_sent, passing, refused_for_good,
};
use crate::config::TaskConfig;
use crate::exec::KILL_TIMEOUT;
use crate::host::Leases;

/// How long to wait for a driver that is starting.
const DISPENSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a driver's answer to a quick request.
pub(super) const QUICK: Duration = Duration::from_secs(10);
/// The timeout for a driver to recover or end a task.
const SLOW: Duration = Duration::from_secs(50);
/// The wait for a start or for an end has no timeout of its own: the caller gives up before.
pub(super) const ENDLESS: Duration = Duration::from_secs(24 * 3_600);
/// How much longer than the grace period the answer to a stop may take: longer than our own driver waits for a task that it has killed, so
/// that its report that the task does not end is received.
const STOP_MARGIN: Duration = Duration::from_secs(KILL_TIMEOUT.as_secs() + 5);
/// Why a cancelled start is not sent.
const CALLED_OFF: &str = "its start was cancelled";

/// The drivers of a host, and their surroundings.
#[derive(Debug, Clone)]
pub struct RunnersSurroundings {
    /// The owner of the drivers.
    pub drivers: Address<Drivers>,
    /// The owner of their processes.
    pub processes: Address<Processes>,
    /// The leases of their connections.
    pub leases: Leases,
    /// The journals in which the events of their tasks are read.
    pub journals: TaskJournals,
}

/// Calls the drivers of a host.
#[derive(Debug, Clone)]
pub struct HostRunners {
    drivers: Address<Drivers>,
    processes: Address<Processes>,
    leases: Leases,
    journals: TaskJournals,
    plugins: Rc<Plugins>,
    preparer: Rc<Preparer>,
    starts: Starts,
    remains: Remains,
}

impl HostRunners {
    /// Calls the drivers of these surroundings. `plugins` resolves the programs of drivers, and `preparer` prepares tasks.
    #[must_use]
    pub fn new(
        surroundings: RunnersSurroundings,
        plugins: Plugins,
        preparer: Preparer,
        identities: &TaskIdentities,
    ) -> Self {
        let RunnersSurroundings { drivers, processes, leases, journals } = surroundings;
        Self {
            drivers,
            processes,
            leases,
            journals,
            plugins: Rc::new(plugins),
            preparer: Rc::new(preparer),
            starts: Starts::default(),
            remains: Remains::new(identities.owner().into()),
        }
    }

    fn client(
        &self,
        driver: &DriverName,
        wanted: Wanted,
    ) -> impl Future<Output = Result<DriverClient, Trouble>> + use<> {
        let leased = self.leases.driver(driver, wanted, DISPENSE_TIMEOUT);
        async move { leased.await.map_err(|error| not_leased(&error)) }
    }

    /// A client for an existing run. If no client is available, that implies nothing about the run.
    fn reach(&self, run: &RunKey) -> impl Future<Output = Result<DriverClient, Trouble>> + use<> {
        let client = self.client(&run.driver, Wanted::Reachable);
        async move { client.await.map_err(|trouble| Trouble { is_transient: true, ..trouble }) }
    }
}

impl Runners for HostRunners {
    fn set_up(&self, driver: DriverName) -> Asking<Result<(), Trouble>> {
        Box::pin(set_up(self.drivers.clone(), Rc::clone(&self.plugins), driver))
    }

    fn set_up_unconfigured(&self, driver: DriverName, kept: Box<KeptDriver>) -> Asking<Result<(), Trouble>> {
        Box::pin(set_up_unconfigured(self.drivers.clone(), Rc::clone(&self.plugins), driver, kept))
    }

    fn dismiss(&self, driver: DriverName, left: Vec<AllocationId>) -> Asking<Result<(), Trouble>> {
        let asked = self.drivers.ask(RemoveDriver { name: driver.clone() });
        Box::pin(async move {
            let removed = asked.await.map_err(|error| Trouble::passing(error.to_string()))?;
            let removed = removed.map_err(|error| Trouble::passing(error.to_string()))?;
            let ended = removed.to_string();
            if left.is_empty() {
                tracing::info!(%driver, ended, "ended a driver that is no longer in the configuration");
            } else {
                let left: Vec<_> = left.iter().map(ToString::to_string).collect();
                let tasks = left.join(", ");
                tracing::warn!(
                    %driver, ended, tasks, advice = ADVICE,
                    "ended a driver that is no longer in the configuration; its tasks may still run"
                );
            }
            Ok(())
        })
    }

    fn watch(&self, driver: DriverName, task: TaskKey, after: Option<EventPosition>) -> Asking<Watching> {
        let (sink, events) = self.journals.open(JOURNAL_ITEMS_MAX, after);
        // Registering a handler announces the task, too.
        let asked = self.drivers.ask(RegisterTaskHandler { driver, task, sink });
        Box::pin(async move {
            let noted = asked.await.map_err(|error| Trouble::passing(error.to_string()))?;
            noted.map_err(|error| Trouble::passing(error.to_string()))?;
            Ok(events)
        })
    }

    fn forget(&self, driver: Option<DriverName>, task: TaskKey) -> Asking<()> {
        let names = TaskNames { allocation: task.allocation.clone(), task: task.task.clone() };
        let asked = driver.map(|driver| self.drivers.ask(ForgetTaskHandler { driver, task }));
        let preparer = Rc::clone(&self.preparer);
        Box::pin(async move {
            if let Some(asked) = asked
                && let Err(error) = asked.await
            {
                tracing::debug!(%error, "cannot unregister the event handler of a task");
            }
            preparer.remove(names).await;
        })
    }

    fn start(&self, run: RunKey, config: Arc<TaskConfig>) -> Asking<Started> {
        let client = self.client(&run.driver, Wanted::Healthy);
        let preparer = Rc::clone(&self.preparer);
        let (starts, drivers) = (self.starts.clone(), self.drivers.clone());
        let waiting = starts.waits(&run.id);
        Box::pin(async move {
            let prepared = async {
                let claimed = async {
                    let client = client.await?;
                    let capabilities = capabilities(&drivers, &run.driver).await?;
                    let volumes = preparer.claim(&capabilities, &run, &config).await?;
                    Ok::<_, Trouble>((client, capabilities, volumes))
                };
                let (client, capabilities, volumes) = tokio::select! {
                    claimed = claimed => claimed?,
                    () = waiting.called_off() => return Err(Trouble::passing(CALLED_OFF)),
                };
                let task = preparer.prepare(&client, &capabilities, &run, (&*config, volumes)).await?;
                match waiting.is_called_off() {
                    true => Err(Trouble::passing(CALLED_OFF)),
                    false => Ok((client, task)),
                }
            };
            let started = match prepared.await {
                Ok((client, task)) => {
                    starts.asked(&run.id, Some(client.process()));
                    // A start that is given up continues, and its result would be lost.
                    let mut answer = client.start_task(&task, ENDLESS).await;
                    if let Err(DriverError::PluginGone { reason, .. }) = &mut answer
                        && let Some(ending) = ending_of(&drivers, &run.driver).await
                    {
                        *reason = ending;
                    }
                    let started = answer.map_or_else(|error| failed_start(&run, error), handle::started);
                    if !matches!(started, Started::Unclear(_)) {
                        starts.answered(&run.id);
                    }
                    started
                }
                // After any other start something may be left, until it is proven that nothing is.
                Err(trouble) => {
                    let released = preparer.give_up(&run).await;
                    not_sent(trouble, released.inspect_err(|_| starts.never_sent(&run.id)))
                }
            };
            // Only now: the released resources must not belong to a later run yet.
            drop(waiting);
            started
        })
    }

    fn call_off(&self, run: RunKey) -> Asking<()> {
        self.starts.call_off(&run.id);
        Box::pin(std::future::ready(()))
    }

    fn sent(&self, run: RunKey) -> Asking<bool> {
        let starts = self.starts.clone();
        Box::pin(async move { starts.sent(&run.id).await })
    }

    fn recover(
        &self,
        run: RunKey,
        handle: Box<KeptHandle>,
        config: Arc<TaskConfig>,
    ) -> Asking<Result<(), Trouble>> {
        let client = self.reach(&run);
        Box::pin(async move {
            let handle = handle::given_back(&handle, &config.environment)
                .map_err(|error| Trouble::lasting(error.to_string()))?;
            let recovered = client.await?.recover_task(&handle, SLOW).await.map_err(refused_for_good);
            if let Err(trouble) = &recovered
                && !trouble.is_transient
            {
                let RunKey { name, driver, id } = &run;
                tracing::warn!(
                    task = %name, %driver, run_id = %id, error = %trouble,
                    "a driver cannot recover its task; what is left of the task is ended before it is started again"
                );
            }
            recovered
        })
    }

    fn inspect(&self, run: RunKey) -> Asking<Result<Found, Trouble>> {
        let client = self.leases.driver(&run.driver, Wanted::Reachable, DISPENSE_TIMEOUT);
        let starts = self.starts.clone();
        Box::pin(async move {
            let client = match client.await {
                Ok(client) => client,
                Err(error) => return starts.found_without(&run.id, &error),
            };
            match client.inspect_task(&run.id, QUICK).await {
                Ok(status) => match (status.state, status.exit) {
                    (TaskState::Exited, Some(exit)) => {
                        confirmed(&client, &run.id, exit).await.map(Found::Exited)
                    }
                    (TaskState::Unknown | TaskState::Running | TaskState::Exited, _) => Ok(Found::Running),
                },
                Err(error) if is_unknown(&error) => {
                    let is_proof = starts.is_proof(&run.id, Some(client.process()));
                    Ok(Found::Nothing { words: error.to_string(), is_proof })
                }
                Err(error) => Err(passing(&error)),
            }
        })
    }

    fn replace_driver(&self, run: RunKey) -> Asking<Result<(), Trouble>> {
        let client = self.reach(&run);
        let (drivers, starts) = (self.drivers.clone(), self.starts.clone());
        Box::pin(async move {
            let process = Some(client.await?.process());
            if starts.is_proof(&run.id, process) {
                return Ok(());
            }
            let RunKey { name, driver, id } = run;
            tracing::warn!(
                task = %name, %driver, run_id = %id,
                "a driver may still execute an abandoned start request; replacing its process"
            );
            let restarted = drivers.ask(RestartDriver { name: driver }).await;
            let restarted = restarted.map_err(|error| Trouble::passing(error.to_string()))?;
            restarted.map_err(|error| match error {
                NoSuchDriver::NotLaunched { .. } => Trouble::passing(error.to_string()),
                NoSuchDriver::Unknown { .. }
                | NoSuchDriver::TooMany { .. }
                | NoSuchDriver::Stopping { .. } => Trouble::absent(error.to_string()),
            })
        })
    }

    fn wait(&self, run: RunKey) -> Asking<Result<Waited, Trouble>> {
        let client = self.reach(&run);
        Box::pin(async move { exit_of(&client.await?, &run.id).await.map_err(|error| passing(&error)) })
    }

    fn stop(&self, run: RunKey, grace: Duration, signal: String) -> Asking<Result<(), Trouble>> {
        let client = self.reach(&run);
        Box::pin(async move {
            let stopped = client.await?.stop_task(&run.id, grace, &signal, grace + STOP_MARGIN).await;
            match stopped {
                // Its end is reported by the wait for it, or it is recovered (T144).
                Err(error) if !is_unknown(&error) => Err(passing(&error)),
                Ok(()) | Err(_) => Ok(()),
            }
        })
    }

    fn destroy(&self, run: RunKey) -> Asking<Result<(), Trouble>> {
        let client = self.reach(&run);
        let starts = self.starts.clone();
        Box::pin(async move {
            match client.await?.destroy_task(&run.id, true, SLOW).await {
                Err(error) if !is_unknown(&error) => Err(refused_for_good(error)),
                Ok(()) | Err(_) => {
                    starts.forget(&run.id);
                    Ok(())
                }
            }
        })
    }

    fn locate(
        &self,
        run: RunKey,
        handle: Option<Box<KeptHandle>>,
        evidence: Box<RunEvidence>,
    ) -> Asking<Result<Traces, Trouble>> {
        let (client, living) = (self.reach(&run), Living::ask(&self.drivers, &self.processes));
        let (remains, locating) = (self.remains.clone(), self.remains.begin_locating(&run));
        Box::pin(async move {
            // Most drivers name the process of a task; it is not an error if a driver does not.
            let named = match client.await {
                Ok(client) => client.inspect_task(&run.id, QUICK).await.ok(),
                Err(_) => None,
            };
            remains.locate(locating, handle, *evidence, named.as_ref(), &living.await?).await
        })
    }

    fn sweep(
        &self,
        run: RunKey,
        handle: Option<Box<KeptHandle>>,
        evidence: Box<RunEvidence>,
        heard: Heard,
    ) -> Asking<Result<Swept, Trouble>> {
        let living = Living::ask(&self.drivers, &self.processes);
        let (remains, preparer) = (self.remains.clone(), Rc::clone(&self.preparer));
        let starts = self.starts.clone();
        Box::pin(async move {
            if heard == Heard::NothingOfStart && starts.is_waiting(&run.id) {
                return Err(Trouble::passing("its start waits for its driver and may still begin"));
            }
            let swept = remains.end(&run, handle, *evidence, heard, &living.await?).await?;
            let unreleased = preparer.release(&run).await?;
            starts.forget(&run.id);
            Ok(Swept { unreleased, ..swept })
        })
    }
}

/// The capabilities of a healthy driver, as it reported them.
async fn capabilities(
    drivers: &Address<Drivers>,
    name: &DriverName,
) -> Result<Arc<DriverCapabilities>, Trouble> {
    let reports = drivers.ask(ListDrivers).await.map_err(|error| Trouble::passing(error.to_string()))?;
    let report = reports.into_iter().find(|report| report.name == *name);
    report
        .and_then(|report| report.capabilities)
        .ok_or_else(|| Trouble::passing(format!("driver {name} has not reported its capabilities yet")))
}
