//! One plugin of the plain list: who serves it, and whom work should be routed to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::RegistryOptions;
use callboard_actors::vocabulary::{
    AllocationId, FailoverPolicy, Fitness, Generation, Registration, RegistrationNumber, Timestamp,
};

use super::model::Tale;

/// One that is registered.
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
        }
    }
}

/// Whom work is routed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Served {
    pub(super) number: RegistrationNumber,
    pub(super) generation: Generation,
    pub(super) registration: Arc<Registration>,
}

/// One plugin: who serves it, oldest first.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Board {
    pub(super) held: Vec<Held>,
    pub(super) active: Option<Served>,
    /// How often each allocation failed while it was active, and when it did last.
    pub(super) losses: BTreeMap<AllocationId, (u32, Timestamp)>,
}

/// The number of a registration of the present message, until the machine tells it.
pub(super) const UNTOLD: RegistrationNumber = RegistrationNumber::new(u64::MAX);

/// What an election depends on beside the list.
pub(super) struct Scene<'a> {
    pub(super) options: &'a RegistryOptions,
    pub(super) now: Timestamp,
}

impl Held {
    /// Whether it is confirmed, and these contents differ from its own by their policy alone.
    pub(super) fn has_another_policy(&self, contents: &Registration) -> bool {
        let of_old = Registration { policy: self.registration.policy.clone(), ..contents.clone() };
        self.is_confirmed && of_old == *self.registration && *contents != *self.registration
    }

    /// It is confirmed, or its contents change.
    pub(super) fn confirm(&mut self) -> Tale {
        self.is_confirmed = true;
        self.renew();
        Tale::Changed(self.number, Arc::clone(&self.registration))
    }

    /// It has another generation, which is told with that.
    pub(super) fn renew(&mut self) -> Tale {
        self.was_active = false;
        self.generation = Generation::new(0);
        Tale::Renewed(self.number, Arc::clone(&self.registration))
    }
}

impl Board {
    /// Whom work should be routed to (R1, R1a, R1b, R1c).
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

    /// Whether the policy of this plugin chooses this one whatever its fitness, unless it chooses a newer one.
    pub(super) fn is_chosen(&self, held: &Held, scene: &Scene<'_>) -> bool {
        let mut confirmed = self.held.iter().rev().filter(|held| held.is_confirmed);
        let policy = confirmed.find_map(|held| held.registration.policy.as_ref());
        match policy.unwrap_or(&scene.options.policy) {
            FailoverPolicy::Newest => true,
            FailoverPolicy::Pinned(pinned) => held.registration.allocation == *pinned,
            FailoverPolicy::NewestHealthy => false,
        }
    }

    /// Whether a fit one is fit for as long as it must be after it failed while it was active.
    pub(super) fn is_calm(&self, held: &Held, scene: &Scene<'_>) -> bool {
        let Some((count, _)) = self.losses.get(&held.registration.allocation) else { return true };
        let calm = &scene.options.calm;
        let due = calm.first.saturating_mul(1 << (count - 1).min(20)).min(calm.longest);
        scene.now >= held.fit_since + due
    }

    pub(super) fn note_loss(&mut self, has_failed: bool, scene: &Scene<'_>) {
        let Some(active) = &self.active else { return };
        let held = self.held.iter().find(|held| held.number == active.number);
        if !has_failed && !held.is_some_and(|held| matches!(held.fitness, Fitness::Unfit { .. })) {
            return;
        }
        let loss = self.losses.entry(active.registration.allocation.clone()).or_insert((0, scene.now));
        let calm = &scene.options.calm;
        let is_forgotten = scene.now.since(loss.1) >= calm.reset_after + calm.longest;
        *loss = (if is_forgotten { 1 } else { loss.0 + 1 }, scene.now);
    }
}
