//! `callboard run`: a host program. It reads a configuration, starts a host, an admin socket and an agent, and ends everything
//! in order when it is told to.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_rt::System;
use callboard_actors::allocations::default_runtime_dir;
use callboard_actors::leftovers::BootClock;
use callboard_actors::logmon::{LogProgram, Logs, LogsError, LogsOptions};
use callboard_actors::process::{boot_id, since_boot};
use callboard_actors::shell::{Address, AskError, Clock, Ending, IN_FLIGHT_MAX, Running, Settings, StopMode};
use callboard_actors::topology::Topology;
use callboard_actors::users::MACHINE_USERS;
use callboard_actors::vocabulary::Timestamp;
use clap::Args;
use tokio::sync::{mpsc, watch};

use super::left::Left;
use super::signals::Signals;
use super::{show, told};
use crate::admin::{AdminServer, ShutdownOrder, SocketError, Sources, Stopped, socket_path};
use crate::agent::{self, Agent, AgentOptions, HostBooks, ProcessHome, StopStep};
use crate::config::Config;
use crate::host::{Host, StartError};
use crate::logging::{LogArgs, log_to_stderr};
use crate::output::{Palette, print};
use crate::process::{Binder, Keeper, usual_environment};
use crate::tasks::{
    self, CoreLedger, Ground, GroundOptions, HostRunners, LeaveTasks, Plugins, Preparer, StopAllTasks,
    TaskIdentities, Tasks, TasksOptions, TasksStore, catalog_options, drivers_options,
};
use crate::usage::{UsageCollector, UsageView};

/// Where the log writer keeps what it needs, in the data directory.
pub(super) const LOGMON_DIRECTORY: &str = "logmon";
/// How many wishes to stop may wait; the first one is all it takes.
const ORDERS_MAX: usize = 16;

/// What can be said to `run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The configuration, a TOML file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    #[command(flatten)]
    log: LogArgs,
}

