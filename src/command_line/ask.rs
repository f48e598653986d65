//! The commands that ask a running host.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use callboard_actors::vocabulary::text::json_for_terminals;
use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::drawing::{Drawing, drawing};
use super::left::Left;
use super::target::{TargetArgs, TargetError};
use super::{health, json, show, told, whole};
use crate::admin::{AdminClient, AdminError};
use crate::duration::parse_duration;
use crate::output::{Palette, Reader, print};
use crate::timeline::{Drawer, Page};

/// How many messages and signs of a running host are drawn at most.
const MARKS_MAX: usize = 500;
/// How long a line may wait until it stands in the picture, with those that come meanwhile.
const DRAWN_WITHIN: Duration = Duration::from_millis(100);

/// The exit code where something is not well.
const NOT_WELL: u8 = 3;
/// The exit code where it was asked whether something is well, and no host runs.
const NO_HOST: u8 = 4;

/// What can be said to a command without a name.
#[derive(Debug, Args)]
pub(super) struct PlainArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Print JSON with documented, stable keys
    #[arg(long)]
    json: bool,
}

/// What can be said to a command about one allocation or task.
#[derive(Debug, Args)]
pub(super) struct NameArgs {
    /// The name of the allocation or task
    name: String,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `status`.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show one plugin, allocation, driver or task whole, with what belongs to it
    name: Option<String>,

    /// Tell by the exit code whether all of it is well: 0 well, 3 not, 4 no host
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `health`.
#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// A plugin, an allocation, a driver or a task; without it the whole host
    name: Option<String>,

    #[command(flatten)]
    plain: PlainArgs,
}

/// What can be said to `replace`.
#[derive(Debug, Args)]
pub(super) struct ReplaceArgs {
    /// The name of the allocation that is to leave
    name: String,

    /// The name of the allocation that is to take its place; it is started if it does not run
    #[arg(long, value_name = "NAME")]
    with: String,

    /// How long the new one must have been healthy before the old one leaves
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

/// What can be said to `watch`.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    #[command(flatten)]
    plain: PlainArgs,

    /// Show who says what to whom instead of the status
    #[arg(long)]
    timeline: bool,

    /// Show also when an actor begins to wait for the disk, and when that is over; a diagram always does
    #[arg(long, requires = "timeline")]
    gates: bool,

    /// Draw what is said as a sequence diagram instead, into a file that ends in .svg or .mmd (Mermaid) and grows with it
    #[arg(long, value_name = "FILE", value_parser = drawing, requires = "timeline")]
    diagram: Option<Drawing>,
}

/// Why a question was not answered, or the answer not written.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write the picture: {0}")]
    Drawing(io::Error),
    #[error(transparent)]
    Left(#[from] Left),
    #[error("the host has no plugin, allocation, driver or task {0:?}")]
    Unknown(String),
}

impl From<AdminError> for AskError {
    fn from(error: AdminError) -> Self {
        Self::Target(TargetError::Admin(error))
    }
}

impl AskError {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Target(error) => error.exit_code(),
            Self::Output(_) | Self::Drawing(_) | Self::Left(_) | Self::Unknown(_) => 1,
        }
    }

    /// The exit code where it is asked whether a host is well.
    const fn health_exit_code(&self) -> u8 {
        match self {
            Self::Target(TargetError::Admin(AdminError::NoHost { .. } | AdminError::Dead { .. })) => NO_HOST,
            other => other.exit_code(),
        }
    }
}

/// Connects to the host that is meant, and lets a question be asked.
fn ask<F>(args: &PlainArgs, question: impl FnOnce(AdminClient) -> F) -> ExitCode
where
    F: Future<Output = Result<(), AskError>>,
{
    match judged(args, question) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => told(&error, error.exit_code()),
    }
}

/// The same with what came of the question.
fn judged<T, F>(args: &PlainArgs, question: impl FnOnce(AdminClient) -> F) -> Result<T, AskError>
where
    F: Future<Output = Result<T, AskError>>,
{
    let socket = args.target.socket()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { question(AdminClient::connect(&socket).await?).await })
}

/// `callboard status`
pub(super) fn status(args: &StatusArgs) -> ExitCode {
    let StatusArgs { name, check, plain } = args;
    let asked = judged(plain, async |mut client: AdminClient| {
        let mut status = client.status_with_events_of(name.as_deref().unwrap_or_default()).await?;
        let text = match name {
            Some(name) => {
                status = health::of_name(&status, name).ok_or_else(|| AskError::Unknown(name.clone()))?;
                let whole = whole::with_logs(json::status(&status));
                if plain.json { pretty(&whole) } else { whole::text(&whole, Palette::of_stdout()) }
            }
            None if plain.json => pretty(&json::status(&status)),
            None => show::status(&status, Palette::of_stdout()),
        };
        print(&text)?;
        Ok(!check || health::troubles(&status, name.as_deref()).is_empty())
    });
    ended_well(asked, if *check { AskError::health_exit_code } else { AskError::exit_code })
}

