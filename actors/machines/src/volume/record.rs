//! The ledger of a volume (V5): its spec, its steps with their exact arguments, and its claims.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::existence::Existence;
use super::force::{Abandoned, Forced};
use super::mark::Proof;
use super::order::OrderRecord;
use super::paths::VolumeLayout;
use crate::csi::{Context, VolumeCapability};
use crate::vocabulary::{AllocationId, Generation, PluginName, RunNumber, VolumeName, VolumeNamespace};

/// The identity of a volume on this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeKey {
    /// Its namespace.
    pub namespace: VolumeNamespace,
    /// Its name within the namespace.
    pub name: VolumeName,
}

impl fmt::Display for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A volume, as a host describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeSpec {
    /// Its identity on this host.
    pub key: VolumeKey,
    /// The plugin that it belongs to.
    pub plugin: PluginName,
    /// Its id with the plugin; every call has exactly this one (C059). Empty for a volume that is yet to be created.
    pub volume_id: String,
    /// Its context, passed on unchanged to every call that takes one (C060, C073).
    pub volume_context: Context,
}

/// How an allocation uses a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Usage {
    /// The access type and access mode. All claims of a volume have the same one (C138).
    pub capability: VolumeCapability,
    /// Whether this allocation only reads.
    pub read_only: bool,
}

/// The direction of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Towards {
    /// It is set up.
    Up,
    /// It is undone.
    Down,
}

/// The arguments of a step, and the generation whose capabilities it was begun with (V16).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intent<A> {
    /// The exact arguments. A retry repeats them (C013).
    pub args: A,
    /// The generation of the plugin when the step was begun.
    pub generation: Generation,
}

/// The state of a step, as observed at the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step<A, P> {
    /// Nothing is set up.
    Down,
    /// The call that sets it up is in flight. In a ledger after a restart this means [`Step::Unknown`].
    GoingUp(Intent<A>),
    /// It is set up, with the known part of the result.
    Up(Intent<A>, P),
    /// The call that undoes it is in flight. In a ledger after a restart this means [`Step::Unknown`].
    GoingDown(Intent<A>),
    /// The outcome of a call is unknown: only a retry of it, or its inverse, resolves that (V4).
    Unknown(Towards, Intent<A>),
}

impl<A, P> Step<A, P> {
    /// The arguments of the step that is set up, or may be.
    pub const fn intent(&self) -> Option<&Intent<A>> {
        match self {
            Self::Down => None,
            Self::GoingUp(intent)
            | Self::Up(intent, _)
            | Self::GoingDown(intent)
            | Self::Unknown(_, intent) => Some(intent),
        }
    }

    /// Whether it is certain that nothing is set up.
    pub const fn is_down(&self) -> bool {
        matches!(self, Self::Down)
    }

    /// Whether it is certain that it is set up.
    pub const fn is_up(&self) -> bool {
        matches!(self, Self::Up(..))
    }

    /// The state as a word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::GoingUp(_) => "going-up",
            Self::Up(..) => "up",
            Self::GoingDown(_) => "going-down",
            Self::Unknown(Towards::Up, _) => "unknown-up",
            Self::Unknown(Towards::Down, _) => "unknown-down",
        }
    }

    /// The state after a restart: the outcome of a call in flight is lost (V4).
    pub(super) fn restored(self) -> Self {
        match self {
            Self::GoingUp(intent) => Self::Unknown(Towards::Up, intent),
            Self::GoingDown(intent) => Self::Unknown(Towards::Down, intent),
            Self::Down | Self::Up(..) | Self::Unknown(..) => self,
        }
    }
}

/// The arguments of `ControllerPublishVolume` and its inverse.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttachArgs {
    /// The id of this node with the plugin (C071).
    pub node_id: String,
    /// The usage of the volume.
    pub capability: VolumeCapability,
}

/// The arguments of `NodeStageVolume`; its inverse needs the path alone (C133).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StageArgs {
    /// The path where it is staged.
    pub staging_path: PathBuf,
    /// The answer of the attachment (C074); empty without one (C127).
    pub publish_context: Context,
    /// The usage of the volume.
    pub capability: VolumeCapability,
}

