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
use crate::instance::Half;
use crate::kernel::{AskId, CallKey, CallLost, Effects, Input, Machine, Never, Vitals};
use crate::lease::LeasedCalls;
use crate::registry::{Active, RegistryNews};
use crate::vocabulary::{Attempt, Generation, Moment, PluginKey, Timestamp};
use crate::{AskError, FeedItem};

/// The deadline of one call for the registry's news or for endings; then it is repeated.
const FOLLOW_DEADLINE: Duration = Duration::from_secs(3_600);
/// The pause before a registry that was not running is followed again.
const REFOLLOW_PAUSE: Duration = Duration::from_millis(100);
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
            options: *options,
            wanted: BTreeMap::new(),
            entries: BTreeMap::new(),
            settling: Settling::Unknown,
            is_stopping: false,
            life: Attempt::new(moment.random >> 16),
            following: Attempt::default(),
            dispensing: Waiters::default(),
            checking: Waiters::default(),
            retirement: Waiters::default(),
            describing: Vec::new(),
        }
    }

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => {
                self.call(InstancesCall::Sweep, effects);
                self.follow(true, effects);
                effects.call(CallKey::default(), FOLLOW_DEADLINE, InstancesCall::AwaitEndings);
            }
            Input::Asked { id, asked_at, ask } => self.asked(moment, *id, *asked_at, ask, effects),
            Input::Returned { key, call, outcome } => self.returned(moment, *key, call, outcome, effects),
            Input::Elapsed(timer) => self.elapsed(moment, timer, effects),
            Input::StopRequested(_) => self.stop(moment, effects),
        }
    }

    fn view(&self) -> InstancesView {
        let expected = match &self.settling {
            Settling::Awaiting(awaited) => awaited.keys().cloned().collect(),
            Settling::Unknown | Settling::Settled => Vec::new(),
        };
        InstancesView {
            reports: self.entries.values().map(|entry| entry.report.clone()).collect(),
            expected,
            settled: matches!(self.settling, Settling::Settled),
        }
    }
}

impl Instances {
    fn asked(
        &mut self,
        moment: Moment,
        id: AskId,
        asked_at: Timestamp,
        ask: &InstancesAsk,
        effects: &mut Effects<Self>,
    ) {
        match ask {
            InstancesAsk::Dispense(dispense) => self.dispense(moment, id, asked_at, dispense, effects),
            InstancesAsk::CheckNow(check) => self.check_now(moment, id, &check.plugin, effects),
            InstancesAsk::HealthOf(of) => {
                let reports = self.entries.values().map(|entry| &entry.report);
                let reports = reports.filter(|report| report.allocation == of.allocation);
                effects.reply(id, InstancesAnswer::HealthOf(reports.cloned().collect()));
            }
            InstancesAsk::AwaitRetired(of) => {
                self.retirement_asked(moment, id, asked_at, &of.allocation, effects);
            }
            InstancesAsk::DescribeInstances(_) => self.describe(id, effects),
            InstancesAsk::InstanceReported(InstanceReported { life, report }) => {
                self.reported(*life, report, effects);
                effects.reply(id, InstancesAnswer::InstanceReported(()));
            }
        }
    }

    fn elapsed(&mut self, moment: Moment, timer: &InstancesTimer, effects: &mut Effects<Self>) {
        match timer {
            InstancesTimer::Refollow => self.follow(true, effects),
            InstancesTimer::Retire(plugin) => self.retired_too_slowly(moment, plugin, effects),
            InstancesTimer::Restart(plugin) => self.restart_due(plugin, effects),
            InstancesTimer::Dispense(plugin, id) => self.dispense_ended(moment, plugin, *id, effects),
            InstancesTimer::AwaitRetired(allocation, id) => {
                self.retirement_overdue(moment, allocation, *id, effects);
            }
        }
    }

    // === Calls ===

    pub(super) fn call(&self, call: InstancesCall, effects: &mut Effects<Self>) {
        effects.call(CallKey::default(), HAND_OVER_DEADLINE, call);
    }

    fn follow(&mut self, afresh: bool, effects: &mut Effects<Self>) {
        if self.is_stopping {
            return;
        }
        self.following = self.following.next();
        effects.call(self.following_key(), FOLLOW_DEADLINE, InstancesCall::Follow { afresh });
    }

    fn following_key(&self) -> CallKey {
        CallKey { generation: Generation::default(), attempt: self.following }
    }

    fn returned(
        &mut self,
        moment: Moment,
        key: CallKey,
        call: &InstancesCall,
        outcome: &Result<InstancesOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        match (call, outcome) {
            (InstancesCall::Follow { .. }, outcome) if key == self.following_key() => {
                self.followed(moment, outcome, effects);
            }
            // A newer attempt to follow is pending.
            (InstancesCall::Follow { .. }, _) => {}
            (InstancesCall::AwaitEndings, outcome) => {
                effects.call(CallKey::default(), FOLLOW_DEADLINE, InstancesCall::AwaitEndings);
                if let Ok(InstancesOutcome::Ended(endings)) = outcome {
                    endings.iter().for_each(|ended| self.ended(moment, ended, effects));
                }
            }
            (InstancesCall::Look { plugin, life }, _) => self.looked(plugin, *life, effects),
            (InstancesCall::Describe, outcome) => self.described(outcome, effects),
            (InstancesCall::Start { life, config }, Err(lost)) => {
                self.not_started(moment, &config.plugin, *life, lost, effects);
            }
            // Their effect is reported as an ending. A timer kills an instance that does not retire, repeatedly.
            (InstancesCall::Start { .. }, Ok(_))
            | (InstancesCall::Sweep | InstancesCall::Retire { .. } | InstancesCall::Kill { .. }, _) => {}
        }
    }

