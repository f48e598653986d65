//! Provides the stage for end-to-end tests of hosts and plugins: real hosts, real plugin processes, real sockets, real time.
//!
//! Nothing here relies on a fixed sleep: every wait is for news, or for a condition that can be checked, and has a deadline.

#![allow(dead_code, unused_imports, reason = "each test program uses another part of this")]

pub(crate) mod drivers;
pub(crate) mod go;
mod process;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use callboard::actors::allocation::AllocationOptions;
use callboard::actors::instances::{Dispense, DispenseError, Dispensed, InstancesOptions};
use callboard::actors::inventory::InventoryOptions;
use callboard::actors::registry::{Describe, Description, RegistryOptions};
use callboard::actors::vocabulary::{AllocationId, Backoff, PluginKey, PluginName, PluginType};
use callboard::host::{Host, HostBuilder};
use tempfile::TempDir;

pub(crate) use process::{Task, children_of_this};
pub(crate) use watch::Watch;

/// More time than any step of these tests takes on the slowest machine: when it is over, something is broken.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The pause between two checks of a condition that sends no news.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn node(name: &str) -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new(name).unwrap())
}

pub(crate) fn controller(name: &str) -> PluginKey {
    PluginKey::new(PluginType::CsiController, PluginName::new(name).unwrap())
}

pub(crate) fn id(name: &str) -> AllocationId {
    AllocationId::new(name).unwrap()
}

/// A machine on which hosts start and stop: a data directory, a runtime directory, and room for more.
pub(crate) struct Stage {
    directory: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    /// A host with more frequent rounds and shorter deadlines than by default.
    pub(crate) fn builder(&self) -> HostBuilder {
        self.builder_at(self.data_dir())
    }

    /// The same with another data directory.
    pub(crate) fn builder_at(&self, data_dir: PathBuf) -> HostBuilder {
        Host::builder(data_dir)
            .runtime_dir(self.directory.path())
            .instances(instances())
            .allocation(allocation())
            .registry(registry())
            .inventory(InventoryOptions { restart_grace: Duration::from_secs(5), ..Default::default() })
    }

    pub(crate) async fn host(&self) -> Host {
        self.builder().start().await.unwrap()
    }

    /// All socket files below the data directory and the runtime directory.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        find_sockets(self.directory.path(), &mut found);
        found.sort();
        found
    }
}

fn find_sockets(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
        if kind.is_dir() {
            find_sockets(&path, found);
        } else if std::os::unix::fs::FileTypeExt::is_socket(&kind) {
            found.push(path);
        }
    }
}

pub(crate) fn instances() -> InstancesOptions {
    let mut options = InstancesOptions::default();
    options.limits.round = Duration::from_millis(500);
    options.limits.call_deadline = Duration::from_secs(2);
    options.limits.backoff = Backoff {
        first: Duration::from_millis(50),
        longest: Duration::from_millis(500),
        ..Backoff::default()
    };
    options
}

pub(crate) fn allocation() -> AllocationOptions {
    AllocationOptions {
        round: Duration::from_millis(500),
        call_deadline: Duration::from_secs(2),
        ..AllocationOptions::default()
    }
}

pub(crate) fn registry() -> RegistryOptions {
    RegistryOptions { restore_grace: Duration::from_secs(4), ..RegistryOptions::default() }
}

/// Checks a condition repeatedly until it holds.
pub(crate) async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    assert!(until_in_time(is_so).await, "not within {LONG:?}: {what}");
}

/// Checks a condition repeatedly until it holds, and returns whether it held in time.
pub(crate) async fn until_in_time(mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let began = Instant::now();
    while !is_so().await {
        if began.elapsed() >= LONG {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
    }
    true
}

pub(crate) async fn describe(host: &Host, plugin: &PluginKey) -> Description {
    *host.registry().ask(Describe { plugin: plugin.clone() }).await.unwrap()
}

/// The active allocation, and the standbys in order.
pub(crate) async fn order(host: &Host, plugin: &PluginKey) -> (Option<String>, Vec<String>) {
    let described = describe(host, plugin).await;
    let name = |allocation: &AllocationId| allocation.as_str().to_owned();
    let active = described.active.map(|active| name(&active.registration.allocation));
    (active, described.standby.iter().map(|standby| name(&standby.entry.registration.allocation)).collect())
}

/// Waits until this allocation is active: a newer allocation takes over from a healthy one only after it has proven healthy.
pub(crate) async fn until_active(host: &Host, plugin: &PluginKey, allocation: &str) {
    let is_so = async || order(host, plugin).await.0.as_deref() == Some(allocation);
    until(&format!("{allocation} is active"), is_so).await;
}

pub(crate) async fn dispense(
    host: &Host,
    plugin: &PluginKey,
    within: Duration,
) -> Result<Dispensed, DispenseError> {
    host.instances().ask(Dispense { plugin: plugin.clone(), within }).await.unwrap()
}
