//! A command inside a task, with its streams.

use std::fmt;
use std::sync::Arc;

use callboard_proto::drivers as wire;
use futures_util::future::BoxFuture;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;
use tonic::{Response, Status, Streaming};
use wire::exec_task_streaming_request::{Setup, TerminalSize};

use super::from_wire;
use super::line::Line;
use super::{DriverError, DriverRpc};
use super::{TaskExit, TaskId};

/// The limit of inputs that wait to be taken by the driver; a caller that sends more waits.
const INPUT_WAITING_MAX: usize = 16;
/// Longest piece of input that is sent at once, in bytes. Longer input is sent in pieces.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// An input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecInput {
    /// Bytes for its standard input.
    Stdin(Vec<u8>),
    /// The end of its standard input.
    CloseStdin,
    /// A new size of its terminal.
    Resize {
        /// In lines.
        height: u16,
        /// In columns.
        width: u16,
    },
}

/// An output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecOutput {
    /// Bytes of its standard output.
    Stdout(Vec<u8>),
    /// Its standard output is closed.
    StdoutClosed,
    /// Bytes of its standard error.
    Stderr(Vec<u8>),
    /// Its standard error is closed.
    StderrClosed,
    /// It has ended; nothing comes after this.
    Exited(TaskExit),
}

type Opening = BoxFuture<'static, Result<Response<Streaming<wire::ExecTaskStreamingResponse>>, Status>>;

enum State {
    /// The driver may answer only after the command has written something.
    Opening(Opening),
    Open(Box<Streaming<wire::ExecTaskStreamingResponse>>),
    Ended,
}

/// A command that runs inside a task. Dropping it ends the conversation; the driver then decides about the command.
pub struct ExecSession {
    line: Arc<Line>,
    input: mpsc::Sender<wire::ExecTaskStreamingRequest>,
    state: State,
    unread: std::collections::VecDeque<ExecOutput>,
}

/// The input of a command was not taken: the conversation is over. Read its output to learn how the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the command takes no input any more; read its output to learn how it ended")]
pub struct InputRefused;

impl ExecSession {
    pub(super) fn open(line: Arc<Line>, task: &TaskId, command: &[String], tty: bool) -> Self {
        let (input, mut given) = mpsc::channel(INPUT_WAITING_MAX);
        let setup = Setup { task_id: task.to_string(), command: command.to_vec(), tty };
        let first = wire::ExecTaskStreamingRequest { setup: Some(setup), ..Default::default() };
        let mut first = Some(first);
        let questions = poll_fn(move |context| match first.take() {
            Some(first) => std::task::Poll::Ready(Some(first)),
            None => given.poll_recv(context),
        });
        let mut stub = line.stub();
        let opening = Box::pin(async move { stub.exec_task_streaming(questions).await });
        Self { line, input, state: State::Opening(opening), unread: std::collections::VecDeque::new() }
    }

    /// Sends an input to the command; waits while the driver is behind.
    ///
    /// # Errors
    /// [`InputRefused`] when the conversation is over.
    pub async fn give(&self, input: ExecInput) -> Result<(), InputRefused> {
        match input {
            ExecInput::Stdin(bytes) => {
                for piece in bytes.chunks(PIECE_BYTES_MAX) {
                    self.give_stdin(piece.to_vec(), false).await?;
                }
                Ok(())
            }
            ExecInput::CloseStdin => self.give_stdin(Vec::new(), true).await,
            ExecInput::Resize { height, width } => {
                let size = TerminalSize { height: height.into(), width: width.into() };
                self.send(wire::ExecTaskStreamingRequest { tty_size: Some(size), ..Default::default() }).await
            }
        }
    }

    async fn give_stdin(&self, data: Vec<u8>, close: bool) -> Result<(), InputRefused> {
        let stdin = wire::ExecTaskStreamingIoOperation { data, close };
        self.send(wire::ExecTaskStreamingRequest { stdin: Some(stdin), ..Default::default() }).await
    }

    async fn send(&self, question: wire::ExecTaskStreamingRequest) -> Result<(), InputRefused> {
        self.input.send(question).await.map_err(|_| InputRefused)
    }

    /// Waits for the next output; `None` when the conversation is over. A conversation that ends without [`ExecOutput::Exited`]
    /// ends with an error, or the driver did not report how the command ended. Dropping this future loses nothing. Input is taken
    /// only while output is read.
    ///
    /// # Errors
    /// Like all calls: [`DriverError`].
    pub async fn next(&mut self) -> Option<Result<ExecOutput, DriverError>> {
        let line = Arc::clone(&self.line);
        loop {
            if let Some(output) = self.unread.pop_front() {
                return Some(Ok(output));
            }
            if matches!(self.state, State::Ended) {
                return None;
            }
            let read = match line.begin(DriverRpc::ExecTaskStreaming) {
                Ok(in_flight) => tokio::select! {
                    biased;
                    gone = in_flight.gone() => Err(gone),
                    read = self.read() => match read {
                        Ok(answer) => Ok(answer),
                        Err(status) => Err(line.failed(&in_flight, &status, true).await),
                    },
                },
                Err(gone) => Err(gone),
            };
            match read {
                Ok(Some(answer)) => self.take(answer),
                Ok(None) => self.state = State::Ended,
                Err(error) => {
                    self.state = State::Ended;
                    return Some(Err(error));
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<wire::ExecTaskStreamingResponse>, Status> {
        loop {
            match &mut self.state {
                State::Opening(opening) => {
                    let stream = opening.await?.into_inner();
                    self.state = State::Open(Box::new(stream));
                }
                State::Open(stream) => return stream.message().await,
                State::Ended => return Ok(None),
            }
        }
    }

    fn take(&mut self, answer: wire::ExecTaskStreamingResponse) {
        if let Some(stdout) = answer.stdout {
            self.take_stream(stdout, ExecOutput::Stdout, ExecOutput::StdoutClosed);
        }
        if let Some(stderr) = answer.stderr {
            self.take_stream(stderr, ExecOutput::Stderr, ExecOutput::StderrClosed);
        }
        if answer.exited {
            self.unread.push_back(ExecOutput::Exited(from_wire::exec_exit(answer.result.as_ref())));
            self.state = State::Ended;
        }
    }

    fn take_stream(
        &mut self,
        told: wire::ExecTaskStreamingIoOperation,
        data: impl FnOnce(Vec<u8>) -> ExecOutput,
        closed: ExecOutput,
    ) {
        if !told.data.is_empty() {
            self.unread.push_back(data(told.data));
        }
        if told.close {
            self.unread.push_back(closed);
        }
    }
}

impl fmt::Debug for ExecSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecSession").field("line", &self.line).finish_non_exhaustive()
    }
}
