//! Watches a registered plugin (A3): rounds at a low rate, frequent ones until the plugin is known to be healthy or not.
//!
//! The instance of a registration probes its plugin already, active or standby, and its result is authoritative (HLT-03), so a round
//! queries that: a plugin is healthy when its instance has read everything (HLT-01). Only a plugin without an instance, because its
//! registration has just come or its instance has ended, is probed directly. When the instance has news, a round begins at once.

use super::messages::{AllocationNews, RestartWhen};
use super::state::{ActualState, Allocation, AllocationCall, AllocationTimer, Phase, Watch};
use crate::AskError;
use crate::csi::{Answer, CallError, Readiness, Rpc};
use crate::kernel::StepContext;
use crate::vocabulary::{Attempt, Health, Moment};

impl Allocation {
    fn next_round(&mut self, cx: &mut StepContext<Self>) {
        let Phase::Registered(watch) = &mut self.phase else { return };
        if watch.has_news {
            return self.begin_round(cx);
        }
        let options = &self.config.options;
        // The result is known soon, or the last question for news had no answer.
        let pause = if watch.owes_question || self.health == Health::Starting {
            watch.looks.failed(&options.probe_pauses, cx.moment())
        } else {
            let round = cx.moment().spread(options.round, options.round_jitter_percent);
            // The round at the deadline decides: its result is reported.
            match (self.config.spec.restart_when, watch.unhealthy_since) {
                (RestartWhen::UnhealthyFor(time), Some(since)) if cx.now() < since + time => {
                    round.min((since + time).since(cx.now()))
                }
                (RestartWhen::Never | RestartWhen::UnhealthyFor(_), _) => round,
            }
        };
        cx.start_timer(AllocationTimer::Round, cx.now() + pause);
    }

    pub(super) fn begin_round(&mut self, cx: &mut StepContext<Self>) {
        // Only registered plugins have rounds.
        if let Phase::Registered(watch) = &mut self.phase {
            watch.owes_question |= std::mem::take(&mut watch.has_news);
            let deadline = self.config.options.registry_deadline;
            self.watch(AllocationCall::AskHealth, deadline, cx);
        }
    }

    /// Its instance has news. A pending round may have been asked before that.
    pub(super) fn look_now(&mut self, cx: &mut StepContext<Self>) {
        let Phase::Registered(watch) = &mut self.phase else { return };
        watch.has_news = true;
        if watch.under_way.is_none() {
            cx.cancel_timer(AllocationTimer::Round);
            self.begin_round(cx);
        }
    }

    fn watch(&mut self, call: AllocationCall, deadline: std::time::Duration, cx: &mut StepContext<Self>) {
        let attempt = self.call(call, deadline, cx);
        if let Phase::Registered(watch) = &mut self.phase {
            watch.under_way = Some(attempt);
        }
    }

    /// Whether a call belongs to the present round; marks it as no longer pending.
    fn is_of_round(&mut self, attempt: Attempt) -> bool {
        match &mut self.phase {
            Phase::Registered(watch) => watch.under_way.take_if(|current| *current == attempt).is_some(),
            // Outcomes for other phases are stale.
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
        cx: &mut StepContext<Self>,
    ) {
        if !self.is_of_round(attempt) {
            return;
        }
        match seen {
            Ok(seen) if seen.iter().all(|health| *health == Health::Gone) => {
                let deadline = self.question_deadline();
                self.watch(AllocationCall::Ask(Rpc::Probe), deadline, cx);
            }
            Ok(seen) => {
                self.conclude(&worst(seen), cx.moment());
                self.next_round(cx);
            }
            // If the query fails, an instance may still exist: the health is unknown and not published.
            Err(_) => self.next_round(cx),
        }
    }

    pub(super) fn probe_seen(
        &mut self,
        attempt: Attempt,
        answer: &Result<Answer, CallError>,
        cx: &mut StepContext<Self>,
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
            Err(error) => Some(error.told()),
        };
        self.conclude(&reason.map_or(Health::Healthy, |reason| Health::Unhealthy { reason }), cx.moment());
        self.next_round(cx);
    }

    /// Ends a round without a result, which proves nothing about the plugin.
    pub(super) fn round_over(&mut self, attempt: Attempt, cx: &mut StepContext<Self>) {
        if self.is_of_round(attempt) {
            self.next_round(cx);
        }
    }

    fn conclude(&mut self, health: &Health, moment: Moment) {
        if let Phase::Registered(watch) = &mut self.phase {
            watch.owes_question = false;
        }
        match health {
            Health::Healthy => {
                let event = match (self.known_health(), &self.registration_state.actual) {
                    (Health::Starting, ActualState::In(identity)) => {
                        format!("healthy as {} {}", identity.provider, identity.version).trim().to_owned()
                    }
                    (Health::Starting | Health::Healthy | Health::Unhealthy { .. } | Health::Gone, _) => {
                        "healthy again".to_owned()
                    }
                };
                self.take_health(Health::Healthy, event);
                if let Phase::Registered(watch) = &mut self.phase {
                    watch.unhealthy_since = None;
                }
            }
            Health::Unhealthy { reason } => {
                self.take_health(health.clone(), format!("unhealthy: {reason}"));
                self.ask_for_restart(reason, moment);
            }
            Health::Starting => self.connects_anew(),
            // It has no instance, and is probed from here.
            Health::Gone => {}
        }
    }

    /// Its instance connects to it, and does not know its health yet.
    fn connects_anew(&mut self) {
        let Phase::Registered(watch) = &mut self.phase else { return };
        if self.health != Health::Starting {
            watch.before = Some(std::mem::replace(&mut self.health, Health::Starting));
        }
    }

    /// The health that was known last.
    pub(super) const fn known_health(&self) -> &Health {
        match (&self.health, &self.phase) {
            (Health::Starting, Phase::Registered(Watch { before: Some(before), .. })) => before,
            (health, _) => health,
        }
    }
}

impl Allocation {
    /// Asks the host to restart a plugin that has been unhealthy for as long as its spec allows.
    fn ask_for_restart(&mut self, reason: &str, moment: Moment) {
        let Phase::Registered(watch) = &mut self.phase else { return };
        let since = *watch.unhealthy_since.get_or_insert(moment.now);
        let RestartWhen::UnhealthyFor(time) = self.config.spec.restart_when else { return };
        if moment.now.since(since) >= time {
            watch.unhealthy_since = Some(moment.now);
            let reason = format!("the plugin has been unhealthy for {time:?}: {reason}");
            self.news.push(AllocationNews::RestartRequested { reason });
        }
    }
}

/// Combines the health of several instances of one allocation: it is healthy if all are.
fn worst(seen: &[Health]) -> Health {
    let unhealthy = seen.iter().find(|health| matches!(health, Health::Unhealthy { .. }));
    let starting = seen.iter().find(|health| **health == Health::Starting);
    unhealthy.or(starting).cloned().unwrap_or(Health::Healthy)
}
