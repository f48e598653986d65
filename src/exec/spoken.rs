//! Commands beside a task with streamed input and output, with or without a terminal.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use callboard_proto::drivers::exec_task_streaming_request::Setup;
use callboard_proto::drivers::{
    ExecTaskStreamingIoOperation, ExecTaskStreamingRequest, ExecTaskStreamingResponse,
};
use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use super::beside::{Beside, CHUNK_BYTES, result};
use super::surroundings::Surroundings;
use super::terminal::Terminal;
use crate::plugin::{Answers, Refusal};

/// The capacity of the queue of messages to the host.
const WAITING_MAX: usize = 16;
/// The timeout to read a command's remaining terminal output after its end.
const REST_TIMEOUT: Duration = Duration::from_secs(2);

type Requests = Answers<ExecTaskStreamingRequest>;
type Responses = mpsc::Sender<Result<ExecTaskStreamingResponse, Refusal>>;

/// Reads the first request, which names the command.
pub(super) async fn setup(requests: &mut Requests) -> Result<Setup, Refusal> {
    let first = requests.next().await.ok_or_else(|| Refusal::invalid("no request came"))??;
    first.setup.ok_or_else(|| Refusal::invalid("the first request names no command"))
}

pub(super) fn stream(
    around: &Surroundings,
    setup: &Setup,
    requests: Requests,
) -> Result<Answers<ExecTaskStreamingResponse>, Refusal> {
    let (answers, received) = mpsc::channel(WAITING_MAX);
    match setup.tty {
        true => {
            let (beside, terminal) = Beside::at_terminal(around, &setup.command)?;
            tokio::spawn(at_terminal(beside, terminal, requests, answers));
        }
        false => {
            let beside = Beside::at_pipes(around, &setup.command)?;
            tokio::spawn(at_pipes(beside, requests, answers));
        }
    }
    Ok(Box::pin(ReceiverStream::new(received)))
}

async fn at_pipes(mut beside: Beside, requests: Requests, answers: Responses) {
    let input = beside.child.stdin.take();
    tokio::select! {
        () = converse(&mut beside, &answers) => {}
        // Returns only if the host cancels; the end of its input does not end the command.
        () = feed(input, requests) => {}
        // The receiver is gone.
        () = answers.closed() => {}
    }
}

async fn at_terminal(mut beside: Beside, terminal: Terminal, requests: Requests, answers: Responses) {
    tokio::select! {
        () = show(&mut beside, &terminal, &answers) => {}
        () = type_in(&terminal, requests) => {}
        () = answers.closed() => {}
    }
}

const fn of_stdout(operation: ExecTaskStreamingIoOperation) -> ExecTaskStreamingResponse {
    ExecTaskStreamingResponse { stdout: Some(operation), stderr: None, exited: false, result: None }
}

const fn of_stderr(operation: ExecTaskStreamingIoOperation) -> ExecTaskStreamingResponse {
    ExecTaskStreamingResponse { stdout: None, stderr: Some(operation), exited: false, result: None }
}

const fn closed() -> ExecTaskStreamingIoOperation {
    ExecTaskStreamingIoOperation { data: Vec::new(), close: true }
}

/// Sends the command's output, then its exit.
async fn converse(beside: &mut Beside, answers: &Responses) {
    let (stdout, stderr) = (beside.child.stdout.take(), beside.child.stderr.take());
    let (ended, (), ()) =
        tokio::join!(beside.end(), forward(stdout, answers, of_stdout), forward(stderr, answers, of_stderr));
    last(ended, answers).await;
}

/// Sends the command's terminal output, then its exit. The rest of its session is killed with it. A process that left the session and still
/// has the terminal open does not delay this.
async fn show(beside: &mut Beside, terminal: &Terminal, answers: &Responses) {
    let mut shown = std::pin::pin!(forward_terminal(terminal, answers));
    let ended = tokio::select! {
        ended = beside.end() => {
            let _ = timeout(REST_TIMEOUT, shown).await;
            ended
        }
        () = &mut shown => beside.end().await,
    };
    let _ = answers.send(Ok(of_stdout(closed()))).await;
    last(ended, answers).await;
}

async fn last(ended: io::Result<ExitStatus>, answers: &Responses) {
    let last = match ended {
        Ok(status) => {
            let result = Some(result(status));
            Ok(ExecTaskStreamingResponse { exited: true, result, ..Default::default() })
        }
        Err(error) => Err(Refusal::failed(format!("cannot wait for the command: {error}"))),
    };
    // The receiver may be gone.
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
    // The receiver may be gone.
    let _ = answers.send(Ok(response(closed()))).await;
}

async fn forward_terminal(terminal: &Terminal, answers: &Responses) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = terminal.read(&mut chunk).await {
        let operation = ExecTaskStreamingIoOperation { data: chunk[..length].to_vec(), close: false };
        if answers.send(Ok(of_stdout(operation))).await.is_err() {
            return;
        }
    }
}

/// Writes the host's data to the command's input. Returns only if the host cancels. An empty message is a heartbeat (T147).
async fn feed(input: Option<ChildStdin>, mut requests: Requests) {
    let mut input = input;
    while let Some(request) = requests.next().await {
        let Ok(request) = request else { return };
        let Some(operation) = request.stdin else { continue };
        if let Some(pipe) = &mut input
            && pipe.write_all(&operation.data).await.is_err()
        {
            // The command has closed its input; further data is dropped.
            input = None;
        }
        if operation.close {
            input = None;
        }
    }
    drop(input);
    std::future::pending().await
}

/// Types the host's data on the command's terminal, and resizes it. Returns only if the host cancels.
async fn type_in(terminal: &Terminal, mut requests: Requests) {
    let (mut is_open, mut line_is_begun) = (true, false);
    while let Some(request) = requests.next().await {
        let Ok(request) = request else { return };
        if let Some(size) = request.tty_size {
            // A terminal that has hung up cannot be resized.
            let _ = terminal.resize(size);
        }
        let Some(operation) = request.stdin.filter(|_| is_open) else { continue };
        is_open = terminal.type_all(&operation.data).await.is_ok() && !operation.close;
        line_is_begun = operation.data.last().map_or(line_is_begun, |last| !matches!(last, b'\n' | b'\r'));
        if operation.close {
            // Fails if the terminal has hung up, which the command notices by itself.
            let _ = terminal.type_end(line_is_begun).await;
        }
    }
    std::future::pending().await
}
