//! The decisions of the registry.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::messages::{
    Deregister, Deregistered, DescribePlugins, Description, Entry, LeaveCause, List, Register, RegisterError,
    Registered, RegistrationOf, RegistryAnswer, RegistryAsk, RegistryNews, RegistryView, Renew,
    ReportFitness, Standby, Standing, WaitError, WaitForPlugin,
};
use super::reasons::{ActiveReason, Departure};
use super::state::{
    CheckIdentity, CheckOutcome, Image, Plugin, Plugins, Registry, RegistryOptions, StoredChange,
};
use crate::kernel::{AskId, Input, Machine, StepContext, StopMode};
use crate::vocabulary::{
    AllocationId, Generation, Moment, PluginKey, Registration, RegistrationNumber, Timestamp,
};

const OPTIONS_MAX: usize = 64;
/// The limit of their total size, in bytes.
const OPTIONS_BYTES_MAX: usize = 4_096;

/// The timers of the registry.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegistryTimer {
    /// The grace period of restored registrations is over (R8).
    GraceOver,
    /// Unconfirmed registrations are checked again.
    CheckAgain,
    /// The timeout of a caller that waits for a plugin (R7).
    Waited(AskId),
    /// The calm time of one of this plugin's registrations ends (R1c).
    Calm(PluginKey),
}

impl Machine for Registry {
    const KIND: &'static str = "registry";
    type Config = RegistryOptions;
    type Image = Image;
    type Ask = RegistryAsk;
    type Answer = RegistryAnswer;
    type Call = CheckIdentity;
    type Outcome = CheckOutcome;
    type Timer = RegistryTimer;
    type Change = StoredChange;
    type News = RegistryNews;
    type View = RegistryView;

    fn restore(options: &RegistryOptions, image: Image, _moment: Moment) -> Self {
        Self::from_image(options, image)
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.look_for_owners(cx),
            Input::Asked { id, asked_at, ask } => self.asked(*id, *asked_at, ask, cx),
            Input::Returned { key, call, outcome } => self.checked(*key, call, outcome, cx),
            Input::Elapsed(RegistryTimer::GraceOver) => self.drop_unconfirmed(cx),
            Input::Elapsed(RegistryTimer::CheckAgain) => self.next_round(cx),
            Input::Elapsed(RegistryTimer::Waited(id)) => self.waited_in_vain(*id, cx),
            Input::Elapsed(RegistryTimer::Calm(plugin)) => self.calm_ended(plugin, cx),
            Input::StopRequested(StopMode::Stop | StopMode::Detach) => cx.stop(),
        }
    }

    fn view(&self) -> RegistryView {
        self.whole_view()
    }

    /// Only a registration is a promise, once it is acknowledged; deregistrations and queries are not.
    fn is_promise(ask: &RegistryAsk) -> bool {
        matches!(ask, RegistryAsk::Register(_))
    }

    fn is_new_promise(&self, ask: &RegistryAsk) -> bool {
        matches!(ask, RegistryAsk::Register(register) if !self.holds(register))
    }

    /// The restored registrations are provisional, on disk or not.
    fn reads_ahead() -> bool {
        true
    }

    fn awaits_disk(_: &CheckIdentity) -> bool {
        false
    }

    /// A plugin that is lost repeatedly causes the write of a generation each time, whether the disk takes it or not.
    fn merge(earlier: &mut StoredChange, later: &StoredChange) -> bool {
        earlier.merge(later);
        true
    }
}

impl Registry {
    fn asked(&mut self, id: AskId, asked_at: Timestamp, ask: &RegistryAsk, cx: &mut StepContext<Self>) {
        let now = cx.now();
        match ask {
            RegistryAsk::Register(register) => {
                let answer = self.register(register, now);
                self.draft.leave(true, Some((id, RegistryAnswer::Register(answer))), cx);
            }
            RegistryAsk::Deregister(deregister) => {
                let answer = self.deregister(deregister, now);
                self.draft.leave(false, Some((id, RegistryAnswer::Deregister(answer))), cx);
            }
            RegistryAsk::ReportFitness(report) => {
                self.fitness_reported(report, now);
                self.draft.leave(false, Some((id, RegistryAnswer::ReportFitness(()))), cx);
            }
            RegistryAsk::Renew(renew) => {
                self.renew(renew, now);
                self.draft.leave(false, Some((id, RegistryAnswer::Renew(()))), cx);
            }
            RegistryAsk::List(List) => cx.reply(id, RegistryAnswer::List(self.entries())),
            RegistryAsk::Describe(question) => {
                let description = Box::new(self.describe(&question.plugin, now));
                cx.reply(id, RegistryAnswer::Describe(description));
            }
            RegistryAsk::DescribePlugins(DescribePlugins) => {
                cx.reply(id, RegistryAnswer::DescribePlugins(self.describe_plugins(now)));
            }
            RegistryAsk::RegistrationOf(question) => {
                cx.reply(id, RegistryAnswer::RegistrationOf(self.registration_of(question)));
            }
            RegistryAsk::WaitForPlugin(question) => self.wait(id, asked_at, question, cx),
        }
    }

