//! Checks the actions of a supervisor on its children.

use std::time::Duration;

use callboard_actors::shell::{CallKey, Ending, StopMode};
use callboard_actors::supervisor::Call;
use callboard_actors::vocabulary::Timestamp;

use super::super::law::Law;
use super::known::{Cause, State};
use super::laws::SupervisionLaws;

/// How much longer than a child's own deadline its stop may take at most, including the kill.
const STOP_MARGIN_MAX: Duration = Duration::from_secs(10);

impl SupervisionLaws {
    pub(super) fn calls(&mut self, now: Timestamp, key: CallKey, within: Duration, call: Call) {
        match call {
            Call::StartChild { child } => self.starts(now, child, key, within),
            Call::StopChild { child, mode, deadline, is_final } => {
                self.stops(now, child, mode, deadline, within);
                if is_final != self.end.is_some() {
                    self.verdict.violation(Law::S4, || format!("c{child} is stopped, for good: {is_final}"));
                }
                self.children[child].state = State::Stopping { key, mode, begun: now };
                self.children[child].is_last_stop = is_final;
            }
            Call::AwaitEnd { child } => self.watches(child, key),
            Call::FindChildren | Call::DescribeChildren { .. } => {}
        }
    }

    fn starts(&mut self, now: Timestamp, child: usize, key: CallKey, within: Duration) {
        let state = std::mem::replace(&mut self.children[child].state, State::Starting(key));
        if self.end.is_some() {
            self.verdict.violation(Law::S3, || format!("c{child} is started though everything ends"));
            return;
        }
        if state != State::Down {
            self.verdict.violation(Law::S2, || format!("c{child} is started, and it is {state:?}"));
        }
        if within != self.plan.children[child].start_deadline {
            self.verdict.violation(Law::S3, || format!("c{child} may take {within:?} to start"));
        }
        let Some(group) = self.groups.iter().find(|group| group.members.contains(&child)) else {
            self.verdict.violation(Law::S1, || format!("c{child} is started, and nothing asked for that"));
            return;
        };
        match group.ready_at() {
            None => self.verdict.violation(Law::S2, || {
                format!("c{child} is started before all that share its fate are down")
            }),
            Some(ready_at) if now < ready_at => {
                self.verdict.violation(Law::S1, || format!("c{child} is started before its pause is over"));
            }
            Some(_) => {}
        }
        if group.members.first() != Some(&child) {
            self.verdict
                .violation(Law::S2, || format!("c{child} is started before one that comes before it"));
        }
    }

    fn stops(&mut self, now: Timestamp, child: usize, mode: StopMode, deadline: Duration, within: Duration) {
        let spec = &self.plan.children[child];
        let longest = deadline.max(spec.stop_longest);
        if deadline != spec.stop_deadline || within < longest || within > longest + STOP_MARGIN_MAX {
            self.verdict
                .violation(Law::S3, || format!("c{child} may take {deadline:?} to end, or {within:?}"));
        }
        let state = self.children[child].state;
        if self.is_done(child) {
            self.verdict
                .violation(Law::S2, || format!("c{child} is stopped, and it is {state:?} at {now:?}"));
        }
        let Some(end) = &self.end else {
            self.stops_for_a_restart(child, mode);
            return;
        };
        if mode != end.mode {
            self.verdict
                .violation(Law::S3, || format!("c{child} is told to {mode:?}, which was not requested"));
        }
        let is_starting = matches!(state, State::Starting(_));
        if !is_starting && !(child + 1..self.children.len()).all(|other| self.is_done(other)) {
            self.verdict.violation(Law::S2, || format!("c{child} is stopped before one that comes after it"));
        }
    }

    /// Whether a child needs no action, not even for what it left when no life follows.
    pub(super) fn is_done(&self, child: usize) -> bool {
        let known = &self.children[child];
        match known.state {
            State::Stuck => true,
            State::Down => self.end.is_none() || !self.may_leave(child) || known.is_rest_ended,
            State::Unseen | State::Starting(_) | State::Up { .. } | State::Stopping { .. } => false,
        }
    }

    /// Whether something may be left of a child that does not run.
    pub(super) fn may_leave(&self, child: usize) -> bool {
        self.plan.children[child].may_leave && self.children[child].has_run
    }

    fn stops_for_a_restart(&mut self, child: usize, mode: StopMode) {
        let Some(group) = self.groups.iter().find(|group| group.members.contains(&child)) else {
            self.verdict
                .violation(Law::S1, || format!("c{child} is stopped, and is in no group that restarts"));
            return;
        };
        let is_down = |other: &usize| *other <= child || self.children[*other].state.is_at_rest();
        if !group.members.iter().all(is_down) {
            self.verdict.violation(Law::S2, || format!("c{child} is stopped before one that comes after it"));
        }
        if group.down_since.is_some() {
            self.verdict.violation(Law::S1, || format!("c{child} is stopped while its group comes up"));
        }
        if mode != StopMode::Detach {
            self.verdict.violation(Law::S3, || format!("c{child} is to leave nothing for its next life"));
        }
    }

    fn watches(&mut self, child: usize, key: CallKey) {
        match &mut self.children[child].state {
            State::Up { watch, is_watched } => (*watch, *is_watched) = (key, true),
            state @ (State::Unseen
            | State::Down
            | State::Starting(_)
            | State::Stopping { .. }
            | State::Stuck) => {
                let state = *state;
                self.verdict.violation(Law::S1, || format!("c{child} is watched, and it is {state:?}"));
            }
        }
    }

    pub(super) fn ends(&mut self, ending: &Ending) {
        let Some(end) = &self.end else {
            self.verdict.violation(Law::S1, || "it ends, and nothing asked for that".to_owned());
            return;
        };
        if let Some(child) = (0..self.children.len()).find(|child| !self.is_done(*child)) {
            self.verdict.violation(Law::S4, || format!("it ends, and leaves c{child} behind"));
        }
        if !self.pauses.is_empty() {
            self.verdict.violation(Law::S4, || "it ends, and leaves a timer behind".to_owned());
        }
        let is_right = match end.cause {
            Cause::Asked => *ending == Ending::Normal,
            Cause::Undone | Cause::GaveUp => matches!(ending, Ending::Failed(_)),
        };
        if !is_right {
            self.verdict.violation(Law::S1, || format!("it ends as {ending:?}"));
        }
    }
}
