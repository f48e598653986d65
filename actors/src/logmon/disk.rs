//! One thread per file system with logs: a hanging file system blocks only its own thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::sink::{Pumped, Scratch, Sink};

const STACK_BYTES: usize = 128 * 1_024;

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) stream: u64,
    pub(super) sink: Box<Sink>,
    /// The number of lost bytes that the log must report.
    pub(super) missing: u64,
    /// Becomes true when no more may be read from the pipe.
    pub(super) is_stopped: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) struct Turned {
    pub(super) stream: u64,
    pub(super) sink: Box<Sink>,
    pub(super) pumped: Pumped,
}

#[derive(Debug)]
pub(super) struct Disk {
    turns: Sender<Turn>,
    progress_ms: Arc<AtomicU64>,
}

impl Disk {
    /// Starts it. Times are relative to `began`; results of turns are sent to `turned`, and `wake` becomes readable.
    pub(super) fn start(began: Instant, turned: Sender<Turned>, wake: Arc<OwnedFd>) -> io::Result<Self> {
        let (turns, received) = channel();
        let progress_ms = Arc::<AtomicU64>::default();
        let scratch = Scratch::new()?;
        let progress = Arc::clone(&progress_ms);
        let work = move || {
            serve(&received, scratch, &turned, &wake, &|| {
                let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                progress.store(now, Ordering::Relaxed);
            })
        };
        thread::Builder::new().name("log disk".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        Ok(Self { turns, progress_ms })
    }

    /// When it last finished any work.
    pub(super) fn progress(&self) -> Duration {
        Duration::from_millis(self.progress_ms.load(Ordering::Relaxed))
    }

    pub(super) fn take(&self, turn: Turn) {
        self.turns.send(turn).expect("the thread ends when this end is dropped, and not before");
    }
}

fn serve(
    turns: &Receiver<Turn>,
    mut scratch: Scratch,
    turned: &Sender<Turned>,
    wake: &OwnedFd,
    advanced: &impl Fn(),
) {
    for Turn { stream, mut sink, missing, is_stopped } in turns {
        let pumped = sink.pump(&mut scratch, missing, || is_stopped.load(Ordering::Acquire), advanced);
        advanced();
        if turned.send(Turned { stream, sink, pumped }).is_err() {
            return;
        }
        // A counter at its maximum wakes the reader as well.
        let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
    }
}
