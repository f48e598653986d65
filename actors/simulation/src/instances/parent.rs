//! The laws of the supervisor of the instances.

use std::collections::BTreeMap;

use callboard_actors::instance::InstanceConfig;
use callboard_actors::instances::{
    Dispensed, InstanceReport, InstanceReported, Instances, InstancesAnswer, InstancesAsk, InstancesCall,
    InstancesNews, InstancesOptions, InstancesOutcome, InstancesTimer, RegistryItem,
};
use callboard_actors::registry::{Active, RegistryNews};
use callboard_actors::shell::{Effect, FeedItem, Input};
use callboard_actors::vocabulary::{Attempt, Generation, Health, Moment, PluginKey};

use super::super::law::Law;
use super::super::witness::{Verdict, Witness};

/// What is known of one plugin's instance.
#[derive(Debug, Clone, Hash)]
struct Life {
    life: Attempt,
    generation: Generation,
    is_retiring: bool,
}

/// Sees everything that the supervisor of the instances does.
#[derive(Debug, Clone, Hash)]
pub struct InstancesLaws {
    options: InstancesOptions,
    /// Whom the registry routes to, as far as the supervisor was told.
    wanted: BTreeMap<PluginKey, Active>,
    /// The instances that were started and have not been heard to end.
    lives: BTreeMap<PluginKey, Life>,
    newest: Option<Attempt>,
    shown: BTreeMap<PluginKey, InstanceReport>,
    is_stopping: bool,
    /// What is found of it.
    pub(in super::super) verdict: Verdict,
}

impl InstancesLaws {
    /// Nothing has happened yet.
    #[must_use]
    pub const fn new(options: InstancesOptions) -> Self {
        Self {
            options,
            wanted: BTreeMap::new(),
            lives: BTreeMap::new(),
            newest: None,
            shown: BTreeMap::new(),
            is_stopping: false,
            verdict: Verdict::NONE,
        }
    }

