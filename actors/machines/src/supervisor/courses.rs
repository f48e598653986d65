//! Decides how a group of children is stopped and started again.
//!
//! ```text
//!   a child fell, or its restart was requested
//!        │
//!        ▼   members down, last first         timer           members up, first first
//!    stopping ──────────────────────► pausing ──────► starting ──────────────────────► over
//!                                                                     │ one does not start
//!                                                                     └──► it fell: the next course
//! ```
//!
//! A child belongs to the latest course that includes it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::messages::{ChildEnding, StopOutcome, SupervisorAnswer, SupervisorNews};
use super::spec::{Restart, Strategy};
use super::state::{
    A_SIBLING_FELL, Call, ChildPhase, Course, CourseNumber, CourseReason, CourseStep, Fall, OWN_ACCORD,
    Phase, STOPPED_FOR_A_RESTART, Supervisor, Timer,
};
use crate::kernel::{CallKey, StepContext, StopMode, StopStep};
use crate::vocabulary::Generation;

/// How much longer than the stop deadline the call that stops a child may take: a kill takes a moment too.
const STOP_MARGIN: Duration = Duration::from_secs(5);

impl Supervisor {
    /// The children that must be stopped and restarted together with this one.
    pub(super) fn sharing_the_fate_of(&self, child: usize) -> BTreeSet<usize> {
        let count = self.children.len();
        match self.plan.spec.strategy {
            Strategy::OneForOne => BTreeSet::from([child]),
            Strategy::OneForAll => (0..count).collect(),
            Strategy::RestForOne => (child..count).collect(),
        }
    }

    /// Starts all missing children. Living ones that share the fate of a missing one are stopped first.
    pub(super) fn open(&mut self, missing: BTreeSet<usize>, cx: &mut StepContext<Self>) {
        let asked: Vec<usize> = self.awaiting_restart.iter().map(|(child, _)| *child).collect();
        let mut members: BTreeSet<usize> =
            missing.iter().flat_map(|child| self.sharing_the_fate_of(*child)).collect();
        // A child with a cut-off operation is stopped, whether or not it is started again.
        let is_cut_off = |child: &usize| matches!(self.children[*child].phase, ChildPhase::Unseen);
        members.extend((0..self.children.len()).filter(is_cut_off));
        self.begin_course(CourseReason::Opening, members, Duration::ZERO, cx);
        for child in asked {
            self.restart_now(child, cx);
        }
    }

    /// Restarts a child on request, or skips the pause of a course in progress.
    pub(super) fn restart_now(&mut self, child: usize, cx: &mut StepContext<Self>) {
        if matches!(self.phase, Phase::TakingStock { .. }) {
            return;
        }
        match self.courses.iter_mut().find(|course| course.members.contains(&child)) {
            Some(Course { step: CourseStep::Pausing, number, .. }) => {
                let number = *number;
                cx.cancel_timer(Timer::Pause(number));
                self.pause_over(number, cx);
            }
            Some(Course { step: CourseStep::Stopping { pause }, .. }) => *pause = Duration::ZERO,
            Some(Course { step: CourseStep::Starting, .. }) => {}
            None => {
                let only = BTreeSet::from([child]);
                self.begin_course(CourseReason::Asked, only, Duration::ZERO, cx);
            }
        }
    }

    pub(super) fn begin_course(
        &mut self,
        reason: CourseReason,
        members: BTreeSet<usize>,
        pause: Duration,
        cx: &mut StepContext<Self>,
    ) {
        for course in &mut self.courses {
            course.members.retain(|member| !members.contains(member));
        }
        for left in self.courses.extract_if(.., |course| course.members.is_empty()) {
            cx.cancel_timer(Timer::Pause(left.number));
        }
        self.last_course = CourseNumber(self.last_course.0 + 1);
        let number = self.last_course;
        self.courses.push(Course { number, reason, members, step: CourseStep::Stopping { pause } });
        self.advance(cx);
    }

    pub(super) fn is_going_down(&self, child: usize) -> bool {
        self.courses.iter().any(|course| {
            matches!(course.step, CourseStep::Stopping { .. }) && course.members.contains(&child)
        })
    }

