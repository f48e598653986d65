//! Gives leases of plugins to host programs: the supervisor of instances chooses the serving generation, and its connection is leased.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{CheckNow, Dispense, DispenseError, Instances};
use crate::lease::{Connections, Lease};
use crate::shell::{Address, AskError};
use crate::vocabulary::PluginKey;

/// The pause before the next question if a connection ended between the answer and the lease.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// The reason that there is no lease of a plugin now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseRefused {
    /// The plugin is not available.
    #[error(transparent)]
    NotDispensed(#[from] DispenseError),
    /// The supervisor of instances did not answer.
    #[error(transparent)]
    NotAnswered(#[from] AskError),
    /// Its connection ended at this moment.
    #[error("the connection to {plugin} has just ended; try again")]
    JustEnded {
        /// The plugin.
        plugin: PluginKey,
    },
}

impl LeaseRefused {
    /// Whether a later request may succeed without any action. For [`NotAnswered`](Self::NotAnswered) see [`AskError::is_transient`]; after
    /// the end of the host only the next host can give leases.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NotDispensed(error) => match error {
                DispenseError::NotServed { .. }
                | DispenseError::NotReady { .. }
                | DispenseError::Unhealthy { .. }
                | DispenseError::TooMany { .. } => true,
                DispenseError::Stopping { .. } => false,
            },
            Self::NotAnswered(error) => error.is_transient(),
            Self::JustEnded { .. } => true,
        }
    }
}

/// Provides leases of plugins. Clones share everything; it can be used from any thread with a tokio runtime.
#[derive(Debug, Clone)]
pub struct Leases {
    instances: Address<Instances>,
    connections: Connections,
}

impl Leases {
    /// Leases of the plugins of these instances. The connections must be those with which the instances were started.
    #[must_use]
    pub const fn new(instances: Address<Instances>, connections: Connections) -> Self {
        Self { instances, connections }
    }

    /// A lease of a plugin, as soon as it is healthy. Zero returns the present state.
    ///
    /// # Errors
    /// Those of [`Dispense`] when the plugin is not healthy in time, and [`LeaseRefused::NotAnswered`] when the host is not running.
    pub async fn lease(&self, plugin: &PluginKey, within: Duration) -> Result<Lease, LeaseRefused> {
        // A timeout beyond the range of the clock never ends.
        let until = Instant::now().checked_add(within);
        let mut is_retry = false;
        loop {
            let left = until.map_or(within, |until| until.saturating_duration_since(Instant::now()));
            let dispensed = self.instances.ask(Dispense { plugin: plugin.clone(), within: left }).await??;
            let lease = self.connections.lease(plugin, dispensed.generation, &dispensed.fingerprint);
            if let Some(lease) = lease {
                return Ok(lease);
            }
            // Its connection has ended, and its instance has not checked since.
            let check = self.instances.ask(CheckNow { plugin: plugin.clone() });
            if timeout(left, check).await.is_err() || until.is_some_and(|until| Instant::now() >= until) {
                return Err(LeaseRefused::JustEnded { plugin: plugin.clone() });
            }
            // After a failed check the next request waits for a healthy generation. Only a connection that ends again needs a pause.
            if std::mem::replace(&mut is_retry, true) {
                sleep(RETRY_PAUSE.min(left)).await;
            }
        }
    }
}
