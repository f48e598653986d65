//! Keeps the pipes of all tasks open and the log writer alive.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::super::held::Held;
use super::super::protocol::{Request, Said, StreamStatus};
use super::super::{LogState, LogsView, StreamReport, TaskLogs};
use super::connection::Connection;
use super::{ClosedLogs, LogsError, LogsOptions};

/// How long the log writer may be missing before full pipes are drained, so that no task blocks forever.
const WRITER_TIMEOUT: Duration = Duration::from_secs(15);
/// The interval of that check.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// The minimal interval between two warnings about a stream: a disk may fail and recover many times a second.
const WARNING_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) enum Command {
    /// Hold these pipes, and have them read. Answered when they are being read.
    Open { held: Held, reply: oneshot::Sender<Result<(), LogsError>> },
    /// Have them written to their end, and remove them.
    Close { key: String, limit: Duration, reply: oneshot::Sender<Result<ClosedLogs, LogsError>> },
    /// End the log writer, if nothing is open.
    Stop { reply: oneshot::Sender<()> },
}

#[derive(Debug)]
struct Entry {
    held: Held,
    opening: Vec<oneshot::Sender<Result<(), LogsError>>>,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Closing {
    until: Instant,
    replies: Vec<oneshot::Sender<Result<ClosedLogs, LogsError>>>,
}

type Establishing = Pin<Box<dyn Future<Output = Connection> + Send>>;

enum Link {
    Up(Connection),
    Down { since: Instant, establishing: Establishing },
}

enum Heard {
    Command(Option<Command>),
    Established(Connection),
    Said(std::io::Result<Said>),
    Time,
}

pub(super) struct Keeper {
    directory: Arc<Path>,
    options: LogsOptions,
    entries: BTreeMap<String, Entry>,
    view: watch::Sender<LogsView>,
    warned: BTreeMap<String, Instant>,
}

impl Keeper {
    pub(super) fn new(options: LogsOptions, held: Vec<Held>, view: watch::Sender<LogsView>) -> Self {
        let directory = options.directory.as_path().into();
        let entry = |held: Held| {
            let key = held.logs.spec.key.clone();
            (key, Entry { held, opening: Vec::new(), closing: None })
        };
        let entries: BTreeMap<_, _> = held.into_iter().map(entry).collect();
        view.send_modify(|view| {
            let opening = |key: &String| (key.clone(), TaskLogs::new(LogState::Opening));
            view.tasks = entries.keys().map(opening).collect();
        });
        Self { directory, options, entries, view, warned: BTreeMap::new() }
    }

    /// Runs until it is stopped, or all its handles are dropped.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut link = self.down();
        let mut looks = interval(LOOK_PAUSE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let heard = match &mut link {
                Link::Up(connection) => tokio::select! {
                    said = connection.next() => Heard::Said(said),
                    command = commands.recv() => Heard::Command(command),
                    _ = looks.tick() => Heard::Time,
                },
                Link::Down { establishing, .. } => tokio::select! {
                    connection = establishing => Heard::Established(connection),
                    command = commands.recv() => Heard::Command(command),
                    _ = looks.tick() => Heard::Time,
                },
            };
            match heard {
                Heard::Command(None) => return,
                Heard::Command(Some(Command::Stop { reply })) => {
                    if let Link::Up(connection) = link
                        && self.entries.is_empty()
                    {
                        connection.retire().await;
                    }
                    // The caller may have dropped its future.
                    let _ = reply.send(());
                    return;
                }
                Heard::Command(Some(command)) => {
                    if let Some(request) = self.obey(command)
                        && let Link::Up(connection) = &mut link
                        && let Err(error) = connection.say(&request).await
                    {
                        link = self.lost(&error);
                    }
                }
                Heard::Established(connection) => link = self.established(connection).await,
                Heard::Said(Ok(said)) => self.hear(said),
                Heard::Said(Err(error)) => link = self.lost(&error),
                Heard::Time => self.look(&link),
            }
        }
    }

