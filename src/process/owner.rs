//! The owner of a process: one task that watches, signals and reaps it.

use std::future::pending;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use callboard_actors::process::{EndedBy, ProcessExit};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::ending::{ProcessEnding, exit_of};
use super::tail::Tail;

/// The timeout for an ended process's output; its children may keep the pipe open for longer.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);

/// A child that is killed and reaped on drop. Normally [`KilledOnDrop::reap`] has done so before.
#[derive(Debug)]
pub(super) struct KilledOnDrop(Option<Child>);

impl KilledOnDrop {
    pub(super) const fn new(child: Child) -> Self {
        Self(Some(child))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("only reaping takes the child away, and that takes the guard with it")
    }

    /// The process group of the child. Its id cannot be reused until the child is reaped.
    fn group(&mut self) -> Pid {
        Pid::from_child(self.child())
    }

    fn signal(&mut self, signal: Signal) {
        if let Err(error) = kill_process_group(self.group(), signal) {
            tracing::debug!(pid = self.child().id(), signal = signal.as_raw(), error = %error, "cannot signal a process group");
        }
    }

    /// Whether the child has ended. It stays a zombie, so that its group id is not reused until [`reap`](Self::reap).
    fn has_ended(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.group()), options) {
            Ok(status) => status.is_some(),
            Err(error) => {
                // Fails only if other code reaps this child; waiting longer would not help.
                tracing::error!(pid = self.child().id(), error = %error, "cannot wait for a process");
                true
            }
        }
    }

    /// Kills the rest of the group of the ended child, and reaps the child.
    fn reap(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child().wait();
        self.0 = None;
        status
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        if self.0.is_none() {
            return;
        }
        self.signal(Signal::KILL);
        let mut child = self.0.take().expect("it was there a line before");
        // The owner's task is being dropped, so only a thread can wait without blocking.
        let _ = std::thread::Builder::new().name("process reaper".to_owned()).spawn(move || child.wait());
    }
}

/// A request to stop within a grace period.
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
    pub(super) fn own(
        mut child: KilledOnDrop,
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
            // All its output is in the pipe by now; the reading thread may be behind.
            let _ = timeout(OUTPUT_TIMEOUT, log_ended).await;
            let exit = match status {
                Ok(status) => exit_of(status),
                Err(error) => {
                    tracing::error!(pid, error = %error, "cannot read the exit status of a process");
                    ProcessExit::Code(-1)
                }
            };
            tell.send_replace(Some(ProcessEnding { exit, by, last_words: tail.last_words() }));
        });
        Ok(Self { pid, orders, ended })
    }

    /// Its process id; not reused until [`ended`](Self::ended) resolves.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops it: SIGTERM to its group now, SIGKILL after the grace period. Of several requests, the shortest grace applies.
    pub fn stop(&self, grace: Duration) {
        // Fails only if it has ended.
        let _ = self.orders.send(Stop { grace });
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits for its end; any number of these futures may be in use.
    pub fn ended(&self) -> impl Future<Output = ProcessEnding> + 'static {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ending) => ending.clone().expect("it was waited for"),
                // The owner's task was dropped with its runtime; the guard has killed the process.
                Err(_) => {
                    let exit = ProcessExit::Signal(Signal::KILL.as_raw());
                    ProcessEnding { exit, by: EndedBy::Force, last_words: None }
                }
            }
        }
    }
}

/// Serves stop requests until the process has ended, and returns what ended it.
async fn until_ended(
    child: &mut KilledOnDrop,
    deaths: &mut unix::Signal,
    mut orders: mpsc::UnboundedReceiver<Stop>,
) -> EndedBy {
    let mut by = EndedBy::Itself;
    let mut kill_at: Option<Instant> = None;
    // The first check finds a child that ended before the signal handler was installed.
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