    // === Register and deregister ===

    fn register(&mut self, message: &Register, now: Timestamp) -> Result<Registered, RegisterError> {
        self.refuse_malformed(message)?;
        let mut summary = Registered::Unchanged;
        let (plugins, mut turn) = self.turn(now);
        for key in &message.plugins {
            let registration = registration(message, key);
            let plugin = plugins.entry(key.clone()).or_default();
            let Some(held) = plugin.members.of(&message.allocation) else {
                turn.admit(key, plugin, registration);
                summary = Registered::New;
                continue;
            };
            let (number, is_confirmed) = (held.number, turn.has_confirmed(held));
            let is_changed = *held.registration != registration;
            if is_confirmed && is_changed && held.registration.differs_only_in_policy(&registration) {
                turn.change_policy(key, plugin, number, registration);
            } else if is_changed || !is_confirmed {
                turn.confirm(key, plugin, number, is_changed.then_some(registration));
            }
            if is_changed && summary == Registered::Unchanged {
                summary = Registered::Updated;
            }
        }
        Ok(summary)
    }

    /// Whether it changes nothing.
    fn holds(&self, message: &Register) -> bool {
        let is_held = |key: &PluginKey| {
            let held = self.plugins.get(key).and_then(|plugin| plugin.members.of(&message.allocation));
            held.is_some_and(|held| {
                held.confirmed_in == self.run && *held.registration == registration(message, key)
            })
        };
        message.plugins.iter().all(is_held)
    }

    fn refuse_malformed(&self, message: &Register) -> Result<(), RegisterError> {
        let allocation = &message.allocation;
        if message.plugins.is_empty() {
            return Err(RegisterError::NoPlugin { allocation: allocation.clone() });
        }
        if let Some(plugin) = twice(&message.plugins).cloned() {
            return Err(RegisterError::PluginTwice { allocation: allocation.clone(), plugin });
        }
        let entries = message.options.len();
        let bytes = message.options.iter().map(|(key, value)| key.len() + value.len()).sum();
        if entries > OPTIONS_MAX || bytes > OPTIONS_BYTES_MAX {
            return Err(RegisterError::OptionsTooLarge { allocation: allocation.clone(), entries, bytes });
        }
        if self.held + message.plugins.len() > self.options.registrations_max {
            self.refuse_if_full(message)?;
        }
        Ok(())
    }

    fn refuse_if_full(&self, message: &Register) -> Result<(), RegisterError> {
        let is_new = |key: &&_| {
            let plugin = self.plugins.get(*key);
            plugin.is_none_or(|plugin| plugin.members.of(&message.allocation).is_none())
        };
        let more = message.plugins.iter().filter(is_new).count();
        if more > 0 && self.held + more > self.options.registrations_max {
            return Err(RegisterError::Full { held: self.held });
        }
        Ok(())
    }

    fn deregister(&mut self, message: &Deregister, now: Timestamp) -> Deregistered {
        let departure = match message.cause {
            LeaveCause::Stopped => Departure::Deregistered,
            LeaveCause::Failed => Departure::Failed,
        };
        let leave = |key: &&_| self.dismiss(key, &message.allocation, departure, now);
        let removed: Vec<_> = message.plugins.iter().filter(leave).cloned().collect();
        if removed.is_empty() { Deregistered::NotRegistered } else { Deregistered::Removed(removed) }
    }

    // === Failover ===

    fn fitness_reported(&mut self, report: &ReportFitness, now: Timestamp) {
        let (plugins, mut turn) = self.turn(now);
        let Some((plugin, number)) = watched(plugins, &report.plugin, &report.allocation, report.generation)
        else {
            return;
        };
        if plugin.fitness.report(number, report.generation, &report.fitness, now) {
            // If the active registration has failed, the election gives that as the reason.
            turn.elect(&report.plugin, plugin, ActiveReason::Proven);
        }
    }

