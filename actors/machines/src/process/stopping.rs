//! How one process is ended (SHD-07), and how the host detaches from it.

use std::time::Duration;

use super::behaviour::{CLEAR_DEADLINE, SHORT};
use super::ending::{Exit, ProcessEnding};
use super::spec::Lifetime;
use super::state::{LastWords, Over, Phase, Process, ProcessCall, ProcessNews, ProcessTimer, Why};
use crate::kernel::{Effects, StopMode};
use crate::vocabulary::Moment;

impl Process {
    /// Whether there is a process to wait for: its end and its output.
    pub(super) const fn is_attached(&self) -> bool {
        match self.phase {
            Phase::Spawned | Phase::Ready | Phase::Stopping { .. } => true,
            Phase::Intended { .. }
            | Phase::Recalled { .. }
            | Phase::EndingLeft { .. }
            | Phase::Clearing { .. }
            | Phase::Leaving
            | Phase::Over => false,
        }
    }

    pub(super) fn end(&mut self, grace: Duration, moment: Moment, effects: &mut Effects<Self>) {
        match &mut self.phase {
            Phase::Intended { end } | Phase::Recalled { end } => {
                *end = Some(end.map_or(grace, |earlier| earlier.min(grace)));
            }
            Phase::Spawned | Phase::Ready => self.terminate(Why::Asked, grace, moment, effects),
            Phase::Stopping { until, .. } => {
                *until = (*until).min(moment.now + grace);
                effects.start_timer(ProcessTimer::Grace, *until);
            }
            // It is ending already, or detached.
            Phase::EndingLeft { .. } | Phase::Clearing { .. } | Phase::Leaving | Phase::Over => {}
        }
    }

    pub(super) fn terminate(
        &mut self,
        why: Why,
        grace: Duration,
        moment: Moment,
        effects: &mut Effects<Self>,
    ) {
        let until = moment.now + grace;
        self.phase = Phase::Stopping { why, until };
        self.by = super::ending::EndedBy::Request;
        effects.cancel_timer(ProcessTimer::Start);
        effects.publish(ProcessNews::Stopping);
        self.call(SHORT, ProcessCall::Terminate, effects);
        effects.start_timer(ProcessTimer::Grace, until);
    }

    pub(super) fn exited(&mut self, exit: &Exit, effects: &mut Effects<Self>) {
        let why = match &self.phase {
            Phase::Spawned | Phase::Ready => Why::Itself,
            Phase::Stopping { why, .. } => why.clone(),
            Phase::Intended { .. }
            | Phase::Recalled { .. }
            | Phase::EndingLeft { .. }
            | Phase::Clearing { .. }
            | Phase::Leaving
            | Phase::Over => return,
        };
        self.phase = Phase::Clearing { why, exit: exit.clone() };
        effects.cancel_timer(ProcessTimer::Start);
        effects.cancel_timer(ProcessTimer::Grace);
        effects.publish(ProcessNews::Clearing);
        self.call(CLEAR_DEADLINE, ProcessCall::Clear, effects);
    }

    pub(super) fn cleared(&mut self, words: &LastWords, moment: Moment, effects: &mut Effects<Self>) {
        let (why, exit) = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Clearing { why, exit } => (why, exit),
            Phase::EndingLeft { why, .. } => {
                (why, Exit::Unknown { reason: "no host was there to see it end".to_owned() })
            }
            phase @ (Phase::Intended { .. }
            | Phase::Recalled { .. }
            | Phase::Spawned
            | Phase::Ready
            | Phase::Stopping { .. }
            | Phase::Leaving
            | Phase::Over) => {
                self.phase = phase;
                return;
            }
        };
        let LastWords { output, errors, panic, diagnosis } = words.clone();
        let ending = ProcessEnding {
            name: self.record.name.clone(),
            tag: self.record.tag,
            pid: self.record.identity.as_ref().map(|identity| identity.pid),
            panic: panic.filter(|_| !exit.is_success()),
            exit,
            by: self.by,
            uptime: moment.now.since(self.started_at),
            last_output: output,
            last_errors: errors,
        };
        let diagnosis = if self.record.is_ready { Vec::new() } else { diagnosis };
        self.over(Over::Ended { ending, why, diagnosis }, effects);
    }

    pub(super) fn stop(&mut self, mode: StopMode, moment: Moment, effects: &mut Effects<Self>) {
        match (mode, &self.phase, self.record.lifetime) {
            (StopMode::Detach, Phase::Ready, Lifetime::Surviving) => {
                self.phase = Phase::Leaving;
                self.call(SHORT, ProcessCall::LetGo, effects);
            }
            // A bound one may be a child of this very host, whose owner was rebuilt: it is searched for and ended.
            (StopMode::Detach, Phase::Recalled { .. }, Lifetime::Surviving) => {
                self.over(Over::Unsettled, effects);
            }
            (
                StopMode::Detach | StopMode::Stop,
                Phase::Intended { .. }
                | Phase::Recalled { .. }
                | Phase::EndingLeft { .. }
                | Phase::Spawned
                | Phase::Ready
                | Phase::Stopping { .. }
                | Phase::Clearing { .. }
                | Phase::Leaving
                | Phase::Over,
                Lifetime::Bound | Lifetime::Surviving,
            ) => self.end(self.record.stop_grace, moment, effects),
        }
    }

    pub(super) fn over(&mut self, over: Over, effects: &mut Effects<Self>) {
        self.phase = Phase::Over;
        effects.publish(ProcessNews::Over(Box::new(over)));
        effects.stop();
    }
}
