//! The signals by which a program is asked to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a program to end.
pub(super) struct Signals([(Signal, &'static str); 3]);

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self([
            (signal(SignalKind::terminate())?, "SIGTERM"),
            (signal(SignalKind::interrupt())?, "SIGINT"),
            (signal(SignalKind::hangup())?, "SIGHUP"),
        ]))
    }

    /// Waits for the next one, and names it.
    pub(super) async fn next(&mut self) -> &'static str {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.0.recv() => terminate.1,
            _ = interrupt.0.recv() => interrupt.1,
            _ = hangup.0.recv() => hangup.1,
        }
    }
}
