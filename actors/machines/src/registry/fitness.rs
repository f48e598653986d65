//! How fit the registrations of one plugin are, and how often each allocation failed while it was active (R1b, R1c).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::vocabulary::{
    AllocationId, Backoff, BackoffState, Fitness, Moment, RegistrationNumber, Timestamp,
};

/// The limit of allocations of one plugin whose failures are remembered; the one that failed longest ago is forgotten.
const LOSSES_MAX: usize = 64;

/// The failures of one allocation while it was active.
#[derive(Debug, Clone, Hash)]
struct Losses {
    backoff: BackoffState,
    last: Timestamp,
    /// How long it must be fit before it is active again.
    calm: Duration,
}

/// What is known of one plugin's registrations. Nothing is stored for one that is unproven. It is forgotten with the last of them.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Fitnesses {
    known: BTreeMap<RegistrationNumber, (Fitness, Timestamp)>,
    /// By allocation, so that one that leaves and registers again does not escape its calm time.
    losses: BTreeMap<AllocationId, Losses>,
}

impl Fitnesses {
    pub(super) fn of(&self, number: RegistrationNumber) -> &Fitness {
        self.known.get(&number).map_or(&Fitness::Unproven, |(fitness, _)| fitness)
    }

    /// Notes a report. False if it says what was known.
    pub(super) fn report(&mut self, number: RegistrationNumber, fitness: &Fitness, now: Timestamp) -> bool {
        if self.of(number) == fitness {
            return false;
        }
        match fitness {
            Fitness::Unproven => self.known.remove(&number),
            Fitness::Fit | Fitness::Unfit { .. } => self.known.insert(number, (fitness.clone(), now)),
        };
        true
    }

    /// After a rebuild: the active one stays active until it is reported unfit, or a newer one fit.
    pub(super) fn presume(&mut self, number: RegistrationNumber) {
        self.known.insert(number, (Fitness::Fit, Timestamp::default()));
    }

    pub(super) fn forget(&mut self, number: RegistrationNumber) {
        self.known.remove(&number);
    }

    /// An allocation lost its place by failing: its next calm time begins when it is fit again.
    pub(super) fn lost(&mut self, allocation: &AllocationId, policy: &Backoff, now: Timestamp) {
        let losses = self.losses.entry(allocation.clone()).or_insert_with(|| Losses {
            backoff: BackoffState::default(),
            last: now,
            calm: Duration::ZERO,
        });
        losses.calm = losses.backoff.failed(policy, Moment { now, random: 0 });
        losses.last = now;
        if self.losses.len() > LOSSES_MAX {
            let oldest = self.losses.iter().min_by_key(|(_, losses)| losses.last);
            if let Some(oldest) = oldest.map(|(allocation, _)| allocation.clone()) {
                self.losses.remove(&oldest);
            }
        }
    }

    /// When the calm time of a fit registration ends; `None` if it has none.
    pub(super) fn calm_until(
        &self,
        number: RegistrationNumber,
        allocation: &AllocationId,
    ) -> Option<Timestamp> {
        let losses = self.losses.get(allocation)?;
        let (_, fit_since) = self.known.get(&number).filter(|(fitness, _)| *fitness == Fitness::Fit)?;
        Some(*fit_since + losses.calm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn only_so_many_allocations_are_remembered_for_their_failures_f4() {
        let policy = Backoff { jitter_percent: 0, ..Backoff::default() };
        let mut fitnesses = Fitnesses::default();
        let name = |number: usize| AllocationId::new(format!("a{number}")).unwrap();
        for number in 0..=LOSSES_MAX {
            fitnesses.lost(&name(number), &policy, at(number as u64));
        }
        let number = RegistrationNumber::new(1);
        fitnesses.report(number, &Fitness::Fit, at(1_000));
        assert_eq!(fitnesses.calm_until(number, &name(0)), None, "it failed longest ago");
        assert_eq!(fitnesses.calm_until(number, &name(1)), Some(at(1_000) + policy.first));
    }
}
