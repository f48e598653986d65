//! `callboard driver`: restarts drivers of a running host.

use std::process::ExitCode;

use callboard_proto::admin::v1 as wire;
use clap::{Args, Subcommand};
use serde_json::json;

use super::ask::{AskError, PlainArgs, ask, pretty};
use crate::admin::AdminClient;
use crate::output::{harmless, print};

/// What can be said to `driver`.
#[derive(Debug, Args)]
pub(super) struct DriverArgs {
    #[command(subcommand)]
    command: DriverCommand,
}

#[derive(Debug, Subcommand)]
enum DriverCommand {
    /// End the process of a driver and launch another one, now; its tasks go on, and are recovered
    ///
    /// Calls to the driver that are under way get up to 4 s to end, and its process gets its `stop_grace`. Its tasks are not stopped: they go
    /// on without it, and the next process takes them up again. A task that the driver runs within its own process ends with it, and is
    /// started again as after any other end of it. Of a driver that cannot recover a task, what is left of the task is ended first.
    ///
    /// If the plugin of the driver could not be used, it is looked for again instead, and no process is ended for that.
    Restart(RestartArgs),
}

#[derive(Debug, Args)]
struct RestartArgs {
    /// The name of the driver
    name: String,

    #[command(flatten)]
    plain: PlainArgs,
}

/// `callboard driver`
pub(super) fn driver(args: &DriverArgs) -> ExitCode {
    match &args.command {
        DriverCommand::Restart(args) => ask(&args.plain, async |client| restart(client, args).await),
    }
}

async fn restart(mut client: AdminClient, args: &RestartArgs) -> Result<(), AskError> {
    let wire::RestartDriverResponse { pid, resolving, tasks } = client.restart_driver(&args.name).await?;
    let text = match args.plain.json {
        true => pretty(&json!({
            "restarting": args.name,
            "pid": (pid != 0).then_some(pid),
            "resolving": resolving,
            "tasks": tasks,
        })),
        false => told(&args.name, pid, resolving, &tasks),
    };
    print(&text)?;
    Ok(())
}

/// The effect of a restart on a driver and its tasks, in words.
fn told(name: &str, pid: u32, resolving: bool, tasks: &[String]) -> String {
    let shown = format!("`callboard status {name}` shows the result");
    if resolving {
        return format!("the plugin of driver {name} is looked for again; {shown}\n");
    }
    let process = match pid {
        0 => "a process of it is launched".to_owned(),
        pid => format!("its process {pid} is ended, and another one launched"),
    };
    let tasks: Vec<_> = tasks.iter().map(|task| harmless(task)).collect();
    let tasks = match tasks.len() {
        0 => String::new(),
        1 => format!("; its task goes on and is recovered: {}", tasks.join(", ")),
        _ => format!("; its tasks go on and are recovered: {}", tasks.join(", ")),
    };
    format!("driver {name} is being restarted: {process}{tasks}; {shown}\n")
}