/// The arguments of `NodePublishVolume`; its inverse needs the target path alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublishArgs {
    /// The path where the allocation finds it.
    pub target_path: PathBuf,
    /// The path where it is staged; `None` for a plugin that does not stage (C135).
    pub staging_path: Option<PathBuf>,
    /// The answer of the attachment (C074); empty without one (C127).
    pub publish_context: Context,
    /// The usage of the volume.
    pub usage: Usage,
}

/// The row of a volume: everything that its claims share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeRecord {
    /// The volume.
    pub spec: Arc<VolumeSpec>,
    /// Its existence at the plugin; `None` if it does not exist for certain.
    pub existence: Option<Existence>,
    /// The attachment to this node by the controller, with its publish context.
    pub attach: Step<AttachArgs, Context>,
    /// The staging.
    pub stage: Step<StageArgs, Proof>,
}

impl VolumeRecord {
    /// The row of a volume that has nothing set up.
    pub(super) fn registered(spec: &Arc<VolumeSpec>) -> Self {
        let existence = Existence::registered(spec);
        Self { spec: spec.clone(), existence, attach: Step::Down, stage: Step::Down }
    }

    /// The row of a volume whose own row is lost, from the rows of its claims: the steps below them may be up, and have to be undone. Where
    /// no claim is published from a staging, it may still be staged: for the next publication, or by a plugin that was replaced since.
    pub(super) fn of_claims(claims: &[ClaimRecord], layout: &VolumeLayout) -> Option<Self> {
        let latest = claims.iter().max_by_key(|claim| claim.number)?;
        let attach = claims.iter().find_map(|claim| claim.attach.clone());
        let attached_as = attach.as_ref().map(|attach| attach.args.capability.clone());
        let unseen = || {
            let capability = attached_as.unwrap_or_else(|| latest.usage.capability.clone());
            let usage = Usage { capability, read_only: latest.usage.read_only };
            let args = layout.stage_args(&latest.spec.key, &usage, Context::new());
            Intent { args, generation: Generation::default() }
        };
        let stage = claims.iter().find_map(ClaimRecord::staging).unwrap_or_else(unseen);
        Some(Self {
            attach: may_be_up(attach),
            stage: may_be_up(Some(stage)),
            ..Self::registered(&latest.spec)
        })
    }
}

fn may_be_up<A, P>(intent: Option<Intent<A>>) -> Step<A, P> {
    intent.map_or(Step::Down, |intent| Step::Unknown(Towards::Up, intent))
}

/// The state that the host wants: whether a claim is held, or a created volume kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Desired {
    /// An allocation holds it.
    Held,
    /// No process uses it: it is undone and then forgotten (V8).
    Released,
}

/// The row of a claim. It has enough data to undo the steps below it if the row of the volume is lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClaimRecord {
    /// The volume, at the time of this write.
    pub spec: Arc<VolumeSpec>,
    /// The allocation that owns it.
    pub allocation: AllocationId,
    /// Its usage of the volume.
    pub usage: Usage,
    /// The path where it finds the volume. Stored, never computed again (V5).
    pub target_path: PathBuf,
    /// Whether it is held.
    pub desired: Desired,
    /// The run of the host in which it was made or last confirmed (V14).
    pub run: RunNumber,
    /// Its position in the order of all claims of the volume.
    pub number: u64,
    /// The attachment that was set up for it, or may have been, at the time of this write.
    pub attach: Option<Intent<AttachArgs>>,
    /// The publication at its target path.
    pub publish: Step<PublishArgs, Proof>,
}

impl ClaimRecord {
    /// The staging below a publication that is up, or may be.
    fn staging(&self) -> Option<Intent<StageArgs>> {
        let Intent { args, generation } = self.publish.intent()?;
        let args = StageArgs {
            staging_path: args.staging_path.clone()?,
            publish_context: args.publish_context.clone(),
            capability: args.usage.capability.clone(),
        };
        Some(Intent { args, generation: *generation })
    }
}

/// The audit of a forced release, until it is published. It contains the volume, whose own row may be gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Audit {
    /// Its position among the unpublished audits of the volume.
    pub number: u64,
    /// The volume.
    pub spec: Arc<VolumeSpec>,
    /// The content to publish.
    pub forced: Forced,
}

