//! Commands that run beside a task: in its directory, with its environment, as its user.
//!
//! Such a command belongs to its call: when that ends, its process group is killed. The kernel kills it when the driver dies.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command as Spawning, ExitStatus, Stdio};
use std::time::Duration;

use callboard_proto::drivers::ExitResult;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::directory::TaskDirectory;
use super::enter;
use super::processes;
use super::record::EndStatus;
use super::surroundings::Surroundings;
use super::task;
use super::terminal::Terminal;
use crate::plugin::{ExecOutput, Refusal, RefusalKind};

/// The limit of each captured output; the rest is read and dropped.
const OUTPUT_BYTES_MAX: usize = 1024 * 1_024;
/// The size of one message of a stream.
pub(super) const CHUNK_BYTES: usize = 16 * 1_024;
/// The default timeout of a command.
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

/// A running command: a process group of its own, or a session of its own if it has a terminal. Drop kills all of it.
pub(super) struct Beside {
    pub(super) child: Child,
    has_terminal: bool,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Beside {
    /// The process id of the command, and of its group, until it is reaped; until then it cannot be reused.
    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
    }

    fn kill(&self) {
        let Some(group) = self.pid() else { return };
        // Fails only if the group has ended.
        let _ = kill_process_group(group, Signal::KILL);
        if self.has_terminal {
            processes::kill_session(group.as_raw_nonzero().get().cast_unsigned());
        }
    }

    /// Waits for the end of the command, kills the rest of its group, and reaps it only then, so that its process id stays
    /// valid.
    pub(super) async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            task::until_ended(pidfd_open(pid, PidfdFlags::empty())?).await?;
            self.kill();
        }
        self.child.wait().await
    }

    pub(super) fn at_pipes(around: &Surroundings, command: &[String]) -> Result<Self, Refusal> {
        Self::piped(around, command, Stdio::piped())
    }

    fn piped(around: &Surroundings, command: &[String], stdin: Stdio) -> Result<Self, Refusal> {
        let streams = [stdin, Stdio::piped(), Stdio::piped()];
        Self::start(around, command, streams, false)
    }

    /// Starts a command with a terminal, and returns the driver's end.
    pub(super) fn at_terminal(
        around: &Surroundings,
        command: &[String],
    ) -> Result<(Self, Terminal), Refusal> {
        let failed = |error: io::Error| {
            Refusal::failed(format!("cannot open a terminal for {command:?}: {error}")).recoverable(true)
        };
        let (terminal, theirs) = Terminal::open(around.context.user.as_ref()).map_err(failed)?;
        let copy = |of: &OwnedFd| of.try_clone().map(Stdio::from).map_err(failed);
        let streams = [copy(&theirs)?, copy(&theirs)?, Stdio::from(theirs)];
        Ok((Self::start(around, command, streams, true)?, terminal))
    }

    fn start(
        around: &Surroundings,
        command: &[String],
        [stdin, stdout, stderr]: [Stdio; 3],
        has_terminal: bool,
    ) -> Result<Self, Refusal> {
        if command.is_empty() {
            return Err(Refusal::invalid("no command was named"));
        }
        let failed = |error| Refusal::failed(format!("cannot run {command:?} beside the task: {error}"));
        let directory = TaskDirectory::open(&around.context).map_err(|error| {
            let path = &around.context.directory;
            Refusal::failed(format!("the task's directory {path:?} cannot be used: {error}"))
        })?;
        let mut spawning: Spawning = enter::command(&around.context, &around.groups);
        match has_terminal {
            true => spawning.arg("--terminal"),
            false => spawning.process_group(0),
        };
        // It enters the task, requests SIGKILL for the death of the driver (`PR_SET_PDEATHSIG`), and execs the command.
        spawning.args(["--", "/proc/self/exe", "bound", "--parent", &std::process::id().to_string(), "--"]);
        spawning.args(command).envs(enter::wrapped(around.environment.iter().cloned()));
        spawning.current_dir(directory.path()).stdin(stdin).stdout(stdout).stderr(stderr);
        let child = Command::from(spawning).kill_on_drop(true).spawn().map_err(failed)?;
        Ok(Self { child, has_terminal })
    }
}

/// Runs a command to its end and returns its output.
pub(super) async fn run(
    around: &Surroundings,
    command: &[String],
    limit: Duration,
) -> Result<ExecOutput, Refusal> {
    let limit = if limit.is_zero() { USUAL_TIMEOUT } else { limit };
    let mut beside = Beside::piped(around, command, Stdio::null())?;
    let (stdout, stderr) = (beside.child.stdout.take(), beside.child.stderr.take());
    let running = async { tokio::join!(beside.end(), collect(stdout), collect(stderr)) };
    match timeout(limit, running).await {
        Ok((Ok(status), stdout, stderr)) => Ok(ExecOutput { stdout, stderr, result: result(status) }),
        Ok((Err(error), _, _)) => Err(Refusal::failed(format!("cannot wait for {command:?}: {error}"))),
        Err(_) => {
            let told = format!("{command:?} did not end within {limit:?} and was killed");
            Err(Refusal::new(RefusalKind::TimedOut, told))
        }
    }
}

/// The exit of a command as hosts receive it.
pub(super) fn result(status: ExitStatus) -> ExitResult {
    let status = match (status.code(), status.signal()) {
        (_, Some(signal)) => EndStatus::Signal(signal),
        (Some(code), None) => EndStatus::Code(code),
        (None, None) => EndStatus::Unknown("it has neither a code nor a signal".to_owned()),
    };
    task::exit(&status, false).result
}

/// Reads an output to its end, and keeps a bounded part from its beginning.
async fn collect(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut kept, mut chunk) = (Vec::new(), vec![0; CHUNK_BYTES]);
    let Some(mut output) = output else { return kept };
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let room = OUTPUT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&chunk[..length.min(room)]);
    }
    kept
}
