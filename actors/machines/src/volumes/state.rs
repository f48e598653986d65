//! The configuration and the state of the owner of the volumes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::batches::Batch;
use super::claimants::Claimants;
use super::purposes::{InFlight, Reading, Request};
use super::reads::{Found, Read, ReadError};
use super::reasons::InUse;
use super::unused::{ServedBy, UnusedWaiter};
use crate::csi::{Fault, rules};
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::kernel::{AskId, Ending, StopMode, StopStep};
use crate::supervisor::DynamicChild;
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, BackoffState, PluginName, RestartBudget, RunNumber, Timestamp, Topology,
};
use crate::volume::{
    self, Route, VolumeAnswer, VolumeAsk, VolumeConfig, VolumeKey, VolumeOptions, VolumeSpec, VolumeStatus,
};
use crate::{AskError, FeedItem};

/// A volume that can be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownVolume {
    /// Its identity here and with its plugin.
    pub spec: Arc<VolumeSpec>,
    /// Its size, if it is known.
    pub capacity_bytes: Option<u64>,
    /// The topology from which it can be reached; empty means from everywhere.
    pub accessible_topology: Vec<Topology>,
}

impl KnownVolume {
    /// A volume with only its identity known.
    #[must_use]
    pub const fn new(spec: Arc<VolumeSpec>) -> Self {
        Self { spec, capacity_bytes: None, accessible_topology: Vec::new() }
    }

    /// Whether another description of it has nothing new. The volume may have been expanded since that description.
    pub(super) fn has(&self, other: &Self) -> bool {
        let is_same = self.spec == other.spec && self.accessible_topology == other.accessible_topology;
        is_same && other.capacity_bytes <= self.capacity_bytes
    }

    /// Checks sizes and formats (C004, C005, C055).
    ///
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("volume_id", &self.spec.volume_id)?;
        rules::map("volume_context", &self.spec.volume_context)?;
        rules::number("C059", "capacity_bytes", self.capacity_bytes.unwrap_or_default())?;
        self.accessible_topology.iter().try_for_each(rules::topology)
    }

    /// Whether a node at this place reaches it; a node without a known place reaches all volumes (C148).
    #[must_use]
    pub fn is_reachable_from(&self, node: Option<&Topology>) -> bool {
        let Some(node) = node else { return true };
        let is_there =
            |place: &Topology| place.iter().all(|(key, value)| node.get(key).is_some_and(|at| at == value));
        self.accessible_topology.is_empty() || self.accessible_topology.iter().any(is_there)
    }
}

/// The options of the owner of the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumesOptions {
    /// The options of each volume.
    pub volume: VolumeOptions,
    /// The limit of known volumes. 65,536 by default.
    pub volumes_max: usize,
    /// The limit of callers that wait for volumes of one plugin. 8,192 by default. Claims take at most half of the places, so that they
    /// never keep a release out.
    pub waiting_max: usize,
    /// The limit of calls in flight to each half of a plugin, of all its volumes; further ones wait their turn (V9). 64 by default.
    pub calls_max: usize,
    /// The restart budget of each volume's actor.
    pub restart_budget: RestartBudget,
    /// The backoff before a restart.
    pub restart_backoff: Backoff,
}

impl Default for VolumesOptions {
    fn default() -> Self {
        Self {
            volume: VolumeOptions::default(),
            volumes_max: 65_536,
            waiting_max: 8_192,
            calls_max: 64,
            restart_budget: RestartBudget::default(),
            restart_backoff: Backoff::default(),
        }
    }
}

/// The additional time that the actor of a volume has to stop, beyond the time for undoing.
const CHILD_MARGIN: Duration = Duration::from_secs(2);

impl VolumesOptions {
    /// The time that the actor of a volume has to stop before it is killed.
    pub(super) fn child_bound(&self) -> Duration {
        self.volume.stop_within.saturating_add(CHILD_MARGIN)
    }
}

/// The configuration of the owner of the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumesConfig {
    /// Its options.
    pub options: VolumesOptions,
    /// The data directory of the host.
    pub data_dir: PathBuf,
    /// The boot of the machine.
    pub boot_id: Arc<str>,
    /// The run of the host.
    pub run: RunNumber,
}

/// The contents of its store and of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VolumesImage {
    /// The known volumes.
    pub known: Vec<Arc<KnownVolume>>,
    /// The volumes that have rows in the ledger: their own, or rows of claims, audits or orders. If no row contains the spec of a volume,
    /// it is learned from the row of the known volume here, if there is one.
    pub in_ledger: Vec<Arc<VolumeSpec>>,
    /// The volumes with a requested deletion of unknown outcome.
    pub deleting: BTreeSet<VolumeKey>,
}

