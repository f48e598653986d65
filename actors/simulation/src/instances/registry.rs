//! The registry as the supervisor of the instances sees it: the registrations of one plugin, and which of them is active.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::registry::{
    Active, ActiveReason, Departure, Entry, RegistryAsk, RegistryNews, RegistryView, Standing,
};
use callboard_actors::vocabulary::{
    AllocationId, Fitness, Generation, Registration, RegistrationNumber, SocketPath, Timestamp,
};

use super::world::plugin;

/// The registrations by the number of their allocation.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct SmallRegistry {
    registered: BTreeMap<u64, Generation>,
    active: Option<u64>,
    /// The generations that were reported fit.
    fit_in: BTreeSet<Generation>,
    /// The generations that were reported fit, and were active and no longer are.
    spent: BTreeSet<Generation>,
    fitness: BTreeMap<u64, Fitness>,
    numbers: u64,
    allocations: u64,
}

impl SmallRegistry {
    pub(super) fn count(&self) -> usize {
        self.registered.len()
    }

    pub(super) fn active(&self) -> Option<(AllocationId, Generation)> {
        let who = self.active?;
        Some((allocation(who), *self.registered.get(&who)?))
    }

    pub(super) fn has(&self, of: &AllocationId, generation: Generation) -> bool {
        self.registered.iter().any(|(who, known)| allocation(*who) == *of && *known == generation)
    }

    /// The newest standby.
    pub(super) fn next(&self) -> Option<u64> {
        self.registered.keys().rev().find(|who| Some(**who) != self.active).copied()
    }

    /// The allocation that registered last.
    pub(super) fn latest(&self) -> AllocationId {
        allocation(self.allocations)
    }

    /// An allocation that has not been reported fit.
    pub(super) fn not_told_fit(&self) -> Option<AllocationId> {
        let is_fit = |who: &&u64| self.fitness.get(who) == Some(&Fitness::Fit);
        self.registered.keys().find(|who| !is_fit(who)).map(|who| allocation(*who))
    }

    pub(super) fn view(&self, now: Timestamp) -> RegistryView {
        let entries = self.registered.iter().map(|(who, generation)| entry(*who, *generation, now));
        RegistryView { entries: entries.collect(), active: self.routed(now).into_iter().collect() }
    }

    fn routed(&self, now: Timestamp) -> Option<Active> {
        let who = self.active?;
        let generation = *self.registered.get(&who)?;
        Some(Active { generation, registration: registration(who), since: now })
    }

    // === Events ===

    /// Another allocation registers, and stands by.
    pub(super) fn join(&mut self, now: Timestamp) -> Vec<RegistryNews> {
        self.allocations += 1;
        let generation = self.renewed(self.allocations);
        vec![RegistryNews::Registered(entry(self.allocations, generation, now))]
    }

    /// Another allocation replaces the active one, which leaves.
    pub(super) fn replace(&mut self, now: Timestamp) -> Vec<RegistryNews> {
        let mut news = self.join(now);
        if let Some(former) = self.active {
            news.extend(self.remove(former, now));
        }
        news.push(self.route(Some(self.allocations), now));
        news
    }

    /// The active one leaves, and the newest standby takes over.
    pub(super) fn leave(&mut self, now: Timestamp) -> Vec<RegistryNews> {
        let Some(former) = self.active else { return Vec::new() };
        let mut news: Vec<_> = self.remove(former, now).into_iter().collect();
        let next = self.next();
        news.extend(next.and_then(|next| self.if_spent(next, now)));
        news.push(self.route(next, now));
        news
    }

    /// The newest standby takes over, and the active one stands by.
    pub(super) fn take_over(&mut self, now: Timestamp) -> Vec<RegistryNews> {
        let next = self.next();
        let mut news: Vec<_> = next.and_then(|next| self.if_spent(next, now)).into_iter().collect();
        news.push(self.route(next, now));
        news
    }

    /// A message of the supervisor of the instances to the registry.
    pub(super) fn take(&mut self, ask: &RegistryAsk, now: Timestamp) -> Vec<RegistryNews> {
        let known = |of: &AllocationId, generation: Generation| {
            let is_it =
                |(who, known): &(&u64, &Generation)| allocation(**who) == *of && **known == generation;
            self.registered.iter().find(is_it).map(|(who, _)| *who)
        };
        match ask {
            RegistryAsk::Renew(renew) => {
                let Some(who) = known(&renew.allocation, renew.generation) else { return Vec::new() };
                let generation = self.renewed(who);
                let mut news = vec![RegistryNews::Renewed(entry(who, generation, now))];
                news.extend((self.active == Some(who)).then(|| self.route(Some(who), now)));
                news
            }
            RegistryAsk::ReportFitness(report) => {
                if let Some(who) = known(&report.allocation, report.generation) {
                    self.fitness.insert(who, report.fitness.clone());
                    if report.fitness == Fitness::Fit {
                        self.fit_in.insert(report.generation);
                    }
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn renewed(&mut self, who: u64) -> Generation {
        self.numbers += 1;
        let generation = Generation::new(self.numbers);
        self.registered.insert(who, generation);
        generation
    }

    /// A generation that was fit while it was active is not active again (R1d).
    fn if_spent(&mut self, who: u64, now: Timestamp) -> Option<RegistryNews> {
        let is_spent = self.registered.get(&who).is_some_and(|generation| self.spent.contains(generation));
        is_spent.then(|| RegistryNews::Renewed(entry(who, self.renewed(who), now)))
    }

    fn remove(&mut self, who: u64, now: Timestamp) -> Option<RegistryNews> {
        self.fitness.remove(&who);
        let generation = self.registered.remove(&who)?;
        Some(RegistryNews::Deregistered(entry(who, generation, now), Departure::Deregistered))
    }

    fn route(&mut self, to: Option<u64>, now: Timestamp) -> RegistryNews {
        let former = self.active.filter(|former| Some(*former) != to);
        let former = former.and_then(|former| self.registered.get(&former)).copied();
        self.spent.extend(former.filter(|generation| self.fit_in.contains(generation)));
        self.active = to;
        let to = self.routed(now);
        RegistryNews::ActiveChanged { plugin: plugin(), from: None, to, reason: ActiveReason::Proven }
    }
}

fn allocation(who: u64) -> AllocationId {
    AllocationId::new(format!("a{who}")).expect("it is a name")
}

fn registration(who: u64) -> Arc<Registration> {
    Arc::new(Registration {
        policy: None,
        plugin: plugin(),
        allocation: allocation(who),
        socket: SocketPath::new(format!("/run/a{who}.sock")).expect("it is short and absolute"),
        provider: Some("zfs.example".into()),
        version: None,
        options: Arc::default(),
    })
}

fn entry(who: u64, generation: Generation, since: Timestamp) -> Entry {
    Entry {
        number: RegistrationNumber::new(who),
        registration: registration(who),
        generation,
        standing: Standing::Confirmed,
        since,
    }
}
