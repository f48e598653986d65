//! Stops a group of children and starts it again.
//!
//! ```text
//!   a child fell, or its restart was requested
//!        │
//!        ▼   members down, last first         timer           members up, first first
//!    stopping ──────────────────────► pausing ──────► starting ──────────────────────► over
//!                                                                     │ one cannot start
//!                                                                     └──► it fell: the next group restart
//! ```
//!
//! A child belongs to the latest group restart that includes it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::messages::{ChildEnding, StopOutcome, SupervisorAnswer, SupervisorNews};
use super::spec::{Restart, Strategy};
use super::state::{
    A_SIBLING_FELL, Call, ChildPhase, Fall, GroupRestart, OWN_STOP_MODE, Phase, RestartNumber, RestartReason,
    RestartStep, STOPPED_FOR_A_RESTART, Supervisor, Timer,
};
use crate::kernel::{CallKey, StepContext, StopMode, StopStep};
use crate::vocabulary::Generation;

/// The extra time of the call that stops a child, beyond the stop deadline: a kill takes a moment too.
const STOP_MARGIN: Duration = Duration::from_secs(5);

impl Supervisor {
    /// The children that must be stopped and restarted together with this one.
    pub(super) fn restarted_with(&self, child: usize) -> BTreeSet<usize> {
        let count = self.children.len();
        match self.plan.spec.strategy {
            Strategy::OneForOne => BTreeSet::from([child]),
            Strategy::OneForAll => (0..count).collect(),
            Strategy::RestForOne => (child..count).collect(),
        }
    }

    /// Starts all missing children. Living children that are restarted with a missing one are stopped first.
    pub(super) fn open(&mut self, missing: BTreeSet<usize>, cx: &mut StepContext<Self>) {
        let asked: Vec<usize> = self.awaiting_restart.iter().map(|(child, _)| *child).collect();
        let mut members: BTreeSet<usize> =
            missing.iter().flat_map(|child| self.restarted_with(*child)).collect();
        // A child with a cut-off operation is stopped, whether or not it is started again.
        let is_cut_off = |child: &usize| matches!(self.children[*child].phase, ChildPhase::Unseen);
        members.extend((0..self.children.len()).filter(is_cut_off));
        self.begin_group_restart(RestartReason::Opening, members, Duration::ZERO, cx);
        for child in asked {
            self.restart_now(child, cx);
        }
    }

    /// Restarts a child on request, or skips the pause of a group restart in progress.
    pub(super) fn restart_now(&mut self, child: usize, cx: &mut StepContext<Self>) {
        if matches!(self.phase, Phase::FindingChildren { .. }) {
            return;
        }
        match self.group_restarts.iter_mut().find(|group| group.members.contains(&child)) {
            Some(GroupRestart { step: RestartStep::Pausing, number, .. }) => {
                let number = *number;
                cx.cancel_timer(Timer::Pause(number));
                self.pause_over(number, cx);
            }
            Some(GroupRestart { step: RestartStep::Stopping { pause }, .. }) => *pause = Duration::ZERO,
            Some(GroupRestart { step: RestartStep::Starting, .. }) => {}
            None => {
                let only = BTreeSet::from([child]);
                self.begin_group_restart(RestartReason::Asked, only, Duration::ZERO, cx);
            }
        }
    }

    pub(super) fn begin_group_restart(
        &mut self,
        reason: RestartReason,
        members: BTreeSet<usize>,
        pause: Duration,
        cx: &mut StepContext<Self>,
    ) {
        for group in &mut self.group_restarts {
            group.members.retain(|member| !members.contains(member));
        }
        for left in self.group_restarts.extract_if(.., |group| group.members.is_empty()) {
            cx.cancel_timer(Timer::Pause(left.number));
        }
        self.last_restart = RestartNumber(self.last_restart.0 + 1);
        let number = self.last_restart;
        self.group_restarts.push(GroupRestart {
            number,
            reason,
            members,
            step: RestartStep::Stopping { pause },
        });
        self.advance(cx);
    }

    pub(super) fn is_going_down(&self, child: usize) -> bool {
        self.group_restarts
            .iter()
            .any(|group| matches!(group.step, RestartStep::Stopping { .. }) && group.members.contains(&child))
    }

