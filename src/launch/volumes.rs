//! The volumes as a part of a host: one node of the tree for each that has an actor. They end before the allocations of their plugins, so
//! that released volumes are undone before these are deregistered (V13). A plugin process that the host program has ended by then no longer
//! answers, and the next run continues with undoing.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::instances::Leases;
use callboard_actors::mounts::{KernelMounts, MountLimits, Mounts};
use callboard_actors::process::boot_id;
use callboard_actors::supervisor::TreeNode;
use callboard_actors::volume::{SecretSource, Shared, VolumeKey, VolumeOptions};
use callboard_actors::volumes::{
    self, DurableStore, ListVolumes, VolumeActor, VolumeReport, Volumes, VolumesConfig, VolumesOptions,
};

use super::options::Options;
use super::part::Part;
use crate::host::{Host, StartError};

/// How much longer than undoing the part may take to end.
const STOP_MARGIN: Duration = Duration::from_secs(5);

pub(super) fn part(host: &Host, options: &Options) -> Part<Volumes> {
    let (secrets, mounts) = (Arc::clone(&options.secrets), mounts(options));
    let options = options.volumes.clone();
    let stop_deadline = options.volume.stop_within.saturating_add(STOP_MARGIN);
    Part::remembering(host.volumes(), move |address, context| {
        let (address, settings) = (address.clone(), context.settings());
        let instances = context.host().instances().clone();
        let store = DurableStore::new(context.host().own_database());
        let made = surroundings(context.host(), &options, &secrets, &mounts);
        move || {
            let (config, shared) = made.clone()?;
            let owner = store.clone();
            let ledgers = move |key: &VolumeKey, life| owner.ledger(key, life);
            let (instances, settings) = (instances.clone(), settings.clone());
            Ok(volumes::start(&address, instances, config, shared, store.clone(), ledgers, settings))
        }
    })
    .after("persister")
    .after("instances")
    .after("allocations")
    .ready_when(|| ListVolumes)
    .described_by(|| ListVolumes, |volumes| volumes.into_iter().filter_map(volume_node).collect())
    .stops_within(stop_deadline)
}

/// Refuses deadlines that leave no time for any call.
pub(super) fn check(options: &VolumesOptions) -> Result<(), StartError> {
    let VolumeOptions { call_deadline, look_deadline, .. } = options.volume;
    match call_deadline > look_deadline {
        true => Ok(()),
        false => Err(StartError::VolumeDeadlines { call_deadline, look_deadline }),
    }
}

/// The common surroundings of all incarnations of the owner.
fn surroundings(
    host: &Host,
    options: &VolumesOptions,
    secrets: &Arc<dyn SecretSource>,
    mounts: &Arc<dyn Mounts>,
) -> Result<(VolumesConfig, Shared), String> {
    let boot_id = boot_id().map_err(|error| format!("cannot read the id of this boot: {error}"))?;
    let data_dir = without_links(host.data_dir());
    let leases = Leases::new(host.instances().clone(), host.connections().clone());
    let (secrets, mounts) = (Arc::clone(secrets), Arc::clone(mounts));
    let shared = Shared::new(Rc::new(leases), secrets, mounts, &data_dir, options.calls_max);
    let config = VolumesConfig {
        options: options.clone(),
        data_dir: data_dir.into(),
        boot_id: boot_id.into(),
        run: host.run_number(),
    };
    Ok((config, shared))
}

/// The mounts of this node.
fn mounts(options: &Options) -> Arc<dyn Mounts> {
    // A look itself has twice this time: it may wait for a thread first.
    let time = options.volumes.volume.look_deadline / 2;
    let kernel = || Arc::new(KernelMounts::new(MountLimits { time, ..MountLimits::default() }));
    options.mounts.clone().unwrap_or_else(|| kernel())
}

/// The data directory as the kernel names it in its mount table. The directory of a host with its database in memory may not exist: then
/// nothing can be mounted in it.
fn without_links(data_dir: &Path) -> Box<Path> {
    data_dir.canonicalize().map_or_else(|_| data_dir.into(), Into::into)
}

fn volume_node(report: VolumeReport) -> Option<TreeNode> {
    let VolumeReport { volume, actor, restarts, status, .. } = report;
    let message = match &actor {
        VolumeActor::Unneeded => return None,
        VolumeActor::Pausing { reason } | VolumeActor::GivenUp { reason } => reason.clone(),
        VolumeActor::Running | VolumeActor::Stopping => {
            status.map_or_else(|| "it has not reported yet".to_owned(), |status| status.to_string())
        }
    };
    Some(TreeNode {
        name: volume.spec.key.to_string(),
        kind: "volume".to_owned(),
        state: actor.as_str().to_owned(),
        restarts,
        message,
        ..TreeNode::default()
    })
}
