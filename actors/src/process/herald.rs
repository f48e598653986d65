//! Tells the lines of plugins to whoever reads our log, on a thread of its own: a log that stands still holds up nobody but
//! this thread, and what does not fit into its queue is dropped and counted (LOG-03).

use tokio::sync::Notify;
use tracing::Dispatch;

use super::name::ProcessName;
use crate::goplugin::{PluginLine, tell};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use crate::sync::thread;

/// How many lines of all plugins may wait to be told.
const QUEUE: usize = 4_096;
/// After how many lines of a burst their position is made known: keeping it costs more than telling one line.
const TOLD_EVERY: usize = 64;
/// The thread needs little stack of its own, but subscribers may need more.
const STACK_BYTES: usize = 512 * 1_024;

/// How far the lines of one stream have been told.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Up to here in the file.
    told: AtomicU64,
    /// How many lines wait.
    waiting: AtomicUsize,
    settled: Notify,
    advanced: Arc<Notify>,
}

impl Progress {
    /// Nothing waits. What is given is woken when lines have been told, since that moves the position although nothing is read.
    pub(crate) fn new(advanced: Arc<Notify>) -> Self {
        Self { advanced, ..Self::default() }
    }

    /// Where to read on if everything ended now: `read` if nothing waits, and else behind the last line that was told.
    pub(crate) fn position(&self, read: u64) -> u64 {
        if self.waiting.load(Ordering::Acquire) == 0 { read } else { self.told.load(Ordering::Acquire) }
    }

    /// Waits until nothing waits.
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

/// One line, and where in its file it ends.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) plugin: ProcessName,
    pub(crate) line: PluginLine,
    pub(crate) position: u64,
    pub(crate) progress: Arc<Progress>,
}

/// The way to the thread. It ends with the last of these.
#[derive(Debug, Clone)]
pub struct Herald {
    queue: SyncSender<Spoken>,
}

impl Herald {
    /// Starts the thread, which tells the lines to the subscriber that is the present one here.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> std::io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let builder = thread::Builder::new().name("plugin log".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || tell_all(&lines, &subscriber))?;
        Ok(Self { queue })
    }

    /// Hands a line over. False if the queue is full; the line is lost then.
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
        // A subscriber that panics loses this line and no other.
        let _ = std::panic::catch_unwind(told);
        spoken.progress.tell(spoken.position);
    }
}
