//! `callboard watch`: shows what happens in a running host until it ends.

use std::process::ExitCode;
use std::time::Duration;

use callboard_actors::vocabulary::text::json_for_terminals;
use clap::Args;
use tokio::time::{Instant, sleep_until};

use super::ask::{AskError, PlainArgs, ask};
use super::drawing::{Drawing, drawing};
use super::{json, show};
use crate::admin::AdminClient;
use crate::output::{Palette, Reader, print};
use crate::timeline::{Drawer, Page};

/// The maximum number of messages and signs of a running host in the picture.
const MARKS_MAX: usize = 500;
/// How long a line may wait until it is drawn, together with the lines that arrive meanwhile.
const DRAWN_WITHIN: Duration = Duration::from_millis(100);

/// What can be said to `watch`.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    #[command(flatten)]
    plain: PlainArgs,

    /// Show the messages between actors instead of the status
    #[arg(long)]
    timeline: bool,

    /// Show also when an actor begins to wait for the disk, and when that is over; a diagram always does
    #[arg(long, requires = "timeline")]
    gates: bool,

    /// Draw the messages as a sequence diagram instead, into a file that ends in .svg or .mmd (Mermaid) and grows with it
    #[arg(long, value_name = "FILE", value_parser = drawing, requires = "timeline")]
    diagram: Option<Drawing>,
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

/// Draws the messages again shortly after each new one, so that the file is complete whenever this program ends. Of a long run only the end
/// is drawn.
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
        // The recorded messages are due to be drawn, or the stream has ended.
        if due.take().is_some() {
            drawing.draw(drawer.picture()).map_err(AskError::Drawing)?;
        }
        if let Some(ended) = said {
            return ended.map(|_| ()).map_err(AskError::from);
        }
    }
}

/// Waits until then, or forever.
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
