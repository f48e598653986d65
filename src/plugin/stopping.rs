//! The news that the plugin is to stop.

use std::sync::Arc;

use tokio::sync::watch;

/// The news that the plugin is to stop. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(Arc<watch::Sender<bool>>);

impl Stopping {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Tells it. Told again, nothing changes.
    pub(crate) fn tell(&self, why: &str) {
        if !self.0.send_replace(true) {
            tracing::info!(why, "told to stop");
        }
    }

    /// Comes back when it is told.
    pub(crate) async fn told(&self) {
        // The sender lives in `self`, so there is no other end of this wait.
        let _ = self.0.subscribe().wait_for(|told| *told).await;
    }
}
