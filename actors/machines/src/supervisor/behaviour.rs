//! The decisions of the supervisor: which child to start, stop, watch or restart.

use std::time::Duration;

use super::messages::{
    AwaitStarted, DescribeTree, RestartChild, RestartError, Shutdown, StartError, StopOutcome,
    SupervisorAnswer, SupervisorAsk, SupervisorNews, TreeNode,
};
use super::spec::{Plan, Restart};
use super::state::{
    Call, Child, ChildPhase, ClosingCause, Fall, FoundChild, OWN_STOP_MODE, Outcome, Phase, RestartNumber,
    RestartReason, STOPPED_FOR_A_RESTART, Supervisor, Timer, WAITERS_MAX,
};
use crate::kernel::{AskId, CallKey, CallLost, Ending, Input, Machine, Never, StepContext, StopStep};
use crate::vocabulary::{Attempt, BackoffState, Generation, Moment, RestartHistory};

/// The deadline of one call that watches a child; the call is then repeated.
const WATCH: Duration = Duration::from_secs(3_600);
/// The deadline for the check of the children's slots; it does not block.
const FIND_DEADLINE: Duration = Duration::from_secs(5);

impl Machine for Supervisor {
    const KIND: &'static str = "supervisor";
    type Config = Plan;
    type Image = ();
    type Ask = SupervisorAsk;
    type Answer = SupervisorAnswer;
    type Call = Call;
    type Outcome = Outcome;
    type Timer = Timer;
    type Change = Never;
    type News = SupervisorNews;
    type View = TreeNode;

    fn restore(plan: &Plan, (): (), _moment: Moment) -> Self {
        let child = || Child {
            phase: ChildPhase::Unseen,
            life: Generation::default(),
            has_run: false,
            restarts: 0,
            backoff: BackoffState::default(),
            fall: None,
        };
        Self {
            plan: plan.clone(),
            phase: Phase::FindingChildren { key: CallKey::default() },
            children: plan.children.iter().map(|_| child()).collect(),
            group_restarts: Vec::new(),
            last_restart: RestartNumber::default(),
            last_attempt: Attempt::default(),
            history: RestartHistory::default(),
            awaiting_start: Vec::new(),
            awaiting_restart: Vec::new(),
            describing: None,
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.find_children(cx),
            Input::Asked { id, asked_at: _, ask } => self.asked(*id, ask, cx),
            Input::Returned { key, call: _, outcome: Ok(outcome) } => {
                self.returned(*key, outcome, cx);
            }
            Input::Returned { key, call, outcome: Err(lost) } => {
                self.lost(*key, *call, lost, cx);
            }
            Input::Elapsed(Timer::Pause(group)) => self.pause_over(*group, cx),
            Input::StopRequested(mode) => self.close(ClosingCause::Asked, *mode, cx),
        }
    }

    fn view(&self) -> TreeNode {
        self.tree(None, &[])
    }

    fn stop_steps(&self) -> Vec<StopStep> {
        let Phase::Closing(closing) = &self.phase else { return Vec::new() };
        closing.endings.iter().flat_map(|child| child.steps(&self.plan.name)).collect()
    }
}

impl Supervisor {
    /// Nothing is started before the living children are known: children survive a crash of the supervisor.
    fn find_children(&mut self, cx: &mut StepContext<Self>) {
        let key = self.next_key(Generation::default());
        self.phase = Phase::FindingChildren { key };
        cx.call(key, FIND_DEADLINE, Call::FindChildren);
    }

    // === Messages ===

    fn asked(&mut self, id: AskId, ask: &SupervisorAsk, cx: &mut StepContext<Self>) {
        match ask {
            SupervisorAsk::AwaitStarted(AwaitStarted) => self.await_started(id, cx),
            SupervisorAsk::RestartChild(RestartChild { name }) => {
                self.restart_asked(id, name, cx);
            }
            SupervisorAsk::DescribeTree(DescribeTree) => self.describe(id, cx),
            SupervisorAsk::Shutdown(Shutdown { mode }) => self.shutdown_asked(id, *mode, cx),
        }
    }

    fn await_started(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        let answer = match &self.phase {
            Phase::Open if self.group_restarts.is_empty() => Ok(()),
            Phase::Closing(closing) if matches!(closing.cause, ClosingCause::Asked) => {
                Err(StartError::Stopping)
            }
            // Other callers receive the cause after the rollback.
            Phase::FindingChildren { .. } | Phase::Opening | Phase::Open | Phase::Closing(_) => {
                if self.awaiting_start.len() < WAITERS_MAX {
                    self.awaiting_start.push(id);
                    return;
                }
                Err(StartError::TooManyWaiting { limit: WAITERS_MAX })
            }
        };
        cx.reply(id, SupervisorAnswer::AwaitStarted(answer));
    }

