//! Calls to plugins of all families, for host programs.

use std::time::Duration;

use callboard_actors::csi;
use callboard_actors::driver::client::DriverClient;
use callboard_actors::drivers::{DriverLeases, DriverNotLeased, Wanted};
use callboard_actors::instances::{self, LeaseRefused};
use callboard_actors::lease::Lease;
use callboard_actors::vocabulary::{DriverName, PluginKey};

/// Gives leases of plugins and drivers: each is a client of one generation that never reconnects. Calls in flight are counted, limited, and
/// waited for when their plugin or driver is stopped. Clones share everything; it can be used from any thread with a tokio runtime.
///
/// ```no_run
/// # use std::time::Duration;
/// # use callboard::actors::driver::client::{DriverError, TaskId};
/// # use callboard::actors::drivers::Wanted;
/// # use callboard::actors::vocabulary::DriverName;
/// # async fn inspect(host: callboard::host::Host) -> Result<(), Box<dyn std::error::Error>> {
/// let exec = DriverName::new("raw_exec")?;
/// let driver = host.leases().driver(&exec, Wanted::Healthy, Duration::from_secs(30)).await?;
/// match driver.inspect_task(&TaskId::new("a1/main/1")?, Duration::from_secs(5)).await {
///     Ok(status) => println!("{status:?}"),
///     // Its process has ended, or it was stopped: this lease is no longer valid.
///     Err(DriverError::PluginGone { is_worth_retrying: true, .. }) => println!("ask for a new lease"),
///     Err(error) => println!("{error}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Leases {
    plugins: instances::Leases,
    drivers: DriverLeases,
}

impl Leases {
    pub(super) const fn new(plugins: instances::Leases, drivers: DriverLeases) -> Self {
        Self { plugins, drivers }
    }

    /// A lease of a plugin, as soon as the plugin is healthy. Zero returns the present state.
    ///
    /// # Errors
    /// As [`instances::Leases::lease`].
    pub async fn lease(&self, plugin: &PluginKey, within: Duration) -> Result<Lease, LeaseRefused> {
        self.plugins.lease(plugin, within).await
    }

    /// A typed client of a CSI plugin over a lease, as soon as the plugin is healthy. Zero returns the present state.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use callboard::actors::csi::ListVolumesRequest;
    /// # use callboard::actors::vocabulary::PluginKey;
    /// # async fn list(host: callboard::host::Host, zfs: PluginKey) -> Result<(), Box<dyn std::error::Error>> {
    /// let client = host.leases().csi(&zfs, Duration::from_secs(30)).await?;
    /// let page = client.list_volumes(&ListVolumesRequest::default(), Duration::from_secs(10)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::lease`].
    pub async fn csi(&self, plugin: &PluginKey, within: Duration) -> Result<csi::Client, LeaseRefused> {
        self.lease(plugin, within).await.map(csi::Client::new)
    }

    /// A lease of a driver, as soon as the driver has the wanted state. Zero returns the present state.
    ///
    /// # Errors
    /// As [`DriverLeases::lease`].
    pub fn driver(
        &self,
        driver: &DriverName,
        wanted: Wanted,
        within: Duration,
    ) -> impl Future<Output = Result<DriverClient, DriverNotLeased>> + use<> {
        self.drivers.lease(driver, wanted, within)
    }
}
