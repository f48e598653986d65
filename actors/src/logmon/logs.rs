//! The host's side of log collection: which logs are collected, and their state.

mod connection;
mod keeper;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::keeper::{Command, Keeper};
use super::held::Held;
use super::pipes::PipeError;
use super::program::LogProgram;
use super::record;
use super::{LogPaths, LogSpec, LogsView, MalformedLogSpec};

const COMMANDS_MAX: usize = 1_024;
/// The timeout for the log writer to begin to read the pipes of a task, its own start included.
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// The timeout for opening the pipes of an earlier run: on a hanging disk that may take forever.
const TAKE_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// The margin added to the limit for ending a collection.
const CLOSE_MARGIN: Duration = Duration::from_secs(5);

/// The options of [`Logs`].
#[derive(Debug, Clone)]
pub struct LogsOptions {
    /// The private directory for the lock, the socket and the records of the log writer, such as `DATA_DIR/logmon`. It is
    /// created if missing. Its path may have any length.
    pub directory: PathBuf,
    /// The log writer program.
    pub program: LogProgram,
}

/// Why logs are not collected, or cannot be closed.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The spec is invalid.
    #[error(transparent)]
    Malformed(#[from] MalformedLogSpec),
    /// A pipe cannot be created or opened, or another file has its name.
    #[error("{0}")]
    Pipe(String, #[source] Option<io::Error>),
    /// The record cannot be written.
    #[error("cannot write in {}: {source}", directory.display())]
    Record {
        /// The directory of the log writer.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The log writer cannot read the pipes.
    #[error("the log writer cannot collect the logs of {key}: {reason}")]
    Refused {
        /// The key of the task.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The log writer does not run, and could not be started in time.
    #[error("the log writer does not run: {reason}")]
    NotRunning {
        /// The reason, if known.
        reason: String,
    },
}

impl From<PipeError> for LogsError {
    fn from(error: PipeError) -> Self {
        let text = error.to_string();
        match error {
            PipeError::Foreign { .. } => Self::Pipe(text, None),
            PipeError::Directory { source, .. } | PipeError::System { source, .. } => {
                Self::Pipe(text, Some(source))
            }
        }
    }
}

impl LogsError {
    /// Whether a retry may succeed without a repair.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Malformed(_) | Self::Pipe(_, None) => false,
            Self::Pipe(_, Some(_)) | Self::Record { .. } | Self::Refused { .. } | Self::NotRunning { .. } => {
                true
            }
        }
    }
}

/// The result of ending a task's collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClosedLogs {
    /// How many bytes were left in its pipes at the limit, and are lost.
    pub lost: u64,
}

/// The logs of the tasks of one host. Clones share the state.
#[derive(Debug, Clone)]
pub struct Logs {
    directory: Arc<Path>,
    commands: mpsc::Sender<Command>,
    view: watch::Receiver<LogsView>,
}

impl Logs {
    /// Takes over the pipes of an earlier run of the host, and connects to the log writer or starts it. Returns before that
    /// is done: its state is in the [view](Self::view). Must be called in a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the directory cannot be created or read.
    pub async fn start(options: LogsOptions) -> Result<Self, LogsError> {
        let directory: Arc<Path> = options.directory.as_path().into();
        let failed = |source| LogsError::Record { directory: options.directory.clone(), source };
        let reading = Arc::clone(&directory);
        let records = blocking(move || record::read_all(&reading)).await.map_err(failed)?.map_err(failed)?;
        let mut held = Vec::new();
        for record in records.into_iter().filter(|record| record.is_open) {
            let (key, place) = (record.logs.spec.key.clone(), Arc::clone(&directory));
            let taking = blocking(move || Held::take_up(&place, &record.logs));
            match timeout(TAKE_UP_TIMEOUT, taking).await {
                Ok(Ok(Ok(taken))) => held.extend(taken),
                Ok(Ok(Err(error))) => {
                    tracing::warn!(task = key, %error, "cannot hold the pipes of a task's logs")
                }
                Ok(Err(error)) => {
                    tracing::warn!(task = key, %error, "cannot hold the pipes of a task's logs")
                }
                Err(_) => {
                    tracing::warn!(
                        task = key,
                        error = "its disk does not answer",
                        "cannot hold the pipes of a task's logs"
                    );
                }
            }
        }
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (tell, view) = watch::channel(LogsView::default());
        tokio::spawn(Keeper::new(options, held, tell).run(received));
        Ok(Self { directory, commands, view })
    }

    /// Creates the pipes of a task and has them read from now on. Idempotent: for a key with existing pipes, it checks and
    /// keeps them. The collection continues until [`close`](Self::close), across runs of the host.
    ///
    /// # Errors
    /// When another file has the name of a pipe, something cannot be created, or the log writer does not run. Then no writer
    /// to the pipes may be started.
    pub async fn open(&self, spec: LogSpec) -> Result<LogPaths, LogsError> {
        let paths = spec.paths();
        let (directory, others) = (Arc::clone(&self.directory), self.view.borrow().tasks.len());
        let failed = |source| LogsError::Record { directory: self.directory.to_path_buf(), source };
        let held = blocking(move || Held::make(&directory, &spec, others)).await.map_err(failed)??;
        self.ask(|reply| Command::Open { held, reply }, OPEN_TIMEOUT).await??;
        Ok(paths)
    }

    /// Writes the rest in the pipes of a task that has ended, up to a time limit, and removes them (T069). Processes that
    /// still write to them get EPIPE from then on. A key without open pipes is ignored.
    ///
    /// # Errors
    /// When the log writer did not answer in time, or something could not be removed; the pipes are closed in any case.
    pub async fn close(&self, key: &str, limit: Duration) -> Result<ClosedLogs, LogsError> {
        let key = key.to_owned();
        self.ask(|reply| Command::Close { key, limit, reply }, limit + CLOSE_MARGIN).await?
    }

    /// Removes the record of a task's logs, when their directory is removed with the task. Open pipes are closed first.
    ///
    /// # Errors
    /// As [`close`](Self::close), or when the record cannot be removed.
    pub async fn forget(&self, key: &str) -> Result<(), LogsError> {
        self.close(key, Duration::ZERO).await?;
        let (directory, key) = (Arc::clone(&self.directory), key.to_owned());
        let failed = |source| LogsError::Record { directory: self.directory.to_path_buf(), source };
        blocking(move || record::remove(&directory, &key)).await.map_err(failed)?.map_err(failed)
    }

    /// The state of all logs, and a notification of its changes.
    #[must_use]
    pub fn view(&self) -> watch::Receiver<LogsView> {
        self.view.clone()
    }

    /// Ends the log writer, unless it still has pipes to read, and waits for that. This host collects no more logs.
    pub async fn stop(&self) {
        // It may have ended already.
        let _ = self.ask(|reply| Command::Stop { reply }, CLOSE_MARGIN).await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
        within: Duration,
    ) -> Result<T, LogsError> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.commands.send(command(reply)).await.ok()?;
            answer.await.ok()
        };
        let reason = match timeout(within, asked).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => "it was stopped".to_owned(),
            Err(_) => {
                let broken = self.view.borrow().broken.clone();
                broken.unwrap_or_else(|| format!("it has not answered within {within:?}"))
            }
        };
        Err(LogsError::NotRunning { reason })
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}
