//! A node: registry, instances and volumes in one runtime, with ledgers that outlive the actors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::csi::{AccessMode, AccessType, Context, MountVolume, VolumeCapability};
use callboard_actors::registry::{Deregister, LeaveCause, Register};
use callboard_actors::shell::{Address, Database, Drill, Drills, Running, Settings, StopMode};
use callboard_actors::vocabulary::{PluginName, RunNumber, VolumeName, VolumeNamespace};
use callboard_actors::volume::{
    Claimed, NoSecrets, ObservedEnd, Released, SecretSource, Shared, Usage, VolumeKey, VolumeOptions,
    VolumeSpec,
};
use callboard_actors::volumes::{
    self, Claim, ClaimError, DescribeVolume, KnownVolume, ListVolumes, RegisterVolume, Release, ReleaseError,
    VolumeReport, Volumes, VolumesConfig, VolumesOptions,
};

use crate::fixture::{Fixture, LONG, allocation, controller, node};
use crate::kernel::Kernel;
use crate::plugin::{Plugin, Serving};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// How long callers wait, unless their test sets another time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
const DATA_DIR: &str = "/data";

/// Where the volumes are stored, independently of their actors.
#[derive(Clone)]
pub(crate) enum Kept {
    InMemory(volumes::MemoryStore),
    OnDisk(Database),
}

impl Default for Kept {
    fn default() -> Self {
        Self::InMemory(volumes::MemoryStore::default())
    }
}

/// The options of a node.
pub(crate) struct Choices {
    pub(crate) options: VolumesOptions,
    pub(crate) secrets: Arc<dyn SecretSource>,
    pub(crate) kept: Kept,
}

impl Default for Choices {
    fn default() -> Self {
        Self { options: VolumesOptions::default(), secrets: Arc::new(NoSecrets), kept: Kept::default() }
    }
}

pub(crate) struct Node {
    pub(crate) fixture: Fixture,
    pub(crate) kernel: Kernel,
    pub(crate) volumes: Address<Volumes>,
    pub(crate) running: Running,
    drills: Drills,
    kept: Kept,
    shared: Shared,
    options: VolumesOptions,
    run: u64,
}

impl Node {
    pub(crate) fn open() -> Self {
        Self::open_with(Choices::default())
    }

    pub(crate) fn open_with(Choices { options, secrets, kept }: Choices) -> Self {
        let (fixture, kernel) = (Fixture::open(), Kernel::default());
        let (plugins, mounts) = (Rc::new(fixture.leases.clone()), Arc::new(kernel.clone()));
        let shared = Shared::new(plugins, secrets, mounts, Path::new(DATA_DIR), options.calls_max);
        let volumes = Address::vacant("volumes", 4_096);
        let drills = Drills::default();
        let running = start(&volumes, &fixture, (&options, 1), &shared, &kept, &drills);
        Self { fixture, kernel, volumes, running, drills, kept, shared, options, run: 1 }
    }

    /// Kills the owner of the volumes, as a crash of the host would, and starts the next run on its ledgers.
    pub(crate) async fn restart(&mut self) {
        self.running.kill();
        self.running.ended().await;
        self.run += 1;
        let how = (&self.options, self.run);
        self.running = start(&self.volumes, &self.fixture, how, &self.shared, &self.kept, &self.drills);
    }

    /// Injects a fault into an actor by its name.
    pub(crate) fn drill(&self, actor: &str, drill: Drill) {
        self.drills.drill(actor, drill).expect("it runs");
    }

    /// Registers a plugin with both halves, and returns its server.
    pub(crate) async fn add_plugin(&self, name: &str, id: &str, plugin: &Plugin) -> Serving {
        let socket = self.fixture.socket(&format!("{name}-{id}.sock"));
        let serving = plugin.serve(&socket);
        let register = Register {
            policy: None,
            plugins: vec![node(name), controller(name)],
            allocation: allocation(id),
            socket,
            provider: None,
            version: None,
            options: Arc::new(BTreeMap::new()),
        };
        self.fixture.registry.ask(register).await.expect("it runs").expect("it is well formed");
        serving
    }

    pub(crate) async fn remove_plugin(&self, name: &str, id: &str) {
        let plugins = vec![node(name), controller(name)];
        let deregister = Deregister { plugins, allocation: allocation(id), cause: LeaveCause::Stopped };
        self.fixture.registry.ask(deregister).await.expect("it runs");
    }

