//! The commands that send requests to a running host.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use callboard_actors::vocabulary::text::json_for_terminals;
use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::json;

use super::left::Left;
use super::target::{TargetArgs, TargetError};
use super::{health, json, report_error, show, volumes, whole};
use crate::admin::{AdminClient, AdminError};
use crate::duration::parse_duration;
use crate::output::{Palette, print};

/// The exit code if something is not well.
const NOT_WELL: u8 = 3;
/// The exit code of a health question if no host runs.
const NO_HOST: u8 = 4;

/// What can be said to a command without a name.
#[derive(Debug, Args)]
pub(super) struct PlainArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,

    /// Print JSON with documented, stable keys
    #[arg(long)]
    pub(super) json: bool,
}

/// What can be said to a command about one allocation or task.
#[derive(Debug, Args)]
pub(super) struct NameArgs {
    /// The name of the allocation or task
    name: String,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `stop`.
#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// The name of the allocation or task
    name: String,

    /// Stop an allocation although volumes of its plugin are in use: mounts stay, and are undone only when the plugin is back.
    /// Until then processes that use them may hang
    #[arg(long)]
    even_if_used: bool,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `status`.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show one plugin, allocation, driver, task or volume whole, with what belongs to it. NAME, or KIND/NAME as `csi-node/zfs` or `task/web`
    name: Option<String>,

    /// Report by the exit code whether all of it is well: 0 well, 3 not, 4 no host
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `health`.
#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// A plugin, an allocation, a driver, a task or a volume: NAME, or KIND/NAME as `csi-node/zfs` or `task/web`. Without it the whole host
    name: Option<String>,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `replace`.
#[derive(Debug, Args)]
pub(super) struct ReplaceArgs {
    /// The name of the allocation to replace
    name: String,

    /// The name of the replacement, an allocation; it is started if it does not run
    #[arg(long, value_name = "NAME")]
    with: String,

    /// How long the new one must have been healthy before the old one is stopped
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    healthy_for: Duration,

    /// The timeout for that; then the new one is stopped, and the old one stays
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    within: Duration,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `shutdown`.
#[derive(Debug, Args)]
pub(super) struct ShutdownArgs {
    #[command(flatten)]
    plain: PlainArgs,

    /// Leave drivers that survive their host and their tasks running, and registrations and sockets for its next run
    #[arg(long)]
    detach: bool,
}

/// Why a request was not answered, or the answer not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write the picture: {0}")]
    Drawing(io::Error),
    #[error(transparent)]
    Left(#[from] Left),
    #[error("the host has no plugin, allocation, driver, task or volume {0:?}")]
    Unknown(String),
    #[error("the host has no volume {0}; `callboard volume list` shows those that it has")]
    UnknownVolume(String),
    #[error(
        "{allocation} has no claim to volume {name}, or has none any more; anything left to be undone of the volume is tried again \
         soon, and `callboard volume status {name}` shows it"
    )]
    NoClaim { allocation: String, name: String },
    #[error(
        "the plugin of volume {name} lists no snapshot of a group with the id {id:?}: it is deleted, or was never there; if the plugin has that \
         group all the same, give the id of each of its snapshots with --snapshot"
    )]
    NoGroup { name: String, id: String },
    #[error("the plugin of volume {0} does not confirm that it supports this usage")]
    Unconfirmed(String),
    #[error("the owner of the volumes does not answer, so their state is unknown: {0}; try again later")]
    NoVolumes(String),
    #[error("{0}")]
    Invalid(String),
    #[error("nothing was changed, since the answer was not \"yes\"")]
    Declined,
}

impl From<AdminError> for AskError {
    fn from(error: AdminError) -> Self {
        Self::Target(TargetError::Admin(error))
    }
}

impl AskError {
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Target(error) => error.exit_code(),
            Self::Invalid(_) => 2,
            Self::Output(_)
            | Self::Drawing(_)
            | Self::Left(_)
            | Self::Unknown(_)
            | Self::UnknownVolume(_)
            | Self::NoClaim { .. }
            | Self::NoGroup { .. }
            | Self::Unconfirmed(_)
            | Self::NoVolumes(_)
            | Self::Declined => 1,
        }
    }

    /// The exit code for the question whether a host is well.
    const fn health_exit_code(&self) -> u8 {
        match self {
            Self::Target(TargetError::Admin(AdminError::NoHost { .. } | AdminError::Dead { .. })) => NO_HOST,
            // Something listens there, but it does not serve as a host.
            Self::Target(
                TargetError::NotAnswering { .. }
                | TargetError::Replaced(_)
                | TargetError::Admin(
                    AdminError::TimedOut(_) | AdminError::Ended(_) | AdminError::Protocol { .. },
                ),
            ) => NOT_WELL,
            other => other.exit_code(),
        }
    }
}

/// Connects to the selected host, and sends a request.
pub(super) fn ask<F>(args: &PlainArgs, question: impl FnOnce(AdminClient) -> F) -> ExitCode
where
    F: Future<Output = Result<(), AskError>>,
{
    match judged(args, question) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_error(&error, error.exit_code()),
    }
}