    /// Executes all steps of the group restarts that are possible now.
    pub(super) fn advance(&mut self, cx: &mut StepContext<Self>) {
        let mut groups = std::mem::take(&mut self.group_restarts);
        for group in &mut groups {
            self.advance_group_restart(group, cx);
        }
        groups.retain(|group| !group.members.is_empty());
        self.group_restarts = groups;
        self.tell_if_open(cx);
    }

    fn advance_group_restart(&mut self, group: &mut GroupRestart, cx: &mut StepContext<Self>) {
        if let RestartStep::Stopping { pause } = group.step {
            if !self.bring_down(&group.members, cx) {
                return;
            }
            self.leave_temporary_ones(group);
            if group.members.is_empty() {
                return;
            }
            if pause.is_zero() {
                group.step = RestartStep::Starting;
            } else {
                group.step = RestartStep::Pausing;
                cx.start_timer(Timer::Pause(group.number), cx.now() + pause);
            }
        }
        if group.step == RestartStep::Starting {
            self.bring_up(&mut group.members, cx);
        }
    }

    /// Stops the last running member. True when none runs.
    fn bring_down(&mut self, members: &BTreeSet<usize>, cx: &mut StepContext<Self>) -> bool {
        for member in members.iter().rev() {
            match self.children[*member].phase {
                ChildPhase::Starting { .. } | ChildPhase::Running { .. } | ChildPhase::Unseen => {
                    self.stop(*member, OWN_STOP_MODE, cx);
                    return false;
                }
                ChildPhase::Stopping { .. } => return false,
                ChildPhase::Waiting | ChildPhase::Ended | ChildPhase::Stuck { .. } | ChildPhase::Closed => {}
            }
        }
        true
    }

