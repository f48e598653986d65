//! A host on a thread of its own, for programs that know nothing of actix.

use std::io;
use std::ops::Deref;
use std::thread::JoinHandle;

use actix_rt::System;
use callboard_actors::supervisor::ShutdownReport;
use tokio::sync::oneshot;

use super::Host;
use super::builder::HostBuilder;
use super::error::StartError;

/// A host that runs on a thread of its own. It is used like a [`Host`], from any thread and any runtime; dropping it lets it
/// run on.
#[derive(Debug)]
pub struct HostThread {
    host: Host,
    system: System,
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
        let (host, system) = started?;
        Ok(Self { host, system, thread })
    }

    /// Ends everything in order, then the thread.
    pub async fn stop(self) -> ShutdownReport {
        let report = self.host.stop().await;
        self.end().await;
        report
    }

    /// Ends everything in order and leaves registrations and sockets in place, then ends the thread.
    pub async fn detach(self) -> ShutdownReport {
        let report = self.host.detach().await;
        self.end().await;
        report
    }

    async fn end(self) {
        self.system.stop();
        let thread = self.thread;
        // Joining blocks, though only for as long as the system needs to leave its loop.
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::warn!(error = "it panicked while it ended", "the host's thread");
        }
    }
}

type Started = Result<(Host, System), StartError>;

fn run(builder: HostBuilder, tell: oneshot::Sender<Started>) {
    let runner = System::new();
    let started = runner.block_on(builder.start());
    let system = System::current();
    let is_running = started.is_ok();
    // Nobody may be waiting for the start any more; then nobody could ever stop it, so it ends here.
    let is_heard = tell.send(started.map(|host| (host, system))).is_ok();
    if is_running && is_heard {
        let ran: io::Result<()> = runner.run();
        if let Err(error) = ran {
            tracing::error!(%error, "the host's thread ended");
        }
    }
}