/// The same, with the result of the request.
fn judged<T, F>(args: &PlainArgs, question: impl FnOnce(AdminClient) -> F) -> Result<T, AskError>
where
    F: Future<Output = Result<T, AskError>>,
{
    let socket = args.target.socket()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = AdminClient::connect(&socket).await.map_err(|error| args.target.explained(error))?;
        question(client).await
    })
}

/// `callboard status`
pub(super) fn status(args: &StatusArgs) -> ExitCode {
    let StatusArgs { name, check, plain } = args;
    let asked = judged(plain, async |mut client: AdminClient| {
        let mut status = client.status_with_events_of(name.as_deref().unwrap_or_default()).await?;
        let name = known(&status, name.as_deref())?;
        if name.is_some_and(|name| args.name.as_deref() != Some(name)) {
            status = client.status_with_events_of(name.unwrap_or_default()).await?;
        }
        let text = match name {
            Some(name) => {
                let of_it =
                    volumes::of_name(&status, name).ok_or_else(|| AskError::Unknown(name.to_owned()))?;
                let whole = whole::with_logs(json::status(&of_it));
                if plain.json { pretty(&whole) } else { whole::text(&whole, Palette::of_stdout()) }
            }
            None if plain.json => pretty(&json::status(&status)),
            None => show::status(&status, Palette::of_stdout()),
        };
        print(&text)?;
        // The judgement uses more than the shown part.
        Ok(!check || volumes::troubles(&status, name).is_empty())
    });
    ended_well(asked, if *check { AskError::health_exit_code } else { AskError::exit_code })
}

/// `callboard health`
pub(super) fn health(args: &HealthArgs) -> ExitCode {
    let HealthArgs { name, plain } = args;
    let asked = judged(plain, async |mut client: AdminClient| {
        let status = client.status().await?;
        let name = known(&status, name.as_deref())?;
        let troubles = volumes::troubles(&status, name);
        let text = match plain.json {
            true => pretty(&health::json(&troubles)),
            false => health::lines(&troubles, name, Palette::of_stdout()),
        };
        print(&text)?;
        Ok(troubles.is_empty())
    });
    ended_well(asked, AskError::health_exit_code)
}

/// The plain name of the subject of the question.
fn known<'a>(status: &wire::GetStatusResponse, name: Option<&'a str>) -> Result<Option<&'a str>, AskError> {
    let unknown = |name: &str| AskError::Unknown(name.to_owned());
    name.map(|name| volumes::plain_name(status, name).ok_or_else(|| unknown(name))).transpose()
}

/// The exit code of the question whether something is well.
fn ended_well(asked: Result<bool, AskError>, code: fn(&AskError) -> u8) -> ExitCode {
    match asked {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_WELL),
        Err(error) => report_error(&error, code(&error)),
    }
}

/// `callboard tree`
pub(super) fn tree(args: &PlainArgs) -> ExitCode {
    ask(args, async |mut client: AdminClient| {
        let root = client.tree().await?;
        let text =
            if args.json { pretty(&json::tree(&root)) } else { show::tree(&root, Palette::of_stdout()) };
        print(&text)?;
        Ok(())
    })
}

/// `callboard start NAME`
pub(super) fn start(args: &NameArgs) -> ExitCode {
    ask(&args.plain, async |mut client: AdminClient| {
        client.start(&args.name).await?;
        let text = if args.plain.json {
            pretty(&json!({ "started": args.name }))
        } else {
            format!("{} starts\n", args.name)
        };
        print(&text)?;
        Ok(())
    })
}

/// `callboard stop NAME`
pub(super) fn stop(args: &StopArgs) -> ExitCode {
    ask(&args.plain, async |mut client: AdminClient| {
        let report = client.stop(&args.name, args.even_if_used).await?;
        print(&ended(&report, args.plain.json))?;
        Ok(Left::check(&report)?)
    })
}

/// `callboard replace`
pub(super) fn replace(args: &ReplaceArgs) -> ExitCode {
    let ReplaceArgs { name, with, healthy_for, within, plain } = args;
    ask(plain, async |mut client: AdminClient| {
        let report = client.replace(name, with, *healthy_for, *within).await?;
        print(&ended(&report, plain.json))?;
        Ok(Left::check(&report)?)
    })
}

/// `callboard shutdown`
pub(super) fn shutdown(args: &ShutdownArgs) -> ExitCode {
    ask(&args.plain, async |mut client: AdminClient| {
        let report = client.shutdown(args.detach).await?;
        print(&ended(&report, args.plain.json))?;
        Ok(Left::check(&report)?)
    })
}

fn ended(report: &[wire::ChildEnding], is_json: bool) -> String {
    if is_json { pretty(&json::report(report)) } else { show::report(report, Palette::of_stdout()) }
}

pub(super) fn pretty(value: &serde_json::Value) -> String {
    json_for_terminals(&format!("{value:#}\n"))
}