    fn down(&self) -> Link {
        let program = self.options.program.clone();
        let establishing = Connection::establish(Arc::clone(&self.directory), program, self.view.clone());
        Link::Down { since: Instant::now(), establishing: Box::pin(establishing) }
    }

    /// The log writer is gone (TH021).
    fn lost(&self, error: &std::io::Error) -> Link {
        tracing::warn!(%error, tasks = self.entries.len(), "the log writer has ended; restarting it, no output is lost");
        self.view.send_modify(|view| view.lose("the log writer has ended; it is started again"));
        self.down()
    }

    async fn established(&self, mut connection: Connection) -> Link {
        tracing::debug!(pid = connection.pid, "the log writer runs");
        let unknown = connection.open.iter().filter(|key| !self.entries.contains_key(*key));
        for key in unknown {
            tracing::warn!(task = key, "the log writer reads the pipes of a task without a record");
        }
        self.view.send_modify(|view| (view.broken, view.pid) = (None, Some(connection.pid)));
        for (key, entry) in &self.entries {
            let opened = connection.say(&Request::Open(entry.held.logs.clone())).await;
            let asked = match (opened, &entry.closing) {
                (Ok(()), Some(closing)) => connection.say(&close(key, closing.until)).await,
                (opened, _) => opened,
            };
            if let Err(error) = asked {
                return self.lost(&error);
            }
        }
        Link::Up(connection)
    }

