//! Handles restored registrations that are not confirmed yet (R8): checks confirm them, or they are dropped after the grace period.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::behaviour::RegistryTimer;
use super::reasons::Departure;
use super::state::{CheckIdentity, CheckOutcome, Registry};
use crate::kernel::{CallKey, CallLost, StepContext};
use crate::vocabulary::{Attempt, Registration, RegistrationNumber};

/// The pause before the second round of checks; it doubles with each further round.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The minimal rest of the grace period after each rebuild of the registry. Without it, a full disk at the end of the grace
/// period would cause rebuilds in a loop.
const LEAST_GRACE: Duration = Duration::from_secs(5);
/// The number of registrations that one write removes when the grace period is over.
const DROPPED_AT_ONCE: usize = 512;

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Restored {
    unconfirmed: BTreeMap<RegistrationNumber, Arc<Registration>>,
    /// The registrations still to be checked in this round.
    queue: VecDeque<RegistrationNumber>,
    running: usize,
    round: Attempt,
    grace: Duration,
}

impl Restored {
    pub(super) fn with_grace(grace: Duration, run_age: Duration) -> Self {
        let left = grace.saturating_sub(run_age).max(LEAST_GRACE.min(grace));
        Self { grace: left, ..Self::default() }
    }

    pub(super) fn expect(&mut self, number: RegistrationNumber, registration: Arc<Registration>) {
        self.unconfirmed.insert(number, registration);
    }

    pub(super) fn settled(&mut self, number: RegistrationNumber) {
        self.unconfirmed.remove(&number);
    }

    fn pause(&self) -> Duration {
        let doublings = u32::try_from(self.round.get().saturating_sub(1).min(10)).unwrap_or(10);
        FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
    }
}

impl Registry {
    /// Starts to confirm the restored registrations.
    pub(super) fn look_for_owners(&mut self, cx: &mut StepContext<Self>) {
        if self.restored.unconfirmed.is_empty() {
            return;
        }
        cx.start_timer(RegistryTimer::GraceOver, cx.now() + self.restored.grace);
        self.next_round(cx);
    }

    /// Checks every unconfirmed registration once more. The next one in the order of takeover comes first.
    pub(super) fn next_round(&mut self, cx: &mut StepContext<Self>) {
        let restored = &mut self.restored;
        restored.round = restored.round.next();
        restored.running = 0;
        let provable = restored.unconfirmed.iter().rev().filter(|(_, r)| r.provider.is_some());
        restored.queue = provable.map(|(number, _)| *number).collect();
        if restored.queue.is_empty() {
            return;
        }
        let pause = cx.moment().spread(restored.pause(), 10);
        cx.start_timer(RegistryTimer::CheckAgain, cx.now() + pause);
        self.fill_checks(cx);
    }

    fn fill_checks(&mut self, cx: &mut StepContext<Self>) {
        let restored = &mut self.restored;
        while restored.running < self.options.checks_max {
            let Some(number) = restored.queue.pop_front() else { break };
            let Some(registration) = restored.unconfirmed.get(&number) else { continue };
            restored.running += 1;
            let key = CallKey { attempt: restored.round, ..CallKey::default() };
            let call = CheckIdentity { number, registration: Arc::clone(registration) };
            cx.call(key, self.options.check_deadline, call);
        }
    }

    pub(super) fn checked(
        &mut self,
        key: CallKey,
        check: &CheckIdentity,
        outcome: &Result<CheckOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        // The proof of an earlier round is valid too, as long as the registration is unchanged and still unconfirmed.
        let is_awaited = self.restored.unconfirmed.get(&check.number) == Some(&check.registration);
        if is_awaited && matches!(outcome, Ok(CheckOutcome::Proven)) {
            let key = &check.registration.plugin;
            let (plugins, mut turn) = self.turn(cx.now());
            if let Some(plugin) = plugins.get_mut(key) {
                turn.confirm(key, plugin, check.number, None);
            }
            self.draft.leave(false, None, cx);
        }
        if key.attempt == self.restored.round {
            self.restored.running = self.restored.running.saturating_sub(1);
            self.fill_checks(cx);
        }
    }

    /// The grace period is over: unconfirmed registrations are removed, with news.
    pub(super) fn drop_unconfirmed(&mut self, cx: &mut StepContext<Self>) {
        cx.cancel_timer(RegistryTimer::CheckAgain);
        self.restored.queue.clear();
        let unconfirmed: Vec<Arc<Registration>> = self.restored.unconfirmed.values().cloned().collect();
        for chunk in unconfirmed.chunks(DROPPED_AT_ONCE) {
            for registration in chunk {
                let Registration { plugin, allocation, .. } = &**registration;
                self.dismiss(plugin, allocation, Departure::NotConfirmed, cx.now());
            }
            self.draft.leave(false, None, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Effect, Input, Machine};
    use crate::registry::state::{Image, RegistryOptions, Stored};
    use crate::vocabulary::{
        AllocationId, Generation, Moment, PluginKey, PluginName, PluginType, RunNumber, SocketPath, Timestamp,
    };

    fn stored(number: u64) -> Stored {
        let registration = Registration {
            policy: None,
            plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
            allocation: AllocationId::new(format!("a{number}")).unwrap(),
            socket: SocketPath::new("/run/a.sock").unwrap(),
            provider: Some("zfs.example.com".into()),
            version: None,
            options: Arc::default(),
        };
        Stored {
            number: RegistrationNumber::new(number),
            registration: Arc::new(registration),
            since: Timestamp::default(),
            confirmed_in: RunNumber::new(1),
            generation: Generation::default(),
            active_since: None,
        }
    }

    /// The identity checks that the registry calls after this input.
    fn asked(registry: &mut Registry, input: &Input<Registry>) -> Vec<(CallKey, CheckIdentity)> {
        let mut cx = StepContext::new(Moment::default());
        registry.step(input, &mut cx);
        let calls = cx.drain().filter_map(|effect| match effect {
            Effect::Call { key, call, .. } => Some((key, call)),
            _ => None,
        });
        calls.collect()
    }

    #[test]
    fn as_many_plugins_are_asked_at_once_as_may_be_and_one_more_for_each_that_answered_r8() {
        let options = RegistryOptions { checks_max: 2, ..RegistryOptions::default() };
        let image =
            Image { stored: (1..=5).map(stored).collect(), run: RunNumber::new(2), ..Image::default() };
        let mut registry = Registry::restore(&options, image, Moment::default());
        let first = asked(&mut registry, &Input::Resumed);
        assert_eq!(first.len(), 2);
        let unproven = |(key, call): &(CallKey, CheckIdentity)| Input::Returned {
            key: *key,
            call: call.clone(),
            outcome: Ok(CheckOutcome::NotProven("no answer".to_owned())),
        };
        assert_eq!(asked(&mut registry, &unproven(&first[0])).len(), 1);
        // The next round begins; late outcomes of the previous round do not free a slot in it.
        assert_eq!(asked(&mut registry, &Input::Elapsed(RegistryTimer::CheckAgain)).len(), 2);
        assert_eq!(asked(&mut registry, &unproven(&first[1])).len(), 0);
    }
}
