//! Checks whether a watched plugin still answers. Its stream does not show that: the stream of a hung plugin is as silent as that of an
//! idle one.

use std::time::Duration;

use super::calls::{Outcome, SessionCall, SessionTimer, Step, Trouble, TroubleKind};
use super::service::{Plugin, Said, Service};
use super::state::Session;
use super::status::SessionHealth;
use crate::kernel::{CALL_GRACE, CallLost, OneCall, StepContext};

/// The shortest interval between pings of a plugin.
const PING_EVERY_MIN: Duration = Duration::from_millis(100);

/// The pings of a watched plugin.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Pings {
    /// The ping in flight.
    pub(super) call: OneCall,
    /// The last reported health of the plugin, while a ping has no answer. It counts again once a ping is answered.
    pub(super) withheld: Option<Said>,
}

impl<S: Service> Session<S> {
    /// Pings the plugin from now on, as long as it is watched.
    pub(super) fn begin_pings<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        if let Some(every) = self.config.limits.ping_every {
            cx.start_timer(SessionTimer::Ping, cx.now() + every.max(PING_EVERY_MIN));
        }
    }

    /// It is no longer watched: the outcome of a ping has no effect on what follows.
    pub(super) fn end_pings<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        cx.cancel_timer(SessionTimer::Ping);
        self.pings.call.forget();
        self.pings.withheld = None;
    }

    pub(super) fn ping<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        self.begin_pings(cx);
        if !self.pings.call.is_awaited() {
            let deadline = self.config.limits.step_deadline.saturating_add(CALL_GRACE);
            cx.call(self.pings.call.begin(self.status.generation), deadline, SessionCall::Ping);
        }
    }

    /// A ping returned. As in every go-plugin host only an error counts, regardless of the health status in the answer (D50).
    pub(super) fn pinged<M: Plugin<S>>(&mut self, outcome: &Outcome<S>, cx: &mut StepContext<M>) {
        match outcome {
            Ok(Ok(_)) => {
                if let Some(Said { health, description }) = self.pings.withheld.take() {
                    self.set_health(cx.moment(), health, description);
                }
            }
            Ok(Err(Trouble { kind: TroubleKind::Silent, what })) => {
                self.unwell(format!("it does not answer: {what}"), cx);
            }
            Ok(Err(trouble)) => self.unwell(format!("it refuses to be pinged: {}", trouble.what), cx),
            Err(lost @ CallLost::DeadlineExceeded(_)) => {
                self.unwell(format!("it does not answer: {}: {lost}", Step::<S::Step>::Ping), cx);
            }
            // The ping was not made: this is no evidence about the plugin.
            Err(CallLost::Crashed(_) | CallLost::Busy(_)) => {}
        }
    }

    /// The plugin may be busy, and its tasks may run in its own process: it is unhealthy, and nothing is cut or ended.
    fn unwell<M: Plugin<S>>(&mut self, reason: String, cx: &mut StepContext<M>) {
        self.troubles.add(cx.now(), &reason);
        if self.pings.withheld.is_none() {
            let (health, description) = (self.status.health, self.status.reason.clone());
            self.pings.withheld = Some(Said { health, description });
        }
        self.set_health(cx.moment(), SessionHealth::Unhealthy, reason);
    }
}