    /// Handles a command. Returns the request for the log writer, if any.
    fn obey(&mut self, command: Command) -> Option<Request> {
        match command {
            Command::Open { held, reply } => {
                let (key, logs) = (held.logs.spec.key.clone(), held.logs.clone());
                let broken = self.view.borrow().broken.clone();
                self.view.send_modify(|view| {
                    let state = broken.map_or(LogState::Opening, LogState::Broken);
                    view.tasks.entry(key.clone()).or_insert_with(|| TaskLogs::new(state));
                });
                let mut opening = Vec::new();
                if let Some(before) = self.entries.remove(&key) {
                    opening = before.opening;
                    // Closing a pipe may block on a disk.
                    drop(spawn_blocking(move || drop(before.held)));
                    before.closing.into_iter().flat_map(|closing| closing.replies).for_each(|reply| {
                        let _ = reply.send(Ok(ClosedLogs::default()));
                    });
                }
                opening.push(reply);
                self.entries.insert(key, Entry { held, opening, closing: None });
                Some(Request::Open(logs))
            }
            Command::Close { key, limit, reply } => {
                let Some(entry) = self.entries.get_mut(&key) else {
                    let _ = reply.send(Ok(ClosedLogs::default()));
                    return None;
                };
                let until = Instant::now() + limit;
                let closing = entry.closing.get_or_insert_with(|| Closing { until, replies: Vec::new() });
                closing.until = closing.until.min(until);
                closing.replies.push(reply);
                Some(close(&key, closing.until))
            }
            Command::Stop { .. } => None,
        }
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Opened { key } => {
                let Some(entry) = self.entries.get_mut(&key) else { return };
                let collection = entry.held.logs.spec.collection;
                self.view.send_modify(|view| view.opened(&key, collection));
                for reply in entry.opening.drain(..) {
                    let _ = reply.send(Ok(()));
                }
            }
            Said::Refused { key, reason } => {
                let Some(entry) = self.entries.get_mut(&key) else { return };
                tracing::error!(task = key, error = reason, "cannot collect the logs of a task");
                self.view.send_modify(|view| {
                    if let Some(task) = view.tasks.get_mut(&key) {
                        task.state = LogState::Broken(reason.clone());
                    }
                });
                for reply in entry.opening.drain(..) {
                    let _ = reply.send(Err(LogsError::Refused { key: key.clone(), reason: reason.clone() }));
                }
            }
            Said::Closed { key, left } => self.close(&key, left.iter().sum()),
            Said::StreamStatus(status) => self.status_changed(&status),
            // Unsolicited.
            Said::Welcome { .. } => {}
        }
    }

    fn close(&mut self, key: &str, lost: u64) {
        // It may have been opened again meanwhile.
        if self.entries.get(key).is_none_or(|entry| entry.closing.is_none()) {
            return;
        }
        let Some(Entry { held, closing, .. }) = self.entries.remove(key) else { return };
        let directory = Arc::clone(&self.directory);
        let task = key.to_owned();
        self.view.send_modify(|view| drop(view.tasks.remove(key)));
        if lost > 0 {
            tracing::warn!(task, lost, "the end of a task's output was not written in time and is lost");
        }
        drop(spawn_blocking(move || {
            let gone = held.let_go(&directory);
            if let Err(error) = &gone {
                tracing::warn!(task, %error, "cannot remove the pipes of a task's logs");
            }
            let mut replies = closing.into_iter().flat_map(|closing| closing.replies);
            if let Some(reply) = replies.next() {
                let _ = reply.send(gone.map(|()| ClosedLogs { lost }));
            }
            replies.for_each(|reply| drop(reply.send(Ok(ClosedLogs { lost }))));
        }));
    }

    fn status_changed(&mut self, status: &StreamStatus) {
        let mut changed = None;
        self.view.send_modify(|view| changed = view.update(status));
        let Some((before, now)) = changed else { return };
        let (task, stream) = (&status.key, status.stream.as_str());
        let StreamReport { fault, dropped, .. } = now;
        let has_dropped = dropped > before.dropped && before.dropped == before.dropped_before;
        match (&before.fault, &fault) {
            (None, Some(error)) if self.may_warn(status) => {
                tracing::warn!(task, stream, error, "cannot write the log of a task; its output waits");
            }
            (Some(_), Some(error)) if has_dropped => {
                tracing::warn!(
                    task,
                    stream,
                    error,
                    dropped,
                    "dropping output of a task: its log cannot be written"
                );
            }
            (Some(_), None) if dropped > 0 => {
                tracing::warn!(
                    task,
                    stream,
                    dropped,
                    "the log of a task can be written again; some bytes are missing"
                );
            }
            (Some(_), None) if self.may_warn(status) => {
                tracing::info!(task, stream, "the log of a task can be written again; no bytes are missing");
            }
            _ => {}
        }
    }

    /// Whether a warning about this stream is within the rate limit.
    fn may_warn(&mut self, status: &StreamStatus) -> bool {
        let now = Instant::now();
        self.warned.retain(|_, at| now - *at < WARNING_PAUSE);
        let name = format!("{}/{}", status.key, status.stream);
        // Begin and end of a fault are both logged.
        if status.fault.is_none() {
            return self.warned.contains_key(&name);
        }
        self.warned.insert(name, now).is_none()
    }

    /// Handles what is due: pipes past their close limit without a log writer, and full pipes without a reader.
    fn look(&mut self, link: &Link) {
        let now = Instant::now();
        let Link::Down { since, .. } = link else { return };
        let is_due = |entry: &Entry| entry.closing.as_ref().is_some_and(|closing| closing.until <= now);
        let due: Vec<String> =
            self.entries.iter().filter(|(_, entry)| is_due(entry)).map(|(key, _)| key.clone()).collect();
        for key in due {
            let lost = self.entries[&key].held.waiting();
            self.close(&key, lost);
        }
        if now - *since < WRITER_TIMEOUT {
            return;
        }
        for (key, entry) in &self.entries {
            let Ok(dropped @ 1..) = entry.held.drain_full() else { continue };
            tracing::warn!(task = key, dropped, "dropping output of a task: no log writer runs");
            self.view.send_modify(|view| {
                if let Some(task) = view.tasks.get_mut(key) {
                    task.stdout.dropped_before += dropped;
                    task.stdout.dropped += dropped;
                }
            });
        }
    }
}

fn close(key: &str, until: Instant) -> Request {
    let left = until.saturating_duration_since(Instant::now());
    Request::Close { key: key.to_owned(), limit_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX) }
}
