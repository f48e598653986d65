//! Models the registry as a plain list: the registrations, oldest first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::registry::{
    Departure, Deregister, LeaveCause, Register, Registered, RegistryOptions, Renew, ReportFitness,
};
use callboard_actors::vocabulary::{
    AllocationId, Fitness, Generation, PluginKey, Registration, RegistrationNumber, RunNumber, Timestamp,
};

use super::board::{Board, Held, Scene, Served};
use super::disk::Rows;

/// The expected publications of a message, in this order. The numbers that the machine gives are not known in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExpectedNews {
    Registered(Arc<Registration>),
    Updated(RegistrationNumber, Arc<Registration>),
    /// Another policy, and this generation as before.
    PolicyChanged(RegistrationNumber, Generation, Arc<Registration>),
    Renewed(RegistrationNumber, Arc<Registration>),
    Deregistered(RegistrationNumber, Departure),
    ActiveChanged {
        plugin: PluginKey,
        from: Option<Generation>,
        to: Option<Arc<Registration>>,
    },
}

/// The expected answer to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExpectedAnswer {
    /// Refused, and nothing changes.
    Refused,
    Registered(Registered),
    Deregistered(Vec<PluginKey>),
}

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Model {
    pub(super) boards: BTreeMap<PluginKey, Board>,
    pub(super) count: usize,
}

impl Model {
    /// The model of the rows on a disk.
    pub(super) fn of(rows: &Rows, run: RunNumber) -> Self {
        let mut model = Self { count: rows.len(), ..Self::default() };
        let mut last: BTreeMap<PluginKey, Timestamp> = BTreeMap::new();
        for stored in rows.values() {
            let is_confirmed = stored.confirmed_in == run;
            let registration = Arc::clone(&stored.registration);
            let board = model.boards.entry(registration.plugin.clone()).or_default();
            // Others were active before; the active one is the one that became active last.
            if is_confirmed
                && let Some(since) = stored.active_since
                && last.get(&registration.plugin).is_none_or(|last| since >= *last)
            {
                last.insert(registration.plugin.clone(), since);
                let (number, generation) = (stored.number, stored.generation);
                board.active = Some(Served { number, generation, registration: Arc::clone(&registration) });
            }
            board.held.push(Held {
                number: stored.number,
                is_confirmed,
                generation: stored.generation,
                was_active: stored.active_since.is_some(),
                ..Held::new(registration)
            });
        }
        // Reports are forgotten; the active registration of a CSI plugin stays active until it is reported unfit.
        for board in model.boards.values_mut() {
            let Some(active) = board.active.as_ref().map(|active| active.number) else { continue };
            let mut of_csi =
                board.held.iter_mut().filter(|held| held.registration.plugin.plugin_type.is_csi());
            if let Some(held) = of_csi.find(|held| held.number == active) {
                held.fitness = Fitness::Fit;
                held.fit_since = last.get(&held.registration.plugin).copied().unwrap_or_default();
                held.was_fit = true;
            }
        }
        model
    }

    /// A message of an owner, and its expected publications.
    pub(super) fn register(
        &mut self,
        message: &Register,
        scene: &Scene<'_>,
        expected: &mut Vec<ExpectedNews>,
    ) -> ExpectedAnswer {
        if self.must_refuse(message, scene.options) {
            return ExpectedAnswer::Refused;
        }
        let mut summary = Registered::Unchanged;
        let mut routed = Vec::new();
        for plugin in &message.plugins {
            let registration = contents(message, plugin);
            let board = self.boards.entry(plugin.clone()).or_default();
            let known = board.held.iter_mut().find(|held| held.registration.allocation == message.allocation);
            match known {
                None => {
                    summary = Registered::New;
                    expected.push(ExpectedNews::Registered(Arc::clone(&registration)));
                    board.held.push(Held::new(registration));
                    self.count += 1;
                }
                Some(held) if held.has_another_policy(&registration) => {
                    if summary == Registered::Unchanged {
                        summary = Registered::Updated;
                    }
                    held.registration = Arc::clone(&registration);
                    if let Some(active) = board.active.as_mut().filter(|active| active.number == held.number)
                    {
                        active.registration = Arc::clone(&registration);
                    }
                    expected.push(ExpectedNews::PolicyChanged(held.number, held.generation, registration));
                }
                Some(held) if *held.registration != *registration => {
                    if summary == Registered::Unchanged {
                        summary = Registered::Updated;
                    }
                    held.registration = Arc::clone(&registration);
                    if board.active.as_ref().is_none_or(|active| active.number != held.number) {
                        held.forget();
                    }
                    expected.push(held.confirm());
                }
                Some(held) if !held.is_confirmed => {
                    if board.active.as_ref().is_none_or(|active| active.number != held.number) {
                        held.forget();
                    }
                    expected.push(held.confirm());
                }
                Some(_) => continue,
            }
            self.elect(plugin, scene, None, expected, &mut routed);
        }
        expected.extend(routed);
        ExpectedAnswer::Registered(summary)
    }

