//! The lifecycle of the driver: as that of every plugin, with faults.

use std::future::pending;

use super::arguments::ExecArgs;
use super::driver::ExecDriver;
use super::error::ExecError;
use super::faults::Faults;
use crate::plugin::{Cookie, Environment, HandshakeLine, Listening, ServeError, print};

/// Runs the driver until SIGTERM arrives or the host shuts it down. Its tasks continue, and the next driver recovers them.
///
/// # Errors
/// When it cannot serve, or a fault ends it.
pub async fn serve(args: ExecArgs) -> Result<(), ExecError> {
    let environment = Environment::of_this_process(&Cookie::NOMAD).map_err(ServeError::from)?;
    if args.takes_a_builtin_name() {
        return Err(ExecError::BuiltinName { name: args.name });
    }
    let faults = Faults::begin(&args.faults);
    if faults.forks() {
        return Faults::fork().map_err(ExecError::Fault);
    }
    let mut listening = Listening::begin(&environment)?;
    let line = listening.line().clone();
    tokio::select! {
        said = say_where(&faults, &line) => said?,
        () = listening.terminated(), if !args.faults.ignore_sigterm => return Ok(()),
    }
    faults.after_line().map_err(ExecError::Fault)?;
    let conduct = faults.conduct();
    let panic = Faults::begin(&args.faults);
    tokio::select! {
        served = listening.serve(ExecDriver::new(args, faults), conduct) => Ok(served?),
        never = panic.panic() => match never {},
    }
}

/// Prints the line, or its replacement.
async fn say_where(faults: &Faults, line: &HandshakeLine) -> Result<(), ExecError> {
    match faults.before_line(line).await? {
        Some(line) => Ok(print(&line).map_err(ServeError::Line)?),
        None => pending().await,
    }
}
