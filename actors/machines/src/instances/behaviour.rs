//! The decisions of the supervisor of instances: dispatches its inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{
    InstanceReported, InstanceStatus, InstancesAnswer, InstancesAsk, InstancesNews, InstancesView,
};
use super::state::{
    Entry, Instances, InstancesCall, InstancesOptions, InstancesOutcome, InstancesTimer, RegistryItem,
    Settling,
};
use super::waiters::Waiters;
use crate::FeedItem;
use crate::kernel::{
    AskId, CallKey, CallLost, Input, Machine, Never, StepContext, Vitals, await_endings_again, await_news,
    follow_on,
};
use crate::lease::LeasedCalls;
use crate::registry::{Active, Entry as Registered, RegistryNews, RegistryView, Standing};
use crate::supervisor::ChildState;
use crate::vocabulary::{Attempt, Generation, Moment, PluginKey, Registration, Timestamp};

/// The deadline of calls that only send something to an instance.
pub(super) const HAND_OVER_DEADLINE: Duration = Duration::from_secs(10);
/// The limit of concurrent callers for a description; one more gets it without the vitals of the actors.
const DESCRIBING_MAX: usize = 64;

impl Machine for Instances {
    const KIND: &'static str = "instances";
    type Config = InstancesOptions;
    type Image = ();
    type Ask = InstancesAsk;
    type Answer = InstancesAnswer;
    type Call = InstancesCall;
    type Outcome = InstancesOutcome;
    type Timer = InstancesTimer;
    type Change = Never;
    type News = InstancesNews;
    type View = InstancesView;

    fn restore(options: &InstancesOptions, (): (), moment: Moment) -> Self {
        Self {
            options: options.clone(),
            wanted: BTreeMap::new(),
            allocations: BTreeMap::new(),
            active: BTreeMap::new(),
            entries: BTreeMap::new(),
            shown: BTreeMap::new(),
            shown_standby: BTreeMap::new(),
            known: BTreeMap::new(),
            settling: Settling::Unknown,
            had_instances: false,
            is_stopping: false,
            life: Attempt::new(moment.random >> 16),
            dispensing: Waiters::default(),
            checking: Waiters::default(),
            looking: BTreeMap::new(),
            retirement: Waiters::default(),
            gates: BTreeMap::new(),
            describing: Vec::new(),
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {
                self.call(InstancesCall::Sweep, cx);
                self.follow(true, cx);
                await_news(InstancesCall::AwaitEndings, cx);
            }
            Input::Asked { id, asked_at, ask } => self.asked(*id, *asked_at, ask, cx),
            Input::Returned { call, outcome, .. } => self.returned(call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(_) => self.stop(cx),
        }
    }

    fn view(&self) -> InstancesView {
        let expected = match &self.settling {
            Settling::Awaiting(awaited) => awaited.keys().cloned().collect(),
            Settling::Unknown | Settling::Settled => Vec::new(),
        };
        InstancesView {
            reports: self.shown.values().cloned().collect(),
            standby: self.shown_standby.values().cloned().collect(),
            expected,
            settled: matches!(self.settling, Settling::Settled),
        }
    }
}

impl Instances {
    fn asked(&mut self, id: AskId, asked_at: Timestamp, ask: &InstancesAsk, cx: &mut StepContext<Self>) {
        match ask {
            InstancesAsk::Dispense(dispense) => self.dispense(id, asked_at, dispense, cx),
            InstancesAsk::CheckNow(check) => self.check_now(id, &check.plugin, cx),
            InstancesAsk::HealthOf(of) => {
                let entries = self.entries.values();
                let of_it = entries.filter(|entry| entry.report.allocation == of.allocation);
                cx.reply(id, InstancesAnswer::HealthOf(of_it.map(Entry::shown_report).collect()));
            }
            InstancesAsk::AwaitRetired(of) => {
                self.retirement_asked(id, asked_at, &of.allocation, cx);
            }
            InstancesAsk::AwaitHealthy(awaited) => self.health_awaited(id, asked_at, awaited, cx),
            InstancesAsk::DescribeInstances(_) => self.describe(id, cx),
            InstancesAsk::InstanceReported(InstanceReported { life, report }) => {
                self.reported(*life, report, cx);
                cx.reply(id, InstancesAnswer::InstanceReported(()));
            }
        }
    }

    fn elapsed(&mut self, timer: &InstancesTimer, cx: &mut StepContext<Self>) {
        match timer {
            InstancesTimer::AwaitEndings => {
                await_news(InstancesCall::AwaitEndings, cx);
            }
            InstancesTimer::Refollow => self.follow(true, cx),
            InstancesTimer::Retire(place) => self.retired_too_slowly(place, cx),
            InstancesTimer::Restart(place) => self.restart_due(place, cx),
            InstancesTimer::Resend(place) => self.resend(place, cx),
            InstancesTimer::Dispense(plugin, id) => self.dispense_ended(plugin, *id, cx),
            InstancesTimer::AwaitRetired(allocation, id) => {
                self.retirement_overdue(allocation, *id, cx);
            }
            InstancesTimer::Gate(id) => self.check_gate(*id, cx),
        }
    }

