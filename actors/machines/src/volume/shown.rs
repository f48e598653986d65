//! The status of a volume as it shows it.

use std::fmt;
use std::sync::Arc;

use super::news::{ClaimStatus, VolumeNews, VolumeStatus};
use super::operation::Operation;
use super::planning::Need;
use super::record::{Desired, Usage};
use super::state::{Claim, Tries, Volume};
use crate::csi::AccessType;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

const LOST_REMEDY: &str = "release it when its processes have ended, or force it";

/// The state of the publication of a claim whose row was damaged.
pub(super) const LOST: &str = "lost";

/// Mount flags may be secret, and are not shown (C025).
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = self.capability.access_mode.word();
        match &self.capability.access_type {
            AccessType::Block => write!(f, "block device, {mode}")?,
            AccessType::Mount(mount) if mount.fs_type.is_empty() => write!(f, "file system, {mode}")?,
            AccessType::Mount(mount) => write!(f, "file system {}, {mode}", mount.fs_type)?,
        }
        if self.read_only { f.write_str(", read-only") } else { Ok(()) }
    }
}

impl VolumeStatus {
    /// Whether everything is as it is to be: each claim is held and its mount proven, without a claim nothing is set up, nothing that was
    /// given up by force is left, and the orders are done to the extent that is possible now. Otherwise an operation is under way, or
    /// waits.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let is_up = |claim: &ClaimStatus| claim.desired == Desired::Held && claim.is_mounted();
        let is_used = !self.claims.is_empty() && self.claims.iter().all(is_up);
        let is_used = is_used && self.is_rested() && !self.exists.is_changing();
        self.is_vacant() || is_used && self.abandoned.is_empty()
    }

    /// Whether it is in use and no part of it waits to be undone: every claim is held. It stays so while the host is down.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        let is_kept = |claim: &ClaimStatus| claim.desired == Desired::Held && claim.publish != LOST;
        let is_settled = !self.exists.is_changing() && self.abandoned.is_empty();
        is_settled && !self.claims.is_empty() && self.claims.iter().all(is_kept)
    }

    /// The claims that are kept while the host is down, if [`is_kept`](Self::is_kept).
    #[must_use]
    pub fn kept(&self) -> String {
        let claimants: Vec<_> = self.claims.iter().map(|claim| claim.allocation.to_string()).collect();
        let claimants = claimants.join(", ");
        if self.claims.iter().all(ClaimStatus::is_up) {
            format!("stays mounted for {claimants}")
        } else {
            format!("stays claimed by {claimants} ({self})")
        }
    }
}

impl Volume {
    /// The present status.
    pub(super) fn status(&self) -> VolumeStatus {
        self.status_of(&self.wanted_operations())
    }

    /// The status while these operations are to be done.
    fn status_of(&self, wanted: &[Operation]) -> VolumeStatus {
        let claims = self.in_order().into_iter().map(claim_status);
        let lost = self.lost.iter().map(|id| self.lost_status(id));
        let of_targets = self.abandoned.values().map(|target| &target.tries);
        let shared = [&self.stage_tries, &self.attach_tries];
        let of_orders = self.orders.iter().map(|ordered| &ordered.tries);
        let mut errors = [&self.life.tries].into_iter().chain(of_targets).chain(shared).chain(of_orders);
        VolumeStatus {
            key: self.record.spec.key.clone(),
            plugin: self.record.spec.plugin.clone(),
            exists: self.exists(),
            created: self.record.existence.as_ref().and_then(|existence| existence.volume.clone()),
            deletion_to_allow: self.deletion_to_allow().map(str::to_owned),
            attach: self.record.attach.as_str(),
            stage: self.record.stage.as_str(),
            claims: claims.chain(lost).collect(),
            abandoned: self.abandoned.values().map(|target| target.record.clone()).collect(),
            orders: self.order_statuses(),
            expanded_bytes: self.expanded_bytes,
            doing: self.doing_of(wanted),
            error: errors.find_map(|tries| tries.error.as_deref()).map(str::to_owned),
        }
    }

    /// A claim with a damaged row: only its allocation is known.
    fn lost_status(&self, allocation: &AllocationId) -> ClaimStatus {
        ClaimStatus {
            allocation: allocation.clone(),
            usage: String::new(),
            desired: Desired::Held,
            is_provisional: false,
            is_proven: false,
            publish: LOST,
            path: self.config.layout.targets(&self.record.spec.key, allocation),
            staged_at: None,
            error: Some(format!("its record is damaged: {LOST_REMEDY}")),
        }
    }