/// `callboard health`
pub(super) fn health(args: &HealthArgs) -> ExitCode {
    let HealthArgs { name, plain } = args;
    let asked = judged(plain, async |mut client: AdminClient| {
        let status = client.status().await?;
        if let Some(name) = name.as_ref().filter(|name| health::of_name(&status, name).is_none()) {
            return Err(AskError::Unknown(name.clone()));
        }
        let troubles = health::troubles(&status, name.as_deref());
        let text = match plain.json {
            true => pretty(&health::json(&troubles)),
            false => health::lines(&troubles, Palette::of_stdout()),
        };
        print(&text)?;
        Ok(troubles.is_empty())
    });
    ended_well(asked, AskError::health_exit_code)
}

/// The exit code of a question whether something is well.
fn ended_well(asked: Result<bool, AskError>, code: fn(&AskError) -> u8) -> ExitCode {
    match asked {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_WELL),
        Err(error) => told(&error, code(&error)),
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

/// `callboard watch`
pub(super) fn watch(args: &WatchArgs) -> ExitCode {
    let WatchArgs { plain, timeline, gates, diagram } = args;
    if let Some(drawing) = diagram {
        let title = format!("the running host of {}: messages between its actors", plain.target);
        return ask(plain, async |client: AdminClient| draw_timeline(client, drawing, title).await);
    }
    ask(plain, async |client: AdminClient| match (*timeline, plain.json) {
        (false, is_json) => watch_status(client, is_json).await,
        (true, false) => watch_timeline(client, *gates).await,
        (true, true) => watch_timeline_in_json(client, *gates).await,
    })
}

async fn watch_status(mut client: AdminClient, is_json: bool) -> Result<(), AskError> {
    let palette = Palette::of_stdout();
    let mut watched = client.watch().await?;
    while let Some(response) = watched.next().await? {
        let text = if is_json {
            format!("{}\n", json_for_terminals(&json::watched(&response).to_string()))
        } else {
            show::watched(&response, palette)
        };
        if print(&text)? == Reader::HasLeft {
            break;
        }
    }
    Ok(())
}

async fn watch_timeline(mut client: AdminClient, gates: bool) -> Result<(), AskError> {
    let mut page = Page::new(Palette::of_stdout());
    let mut told = client.timeline(gates).await?;
    while let Some(said) = told.next().await? {
        if let Some(text) = page.say(said)
            && print(&format!("{text}\n"))? == Reader::HasLeft
        {
            return Ok(());
        }
    }
    if let Some(text) = page.release() {
        print(&format!("{text}\n"))?;
    }
    Ok(())
}

/// Draws what is said, anew soon after something was, so that the file is whole whenever this is ended. Of a long run the end is
/// drawn.
async fn draw_timeline(mut client: AdminClient, drawing: &Drawing, title: String) -> Result<(), AskError> {
    let mut told = client.timeline(true).await?;
    let mut drawer = Drawer::new(title);
    let mut due = None;
    loop {
        let said = tokio::select! {
            biased;
            () = at(due) => None,
            said = told.next() => Some(said),
        };
        if let Some(Ok(Some(said))) = said {
            drawer.draw(&said);
            drawer.keep(MARKS_MAX);
            due = due.or_else(|| Some(Instant::now() + DRAWN_WITHIN));
            continue;
        }
        // It is time to draw what was said, or nothing more comes.
        if due.take().is_some() {
            drawing.draw(drawer.picture()).map_err(AskError::Drawing)?;
        }
        if let Some(ended) = said {
            return ended.map(|_| ()).map_err(AskError::from);
        }
    }
}

/// Waits until then, or for ever.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn watch_timeline_in_json(mut client: AdminClient, gates: bool) -> Result<(), AskError> {
    let mut told = client.timeline(gates).await?;
    while let Some(said) = told.next().await? {
        if print(&format!("{}\n", json_for_terminals(&json::said(&said).to_string())))? == Reader::HasLeft {
            break;
        }
    }
    Ok(())
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
pub(super) fn stop(args: &NameArgs) -> ExitCode {
    ask(&args.plain, async |mut client: AdminClient| {
        let report = client.stop(&args.name).await?;
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

fn pretty(value: &serde_json::Value) -> String {
    json_for_terminals(&format!("{value:#}\n"))
}
