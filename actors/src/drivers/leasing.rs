//! Leases drivers to host programs: the owner of the drivers names the serving generation, and its connection is leased.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{DispenseDriver, DispensedDriver, Drivers, NotDispensed, Wanted};
use crate::driver::client::{DriverClient, DriverConnections};
use crate::shell::{Address, AskError};
use crate::vocabulary::DriverName;

/// The pause before the next request if a connection ended between the answer and the lease.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Why there is no lease of a driver now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverNotLeased {
    /// The driver is not available.
    #[error(transparent)]
    NotDispensed(#[from] NotDispensed),
    /// The owner of the drivers did not answer.
    #[error(transparent)]
    NotAnswered(#[from] AskError),
    /// Its connection ended at this moment.
    #[error("the connection to driver {driver} has just ended; try again")]
    JustEnded {
        /// The driver.
        driver: DriverName,
    },
}

impl DriverNotLeased {
    /// Whether a later request may succeed without any change. [`NotAnswered`](Self::NotAnswered) may be, as
    /// [`AskError::is_transient`] says; after the end of the host only leases of the next host can be had.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NotDispensed(error) => error.is_transient(),
            Self::NotAnswered(error) => error.is_transient(),
            Self::JustEnded { .. } => true,
        }
    }
}

/// Gives leases of drivers. Clones share everything; it can be used from any thread with a tokio runtime.
#[derive(Debug, Clone)]
pub struct DriverLeases {
    drivers: Address<Drivers>,
    connections: DriverConnections,
}

impl DriverLeases {
    /// Leases of these drivers. The connections must be those with which their owner was started.
    #[must_use]
    pub const fn new(drivers: Address<Drivers>, connections: DriverConnections) -> Self {
        Self { drivers, connections }
    }

    /// A lease of a driver, as soon as it is in the wanted state. Zero returns the present state.
    ///
    /// # Errors
    /// Those of [`DispenseDriver`] when the driver cannot be had in time, and [`DriverNotLeased::NotAnswered`] when the host is not
    /// running.
    pub fn lease(
        &self,
        driver: &DriverName,
        wanted: Wanted,
        within: Duration,
    ) -> impl Future<Output = Result<DriverClient, DriverNotLeased>> + use<> {
        let (leases, driver) = (self.clone(), driver.clone());
        let dispense = move |within| DispenseDriver { name: driver.clone(), wanted, within };
        // Like every message, the request is sent before this returns.
        let mut asked = self.drivers.ask(dispense(within));
        async move {
            // A timeout that a clock cannot represent has no end.
            let until = Instant::now().checked_add(within);
            loop {
                let DispensedDriver { driver, generation } = asked.await??;
                if let Some(client) = leases.connections.lease(&driver, generation) {
                    return Ok(client);
                }
                // Its connection has ended, and its owner has not received that yet.
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Err(DriverNotLeased::JustEnded { driver });
                }
                sleep(RETRY_PAUSE).await;
                let left = until.map_or(within, |until| until.saturating_duration_since(Instant::now()));
                asked = leases.drivers.ask(dispense(left));
            }
        }
    }
}