    /// Publishes the status, while these operations are to be done, if it differs from the last one.
    pub(super) fn tell(&mut self, wanted: &[Operation], cx: &mut StepContext<Self>) {
        let status = self.status_of(wanted);
        if self.told.as_deref() != Some(&status) {
            let status = Arc::new(status);
            cx.publish(VolumeNews::Changed(status.clone()));
            self.told = Some(status);
        }
    }

    /// The current operation or the condition it waits for, in words.
    pub(super) fn doing(&self) -> String {
        self.doing_of(&self.wanted_operations())
    }

    /// [`doing`](Self::doing) while these operations are to be done.
    fn doing_of(&self, wanted: &[Operation]) -> String {
        if let Some(flight) = &self.flight {
            return format!("{} is in flight", describe(&flight.what));
        }
        if let Some(next) = wanted.first() {
            return self.why_not(next);
        }
        if let Some(volume_id) = self.deletion_to_allow() {
            return format!(
                "waits to be deleted until it is known that no other volume here has its id {volume_id:?}"
            );
        }
        if let Some(id) = self.lost.first() {
            return format!("the record of the claim of {id} is damaged: {LOST_REMEDY}");
        }
        let waits = |claim: &&Claim| match self.need(claim) {
            Need::Waits(wait) if claim.is_wanted() => Some(wait),
            Need::Waits(_) | Need::Met(()) | Need::Operation(_) => None,
        };
        let of_orders = self.orders.iter().filter(|ordered| !self.is_resting(ordered));
        let mut of_orders = of_orders.filter_map(|ordered| match self.order_need(ordered) {
            Need::Waits(wait) => Some(wait),
            Need::Met(()) | Need::Operation(_) => None,
        });
        match self.in_order().iter().find_map(waits).or_else(|| of_orders.next()) {
            Some(wait) => format!("waits: {}", self.waits_for(wait)),
            None if self.claims.values().any(|claim| claim.is_provisional) => {
                "waits for its claims to be confirmed".to_owned()
            }
            None if !self.claims.is_empty() => match self.claims.values().find(|claim| claim.is_released()) {
                Some(claim) => self.left_to_the_next_start(claim),
                None => "in use".to_owned(),
            },
            None => match &self.life.unfit {
                Some(reason) => format!("it is not what was asked for: {reason}"),
                None if self.is_down() => "vacant".to_owned(),
                None => "waits to be undone".to_owned(),
            },
        }
    }

    /// The host stops, and this claim is undone only after the next start.
    fn left_to_the_next_start(&self, claim: &Claim) -> String {
        let what = describe(&Operation::Unpublish(claim.record.allocation.clone()));
        let reason = match (&claim.tries.error, self.node()) {
            (Some(error), _) => error,
            (None, None) => "no instance of the plugin is healthy",
            (None, Some(_)) => "the host stops before",
        };
        format!("{what} is left to the next start: {reason}")
    }

    /// The reason that the next operation has not begun.
    fn why_not(&self, next: &Operation) -> String {
        let tries = self.tries_of(next);
        let what = describe(next);
        match tries.map(|tries| (tries, tries.error.as_deref())) {
            Some((tries, Some(error))) if tries.holds(next.towards()) => {
                format!("{what} is held until the plugin changes or a caller asks again; {error}")
            }
            Some((_, Some(error))) => format!("{what} is tried again; {error}"),
            Some((Tries { until: Some(_), .. }, None)) => format!("{what} is repeated after a pause"),
            Some((_, None)) | None => format!("{what} waits for a healthy instance of the plugin"),
        }
    }
}

fn describe(what: &Operation) -> String {
    match what {
        Operation::Publish(id) | Operation::Unpublish(id) | Operation::LookAt(id) => {
            format!("{} for {id}", what.name())
        }
        Operation::LookAtAbandoned(path) | Operation::UnpublishAbandoned(path) => {
            format!("{} at {}", what.name(), path.display())
        }
        Operation::Create
        | Operation::Delete
        | Operation::Attach
        | Operation::Detach
        | Operation::Stage
        | Operation::Unstage
        | Operation::LookAtStage
        | Operation::Order(..) => what.name().to_owned(),
    }
}

fn claim_status(claim: &Claim) -> ClaimStatus {
    ClaimStatus {
        allocation: claim.record.allocation.clone(),
        usage: claim.record.usage.to_string(),
        desired: claim.record.desired,
        is_provisional: claim.is_provisional,
        is_proven: claim.is_proven,
        publish: claim.record.publish.as_str(),
        path: claim.record.target_path.clone(),
        staged_at: claim.record.publish.intent().and_then(|intent| intent.args.staging_path.clone()),
        error: claim.tries.error.as_deref().map(str::to_owned),
    }
}
