//! The owner of a process: one task that watches it, signals it and reaps it.

use std::future::pending;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use callboard_actors::process::EndedBy;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::ending::{ProcessEnding, ProcessExit};
use super::tail::Tail;

/// How long an ended process's output is waited for; its children may hold the pipe open for longer.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(200);

/// A child that is killed and reaped however its holder ends. In good order [`Orphanage::reap`] leaves nothing to do.
#[derive(Debug)]
pub(super) struct Orphanage(Option<Child>);

impl Orphanage {
    pub(super) const fn new(child: Child) -> Self {
        Self(Some(child))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("only reaping takes the child away, and that takes the orphanage with it")
    }

    /// The group that the child leads. It is ours as long as the child is not reaped.
    fn group(&mut self) -> Pid {
        Pid::from_child(self.child())
    }

    fn signal(&mut self, signal: Signal) {
        if let Err(error) = kill_process_group(self.group(), signal) {
            tracing::debug!(pid = self.child().id(), ?signal, error = %error, "a process group took no signal");
        }
    }

    /// Whether the child has ended. This leaves it a zombie, so that its group stays ours until [`reap`](Self::reap).
    fn has_ended(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.group()), options) {
            Ok(status) => status.is_some(),
            Err(error) => {
                // Only somebody who reaps children that are not his could make this fail; waiting longer would not help.
                tracing::error!(pid = self.child().id(), error = %error, "a process cannot be watched");
                true
            }
        }
    }

    /// Reaps the child, which has ended, after what is left of its group has been killed.
    fn reap(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child().wait();
        self.0 = None;
        status
    }
}

impl Drop for Orphanage {
    fn drop(&mut self) {
        if self.0.is_none() {
            return;
        }
        self.signal(Signal::KILL);
        let mut child = self.0.take().expect("it was there a line before");
        // The owner's task is being dropped, so nobody is left who could wait without blocking.
        let _ = std::thread::Builder::new().name("process reaper".to_owned()).spawn(move || child.wait());
    }
}

/// Asks a process to end within a grace.
#[derive(Debug, Clone, Copy)]
struct Stop {
    grace: Duration,
}

/// A running process. When the last handle is dropped, the process is killed and reaped.
#[derive(Debug, Clone)]
pub struct Process {
    pid: u32,
    orders: mpsc::UnboundedSender<Stop>,
    ended: watch::Receiver<Option<ProcessEnding>>,
}

impl Process {
    /// Takes a child over.
    pub(super) fn own(
        mut child: Orphanage,
        tail: Tail,
        log_ended: oneshot::Receiver<()>,
    ) -> io::Result<Self> {
        let pid = child.child().id();
        let mut deaths = unix::signal(SignalKind::child())?;
        let (orders, received) = mpsc::unbounded_channel();
        let (tell, ended) = watch::channel(None);
        actix_rt::spawn(async move {
            let by = until_ended(&mut child, &mut deaths, received).await;
            let status = child.reap();
            // Whatever it wrote is in the pipe by now; the thread that reads it may be a moment behind.
            let _ = timeout(OUTPUT_PATIENCE, log_ended).await;
            let exit = match status {
                Ok(status) => ProcessExit::of(status),
                Err(error) => {
                    tracing::error!(pid, error = %error, "a process ended without a status");
                    ProcessExit::Code(-1)
                }
            };
            tell.send_replace(Some(ProcessEnding { exit, by, last_words: tail.last_words() }));
        });
        Ok(Self { pid, orders, ended })
    }

    /// Its process id; it belongs to this process until [`ended`](Self::ended) says otherwise.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks it to end: SIGTERM to its group now, SIGKILL after the grace. Asked again, the shorter time holds.
    pub fn stop(&self, grace: Duration) {
        // One that has ended already needs not be told.
        let _ = self.orders.send(Stop { grace });
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// A future of how it ends; any number of these can be waited for.
    pub fn ended(&self) -> impl Future<Output = ProcessEnding> + 'static {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ending) => ending.clone().expect("it was waited for"),
                // The owner's task was dropped with its runtime; the orphanage has killed the process.
                Err(_) => {
                    let exit = ProcessExit::Signal(Signal::KILL.as_raw());
                    ProcessEnding { exit, by: EndedBy::Force, last_words: None }
                }
            }
        }
    }
}

/// Carries out orders until the process has ended, and says by whose hand it did.
async fn until_ended(
    child: &mut Orphanage,
    deaths: &mut unix::Signal,
    mut orders: mpsc::UnboundedReceiver<Stop>,
) -> EndedBy {
    let mut by = EndedBy::Itself;
    let mut kill_at: Option<Instant> = None;
    // The first look finds a child that ended before anybody listened for its death.
    while !child.has_ended() {
        tokio::select! {
            biased;
            _ = deaths.recv() => {}
            order = orders.recv(), if by != EndedBy::Force => match order {
                Some(Stop { grace }) => {
                    if by == EndedBy::Itself {
                        child.signal(Signal::TERM);
                        by = EndedBy::Request;
                    }
                    let at = Instant::now() + grace;
                    kill_at = Some(kill_at.map_or(at, |earlier| earlier.min(at)));
                }
                None => {
                    child.signal(Signal::KILL);
                    by = EndedBy::Force;
                    kill_at = None;
                }
            },
            () = until(kill_at) => {
                child.signal(Signal::KILL);
                by = EndedBy::Force;
                kill_at = None;
            }
        }
    }
    by
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}
