//! Faults of the plugin on request, so that tests and demonstrations can show how its host reacts.

use std::collections::HashMap;
use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use callboard_actors::csi::{Code, Rpc};
use clap::{Args, ValueEnum};
use tokio::time::Instant;
use tonic::Status;

use super::error::HostpathError;
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
    #[arg(long, value_name = "RPC", value_parser = rpc)]
    pub hang: Vec<Rpc>,

    /// Answer this call with this error, for instance NodeGetInfo=UNIMPLEMENTED; may be given several times
    #[arg(long, value_name = "RPC=CODE", value_parser = rpc_and_code)]
    pub fail: Vec<(Rpc, Code)>,

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

/// A capability that is in no specification.
pub(super) const UNKNOWN_CAPABILITY: i32 = 4711;

#[derive(Debug)]
pub(super) struct Faults {
    args: FaultArgs,
    born: Instant,
    renamed: bool,
}

impl Faults {
    /// Reads the faults of this run.
    pub(super) fn begin(args: &FaultArgs) -> Result<Self, HostpathError> {
        let renamed = args.rename_on_restart.as_ref().is_some_and(|file| file.exists());
        if let Some(file) = &args.rename_on_restart {
            let failed = |source: io::Error| HostpathError::Mark { file: file.clone(), source };
            fs::write(file, "").map_err(failed)?;
        }
        Ok(Self { args: args.clone(), born: Instant::now(), renamed })
    }

    /// Runs before every answer: hangs or fails if that was requested for this call.
    pub(super) async fn before(&self, rpc: Rpc) -> Result<(), Status> {
        tracing::debug!(rpc = %rpc, "called");
        if self.args.hang.contains(&rpc) {
            pending::<()>().await;
        }
        match self.args.fail.iter().find(|(failing, _)| *failing == rpc) {
            Some((_, code)) => {
                Err(Status::new(code.number().into(), format!("{rpc} fails, as it was told to")))
            }
            None => Ok(()),
        }
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

fn rpc(name: &str) -> Result<Rpc, String> {
    let names = || Rpc::ALL.map(Rpc::as_str).join(", ");
    let named = Rpc::ALL.into_iter().find(|rpc| rpc.as_str() == name);
    named.ok_or_else(|| format!("expected one of {}", names()))
}

fn rpc_and_code(text: &str) -> Result<(Rpc, Code), String> {
    let (name, code) = text.split_once('=').ok_or("expected RPC=CODE, for instance Probe=INTERNAL")?;
    let codes = || Code::ALL.map(Code::as_str).join(", ");
    let coded = Code::ALL.into_iter().find(|known| known.as_str() == code);
    Ok((rpc(name)?, coded.ok_or_else(|| format!("expected one of the codes {}", codes()))?))
}