    pub(crate) async fn add_volume(&self, plugin: &str, name: &str) -> VolumeKey {
        let spec = VolumeSpec {
            key: key(name),
            plugin: PluginName::new(plugin).expect("a good name"),
            volume_id: format!("id-{name}"),
            volume_context: Context::from([("pool".to_owned(), format!("tank/{name}"))]),
        };
        let volume = KnownVolume::new(Arc::new(spec));
        self.volumes.ask(RegisterVolume { volume }).await.expect("it runs").expect("it is new");
        key(name)
    }

    pub(crate) async fn claim(&self, volume: &VolumeKey, id: &str) -> Result<Claimed, ClaimError> {
        self.claim_within(volume, id, PATIENCE).await
    }

    pub(crate) fn claim_within(
        &self,
        volume: &VolumeKey,
        id: &str,
        within: Duration,
    ) -> impl Future<Output = Result<Claimed, ClaimError>> + use<> {
        let claim = Claim { volume: volume.clone(), allocation: allocation(id), usage: usage(), within };
        let answer = self.volumes.ask(claim);
        async move { answer.await.expect("it runs") }
    }

    pub(crate) async fn release(&self, volume: &VolumeKey, id: &str) -> Result<Released, ReleaseError> {
        self.release_within(volume, id, PATIENCE).await
    }

    pub(crate) async fn release_within(
        &self,
        volume: &VolumeKey,
        id: &str,
        within: Duration,
    ) -> Result<Released, ReleaseError> {
        let observed = ObservedEnd::Exited;
        let release = Release { volume: volume.clone(), allocation: allocation(id), observed, within };
        self.volumes.ask(release).await.expect("it runs")
    }

    pub(crate) async fn describe(&self, volume: &VolumeKey) -> VolumeReport {
        let describe = DescribeVolume { volume: volume.clone() };
        self.volumes.ask(describe).await.expect("it runs").expect("it is known")
    }

    /// Waits until the actor of a volume has ended because nothing of the volume is left.
    pub(crate) async fn is_unneeded(&self, volume: &VolumeKey) {
        let gone = async {
            while self.describe(volume).await.actor.as_str() != "unneeded" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, gone).await.expect("it ends");
    }

    pub(crate) async fn volumes(&self) -> Vec<VolumeReport> {
        self.volumes.ask(ListVolumes).await.expect("it runs")
    }

    /// Stops the volumes and then the instances.
    pub(crate) async fn stop(self) {
        self.running.request_stop(StopMode::Stop);
        tokio::time::timeout(LONG, self.running.ended()).await.expect("it ends");
        self.fixture.stop_instances().await;
    }
}

fn start(
    volumes: &Address<Volumes>,
    fixture: &Fixture,
    (options, run): (&VolumesOptions, u64),
    shared: &Shared,
    kept: &Kept,
    drills: &Drills,
) -> Running {
    let config = VolumesConfig {
        options: options.clone(),
        data_dir: DATA_DIR.into(),
        boot_id: "boot-1".into(),
        run: RunNumber::new(run),
    };
    let settings = Settings { drills: Some(drills.clone()), ..fixture.settings.clone() };
    let (instances, shared) = (fixture.instances.clone(), shared.clone());
    match kept.clone() {
        Kept::InMemory(store) => {
            let ledgers = store.ledgers().clone();
            let ledger = move |key: &VolumeKey, _| ledgers.store(key.clone());
            volumes::start(volumes, instances, config, shared, store, ledger, settings)
        }
        Kept::OnDisk(database) => {
            let store = volumes::DurableStore::new(&database);
            let owner = store.clone();
            let ledger = move |key: &VolumeKey, life| owner.ledger(key, life);
            volumes::start(volumes, instances, config, shared, store, ledger, settings)
        }
    }
}

pub(crate) fn key(name: &str) -> VolumeKey {
    VolumeKey {
        namespace: VolumeNamespace::new("default").expect("a good name"),
        name: VolumeName::new(name).expect("a good name"),
    }
}

/// Shared by any number of writers.
pub(crate) fn usage() -> Usage {
    let capability = VolumeCapability {
        access_type: AccessType::Mount(MountVolume::default()),
        access_mode: AccessMode::MultiNodeMultiWriter,
    };
    Usage { capability, read_only: false }
}

/// The allocations that live.
pub(crate) fn living(ids: &[&str]) -> BTreeSet<callboard_actors::vocabulary::AllocationId> {
    ids.iter().map(|id| allocation(id)).collect()
}

/// Options with these for each volume.
pub(crate) fn options(volume: VolumeOptions) -> VolumesOptions {
    VolumesOptions { volume, ..VolumesOptions::default() }
}