    // === What comes in ===

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
                        self.lives.retain(|_, life| life.life != ended.life);
                    }
                }
            }
            Input::Returned { call: InstancesCall::Start { life, .. }, outcome: Err(_), .. } => {
                self.lives.retain(|_, other| other.life != *life);
            }
            Input::StopRequested(_) => self.is_stopping = true,
            Input::Resumed | Input::Asked { .. } | Input::Returned { .. } | Input::Elapsed(_) => {}
        }
    }

    fn routed(&mut self, item: &RegistryItem) {
        match item {
            FeedItem::Snapshot { view, .. } => {
                let active =
                    view.active.iter().map(|active| (active.registration.plugin.clone(), active.clone()));
                self.wanted = active
                    .filter(|(plugin, _)| callboard_actors::instance::Half::of(plugin.plugin_type).is_some())
                    .collect();
            }
            FeedItem::Change { news: RegistryNews::ActiveChanged { plugin, to, .. }, .. } => match to {
                Some(active) => {
                    self.wanted.insert(plugin.clone(), active.clone());
                }
                None => {
                    self.wanted.remove(plugin);
                }
            },
            FeedItem::Change { .. } | FeedItem::Lagged { .. } => {}
        }
    }

    // === What goes out ===

    fn starts(&mut self, life: Attempt, config: &InstanceConfig) {
        let plugin = &config.plugin;
        if self.is_stopping {
            self.verdict
                .violation(Law::I6, || format!("an instance of {plugin} is started although all stop"));
        }
        if let Some(old) = self.lives.get(plugin).cloned() {
            self.verdict.violation(Law::I1, || {
                format!("an instance of {plugin} is started before {old:?} has ended")
            });
        }
        let wanted = self.wanted.get(plugin).map(|active| active.generation);
        if wanted != Some(config.generation) {
            self.verdict.violation(Law::I1, || {
                format!("generation {} of {plugin} is started, {wanted:?} is active", config.generation)
            });
        }
        if self.newest.is_some_and(|newest| life <= newest) {
            self.verdict
                .violation(Law::Reg8, || format!("{life:?} of {plugin} is a number that was used before"));
        }
        self.newest = Some(life);
        self.lives.insert(plugin.clone(), Life { life, generation: config.generation, is_retiring: false });
    }

    fn retires(&mut self, life: Attempt, bounds: &[&PluginKey]) {
        let found = self.lives.iter_mut().find(|(_, other)| other.life == life);
        let Some((plugin, found)) = found else { return };
        found.is_retiring = true;
        let plugin = plugin.clone();
        if !bounds.contains(&&plugin) {
            self.verdict.violation(Law::I1, || format!("the instance of {plugin} retires without a bound"));
        }
    }

    fn shows(&mut self, report: &InstanceReport) {
        let plugin = &report.plugin;
        if self.shown.get(plugin) == Some(report) {
            self.verdict.violation(Law::Scl5, || format!("the same is told of {plugin} twice"));
        }
        let current = self.lives.get(plugin);
        let is_current =
            current.is_some_and(|life| life.generation == report.generation && !life.is_retiring);
        match &report.health {
            Health::Healthy if !is_current => {
                let current = current.cloned();
                self.verdict.violation(Law::Reg8, || {
                    format!(
                        "{plugin} is called healthy by generation {}, and {current:?} lives",
                        report.generation
                    )
                });
            }
            Health::Unhealthy { reason } if reason.is_empty() => {
                self.verdict.violation(Law::I5, || format!("{plugin} is unhealthy and nobody is told why"));
            }
            Health::Healthy | Health::Unhealthy { .. } | Health::Starting | Health::Gone => {}
        }
        self.shown.insert(plugin.clone(), report.clone());
    }

    fn dispenses(&mut self, dispensed: &Dispensed) {
        let plugin = &dispensed.plugin;
        let wanted = self.wanted.get(plugin).map(|active| active.generation);
        let is_shown = self.shown.get(plugin).is_some_and(|report| {
            report.health == Health::Healthy && report.generation == dispensed.generation
        });
        if wanted != Some(dispensed.generation) || !is_shown {
            self.verdict.violation(Law::I2, || {
                format!("{plugin} is handed out in generation {}; {wanted:?} is active", dispensed.generation)
            });
        }
    }

    /// From the moment in which the registry routes elsewhere, the old instance is shown as gone.
    fn check_retired(&mut self) {
        for (plugin, life) in &self.lives {
            let is_wanted =
                self.wanted.get(plugin).is_some_and(|active| active.generation == life.generation);
            if !is_wanted && !life.is_retiring && !self.is_stopping {
                let what = format!("{life:?} of {plugin} serves although it is not active any more");
                self.verdict.violation(Law::I1, || what);
                return;
            }
        }
    }
}

/// Whether a report is of a life that serves no more.
fn is_late(laws: &InstancesLaws, reported: &InstanceReported) -> bool {
    let current = laws.lives.get(&reported.report.plugin);
    current.is_none_or(|life| life.life != reported.life || life.is_retiring)
}

impl Witness<Instances> for InstancesLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Instances) {
        let verdict = std::mem::take(&mut self.verdict);
        *self = Self { verdict, ..Self::new(self.options) };
    }

    fn stepped(
        &mut self,
        _moment: Moment,
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
        self.hear(input);
        let mut bounds = Vec::new();
        for effect in effects {
            if let Effect::StartTimer(InstancesTimer::Retire(plugin), _) = effect {
                bounds.push(plugin);
            }
        }
        for effect in effects {
            match effect {
                Effect::Call { call: InstancesCall::Start { life, config }, .. } => {
                    self.starts(*life, config)
                }
                Effect::Call { call: InstancesCall::Retire { life }, .. } => self.retires(*life, &bounds),
                Effect::Publish(InstancesNews::Reported(report)) => {
                    if late {
                        self.verdict.violation(Law::Reg8, || {
                            format!("a late report of {} is passed on", report.plugin)
                        });
                    }
                    self.shows(report);
                }
                Effect::Publish(InstancesNews::Left(report)) => {
                    self.shown.remove(&report.plugin);
                }
                Effect::Reply(_, InstancesAnswer::Dispense(Ok(dispensed))) => self.dispenses(dispensed),
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
                Effect::Persist(never) => match *never {},
            }
        }
        self.check_retired();
    }

    fn panicked(&mut self, input: &Input<Instances>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
