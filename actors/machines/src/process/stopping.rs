//! Ends one process (SHD-07), or detaches the host from it.

use std::time::Duration;

use super::behaviour::{CLEAR_DEADLINE, SHORT};
use super::ending::{Exit, ProcessEnding};
use super::spec::Lifetime;
use super::state::{LastWords, Over, Phase, Process, ProcessCall, ProcessNews, ProcessTimer, Why};
use crate::kernel::{StepContext, StopMode};

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

    pub(super) fn end(&mut self, grace: Duration, cx: &mut StepContext<Self>) {
        match &mut self.phase {
            Phase::Intended { end } | Phase::Recalled { end } => {
                *end = Some(end.map_or(grace, |earlier| earlier.min(grace)));
            }
            Phase::Spawned | Phase::Ready => self.terminate(Why::Asked, grace, cx),
            Phase::Stopping { until, .. } => {
                *until = (*until).min(cx.now() + grace);
                cx.start_timer(ProcessTimer::Grace, *until);
            }
            // It is ending already, or detached.
            Phase::EndingLeft { .. } | Phase::Clearing { .. } | Phase::Leaving | Phase::Over => {}
        }
    }

    pub(super) fn terminate(&mut self, why: Why, grace: Duration, cx: &mut StepContext<Self>) {
        let until = cx.now() + grace;
        self.phase = Phase::Stopping { why, until };
        self.by = super::ending::EndedBy::Request;
        cx.cancel_timer(ProcessTimer::Start);
        cx.publish(ProcessNews::Stopping);
        self.call(SHORT, ProcessCall::Terminate, cx);
        cx.start_timer(ProcessTimer::Grace, until);
    }

    pub(super) fn exited(&mut self, exit: &Exit, cx: &mut StepContext<Self>) {
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
        cx.cancel_timer(ProcessTimer::Start);
        cx.cancel_timer(ProcessTimer::Grace);
        cx.publish(ProcessNews::Clearing);
        self.call(CLEAR_DEADLINE, ProcessCall::Clear, cx);
    }

    pub(super) fn cleared(&mut self, words: &LastWords, cx: &mut StepContext<Self>) {
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
            uptime: cx.now().since(self.started_at),
            last_output: output,
            last_errors: errors,
        };
        let diagnosis = if self.record.is_ready { Vec::new() } else { diagnosis };
        self.over(Over::Ended { ending, why, diagnosis }, cx);
    }

    pub(super) fn stop(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        match (mode, &self.phase, self.record.lifetime) {
            (StopMode::Detach, Phase::Ready, Lifetime::Surviving) => {
                self.phase = Phase::Leaving;
                self.call(SHORT, ProcessCall::LetGo, cx);
            }
            // A bound process may be a child of this same host process, whose owner was rebuilt: it is searched for and ended.
            (StopMode::Detach, Phase::Recalled { .. }, Lifetime::Surviving) => {
                self.over(Over::Unsettled, cx);
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
            ) => self.end(self.record.stop_grace, cx),
        }
    }

    pub(super) fn over(&mut self, over: Over, cx: &mut StepContext<Self>) {
        self.phase = Phase::Over;
        cx.publish(ProcessNews::Over(Box::new(over)));
        cx.stop();
    }
}
