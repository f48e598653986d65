//! A host on a thread of its own, for programs that do not use actix.

use std::io;
use std::ops::Deref;
use std::thread::JoinHandle;

use actix_rt::{System, SystemRunner};
use callboard_actors::persister::DiskHealth;
use callboard_actors::shell::StopMode;
use callboard_actors::supervisor::{Shutdown, ShutdownReport};
use tokio::sync::oneshot;

use super::Host;
use super::builder::HostBuilder;
use super::error::StartError;

/// A host that runs on a thread of its own. It is used like a [`Host`], from any thread and any runtime; after a drop it continues to run.
/// The thread ends with the host.
#[derive(Debug)]
pub struct HostThread {
    host: Host,
    thread: JoinHandle<()>,
}

impl Deref for HostThread {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl HostThread {
    pub(super) async fn start(builder: HostBuilder) -> Result<Self, StartError> {
        let (tell, told) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("callboard".to_owned())
            .spawn(move || run(builder, tell))
            .map_err(StartError::Thread)?;
        let started = told.await.map_err(|_| StartError::Ended("its thread ended".to_owned()))?;
        Ok(Self { host: started?.take(), thread })
    }

    /// Ends everything in order, then the thread. It does not wait for a disk that hangs: the report lists what that disk may have lost.
    pub async fn stop(self) -> ShutdownReport {
        let report = self.host.stop().await;
        self.join().await;
        report
    }

    /// Ends everything in order and leaves registrations and sockets in place, then ends the thread.
    pub async fn detach(self) -> ShutdownReport {
        let report = self.host.detach().await;
        self.join().await;
        report
    }

    async fn join(self) {
        let thread = self.thread;
        // Joining blocks, but only while the system leaves its loop.
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::warn!("the host thread panicked while stopping");
        }
    }
}

/// A started host that no caller has taken yet. If no caller takes it, it could never be stopped: then it is requested to end, and leaves
/// what it found to the next start.
#[derive(Debug)]
struct Offer(Option<Host>);

impl Offer {
    fn take(mut self) -> Host {
        self.0.take().expect("it is taken once")
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(host) = &self.0 {
            tracing::info!("no caller waits for the start of the host any more; stopping it");
            // A host that has already ended needs no notification.
            let _ = host.supervisor().notify(Shutdown { mode: StopMode::Detach });
        }
    }
}

/// The maximum number of threads of a host's system for work that may block: files, `/proc` and the database. Further work waits for one of
/// them. A thread ends after 10 s without work.
pub const BLOCKING_THREADS_MAX: usize = 64;

/// An actix system for a host, on the present thread, as used by `callboard run` and [`HostThread`]. A system made by `System::new` has up
/// to 512 threads for work that may block.
///
/// # Errors
/// When the system refuses a resource that an event loop needs.
pub fn system() -> io::Result<SystemRunner> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(BLOCKING_THREADS_MAX).build()?;
    Ok(System::with_tokio_rt(move || runtime))
}

fn run(builder: HostBuilder, tell: oneshot::Sender<Result<Offer, StartError>>) {
    let runner = match system() {
        Ok(runner) => runner,
        Err(error) => return drop(tell.send(Err(StartError::Thread(error)))),
    };
    // The caller that started it may have timed out; the offer handles that.
    match runner.block_on(builder.start()) {
        Err(error) => drop(tell.send(Err(error))),
        Ok(host) => {
            drop(tell.send(Ok(Offer(Some(host.clone())))));
            runner.block_on(host.ended());
            // Dropping it would wait for the thread of the database, which a disk that does not respond may hold forever.
            if host.database().disk().health() != DiskHealth::Sound {
                std::mem::forget(runner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_thread_of_a_host_ends_with_it_whatever_stops_it_s4() {
        let data_dir = tempfile::tempdir().unwrap();
        let (tell, told) = oneshot::channel();
        let builder = Host::builder(data_dir.path());
        let thread = std::thread::spawn(move || run(builder, tell));
        let host = told.blocking_recv().expect("it answers").expect("it starts").take();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let report = runtime.block_on(host.stop());
        assert_eq!(report.not_in_order().count(), 0, "{report:?}");
        let began = Instant::now();
        while !thread.is_finished() {
            assert!(began.elapsed() < Duration::from_secs(60), "the thread goes on without its host");
            std::thread::sleep(Duration::from_millis(1));
        }
        thread.join().expect("it does not panic");
    }

    #[test]
    fn more_work_that_blocks_than_there_may_be_threads_waits_for_one_scl_02() {
        // How many of them run, and the maximum so far.
        let running = Arc::new((Mutex::new((0, 0)), Condvar::new()));
        let work = |running: Arc<(Mutex<(usize, usize)>, Condvar)>| {
            move || {
                let (counts, changed) = &*running;
                let mut now = counts.lock().unwrap();
                now.0 += 1;
                now.1 = now.1.max(now.0);
                changed.notify_all();
                // None ends before the maximum number run.
                let mut now = changed.wait_while(now, |now| now.1 < BLOCKING_THREADS_MAX).unwrap();
                now.0 -= 1;
            }
        };
        let all = (0..3 * BLOCKING_THREADS_MAX).map(|_| work(Arc::clone(&running)));
        system().unwrap().block_on(async {
            let all: Vec<_> = all.map(tokio::task::spawn_blocking).collect();
            for done in all {
                done.await.unwrap();
            }
        });
        assert_eq!(*running.0.lock().unwrap(), (0, BLOCKING_THREADS_MAX));
    }
}
