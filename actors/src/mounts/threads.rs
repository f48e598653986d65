//! Runs work that may hang: on a bounded number of separate threads, with a time limit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::workers::Workers;
use super::{DeviceNumber, Hanging, LookError, MountLimits};
use crate::pauses;

/// The threads of one owner.
#[derive(Debug, Clone)]
pub(super) struct Threads {
    limits: MountLimits,
    slots: Arc<Semaphore>,
    workers: Arc<Workers>,
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
        let slots = Arc::new(Semaphore::new(limits.threads.max(1)));
        Self { limits, slots, workers: Arc::default(), running: Arc::default() }
    }

    /// Runs work on a path. The work continues when the caller is gone, or its time is over.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        attempt: &'static str,
        path: PathBuf,
        work: impl FnOnce(&mut Ticket) -> T + Send + 'static,
    ) -> Result<T, LookError> {
        let mut ticket = self.admit(attempt, &path).await?;
        let number = ticket.number;
        let (answer, answered) = oneshot::channel();
        let begun = self.workers.run(move || {
            let result = work(&mut ticket);
            // The slot is free before the caller continues.
            drop(ticket);
            // A caller whose time is over is gone.
            let _ = answer.send(result);
        });
        let refused = |reason: String| LookError::Refused { path: path.clone(), reason };
        begun.map_err(|error| refused(format!("no thread could be started: {error}")))?;
        match pauses::within(self.limits.time, answered).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err(refused("its thread panicked".to_owned())),
            Err(_) => {
                let path = lock(&self.running).work.get(&number).map_or(path, |work| work.path.clone());
                Err(LookError::Hung { path, limit: self.limits.time })
            }
        }
    }

    /// Waits for a free slot. While every thread hangs, it does not wait.
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

    /// The work that has not answered in time, the longest first.
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

impl Ticket {
    /// The rest of the work is on another path.
    pub(super) fn goes_on_at(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
        if let Some(work) = lock(&self.running).work.get_mut(&self.number) {
            (work.path, work.device) = (path.to_owned(), None);
        }
    }

    /// Whether anything has not answered in time and still waits.
    pub(super) fn does_any_hang(&self) -> bool {
        lock(&self.running).work.values().any(|work| work.began.elapsed() >= self.limits.time)
    }

    /// Notes the file system that is touched next. Refused if the same look hangs already, or the limit of this file system is reached; for
    /// work that hangs before its file system was known, `device_of` may know it.
    pub(super) fn touches(
        &self,
        device: DeviceNumber,
        device_of: impl Fn(&Path) -> Option<DeviceNumber>,
    ) -> Result<(), LookError> {
        let limit = self.limits.time;
        let mut running = lock(&self.running);
        let late = running.work.iter().filter(|(number, work)| {
            **number != self.number
                && work.began.elapsed() >= limit
                && work.device.or_else(|| device_of(&work.path)) == Some(device)
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use super::*;

    /// NFS asks its server when a path is opened, before it is known on which file system it lies.
    #[tokio::test]
    async fn what_hangs_before_its_file_system_is_known_counts_for_that_file_system_vol_08() {
        // All work is late at once.
        let limits = MountLimits { time: Duration::ZERO, threads: 4, hanging_per_device: 1 };
        let threads = Threads::new(limits);
        let (dead, sound) = (DeviceNumber { major: 0, minor: 7 }, DeviceNumber { major: 8, minor: 1 });
        let device_of = |path: &Path| (path == Path::new("/dead")).then_some(dead);
        let _hung = threads.admit("look at", Path::new("/dead")).await.unwrap();
        let next = threads.admit("look at", Path::new("/next")).await.unwrap();
        assert!(next.does_any_hang());
        assert!(matches!(next.touches(dead, device_of), Err(LookError::Hung { .. })));
        assert_eq!(next.touches(sound, device_of), Ok(()));
        assert_eq!(next.touches(dead, |_| None), Ok(()), "nothing says that it is the same one");
    }

    /// The path that hangs is named, and not the path that was looked at before.
    #[tokio::test]
    async fn what_hangs_at_the_second_of_two_paths_is_told_with_that_path_v7_vol_08() {
        let limits = MountLimits { time: Duration::from_millis(50), threads: 1, hanging_per_device: 1 };
        let threads = Threads::new(limits);
        let (end, ended) = mpsc::channel::<()>();
        let hangs = move |ticket: &mut Ticket| {
            ticket.goes_on_at(Path::new("/staging"));
            ended.recv()
        };
        let found = threads.run("look at", "/target".into(), hangs).await;
        let Err(LookError::Hung { path, .. }) = found else { panic!("{found:?}") };
        assert_eq!(path, Path::new("/staging"));
        assert_eq!(threads.hanging()[0].path, Path::new("/staging"));
        drop(end);
    }

    /// Does work, and returns its thread.
    fn thread_of(workers: &Workers) -> ThreadId {
        let (tell, told) = mpsc::channel();
        workers.run(move || tell.send(thread::current().id()).expect("it is waited for")).expect("it starts");
        told.recv().expect("it is done")
    }

    #[test]
    fn a_thread_does_the_next_work_too() {
        let (workers, mut threads) = (Workers::default(), HashSet::new());
        // The thread may not wait yet when the next work arrives; then that work gets another thread.
        while threads.insert(thread_of(&workers)) {}
    }

    #[test]
    fn a_thread_for_which_there_is_no_work_for_a_while_ends() {
        let idle_max = Duration::from_millis(1);
        let workers = Workers::waiting_for(idle_max);
        let first = thread_of(&workers);
        while thread_of(&workers) == first {
            // It ends eventually: then the next work finds no waiting thread.
            thread::sleep(2 * idle_max);
        }
    }
}
