//! A host with plugins that have real volumes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callboard::actors::allocations::{AllocationSpec, PrepareAllocation, TaskStarted};
use callboard::actors::csi::{AccessMode, AccessType, CapacityRange, MountVolume, VolumeCapability};
use callboard::actors::vocabulary::{
    AllocationId, PluginKey, PluginName, PluginType, Role, TaskName, VolumeName, VolumeNamespace,
};
use callboard::actors::volume::{NewVolume, ObservedEnd, Usage, VolumeKey};
use callboard::actors::volumes::{AllocationEnded, Claim, ConfirmClaims, CreateVolume};
use callboard::host::Host;

use tempfile::TempDir;

use crate::support::drivers::CALLBOARD;

/// A timeout longer than any operation here.
pub(crate) const WITHIN: Duration = Duration::from_secs(600);
/// The id of this node, as the plugins have it.
pub(crate) const NODE: &str = "node-1";

/// A host, and its plugins.
pub(crate) struct Site {
    pub(crate) host: Host,
    place: PathBuf,
    /// The path of a socket is short.
    _sockets: TempDir,
    plugins: Vec<Plugin>,
}

/// A process of the reference plugin; killed on drop.
pub(crate) struct Plugin(Child);

impl Site {
    /// Its plugins keep their volumes in `place`; the host has its data in `data_dir`.
    pub(crate) async fn start(data_dir: &Path, place: &Path) -> Self {
        let sockets = sockets();
        let host =
            Host::builder(data_dir).runtime_dir(sockets.path()).start().await.expect("the host starts");
        let confirmed = host.volumes().ask(ConfirmClaims { living: [].into(), unclear: [].into() }).await;
        confirmed.expect("it runs");
        Self { host, place: place.to_owned(), _sockets: sockets, plugins: Vec::new() }
    }

    /// Starts a plugin, and returns its socket once it can be used.
    pub(crate) async fn plugin(&mut self, name: &str, faults: &[&str]) -> PathBuf {
        let allocation = AllocationId::new(format!("plugin-{name}")).expect("it is an id");
        let task = TaskName::new("plugin").expect("it is a name");
        let spec = AllocationSpec::new(allocation.clone(), task, plugin_name(name), Role::Monolith);
        let allocations = self.host.allocations();
        let prepared = allocations.ask(PrepareAllocation { spec }).await.expect("it runs");
        let context = prepared.expect("it is well formed");
        let child = Command::new(CALLBOARD)
            .args(["plugin", "hostpath", "--node-id", NODE, "--volumes"])
            .arg(self.place.join(format!("volumes-{name}")))
            .args(faults)
            .envs(&context.environment)
            .env("RUST_LOG", "error")
            .stderr(Stdio::inherit())
            .spawn();
        self.plugins.push(Plugin(child.expect("the program starts")));
        allocations.ask(TaskStarted { allocation }).await.expect("it runs").expect("it is prepared");
        for half in [PluginType::CsiController, PluginType::CsiNode] {
            let key = PluginKey::new(half, plugin_name(name));
            self.host.leases().csi(&key, WITHIN).await.expect("it is healthy");
        }
        let endpoint = &context.environment["CSI_ENDPOINT"];
        endpoint.strip_prefix("unix://").expect("it is a socket").into()
    }

    /// Creates a volume that can be claimed, and returns its id.
    pub(crate) async fn create(&self, plugin: &str, volume: &VolumeKey) -> String {
        let new = NewVolume {
            capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
            capabilities: vec![capability()],
            ..NewVolume::default()
        };
        let create =
            CreateVolume { volume: volume.clone(), plugin: plugin_name(plugin), new, within: WITHIN };
        let created = self.host.volumes().ask(create).await.expect("it runs").expect("the plugin creates it");
        created.volume.volume_id.to_string()
    }

    /// Claims a volume for an allocation of the same name.
    pub(crate) async fn claim(&self, volume: &VolumeKey) {
        let claimed = self.host.volumes().ask(claim(volume)).await.expect("it runs");
        claimed.expect("the plugin publishes it");
    }

    /// Releases the claim of [`Site::claim`], and waits until it is undone.
    pub(crate) async fn release(&self, volume: &VolumeKey) {
        let ended =
            AllocationEnded { allocation: allocation(volume), observed: ObservedEnd::Exited, within: WITHIN };
        for released in self.host.volumes().ask(ended).await.expect("it runs") {
            released.result.expect("the plugin undoes it");
        }
    }

    /// Stops the host, and returns its plugins, which continue to run.
    pub(crate) async fn stop(self) -> Vec<Plugin> {
        self.host.stop().await;
        self.plugins
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory for sockets.
pub(crate) fn sockets() -> TempDir {
    tempfile::tempdir().expect("a directory can be made")
}

/// A volume by its number.
pub(crate) fn volume(prefix: &str, number: usize) -> VolumeKey {
    let name = VolumeName::new(format!("{prefix}-{number}")).expect("it is a name");
    VolumeKey { namespace: VolumeNamespace::new("default").expect("it is a name"), name }
}

/// The allocation that uses a volume here.
pub(crate) fn allocation(volume: &VolumeKey) -> AllocationId {
    AllocationId::new(volume.name.as_str()).expect("it is an id")
}

pub(crate) fn claim(volume: &VolumeKey) -> Claim {
    let usage = Usage { capability: capability(), read_only: false };
    Claim { volume: volume.clone(), allocation: allocation(volume), usage, within: WITHIN }
}

pub(crate) fn capability() -> VolumeCapability {
    VolumeCapability {
        access_type: AccessType::Mount(MountVolume::default()),
        access_mode: AccessMode::SingleNodeWriter,
    }
}

fn plugin_name(name: &str) -> PluginName {
    PluginName::new(name).expect("it is a name")
}
