//! Writes chunks to logs, on a thread that is replaced when a log hangs.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::log::LogFile;
use super::{HUNG_AFTER, STACK_BYTES};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::mpsc::{Receiver, Sender, channel};
use crate::sync::{Arc, Instant, Mutex, MutexGuard, PoisonError, thread};

/// How many writers may hang before no more are started: then a whole disk hangs, and further writers would hang too.
const HUNG_MAX: usize = 16;

/// Which logs have occupied their writer for too long.
pub(crate) enum Hung {
    /// None: a log that waits for its turn does not hang.
    None,
    /// The log that is being written.
    One(u64),
    /// All logs that wait for their turn: there is no writer for them.
    Queue,
}

/// A log that has accepted its chunk.
pub(crate) struct Written {
    pub(crate) number: u64,
    pub(crate) log: LogFile,
}

struct Order {
    number: u64,
    log: LogFile,
    chunk: Vec<u8>,
}

/// The present work of a writer, as the reader sees it.
#[derive(Default)]
struct Doing {
    /// The copy of the log, the path of the log, and the start of the write.
    now: Option<(u64, std::path::PathBuf, Instant)>,
    /// Another writer has taken its place.
    is_replaced: bool,
}

/// The state that all writers share.
struct Shared {
    orders: Mutex<Receiver<Order>>,
    written: Sender<Written>,
    wake: Arc<OwnedFd>,
    /// The number of queued chunks that are not written.
    open: AtomicUsize,
    /// The number of replaced writers that still run.
    hung: AtomicUsize,
}

pub(crate) struct Writers {
    orders: Sender<Order>,
    shared: Arc<Shared>,
    doing: Arc<Mutex<Doing>>,
}

impl Writers {
    /// Starts the first writer. Written logs are sent to `written`, and `wake` becomes readable.
    pub(crate) fn start(written: Sender<Written>, wake: Arc<OwnedFd>) -> io::Result<Self> {
        let (orders, received) = channel();
        let (open, hung) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared { orders: Mutex::new(received), written, wake, open, hung });
        let doing = start(&shared)?;
        Ok(Self { orders, shared, doing })
    }

    /// Queues a chunk to be written.
    pub(crate) fn take(&self, number: u64, log: LogFile, chunk: Vec<u8>) {
        self.shared.open.fetch_add(1, Ordering::AcqRel);
        let order = Order { number, log, chunk };
        assert!(self.orders.send(order).is_ok(), "the queue is shared by the writers and this");
    }

    /// Whether a chunk is to be written.
    pub(crate) fn has_work(&self) -> bool {
        self.shared.open.load(Ordering::Acquire) > 0
    }

    /// Starts another writer in place of a hanging writer. If none can be started, this is retried later.
    pub(crate) fn replace_hung(&mut self) -> Hung {
        let mut doing = lock(&self.doing);
        let (number, path) = match &doing.now {
            Some((number, path, since)) if since.elapsed() >= HUNG_AFTER => {
                (*number, path.display().to_string())
            }
            Some(_) | None => return Hung::None,
        };
        if self.shared.hung.load(Ordering::Acquire) >= HUNG_MAX {
            return Hung::Queue;
        }
        let Ok(next) = start(&self.shared) else { return Hung::Queue };
        doing.is_replaced = true;
        self.shared.hung.fetch_add(1, Ordering::AcqRel);
        drop(doing);
        self.doing = next;
        tracing::warn!(
            path,
            "writing the log of a process hangs; its output is dropped until the disk responds"
        );
        Hung::One(number)
    }
}

fn lock(doing: &Mutex<Doing>) -> MutexGuard<'_, Doing> {
    doing.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(shared: &Arc<Shared>) -> io::Result<Arc<Mutex<Doing>>> {
    let (shared, doing) = (Arc::clone(shared), Arc::<Mutex<Doing>>::default());
    let known = Arc::clone(&doing);
    let builder = thread::Builder::new().name("process writer".to_owned()).stack_size(STACK_BYTES);
    builder.spawn(move || write_all(&shared, &known))?;
    Ok(doing)
}

/// Writes until no more orders can arrive, or another writer has replaced this one.
fn write_all(shared: &Shared, doing: &Mutex<Doing>) {
    loop {
        let next = shared.orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Order { number, mut log, chunk }) = next else { return };
        lock(doing).now = Some((number, log.path().to_owned(), Instant::now()));
        // A failure of one log does not affect others.
        let _ = catch_unwind(AssertUnwindSafe(|| log.append(&chunk)));
        let is_replaced = {
            let mut doing = lock(doing);
            doing.now = None;
            doing.is_replaced
        };
        shared.open.fetch_sub(1, Ordering::AcqRel);
        // The reader may have ended.
        let _ = shared.written.send(Written { number, log });
        let _ = rustix::io::write(&*shared.wake, &1_u64.to_ne_bytes());
        if is_replaced {
            shared.hung.fetch_sub(1, Ordering::AcqRel);
            return;
        }
    }
}
