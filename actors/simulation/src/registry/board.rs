//! One plugin of the plain list: its registrations, and the one that work should be routed to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::RegistryOptions;
use callboard_actors::vocabulary::{
    AllocationId, FailoverPolicy, Fitness, Generation, Registration, RegistrationNumber, Timestamp,
};

use super::model::ExpectedNews;

/// A registration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) number: RegistrationNumber,
    pub(super) registration: Arc<Registration>,
    pub(super) is_confirmed: bool,
    pub(super) generation: Generation,
    /// Whether it was active under this generation.
    pub(super) was_active: bool,
    pub(super) fitness: Fitness,
    pub(super) fit_since: Timestamp,
    /// How long it was fit before it failed.
    pub(super) was_fit_for: Duration,
    /// Whether it was reported fit under this generation.
    pub(super) was_fit: bool,
}

/// The failures of an allocation while it was active.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Losses {
    count: u32,
    last: Timestamp,
    was_fit_for: Duration,
}

impl Held {
    pub(super) const fn new(registration: Arc<Registration>) -> Self {
        Self {
            number: UNTOLD,
            registration,
            is_confirmed: true,
            generation: Generation::new(0),
            was_active: false,
            fitness: Fitness::Unproven,
            fit_since: Timestamp::from_epoch(Duration::ZERO),
            was_fit_for: Duration::ZERO,
            was_fit: false,
        }
    }
}

/// The registration that work is routed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Served {
    pub(super) number: RegistrationNumber,
    pub(super) generation: Generation,
    pub(super) registration: Arc<Registration>,
}

/// One plugin: its registrations, oldest first.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Board {
    pub(super) held: Vec<Held>,
    pub(super) active: Option<Served>,
    pub(super) losses: BTreeMap<AllocationId, Losses>,
}

/// The number of a registration of the present message, until the machine reports it.
pub(super) const UNTOLD: RegistrationNumber = RegistrationNumber::new(u64::MAX);

/// The inputs of an election beside the list.
pub(super) struct Scene<'a> {
    pub(super) options: &'a RegistryOptions,
    pub(super) now: Timestamp,
}

impl Held {
    /// Whether it is confirmed, and these contents differ from its own only in their policy.
    pub(super) fn has_another_policy(&self, contents: &Registration) -> bool {
        let of_old = Registration { policy: self.registration.policy.clone(), ..contents.clone() };
        self.is_confirmed && of_old == *self.registration && *contents != *self.registration
    }

    /// Confirms it, or changes its contents.
    pub(super) fn confirm(&mut self) -> ExpectedNews {
        self.is_confirmed = true;
        self.renew();
        ExpectedNews::Updated(self.number, Arc::clone(&self.registration))
    }

    /// Gives it another generation, which is published at the same time.
    pub(super) fn renew(&mut self) -> ExpectedNews {
        self.was_active = false;
        self.was_fit = false;
        self.generation = Generation::new(0);
        ExpectedNews::Renewed(self.number, Arc::clone(&self.registration))
    }
}

impl Held {
    /// Records a report. False if nothing changed.
    pub(super) fn reported(&mut self, fitness: &Fitness, now: Timestamp) -> bool {
        match fitness {
            Fitness::Fit => self.was_fit = true,
            Fitness::Unproven => self.was_fit = false,
            Fitness::Unfit { .. } => {}
        }
        if self.fitness == *fitness {
            return false;
        }
        self.was_fit_for = match (&self.fitness, fitness) {
            (Fitness::Fit, Fitness::Unfit { .. }) => now.since(self.fit_since),
            (Fitness::Unfit { .. }, Fitness::Unfit { .. }) => self.was_fit_for,
            _ => Duration::ZERO,
        };
        (self.fitness, self.fit_since) = (fitness.clone(), now);
        true
    }

    /// With its new contents nothing is known of it.
    pub(super) fn forget(&mut self) {
        (self.fitness, self.was_fit_for) = (Fitness::Unproven, Duration::ZERO);
    }

