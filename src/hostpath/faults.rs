//! Faults of the plugin on request, so that tests and demonstrations can show how its host reacts.

use std::collections::HashMap;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use callboard_actors::csi::{Call, Code};
use clap::{Args, ValueEnum};
use tokio::time::Instant;
use tonic::Status;

use super::error::HostpathError;
use super::fault::{Action, Fault, Moment, code};
use crate::duration::parse_duration;

/// The faults. By default there are none.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Faults")]
pub struct FaultArgs {
    /// Do not listen before this much time has passed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub listen_after: Option<Duration>,

    /// Answer "not ready" until this much time has passed since the start
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub ready_after: Option<Duration>,

    /// Answer "not ready" forever
    #[arg(long, conflicts_with = "ready_after")]
    pub never_ready: bool,

    /// Never answer this call, for instance Probe; may be given several times
    #[arg(long, value_name = "CALL", value_parser = Call::named)]
    pub hang: Vec<Call>,

    /// Answer this call with this error, for instance NodeGetInfo=UNIMPLEMENTED; may be given several times
    #[arg(long, value_name = "CALL=CODE", value_parser = call_and_code)]
    pub fail: Vec<(Call, Code)>,

    /// A fault of one call, as CALL=ACTION,MOMENT,WHEN; may be given several times
    ///
    /// ACTION is a gRPC code, hang, slow:DURATION, die, forget (answer well and remember nothing) or lie (give an untrue answer).
    /// MOMENT is before the effect of the call, which is the default, in the middle of it, or after it. WHEN is nth:N, from:N
    /// (counted from 1), chance:PERCENT or while:FILE (while there is that file, which also ends a hang); without it, always.
    #[arg(long, value_name = "FAULT", value_parser = Fault::parse)]
    pub fault: Vec<Fault>,

    /// The seed of the faults with a chance
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub fault_seed: u64,

    /// Give invalid answers; may be given several times
    #[arg(long, value_name = "WHAT")]
    pub garbage: Vec<Garbage>,

    /// Report another name after this much time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub rename_after: Option<Duration>,

    /// Report another name from the second start on; the file records the first
    #[arg(long, value_name = "FILE")]
    pub rename_on_restart: Option<PathBuf>,

    /// Crash after this much time, leaving the socket behind
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub exit_after: Option<Duration>,

    /// The exit code to crash with
    #[arg(long, value_name = "CODE", default_value_t = 1, requires = "exit_after")]
    pub exit_code: u8,

    /// Ignore SIGTERM
    #[arg(long)]
    pub ignore_sigterm: bool,
}

/// An invalid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Garbage {
    /// An empty name
    EmptyName,
    /// A name of 200 characters
    LongName,
    /// A name that is not a domain name
    BadName,
    /// A manifest of 1 MiB
    LargeMap,
    /// Capabilities that are in no specification
    UnknownCapabilities,
}

/// A capability that is not in the specification.
pub(super) const UNKNOWN_CAPABILITY: i32 = 4711;

#[derive(Debug)]
pub(super) struct Faults {
    args: FaultArgs,
    born: Instant,
    renamed: bool,
    calls: Mutex<Calls>,
}

/// The number of calls so far of each kind, and the dice for the next call.
#[derive(Debug)]
struct Calls {
    counts: HashMap<Call, u64>,
    dice: fastrand::Rng,
}

/// The faults of one call.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    call: Call,
    faults: Vec<Due>,
}

/// A fault of this call.
#[derive(Debug, Clone)]
struct Due {
    action: Action,
    moment: Moment,
    /// The fault lasts while this file exists, if it is a lasting fault.
    file: Option<PathBuf>,
}

impl Faults {
    /// Reads the faults of this run.
    pub(super) fn begin(args: &FaultArgs) -> Result<Self, HostpathError> {
        let renamed = args.rename_on_restart.as_ref().is_some_and(|file| file.exists());
        if let Some(file) = &args.rename_on_restart {
            let failed = |source: io::Error| HostpathError::Mark { file: file.clone(), source };
            fs::write(file, "").map_err(failed)?;
        }
        let dice = fastrand::Rng::with_seed(args.fault_seed);
        let calls = Mutex::new(Calls { counts: HashMap::new(), dice });
        Ok(Self { args: args.clone(), born: Instant::now(), renamed, calls })
    }