    fn renew(&mut self, renew: &Renew, now: Timestamp) {
        let (plugins, mut turn) = self.turn(now);
        if let Some((plugin, number)) = watched(plugins, &renew.plugin, &renew.allocation, renew.generation)
            && plugin.members.get(number).is_some_and(|stored| turn.has_confirmed(stored))
        {
            turn.replace_generation(&renew.plugin, plugin, number);
        }
    }

    fn calm_ended(&mut self, key: &PluginKey, cx: &mut StepContext<Self>) {
        let (plugins, mut turn) = self.turn(cx.now());
        if let Some(plugin) = plugins.get_mut(key) {
            turn.elect(key, plugin, ActiveReason::Calm);
        }
        self.draft.leave(false, None, cx);
    }

    // === Queries ===

    fn describe_plugins(&self, now: Timestamp) -> Vec<Description> {
        let mut plugins: Vec<_> = self.plugins.keys().collect();
        plugins.sort_unstable();
        plugins.into_iter().map(|plugin| self.describe(plugin, now)).collect()
    }

    fn describe(&self, key: &PluginKey, now: Timestamp) -> Description {
        let nothing = Plugin::default();
        let plugin = self.plugins.get(key).unwrap_or(&nothing);
        let policy = self.options.policy_of(key, plugin, self.run);
        let mut description = Description {
            plugin: key.clone(),
            active: plugin.active.as_ref().map(|(_, active)| active.clone()),
            active_because: plugin.active_because(&policy, now),
            policy: policy.clone(),
            standby: Vec::new(),
            provisional: Vec::new(),
        };
        for stored in plugin.members.newest_first().filter(|stored| !plugin.is_active(stored.number)) {
            let entry = stored.entry(self.run);
            match entry.standing {
                Standing::Confirmed => {
                    let inactive_because = plugin.inactive_because(stored, &policy, now);
                    description.standby.push(Standby { entry, inactive_because });
                }
                Standing::Provisional => description.provisional.push(entry),
            }
        }
        description
    }

    fn registration_of(&self, question: &RegistrationOf) -> Option<Entry> {
        let stored = self.plugins.get(&question.plugin)?.members.of(&question.allocation)?;
        Some(stored.entry(self.run))
    }

    fn wait(&mut self, id: AskId, asked_at: Timestamp, question: &WaitForPlugin, cx: &mut StepContext<Self>) {
        let plugin = self.plugins.get(&question.plugin);
        if let Some((_, active)) = plugin.and_then(|plugin| plugin.active.clone()) {
            cx.reply(id, RegistryAnswer::WaitForPlugin(Ok(active)));
        } else if self.waiting.len() >= self.options.waiting_max {
            let error = WaitError::TooMany { waiting: self.waiting.len() };
            cx.reply(id, RegistryAnswer::WaitForPlugin(Err(error)));
        } else {
            self.waiting.add(id, asked_at, question.plugin.clone());
            cx.start_timer(RegistryTimer::Waited(id), asked_at + question.within);
        }
    }

    fn waited_in_vain(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        let Some((plugin, since)) = self.waiting.give_up(id) else { return };
        let waited = cx.now().since(since);
        let members = self.plugins.get(&plugin).into_iter().flat_map(Plugin::allocations);
        let allocations: Vec<_> = members.collect();
        let error = if allocations.is_empty() {
            WaitError::NotRegistered { plugin, waited }
        } else {
            WaitError::NotConfirmed { plugin, waited, allocations }
        };
        cx.reply(id, RegistryAnswer::WaitForPlugin(Err(error)));
    }
}

/// A registration, if it still has this generation (REG-08).
fn watched<'a>(
    plugins: &'a mut Plugins,
    key: &PluginKey,
    allocation: &AllocationId,
    generation: Generation,
) -> Option<(&'a mut Plugin, RegistrationNumber)> {
    let plugin = plugins.get_mut(key)?;
    let stored = plugin.members.of(allocation).filter(|stored| stored.generation == generation)?;
    let number = stored.number;
    Some((plugin, number))
}

fn registration(message: &Register, key: &PluginKey) -> Registration {
    Registration {
        plugin: key.clone(),
        allocation: message.allocation.clone(),
        socket: message.socket.clone(),
        provider: message.provider.clone(),
        version: message.version.clone(),
        options: Arc::clone(&message.options),
        policy: message.policy.clone(),
    }
}

fn twice(plugins: &[PluginKey]) -> Option<&PluginKey> {
    if plugins.len() < 2 {
        return None;
    }
    let mut seen = BTreeSet::new();
    plugins.iter().find(|key| !seen.insert(*key))
}
