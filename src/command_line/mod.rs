//! The command line: what a person can ask of the program `callboard`.
//!
//! Exit codes: 0 when all went well, 1 when it did not, 2 when the command was not understood. What goes wrong is told on
//! standard error, as one line that says what was tried on what.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::hostpath::{self, HostpathArgs};
use crate::process::be_bound;

/// Supervises the plugins of a node: they sign in, fail over and stop in order.
#[derive(Debug, Parser)]
#[command(name = "callboard", version, arg_required_else_help = true)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Be a plugin
    Plugin(Box<PluginArgs>),
    /// Become a command that the kernel kills when its host dies; `run` starts plugins through this
    #[command(hide = true)]
    Bound(BoundArgs),
}

#[derive(Debug, Args)]
struct BoundArgs {
    /// The process id of the host
    #[arg(long, value_name = "PID")]
    parent: u32,

    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct PluginArgs {
    #[command(subcommand)]
    plugin: Plugin,
}

#[derive(Debug, Subcommand)]
enum Plugin {
    /// The reference CSI plugin, with faults on request
    Hostpath(HostpathArgs),
}

/// Reads the command line, does what it says and tells what went wrong.
#[must_use]
pub fn main() -> ExitCode {
    match CommandLine::parse().command {
        Command::Plugin(args) => match args.plugin {
            Plugin::Hostpath(args) => be_hostpath(args),
        },
        Command::Bound(BoundArgs { parent, command }) => {
            let error = be_bound(parent, &command);
            told(&error, error.exit_code())
        }
    }
}

/// Runs the reference plugin. It logs to standard error, as `RUST_LOG` says, and never writes to standard output.
fn be_hostpath(args: HostpathArgs) -> ExitCode {
    log_to_stderr();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return told(&error, 1),
    };
    match runtime.block_on(hostpath::serve(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => told(&error, error.exit_code()),
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter).init();
}

/// Tells an error with its causes and gives its exit code.
fn told(error: &(dyn Error + 'static), code: u8) -> ExitCode {
    let causes: Vec<_> =
        std::iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string).collect();
    eprintln!("callboard: {}", causes.join(": "));
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
