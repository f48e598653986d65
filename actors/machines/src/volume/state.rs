//! The options and the state of a volume.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::abandoned::Target;
use super::news::VolumeStatus;
use super::operation::Operation;
use super::ordered::Ordered;
use super::outcome::{ControllerRoute, NodeRoute, Route};
use super::paths::VolumeLayout;
use super::record::{
    Audit, ClaimRecord, Desired, Intent, PublishArgs, StageArgs, Towards, VolumeRecord, VolumeSpec,
};
use crate::kernel::{AskId, StopMode};
use crate::vocabulary::{AllocationId, Attempt, Backoff, BackoffState, Moment, RunNumber, Timestamp};

/// The options of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumeOptions {
    /// The timeout of each call to the plugin, with the look after it. 2 min by default. [`look_deadline`](Self::look_deadline) of it is
    /// reserved for the look, and waiting before the call may take half of it: a value above twice `look_deadline` always leaves the plugin
    /// time. A host does not start if it is not longer than `look_deadline`.
    pub call_deadline: Duration,
    /// The timeout of a look of its own. 10 s by default. It must be shorter than [`call_deadline`](Self::call_deadline), which also
    /// contains such a look.
    pub look_deadline: Duration,
    /// The backoff between tries of one step. 500 ms to 1 min by default.
    pub backoff: Backoff,
    /// The number of tries of a step towards up in a row before the claims that need it fail. 10 by default. Undoing is never given up.
    pub tries_max: u32,
    /// The limit of claims. 256 by default.
    pub claims_max: usize,
    /// The limit of orders that are not done. 16 by default.
    pub orders_max: usize,
    /// The limit of waiting callers. 1024 by default.
    pub waiting_max: usize,
    /// The time limit for undoing when the host stops. 20 s by default.
    pub stop_within: Duration,
}

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            call_deadline: Duration::from_secs(120),
            look_deadline: Duration::from_secs(10),
            backoff: Backoff {
                first: Duration::from_millis(500),
                longest: Duration::from_secs(60),
                ..Backoff::default()
            },
            tries_max: 10,
            claims_max: 256,
            orders_max: 16,
            waiting_max: 1_024,
            stop_within: Duration::from_secs(20),
        }
    }
}

/// The configuration of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeConfig {
    /// The volume; its ledger takes precedence over this.
    pub spec: Arc<VolumeSpec>,
    /// The paths where it is staged and published.
    pub layout: VolumeLayout,
    /// The boot of the machine.
    pub boot_id: Arc<str>,
    /// The run of the host.
    pub run: RunNumber,
    /// Its options.
    pub options: VolumeOptions,
}

/// The timers of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VolumeTimer {
    /// A step is tried again.
    Retry,
    /// A waiting caller timed out.
    Waiter(AskId),
    /// The time for undoing during the stop of the host is over.
    Stop,
}

/// The tries of one step.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Tries {
    towards: Option<Towards>,
    backoff: BackoffState,
    pub(super) count: u32,
    pub(super) until: Option<Timestamp>,
    /// It is retried only after the plugin changes or a caller asks for it (C017).
    pub(super) is_held: bool,
    pub(super) error: Option<Arc<str>>,
    /// Whether the plugin has answered an earlier try with `NOT_FOUND`.
    pub(super) is_denied: bool,
    /// The number of times in a row that it was undone only to be set up again.
    pub(super) rounds: BackoffState,
    /// It is set up again only from this time on.
    up_from: Option<Timestamp>,
}

impl Tries {
    /// A step begins in a direction: tries in the other one do not count.
    pub(super) fn begin(&mut self, towards: Towards) {
        if self.towards != Some(towards) {
            *self = Self { towards: Some(towards), ..self.after_down() };
        }
        self.until = None;
    }

    /// The plugin answers that the object does not exist. True if it has answered so before: the first answer may be a mistake (C064).
    pub(super) const fn is_denied_again(&mut self) -> bool {
        std::mem::replace(&mut self.is_denied, true)
    }

    /// The part that is kept when it is down: how often it was set up without success.
    pub(super) fn after_down(&self) -> Self {
        // It was set up without success and is tried again later: until then this error is the reason for waiting.
        let error = self.up_from.and_then(|_| self.error.clone());
        Self { rounds: self.rounds, up_from: self.up_from, error, ..Self::default() }
    }

    /// A try has failed. One that never reached the plugin does not count.
    pub(super) fn failed(&mut self, policy: &Backoff, moment: Moment, reason: &str, counts: bool) {
        self.count = self.count.saturating_add(u32::from(counts));
        self.until = Some(moment.now + self.backoff.failed(policy, moment));
        self.error = Some(reason.into());
    }

    /// The plugin continues its work: it is asked again after a pause, without an error.
    pub(super) fn pauses(&mut self, policy: &Backoff, moment: Moment) {
        self.until = Some(moment.now + self.backoff.failed(policy, moment));
        self.error = None;
    }

