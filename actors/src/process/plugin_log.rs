//! Logs the lines of plugins on a separate thread: a log that blocks blocks only this thread, and lines over the limit of
//! its queue are dropped and counted (LOG-03).

use tokio::sync::Notify;
use tracing::Dispatch;

use super::ProcessName;
use crate::goplugin::{PluginLine, tell};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use crate::sync::thread;

/// The queue capacity for the lines of all plugins.
const QUEUE: usize = 4_096;
/// After how many lines of a burst the position is published: storing it costs more than logging one line.
const TOLD_EVERY: usize = 64;
/// The thread itself needs little stack, but tracing subscribers may need more.
const STACK_BYTES: usize = 512 * 1_024;

/// How far the lines of one stream have been logged.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The offset in the file up to which lines are logged.
    told: AtomicU64,
    waiting: AtomicUsize,
    settled: Notify,
    advanced: Arc<Notify>,
}

impl Progress {
    /// An empty progress. `advanced` is notified when lines have been logged, since that moves the position without a read.
    pub(crate) fn new(advanced: Arc<Notify>) -> Self {
        Self { advanced, ..Self::default() }
    }

    /// Where to continue after a crash at this moment: `read` if the queue is empty, otherwise after the last logged line.
    pub(crate) fn position(&self, read: u64) -> u64 {
        if self.waiting.load(Ordering::Acquire) == 0 { read } else { self.told.load(Ordering::Acquire) }
    }

    /// Waits until the queue is empty.
    pub(crate) async fn settled(&self) {
        loop {
            let settled = self.settled.notified();
            if self.waiting.load(Ordering::Acquire) == 0 {
                return;
            }
            settled.await;
        }
    }

    fn tell(&self, position: u64) {
        self.told.fetch_max(position, Ordering::AcqRel);
        let waiting = self.waiting.fetch_sub(1, Ordering::AcqRel) - 1;
        if waiting == 0 {
            self.settled.notify_one();
        }
        if waiting.is_multiple_of(TOLD_EVERY) {
            self.advanced.notify_waiters();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) plugin: ProcessName,
    pub(crate) line: PluginLine,
    pub(crate) position: u64,
    pub(crate) progress: Arc<Progress>,
}

/// The handle of the thread, which ends with the last handle.
#[derive(Debug, Clone)]
pub struct PluginLog {
    queue: SyncSender<Spoken>,
}

impl PluginLog {
    /// Starts the thread, which logs to the current tracing subscriber of the caller.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start() -> std::io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let builder = thread::Builder::new().name("plugin log".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || tell_all(&lines, &subscriber))?;
        Ok(Self { queue })
    }

    /// Enqueues a line. False if the queue is full; the line is lost then.
    pub(crate) fn tell(&self, spoken: Spoken, read: u64) -> bool {
        let progress = Arc::clone(&spoken.progress);
        if progress.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            progress.told.store(read, Ordering::Release);
        }
        match self.queue.try_send(spoken) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                if progress.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
                    progress.settled.notify_one();
                }
                false
            }
        }
    }
}

fn tell_all(lines: &Receiver<Spoken>, subscriber: &Dispatch) {
    for spoken in lines {
        let told = std::panic::AssertUnwindSafe(|| {
            tracing::dispatcher::with_default(subscriber, || tell(&spoken.plugin, &spoken.line));
        });
        // If a subscriber panics, only this line is lost.
        let _ = std::panic::catch_unwind(told);
        spoken.progress.tell(spoken.position);
    }
}
