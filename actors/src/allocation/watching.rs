//! After registration (A3): rounds at a low rate, frequent ones until the plugin is known to be healthy or not.
//!
//! The instance of an active plugin probes it already, and what it sees is the truth for everyone (HLT-03), so a round asks
//! for that: a plugin is called healthy when its instance has read everything (HLT-01). Only a plugin that no instance talks
//! to, because another allocation is active, is probed from here.

use super::state::{Allocation, AllocationCall, AllocationTimer, Phase, Standing};
use crate::csi::{Answer, CallError, Readiness, Rpc};
use crate::shell::{AskError, Effects};
use crate::vocabulary::{Attempt, Health, Moment};

impl Allocation {
    fn next_round(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        let Phase::Registered(watch) = &mut self.phase else { return };
        let options = &self.config.options;
        let pause = match self.health {
            // What becomes of it is known soon, and awaited.
            Health::Starting => watch.looks.failed(&options.probe_pauses, moment),
            Health::Healthy | Health::Unhealthy { .. } | Health::Gone => {
                moment.spread(options.round, options.round_jitter_percent)
            }
        };
        effects.start_timer(AllocationTimer::Round, moment.now + pause);
    }

    pub(super) fn begin_round(&mut self, effects: &mut Effects<Self>) {
        // Rounds are made of registered plugins only.
        if matches!(self.phase, Phase::Registered(_)) {
            let deadline = self.config.options.registry_deadline;
            self.watch(AllocationCall::AskHealth, deadline, effects);
        }
    }

    fn watch(&mut self, call: AllocationCall, deadline: std::time::Duration, effects: &mut Effects<Self>) {
        let attempt = self.call(call, deadline, effects);
        if let Phase::Registered(watch) = &mut self.phase {
            watch.under_way = Some(attempt);
        }
    }

    /// Whether a call belongs to the present round, which then has no call under way any more.
    fn is_of_round(&mut self, attempt: Attempt) -> bool {
        match &mut self.phase {
            Phase::Registered(watch) => watch.under_way.take_if(|current| *current == attempt).is_some(),
            // What comes back to another phase comes too late.
            Phase::Prepared
            | Phase::Waiting(_)
            | Phase::Registering
            | Phase::AwaitingRestart
            | Phase::Stopping(_)
            | Phase::Ended => false,
        }
    }

    pub(super) fn health_seen(
        &mut self,
        attempt: Attempt,
        seen: &Result<Vec<Health>, AskError>,
        moment: Moment,
        effects: &mut Effects<Self>,
    ) {
        if !self.is_of_round(attempt) {
            return;
        }
        match seen {
            Ok(seen) if seen.iter().all(|health| *health == Health::Gone) => {
                let deadline = self.question_deadline();
                self.watch(AllocationCall::Ask(Rpc::Probe), deadline, effects);
            }
            Ok(seen) => {
                self.conclude(&worst(seen));
                self.next_round(moment, effects);
            }
            // Who cannot be asked may be probing all the same: nothing is known, and nothing is said.
            Err(_) => self.next_round(moment, effects),
        }
    }

    pub(super) fn probe_seen(
        &mut self,
        attempt: Attempt,
        answer: &Result<Answer, CallError>,
        moment: Moment,
        effects: &mut Effects<Self>,
    ) {
        if !self.is_of_round(attempt) {
            return;
        }
        let reason = match answer {
            Ok(Answer::Probe(Readiness::Ready)) => None,
            Ok(Answer::Probe(Readiness::NotReady)) => {
                Some("the plugin answers that it is not ready any more".to_owned())
            }
            Ok(other) => Some(format!("{} was answered unasked", other.rpc())),
            Err(error) => Some(error.to_string()),
        };
        self.conclude(&reason.map_or(Health::Healthy, |reason| Health::Unhealthy { reason }));
        self.next_round(moment, effects);
    }

    /// A round that came to nothing says nothing of the plugin.
    pub(super) fn round_over(&mut self, attempt: Attempt, moment: Moment, effects: &mut Effects<Self>) {
        if self.is_of_round(attempt) {
            self.next_round(moment, effects);
        }
    }

    fn conclude(&mut self, health: &Health) {
        match health {
            Health::Healthy => {
                let event = match (&self.health, &self.sign_in.standing) {
                    (Health::Starting, Standing::In(identity)) => {
                        format!("healthy as {} {}", identity.provider, identity.version).trim().to_owned()
                    }
                    (Health::Starting | Health::Healthy | Health::Unhealthy { .. } | Health::Gone, _) => {
                        "healthy again".to_owned()
                    }
                };
                self.take_health(Health::Healthy, event);
            }
            Health::Unhealthy { reason } => self.take_health(health.clone(), format!("unhealthy: {reason}")),
            // An instance that is just beginning knows no better than we do.
            Health::Starting | Health::Gone => {}
        }
    }
}

/// What several instances of one allocation come to: it is healthy if all are.
fn worst(seen: &[Health]) -> Health {
    let unhealthy = seen.iter().find(|health| matches!(health, Health::Unhealthy { .. }));
    let starting = seen.iter().find(|health| **health == Health::Starting);
    unhealthy.or(starting).cloned().unwrap_or(Health::Healthy)
}