    fn restart_asked(&mut self, id: AskId, name: &str, cx: &mut StepContext<Self>) {
        let found = self.plan.children.iter().position(|spec| spec.name == name);
        let refusal = match (found, &self.phase) {
            (None, _) => RestartError::Unknown { name: name.to_owned() },
            (Some(_), Phase::Closing(_)) => RestartError::Stopping,
            (Some(child), Phase::FindingChildren { .. } | Phase::Opening | Phase::Open) => {
                if self.awaiting_restart.len() < WAITERS_MAX {
                    self.awaiting_restart.push((child, id));
                    self.restart_now(child, cx);
                    return;
                }
                RestartError::TooManyWaiting { limit: WAITERS_MAX }
            }
        };
        cx.reply(id, SupervisorAnswer::RestartChild(Err(refusal)));
    }

    // === Outcomes of calls ===

    fn returned(&mut self, key: CallKey, outcome: &Outcome, cx: &mut StepContext<Self>) {
        match outcome {
            Outcome::Found(children) => self.found_children(key, children, cx),
            Outcome::Started { child, result } if self.is_starting(*child, key) => match result {
                Ok(()) => self.started(*child, key, cx),
                Err(reason) => self.start_failed(*child, reason, cx),
            },
            Outcome::Ended { child, ending } if self.is_running(*child, key) => {
                self.ended(*child, ending, cx);
            }
            Outcome::Stopped { child, outcome, below } => {
                self.stopped(*child, key, (outcome, below), cx);
            }
            Outcome::Described { own, children } => self.described(key, Some(*own), children, cx),
            // They belong to an earlier life of the child.
            Outcome::Started { .. } | Outcome::Ended { .. } => {}
        }
    }

    fn lost(&mut self, key: CallKey, call: Call, lost: &CallLost, cx: &mut StepContext<Self>) {
        match call {
            Call::FindChildren if matches!(self.phase, Phase::FindingChildren { key: current } if current == key) =>
            {
                let reason = format!("it could not list its children: {lost}");
                self.escalate(reason, cx);
            }
            Call::StartChild { child } if self.is_starting(child, key) => {
                self.start_failed(child, &lost.to_string(), cx);
            }
            Call::AwaitEnd { child } if self.is_running(child, key) => match lost {
                CallLost::DeadlineExceeded(_) => cx.call(key, WATCH, call),
                // The shutdown stops it in its turn, watched or not.
                CallLost::Crashed(_) | CallLost::Busy(_)
                    if self.is_closing() || self.is_going_down(child) => {}
                CallLost::Crashed(_) | CallLost::Busy(_) => {
                    self.fell(child, &format!("it could not be watched: {lost}"), cx);
                }
            },
            Call::StopChild { child, .. } => {
                let outcome = StopOutcome::Stuck { reason: lost.to_string() };
                self.stopped(child, key, (&outcome, &[]), cx);
            }
            Call::DescribeChildren { .. } => self.described(key, None, &[], cx),
            // They belong to an earlier life of the child, or to an earlier phase.
            Call::FindChildren | Call::StartChild { .. } | Call::AwaitEnd { .. } => {}
        }
    }

