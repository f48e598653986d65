//! Connects the host to its log writer: to the running one, or to one that it starts.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::super::LogsView;
use super::super::program::LogProgram;
use super::super::protocol::{self, Request, Said, VERSION};
use super::super::writer::{SOCKET_FILE, short};
use crate::datadir;

/// The timeout for a started log writer to listen.
const START_TIMEOUT: Duration = Duration::from_secs(5);
const START_PAUSE: Duration = Duration::from_millis(5);
/// The timeout for its welcome, and for one of another version to end.
const WORD_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(5);
const PIECE_BYTES: usize = 16 * 1_024;

/// A connection to a log writer of our version.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    pub(super) pid: u32,
    pub(super) open: Vec<String>,
}

impl Connection {
    /// Connects to the log writer of a directory, or starts one; retries until it succeeds. The view shows why.
    pub(super) async fn establish(
        directory: Arc<Path>,
        program: LogProgram,
        view: watch::Sender<LogsView>,
    ) -> Self {
        let mut pause = RETRY_FIRST;
        loop {
            let error = match Self::try_establish(&directory, &program).await {
                Ok(connection) => return connection,
                Err(error) => error,
            };
            let reason = format!("the log writer cannot be started: {error}");
            if view.borrow().broken.as_deref() != Some(&reason) {
                tracing::warn!(directory = %directory.display(), %error, "cannot start the log writer; retrying");
                view.send_modify(|view| view.lose(&reason));
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_LONGEST);
        }
    }

    async fn try_establish(directory: &Path, program: &LogProgram) -> io::Result<Self> {
        let held = datadir::enter_or_make(directory, 0o700)?;
        let socket = short(&held, SOCKET_FILE);
        let began = Instant::now();
        let mut is_started = false;
        let stream = loop {
            match UnixStream::connect(&socket).await {
                Ok(stream) => break stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused if !is_started => {
                        program.start(directory)?;
                        is_started = true;
                    }
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                        if began.elapsed() < START_TIMEOUT => {}
                    _ => return Err(error),
                },
            }
            sleep(START_PAUSE).await;
        };
        let mut connection = Self { stream, received: Vec::new(), pid: 0, open: Vec::new() };
        connection.say(&Request::Hello { version: VERSION }).await?;
        let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not identify itself");
        match timeout(WORD_TIMEOUT, connection.next()).await.map_err(silent)?? {
            Said::Welcome { version: VERSION, pid, open } => {
                (connection.pid, connection.open) = (pid, open);
                Ok(connection)
            }
            // Nothing is lost while it ends and another one starts: unread bytes stay in the pipes.
            Said::Welcome { version, .. } => {
                connection.retire().await;
                Err(io::Error::other(format!("stopped the log writer of the incompatible version {version}")))
            }
            _ => Err(io::Error::other("it does not identify itself")),
        }
    }

    pub(super) async fn say(&mut self, request: &Request) -> io::Result<()> {
        timeout(WORD_TIMEOUT, self.stream.write_all(&protocol::line(request))).await?
    }

    /// Waits for the next message. Cancel-safe. An error means that the log writer is gone.
    pub(super) async fn next(&mut self) -> io::Result<Said> {
        loop {
            if let Some(said) = protocol::next(&mut self.received).map_err(io::Error::other)? {
                return Ok(said);
            }
            let mut piece = [0; PIECE_BYTES];
            let count = self.stream.read(&mut piece).await?;
            if count == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended"));
            }
            self.received.extend_from_slice(&piece[..count]);
        }
    }

    /// Asks it to end, and waits for that.
    pub(super) async fn retire(mut self) {
        let ended = async {
            self.say(&Request::Retire).await?;
            loop {
                self.next().await?;
            }
        };
        // Its end is an error of the connection; one that does not end keeps its lock, and is found again.
        let _: Result<Result<Infallible, io::Error>, _> = timeout(WORD_TIMEOUT, ended).await;
    }
}