    fn must_refuse(&self, message: &Register, options: &RegistryOptions) -> bool {
        let mut seen = BTreeSet::new();
        let is_twice = message.plugins.len() > 1 && !message.plugins.iter().all(|plugin| seen.insert(plugin));
        let bytes: usize = message.options.iter().map(|(key, value)| key.len() + value.len()).sum();
        let is_new = |plugin: &&PluginKey| self.find(plugin, &message.allocation).is_none();
        let is_full = || {
            let more = message.plugins.iter().filter(is_new).count();
            more > 0 && self.count + more > options.registrations_max
        };
        message.plugins.is_empty() || is_twice || message.options.len() > 64 || bytes > 4_096 || is_full()
    }

    /// A deregistration, and its expected publications.
    pub(super) fn deregister(
        &mut self,
        message: &Deregister,
        scene: &Scene<'_>,
        expected: &mut Vec<ExpectedNews>,
    ) -> ExpectedAnswer {
        let has_failed = message.cause == LeaveCause::Failed;
        let departure = if has_failed { Departure::Failed } else { Departure::Deregistered };
        let (mut removed, mut routed) = (Vec::new(), Vec::new());
        for plugin in &message.plugins {
            let Some(board) = self.boards.get_mut(plugin) else { continue };
            let is_theirs = |held: &Held| held.registration.allocation == message.allocation;
            let Some(place) = board.held.iter().position(is_theirs) else { continue };
            let held = board.held.remove(place);
            let was_active = board.active.as_ref().is_some_and(|active| active.number == held.number);
            self.count -= 1;
            expected.push(ExpectedNews::Deregistered(held.number, departure));
            removed.push(plugin.clone());
            let failed = Some(&held).filter(|_| has_failed && was_active);
            self.elect(plugin, scene, failed, expected, &mut routed);
            self.forget_losses(plugin);
        }
        expected.extend(routed);
        ExpectedAnswer::Deregistered(removed)
    }

    /// An identity check proved this registration. Without effect unless that is still waited for with the same contents.
    pub(super) fn prove(
        &mut self,
        proven: &Registration,
        number: RegistrationNumber,
        scene: &Scene<'_>,
        expected: &mut Vec<ExpectedNews>,
    ) {
        let Some(board) = self.boards.get_mut(&proven.plugin) else { return };
        let is_it =
            |held: &&mut Held| held.number == number && !held.is_confirmed && *held.registration == *proven;
        let Some(held) = board.held.iter_mut().find(is_it) else { return };
        expected.push(held.confirm());
        let mut routed = Vec::new();
        self.elect(&proven.plugin, scene, None, expected, &mut routed);
        expected.extend(routed);
    }

    /// A report about a registration, and its expected publications.
    pub(super) fn report(
        &mut self,
        report: &ReportFitness,
        scene: &Scene<'_>,
        expected: &mut Vec<ExpectedNews>,
    ) {
        let Some(held) = self.watched(&report.plugin, &report.allocation, report.generation) else { return };
        if !held.reported(&report.fitness, scene.now) {
            return;
        }
        let mut routed = Vec::new();
        self.elect(&report.plugin, scene, None, expected, &mut routed);
        expected.extend(routed);
    }

