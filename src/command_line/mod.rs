//! The command line: the commands of the program `callboard`.
//!
//! ```text
//!   run                                            runs a host program: config ─► host, agent, admin socket
//!   status  tree  watch  start  stop  shutdown     send requests to a running host over its admin socket
//!   driver                                         does so for drivers
//!   volume                                         does so for volumes, their snapshots, and the volumes of plugins
//!   demo                                           plays the lifecycle of a plugin on real processes
//!   script FILE...                                 plays message scripts
//!   simulate                                       plays many random histories, and checks the laws
//!   plugin hostpath, plugin examiner, plugin exec  runs a plugin
//!   plugin exec-task, plugin exec-enter            run beside a task of `plugin exec`, and enter it (hidden)
//!   logs                                           reads logs, with a host or without
//!   log-writer                                     reads the pipes of tasks for `run` (hidden)
//!   bound                                          becomes a process of `run` (hidden)
//!   namespace                                      keeps and enters the namespaces of the demo (hidden)
//! ```
//!
//! Exit codes: 0 on success, 1 on failure, 2 when the command or a configuration was not understood. An error is reported on standard
//! error, as one line with the attempted operation and its object. The requested output goes to standard output, and a reader that closes
//! it early is not an error.

mod run;
mod simulate;

mod ask;
mod awaited;
mod claims;
mod departed;
mod driver;
mod logs;
mod target;
mod volume;
mod watch;

mod disk;
mod drawing;
mod driven;
mod script;

mod health;
mod json;
mod left;
mod show;
mod signals;
mod table;
mod times;
mod usage;
mod volumes;
mod whole;

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use callboard_actors::logmon::write_logs;
use clap::{Args, Parser, Subcommand};

use self::ask::{HealthArgs, NameArgs, PlainArgs, ReplaceArgs, ShutdownArgs, StatusArgs, StopArgs};
use self::driver::DriverArgs;
use self::logs::LogsArgs;
use self::run::RunArgs;
use self::script::ScriptArgs;
use self::simulate::SimulateArgs;
use self::volume::VolumeArgs;
use self::watch::WatchArgs;
use crate::demo::{self, DemoArgs};
use crate::examiner::{self, ExaminerArgs};
use crate::exec::{self, EnterArgs, ExecArgs};
use crate::hostpath::{self, HostpathArgs};
use crate::logging::{LogArgs, log_to_stderr};
use crate::output;
use crate::plugin::log_to_host;
use crate::process::{be_bound, catch_ignored_signals, guard, keep};

/// Supervises the plugins of a node: they register, fail over and stop in order.
#[derive(Debug, Parser)]
#[command(name = "callboard", version, arg_required_else_help = true)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the plugins of a configuration until told to stop
    Run(RunArgs),
    /// Show plugins, allocations, drivers, tasks and volumes of a running host
    Status(StatusArgs),
    /// Report by the exit code whether a running host, or what has this name in it, is well: 0 well, 3 not, 4 no host
    Health(HealthArgs),
    /// Show the actors of a running host
    Tree(PlainArgs),
    /// Show the status of a running host, and every change of it as it happens
    Watch(WatchArgs),
    /// Print the output of a task, an allocation or a driver, also of a host that does not run
    Logs(LogsArgs),
    /// Start an allocation or a task of a running host
    Start(NameArgs),
    /// Stop an allocation or a task of a running host in order, and wait for its end
    Stop(StopArgs),
    /// Replace an allocation of a running host with another one, once that has been healthy for a while
    Replace(ReplaceArgs),
    /// Restart drivers of a running host
    Driver(DriverArgs),
    /// List, show, create, change, delete, claim and release volumes of a running host, and take snapshots of them
    Volume(Box<VolumeArgs>),
    /// Stop a running host in order, and wait for its end
    Shutdown(ShutdownArgs),
    /// See the life of a storage plugin, a task driver and volumes on real processes, in about a minute
    Demo(DemoArgs),
    /// Play message scripts, and compare the responses with the recorded ones
    Script(ScriptArgs),
    /// Simulate many interleaved allocations with random faults, and check every step against the laws
    Simulate(SimulateArgs),
    /// Run a plugin that comes with callboard: the reference CSI plugin, the examiner, or the task driver
    Plugin(Box<PluginArgs>),
    /// Become a command that the kernel kills when its host dies; `run` starts plugins through this
    #[command(hide = true)]
    Bound(BoundArgs),
    /// End what is left of a host's process groups when it has ended; `run` starts its keeper itself
    #[command(hide = true)]
    Keeper(KeeperArgs),
    /// Read the pipes of tasks and write their logs; `run` starts this itself
    #[command(hide = true)]
    LogWriter(LogWriterArgs),
    /// Keep or enter a namespace in which the demo may mount; `demo` starts this itself
    #[command(hide = true)]
    Namespace(NamespaceArgs),
}

#[derive(Debug, Args)]
struct NamespaceArgs {
    #[command(subcommand)]
    command: NamespaceCommand,
}

