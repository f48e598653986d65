//! Faults of the driver on request: tests and demonstrations show how its host reacts (D.10 of the protocol facts).

use std::fs::OpenOptions;
use std::future::pending;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use callboard_actors::csi::Code;
use callboard_actors::vocabulary::milliseconds;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tonic::Status;

use super::error::ExecError;
use super::flooding::ConnectionFlood;
use super::odd_texts::OddTexts;
use crate::duration::parse_duration;
use crate::plugin::{Conduct, HandshakeLine, Refusal, RefusalKind, print};

/// The faults. By default there are none.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Faults")]
pub struct FaultArgs {
    /// Print this before the line; may be given several times, an empty text is an empty line
    #[arg(long, value_name = "TEXT")]
    pub stray_line: Vec<String>,

    /// Never print the line
    #[arg(long)]
    pub no_line: bool,

    /// Print this instead of the line; {socket} stands for the path of the socket
    #[arg(long, value_name = "TEXT", conflicts_with = "no_line")]
    pub line: Option<String>,

    /// Claim to speak this version in the line
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["no_line", "line"])]
    pub app_version: Option<u32>,

    /// Demand certificates: print one in the line
    #[arg(long, conflicts_with_all = ["no_line", "line"])]
    pub insist_on_tls: bool,

    /// Print the line only after this much time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub start_after: Option<Duration>,

    /// End before the line, with this exit code
    #[arg(long, value_name = "CODE")]
    pub exit_before_line: Option<u8>,

    /// Name a socket on which nothing listens
    #[arg(long)]
    pub no_listener: bool,

    /// Start a copy of itself that continues, and exit
    #[arg(long)]
    pub fork_and_exit: bool,

    /// Never answer health checks
    #[arg(long)]
    pub hang_health: bool,

    /// Ignore Shutdown
    #[arg(long)]
    pub ignore_shutdown: bool,

    /// Ignore SIGTERM
    #[arg(long)]
    pub ignore_sigterm: bool,

    /// Leave Init unimplemented
    #[arg(long)]
    pub without_init: bool,

    /// Never answer this call, for instance StartTask; may be given several times
    #[arg(long, value_name = "RPC", value_parser = rpc)]
    pub hang: Vec<&'static str>,

    /// Answer this call with this error, for instance StartTask=UNAVAILABLE; may be given several times
    #[arg(long, value_name = "RPC=CODE", value_parser = rpc_and_code)]
    pub fail: Vec<(&'static str, Code)>,

    /// Panic in this call, for instance StartTask; may be given several times
    #[arg(long, value_name = "RPC", value_parser = rpc)]
    pub crash: Vec<&'static str>,

    /// Start each task, but answer with this error
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub refuse_started: Option<Code>,

    /// Report the exit of a task as unknown to callers that wait for it, although InspectTask reports it
    #[arg(long)]
    pub lose_exits: bool,

    /// End the stream of fingerprints after this many
    #[arg(long, value_name = "NUMBER")]
    pub fingerprints_end_after: Option<usize>,

    /// How that stream ends
    #[arg(long, value_name = "HOW", default_value = "end", requires = "fingerprints_end_after")]
    pub fingerprints_end: StreamEnd,

    /// Report as unhealthy until this much time has passed since the start
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub unhealthy_for: Option<Duration>,

    /// Delay each start by this much time, and do not know the task until then; a timeout of the host does not cancel it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub late_start: Option<Duration>,

    /// Let the supervisor of each new task hang
    #[arg(long, value_name = "WHEN")]
    pub supervisor_hangs: Option<SupervisorHang>,

    /// Break each stream of task events after this many
    #[arg(long, value_name = "NUMBER")]
    pub events_break_after: Option<usize>,

    /// Write this many bytes to standard output after the line, as fast as it takes them
    #[arg(long, value_name = "BYTES")]
    pub flood_stdout: Option<u64>,

    /// Write this many bytes to standard error after the line, as fast as it takes them
    #[arg(long, value_name = "BYTES")]
    pub flood_stderr: Option<u64>,

    /// Write one line of this many bytes to standard error after the line
    #[arg(long, value_name = "BYTES")]
    pub long_line: Option<usize>,

    /// Write malformed JSON to the log: with wrong types, truncated, or no JSON
    #[arg(long)]
    pub odd_log: bool,

    /// Close standard output and standard error after the line
    #[arg(long)]
    pub close_output: bool,

    /// Panic after this much time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub panic_after: Option<Duration>,

    /// The flood of the connection.
    #[command(flatten)]
    pub connection: ConnectionFlood,

    /// The texts to send.
    #[command(flatten)]
    pub texts: OddTexts,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StreamEnd {
    /// In order, without an error
    #[default]
    End,
    /// With an error
    Error,
}

/// When the supervisor of a task hangs: forever, without an answer to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum SupervisorHang {
    /// Before it starts the task
    BeforeStart,
    /// When it has started the task
    AfterStart,
}

