//! Tracks the fitness of the registrations of one plugin, and how often each allocation failed while it was active (R1b, R1c).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::vocabulary::{
    AllocationId, Backoff, BackoffState, Fitness, Generation, Moment, RegistrationNumber, Timestamp,
};

/// The limit of allocations of one plugin whose failures are remembered; the allocation that failed longest ago is forgotten.
const LOSSES_MAX: usize = 64;

/// The failures of one allocation while it was active.
#[derive(Debug, Clone, Hash)]
struct Losses {
    backoff: BackoffState,
    last: Timestamp,
    /// How long it must be fit before it is active again.
    calm: Duration,
}

/// The fitness of one registration.
#[derive(Debug, Clone, Hash)]
struct Known {
    fitness: Fitness,
    since: Timestamp,
    /// How long it was fit before it failed; zero if it has not failed.
    was_fit_for: Duration,
    /// The generation under which it was fit last. That generation may have been dispensed.
    fit_in: Option<Generation>,
}

/// The fitness of one plugin's registrations. Nothing is stored for an unproven registration. It is forgotten with the last of them.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Fitnesses {
    /// Boxed, since a map allocates space for eleven entries with the first one, and most plugins have one registration.
    known: BTreeMap<RegistrationNumber, Box<Known>>,
    /// By allocation, so that an allocation that leaves and registers again does not escape its calm time.
    losses: BTreeMap<AllocationId, Losses>,
}

impl Fitnesses {
    pub(super) fn of(&self, number: RegistrationNumber) -> &Fitness {
        self.known.get(&number).map_or(&Fitness::Unproven, |known| &known.fitness)
    }

    /// Records a report about a generation. False if it reports nothing new.
    pub(super) fn report(
        &mut self,
        number: RegistrationNumber,
        generation: Generation,
        fitness: &Fitness,
        now: Timestamp,
    ) -> bool {
        let is_new = self.of(number) != fitness;
        if *fitness == Fitness::Unproven {
            self.known.remove(&number);
            return is_new;
        }
        let first =
            Known { fitness: Fitness::Unproven, since: now, was_fit_for: Duration::ZERO, fit_in: None };
        let known = self.known.entry(number).or_insert_with(|| Box::new(first));
        if *fitness == Fitness::Fit {
            known.fit_in = Some(generation);
        }
        if is_new {
            let was_fit_for = match (&known.fitness, fitness) {
                (Fitness::Fit, _) => now.since(known.since),
                // It still fails.
                (Fitness::Unfit { .. }, Fitness::Unfit { .. }) => known.was_fit_for,
                (Fitness::Unfit { .. } | Fitness::Unproven, _) => Duration::ZERO,
            };
            **known = Known { fitness: fitness.clone(), since: now, was_fit_for, fit_in: known.fit_in };
        }
        is_new
    }

    /// After a rebuild: the active registration stays active until it is reported unfit, or a newer one fit.
    pub(super) fn presume(&mut self, number: RegistrationNumber, generation: Generation, since: Timestamp) {
        let known =
            Known { fitness: Fitness::Fit, since, was_fit_for: Duration::ZERO, fit_in: Some(generation) };
        self.known.insert(number, Box::new(known));
    }

    /// Whether a registration was fit under its present generation, so that it may have been dispensed while it was active.
    pub(super) fn was_fit_in(&self, number: RegistrationNumber, generation: Generation) -> bool {
        self.known.get(&number).is_some_and(|known| known.fit_in == Some(generation))
    }

    pub(super) fn forget(&mut self, number: RegistrationNumber) {
        self.known.remove(&number);
    }

    /// An allocation lost its place by failing: its next calm time begins when it is fit again. It is at least twice as long as the
    /// allocation was fit before it failed, within the limit: an allocation that keeps failing at the same pace does not reach its end.
    pub(super) fn lost(
        &mut self,
        allocation: &AllocationId,
        number: RegistrationNumber,
        policy: &Backoff,
        now: Timestamp,
    ) {
        let was_fit_for = self.known.get(&number).map_or(Duration::ZERO, |known| match known.fitness {
            Fitness::Fit => now.since(known.since),
            Fitness::Unfit { .. } | Fitness::Unproven => known.was_fit_for,
        });
        let losses = self.losses.entry(allocation.clone()).or_insert_with(|| Losses {
            backoff: BackoffState::default(),
            last: now,
            calm: Duration::ZERO,
        });
        let doubled = losses.backoff.failed(policy, Moment { now, random: 0 });
        losses.calm = doubled.max(was_fit_for.saturating_mul(2).min(policy.longest));
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
        let known = self.known.get(&number).filter(|known| known.fitness == Fitness::Fit)?;
        Some(known.since + losses.calm)
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
            fitnesses.lost(&name(number), RegistrationNumber::new(1), &policy, at(number as u64));
        }
        let number = RegistrationNumber::new(1);
        fitnesses.report(number, Generation::new(1), &Fitness::Fit, at(1_000));
        assert_eq!(fitnesses.calm_until(number, &name(0)), None, "it failed longest ago");
        assert_eq!(fitnesses.calm_until(number, &name(1)), Some(at(1_000) + policy.first));
    }

    #[test]
    fn it_must_be_fit_for_twice_as_long_as_before_it_failed_r1c() {
        let policy = Backoff {
            first: Duration::from_secs(10),
            longest: Duration::from_secs(600),
            jitter_percent: 0,
            reset_after: Duration::from_secs(600),
        };
        let (number, generation) = (RegistrationNumber::new(1), Generation::new(1));
        let allocation = AllocationId::new("a").unwrap();
        let (mut fitnesses, mut now) = (Fitnesses::default(), 0);
        let failed: Fitness = Fitness::Unfit { reason: "it crashed".into() };
        let mut fails_after = |seconds: u64, is_told: bool| {
            fitnesses.report(number, generation, &Fitness::Fit, at(now));
            now += seconds;
            // A registration whose process has ended leaves, and was fit until then.
            if is_told {
                fitnesses.report(number, generation, &failed, at(now));
                now += 1;
            }
            fitnesses.lost(&allocation, number, &policy, at(now));
            fitnesses.report(number, generation, &Fitness::Unproven, at(now));
            fitnesses.report(number, generation, &Fitness::Fit, at(now));
            fitnesses.calm_until(number, &allocation).unwrap().since(at(now)).as_secs()
        };
        assert_eq!(fails_after(2, true), 10, "no shorter than the first pause");
        assert_eq!(fails_after(60, true), 120);
        assert_eq!(fails_after(60, false), 120);
        assert_eq!(fails_after(1, true), 80, "the fourth in a row");
        assert_eq!(fails_after(500, true), 600, "no longer than the limit");
        assert_eq!(fails_after(1_300, true), 600, "however long it was fit");
        fails_after(1_300, true);
        assert_eq!(fails_after(1, true), 20, "so long without a failure begins anew");
    }
}
