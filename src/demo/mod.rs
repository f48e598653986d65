//! `callboard demo`: the lifecycle of a storage plugin, of a task driver and of volumes with real processes, in about a minute.
//!
//! ```text
//!   chapters ── start, stop, shut down ──► admin socket of a real `callboard run` ──► plugin processes
//!      ▲                                        │ its status and every change
//!      │ scene: status, timeline                │ its timeline
//!      └──────────────── stage ◄────────────────┘
//! ```
//!
//! The demo only does what a person at a terminal could do: it starts a host, calls its admin socket, and kills processes.
//! Each chapter announces its action, shows the timeline, and checks the result. It waits for notifications, and polls files and mounts,
//! with a deadline.
//!
//! The kernel kills the host when the demo dies, and the storage plugins when the host dies. The driver and its tasks outlive
//! their host by design; a keeper beside the demo kills them. However the demo ends, no process is left.
//!
//! Volumes are mounted in a mount namespace of their own, which ends with its last process. Without root it belongs to a user namespace.

mod host;
mod namespace;
mod process_watcher;
mod workspace;

mod check;
mod disk;
mod lines;
mod mounted;
mod stage;
mod status_view;

mod chapters;

mod error;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use self::chapters::{DemoPart, play};
use self::check::Tally;
use self::error::DemoError;
pub(crate) use self::namespace::{enter as enter_namespace, hold as hold_namespace};
use self::stage::Stage;
use self::workspace::Workspace;
use crate::duration::parse_duration;
use crate::output::{Palette, Tone, complain, print};
use crate::process::Keeper;

/// The arguments of the demo.
#[derive(Debug, Clone, Args)]
pub(crate) struct DemoArgs {
    /// Keep the temporary directory with its configuration, database and logs
    #[arg(long)]
    pub(crate) keep: bool,

    /// Show the logs of the host and its plugins
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Show this part only
    #[arg(long, value_name = "PART")]
    pub(crate) part: Option<DemoPart>,

    /// Timeout of the whole demo
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = parse_duration)]
    pub(crate) limit: Duration,
}

/// How the demo ended.
#[derive(Debug)]
enum Ending {
    /// It was played to its end, or failed.
    Played(Result<(), DemoError>),
    /// The timeout expired.
    TookTooLong,
    /// A signal interrupted it.
    Interrupted,
}

/// Plays the demo. The exit code is 0 only if every check passes and the demo ends in time.
///
/// # Panics
/// Outside of a tokio runtime with time and I/O.
pub(crate) async fn run(args: &DemoArgs) -> ExitCode {
    let began = Instant::now();
    let palette = Palette::of_stdout();
    let built = Keeper::start().map_err(DemoError::Keeper);
    let built = built.and_then(|keeper| Ok((Workspace::build(args.keep, keeper.host_mark())?, keeper)));
    let (workspace, keeper) = match built {
        Ok(built) => built,
        Err(error) => return failed(&error.to_string(), 1),
    };
    let kept = args.keep.then(|| workspace.path().to_owned());
    let mut stage = Stage::new(workspace, keeper, palette, args.verbose);
    let ending = bounded(&mut stage, args).await;
    let (tally, not_shown) = (stage.tally, stage.not_shown.take());
    let (mut text, code) = verdict(&ending, tally, not_shown.as_deref(), began.elapsed(), args.limit);
    let has_failed = code != 0 && !matches!(ending, Ending::Interrupted);
    if has_failed && let Some(disk) = disk::trouble(&stage.workspace).await {
        text = format!("{text}\n{disk}");
    }
    stage.clear().await;
    let kept = kept.map_or_else(String::new, |path| format!("\nKept: {}\n", path.display()));
    let told = match code {
        0 => print(&format!("{kept}\n{}\n", palette.paint(Tone::Good, &text))),
        _ => print(&kept),
    };
    match (told, code) {
        (Err(error), _) => failed(&DemoError::Output(error).to_string(), 1),
        (Ok(_), 0) => ExitCode::SUCCESS,
        (Ok(_), code) => failed(&text, code),
    }
}

