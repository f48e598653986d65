//! The options of a host.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actix_rt::System;
use callboard_actors::allocation::AllocationOptions;
use callboard_actors::catalog::CatalogOptions;
use callboard_actors::drivers::DriversOptions;
use callboard_actors::instances::InstancesOptions;
use callboard_actors::inventory::InventoryOptions;
use callboard_actors::process::Binder;
use callboard_actors::registry::RegistryOptions;
use callboard_actors::shell::{Machine, Notices};
use callboard_actors::vocabulary::{AllocationId, Probing, RestartBudget};
use callboard_actors::volume::SecretSource;
use callboard_actors::volumes::VolumesOptions;

use super::Host;
use super::error::StartError;
use super::thread::HostThread;
#[cfg(feature = "cli")]
use crate::launch::AnyPart;
use crate::launch::{self, Options, Part};

/// A host that is about to start. Every option has a default.
#[derive(Debug, Clone)]
pub struct HostBuilder {
    options: Options,
}

impl HostBuilder {
    pub(super) fn new(data_dir: PathBuf) -> Self {
        // If the working directory is unknown, the path stays as it is, and the start reports what is wrong with it.
        let data_dir = std::path::absolute(&data_dir).unwrap_or(data_dir);
        Self { options: Options::new(data_dir) }
    }

    /// The directory for sockets whose path below the data directory would be too long for a Unix socket (SEC-01). By default the user's
    /// runtime directory, or a directory of the user alone below the directory for temporary files.
    #[must_use]
    pub fn runtime_dir(mut self, runtime_dir: impl Into<PathBuf>) -> Self {
        self.options.runtime_dir = Some(runtime_dir.into());
        self
    }

    /// The options of the supervisor of each allocation.
    #[must_use]
    pub fn allocation(mut self, options: AllocationOptions) -> Self {
        self.options.allocation = options;
        self
    }

    /// How the plugins of these allocations are probed, where that differs from the others.
    #[must_use]
    pub fn probings(mut self, probings: BTreeMap<AllocationId, Probing>) -> Self {
        self.options.probings = Arc::new(probings);
        self
    }

    /// The options of the registry.
    #[must_use]
    pub fn registry(mut self, options: RegistryOptions) -> Self {
        self.options.registry = options;
        self
    }

    /// The options of the instances: rounds, deadlines, hysteresis.
    #[must_use]
    pub fn instances(mut self, options: InstancesOptions) -> Self {
        self.options.instances = options;
        self
    }

    /// The options of the inventory: the first wait and the restart grace.
    #[must_use]
    pub fn inventory(mut self, options: InventoryOptions) -> Self {
        self.options.inventory = options;
        self
    }

    /// The options of the drivers: which are allowed, backoff, deadlines, limits.
    #[must_use]
    pub fn drivers(mut self, options: DriversOptions) -> Self {
        self.options.drivers = options;
        self
    }

    /// The options of the catalog: where plugins lie, and which of them may be launched. By default there are none.
    #[must_use]
    pub fn catalog(mut self, options: CatalogOptions) -> Self {
        self.options.catalog = options;
        self
    }

    /// The options of the volumes: deadlines, backoff, limits. With a `call_deadline` that is not longer than `look_deadline` the host does
    /// not start ([`StartError::VolumeDeadlines`]).
    #[must_use]
    pub fn volumes(mut self, options: VolumesOptions) -> Self {
        self.options.volumes = options;
        self
    }

    /// The source of the secrets of volumes, if any volume needs secrets. It is called on the thread of the host, and must not block it.
    #[must_use]
    pub fn secrets(mut self, secrets: Arc<dyn SecretSource>) -> Self {
        self.options.secrets = secrets;
        self
    }

    /// Adds an actor of the host program. It is supervised like the host's own actors: started after its dependencies, stopped before them,
    /// and shown wherever they are shown.
    #[must_use]
    pub fn part<M: Machine>(mut self, part: Part<M>) -> Self {
        self.options.parts.push(part.into());
        self
    }

    /// Binds processes to this host, so that the kernel ends them with it (PRC-04). Without it only processes that survive their host can
    /// be launched.
    #[must_use]
    pub fn binder(mut self, binder: Binder) -> Self {
        self.options.binder = Some(binder);
        self
    }

    /// How many restarts of its actors the host tolerates before it gives up.
    #[must_use]
    pub fn restart_budget(mut self, budget: RestartBudget) -> Self {
        self.options.budget = budget;
        self
    }

    /// The destination of crashes, failed writes and dead letters, if the host program already has one.
    #[must_use]
    pub fn notices(mut self, notices: Notices) -> Self {
        self.options.notices = notices;
        self
    }

    /// Starts the host on the present arbiter of a running actix system.
    ///
    /// # Errors
    /// [`StartError`] reports the attempted operation, its object and what to do. Nothing runs then. Outside of an actix system it is
    /// [`StartError::NoSystem`]; plain tokio programs use [`start_on_own_thread`](Self::start_on_own_thread).
    pub async fn start(self) -> Result<Host, StartError> {
        // Before anything is opened.
        if !System::is_registered() {
            return Err(StartError::NoSystem);
        }
        launch::launch(self.options).await
    }

    /// The same with additional parts, which `add` makes after the data directory is locked and before any actor starts.
    #[cfg(feature = "cli")]
    pub(crate) async fn start_with<E: From<StartError>>(
        self,
        add: impl AsyncFnOnce(&Host) -> Result<Vec<AnyPart>, E>,
    ) -> Result<Host, E> {
        launch::launch_with(self.options, add).await
    }

    /// Starts the host on a thread of its own, from any runtime.
    ///
    /// # Errors
    /// As [`start`](Self::start), and when no thread can be started.
    pub async fn start_on_own_thread(self) -> Result<HostThread, StartError> {
        HostThread::start(self).await
    }
}
