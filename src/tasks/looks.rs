//! Scans of the machine's processes, each on its own thread: a read of `/proc` blocks while a process holds its memory locked.
//!
//! A scan continues after its caller has timed out, and may still kill what it finds. So there is at most one scan per task,
//! and at most [`LOOKS_MAX`] in all: more would only use up threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callboard_actors::vocabulary::AllocationId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limit of concurrent scans. They share one read of `/proc`, so many are cheap; the limit is for those that hang.
const LOOKS_MAX: usize = 256;
/// The timeout to wait for earlier scans: shorter than the caller's own timeout.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(super) struct Looks {
    all: Arc<Semaphore>,
    of_tasks: Arc<Mutex<BTreeMap<AllocationId, Arc<Semaphore>>>>,
    timeout: Duration,
}

impl Default for Looks {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(LOOKS_MAX)), of_tasks: Arc::default(), timeout: LOOK_TIMEOUT }
    }
}

impl Looks {
    /// Runs a scan for a task, after earlier ones of the same task. Returns the reason if it cannot start in time.
    pub(super) async fn take<T: Send + 'static>(
        &self,
        task: &AllocationId,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let permits = tokio::time::timeout(self.timeout, self.permits(task)).await.map_err(|_| {
            format!(
                "cannot read the processes of this machine: earlier reads have not ended within {:?}: reading \
                 /proc may be held up by a process whose memory is locked",
                self.timeout
            )
        })?;
        let taken = tokio::task::spawn_blocking(move || {
            let taken = look();
            drop(permits);
            taken
        });
        taken.await.map_err(|error| format!("cannot read the processes of this machine: {error}"))
    }

    async fn permits(&self, task: &AllocationId) -> [OwnedSemaphorePermit; 2] {
        let own = self.of_task(task);
        let own = own.acquire_owned().await.expect("it is never closed");
        let one = Arc::clone(&self.all).acquire_owned().await.expect("it is never closed");
        [own, one]
    }

    fn of_task(&self, task: &AllocationId) -> Arc<Semaphore> {
        let mut of_tasks = self.of_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Each holder of a permit, and each waiter, has a reference of its own.
        of_tasks.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        Arc::clone(of_tasks.entry(task.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures_util::FutureExt as _;

    use super::*;

    fn web() -> AllocationId {
        AllocationId::new("web").unwrap()
    }

    #[tokio::test]
    async fn a_look_that_is_not_awaited_any_more_ends_before_the_next_one_for_its_task_begins_t4() {
        let looks = Looks::default();
        let ((began, has_begun), (release, released)) = (channel(), channel::<()>());
        let name = web();
        let mut first = Box::pin(looks.take(&name, move || {
            began.send(()).unwrap();
            released.recv().unwrap();
        }));
        assert!((&mut first).now_or_never().is_none());
        tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
        drop(first);

        let name = web();
        let mut second = Box::pin(looks.take(&name, || "taken"));
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(looks.take(&AllocationId::new("api").unwrap(), || "at once").await, Ok("at once"));
        assert!((&mut second).now_or_never().is_none(), "the first one is under way");
        release.send(()).unwrap();
        assert_eq!(second.await, Ok("taken"));
    }

    #[tokio::test]
    async fn looks_that_hang_cost_a_bounded_number_of_threads_and_others_are_told() {
        let looks = Looks {
            all: Arc::new(Semaphore::new(1)),
            timeout: Duration::from_millis(20),
            ..Looks::default()
        };
        let (release, released) = channel::<()>();
        let name = web();
        let mut hung = Box::pin(looks.take(&name, move || released.recv().unwrap()));
        assert!((&mut hung).now_or_never().is_none());
        let told = looks.take(&AllocationId::new("api").unwrap(), || ()).await.unwrap_err();
        assert!(told.contains("earlier reads have not ended within 20ms"), "{told}");
        release.send(()).unwrap();
        hung.await.unwrap();
    }
}