    /// Whether it may have been given out while it was active, so that its generation is not active again.
    pub(super) fn is_spent(&self) -> bool {
        self.was_active && (self.was_fit || !self.registration.plugin.plugin_type.is_csi())
    }
}

impl Board {
    /// The registration that work should be routed to (R1, R1a, R1b, R1c).
    pub(super) fn best(&self, scene: &Scene<'_>) -> Option<&Held> {
        let newest = |is_it: &dyn Fn(&Held) -> bool| {
            self.held.iter().rev().find(|held| held.is_confirmed && is_it(held))
        };
        let is_active = |held: &Held| self.active.as_ref().is_some_and(|active| active.number == held.number);
        let is_fit = |held: &Held| held.fitness == Fitness::Fit;
        newest(&|held| self.is_chosen(held, scene))
            .or_else(|| newest(&|held| is_fit(held) && (is_active(held) || self.is_calm(held, scene))))
            .or_else(|| newest(&is_fit))
            .or_else(|| newest(&|held| held.fitness == Fitness::Unproven))
            .or_else(|| newest(&is_active))
            .or_else(|| newest(&|_| true))
    }

    /// Whether the policy of this plugin chooses this registration whatever its fitness, unless it chooses a newer one.
    pub(super) fn is_chosen(&self, held: &Held, scene: &Scene<'_>) -> bool {
        let mut confirmed = self.held.iter().rev().filter(|held| held.is_confirmed);
        let policy = confirmed.find_map(|held| held.registration.policy.as_ref());
        match policy.unwrap_or(&scene.options.policy) {
            FailoverPolicy::Newest => true,
            FailoverPolicy::Pinned(pinned) => held.registration.allocation == *pinned,
            FailoverPolicy::NewestHealthy => false,
        }
    }

    /// Whether a fit registration has been fit for its calm time since it failed while it was active.
    pub(super) fn is_calm(&self, held: &Held, scene: &Scene<'_>) -> bool {
        let Some(Losses { count, was_fit_for, .. }) = self.losses.get(&held.registration.allocation) else {
            return true;
        };
        let calm = &scene.options.calm;
        let doubled = calm.first.saturating_mul(1 << (count - 1).min(20));
        scene.now >= held.fit_since + doubled.max(*was_fit_for * 2).min(calm.longest)
    }

    /// Another registration becomes active: the former one keeps its generation for the next time if it was not given out (R1d). Returns
    /// the row that records that.
    pub(super) fn keep_unspent(&mut self, to: Option<&AllocationId>) -> Option<RegistrationNumber> {
        let active = self.active.as_ref()?;
        let is_it = |held: &&mut Held| held.number == active.number && held.generation == active.generation;
        let former = self.held.iter_mut().find(is_it)?;
        if Some(&former.registration.allocation) == to || former.is_spent() {
            return None;
        }
        former.was_active = false;
        Some(former.number)
    }

    /// The active registration loses its place; `left` is its last state if it has left because it failed.
    pub(super) fn note_loss(&mut self, left: Option<&Held>, scene: &Scene<'_>) {
        let Some(active) = &self.active else { return };
        let failed =
            |held: &&Held| held.number == active.number && matches!(held.fitness, Fitness::Unfit { .. });
        let Some(lost) = left.or_else(|| self.held.iter().find(failed)) else { return };
        let was_fit_for = match lost.fitness {
            Fitness::Fit => scene.now.since(lost.fit_since),
            Fitness::Unfit { .. } | Fitness::Unproven => lost.was_fit_for,
        };
        let first = Losses { count: 0, last: scene.now, was_fit_for };
        let losses = self.losses.entry(active.registration.allocation.clone()).or_insert(first);
        let calm = &scene.options.calm;
        let is_forgotten = scene.now.since(losses.last) >= calm.reset_after + calm.longest;
        let count = if is_forgotten { 1 } else { losses.count + 1 };
        *losses = Losses { count, last: scene.now, was_fit_for };
    }
}