    /// It is not retried by itself.
    pub(super) fn hold(&mut self, reason: &str) {
        self.is_held = true;
        self.error = Some(reason.into());
    }

    /// It was set up without success: it is undone at once, and set up again after a growing pause.
    pub(super) fn in_vain(&mut self, policy: &Backoff, moment: Moment) {
        self.up_from = Some(moment.now + self.rounds.failed(policy, moment));
    }

    /// When a step in this direction may be tried next, if it has to wait.
    pub(super) fn due(&self, towards: Towards) -> Option<Timestamp> {
        let until = self.until.filter(|_| self.towards == Some(towards));
        until.max(self.up_from.filter(|_| towards == Towards::Up))
    }

    /// Whether a step in this direction has to wait.
    pub(super) fn waits(&self, towards: Towards, now: Timestamp) -> bool {
        self.holds(towards) || self.due(towards).is_some_and(|due| due > now)
    }

    /// Whether a step in this direction is retried only after the plugin changes or a caller asks for it.
    pub(super) fn holds(&self, towards: Towards) -> bool {
        self.is_held && self.towards == Some(towards)
    }

    /// A caller asks for the undo again: it is tried after the first pause at most (C017). Not at once, since a caller that receives the
    /// refusal may ask again without a pause.
    pub(super) fn undo_again(&mut self, policy: &Backoff, now: Timestamp) {
        self.is_held = false;
        if self.towards == Some(Towards::Down) {
            self.until = self.until.map(|until| until.min(now + policy.first));
        }
    }

    /// Another plugin serves the volume: it is tried at once.
    pub(super) const fn again(&mut self) {
        (self.until, self.up_from) = (None, None);
        self.is_held = false;
    }
}

/// A caller that waits for a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DeleteWaiter {
    pub(super) id: AskId,
    /// Whether the volume existed, or may have, when it was asked.
    pub(super) did_exist: bool,
}

/// The state of creation and deletion.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Lifecycle {
    pub(super) tries: Tries,
    /// The callers that wait for the creation.
    pub(super) creates: Vec<AskId>,
    pub(super) deletes: Vec<DeleteWaiter>,
    /// Why the created volume differs from the request, if it does.
    pub(super) unfit: Option<String>,
    /// Whether the owner has reported, since the deletion was requested, that no other volume here has this id.
    pub(super) may_be_deleted: bool,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) record: ClaimRecord,
    pub(super) is_provisional: bool,
    /// Whether the kernel proved its mount since the machine was built, and since the last request.
    pub(super) is_proven: bool,
    /// The publication is not as it should be: it is undone before it is published again.
    pub(super) is_stale: bool,
    /// The intent to publish that is already in its row on disk while it is down: written together with the intent of an earlier step.
    pub(super) announced: Option<Intent<PublishArgs>>,
    pub(super) tries: Tries,
    pub(super) waiters: Vec<AskId>,
}

impl Claim {
    pub(super) fn new(record: ClaimRecord, is_provisional: bool) -> Self {
        Self {
            record,
            is_provisional,
            is_proven: false,
            is_stale: false,
            announced: None,
            tries: Tries::default(),
            waiters: Vec::new(),
        }
    }

    pub(super) const fn is_released(&self) -> bool {
        matches!(self.record.desired, Desired::Released)
    }

    /// Whether it is to be set up now.
    pub(super) const fn is_wanted(&self) -> bool {
        !self.is_released() && !self.is_provisional
    }
}

/// A caller that waits for the end of a release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ReleaseWaiter {
    pub(super) id: AskId,
    pub(super) allocation: AllocationId,
    pub(super) was_held: bool,
}

/// The one operation in flight (V2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) attempt: Attempt,
    pub(super) what: Operation,
    /// Whether the step was unknown when the call was made: then a refusal does not prove that nothing is set up.
    pub(super) was_unknown: bool,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Volume {
    pub(super) config: VolumeConfig,
    pub(super) record: VolumeRecord,
    /// Whether the ledger has a row of the volume.
    pub(super) is_kept: bool,
    /// Whether that row lacks the outcome of attaching or staging: it is written together with the outcome of the next call.
    pub(super) is_behind: bool,
    /// The intent to stage that is already in that row on disk while it is down: written together with the intent of the attachment.
    pub(super) announced: Option<Box<Intent<StageArgs>>>,
    /// The claims. In boxes, since a map allocates space for eleven of them with the first one.
    pub(super) claims: BTreeMap<AllocationId, Box<Claim>>,
    /// The allocations whose claims had rows that were damaged (RES-08). They may use the volume until they are released.
    pub(super) lost: BTreeSet<AllocationId>,
    /// The targets of claims that were given up by force, in the ledger as well.
    pub(super) abandoned: BTreeMap<PathBuf, Target>,
    /// The orders that are not done, in order of arrival.
    pub(super) orders: Vec<Ordered>,
    /// The size of the volume since it was expanded, if known.
    pub(super) expanded_bytes: Option<u64>,
    pub(super) route: Option<Route>,
    pub(super) life: Lifecycle,
    pub(super) attach_tries: Tries,
    pub(super) stage_tries: Tries,
    /// Whether the kernel confirmed the staging since the last claim request.
    pub(super) is_stage_proven: bool,
    /// The staging is not as it should be: it is undone before it is staged again.
    pub(super) is_stage_stale: bool,
    pub(super) flight: Option<Flight>,
    pub(super) attempt: Attempt,
    pub(super) releases: Vec<ReleaseWaiter>,
    /// The audits that may not have been published yet; all of them are in the ledger.
    pub(super) audits: Vec<Audit>,
    pub(super) stopping: Option<StopMode>,
    /// Whether the time for undoing is over.
    pub(super) is_out_of_time: bool,
    pub(super) has_ended: bool,
    pub(super) told: Option<Arc<VolumeStatus>>,
}