    // === The registry's feed ===

    fn followed(
        &mut self,
        moment: Moment,
        outcome: &Result<InstancesOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        match outcome {
            Ok(InstancesOutcome::Followed(Ok(items))) => {
                self.heard(moment, items, effects);
                self.follow(false, effects);
            }
            // There was no news before the deadline.
            Err(CallLost::DeadlineExceeded(_)) => self.follow(false, effects),
            Ok(InstancesOutcome::Followed(Err(
                AskError::NotRunning { .. }
                | AskError::Busy { .. }
                | AskError::Crashed { .. }
                | AskError::NotDurable { .. },
            )))
            | Ok(
                InstancesOutcome::Ended(_)
                | InstancesOutcome::Done
                | InstancesOutcome::Looked(_)
                | InstancesOutcome::Described(_),
            )
            | Err(CallLost::Crashed(_) | CallLost::Busy(_)) => {
                effects.start_timer(InstancesTimer::Refollow, moment.now + REFOLLOW_PAUSE);
            }
        }
    }

    /// Applies all items of the registry, and acts once on the final state.
    fn heard(&mut self, moment: Moment, items: &[RegistryItem], effects: &mut Effects<Self>) {
        if self.is_stopping {
            return;
        }
        let mut touched = BTreeSet::new();
        for item in items {
            match item {
                FeedItem::Snapshot { view, .. } => {
                    touched.extend(std::mem::take(&mut self.wanted).into_keys());
                    touched.extend(self.entries.keys().cloned());
                    for active in &view.active {
                        touched.extend(self.route(&active.registration.plugin, Some(active)));
                    }
                    touched.extend(self.take_entries(&view.entries, effects));
                }
                FeedItem::Change { news: RegistryNews::ActiveChanged { plugin, to, .. }, .. } => {
                    touched.extend(self.route(plugin, to.as_ref()));
                }
                FeedItem::Change { news: RegistryNews::Registered(entry), .. } => self.entry_came(entry),
                FeedItem::Change { news: RegistryNews::Deregistered(entry, _), .. } => {
                    touched.extend(self.entry_left(entry));
                }
                // A changed active registration comes as another generation; after a lag comes a snapshot.
                FeedItem::Change { news: RegistryNews::Updated(_), .. } | FeedItem::Lagged { .. } => {}
            }
        }
        for plugin in touched {
            self.reconcile(moment, &plugin, effects);
        }
    }

    /// Records the active registration of a plugin. Plugins without instances are ignored.
    fn route(&mut self, plugin: &PluginKey, to: Option<&Active>) -> Option<PluginKey> {
        Half::of(plugin.plugin_type)?;
        match to {
            Some(active) => self.wanted.insert(plugin.clone(), active.clone()),
            None => self.wanted.remove(plugin),
        };
        Some(plugin.clone())
    }

    // === The tree ===

    fn describe(&mut self, id: AskId, effects: &mut Effects<Self>) {
        if self.describing.len() >= DESCRIBING_MAX {
            let statuses = self.statuses(&BTreeMap::new());
            effects.reply(id, InstancesAnswer::DescribeInstances(statuses));
            return;
        }
        if self.describing.is_empty() {
            self.call(InstancesCall::Describe, effects);
        }
        self.describing.push(id);
    }

    fn described(&mut self, outcome: &Result<InstancesOutcome, CallLost>, effects: &mut Effects<Self>) {
        let nothing = BTreeMap::new();
        let vitals = match outcome {
            Ok(InstancesOutcome::Described(vitals)) => vitals,
            Ok(
                InstancesOutcome::Followed(_)
                | InstancesOutcome::Ended(_)
                | InstancesOutcome::Done
                | InstancesOutcome::Looked(_),
            )
            | Err(_) => &nothing,
        };
        let statuses = self.statuses(vitals);
        for id in self.describing.drain(..) {
            effects.reply(id, InstancesAnswer::DescribeInstances(statuses.clone()));
        }
    }

    fn statuses(&self, described: &BTreeMap<Attempt, (Vitals, LeasedCalls)>) -> Vec<InstanceStatus> {
        let status = |entry: &Entry| {
            let described = entry.child.life().and_then(|life| described.get(&life).copied());
            InstanceStatus {
                report: entry.report.clone(),
                state: entry.child.state(),
                restarts: entry.restarts.total(),
                vitals: described.map(|(vitals, _)| vitals),
                calls: described.map(|(_, calls)| calls).unwrap_or_default(),
            }
        };
        self.entries.values().map(status).collect()
    }
}
