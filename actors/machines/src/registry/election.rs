//! Elects the active registration of a plugin (R1, R1a, R1b, R1c).
//!
//! ```text
//!   registered ──► unproven ── first whole fingerprint ──► fit ◄────────────────────┐
//!                     │                                     │ failed for too long   │ fit for the whole calm time,
//!                     └── active only while none is fit     ▼                       │ or no other is fit
//!                                                         unfit ── fit again ──► in its calm time
//! ```
//!
//! In the best non-empty rank the newest registration is active:
//!
//! 1. pinned;
//! 2. fit: outside its calm time, or active already;
//! 3. fit, in its calm time after it failed while it was active;
//! 4. unproven: none serves, so the newest is waited for;
//! 5. unfit: the active one stays, since no other is better.

use super::reasons::{ActiveBecause, InactiveBecause};
use super::state::{Plugin, Stored};
use crate::vocabulary::{FailoverPolicy, Fitness, RegistrationNumber, RunNumber, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unfit,
    Unproven,
    InCalmTime,
    Fit,
    Pinned,
}

impl Plugin {
    /// The registration that should be active.
    pub(super) fn best(
        &self,
        policy: &FailoverPolicy,
        run: RunNumber,
        now: Timestamp,
    ) -> Option<RegistrationNumber> {
        let mut confirmed = self.members.newest_first().filter(|stored| stored.confirmed_in == run);
        if *policy == FailoverPolicy::Newest {
            return confirmed.next().map(|stored| stored.number);
        }
        let active_because = |stored: &Stored| {
            let rank = self.rank(stored, policy, now);
            (rank, rank == Rank::Unfit && self.is_active(stored.number), stored.number)
        };
        confirmed.max_by_key(|stored| active_because(stored)).map(|stored| stored.number)
    }

    /// Whether this registration is the active one.
    pub(super) fn is_active(&self, number: RegistrationNumber) -> bool {
        self.active.as_ref().is_some_and(|(active, _)| *active == number)
    }

    fn rank(&self, stored: &Stored, policy: &FailoverPolicy, now: Timestamp) -> Rank {
        if matches!(policy, FailoverPolicy::Pinned(pinned) if *pinned == stored.registration.allocation) {
            return Rank::Pinned;
        }
        match self.fitness.of(stored.number) {
            Fitness::Unfit { .. } => Rank::Unfit,
            Fitness::Unproven => Rank::Unproven,
            Fitness::Fit if self.is_active(stored.number) || self.calm_until(stored, now).is_none() => {
                Rank::Fit
            }
            Fitness::Fit => Rank::InCalmTime,
        }
    }

    /// When the calm time of a fit registration ends, if it has not yet.
    fn calm_until(&self, stored: &Stored, now: Timestamp) -> Option<Timestamp> {
        let until = self.fitness.calm_until(stored.number, &stored.registration.allocation)?;
        Some(until).filter(|until| *until > now)
    }

    /// When the next calm time ends of a registration that is newer than the active one.
    pub(super) fn next_calm_end(
        &self,
        policy: &FailoverPolicy,
        run: RunNumber,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (active, _) = self.active.as_ref()?;
        if *policy == FailoverPolicy::Newest {
            return None;
        }
        let newer = self.members.newest_first().take_while(|stored| stored.number > *active);
        newer.filter(|stored| stored.confirmed_in == run).filter_map(|s| self.calm_until(s, now)).min()
    }

    /// Why the active registration is active at present, regardless of how it became so.
    pub(super) fn active_because(&self, policy: &FailoverPolicy, now: Timestamp) -> Option<ActiveBecause> {
        let (number, active) = self.active.as_ref()?;
        if let Some(by_policy) = self.chosen_by(policy) {
            return Some(by_policy);
        }
        if !active.registration.plugin.plugin_type.is_csi() {
            return Some(ActiveBecause::Newest);
        }
        let is_in_calm_time = |stored: &Stored| self.calm_until(stored, now).is_some();
        let is_fit = |stored: &&Stored| *self.fitness.of(stored.number) == Fitness::Fit;
        let others = || self.members.newest_first().filter(|other| other.number != *number).filter(is_fit);
        Some(match self.fitness.of(*number) {
            Fitness::Fit if others().any(|other| other.number > *number) => ActiveBecause::NewestCalm,
            Fitness::Fit
                if self.members.get(*number).is_some_and(is_in_calm_time) && others().next().is_none() =>
            {
                ActiveBecause::OnlyFit
            }
            Fitness::Fit => ActiveBecause::NewestFit,
            Fitness::Unproven => ActiveBecause::Awaited,
            Fitness::Unfit { .. } => ActiveBecause::NoneFit,
        })
    }

    /// The reason of a policy that chooses the active registration regardless of its fitness.
    fn chosen_by(&self, policy: &FailoverPolicy) -> Option<ActiveBecause> {
        let (_, active) = self.active.as_ref()?;
        match policy {
            FailoverPolicy::Newest => Some(ActiveBecause::Newest),
            FailoverPolicy::Pinned(pinned) => {
                (*pinned == active.registration.allocation).then_some(ActiveBecause::Pinned)
            }
            FailoverPolicy::NewestHealthy => None,
        }
    }

    /// Why a confirmed registration is not active.
    pub(super) fn inactive_because(
        &self,
        stored: &Stored,
        policy: &FailoverPolicy,
        now: Timestamp,
    ) -> InactiveBecause {
        let chosen_by = self.chosen_by(policy);
        match (self.fitness.of(stored.number), chosen_by) {
            (Fitness::Unfit { reason }, _) => InactiveBecause::Unfit { reason: reason.clone() },
            (Fitness::Unproven | Fitness::Fit, Some(ActiveBecause::Newest)) => InactiveBecause::Older,
            (Fitness::Unproven, _) if stored.registration.plugin.plugin_type.is_csi() => {
                InactiveBecause::Unproven
            }
            (Fitness::Unproven | Fitness::Fit, Some(_)) => InactiveBecause::NotPinned,
            (Fitness::Unproven, None) => InactiveBecause::Older,
            (Fitness::Fit, None) => self
                .calm_until(stored, now)
                .map_or(InactiveBecause::Older, |until| InactiveBecause::Calm { until }),
        }
    }
}