impl Volume {
    /// Whether nothing is set up on this node or for it, with certainty.
    pub(super) fn is_down(&self) -> bool {
        self.is_shared_down() && self.are_unpublished() && self.abandoned.is_empty()
    }

    /// Whether nothing that claims share is set up, with certainty.
    pub(super) fn is_shared_down(&self) -> bool {
        self.record.attach.is_down() && self.record.stage.is_down()
    }

    pub(super) fn are_unpublished(&self) -> bool {
        self.lost.is_empty() && self.claims.values().all(|claim| claim.record.publish.is_down())
    }

    /// The claims in the order in which they were made.
    pub(super) fn in_order(&self) -> Vec<&Claim> {
        let mut claims: Vec<_> = self.claims.values().map(|claim| &**claim).collect();
        claims.sort_by_key(|claim| claim.record.number);
        claims
    }

    /// The order of this number, unless it is done or was forgotten.
    pub(super) fn ordered(&self, number: u64) -> Option<&Ordered> {
        self.orders.iter().find(|ordered| ordered.record.number == number)
    }

    /// [`ordered`](Self::ordered), mutable.
    pub(super) fn ordered_mut(&mut self, number: u64) -> Option<&mut Ordered> {
        self.orders.iter_mut().find(|ordered| ordered.record.number == number)
    }

    /// The numbers of the orders for which the predicate holds, in their order.
    pub(super) fn orders_that(&self, holds: impl Fn(&Ordered) -> bool) -> Vec<u64> {
        let meant = self.orders.iter().filter(|ordered| holds(ordered));
        meant.map(|ordered| ordered.record.number).collect()
    }

    /// The node half of the plugin, while there is a healthy one.
    pub(super) fn node(&self) -> Option<&NodeRoute> {
        self.route.as_ref()?.node.as_ref()
    }

    /// The controller half of the plugin, while there is a healthy one.
    pub(super) fn controller(&self) -> Option<&ControllerRoute> {
        self.route.as_ref()?.controller.as_ref()
    }

    /// The tries of an operation; `None` for a claim that was forgotten.
    pub(super) fn tries_of(&self, of: &Operation) -> Option<&Tries> {
        match of {
            Operation::Create | Operation::Delete => Some(&self.life.tries),
            Operation::Attach | Operation::Detach => Some(&self.attach_tries),
            Operation::Stage | Operation::Unstage | Operation::LookAtStage => Some(&self.stage_tries),
            Operation::LookAtAbandoned(path) | Operation::UnpublishAbandoned(path) => {
                self.abandoned.get(path).map(|target| &target.tries)
            }
            Operation::Publish(id) | Operation::Unpublish(id) | Operation::LookAt(id) => {
                self.claims.get(id).map(|claim| &claim.tries)
            }
            Operation::Order(number, _) => self.ordered(*number).map(|ordered| &ordered.tries),
        }
    }

    /// [`tries_of`](Self::tries_of), mutable.
    pub(super) fn tries(&mut self, of: &Operation) -> Option<&mut Tries> {
        match of {
            Operation::Create | Operation::Delete => Some(&mut self.life.tries),
            Operation::Attach | Operation::Detach => Some(&mut self.attach_tries),
            Operation::Stage | Operation::Unstage | Operation::LookAtStage => Some(&mut self.stage_tries),
            Operation::LookAtAbandoned(path) | Operation::UnpublishAbandoned(path) => {
                self.abandoned.get_mut(path).map(|target| &mut target.tries)
            }
            Operation::Publish(id) | Operation::Unpublish(id) | Operation::LookAt(id) => {
                self.claims.get_mut(id).map(|claim| &mut claim.tries)
            }
            Operation::Order(number, _) => {
                let ordered = self.ordered_mut(*number);
                ordered.map(|ordered| &mut ordered.tries)
            }
        }
    }
}
