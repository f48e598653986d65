//! Work that may hang: on threads of its own, with a time limit, and a bounded number of them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::{DeviceNumber, Hanging, LookError, MountLimits};
use crate::pauses;

/// The stack of a thread; the deepest one parses the mount table, on the heap.
const STACK_BYTES: usize = 256 * 1_024;

/// The threads of one owner.
#[derive(Debug, Clone)]
pub(super) struct Threads {
    limits: MountLimits,
    pool: Arc<Pool>,
    slots: Arc<Semaphore>,
    running: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    work: BTreeMap<u64, Work>,
}

#[derive(Debug)]
struct Work {
    path: PathBuf,
    attempt: &'static str,
    began: Instant,
    device: Option<DeviceNumber>,
}

/// One piece of work on its thread. Its slot is free again when it is dropped, however the work ends.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    path: PathBuf,
    limits: MountLimits,
    running: Arc<Mutex<Running>>,
    _slot: OwnedSemaphorePermit,
}

impl Threads {
    pub(super) fn new(limits: MountLimits) -> Self {
        let threads = limits.threads.max(1);
        let slots = Arc::new(Semaphore::new(threads));
        Self { limits, pool: Arc::new(Pool::new(threads)), slots, running: Arc::default() }
    }

    /// Runs work on a path. It goes on when the caller has gone, or when its time is up.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        attempt: &'static str,
        path: PathBuf,
        work: impl FnOnce(&Ticket) -> T + Send + 'static,
    ) -> Result<T, LookError> {
        let ticket = self.admit(attempt, &path).await?;
        let refused = |reason: &str| LookError::Refused { path: path.clone(), reason: reason.to_owned() };
        let answered = self.pool.spawn(move || {
            let result = work(&ticket);
            // The slot is free before the caller goes on.
            drop(ticket);
            result
        });
        let answered = answered.ok_or_else(|| refused("no thread could be started"))?;
        match pauses::within(self.limits.time, answered).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err(refused("its thread panicked")),
            Err(_) => Err(LookError::Hung { path, limit: self.limits.time }),
        }
    }

    /// Waits for a free slot. While every thread hangs, nothing is waited for.
    async fn admit(&self, attempt: &'static str, path: &Path) -> Result<Ticket, LookError> {
        let permit = match self.slots.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if self.hanging().len() >= self.limits.threads.max(1) => return Err(self.all_hang(path)),
            Err(_) => match pauses::within(self.limits.time, self.slots.clone().acquire_owned()).await {
                Ok(permit) => permit.expect("the semaphore is never closed"),
                Err(_) => return Err(self.all_hang(path)),
            },
        };
        let mut running = lock(&self.running);
        let number = running.next;
        running.next += 1;
        let work = Work { path: path.to_owned(), attempt, began: Instant::now(), device: None };
        running.work.insert(number, work);
        drop(running);
        let running = Arc::clone(&self.running);
        Ok(Ticket { number, path: path.to_owned(), limits: self.limits, running, _slot: permit })
    }

    /// What has not answered in time, the longest first.
    pub(super) fn hanging(&self) -> Vec<Hanging> {
        let running = lock(&self.running);
        let late = running.work.values().filter(|work| work.began.elapsed() >= self.limits.time);
        let mut late: Vec<Hanging> = late
            .map(|work| Hanging {
                path: work.path.clone(),
                attempt: work.attempt,
                since: work.began.elapsed(),
                device: work.device,
            })
            .collect();
        late.sort_by_key(|hanging| std::cmp::Reverse(hanging.since));
        late
    }

    fn all_hang(&self, path: &Path) -> LookError {
        let hanging = self.hanging();
        let first = hanging.first().map_or_else(|| path.to_owned(), |first| first.path.clone());
        LookError::TooManyHang { path: path.to_owned(), hanging: hanging.len(), first }
    }
}

/// Threads that are used again: to start one takes longer than most looks. Those of a runtime of its own, since the end of a runtime
/// waits for its threads, and these may hang for ever.
#[derive(Debug)]
struct Pool(Option<Runtime>);

impl Pool {
    fn new(threads: usize) -> Self {
        let mut builder = Builder::new_current_thread();
        builder.max_blocking_threads(threads).thread_name("mounts").thread_stack_size(STACK_BYTES);
        Self(Some(builder.build().expect("a runtime without drivers takes nothing from the system")))
    }

    /// Runs work on a thread. `None` if the system has none to give.
    fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<JoinHandle<T>> {
        let runtime = self.0.as_ref()?;
        // It panics if no thread can be started.
        catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(work))).ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Ticket {
    /// Notes the file system that is touched next. Refused if the same look hangs already, or as many of this file system as may.
    pub(super) fn touches(&self, device: DeviceNumber) -> Result<(), LookError> {
        let limit = self.limits.time;
        let mut running = lock(&self.running);
        let late = running.work.iter().filter(|(number, work)| {
            **number != self.number && work.device == Some(device) && work.began.elapsed() >= limit
        });
        let late: Vec<&Work> = late.map(|(_, work)| work).collect();
        let is_full = late.len() >= self.limits.hanging_per_device.max(1);
        if is_full || late.iter().any(|work| work.path == self.path) {
            return Err(LookError::Hung { path: self.path.clone(), limit });
        }
        if let Some(work) = running.work.get_mut(&self.number) {
            work.device = Some(device);
        }
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.running).work.remove(&self.number);
    }
}

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