/// One write to the ledger. Rows are shared, since a change is kept until it is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeChange {
    /// Insert or replace the row of the volume.
    KeepVolume(Arc<VolumeRecord>),
    /// Insert or replace the row of a claim.
    KeepClaim(Arc<ClaimRecord>),
    /// Remove the row of a claim.
    ForgetClaim(AllocationId),
    /// Remove the row of the volume.
    ForgetVolume,
    /// Insert or replace the row of an order.
    KeepOrder(OrderRecord),
    /// Remove the row of the order of this number.
    ForgetOrder(u64),
    /// Forget by force, in one write: these claims, also lost ones, and with `volume` the staging and the attachment, as that row states.
    Force {
        /// The claims.
        claims: Vec<AllocationId>,
        /// The row of the volume without them; `None` when only claims are forgotten.
        volume: Option<Arc<VolumeRecord>>,
        /// The numbers of the orders.
        orders: Vec<u64>,
        /// The targets of those claims whose shared steps are kept.
        abandoned: Vec<Abandoned>,
        /// The remains, for the audit.
        audit: Audit,
    },
    /// Insert or replace the row of an abandoned target.
    KeepAbandoned(Abandoned),
    /// Remove the row of the abandoned target at this path.
    ForgetAbandoned(PathBuf),
    /// Remove the audits of these numbers: they are published.
    ForgetAudits(Vec<u64>),
}

impl VolumeImage {
    /// The volume of this ledger, from any row that has it; `None` for an empty ledger, and for one that has only orders.
    #[must_use]
    pub fn spec(&self) -> Option<&Arc<VolumeSpec>> {
        let of_volume = self.volume.as_ref().map(|row| &row.spec);
        let of_claim = || self.claims.iter().max_by_key(|claim| claim.number).map(|claim| &claim.spec);
        of_volume.or_else(of_claim).or_else(|| self.audits.last().map(|audit| &audit.spec))
    }

    /// Applies a write.
    pub fn apply(&mut self, change: &VolumeChange) {
        match change {
            VolumeChange::KeepVolume(row) => self.volume = Some(VolumeRecord::clone(row)),
            VolumeChange::ForgetVolume => self.volume = None,
            VolumeChange::KeepClaim(row) => {
                self.claims.retain(|claim| claim.allocation != row.allocation);
                self.claims.push(ClaimRecord::clone(row));
            }
            VolumeChange::ForgetClaim(id) => self.claims.retain(|claim| claim.allocation != *id),
            VolumeChange::KeepOrder(row) => {
                self.orders.retain(|order| order.number != row.number);
                self.orders.push(row.clone());
                self.orders.sort_by_key(|order| order.number);
            }
            VolumeChange::ForgetOrder(number) => self.orders.retain(|order| order.number != *number),
            VolumeChange::KeepAbandoned(target) => target.clone().replace_in(&mut self.abandoned),
            VolumeChange::ForgetAbandoned(path) => self.abandoned.retain(|target| target.path != *path),
            VolumeChange::Force { claims, volume, orders, abandoned, audit } => {
                abandoned.iter().for_each(|target| target.clone().replace_in(&mut self.abandoned));
                self.claims.retain(|claim| !claims.contains(&claim.allocation));
                self.lost.retain(|lost| !claims.contains(lost));
                self.orders.retain(|order| !orders.contains(&order.number));
                if let Some(row) = volume {
                    self.volume = Some(VolumeRecord::clone(row));
                }
                self.audits.retain(|other| other.number != audit.number);
                self.audits.push(audit.clone());
            }
            VolumeChange::ForgetAudits(numbers) => {
                self.audits.retain(|audit| !numbers.contains(&audit.number))
            }
        }
    }
}

/// Everything that the ledger holds of one volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VolumeImage {
    /// The row of the volume.
    pub volume: Option<VolumeRecord>,
    /// The rows of its claims.
    pub claims: Vec<ClaimRecord>,
    /// The allocations with damaged claim rows.
    pub lost: BTreeSet<AllocationId>,
    /// Its orders, by their numbers.
    pub orders: Vec<OrderRecord>,
    /// The targets of claims that were given up by force. Something may be mounted at each of them.
    pub abandoned: BTreeSet<Abandoned>,
    /// The audits that may not have been published, in their order.
    pub audits: Vec<Audit>,
}
