//! Handles the signals that request a program to end.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::process::IgnoredSignals;

/// The signals that request a program to end.
pub(super) struct Signals {
    streams: [(Signal, &'static str); 3],
    /// Whether SIGHUP was ignored when the program began: then it does not end with its terminal.
    outlives_terminal: bool,
}

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        let ignored = IgnoredSignals::now();
        ignored.catch()?;
        let streams = [
            (signal(SignalKind::terminate())?, "SIGTERM"),
            (signal(SignalKind::interrupt())?, "SIGINT"),
            (signal(SignalKind::hangup())?, "SIGHUP"),
        ];
        Ok(Self { streams, outlives_terminal: ignored.has(SignalKind::hangup()) })
    }

    /// Runs a future, unless a signal arrives before it has recorded that it began something: then it is dropped, and the signal returned.
    pub(super) async fn unless_told_before<T>(
        &mut self,
        has_begun: &Notify,
        work: impl Future<Output = T>,
    ) -> Result<T, &'static str> {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = has_begun.notified() => {}
            name = self.next() => return Err(name),
        }
        Ok(work.await)
    }

    /// Waits for the next signal, and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        let [terminate, interrupt, hangup] = &mut self.streams;
        tokio::select! {
            _ = terminate.0.recv() => terminate.1,
            _ = interrupt.0.recv() => interrupt.1,
            _ = hangup.0.recv(), if !self.outlives_terminal => hangup.1,
        }
    }
}