/// One write to its store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumesChange {
    /// Insert or replace the row of a known volume.
    Keep(Arc<KnownVolume>),
    /// Remove it, also from the volumes that are being deleted.
    Forget(VolumeKey),
    /// Insert it into the volumes that are being deleted.
    Delete(VolumeKey),
    /// Remove it from the volumes that are being deleted: it stays.
    Stay(VolumeKey),
}

impl VolumesImage {
    /// Applies a write.
    pub fn apply(&mut self, change: &VolumesChange) {
        let remove = |known: &mut Vec<Arc<KnownVolume>>, key: &VolumeKey| {
            known.retain(|known| known.spec.key != *key);
        };
        match change {
            VolumesChange::Keep(volume) => {
                remove(&mut self.known, &volume.spec.key);
                self.known.push(volume.clone());
            }
            VolumesChange::Forget(key) => {
                remove(&mut self.known, key);
                self.deleting.remove(key);
            }
            VolumesChange::Delete(key) => _ = self.deleting.insert(key.clone()),
            VolumesChange::Stay(key) => _ = self.deleting.remove(key),
        }
    }
}

/// One item of the feed of the instances.
pub type InstancesItem = FeedItem<InstancesNews, InstancesView>;

/// The calls of the owner of the volumes. None of them waits for the disk except those that delete a volume: each has its own ledger.
#[derive(Debug, Clone, Hash)]
pub enum VolumesCall {
    /// Wait for the next items of the instances; `afresh` begins with a snapshot.
    Follow {
        /// Whether to subscribe again.
        afresh: bool,
    },
    /// Wait until actors of volumes have ended.
    AwaitEndings,
    /// Kill every living actor, and forget all routes: this incarnation of the machine knows none of them.
    Sweep,
    /// Start the actor of a volume.
    Start {
        /// Its life.
        life: Attempt,
        /// Its configuration.
        config: Box<VolumeConfig>,
    },
    /// Send a message to a volume, and wait for the answer.
    Ask {
        /// The life of its actor.
        life: Attempt,
        /// The message.
        ask: VolumeAsk,
    },
    /// Keep the present route of a plugin for [`VolumeCall::ReadRoute`](crate::volume::VolumeCall::ReadRoute), and send it to the actors of
    /// its volumes.
    SetRoute {
        /// The plugin.
        plugin: PluginName,
        /// The route.
        route: Route,
    },
    /// Ask a plugin, which has no effect.
    Read(Box<Read>),
    /// Ask the actor of a volume to stop.
    Stop {
        /// Its life.
        life: Attempt,
        /// The mode.
        mode: StopMode,
    },
    /// Kill the actor of a volume.
    Kill {
        /// Its life.
        life: Attempt,
    },
}

/// The outcome of a [`VolumesCall`].
#[derive(Debug)]
pub enum VolumesOutcome {
    /// The items of the instances, or the error that their supervisor is not running.
    Followed(Result<Vec<InstancesItem>, AskError>),
    /// These actors have ended; at least one.
    Ended(Vec<ChildEnded>),
    /// The answer of a volume, or the reason that there is none.
    Answered(Result<VolumeAnswer, AskError>),
    /// The result of a question, or the reason that there is none.
    Found(Result<Found, ReadError>),
    /// It was done.
    Done,
}

/// The actor of a volume has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildEnded {
    /// The volume.
    pub volume: VolumeKey,
    /// The life of the actor.
    pub life: Attempt,
    /// The ending.
    pub ending: Ending,
}

/// The timers of the owner of the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VolumesTimer {
    /// The endings of children are waited for again.
    AwaitEndings,
    /// The instances are followed again.
    Refollow,
    /// The actor of this volume should have stopped by now.
    Stop(VolumeKey),
    /// The actor of this volume is restarted after its pause.
    Restart(VolumeKey),
    /// The timeout of a caller that waits until a plugin is unused.
    Unused(AskId),
    /// A plugin that was reported as unused has not left in time: it takes new claims again.
    Leaving(PluginName),
    /// The deletion of this volume, which it did not accept when the owner repeated it, is repeated again.
    Delete(VolumeKey),
    /// This volume has an id that another one has, and has not forgotten it, or was not allowed to delete by it: that is decided again.
    Decide(VolumeKey),
}

/// Whether a volume is vacant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Vacancy {
    /// It is in use, or may be.
    Unproven,
    /// Its actor has reported that it is vacant, and is being asked.
    Asked,
    /// Its actor is being asked, and has reported again meanwhile. That report may be newer than the answer.
    ReportedSince,
    /// An answer to a question after the last claim has proven it. Its actor stops.
    Proven,
}

/// The progress of the requested deletion of the volume. It has no meaning if none was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Deletion {
    /// Whether it was first requested in this incarnation of the owner, and nothing was begun for any of its callers so far.
    pub(super) is_refused_only: bool,
    /// Whether it has to be repeated until the volume answers it.
    pub(super) is_due: bool,
}