    // === Calls ===

    pub(super) fn call(&self, call: InstancesCall, cx: &mut StepContext<Self>) {
        cx.call(CallKey::default(), HAND_OVER_DEADLINE, call);
    }

    fn follow(&mut self, afresh: bool, cx: &mut StepContext<Self>) {
        if self.is_stopping {
            return;
        }
        await_news(InstancesCall::Follow { afresh }, cx);
    }

    fn returned(
        &mut self,
        call: &InstancesCall,
        outcome: &Result<InstancesOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        match (call, outcome) {
            (InstancesCall::Follow { .. }, outcome) => self.followed(outcome, cx),
            (InstancesCall::AwaitEndings, outcome) => {
                let again = (InstancesCall::AwaitEndings, InstancesTimer::AwaitEndings);
                await_endings_again(outcome, again, cx);
                if let Ok(InstancesOutcome::Ended(endings)) = outcome {
                    endings.iter().for_each(|ended| self.ended(ended, cx));
                }
            }
            (InstancesCall::Look { plugin, life }, outcome) => self.looked(plugin, *life, outcome, cx),
            (InstancesCall::Describe, outcome) => self.described(outcome, cx),
            (InstancesCall::Start { life, config }, Err(lost)) => {
                let place = (config.plugin.clone(), config.allocation.clone());
                self.not_started(place, *life, lost, cx);
            }
            (InstancesCall::Report(_) | InstancesCall::Renew(_), Ok(InstancesOutcome::Sent(Ok(())))) => {}
            (InstancesCall::Report(report), _) => {
                self.not_told((report.plugin.clone(), report.allocation.clone()), cx);
            }
            (InstancesCall::Renew(renew), _) => {
                self.not_told((renew.plugin.clone(), renew.allocation.clone()), cx);
            }
            (InstancesCall::Sweep, Ok(InstancesOutcome::Swept(had_instances))) => {
                self.had_instances = *had_instances;
            }
            // Their effect is reported as an ending. A timer kills an instance that does not retire, repeatedly.
            (InstancesCall::Start { .. }, Ok(_))
            | (InstancesCall::Sweep | InstancesCall::Retire { .. } | InstancesCall::Kill { .. }, _) => {}
        }
    }

    // === The registry's feed ===

    fn followed(&mut self, outcome: &Result<InstancesOutcome, CallLost>, cx: &mut StepContext<Self>) {
        if self.is_stopping {
            return;
        }
        let again = (InstancesCall::Follow { afresh: false }, InstancesTimer::Refollow);
        follow_on(outcome, again, cx, |outcome, cx| match outcome {
            InstancesOutcome::Followed(Ok(items)) => {
                self.heard(items, cx);
                true
            }
            _ => false,
        });
    }

    /// Applies all items of the registry, and acts once on the final state.
    fn heard(&mut self, items: &[RegistryItem], cx: &mut StepContext<Self>) {
        let mut touched = BTreeSet::new();
        for item in items {
            match item {
                FeedItem::Snapshot { view, .. } => {
                    touched.extend(self.active.keys().cloned());
                    touched.extend(self.entries.keys().map(|(plugin, _)| plugin.clone()));
                    self.begin_anew(view);
                    touched.extend(self.active.keys().cloned());
                    touched.extend(self.wanted.keys().map(|(plugin, _)| plugin.clone()));
                    touched.extend(self.take_entries(&view.entries, cx));
                }
                FeedItem::Change { news: RegistryNews::ActiveChanged { plugin, to, .. }, .. } => {
                    touched.extend(self.route(plugin, to.as_ref()));
                }
                FeedItem::Change { news: RegistryNews::Registered(entry), .. } => {
                    self.entry_came(entry);
                    touched.extend(self.want(entry));
                }
                FeedItem::Change {
                    news: RegistryNews::Updated(entry) | RegistryNews::Renewed(entry),
                    ..
                } => {
                    touched.extend(self.want(entry));
                }
                FeedItem::Change { news: RegistryNews::Deregistered(entry, _), .. } => {
                    let registration = &entry.registration;
                    self.wanted.remove(&(registration.plugin.clone(), registration.allocation.clone()));
                    touched.extend(Some(registration.plugin.clone()).filter(|p| p.plugin_type.is_csi()));
                    touched.extend(self.entry_left(entry));
                }
                // After a lag comes a snapshot.
                FeedItem::Lagged { .. } => {}
            }
        }
        for plugin in touched {
            self.reconcile_plugin(&plugin, cx);
        }
    }