fn failed(text: &str, code: u8) -> ExitCode {
    // It may contain the end of a log.
    format!("callboard: {text}").lines().for_each(complain);
    ExitCode::from(code)
}

/// Plays until the end, the timeout, or a signal.
async fn bounded(stage: &mut Stage, args: &DemoArgs) -> Ending {
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (mut interrupt, mut terminate) = match (interrupt, terminate) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        (Err(source), _) | (_, Err(source)) => return Ending::Played(Err(DemoError::Signals(source))),
    };
    tokio::select! {
        biased;
        _ = interrupt.recv() => Ending::Interrupted,
        _ = terminate.recv() => Ending::Interrupted,
        played = timeout(args.limit, play(stage, args.part)) => played.map_or(Ending::TookTooLong, Ending::Played),
    }
}

/// The closing message, and the exit code.
fn verdict(
    ending: &Ending,
    tally: Tally,
    not_shown: Option<&str>,
    took: Duration,
    limit: Duration,
) -> (String, u8) {
    let Tally { held, failed } = tally;
    match (ending, not_shown) {
        (Ending::Played(Ok(())), Some(not_shown)) if held + failed == 0 => (not_shown.to_owned(), 1),
        (Ending::Played(Ok(())), _) if failed == 0 => {
            let but = not_shown.map(|not_shown| format!(" But {not_shown}.")).unwrap_or_default();
            (format!("All {held} checks hold, in {:.1} s.{but}", took.as_secs_f64()), 0)
        }
        (Ending::Played(Ok(()) | Err(DemoError::StepFailed)), _) => {
            (format!("{failed} of {} checks did not hold", held + failed), 1)
        }
        (Ending::Played(Err(error)), _) => (format!("the demo cannot go on: {error}"), 1),
        (Ending::TookTooLong, _) => {
            (format!("the demo was not over within {limit:?}, after {held} checks that held"), 1)
        }
        (Ending::Interrupted, _) => {
            ("the demo was interrupted; everything it started has ended".to_owned(), 130)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_secs(12);
    const LIMIT: Duration = Duration::from_secs(60);

    fn judged(ending: Ending, held: usize, failed: usize) -> (String, u8) {
        verdict(&ending, Tally { held, failed }, None, TOOK, LIMIT)
    }

    #[test]
    fn all_is_well_only_when_it_was_played_to_its_end_and_every_check_held() {
        assert_eq!(judged(Ending::Played(Ok(())), 30, 0), ("All 30 checks hold, in 12.0 s.".to_owned(), 0));
    }

    #[test]
    fn what_the_system_forbids_is_told_and_is_a_failure_only_if_nothing_else_was_shown() {
        let judged = |held, failed| {
            let ending = Ending::Played(Ok(()));
            verdict(&ending, Tally { held, failed }, Some("volumes were not shown: no"), TOOK, LIMIT)
        };
        let told = "All 30 checks hold, in 12.0 s. But volumes were not shown: no.";
        assert_eq!(judged(30, 0), (told.to_owned(), 0));
        assert_eq!(judged(29, 1), ("1 of 30 checks did not hold".to_owned(), 1));
        assert_eq!(judged(0, 0), ("volumes were not shown: no".to_owned(), 1));
    }

    #[test]
    fn one_check_that_does_not_hold_is_a_failure_wherever_it_stands() {
        let expected = ("1 of 30 checks did not hold".to_owned(), 1);
        assert_eq!(judged(Ending::Played(Ok(())), 29, 1), expected);
        assert_eq!(judged(Ending::Played(Err(DemoError::StepFailed)), 29, 1), expected);
    }

    #[test]
    fn what_cannot_go_on_takes_too_long_or_is_interrupted_is_a_failure() {
        let lost = DemoError::StreamEnded { stream: "timeline" };
        assert_eq!(judged(Ending::Played(Err(lost)), 3, 0).1, 1);
        assert_eq!(judged(Ending::TookTooLong, 3, 0).1, 1);
        assert_eq!(judged(Ending::Interrupted, 3, 0).1, 130);
    }
}