/// Why a host does not run, or ran no longer.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error("cannot start the keeper of the host's process groups: {0}")]
    Keeper(#[source] std::io::Error),
    #[error("cannot look at what this machine permits for tasks: {0}")]
    Ground(#[source] std::io::Error),
    #[error("cannot collect the logs of tasks: {0}")]
    Logs(#[from] LogsError),
    #[error("the host has ended: {0}")]
    HostEnded(Ending),
    #[error("the agent has ended, so the host was stopped: {0}")]
    AgentEnded(Ending),
    #[error("the tasks have ended, so the host was stopped: {0}")]
    TasksEnded(Ending),
    #[error(transparent)]
    Left(#[from] Left),
}

/// Runs until told to stop.
pub(super) fn run(args: &RunArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(error) => return told(&error, 2),
    };
    if let Err(error) = log_to_stderr(args.log) {
        return told(&error, 2);
    }
    // On this thread, since the kernel binds processes to the thread that starts them.
    match System::new().block_on(host(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => told(&error, 1),
    }
}

/// Everything that runs.
struct Program {
    host: Host,
    agent: Address<Agent>,
    agent_running: Running,
    driven: Driven,
    server: AdminServer,
    signals: Signals,
    keeper: Keeper,
    orders: mpsc::Receiver<ShutdownOrder>,
}

/// Why it ends.
enum Cause {
    Told,
    Ordered(ShutdownOrder),
    HostEnded(Ending),
    AgentEnded(Ending),
    TasksEnded(Ending),
}

async fn host(config: Config) -> Result<(), RunError> {
    let mut program = Program::start(config).await?;
    let cause = program.until_told().await;
    let (mode, replies, error) = match cause {
        Cause::Told => (StopMode::Stop, vec![], None),
        Cause::Ordered(order) => (order.mode, vec![order], None),
        Cause::HostEnded(ending) => (StopMode::Stop, vec![], Some(RunError::HostEnded(ending))),
        Cause::AgentEnded(ending) => (StopMode::Stop, vec![], Some(RunError::AgentEnded(ending))),
        Cause::TasksEnded(ending) => (StopMode::Stop, vec![], Some(RunError::TasksEnded(ending))),
    };
    let left = program.stop(mode, replies).await;
    error.map_or(Ok(()), Err).and(left.map_err(RunError::from))
}

impl Program {
    async fn start(config: Config) -> Result<Self, RunError> {
        let signals = Signals::listen().map_err(RunError::Signals)?;
        let outputs = std::path::absolute(&config.data_dir).map_err(RunError::Keeper)?.join("processes");
        let keeper = Keeper::start_with_outputs(&outputs).map_err(RunError::Keeper)?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let runtime_dir = config.runtime_dir.clone().unwrap_or_else(default_runtime_dir);
        let binder = Binder::this_program().kept_by(&keeper);
        let builder = Host::builder(&config.data_dir).runtime_dir(&runtime_dir).binder(binder);
        let builder = builder.drivers(drivers_options(&config)).catalog(catalog_options(&config));
        let host = builder.start().await?;
        let identities = TaskIdentities::of_owner(host.owner_mark());
        let topology = tasks::topology(&config.host);
        let ground = match Ground::new(ground_options(&config), identities.clone()).await {
            Ok(ground) => ground,
            Err(error) => {
                host.stop().await;
                return Err(RunError::Ground(error));
            }
        };
        let options =
            LogsOptions { directory: config.data_dir.join(LOGMON_DIRECTORY), program: log_program() };
        let logs = match Logs::start(options).await {
            Ok(logs) => logs,
            Err(error) => {
                host.stop().await;
                return Err(error.into());
            }
        };
        let agent = Address::vacant("agent", IN_FLIGHT_MAX);
        let tasks = Address::vacant("tasks", IN_FLIGHT_MAX);
        let (shutdown, orders) = mpsc::channel(ORDERS_MAX);
        let (tell_usage, usage) = watch::channel(UsageView::new());
        let sources = Sources {
            host: host.clone(),
            agent: agent.clone(),
            tasks: tasks.clone(),
            topology: Arc::clone(&topology),
            control_groups: ground.control_groups(),
            logs: logs.view(),
            usage,
            started_at: Timestamp::from_epoch(since_epoch),
            shutdown,
        };
        // Before the first process is born, so that nothing was started when this fails.
        let server = match serve(&config, &runtime_dir, sources) {
            Ok(server) => server,
            Err(error) => {
                logs.stop().await;
                host.stop().await;
                return Err(error.into());
            }
        };
        tracing::info!(
            pid = std::process::id(), run = %host.run_number(), data_dir = %config.data_dir.display(), "the host runs"
        );
        let driven = Driven::start(&config, &host, tasks, identities, (&topology, ground, logs, tell_usage));
        let agent_running = start_agent(config, &host, &agent, &keeper);
        Ok(Self { host, agent, agent_running, driven, server, signals, keeper, orders })
    }

    async fn until_told(&mut self) -> Cause {
        let agent_ended = self.agent_running.ended();
        let tasks_ended = self.driven.running.ended();
        tokio::select! {
            name = self.signals.next() => {
                tracing::info!(signal = name, "stopping in order");
                Cause::Told
            }
            Some(order) = self.orders.recv() => {
                tracing::info!("stopping in order, as the admin socket says");
                Cause::Ordered(order)
            }
            ending = self.host.ended() => Cause::HostEnded(ending),
            ending = agent_ended => Cause::AgentEnded(ending),
            ending = tasks_ended => Cause::TasksEnded(ending),
        }
    }

    /// Ends everything: tasks, then actors, then the admin socket; and says how. Being told again meanwhile changes nothing.
    /// It is an error if something is left.
    async fn stop(self, mode: StopMode, mut replies: Vec<ShutdownOrder>) -> Result<(), Left> {
        let Self { host, agent, agent_running, driven, server, mut signals, keeper, mut orders } = self;
        let stopping = stop_all(mode, &host, (&agent, &agent_running), &driven);
        let mut stopping = std::pin::pin!(stopping);
        let stopped = loop {
            tokio::select! {
                stopped = &mut stopping => break stopped,
                name = signals.next() => tracing::info!(signal = name, "stopping already"),
                Some(order) = orders.recv() => replies.push(order),
            }
        };
        let report = stopped.told();
        for order in replies {
            // Who asked may have left; the end does not depend on it.
            let _ = order.reply.send(stopped.clone());
        }
        server.stop().await;
        keeper.release();
        if let Err(error) = print(&show::report(&report, Palette::of_stdout())) {
            tracing::warn!(error = %error, "the report of the shutdown cannot be printed");
        }
        Left::check(&report)
    }
}

/// The log writer: this program. It outlives the host, but not whoever holds the host itself on a leash.
fn log_program() -> LogProgram {
    match Keeper::own_leash() {
        Some((variable, value)) => LogProgram::this_program().env(variable, value),
        None => LogProgram::this_program(),
    }
}

fn ground_options(config: &Config) -> GroundOptions {
    GroundOptions {
        data_dir: config.data_dir.clone(),
        alloc_dir: config.host.alloc_dir.clone(),
        control_groups: config.host.control_groups,
        machine_users: rustix::process::geteuid().is_root().then(|| MACHINE_USERS.into()),
    }
}

/// Looks beside everything else for what tasks left that nobody knows any more.
fn sweep(config: &Config, host: &Host, ground: Ground) {
    let configured: Vec<_> = config.tasks.iter().map(|task| task.name.clone()).collect();
    let database = host.database().clone();
    actix_rt::spawn(async move {
        match tasks::recorded(&database).await {
            Ok(mut known) => {
                known.extend(configured);
                ground.sweep(known).await;
            }
            Err(error) => tracing::warn!(%error, "it was not looked for what dead tasks left"),
        }
    });
}

fn serve(
    config: &Config,
    runtime_dir: &std::path::Path,
    sources: Sources,
) -> Result<AdminServer, SocketError> {
    let socket = match &config.admin_socket {
        Some(socket) => socket.clone(),
        None => socket_path(&config.data_dir, runtime_dir)?,
    };
    AdminServer::start(&socket, &config.data_dir, sources)
}

fn start_agent(config: Config, host: &Host, address: &Address<Agent>, keeper: &Keeper) -> Running {
    let books = HostBooks::new(host.allocations().clone());
    let binder = Binder::this_program().kept_by(keeper);
    let home = ProcessHome { binder, log_dir: config.data_dir.join("logs") };
    let Config { allocations, restart, .. } = config;
    let options = AgentOptions { allocations, restart, environment: usual_environment() };
    agent::start(address, options, books, home, settings(host))
}

/// The surroundings of the actors that this program adds to its host.
fn settings(host: &Host) -> Settings {
    Settings { notices: host.notices().clone(), journal: Some(host.journal().clone()), ..Settings::default() }
}

/// How such a clock is tied to the present boot.
fn boot_clock(clock: &Clock) -> Option<BootClock> {
    let (boot, since_boot) = (boot_id().ok()?, since_boot());
    Some(BootClock { boot, since_boot, now: clock.now() })
}

/// The file of this program, which is a plugin too.
fn own_program() -> PathBuf {
    // Should the file have been moved, this path leads nowhere, and starting the plugin says so.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// The tasks of drivers.
struct Driven {
    tasks: Address<Tasks>,
    running: Running,
    logs: Logs,
    usage: Option<UsageCollector>,
}

impl Driven {
    fn start(
        config: &Config,
        host: &Host,
        tasks: Address<Tasks>,
        identities: TaskIdentities,
        (topology, ground, logs, usage): (&Arc<Topology>, Ground, Logs, watch::Sender<UsageView>),
    ) -> Self {
        sweep(config, host, ground.clone());
        let node = tasks::node_facts(&config.host, topology);
        let plugins = Plugins::new(config, host.catalog().clone(), own_program(), node);
        let (node, cores) =
            (tasks::task_node(config, Arc::clone(topology), &identities), CoreLedger::default());
        let preparer = Preparer::new(config, identities.clone(), node, (cores.clone(), ground, logs.clone()));
        let runners = HostRunners::new(host.drivers().clone(), plugins, preparer, &identities);
        let settings = settings(host);
        let options = TasksOptions {
            tasks: config.tasks.iter().cloned().map(Arc::new).collect(),
            drivers: config.drivers.iter().map(|driver| (driver.name.clone(), driver.into())).collect(),
            restart: config.restart,
            identities,
            boot: boot_clock(&settings.clock),
        };
        let store = TasksStore::new(host.database(), cores);
        let running = tasks::start(&tasks, options, runners, store, settings);
        // Tasks that have ended already use nothing.
        let usage = UsageCollector::start(&tasks, host.drivers().clone(), usage).ok();
        Self { tasks, running, logs, usage }
    }

    /// Stops tasks, or leaves them.
    async fn stop(&self, mode: StopMode) -> Vec<StopStep> {
        self.usage.iter().for_each(UsageCollector::stop);
        // What nobody stops is found again by the next run of the host.
        let steps = match mode {
            StopMode::Stop => self.tasks.ask(StopAllTasks).await.unwrap_or_else(not_stopped),
            StopMode::Detach => self.tasks.ask(LeaveTasks).await.unwrap_or_default(),
        };
        self.running.request_stop(mode);
        self.running.ended().await;
        // Where tasks are left, so is the log writer, which reads their pipes.
        self.logs.stop().await;
        steps
    }
}

/// Nobody knows what became of the tasks: they gave up, or could not write down what is to be done.
fn not_stopped(error: AskError) -> Vec<StopStep> {
    let ending = format!("left as they are, they may still run: {error}");
    vec![StopStep { what: "tasks".to_owned(), ending, took: Duration::ZERO, is_left: true }]
}

/// Ends all: tasks through their drivers, then plugin workloads, then actors, drivers among them (S2).
async fn stop_all(
    mode: StopMode,
    host: &Host,
    (agent, agent_running): (&Address<Agent>, &Running),
    driven: &Driven,
) -> Stopped {
    let mut tasks = driven.stop(mode).await;
    if mode == StopMode::Stop {
        // Nobody there means that there are no workloads: an agent that has ended took its processes with it.
        tasks.extend(agent.ask(agent::StopAllTasks).await.unwrap_or_default());
    }
    agent_running.request_stop(mode);
    agent_running.ended().await;
    let actors = match mode {
        StopMode::Stop => host.stop().await,
        StopMode::Detach => host.detach().await,
    };
    Stopped { tasks, actors }
}