#[derive(Debug, Subcommand)]
enum NamespaceCommand {
    /// Make one, and keep it until standard input ends
    Hold,
    /// Enter the one of a holder, and become a command
    Enter {
        /// The process id of the holder
        #[arg(long, value_name = "PID")]
        holder: u32,

        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
struct KeeperArgs {
    /// Bound what processes without a host write below this directory, until none of them is left
    #[arg(long, value_name = "DIR")]
    guard: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BoundArgs {
    /// The process id of the host; without it the command is bound to no process
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,

    /// The tag of the host's keeper
    #[arg(long)]
    tag: Option<String>,

    /// What the command is to see as its own name
    #[arg(long)]
    name: Option<OsString>,

    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct LogWriterArgs {
    /// Where it keeps its lock, its socket and its records
    #[arg(long)]
    directory: PathBuf,
}

#[derive(Debug, Args)]
struct PluginArgs {
    #[command(subcommand)]
    plugin: Plugin,
}

#[derive(Debug, Subcommand)]
enum Plugin {
    /// The reference CSI plugin, with faults on request
    Hostpath(HostpathCommand),
    /// A CSI plugin that examines its orchestrator: it judges every call by the rules of CSI, and writes a report
    Examiner(ExaminerCommand),
    /// The reference task driver, which runs commands, with faults on request
    Exec(ExecArgs),
    /// Run one task and know how it ends; `plugin exec` starts this itself
    #[command(hide = true)]
    ExecTask(ExecTaskArgs),
    /// Enter a task and become a command; `plugin exec` starts this itself
    #[command(hide = true)]
    ExecEnter(EnterArgs),
}

#[derive(Debug, Args)]
struct HostpathCommand {
    #[command(flatten)]
    log: LogArgs,

    #[command(flatten)]
    plugin: HostpathArgs,
}

#[derive(Debug, Args)]
struct ExaminerCommand {
    #[command(flatten)]
    log: LogArgs,

    #[command(flatten)]
    examiner: ExaminerArgs,
}

#[derive(Debug, Args)]
struct ExecTaskArgs {
    /// The directory for the state of the task
    #[arg(long, value_name = "DIRECTORY")]
    place: PathBuf,
}

/// Reads the command line, runs the command and reports errors.
#[must_use]
pub fn main() -> ExitCode {
    match CommandLine::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Status(args) => ask::status(&args),
        Command::Health(args) => ask::health(&args),
        Command::Tree(args) => ask::tree(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Logs(args) => logs::logs(&args),
        Command::Start(args) => ask::start(&args),
        Command::Stop(args) => ask::stop(&args),
        Command::Replace(args) => ask::replace(&args),
        Command::Driver(args) => driver::driver(&args),
        Command::Volume(args) => volume::volume(&args),
        Command::Shutdown(args) => ask::shutdown(&args),
        Command::Demo(args) => play_demo(&args),
        Command::Script(args) => script::script(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Plugin(args) => match args.plugin {
            Plugin::Hostpath(args) => be_hostpath(args),
            Plugin::Examiner(args) => be_examiner(args),
            Plugin::Exec(args) => be_exec(args),
            Plugin::ExecTask(args) => match exec::supervise(&args.place) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report_error(&error, 1),
            },
            Plugin::ExecEnter(args) => {
                let error = exec::enter(&args);
                report_error(&error, error.exit_code())
            }
        },
        Command::Bound(BoundArgs { parent, tag, name, command }) => {
            let error = be_bound(parent, tag.as_deref(), name.as_deref(), &command);
            report_error(&error, error.exit_code())
        }
        Command::Keeper(KeeperArgs { guard: directory }) => {
            match directory.as_deref().map_or_else(keep, guard) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report_error(&error, 1),
            }
        }
        Command::LogWriter(LogWriterArgs { directory }) => match write_logs(&directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report_error(&error, 1),
        },
        Command::Namespace(NamespaceArgs { command }) => match command {
            NamespaceCommand::Hold => match demo::hold_namespace() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report_error(&error, 1),
            },
            NamespaceCommand::Enter { holder, command } => {
                report_error(&demo::enter_namespace(holder, &command), 1)
            }
        },
    }
}

/// Plays the demo, on this thread, because the kernel binds processes to the thread that starts them.
fn play_demo(args: &DemoArgs) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(demo::run(args)),
        Err(error) => report_error(&error, 1),
    }
}

/// Runs the reference plugin.
fn be_hostpath(args: HostpathCommand) -> ExitCode {
    match be_csi_plugin(args.log, hostpath::serve(args.plugin)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => report_error(&error, error.exit_code()),
        Err(code) => code,
    }
}

/// Runs the examiner.
fn be_examiner(args: ExaminerCommand) -> ExitCode {
    match be_csi_plugin(args.log, examiner::serve(args.examiner)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => report_error(&error, error.exit_code()),
        Err(code) => code,
    }
}

/// Runs a CSI plugin. It logs to standard error, and never writes to standard output.
fn be_csi_plugin<T>(log: LogArgs, served: impl Future<Output = T>) -> Result<T, ExitCode> {
    log_to_stderr(log).map_err(|error| report_error(&error, 2))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| report_error(&error, 1))?.block_on(served))
}

/// Runs the reference driver. It logs for its host, and prints nothing but the handshake line.
fn be_exec(args: ExecArgs) -> ExitCode {
    log_to_host();
    if let Err(error) = catch_ignored_signals() {
        return report_error(&error, 1);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report_error(&error, 1),
    };
    match runtime.block_on(exec::serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_error(&error, error.exit_code()),
    }
}

/// Prints an error with its causes, and returns the exit code. A cause whose text is already part of the message is left out.
fn report_error(error: &(dyn Error + 'static), code: u8) -> ExitCode {
    let mut text = String::new();
    for cause in std::iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    for line in text.lines() {
        output::complain(&format!("callboard: {line}"));
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }
}