    /// Applies the registry's snapshot.
    fn begin_anew(&mut self, view: &RegistryView) {
        self.wanted.clear();
        view.entries.iter().for_each(|entry| {
            self.want(entry);
        });
        let served: BTreeSet<_> = view.active.iter().map(|active| &active.registration.plugin).collect();
        let gone = self.active.keys().filter(|plugin| !served.contains(plugin));
        for plugin in gone.cloned().collect::<Vec<_>>() {
            self.route(&plugin, None);
        }
        for active in &view.active {
            self.route(&active.registration.plugin, Some(active));
        }
        // A former life of this machine, or a former owner, may have connected to the registrations that are confirmed already.
        if std::mem::take(&mut self.had_instances) {
            self.take_over_generations();
        }
        // A registry that was rebuilt has lost the reports that it received.
        for entry in self.entries.values_mut() {
            entry.told = None;
            if let ChildState::Waiting(_) = entry.child.state() {
                entry.child.wait_for(Generation::default());
            }
        }
    }

    /// Records a confirmed registration. Plugins without instances are ignored.
    fn want(&mut self, entry: &Registered) -> Option<PluginKey> {
        let Registration { plugin, allocation, .. } = &*entry.registration;
        if entry.standing == Standing::Provisional || !plugin.plugin_type.is_csi() {
            return None;
        }
        self.wanted.insert((plugin.clone(), allocation.clone()), entry.clone());
        self.allocations.entry(plugin.clone()).or_default().insert(allocation.clone());
        Some(plugin.clone())
    }

    /// Records the active registration of a plugin. The generation that was active before has to be replaced if it may have been
    /// dispensed: a generation that was not dispensed keeps its connection (R1d).
    fn route(&mut self, plugin: &PluginKey, to: Option<&Active>) -> Option<PluginKey> {
        if !plugin.plugin_type.is_csi() {
            return None;
        }
        let before = match to {
            Some(active) => self.active.insert(plugin.clone(), active.clone()),
            None => self.active.remove(plugin),
        };
        if let Some(before) = before.filter(|before| Some(before.generation) != to.map(|to| to.generation)) {
            let place = (plugin.clone(), before.registration.allocation.clone());
            let former = self.entries.get_mut(&place);
            let may_be_given_out =
                |entry: &&mut Entry| entry.report.generation == before.generation && entry.was_told_fit;
            if let Some(entry) = former.filter(may_be_given_out) {
                entry.needs_successor = true;
            }
        }
        if let Some(active) = to {
            let place = (plugin.clone(), active.registration.allocation.clone());
            let given_up =
                self.entries.get_mut(&place).filter(|entry| entry.child.state() == ChildState::GivenUp);
            given_up.into_iter().for_each(|entry| entry.needs_successor = true);
        }
        Some(plugin.clone())
    }

    // === The tree ===

    fn describe(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        if self.describing.len() >= DESCRIBING_MAX {
            let statuses = self.statuses(&BTreeMap::new());
            cx.reply(id, InstancesAnswer::DescribeInstances(statuses));
            return;
        }
        if self.describing.is_empty() {
            self.call(InstancesCall::Describe, cx);
        }
        self.describing.push(id);
    }

    fn described(&mut self, outcome: &Result<InstancesOutcome, CallLost>, cx: &mut StepContext<Self>) {
        let nothing = BTreeMap::new();
        let vitals = match outcome {
            Ok(InstancesOutcome::Described(vitals)) => vitals,
            Ok(
                InstancesOutcome::Followed(_)
                | InstancesOutcome::Ended(_)
                | InstancesOutcome::Swept(_)
                | InstancesOutcome::Done
                | InstancesOutcome::Sent(_)
                | InstancesOutcome::Looked(_),
            )
            | Err(_) => &nothing,
        };
        let statuses = self.statuses(vitals);
        for id in self.describing.drain(..) {
            cx.reply(id, InstancesAnswer::DescribeInstances(statuses.clone()));
        }
    }

    fn statuses(&self, described: &BTreeMap<Attempt, (Vitals, LeasedCalls)>) -> Vec<InstanceStatus> {
        let status = |entry: &Entry| {
            let described = entry.child.life().and_then(|life| described.get(&life).copied());
            InstanceStatus {
                report: entry.shown_report(),
                is_active: self.is_active(entry),
                state: entry.child.state().into(),
                restarts: entry.child.restarts(),
                vitals: described.map(|(vitals, _)| vitals),
                calls: described.map(|(_, calls)| calls).unwrap_or_default(),
            }
        };
        self.entries.values().map(status).collect()
    }
}