/// A volume that is in use, or may be: it has an actor, or gets one.
#[derive(Debug, Clone, Hash)]
pub(super) struct Entry {
    pub(super) child: DynamicChild,
    pub(super) spec: Arc<VolumeSpec>,
    /// The last reported status, of any incarnation of the actor.
    pub(super) status: Option<Arc<VolumeStatus>>,
    /// All allocations that may have a claim.
    pub(super) claimants: Claimants,
    /// The messages that wait for the next incarnation of the actor.
    pub(super) queue: VecDeque<Request>,
    /// The number of messages whose callers wait for the answer of an actor of this volume.
    pub(super) in_flight: usize,
    /// The number of the last message that was sent before the present or latest incarnation of the actor began.
    pub(super) before_life: Attempt,
    /// The number of the last claim or order that was sent. The answer to a later question proves that the volume is vacant.
    pub(super) last_begun: Attempt,
    /// The number of the last creation or deletion that was sent, or of the message that makes the volume forget its creation. Answers to
    /// earlier questions prove nothing about its existence.
    pub(super) last_change: Attempt,
    /// Whether its existence is known and does not change.
    pub(super) is_settled: bool,
    pub(super) vacancy: Vacancy,
    /// Whether its actor was started on a ledger, in this incarnation of the owner or after a crash, and has not reported its contents
    /// since.
    pub(super) is_unread: bool,
    pub(super) deletion: Deletion,
    /// The number of times that the volume did not accept a deletion that the owner repeated.
    pub(super) delete_tries: BackoffState,
    /// The number of times that its deletion could not be decided, or that it has not forgotten the id of another volume.
    pub(super) decide_tries: BackoffState,
    /// The last unexpected ending of the actor.
    pub(super) fallen: Option<Arc<str>>,
}

/// A volume that is left in use by the stop of the host.
#[derive(Debug, Clone, Hash)]
pub(super) struct LeftVolume {
    pub(super) plugin: PluginName,
    pub(super) in_use: InUse,
    /// Whether its actor ended before it had reported the claims.
    pub(super) is_unread: bool,
}

/// The instances of a plugin to which work is routed, and the resulting route.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Plugin {
    pub(super) node: Option<InstanceReport>,
    pub(super) controller: Option<InstanceReport>,
    pub(super) route: Route,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Volumes {
    pub(super) config: VolumesConfig,
    pub(super) known: BTreeMap<VolumeKey, Arc<KnownVolume>>,
    /// The names of the known volumes by plugin and id there: one for each, unless an earlier version has accepted more.
    pub(super) names: BTreeMap<(PluginName, String), BTreeSet<VolumeKey>>,
    /// The deletions, and the releases of allocations, whose callers got the answer that they continue.
    pub(super) unconfirmed: BTreeSet<(VolumeKey, Option<AllocationId>)>,
    pub(super) in_ledger: Vec<Arc<VolumeSpec>>,
    /// The volumes that were created here, as their actors have reported in this incarnation of the machine.
    pub(super) created: BTreeSet<VolumeKey>,
    /// The last reports of the actors of unfit volumes. They are shown also when there is no actor.
    pub(super) unfit: BTreeMap<VolumeKey, Arc<VolumeStatus>>,
    /// The known volumes with a requested deletion of unknown outcome.
    pub(super) deleting: BTreeSet<VolumeKey>,
    pub(super) entries: BTreeMap<VolumeKey, Entry>,
    pub(super) plugins: BTreeMap<PluginName, Plugin>,
    /// The messages that volumes have not answered yet, by number.
    pub(super) asks: BTreeMap<Attempt, InFlight>,
    /// The numbers of the messages to each volume.
    pub(super) sent: BTreeMap<VolumeKey, BTreeSet<Attempt>>,
    /// The questions that plugins have not answered yet, by number.
    pub(super) reads: BTreeMap<Attempt, Reading>,
    /// The latest number of both.
    pub(super) asked: Attempt,
    /// The number of callers that wait for volumes of each plugin.
    pub(super) waiting: BTreeMap<PluginName, usize>,
    pub(super) batches: BTreeMap<AskId, Batch>,
    pub(super) unused: BTreeMap<AskId, UnusedWaiter>,
    /// The plugins that were reported as unused, and are about to leave.
    pub(super) leaving: BTreeMap<PluginName, ServedBy>,
    /// The host's report in this run about the claims of an earlier run (V14).
    pub(super) confirmation: Option<volume::ConfirmClaims>,
    /// The number of the latest incarnation of any child. It starts at random, so that incarnations known to an earlier incarnation of this
    /// machine have other numbers.
    pub(super) life: Attempt,
    pub(super) stop: Option<StopMode>,
    /// The volumes that are still in use after their actors have ended with the host.
    pub(super) left: Vec<LeftVolume>,
    /// The time of the request to stop.
    pub(super) stop_began: Timestamp,
    /// The result for each volume since.
    pub(super) steps: Vec<StopStep>,
}
