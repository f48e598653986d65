//! Provides a host with volumes: the requests of its program, and checks of what is left.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callboard::actors::csi::{AccessMode, AccessType, CapacityRange, MountVolume, VolumeCapability};
use callboard::actors::mounts::mounts_of_this_process;
use callboard::actors::vocabulary::{Backoff, PluginName, Role, VolumeName, VolumeNamespace};
use callboard::actors::volume::{
    Claimed, NewVolume, ObservedEnd, Usage, VolumeKey, VolumeOptions, VolumeStatus,
};
use callboard::actors::volumes::{
    Claim, ClaimError, CreateVolume, DeleteVolume, DescribeVolume, Release, VolumesOptions,
};
use callboard::host::{Host, HostBuilder, HostThread};
use tokio::time::error::Elapsed;

use crate::support::{LONG, PAUSE, Stage, Task, id};

/// The name of the plugin.
pub(crate) const PLUGIN: &str = "example";

pub(crate) fn builder(stage: &Stage) -> HostBuilder {
    refined(stage.builder())
}

/// The same with volumes that retry sooner.
pub(crate) fn refined(builder: HostBuilder) -> HostBuilder {
    let backoff =
        Backoff { first: Duration::from_millis(50), longest: Duration::from_secs(1), ..Backoff::default() };
    let volume = VolumeOptions { backoff, ..VolumeOptions::default() };
    builder.volumes(VolumesOptions { volume, ..VolumesOptions::default() })
}

/// An allocation of the plugin. All such allocations serve the same volumes.
pub(crate) fn plugin(stage: &Stage, allocation: &str) -> Task {
    let volumes = stage.path("volumes");
    let arguments = ["--node-id", "node-1", "--volumes", volumes.to_str().expect("a readable path")];
    Task::new(stage, allocation, PLUGIN, Role::Monolith).with(&arguments)
}

/// A host with one healthy allocation of the plugin.
pub(crate) async fn serve(stage: &Stage) -> (HostThread, Task) {
    let host = builder(stage).start_on_own_thread().await.expect("it starts");
    let mut served = plugin(stage, "plugin");
    served.start(&host).await;
    (host, served)
}

pub(crate) fn key(name: &str) -> VolumeKey {
    let namespace = VolumeNamespace::new("default").expect("a good name");
    VolumeKey { namespace, name: VolumeName::new(name).expect("a good name") }
}

/// The usage of a claim that all allocations of this node may share.
pub(crate) fn usage(read_only: bool) -> Usage {
    let access_type = AccessType::Mount(MountVolume::default());
    let capability = VolumeCapability { access_type, access_mode: AccessMode::SingleNodeMultiWriter };
    Usage { capability, read_only }
}

/// The parameters of a volume of a mebibyte.
pub(crate) fn creation(name: &str) -> CreateVolume {
    let new = NewVolume {
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        capabilities: vec![usage(false).capability],
        ..NewVolume::default()
    };
    let plugin = PluginName::new(PLUGIN).expect("a good name");
    CreateVolume { volume: key(name), plugin, new, within: LONG }
}

pub(crate) async fn create(host: &Host, name: &str) -> VolumeKey {
    host.volumes().ask(creation(name)).await.expect("it runs").expect("it is created");
    key(name)
}

pub(crate) async fn delete(host: &Host, volume: &VolumeKey) {
    let delete = DeleteVolume { volume: volume.clone(), within: LONG };
    host.volumes().ask(delete).await.expect("it runs").expect("it is deleted");
}

pub(crate) fn claim(
    host: &Host,
    volume: &VolumeKey,
    allocation: &str,
    read_only: bool,
) -> impl Future<Output = Result<Claimed, ClaimError>> + use<> {
    let usage = usage(read_only);
    let claim = Claim { volume: volume.clone(), allocation: id(allocation), usage, within: LONG };
    let answer = host.volumes().ask(claim);
    async move { answer.await.expect("it runs") }
}

/// Claims it for reading and writing, as soon as its plugin is no longer about to leave.
pub(crate) async fn claim_when_served(host: &Host, volume: &VolumeKey, allocation: &str) -> Claimed {
    let claimed = async {
        loop {
            match claim(host, volume, allocation, false).await {
                Err(ClaimError::PluginLeaving(_)) => tokio::time::sleep(PAUSE).await,
                claimed => return claimed.expect("it is set up"),
            }
        }
    };
    tokio::time::timeout(LONG, claimed).await.expect("another instance serves the plugin")
}

pub(crate) async fn release(host: &Host, volume: &VolumeKey, allocation: &str) {
    let observed = ObservedEnd::Exited;
    let release = Release { volume: volume.clone(), allocation: id(allocation), observed, within: LONG };
    host.volumes().ask(release).await.expect("it runs").expect("it is released");
}

/// Waits until the status of a volume contains this word.
pub(crate) async fn until_shown(host: &Host, volume: &VolumeKey, word: &str) {
    let is_shown =
        |status: Option<Arc<VolumeStatus>>| status.is_some_and(|status| format!("{status:?}").contains(word));
    until(host, volume, is_shown).await.unwrap_or_else(|_| panic!("{volume} never shows {word}"));
}

/// Waits until nothing of a volume is used or set up.
pub(crate) async fn until_vacant(host: &Host, volume: &VolumeKey) {
    let is_vacant = |status: Option<Arc<VolumeStatus>>| status.is_none_or(|status| status.is_vacant());
    until(host, volume, is_vacant).await.unwrap_or_else(|_| panic!("{volume} never is vacant"));
}

async fn until(
    host: &Host,
    volume: &VolumeKey,
    is_there: impl Fn(Option<Arc<VolumeStatus>>) -> bool,
) -> Result<(), Elapsed> {
    let shown = async {
        loop {
            let describe = DescribeVolume { volume: volume.clone() };
            let report = host.volumes().ask(describe).await.expect("it runs").expect("it is there");
            if is_there(report.status) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(LONG, shown).await
}

/// The mount points below the data directory.
pub(crate) fn mounted(stage: &Stage) -> Vec<PathBuf> {
    let data_dir = stage.data_dir().canonicalize().expect("it is there");
    let table = mounts_of_this_process().expect("it can be read");
    table.at_or_below(&data_dir).into_iter().map(|mount| mount.mount_point.clone()).collect()
}

/// Checks that no volume is mounted, and no directory is left except those that stay for each plugin.
pub(crate) fn nothing_is_left(stage: &Stage) {
    assert_eq!(mounted(stage), Vec::<PathBuf>::new());
    for plugin in below(&stage.data_dir().join("csi/node")) {
        for kept in below(&plugin) {
            assert!(kept.ends_with("staging") || kept.ends_with("per-alloc"), "{} is left", kept.display());
            assert_eq!(below(&kept), Vec::<PathBuf>::new(), "directories are left");
        }
    }
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

/// The number of contents that the plugin keeps.
pub(crate) fn contents(stage: &Stage) -> usize {
    let entries = fs::read_dir(stage.path("volumes/content")).expect("it is there");
    entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != OsStr::new("lock"))).count()
}

pub(crate) fn read(directory: &Path) -> String {
    fs::read_to_string(directory.join("file")).expect("it can be read")
}

pub(crate) fn write(directory: &Path, text: &str) {
    fs::write(directory.join("file"), text).expect("it can be written");
}