    /// The faults of a call that has just arrived.
    pub(super) fn plan(&self, call: Call) -> Plan {
        tracing::debug!(rpc = %call, "called");
        // No code panics while it holds this lock.
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let Calls { counts, dice } = &mut *calls;
        let number = counts.entry(call).or_default();
        *number += 1;
        let hangs = self.args.hang.iter().filter(|hanging| **hanging == call).map(|_| Action::Hang);
        let fails = self.args.fail.iter().filter(|(failing, _)| *failing == call);
        let always = hangs.chain(fails.map(|(_, code)| Action::Answer(*code)));
        let always = always.map(|action| Due { action, moment: Moment::Before, file: None });
        let of_call = self.args.fault.iter().filter(|fault| fault.call == call);
        let now = of_call.filter(|fault| fault.when.is_now(*number, || dice.f64(), Path::exists));
        let now: Vec<_> = now
            .map(|Fault { action, moment, when, .. }| {
                let file = when.file().map(Path::to_owned);
                Due { action: *action, moment: *moment, file }
            })
            .collect();
        Plan { call, faults: always.chain(now).collect() }
    }

    /// All faults of a call without any effect.
    pub(super) async fn before(&self, call: Call) -> Result<Plan, Status> {
        let plan = self.plan(call);
        plan.before().await?;
        plan.middle();
        plan.after().await?;
        Ok(plan)
    }

    pub(super) fn ready(&self) -> bool {
        !self.args.never_ready && self.args.ready_after.is_none_or(|after| self.born.elapsed() >= after)
    }

    /// Whether answers have to be invalid in this way.
    pub(super) fn garbage(&self, what: Garbage) -> bool {
        self.args.garbage.contains(&what)
    }

    /// The name to report now.
    pub(super) fn name(&self, name: &str) -> String {
        let renamed =
            self.renamed || self.args.rename_after.is_some_and(|after| self.born.elapsed() >= after);
        if self.garbage(Garbage::EmptyName) {
            String::new()
        } else if self.garbage(Garbage::LongName) {
            "x".repeat(200)
        } else if self.garbage(Garbage::BadName) {
            "no domain\nname".to_owned()
        } else if renamed {
            format!("renamed.{name}")
        } else {
            name.to_owned()
        }
    }

    /// The manifest, which the plugin reports with its name.
    pub(super) fn manifest(&self) -> HashMap<String, String> {
        let large = || HashMap::from([("large".to_owned(), "m".repeat(1 << 20))]);
        self.garbage(Garbage::LargeMap).then(large).unwrap_or_default()
    }

    /// Waits for the requested crash, or forever. Returns the exit code.
    pub(super) async fn crash(&self) -> u8 {
        match self.args.exit_after {
            Some(after) => tokio::time::sleep_until(self.born + after).await,
            None => pending().await,
        }
        self.args.exit_code
    }
}

/// Waits while this file exists, or forever.
async fn hang(file: Option<&Path>) {
    /// The polling interval.
    const PAUSE: Duration = Duration::from_millis(10);
    let Some(file) = file else { return pending().await };
    while file.exists() {
        tokio::time::sleep(PAUSE).await;
    }
}

impl Plan {
    /// Runs the faults before the call has any effect.
    ///
    /// # Errors
    /// The call fails.
    pub(super) async fn before(&self) -> Result<(), Status> {
        self.met(Moment::Before).await
    }

    /// Runs the faults after the first change that the call makes.
    pub(super) fn middle(&self) {
        if self.faults.iter().any(|due| (due.action, due.moment) == (Action::Die, Moment::Middle)) {
            self.die();
        }
    }

    /// Runs the faults after the whole effect.
    ///
    /// # Errors
    /// The call fails.
    pub(super) async fn after(&self) -> Result<(), Status> {
        self.met(Moment::After).await
    }

    async fn met(&self, moment: Moment) -> Result<(), Status> {
        for due in self.faults.iter().filter(|due| due.moment == moment) {
            match due.action {
                Action::Answer(code) => {
                    let text = format!("{} fails, as it was told to", self.call);
                    return Err(Status::new(code.number().into(), text));
                }
                Action::Hang => hang(due.file.as_deref()).await,
                Action::Slow(time) => tokio::time::sleep(time).await,
                Action::Die => self.die(),
                Action::Forget | Action::Lie => {}
            }
        }
        Ok(())
    }

    /// Ends the process as a crash does: nothing is cleaned up.
    fn die(&self) -> ! {
        tracing::warn!(rpc = %self.call, "the plugin ends, as --fault demands");
        std::process::exit(1)
    }

    /// Whether the effect of the call is forgotten.
    pub(super) fn forgets(&self) -> bool {
        self.does(Action::Forget)
    }

    /// Whether the answer is untrue.
    pub(super) fn lies(&self) -> bool {
        self.does(Action::Lie)
    }

    fn does(&self, action: Action) -> bool {
        self.faults.iter().any(|due| due.action == action)
    }
}

fn call_and_code(text: &str) -> Result<(Call, Code), String> {
    let (name, wished) = text.split_once('=').ok_or("expected CALL=CODE, for instance Probe=INTERNAL")?;
    Ok((Call::named(name)?, code(wished)?))
}
