//! Handles the reports of a plugin that serves.

use super::behaviour::WAIT_DEADLINE;
use super::calls::{Outcome, Reached, SessionCall, SessionTimer, Step, Trouble, TroubleKind};
use super::failing::confused;
use super::service::{Plugin, Service};
use super::state::{Phase, Session};
use crate::kernel::{CallLost, StepContext};

impl<S: Service> Session<S> {
    /// Waits for the next fingerprint.
    pub(super) fn read_on<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        self.phase = Phase::Watching;
        self.call(WAIT_DEADLINE, SessionCall::ReadOn, cx);
    }

    /// The stream delivered an item, or has ended.
    pub(super) fn read_on_answered<M: Plugin<S>>(&mut self, outcome: &Outcome<S>, cx: &mut StepContext<M>) {
        match outcome {
            Ok(Ok(Reached::Told(told))) => self.told(told, cx),
            // Nothing happened for a long time.
            Err(CallLost::DeadlineExceeded(_)) => self.read_on(cx),
            Ok(Err(trouble)) => self.failed(trouble, cx),
            Ok(Ok(_)) => self.failed(&confused::<S>(Step::Watch), cx),
            Err(lost @ (CallLost::Crashed(_) | CallLost::Busy(_))) => {
                let what = format!("{}: {lost}", Step::<S::Step>::Watch);
                self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
            }
        }
    }

    /// The plugin reported something about itself.
    pub(super) fn told<M: Plugin<S>>(&mut self, told: &S::Told, cx: &mut StepContext<M>) {
        let Some(said) = self.service.take_from_stream(told) else {
            return self.failed(&confused::<S>(Step::Watch), cx);
        };
        self.silent_failures = 0;
        if matches!(self.phase, Phase::Starting(_)) {
            self.begin_pings(cx);
        }
        match &mut self.pings.withheld {
            // It may have reported this before it hung.
            Some(withheld) => *withheld = said,
            None => self.set_health(cx.moment(), said.health, said.description),
        }
        self.phase = Phase::Resting;
        cx.start_timer(SessionTimer::ReadOn, cx.now() + self.config.limits.fingerprint_pause);
    }
}