    /// Another connection serves a registration.
    pub(super) fn renew(&mut self, renew: &Renew, scene: &Scene<'_>, expected: &mut Vec<ExpectedNews>) {
        let held = self.watched(&renew.plugin, &renew.allocation, renew.generation);
        let Some(held) = held.filter(|held| held.is_confirmed) else { return };
        expected.push(held.renew());
        let mut routed = Vec::new();
        self.elect(&renew.plugin, scene, None, expected, &mut routed);
        expected.extend(routed);
    }

    /// A calm time has ended.
    pub(super) fn calm_ended(
        &mut self,
        plugin: &PluginKey,
        scene: &Scene<'_>,
        expected: &mut Vec<ExpectedNews>,
    ) {
        let mut routed = Vec::new();
        self.elect(plugin, scene, None, expected, &mut routed);
        expected.extend(routed);
    }

    fn watched(
        &mut self,
        plugin: &PluginKey,
        allocation: &AllocationId,
        generation: Generation,
    ) -> Option<&mut Held> {
        let held = self.boards.get_mut(plugin)?.held.iter_mut();
        let mut of = held.filter(|held| held.registration.allocation == *allocation);
        of.next().filter(|held| held.generation == generation)
    }

    /// Registrations that are not confirmed leave.
    pub(super) fn end_grace(&mut self, expected: &mut Vec<ExpectedNews>) {
        let mut left = Vec::new();
        for board in self.boards.values_mut() {
            board.held.retain(|held| {
                if !held.is_confirmed {
                    left.push(held.number);
                }
                held.is_confirmed
            });
            if board.held.is_empty() {
                board.losses.clear();
            }
        }
        self.count -= left.len();
        left.sort_unstable();
        expected.extend(
            left.into_iter().map(|number| ExpectedNews::Deregistered(number, Departure::NotConfirmed)),
        );
    }

    /// A plugin without registrations is forgotten.
    fn forget_losses(&mut self, plugin: &PluginKey) {
        let left = self.boards.get_mut(plugin).filter(|board| board.held.is_empty());
        left.into_iter().for_each(|board| board.losses.clear());
    }

    /// The best confirmed registration is active, and its change is published after everything else.
    fn elect(
        &mut self,
        plugin: &PluginKey,
        scene: &Scene<'_>,
        failed: Option<&Held>,
        expected: &mut Vec<ExpectedNews>,
        routed: &mut Vec<ExpectedNews>,
    ) {
        let Some(board) = self.boards.get_mut(plugin) else { return };
        let best = board.best(scene).map(|held| (held.number, held.generation, held.was_active));
        let active = board.active.as_ref().map(|active| (active.number, active.generation));
        if best.map(|(number, generation, _)| (number, generation)) == active {
            return;
        }
        if best.map(|(number, _, _)| number) != active.map(|(number, _)| number) {
            board.note_loss(failed, scene);
        }
        let to = best.and_then(|(number, _, was_active)| {
            let held = board.held.iter_mut().find(|held| held.number == number)?;
            if was_active {
                expected.push(held.renew());
            }
            Some(Arc::clone(&held.registration))
        });
        let from = active.map(|(_, generation)| generation);
        routed.push(ExpectedNews::ActiveChanged { plugin: plugin.clone(), from, to });
    }

    pub(super) fn find(&self, plugin: &PluginKey, allocation: &AllocationId) -> Option<&Held> {
        let board = self.boards.get(plugin)?;
        board.held.iter().find(|held| held.registration.allocation == *allocation)
    }

    pub(super) fn board_mut(&mut self, plugin: &PluginKey) -> &mut Board {
        self.boards.entry(plugin.clone()).or_default()
    }
}

fn contents(message: &Register, plugin: &PluginKey) -> Arc<Registration> {
    let Register { allocation, socket, provider, version, options, policy, .. } = message.clone();
    Arc::new(Registration { plugin: plugin.clone(), allocation, socket, provider, version, options, policy })
}
