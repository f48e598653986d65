//! The options of a host.

use std::path::PathBuf;
use std::sync::Arc;

use callboard_actors::allocation::AllocationOptions;
use callboard_actors::allocations::default_runtime_dir;
use callboard_actors::catalog::CatalogOptions;
use callboard_actors::drivers::DriversOptions;
use callboard_actors::instances::InstancesOptions;
use callboard_actors::inventory::InventoryOptions;
use callboard_actors::mounts::Mounts;
use callboard_actors::persister::{Disk, MemoryDisk};
use callboard_actors::process::Binder;
use callboard_actors::registry::RegistryOptions;
use callboard_actors::shell::{Clock, Drills, IN_FLIGHT_MAX, Journal, Notices};
use callboard_actors::vocabulary::{Probings, RestartBudget};
use callboard_actors::volume::{NoSecrets, SecretSource};
use callboard_actors::volumes::VolumesOptions;

use super::part::AnyPart;
use super::process_owners::ProcessOwners;

/// All options.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) data_dir: PathBuf,
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) registry: RegistryOptions,
    pub(crate) instances: InstancesOptions,
    pub(crate) inventory: InventoryOptions,
    pub(crate) allocation: AllocationOptions,
    /// How the plugins of some allocations are probed.
    pub(crate) probings: Probings,
    pub(crate) drivers: DriversOptions,
    pub(crate) catalog: CatalogOptions,
    pub(crate) volumes: VolumesOptions,
    /// The source of the secrets of volumes.
    pub(crate) secrets: Arc<dyn SecretSource>,
    /// The mounts of volumes, if not those of the kernel.
    pub(crate) mounts: Option<Arc<dyn Mounts>>,
    pub(crate) binder: Option<Binder>,
    pub(crate) budget: RestartBudget,
    /// The parts of the host program.
    pub(crate) parts: Vec<AnyPart>,
    /// The mailbox limit of each actor.
    pub(crate) messages_max: usize,
    pub(crate) notices: Notices,
    /// The clock: the system's clock unless a script has a clock of its own.
    pub(crate) clock: Option<Clock>,
    /// The seed of random numbers: random unless a script must be reproducible.
    pub(crate) seed: Option<u64>,
    /// The disk of the database, if it is not a file.
    pub(crate) disk: Option<MemoryDisk>,
    /// The health of the disk under the database.
    pub(crate) disk_health: Disk,
    /// The journal of the host.
    pub(crate) journal: Journal,
    /// The registry of actors for fault injection, if a test needs it.
    pub(crate) drills: Option<Drills>,
    /// The launcher of the processes of drivers, if it is not the host's own owner of processes.
    pub(crate) process_owners: Option<ProcessOwners>,
}

impl Options {
    pub(crate) fn new(data_dir: PathBuf) -> Self {
        Self {
            data_dir,
            runtime_dir: None,
            allocation: AllocationOptions::default(),
            probings: Probings::default(),
            registry: RegistryOptions::default(),
            instances: InstancesOptions::default(),
            inventory: InventoryOptions::default(),
            drivers: DriversOptions::default(),
            catalog: CatalogOptions::default(),
            volumes: VolumesOptions::default(),
            secrets: Arc::new(NoSecrets),
            mounts: None,
            binder: None,
            budget: RestartBudget::default(),
            parts: vec![],
            messages_max: IN_FLIGHT_MAX,
            notices: Notices::default(),
            clock: None,
            seed: None,
            disk: None,
            disk_health: Disk::default(),
            journal: Journal::default(),
            drills: None,
            process_owners: None,
        }
    }

    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.runtime_dir.clone().unwrap_or_else(default_runtime_dir)
    }
}