    /// Executes all steps of the courses that are possible now.
    pub(super) fn advance(&mut self, cx: &mut StepContext<Self>) {
        let mut courses = std::mem::take(&mut self.courses);
        for course in &mut courses {
            self.advance_course(course, cx);
        }
        courses.retain(|course| !course.members.is_empty());
        self.courses = courses;
        self.tell_if_open(cx);
    }

    fn advance_course(&mut self, course: &mut Course, cx: &mut StepContext<Self>) {
        if let CourseStep::Stopping { pause } = course.step {
            if !self.bring_down(&course.members, cx) {
                return;
            }
            self.leave_temporary_ones(course);
            if course.members.is_empty() {
                return;
            }
            if pause.is_zero() {
                course.step = CourseStep::Starting;
            } else {
                course.step = CourseStep::Pausing;
                cx.start_timer(Timer::Pause(course.number), cx.now() + pause);
            }
        }
        if course.step == CourseStep::Starting {
            self.bring_up(&mut course.members, cx);
        }
    }

    /// Stops the last running member. True when none runs.
    fn bring_down(&mut self, members: &BTreeSet<usize>, cx: &mut StepContext<Self>) -> bool {
        for member in members.iter().rev() {
            match self.children[*member].phase {
                ChildPhase::Starting { .. } | ChildPhase::Running { .. } | ChildPhase::Unseen => {
                    self.stop(*member, OWN_ACCORD, cx);
                    return false;
                }
                ChildPhase::Stopping { .. } => return false,
                ChildPhase::Waiting | ChildPhase::Ended | ChildPhase::Stuck { .. } | ChildPhase::Closed => {}
            }
        }
        true
    }

    pub(super) fn why_it_goes_down(&self, child: usize) -> &'static str {
        let course = self.courses.iter().find(|course| course.members.contains(&child));
        match course.map(|course| course.reason) {
            Some(CourseReason::Fallen) => A_SIBLING_FELL,
            Some(CourseReason::Opening | CourseReason::Asked) | None => STOPPED_FOR_A_RESTART,
        }
    }

    /// A temporary child that was stopped with its siblings stays down, unless its restart was requested. One never up must
    /// still be started.
    fn leave_temporary_ones(&mut self, course: &mut Course) {
        if course.reason == CourseReason::Asked {
            return;
        }
        let members = std::mem::take(&mut course.members);
        let (temporary, others) = members.into_iter().partition::<BTreeSet<_>, _>(|member| {
            let is_wanted = self.awaiting_restart.iter().any(|(awaited, _)| awaited == member);
            let has_run = self.children[*member].has_run;
            self.spec_of(*member).restart == Restart::Temporary && has_run && !is_wanted
        });
        course.members = others;
        for member in temporary {
            self.children[member].phase = ChildPhase::Ended;
        }
    }

    /// Starts the first member that does not run; those that run leave the course.
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
                // A cut-off child is stopped by now, and once a child is stuck or closed there are no courses.
                ChildPhase::Unseen | ChildPhase::Stuck { .. } | ChildPhase::Closed => return,
            }
        }
    }

    /// The pause of a course is over. A missing course was replaced by a later one.
    pub(super) fn pause_over(&mut self, number: CourseNumber, cx: &mut StepContext<Self>) {
        let Some(at) = self.courses.iter().position(|course| course.number == number) else { return };
        self.courses[at].step = CourseStep::Starting;
        let mut members = std::mem::take(&mut self.courses[at].members);
        self.bring_up(&mut members, cx);
        self.courses[at].members = members;
    }

    fn tell_if_open(&mut self, cx: &mut StepContext<Self>) {
        if !self.courses.is_empty() {
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

    /// A stop has ended: continues the shutdown, or the course of the child.
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
        // One that was stopped for a restart is stopped for good in its turn, if something may be left of it.
        if is_closing && (is_final || is_stuck || !self.may_have_left(child)) {
            self.closed(child, ending, cx);
            return;
        }
        if let StopOutcome::Stuck { reason } = outcome {
            // A second one would share its address, so it cannot be restarted.
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

    /// How a child ended that was to be stopped: before the stop, if it is known already that it did not run then.
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

    /// Records why a child is down that was stopped for a course, unless that is known already.
    fn fell_by_stop(&mut self, child: usize, ending: ChildEnding, cx: &mut StepContext<Self>) {
        let why = self.why_it_goes_down(child);
        let fall = match &ending.ending {
            // The cleanup after a failed start is no news, and a child that is stuck is not down.
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