/// The calls that can hang or fail, by their names in the protocol, without those that only identify the driver.
const RPCS: [&str; 15] = [
    "SetConfig",
    "Init",
    "Fingerprint",
    "RecoverTask",
    "StartTask",
    "WaitTask",
    "StopTask",
    "DestroyTask",
    "InspectTask",
    "TaskStats",
    "TaskEvents",
    "SignalTask",
    "ExecTask",
    "ExecTaskStreaming",
    "Shutdown",
];

/// The line of a flood.
const FLOOD_LINE: &[u8] =
    b"2026-11-21 a line of a flood that says nothing, over and over, so that no reader can keep up\n";
/// Lines that break log parsers (D73, D74, D76).
const ODD_LINES: [&str; 9] = [
    r#"{"@message":5,"@level":"info","@timestamp":"2026-11-21T12:00:00.000000Z"}"#,
    r#"{"@message":"odd","@level":["info"],"@timestamp":{}}"#,
    r#"{"@message":"odd","@level":"shout"}"#,
    r#"{"@message":"odd","@level":"info","@timestamp":"yesterday"}"#,
    r#"{"@message":"torn"#,
    "[]",
    "[WARN] a line with a tag",
    "\u{1b}[31mred\u{1b}[0m \u{0} and a zero",
    "",
];

#[derive(Debug)]
pub(super) struct Faults {
    args: FaultArgs,
    born: Instant,
}

impl Faults {
    pub(super) fn begin(args: &FaultArgs) -> Self {
        Self { args: args.clone(), born: Instant::now() }
    }

    /// Runs the faults before the line. Returns the text to print as the line, if any.
    pub(super) async fn before_line(&self, line: &HandshakeLine) -> Result<Option<String>, ExecError> {
        for stray in &self.args.stray_line {
            print(stray).map_err(ExecError::Fault)?;
        }
        tokio::time::sleep(self.args.start_after.unwrap_or_default()).await;
        if let Some(code) = self.args.exit_before_line {
            return Err(ExecError::EarlyEnd { code });
        }
        Ok(if self.args.no_line { None } else { Some(self.line(line)) })
    }

    fn line(&self, line: &HandshakeLine) -> String {
        let mut claimed = line.clone();
        if let Some(version) = self.args.app_version {
            claimed.app_version = version;
        }
        if self.args.no_listener {
            claimed.socket.as_mut_os_string().push("-unused");
        }
        match &self.args.line {
            Some(text) => text.replace("{socket}", &claimed.socket.display().to_string()),
            // The field has to be longer than any that older plugins print there (D27).
            None if self.args.insist_on_tls => format!("{claimed}{}", "MIIB".repeat(64)),
            None => claimed.to_string(),
        }
    }

    pub(super) const fn forks(&self) -> bool {
        self.args.fork_and_exit
    }

    /// Starts a copy of this process without this fault.
    pub(super) fn fork() -> io::Result<()> {
        let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--fork-and-exit");
        Command::new("/proc/self/exe").args(arguments).stdin(Stdio::null()).spawn().map(drop)
    }

    /// Runs the faults after the line. Slow ones run in threads, which end with the process.
    pub(super) fn after_line(&self) -> io::Result<()> {
        if self.args.odd_log {
            ODD_LINES.iter().try_for_each(|line| writeln!(io::stderr().lock(), "{line}"))?;
        }
        if let Some(length) = self.args.long_line {
            let mut line = vec![b'x'; length];
            line.push(b'\n');
            write_beside(io::stderr().as_fd().try_clone_to_owned()?.into(), line, 1)?;
        }
        let times = |bytes: u64| bytes / FLOOD_LINE.len() as u64 + 1;
        if let Some(bytes) = self.args.flood_stdout {
            let host = io::stdout().as_fd().try_clone_to_owned()?;
            write_beside(host.into(), FLOOD_LINE.to_vec(), times(bytes))?;
        }
        if let Some(bytes) = self.args.flood_stderr {
            let host = io::stderr().as_fd().try_clone_to_owned()?;
            write_beside(host.into(), FLOOD_LINE.to_vec(), times(bytes))?;
        }
        if self.args.close_output {
            let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
            rustix::stdio::dup2_stdout(&nowhere)?;
            rustix::stdio::dup2_stderr(&nowhere)?;
        }
        Ok(())
    }

