//! `callboard script`: plays message scripts, and checks or records their responses.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use tokio::runtime::Builder;

use super::drawing::{Drawing, drawing};
use super::report_error;
use super::signals::Signals;
use crate::output::{self, Palette, Tone, complain};
use crate::script::{Player, ScriptError, Verdict};

/// The exit code of a script with other responses than recorded.
const DIFFERENT: u8 = 1;
/// The exit code of a script that could not be played to its end or written, and of a command that was not understood.
const NOT_PLAYED: u8 = 2;

/// What can be told to `callboard script`.
#[derive(Debug, Args)]
pub(super) struct ScriptArgs {
    /// The scripts to play; what they are is described in docs/scripts.md
    #[arg(value_name = "FILE", required_unless_present = "verbs")]
    files: Vec<PathBuf>,

    /// Write the responses into the files instead of comparing them
    #[arg(long)]
    update: bool,

    /// Show the responses, and neither compare nor write them
    #[arg(long, conflicts_with = "update")]
    show: bool,

    /// Draw the run as a sequence diagram as well, into a file that ends in .svg or .mmd (Mermaid)
    #[arg(long, value_name = "FILE", value_parser = drawing, conflicts_with_all = ["update", "show"])]
    diagram: Option<Drawing>,

    /// List every verb with its words
    #[arg(long, exclusive = true)]
    verbs: bool,
}

/// Plays every script. The worst result of any of them is the exit code.
pub(super) fn script(args: &ScriptArgs) -> ExitCode {
    if args.diagram.is_some() && args.files.len() > 1 {
        complain("callboard: one picture shows one script; give one FILE with --diagram");
        return ExitCode::from(NOT_PLAYED);
    }
    let mut player = Player::new();
    if args.verbs {
        return ExitCode::from(printed(
            &player.usages().into_iter().map(|usage| format!("{usage}\n")).collect::<String>(),
        ));
    }
    let is_over = match heed_signals() {
        Ok(is_over) => is_over,
        Err(error) => {
            complain(&format!("callboard: cannot listen for signals: {error}"));
            return ExitCode::from(NOT_PLAYED);
        }
    };
    let is_noted = Arc::clone(&is_over);
    player.give_up_once(move || is_noted.load(Ordering::Relaxed));
    let codes = args.files.iter().take_while(|_| !is_over.load(Ordering::Relaxed)).map(|file| {
        played(&mut player, file, args).unwrap_or_else(|error| {
            let _ = report_error(&error, NOT_PLAYED);
            NOT_PLAYED
        })
    });
    match codes.max().unwrap_or_default() {
        0 if args.update || args.show => ExitCode::SUCCESS,
        0 => ExitCode::from(printed(&match args.files.len() {
            1 => "1 script went as recorded\n".to_owned(),
            count => format!("{count} scripts went as recorded\n"),
        })),
        code => ExitCode::from(code),
    }
}

/// Records that the user requests an end, so that the script is given up and leaves nothing behind. A second request does not wait for its
/// line.
fn heed_signals() -> io::Result<Arc<AtomicBool>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let mut signals = Signals::listen()?;
    drop(entered);
    let is_over = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&is_over);
    let heed = async move {
        signals.next().await;
        noted.store(true, Ordering::Relaxed);
        signals.next().await;
        std::process::exit(NOT_PLAYED.into());
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(heed))?;
    Ok(is_over)
}

fn played(player: &mut Player, file: &Path, args: &ScriptArgs) -> Result<u8, ScriptError> {
    if args.show {
        let played = player.play_file(file)?;
        return Ok(printed(&played.text));
    }
    if args.update {
        let is_new = player.update(file)?;
        let told = if is_new { "updated" } else { "as it was" };
        complain(&format!("{}: {told}", file.display()));
        return Ok(0);
    }
    let (verdict, picture) = player.check_and_draw(file)?;
    if let Some(drawing) = &args.diagram {
        let unwritten = |source| ScriptError::Unwritten { path: drawing.path(), source };
        drawing.draw(&picture).map_err(unwritten)?;
    }
    match verdict {
        Verdict::Same => Ok(0),
        Verdict::Different { diff } => {
            let _ = printed(&painted(&diff));
            Ok(DIFFERENT)
        }
    }
}

/// Prints a text, or reports why it cannot. Returns the exit code.
fn printed(text: &str) -> u8 {
    match output::print(text) {
        Ok(_) => 0,
        Err(error) => {
            complain(&format!("callboard: cannot write to standard output: {error}"));
            1
        }
    }
}

/// Colours a difference.
fn painted(diff: &str) -> String {
    let palette = Palette::of_stdout();
    let lines = diff.lines().map(|line| {
        let tone = match line.as_bytes().first() {
            Some(b'-') => Tone::Bad,
            Some(b'+') => Tone::Good,
            Some(b'@') => Tone::Faint,
            Some(_) | None => Tone::Plain,
        };
        palette.paint(tone, line) + "\n"
    });
    lines.collect()
}