    const fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing(_))
    }

    fn is_starting(&self, child: usize, key: CallKey) -> bool {
        matches!(self.children[child].phase, ChildPhase::Starting { key: current } if current == key)
    }

    fn is_running(&self, child: usize, key: CallKey) -> bool {
        matches!(self.children[child].phase, ChildPhase::Running { key: current } if current == key)
    }

    fn found_children(&mut self, key: CallKey, children: &[FoundChild], cx: &mut StepContext<Self>) {
        if !matches!(self.phase, Phase::FindingChildren { key: current } if current == key) {
            return;
        }
        self.phase = Phase::Opening;
        let missing =
            (0..self.children.len()).filter(|child| self.note_found(*child, &children[*child], cx)).collect();
        self.open(missing, cx);
    }

    /// Records the state of a child that was found, and returns whether it must be started.
    fn note_found(&mut self, child: usize, found: &FoundChild, cx: &mut StepContext<Self>) -> bool {
        let is_temporary = self.spec_of(child).restart == Restart::Temporary;
        let (phase, is_missing, has_run) = match found {
            FoundChild::Absent => (ChildPhase::Waiting, true, false),
            FoundChild::Alive => (ChildPhase::Running { key: self.watch(child, cx) }, false, true),
            // Its interrupted operation starts again.
            FoundChild::CutOff { has_run } => (ChildPhase::Unseen, !(is_temporary && *has_run), *has_run),
            FoundChild::Stopped { .. } if is_temporary => (ChildPhase::Ended, false, true),
            FoundChild::Stopped { .. } => (ChildPhase::Waiting, true, true),
            FoundChild::Ended(ending) if self.spec_of(child).restart.is_due_after(ending) => {
                (ChildPhase::Waiting, true, true)
            }
            FoundChild::Ended(_) => (ChildPhase::Ended, false, true),
        };
        let state = &mut self.children[child];
        (state.phase, state.has_run) = (phase, has_run);
        state.fall = match found {
            FoundChild::Ended(ending) => Some(Fall::ended(ending)),
            FoundChild::Stopped { in_order } => {
                Some(Fall { reason: STOPPED_FOR_A_RESTART.to_owned(), in_order: *in_order })
            }
            FoundChild::Absent | FoundChild::Alive | FoundChild::CutOff { .. } => None,
        };
        is_missing
    }

    fn watch(&mut self, child: usize, cx: &mut StepContext<Self>) -> CallKey {
        let key = self.next_key(self.children[child].life);
        cx.call(key, WATCH, Call::AwaitEnd { child });
        key
    }

    // === Lifecycle of a child ===

    pub(super) fn start(&mut self, child: usize, cx: &mut StepContext<Self>) {
        self.children[child].life = self.children[child].life.next();
        let key = self.next_key(self.children[child].life);
        self.children[child].phase = ChildPhase::Starting { key };
        cx.call(key, self.spec_of(child).start_deadline, Call::StartChild { child });
    }

    fn started(&mut self, child: usize, key: CallKey, cx: &mut StepContext<Self>) {
        cx.call(key, WATCH, Call::AwaitEnd { child });
        let state = &mut self.children[child];
        state.phase = ChildPhase::Running { key };
        state.fall = None;
        state.restarts += u64::from(state.has_run);
        state.has_run = true;
        let restarts = state.restarts;
        cx.publish(SupervisorNews::ChildStarted { name: self.name_of(child), restarts });
        for (_, id) in self.awaiting_restart.extract_if(.., |(awaited, _)| *awaited == child) {
            cx.reply(id, SupervisorAnswer::RestartChild(Ok(())));
        }
        self.advance(cx);
    }

    /// A failed first start rolls back the start of the supervisor; a later failed start counts as a fall (S2).
    fn start_failed(&mut self, child: usize, reason: &str, cx: &mut StepContext<Self>) {
        let name = self.name_of(child);
        cx.publish(SupervisorNews::ChildStartFailed { name: name.clone(), reason: reason.to_owned() });
        for (_, id) in self.awaiting_restart.extract_if(.., |(awaited, _)| *awaited == child) {
            let refusal = RestartError::NotStarted { name: name.clone(), reason: reason.to_owned() };
            cx.reply(id, SupervisorAnswer::RestartChild(Err(refusal)));
        }
        let how = format!("it did not start: {reason}");
        if self.children[child].has_run {
            self.fell(child, &how, cx);
        } else {
            self.children[child].fall = Some(Fall::of(how));
            let cause = ClosingCause::StartFailed { child: name, reason: reason.to_owned() };
            self.close(cause, OWN_STOP_MODE, cx);
        }
    }

    fn ended(&mut self, child: usize, ending: &Ending, cx: &mut StepContext<Self>) {
        cx.publish(SupervisorNews::ChildEnded { name: self.name_of(child), ending: ending.clone() });
        self.children[child].phase = ChildPhase::Ended;
        self.children[child].fall = Some(Fall::ended(ending));
        match &self.phase {
            // The shutdown handles it in its turn.
            Phase::Closing(_) => {}
            Phase::FindingChildren { .. } | Phase::Opening | Phase::Open => {
                if self.is_going_down(child) {
                    // Its group restart was going to stop it anyway.
                    self.children[child].phase = ChildPhase::Waiting;
                } else if self.spec_of(child).restart.is_due_after(ending) {
                    self.fell(child, &ending.to_string(), cx);
                }
            }
        }
    }

    /// Restarts a child, and its siblings according to the strategy; gives up if the budget is exhausted.
    fn fell(&mut self, child: usize, how: &str, cx: &mut StepContext<Self>) {
        let name = self.name_of(child);
        self.children[child].fall = Some(Fall::of(how));
        if matches!(self.children[child].phase, ChildPhase::Ended) {
            self.children[child].phase = ChildPhase::Waiting;
        }
        let budget = self.plan.spec.budget;
        if !self.history.charge(&budget, cx.now()) {
            let reason = format!(
                "children failed more than {} times within {:?}; the last was {name}: {how}",
                budget.limit, budget.window
            );
            self.escalate(reason, cx);
            return;
        }
        let policy = self.spec_of(child).backoff;
        let pause = self.children[child].backoff.failed(&policy, cx.moment());
        cx.publish(SupervisorNews::ChildRestarting { name, pause });
        let members = self.restarted_with(child);
        self.begin_group_restart(RestartReason::Fallen, members, pause, cx);
    }

    pub(super) fn escalate(&mut self, reason: String, cx: &mut StepContext<Self>) {
        cx.publish(SupervisorNews::Escalated { reason: reason.clone() });
        self.close(ClosingCause::Escalated { reason }, OWN_STOP_MODE, cx);
    }
}
