//! A host on a thread of its own, for programs that know nothing of actix.

use std::ops::Deref;
use std::thread::JoinHandle;

use actix_rt::System;
use callboard_actors::persister::DiskHealth;
use callboard_actors::shell::StopMode;
use callboard_actors::supervisor::{Shutdown, ShutdownReport};
use tokio::sync::oneshot;

use super::Host;
use super::builder::HostBuilder;
use super::error::StartError;

/// A host that runs on a thread of its own. It is used like a [`Host`], from any thread and any runtime; dropping it lets it
/// run on. The thread ends with the host.
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

    /// Ends everything in order, then the thread. A disk that hangs is not waited for: the report says what it may have lost.
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
        // Joining blocks, though only for as long as the system needs to leave its loop.
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::warn!(error = "it panicked while it ended", "the host's thread");
        }
    }
}

/// A host that was started and that nobody has taken yet. If nobody does, nobody could ever stop it: it is asked to end then, and
/// leaves what it found to the next start.
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
            tracing::info!("nobody waits for the start of the host any more, so it ends");
            // One that has ended already need not be told.
            let _ = host.supervisor().notify(Shutdown { mode: StopMode::Detach });
        }
    }
}

fn run(builder: HostBuilder, tell: oneshot::Sender<Result<Offer, StartError>>) {
    let runner = System::new();
    // Whoever started it may wait no longer, which an offer sees to.
    match runner.block_on(builder.start()) {
        Err(error) => drop(tell.send(Err(error))),
        Ok(host) => {
            drop(tell.send(Ok(Offer(Some(host.clone())))));
            runner.block_on(host.ended());
            // To drop it would wait for the thread of the database, which a disk that does not answer may hold for ever.
            if host.database().disk().health() != DiskHealth::Sound {
                std::mem::forget(runner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_thread_of_a_host_ends_with_it_whoever_stops_it_s4() {
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
}
