//! The stop request of a plugin.

use std::sync::Arc;

use tokio::sync::watch;

/// The stop request of a plugin. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Stopping(Arc<watch::Sender<bool>>);

impl Stopping {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Requests the stop. Idempotent.
    pub(crate) fn tell(&self, why: &str) {
        if !self.0.send_replace(true) {
            tracing::info!(why, "told to stop");
        }
    }

    pub(crate) async fn told(&self) {
        // `self` holds the sender, so the channel cannot close during this wait.
        let _ = self.0.subscribe().wait_for(|told| *told).await;
    }
}