    pub(super) const fn conduct(&self) -> Conduct {
        Conduct {
            hears_sigterm: !self.args.ignore_sigterm,
            hears_shutdown: !self.args.ignore_shutdown,
            answers_health: !self.args.hang_health,
            keeps_output: !self.args.close_output,
            on_connection: self.args.connection.begin(),
        }
    }

    /// Waits for the requested panic, or forever.
    pub(super) async fn panic(&self) -> std::convert::Infallible {
        match self.args.panic_after {
            Some(after) => tokio::time::sleep_until(self.born + after).await,
            None => pending().await,
        }
        // In the format of a Go program, so that log parsers recognise the lines that follow (D74).
        let _ = writeln!(io::stderr().lock(), "panic: as --panic-after demands");
        panic!("the driver panics, as --panic-after demands");
    }

    /// Runs before every answer: hangs or fails if that was requested for this call.
    pub(super) async fn before(&self, rpc: &'static str) -> Result<(), Refusal> {
        tracing::debug!(rpc, "called");
        if self.args.hang.contains(&rpc) {
            pending::<()>().await;
        }
        if self.args.crash.contains(&rpc) {
            // Like a driver in Go: a panic in one call ends the process.
            let trace = format!("panic: told to crash in {rpc}\n\ngoroutine 7 [running]:\nmain.handle()\n");
            let written = io::stderr().write_all(trace.as_bytes());
            std::process::exit(if written.is_ok() { 2 } else { 3 });
        }
        match self.args.fail.iter().find(|(failing, _)| *failing == rpc) {
            Some((_, code)) => Err(Refusal::new(
                RefusalKind::Code(Status::new(code.number().into(), "").code()),
                self.texts()
                    .say_of_failures
                    .clone()
                    .unwrap_or_else(|| format!("{rpc} fails, as it was told to")),
            )),
            None => Ok(()),
        }
    }

    /// Runs after a task was started: returns an error if that was requested.
    pub(super) fn after_start(&self) -> Result<(), Refusal> {
        match self.args.refuse_started {
            Some(code) => Err(Refusal::new(
                RefusalKind::Code(Status::new(code.number().into(), "").code()),
                "the start fails when it is done, as it was told to",
            )),
            None => Ok(()),
        }
    }

    pub(super) const fn texts(&self) -> &OddTexts {
        &self.args.texts
    }

    pub(super) const fn has_init(&self) -> bool {
        !self.args.without_init
    }

    /// The remaining time for which the driver has to report as unhealthy, if any.
    pub(super) fn unhealthy_for(&self) -> Option<Duration> {
        self.args.unhealthy_for?.checked_sub(self.born.elapsed())
    }

    pub(super) fn fingerprints_end(&self) -> Option<(usize, StreamEnd)> {
        self.args.fingerprints_end_after.map(|after| (after, self.args.fingerprints_end))
    }

    /// Delays a start, if that was requested.
    pub(super) async fn before_start(&self) {
        if let Some(late) = self.args.late_start {
            tracing::info!(late_ms = milliseconds(late), "delaying a start, as --late-start demands");
            tokio::time::sleep(late).await;
        }
    }

    pub(super) const fn loses_exits(&self) -> bool {
        self.args.lose_exits
    }

    pub(super) const fn supervisor_hangs(&self) -> Option<SupervisorHang> {
        self.args.supervisor_hangs
    }

    pub(super) const fn events_break_after(&self) -> Option<usize> {
        self.args.events_break_after
    }
}

/// Writes the same bytes repeatedly, in a thread. It ends when the reader is gone.
fn write_beside(mut to: std::fs::File, bytes: Vec<u8>, times: u64) -> io::Result<()> {
    let writing = move || drop((0..times).try_for_each(|_| to.write_all(&bytes)));
    std::thread::Builder::new().name("fault".to_owned()).spawn(writing).map(drop)
}

fn rpc(name: &str) -> Result<&'static str, String> {
    let named = RPCS.into_iter().find(|rpc| *rpc == name);
    named.ok_or_else(|| format!("expected one of {}", RPCS.join(", ")))
}

fn rpc_and_code(text: &str) -> Result<(&'static str, Code), String> {
    let (name, named) =
        text.split_once('=').ok_or("expected RPC=CODE, for instance StartTask=UNAVAILABLE")?;
    Ok((rpc(name)?, code(named)?))
}

fn code(name: &str) -> Result<Code, String> {
    let named = Code::ALL.into_iter().find(|known| known.as_str() == name);
    named.ok_or_else(|| format!("expected one of the codes {}", Code::ALL.map(Code::as_str).join(", ")))
}
