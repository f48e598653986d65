//! The laws of the supervisor of the instances.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::instance::InstanceConfig;
use callboard_actors::instances::{
    Dispensed, InstanceReport, InstanceReported, Instances, InstancesAnswer, InstancesAsk, InstancesCall,
    InstancesNews, InstancesOptions, InstancesOutcome, InstancesTimer, RegistryItem,
};
use callboard_actors::registry::{Active, RegistryNews, ReportFitness};
use callboard_actors::shell::{Effect, FeedItem, Input};
use callboard_actors::vocabulary::{Attempt, Fitness, Generation, Health, Moment, PluginKey};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::gates::Gates;
use super::looks::Looks;
use super::model::Place;
use super::places::ByPlace;
use super::touched::Touched;
use super::warm::Contents;

/// The known state of the instance of one registration.
#[derive(Debug, Clone, Hash)]
pub(super) struct Life {
    pub(super) life: Attempt,
    pub(super) generation: Generation,
    pub(super) is_retiring: bool,
}

/// Observes every step of the supervisor of the instances.
#[derive(Debug, Clone, Hash)]
pub struct InstancesLaws {
    pub(super) options: InstancesOptions,
    /// The confirmed registrations, as reported to the supervisor.
    pub(super) wanted: BTreeMap<Place, Generation>,
    /// The contents of each of them, and the first generation that has these.
    pub(super) contents: BTreeMap<Place, Contents>,
    /// The active registrations that the registry routes to, as reported to the supervisor.
    pub(super) active: BTreeMap<PluginKey, Active>,
    /// The generation under which a registration was reported fit: it may be given out while it is active.
    pub(super) told_fit: BTreeMap<Place, Generation>,
    /// The generations that may have been given out while they were active, and are no longer active.
    pub(super) spent: BTreeSet<(PluginKey, Generation)>,
    /// The registrations whose fingerprint an instance has read, while they are registered.
    pub(super) read: BTreeSet<Place>,
    /// The instances that were started and whose end was not reported.
    pub(super) lives: ByPlace<Life>,
    /// The generation of the last instance of each registration.
    used: BTreeMap<Place, Generation>,
    newest: Option<Attempt>,
    pub(super) shown: BTreeMap<PluginKey, InstanceReport>,
    pub(super) standby: ByPlace<InstanceReport>,
    /// The name of its own under which each plugin served last (C031).
    pub(super) served_as: BTreeMap<PluginKey, Arc<str>>,
    pub(super) looks: Looks,
    pub(super) gates: Gates,
    pub(super) is_stopping: bool,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl InstancesLaws {
    /// No step yet.
    #[must_use]
    pub const fn new(options: InstancesOptions) -> Self {
        Self {
            options,
            wanted: BTreeMap::new(),
            contents: BTreeMap::new(),
            active: BTreeMap::new(),
            told_fit: BTreeMap::new(),
            spent: BTreeSet::new(),
            read: BTreeSet::new(),
            lives: ByPlace::new(),
            used: BTreeMap::new(),
            newest: None,
            shown: BTreeMap::new(),
            standby: ByPlace::new(),
            served_as: BTreeMap::new(),
            looks: Looks::new(),
            gates: Gates::new(),
            is_stopping: false,
            verdict: Verdict::NONE,
        }
    }

    // === Inputs ===

    fn hear(&mut self, input: &Input<Instances>) {
        match input {
            Input::Returned { call: InstancesCall::Follow { .. }, outcome, .. } if !self.is_stopping => {
                if let Ok(InstancesOutcome::Followed(Ok(items))) = outcome {
                    items.iter().for_each(|item| self.routed(item));
                }
            }
            Input::Returned { call: InstancesCall::AwaitEndings, outcome, .. } => {
                if let Ok(InstancesOutcome::Ended(endings)) = outcome {
                    for ended in endings {
                        let place = (ended.plugin.clone(), ended.allocation.clone());
                        // Otherwise the instance was started before a crash of the owner.
                        let Some(life) = self.lives.get(&place).filter(|life| life.life == ended.life) else {
                            continue;
                        };
                        if !life.is_retiring {
                            self.looks.lost(&place);
                        }
                        self.lives.remove(&place);
                        self.gates.ended(&place);
                    }
                }
            }
            Input::Returned { call: InstancesCall::Start { life, .. }, outcome: Err(_), .. } => {
                self.lives.retain(|other| other.life != *life);
            }
            Input::StopRequested(_) => self.is_stopping = true,
            Input::Resumed | Input::Asked { .. } | Input::Returned { .. } | Input::Elapsed(_) => {}
        }
    }

    fn routed(&mut self, item: &RegistryItem) {
        match item {
            FeedItem::Snapshot { view, .. } => {
                self.wanted.clear();
                view.entries.iter().for_each(|entry| self.registered(entry));
                let active: BTreeMap<_, _> = (view.active.iter())
                    .map(|active| (active.registration.plugin.clone(), active.clone()))
                    .filter(|(plugin, _)| plugin.plugin_type.is_csi())
                    .collect();
                let gone: Vec<_> = self.active.keys().cloned().collect();
                gone.iter().chain(active.keys()).for_each(|plugin| self.routes(plugin, active.get(plugin)));
            }
            FeedItem::Change { news, .. } => match news {
                RegistryNews::ActiveChanged { plugin, to, .. } => {
                    if plugin.plugin_type.is_csi() {
                        self.routes(plugin, to.as_ref());
                    }
                }
                RegistryNews::Registered(entry)
                | RegistryNews::Updated(entry)
                | RegistryNews::Renewed(entry) => self.registered(entry),
                RegistryNews::Deregistered(entry, _) => {
                    let registration = &entry.registration;
                    let place = (registration.plugin.clone(), registration.allocation.clone());
                    self.looks.left(&place);
                    self.read.remove(&place);
                    self.wanted.remove(&place);
                    self.contents.remove(&place);
                }
            },
            FeedItem::Lagged { .. } => {}
        }
    }

    fn routes(&mut self, plugin: &PluginKey, to: Option<&Active>) {
        let before = match to {
            Some(active) => self.active.insert(plugin.clone(), active.clone()),
            None => self.active.remove(plugin),
        };
        // The next active registration has no predecessor then.
        if to.is_none() {
            self.served_as.remove(plugin);
        }
        let Some(before) = before else { return };
        let place = (plugin.clone(), before.registration.allocation.clone());
        let told = self.told_fit.get(&place) == Some(&before.generation);
        let served = told && self.lives.get(&place).is_some_and(|life| life.generation == before.generation);
        if served && Some(before.generation) != to.map(|to| to.generation) {
            self.spent.insert((plugin.clone(), before.generation));
        }
    }

    // === Effects ===

    fn starts(&mut self, life: Attempt, config: &InstanceConfig) {
        let InstanceConfig { plugin, allocation, generation, .. } = config;
        let place = (plugin.clone(), allocation.clone());
        if self.is_stopping {
            self.verdict
                .violation(Law::I6, || format!("an instance of {plugin} is started although all stop"));
        }
        if let Some(old) = self.lives.get(&place).cloned() {
            self.verdict.violation(Law::I1, || {
                format!("an instance of {plugin} of {allocation} is started before {old:?} has ended")
            });
        }
        let wanted = self.wanted.get(&place).copied();
        if wanted != Some(*generation) {
            self.verdict.violation(Law::I1, || {
                format!(
                    "generation {generation} of {plugin} of {allocation} is started, {wanted:?} is registered"
                )
            });
        }
        if self.used.get(&place).is_some_and(|used| generation <= used) {
            self.verdict.violation(Law::I2, || {
                format!("generation {generation} of {plugin} of {allocation} gets a second connection")
            });
        }
        if self.newest.is_some_and(|newest| life <= newest) {
            self.verdict
                .violation(Law::Reg8, || format!("{life:?} of {plugin} is a number that was used before"));
        }
        self.check_remembered(&place, config);
        self.newest = Some(life);
        self.used.insert(place.clone(), *generation);
        self.lives.insert(place, Life { life, generation: *generation, is_retiring: false });
    }

    fn shows(&mut self, report: &InstanceReport, is_standby: bool) {
        let plugin = &report.plugin;
        let place = (plugin.clone(), report.allocation.clone());
        let told = if is_standby { self.standby.get(&place) } else { self.shown.get(plugin) };
        if told == Some(report) {
            self.verdict.violation(Law::Scl5, || format!("the same is told of {plugin} twice"));
        }
        let is_active = self.active.get(plugin).is_some_and(|active| active.generation == report.generation);
        if report.health == Health::Healthy && is_active == is_standby {
            let law = if is_standby { Law::R1b } else { Law::I1 };
            self.verdict.violation(law, || {
                format!("generation {} of {plugin} is told as standby {is_standby}", report.generation)
            });
        }
        let current = self.lives.get(&place);
        let is_current =
            current.is_some_and(|life| life.generation == report.generation && !life.is_retiring);
        // An instance that is no longer active stays as it was until its successor has looked (R1d).
        let is_kept = is_standby && self.wanted.contains_key(&place) && self.looks.is_well(&place);
        match &report.health {
            Health::Healthy if !is_current && !is_kept => {
                let current = current.cloned();
                self.verdict.violation(Law::Reg8, || {
                    format!(
                        "{plugin} is called healthy by generation {}, and {current:?} lives",
                        report.generation
                    )
                });
            }
            Health::Unhealthy { reason } if reason.is_empty() => {
                self.verdict.violation(Law::I5, || format!("{plugin} is unhealthy without a reason"));
            }
            Health::Gone => self.check_gone(&place, report.generation),
            Health::Healthy | Health::Unhealthy { .. } | Health::Starting => {}
        }
        if is_standby {
            self.standby.insert(place, report.clone());
        } else {
            self.standby.remove(&place);
            if let (Health::Healthy, Some(found)) = (&report.health, &report.fingerprint) {
                self.served_as.insert(plugin.clone(), Arc::clone(&found.identity.provider));
            }
            self.shown.insert(plugin.clone(), report.clone());
        }
    }

    /// The registry receives what the instance found, or that its actor ended.
    fn tells(&mut self, report: &ReportFitness) {
        let place = (report.plugin.clone(), report.allocation.clone());
        let found = self.looks.found(&place);
        if report.fitness == Fitness::Fit {
            self.told_fit.insert(place.clone(), report.generation);
        }
        if report.fitness == Fitness::Fit && found != Some(&Fitness::Fit) {
            let found = found.cloned();
            self.verdict.violation(Law::R1b, || {
                format!("{} of {} is reported fit, and found {found:?}", report.plugin, report.allocation)
            });
        }
    }

    fn dispenses(&mut self, dispensed: &Dispensed) {
        let plugin = &dispensed.plugin;
        let wanted = self.active.get(plugin).map(|active| active.generation);
        let is_shown = self.shown.get(plugin).is_some_and(|report| {
            report.health == Health::Healthy && report.generation == dispensed.generation
        });
        if wanted != Some(dispensed.generation) || !is_shown {
            self.verdict.violation(Law::I2, || {
                format!("{plugin} is handed out in generation {}; {wanted:?} is active", dispensed.generation)
            });
        }
    }
}

/// Whether a report is of a life that no longer serves.
fn is_late(laws: &InstancesLaws, reported: &InstanceReported) -> bool {
    let InstanceReport { plugin, allocation, .. } = &reported.report;
    let current = laws.lives.get(&(plugin.clone(), allocation.clone()));
    current.is_none_or(|life| life.life != reported.life || life.is_retiring)
}

impl LawChecker<Instances> for InstancesLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Instances) {
        let (verdict, used) = (std::mem::take(&mut self.verdict), std::mem::take(&mut self.used));
        *self = Self { verdict, used, ..Self::new(self.options.clone()) };
    }

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Instances>,
        effects: &[Effect<Instances>],
        _machine: &Instances,
    ) {
        let late = match input {
            Input::Asked { ask: InstancesAsk::InstanceReported(reported), .. } => is_late(self, reported),
            Input::Resumed
            | Input::Asked { .. }
            | Input::Returned { .. }
            | Input::Elapsed(_)
            | Input::StopRequested(_) => false,
        };
        if let Input::Asked { ask: InstancesAsk::InstanceReported(reported), .. } = input
            && !late
        {
            self.looks.reported(&reported.report);
            self.note_read(&reported.report);
            self.gates.reported(&reported.report);
        }
        if let Input::Asked { id, ask: InstancesAsk::AwaitHealthy(awaited), .. } = input {
            self.gates.asked(*id, awaited);
        }
        self.hear(input);
        let mut bounds = Vec::new();
        for effect in effects {
            if let Effect::StartTimer(InstancesTimer::Retire((plugin, allocation)), _) = effect {
                bounds.push((plugin.clone(), allocation.clone()));
            }
        }
        for effect in effects {
            match effect {
                Effect::Call { call: InstancesCall::Start { life, config }, .. } => {
                    self.starts(*life, config)
                }
                Effect::Call { call: InstancesCall::Retire { life, cause }, .. } => {
                    self.retires(*life, *cause, &bounds);
                }
                Effect::Call { call: InstancesCall::Report(report), .. } => self.tells(report),
                Effect::Publish(
                    news @ (InstancesNews::Reported(report) | InstancesNews::Standby(report)),
                ) => {
                    if late {
                        self.verdict.violation(Law::Reg8, || {
                            format!("a late report of {} is passed on", report.plugin)
                        });
                    }
                    self.shows(report, matches!(news, InstancesNews::Standby(_)));
                }
                Effect::Publish(InstancesNews::Left(report)) => {
                    self.shown.remove(&report.plugin);
                }
                Effect::Reply(_, InstancesAnswer::Dispense(Ok(dispensed))) => self.dispenses(dispensed),
                Effect::Reply(id, InstancesAnswer::AwaitHealthy(Ok(()))) => {
                    if let Some(wrong) = self.gates.opened(*id, moment.now) {
                        self.verdict.violation(Law::F16, || wrong);
                    }
                }
                Effect::Stop(_) if !self.lives.is_empty() => {
                    let lives = self.lives.clone();
                    self.verdict.violation(Law::S4, || format!("it ends and leaves {lives:?}"));
                }
                Effect::Publish(InstancesNews::Expected(_) | InstancesNews::Settled)
                | Effect::Call { .. }
                | Effect::Reply(..)
                | Effect::StartTimer(..)
                | Effect::CancelTimer(_)
                | Effect::Stop(_) => {}
                Effect::Persist(_, never) => match *never {},
            }
        }
        let touched = Touched::by(input, effects);
        self.check_retired(&touched);
        self.check_warm(&touched);
    }

    fn panicked(&mut self, input: &Input<Instances>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
