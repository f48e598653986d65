//! The host's side: which logs are collected, and how they fare.

mod connection;
mod keeper;
mod view;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::keeper::{Command, Keeper};
pub use self::view::{LogState, LogsView, StreamReport, TaskLogs};
use super::held::Held;
use super::pipes::PipeError;
use super::program::LogProgram;
use super::record;
use super::spec::{LogPaths, LogSpec, MalformedLogSpec};

/// How many requests may wait.
const COMMANDS_MAX: usize = 1_024;
/// How long the log writer may take to begin to read the pipes of a task, its own start included.
const OPEN_PATIENCE: Duration = Duration::from_secs(15);
/// How long pipes of an earlier run may take to be opened: on a disk that hangs they may take for ever.
const TAKE_UP_PATIENCE: Duration = Duration::from_secs(5);
/// How much longer than its limit the end of a collection may take.
const CLOSE_MARGIN: Duration = Duration::from_secs(5);

/// What [`Logs`] needs.
#[derive(Debug, Clone)]
pub struct LogsOptions {
    /// A directory of its own for the lock, the socket and the records of the log writer, such as `DATA_DIR/logmon`. It is made if it
    /// is not there. Its path may be of any length.
    pub directory: PathBuf,
    /// Which program is the log writer.
    pub program: LogProgram,
}

/// Why logs are not collected, or not let go.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// What is asked for cannot be.
    #[error(transparent)]
    Malformed(#[from] MalformedLogSpec),
    /// A pipe cannot be made or opened, or something else is in its place.
    #[error("{0}")]
    Pipe(String, #[source] Option<io::Error>),
    /// What is collected cannot be written down.
    #[error("cannot write in {}: {source}", directory.display())]
    Record {
        /// The directory of the log writer.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The log writer cannot read the pipes.
    #[error("the log writer cannot collect the logs of {key}: {reason}")]
    Refused {
        /// Whose logs.
        key: String,
        /// Why.
        reason: String,
    },
    /// The log writer does not run, and could not be started in time.
    #[error("the log writer does not run: {reason}")]
    NotRunning {
        /// Why, as far as it is known.
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
    /// Whether trying again later can help, without anyone changing anything.
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

/// How the collection of a task's logs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClosedLogs {
    /// How many bytes were left in its pipes when there was no more time, and are lost.
    pub lost: u64,
}

/// The logs of the tasks of one host. All clones speak of the same.
#[derive(Debug, Clone)]
pub struct Logs {
    directory: Arc<Path>,
    commands: mpsc::Sender<Command>,
    view: watch::Receiver<LogsView>,
}

impl Logs {
    /// Takes up what an earlier run of the host has left, and finds the log writer or starts it. Comes back before that runs: how it
    /// fares stands in the [view](Self::view). Has to be called in a runtime of tokio, with I/O and time.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub async fn start(options: LogsOptions) -> Result<Self, LogsError> {
        let directory: Arc<Path> = options.directory.as_path().into();
        let failed = |source| LogsError::Record { directory: options.directory.clone(), source };
        let reading = Arc::clone(&directory);
        let records = blocking(move || record::read_all(&reading)).await.map_err(failed)?.map_err(failed)?;
        let mut held = Vec::new();
        for record in records.into_iter().filter(|record| record.is_open) {
            let (key, place) = (record.logs.spec.key.clone(), Arc::clone(&directory));
            let taking = blocking(move || Held::take_up(&place, &record.logs));
            match timeout(TAKE_UP_PATIENCE, taking).await {
                Ok(Ok(Ok(taken))) => held.push(taken),
                Ok(Ok(Err(error))) => {
                    tracing::warn!(task = key, %error, "the pipes of a task's logs cannot be held")
                }
                Ok(Err(error)) => {
                    tracing::warn!(task = key, %error, "the pipes of a task's logs cannot be held")
                }
                Err(_) => {
                    tracing::warn!(
                        task = key,
                        error = "its disk does not answer",
                        "the pipes of a task's logs cannot be held"
                    );
                }
            }
        }
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (tell, view) = watch::channel(LogsView::default());
        tokio::spawn(Keeper::new(options, held, tell).run(received));
        Ok(Self { directory, commands, view })
    }

    /// Makes the pipes of a task and has them read from now on. Asked again for a key whose pipes are there, it checks them and goes on
    /// with them. What is collected stays as it is until [`close`](Self::close), across runs of the host.
    ///
    /// # Errors
    /// Says what is in the place of a pipe, or what cannot be made, or that the log writer does not run. Nothing that would write may be
    /// started then.
    pub async fn open(&self, spec: LogSpec) -> Result<LogPaths, LogsError> {
        let paths = spec.paths();
        let (directory, others) = (Arc::clone(&self.directory), self.view.borrow().tasks.len());
        let failed = |source| LogsError::Record { directory: self.directory.to_path_buf(), source };
        let held = blocking(move || Held::make(&directory, &spec, others)).await.map_err(failed)??;
        self.ask(|reply| Command::Open { held, reply }, OPEN_PATIENCE).await??;
        Ok(paths)
    }

    /// Writes what is left in the pipes of a task that has ended, for so long at most, and removes them (T069). Whoever still writes to
    /// them gets EPIPE from now on. A key of which nothing is open is let be.
    ///
    /// # Errors
    /// When the log writer could not be asked in time, or something could not be removed; the pipes are let go of in any case.
    pub async fn close(&self, key: &str, limit: Duration) -> Result<ClosedLogs, LogsError> {
        let key = key.to_owned();
        self.ask(|reply| Command::Close { key, limit, reply }, limit + CLOSE_MARGIN).await?
    }

    /// Forgets where the logs of a task are, when their directory goes with the task. Pipes that are still open are closed first.
    ///
    /// # Errors
    /// As [`close`](Self::close), or when the record cannot be removed.
    pub async fn forget(&self, key: &str) -> Result<(), LogsError> {
        self.close(key, Duration::ZERO).await?;
        let (directory, key) = (Arc::clone(&self.directory), key.to_owned());
        let failed = |source| LogsError::Record { directory: self.directory.to_path_buf(), source };
        blocking(move || record::remove(&directory, &key)).await.map_err(failed)?.map_err(failed)
    }

    /// How all logs fare, now and whenever that changes.
    #[must_use]
    pub fn view(&self) -> watch::Receiver<LogsView> {
        self.view.clone()
    }

    /// Ends the log writer, unless it still has pipes to read, and waits for that. Logs are not collected for this host any more.
    pub async fn stop(&self) {
        // One that has ended already needs no word.
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

/// Does what may take a disk its time on a thread for such things.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)
}