    pub(super) fn why_it_goes_down(&self, child: usize) -> &'static str {
        let group = self.group_restarts.iter().find(|group| group.members.contains(&child));
        match group.map(|group| group.reason) {
            Some(RestartReason::Fallen) => A_SIBLING_FELL,
            Some(RestartReason::Opening | RestartReason::Asked) | None => STOPPED_FOR_A_RESTART,
        }
    }

    /// A temporary child that was stopped with its siblings stays down, unless its restart was requested. A child that has never run must
    /// still be started.
    fn leave_temporary_ones(&mut self, group: &mut GroupRestart) {
        if group.reason == RestartReason::Asked {
            return;
        }
        let members = std::mem::take(&mut group.members);
        let (temporary, others) = members.into_iter().partition::<BTreeSet<_>, _>(|member| {
            let is_wanted = self.awaiting_restart.iter().any(|(awaited, _)| awaited == member);
            let has_run = self.children[*member].has_run;
            self.spec_of(*member).restart == Restart::Temporary && has_run && !is_wanted
        });
        group.members = others;
        for member in temporary {
            self.children[member].phase = ChildPhase::Ended;
        }
    }

    /// Starts the first member that does not run; members that run leave the group restart.
    fn bring_up(&mut self, members: &mut BTreeSet<usize>, cx: &mut StepContext<Self>) {
        while let Some(member) = members.first().copied() {
            match self.children[member].phase {
                ChildPhase::Running { .. } => {
                    members.pop_first();
                }
                ChildPhase::Waiting | ChildPhase::Ended => {
                    self.start(member, cx);
                    return;
                }
                // The outcome of its call leads to this function again.
                ChildPhase::Starting { .. } | ChildPhase::Stopping { .. } => return,
                // A cut-off child is stopped by now, and once a child is stuck or closed there are no group restarts.
                ChildPhase::Unseen | ChildPhase::Stuck { .. } | ChildPhase::Closed => return,
            }
        }
    }

    /// The pause of a group restart is over. A missing group restart was replaced by a later one.
    pub(super) fn pause_over(&mut self, number: RestartNumber, cx: &mut StepContext<Self>) {
        let Some(at) = self.group_restarts.iter().position(|group| group.number == number) else { return };
        self.group_restarts[at].step = RestartStep::Starting;
        let mut members = std::mem::take(&mut self.group_restarts[at].members);
        self.bring_up(&mut members, cx);
        self.group_restarts[at].members = members;
    }

    fn tell_if_open(&mut self, cx: &mut StepContext<Self>) {
        if !self.group_restarts.is_empty() {
            return;
        }
        self.phase = Phase::Open;
        for id in std::mem::take(&mut self.awaiting_start) {
            cx.reply(id, SupervisorAnswer::AwaitStarted(Ok(())));
        }
    }

    pub(super) fn stop(&mut self, child: usize, mode: StopMode, cx: &mut StepContext<Self>) {
        let life: Generation = self.children[child].life;
        let key = self.next_key(life);
        let is_final = matches!(self.phase, Phase::Closing(_));
        self.children[child].phase = ChildPhase::Stopping { key, mode, is_final, begun: cx.now() };
        let (deadline, longest) = (self.spec_of(child).stop_deadline, self.spec_of(child).stop_longest);
        let within = deadline.max(longest).saturating_add(STOP_MARGIN);
        cx.call(key, within, Call::StopChild { child, mode, deadline, is_final });
    }

    /// A stop has ended: continues the shutdown, or the group restart of the child.
    pub(super) fn stopped(
        &mut self,
        child: usize,
        key: CallKey,
        (outcome, below): (&StopOutcome, &[StopStep]),
        cx: &mut StepContext<Self>,
    ) {
        let ChildPhase::Stopping { key: current, is_final, begun, .. } = self.children[child].phase else {
            return;
        };
        if current != key {
            return;
        }
        let outcome = self.what_is_known(child, outcome);
        let took = cx.now().since(begun);
        let name = self.name_of(child);
        let ending = ChildEnding { name, ending: outcome.clone(), below: below.to_vec(), took };
        let is_closing = matches!(self.phase, Phase::Closing(_));
        let is_stuck = matches!(outcome, StopOutcome::Stuck { .. });
        // A child that was stopped for a restart is stopped finally in its turn, if something may be left of it.
        if is_closing && (is_final || is_stuck || !self.may_have_left(child)) {
            self.closed(child, ending, cx);
            return;
        }
        if let StopOutcome::Stuck { reason } = outcome {
            // A second actor would share its address, so it cannot be restarted.
            self.children[child].phase = ChildPhase::Stuck { reason: reason.clone() };
            self.escalate(format!("{} could not be ended: {reason}", ending.name), cx);
            return;
        }
        self.fell_by_stop(child, ending, cx);
        self.children[child].phase = ChildPhase::Waiting;
        if is_closing {
            self.close_next(cx);
        } else {
            self.advance(cx);
        }
    }

    /// How a child that was to be stopped has ended: before the stop, if it is already known that it did not run then.
    fn what_is_known(&self, child: usize, outcome: &StopOutcome) -> StopOutcome {
        match outcome {
            StopOutcome::NotStarted => self.ended_before(child),
            StopOutcome::EndedBefore { .. }
                if self.may_have_left(child) && self.children[child].fall.is_some() =>
            {
                self.ended_before(child)
            }
            StopOutcome::Stopped
            | StopOutcome::Killed { .. }
            | StopOutcome::Crashed { .. }
            | StopOutcome::EndedBefore { .. }
            | StopOutcome::Stuck { .. } => outcome.clone(),
        }
    }

    /// Records why a child that was stopped for a group restart is down, unless the reason is already known.
    fn fell_by_stop(&mut self, child: usize, ending: ChildEnding, cx: &mut StepContext<Self>) {
        let why = self.why_it_goes_down(child);
        let fall = match &ending.ending {
            // The cleanup after a failed start is not published, and a child that is stuck is not down.
            StopOutcome::NotStarted | StopOutcome::Stuck { .. } => return,
            StopOutcome::EndedBefore { reason, in_order } => {
                Fall { reason: reason.clone(), in_order: *in_order }
            }
            StopOutcome::Stopped => Fall::in_order(why),
            killed @ (StopOutcome::Killed { .. } | StopOutcome::Crashed { .. }) => {
                Fall::of(format!("{why}, and {killed}"))
            }
        };
        if !matches!(ending.ending, StopOutcome::EndedBefore { .. }) {
            cx.publish(SupervisorNews::ChildStopped(ending));
        }
        self.children[child].fall.get_or_insert(fall);
    }
}
