//! Commands that run beside a task: in its directory, with its environment, as its user.
//!
//! Such a command belongs to the call that asked for it. It is bound to the driver by the kernel, and ended with its whole group
//! when the call ends, whichever way.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use callboard_proto::drivers::exec_task_streaming_request::Setup;
use callboard_proto::drivers::{
    ExecTaskStreamingIoOperation, ExecTaskStreamingRequest, ExecTaskStreamingResponse, ExitResult,
};
use futures_util::StreamExt;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use super::directory::TaskDirectory;
use super::record::{EndStatus, TaskOrder};
use super::task;
use crate::plugin::{Answers, ExecOutput, Refusal, RefusalKind};

/// How much of each output is kept for a call that is answered at once; the rest is read and left out.
const OUTPUT_BYTES_MAX: usize = 1024 * 1_024;
/// How much travels in one message of a stream.
const CHUNK_BYTES: usize = 16 * 1_024;
/// How many messages may wait for the host.
const WAITING_MAX: usize = 16;
/// How long a command may take if the host names no time.
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

/// A command that runs, a group of its own. Dropped, the whole group is killed.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Beside {
    /// The command's own process, and its group, as long as it is not reaped: nobody else can have the number.
    fn pid(&self) -> Option<Pid> {
        self.0.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
    }

    /// Kills the whole group.
    fn kill(&self) {
        if let Some(group) = self.pid() {
            // A group that has ended needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Waits for the end of the command, and ends with it what it has left of its group. It is reaped after that, so that the
    /// number is still its own.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(pid) = self.pid() {
            task::until_ended(pidfd_open(pid, PidfdFlags::empty())?).await?;
            self.kill();
        }
        self.0.wait().await
    }

    fn start(order: &TaskOrder, command: &[String], stdin: Stdio) -> Result<Self, Refusal> {
        if command.is_empty() {
            return Err(Refusal::invalid("no command was named"));
        }
        let failed = |error| Refusal::failed(format!("cannot run {command:?} beside the task: {error}"));
        let directory = TaskDirectory::open(order).map_err(|error| {
            Refusal::failed(format!("the task's directory {:?} cannot be used: {error}", order.directory))
        })?;
        let mut child = Command::new("/proc/self/exe");
        // Our own program asks the kernel to be killed with the driver, and becomes the command.
        child.args(["bound", "--parent", &std::process::id().to_string(), "--"]).args(command);
        child.env_clear().envs(&order.environment).current_dir(directory.path()).process_group(0);
        child.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(user) = order.user {
            child.uid(user.uid).gid(user.gid);
        }
        child.spawn().map(Self).map_err(failed)
    }
}

/// Runs a command to its end and gives what it printed.
pub(super) async fn run(
    order: &TaskOrder,
    command: &[String],
    limit: Duration,
) -> Result<ExecOutput, Refusal> {
    let limit = if limit.is_zero() { USUAL_TIMEOUT } else { limit };
    let mut beside = Beside::start(order, command, Stdio::null())?;
    let (stdout, stderr) = (beside.0.stdout.take(), beside.0.stderr.take());
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

fn result(status: ExitStatus) -> ExitResult {
    let status = match (status.code(), status.signal()) {
        (_, Some(signal)) => EndStatus::Signal(signal),
        (Some(code), None) => EndStatus::Code(code),
        (None, None) => EndStatus::Unknown("it has neither a code nor a signal".to_owned()),
    };
    task::exit(&status, false).result
}

/// Reads an output to its end and keeps the beginning.
async fn collect(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut kept, mut chunk) = (Vec::new(), vec![0; CHUNK_BYTES]);
    let Some(mut output) = output else { return kept };
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let room = OUTPUT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&chunk[..length.min(room)]);
    }
    kept
}

/// Reads which command is wanted: the first request says so.
pub(super) async fn setup(requests: &mut Answers<ExecTaskStreamingRequest>) -> Result<Setup, Refusal> {
    let first = requests.next().await.ok_or_else(|| Refusal::invalid("no request came"))??;
    let setup = first.setup.ok_or_else(|| Refusal::invalid("the first request names no command"))?;
    if setup.tty {
        return Err(Refusal::unsupported("terminals; ask for the command without one"));
    }
    Ok(setup)
}

/// Runs a command with its input and output as streams.
pub(super) fn stream(
    order: &TaskOrder,
    command: &[String],
    requests: Answers<ExecTaskStreamingRequest>,
) -> Result<Answers<ExecTaskStreamingResponse>, Refusal> {
    let mut beside = Beside::start(order, command, Stdio::piped())?;
    let (answers, received) = mpsc::channel(WAITING_MAX);
    let input = beside.0.stdin.take();
    tokio::spawn(async move {
        tokio::select! {
            () = converse(&mut beside, &answers) => {}
            // A host that breaks off wants the command no longer; one that has said all it had to say does.
            () = feed(input, requests) => {}
            // Nobody listens any more.
            () = answers.closed() => {}
        }
    });
    Ok(Box::pin(ReceiverStream::new(received)))
}

type Responses = mpsc::Sender<Result<ExecTaskStreamingResponse, Refusal>>;

/// Sends what the command prints, and then how it ended.
async fn converse(beside: &mut Beside, answers: &Responses) {
    let (stdout, stderr) = (beside.0.stdout.take(), beside.0.stderr.take());
    let of_stdout = |operation| ExecTaskStreamingResponse { stdout: Some(operation), ..Default::default() };
    let of_stderr = |operation| ExecTaskStreamingResponse { stderr: Some(operation), ..Default::default() };
    let (ended, (), ()) =
        tokio::join!(beside.end(), forward(stdout, answers, of_stdout), forward(stderr, answers, of_stderr));
    let last = match ended {
        Ok(status) => {
            let result = Some(result(status));
            Ok(ExecTaskStreamingResponse { exited: true, result, ..Default::default() })
        }
        Err(error) => Err(Refusal::failed(format!("cannot wait for the command: {error}"))),
    };
    // A host that has left does not need to know.
    let _ = answers.send(last).await;
}

async fn forward(
    output: Option<impl AsyncRead + Unpin>,
    answers: &Responses,
    response: impl Fn(ExecTaskStreamingIoOperation) -> ExecTaskStreamingResponse,
) {
    let Some(mut output) = output else { return };
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let operation = ExecTaskStreamingIoOperation { data: chunk[..length].to_vec(), close: false };
        if answers.send(Ok(response(operation))).await.is_err() {
            return;
        }
    }
    let closed = ExecTaskStreamingIoOperation { data: Vec::new(), close: true };
    // A host that has left does not need to know.
    let _ = answers.send(Ok(response(closed))).await;
}

/// Writes what the host sends to the command's input. Comes back only if the host breaks off.
async fn feed(input: Option<ChildStdin>, mut requests: Answers<ExecTaskStreamingRequest>) {
    let mut input = input;
    while let Some(request) = requests.next().await {
        let Ok(request) = request else { return };
        let Some(operation) = request.stdin else { continue };
        if let Some(pipe) = &mut input
            && pipe.write_all(&operation.data).await.is_err()
        {
            // The command reads no more; what else the host sends is left unread.
            input = None;
        }
        if operation.close {
            input = None;
        }
    }
    drop(input);
    std::future::pending().await
}
