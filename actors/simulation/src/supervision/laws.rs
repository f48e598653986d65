//! Checks the inputs of a supervisor about its children against its required reactions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use callboard_actors::shell::{AskId, CallKey, CallLost, Effect, Ending, Input, StopMode};
use callboard_actors::supervisor::{
    Call, FoundChild, Outcome, Plan, Restart, StopOutcome, Supervisor, SupervisorAsk, SupervisorNews, Timer,
};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Constant;
use super::environment::Environment;
use super::groups::{Group, Reason, is_due_after};
use super::known::{Cause, End, Known, State};

/// Observes every step of a supervisor, and checks it against the rules of OTP.
#[derive(Debug, Clone, Hash)]
pub struct SupervisionLaws {
    pub(super) plan: Constant<Plan>,
    pub(super) children: Vec<Known>,
    /// The children that stop and start together, the oldest group first.
    pub(super) groups: Vec<Group>,
    /// The restarts that still count.
    charged: Vec<Timestamp>,
    /// The pauses that run.
    pub(super) pauses: BTreeMap<Timer, Timestamp>,
    pub(super) has_found: bool,
    /// The callers that wait until a child is up again.
    pub(super) wanted: Vec<(usize, AskId)>,
    /// The end of the supervisor, if it has begun.
    pub(super) end: Option<End>,
    /// The notification that this step must send.
    pub(super) duty: Duty,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

/// The notification that a step must send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Duty {
    #[default]
    Nothing,
    /// This child ended, with a pause between these bounds.
    Restarting { child: usize, pause: (Duration, Duration) },
    /// The supervisor gives up.
    GivingUp,
}

impl SupervisionLaws {
    /// No step yet.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let children = vec![Known::default(); plan.children.len()];
        Self {
            plan: Constant(plan),
            children,
            groups: Vec::new(),
            charged: Vec::new(),
            pauses: BTreeMap::new(),
            has_found: false,
            wanted: Vec::new(),
            end: None,
            duty: Duty::Nothing,
            verdict: Verdict::NONE,
        }
    }

    // === Inputs ===

    fn heard(&mut self, moment: Moment, input: &Input<Supervisor>) {
        match input {
            Input::Resumed => {}
            Input::Asked { id, ask, .. } => self.heard_ask(moment.now, *id, ask),
            Input::Returned { key, outcome: Ok(outcome), .. } => {
                self.heard_outcome(moment.now, *key, outcome);
            }
            Input::Returned { key, call, outcome: Err(lost) } => {
                self.heard_loss(moment.now, *key, *call, lost);
            }
            Input::Elapsed(timer) => {
                self.pauses.remove(timer);
            }
            Input::StopRequested(mode) => self.begin_end(moment.now, Cause::Asked, *mode),
        }
    }

    fn heard_ask(&mut self, now: Timestamp, id: AskId, ask: &SupervisorAsk) {
        match ask {
            SupervisorAsk::RestartChild(asked) => {
                let place = self.plan.children.iter().position(|spec| spec.name == asked.name);
                if let Some(child) = place.filter(|_| self.end.is_none()) {
                    self.wanted.push((child, id));
                    if self.has_found {
                        self.hasten(child);
                    }
                }
            }
            SupervisorAsk::Shutdown(shutdown) => self.begin_end(now, Cause::Asked, shutdown.mode),
            SupervisorAsk::AwaitStarted(_) | SupervisorAsk::DescribeTree(_) => {}
        }
    }

    fn heard_outcome(&mut self, now: Timestamp, key: CallKey, outcome: &Outcome) {
        match outcome {
            Outcome::Found(children) if !self.has_found && self.end.is_none() => self.heard_found(children),
            Outcome::Started { child, result } if self.children[*child].state == State::Starting(key) => {
                match result {
                    Ok(()) => self.is_up(*child, key),
                    Err(_) => self.start_failed(now, *child),
                }
            }
            Outcome::Ended { child, ending } if self.is_watched_by(*child, key) => {
                self.ended(now, *child, ending);
            }
            Outcome::Stopped { child, outcome, .. } => self.stopped(now, *child, key, outcome),
            // They arrive late, or are only shown.
            Outcome::Found(_)
            | Outcome::Started { .. }
            | Outcome::Ended { .. }
            | Outcome::Described { .. } => {}
        }
    }

    fn is_watched_by(&self, child: usize, key: CallKey) -> bool {
        matches!(self.children[child].state, State::Up { watch, .. } if watch == key)
    }

    fn heard_loss(&mut self, now: Timestamp, key: CallKey, call: Call, lost: &CallLost) {
        match call {
            Call::FindChildren if self.end.is_none() => self.give_up(now),
            Call::StartChild { child } if self.children[child].state == State::Starting(key) => {
                self.start_failed(now, child);
            }
            Call::AwaitEnd { child } if self.is_watched_by(child, key) => {
                if let (CallLost::DeadlineExceeded(_), State::Up { is_watched, .. }) =
                    (lost, &mut self.children[child].state)
                {
                    *is_watched = false;
                } else if !self.is_going_down(child) {
                    self.fell(now, child);
                }
            }
            Call::StopChild { child, .. } => {
                self.stopped(now, child, key, &StopOutcome::Stuck { reason: lost.to_string() });
            }
            Call::FindChildren
            | Call::StartChild { .. }
            | Call::AwaitEnd { .. }
            | Call::DescribeChildren { .. } => {}
        }
    }

    /// Living children continue, and missing ones are started, with the children of their group.
    fn heard_found(&mut self, children: &[FoundChild]) {
        self.has_found = true;
        let mut members = BTreeSet::new();
        for (child, found) in children.iter().enumerate() {
            let known = &mut self.children[child];
            known.has_run |= !matches!(found, FoundChild::Absent | FoundChild::CutOff { has_run: false });
            let restart = self.plan.children[child].restart;
            let (state, is_due) = match found {
                FoundChild::Absent => (State::Down, true),
                FoundChild::Alive => (State::Up { watch: CallKey::default(), is_watched: false }, false),
                FoundChild::CutOff { has_run } => (State::Unseen, restart != Restart::Temporary || !has_run),
                FoundChild::Stopped { .. } => (State::Down, restart != Restart::Temporary),
                FoundChild::Ended(ending) => (State::Down, is_due_after(restart, ending)),
            };
            known.state = state;
            if is_due {
                members.append(&mut self.restarted_with(child));
            } else if state == State::Unseen {
                members.insert(child);
            }
        }
        self.form(members, Duration::ZERO, Reason::Opening);
        for (child, _) in self.wanted.clone() {
            self.hasten(child);
        }
    }

    fn is_up(&mut self, child: usize, key: CallKey) {
        let known = &mut self.children[child];
        known.state = State::Up { watch: key, is_watched: false };
        known.has_run = true;
        self.has_come_up(child);
    }

    /// A first start that fails ends everything; later such a failure counts as a restart.
    fn start_failed(&mut self, now: Timestamp, child: usize) {
        self.children[child].has_failed = true;
        if self.children[child].has_run {
            self.fell(now, child);
        } else {
            self.begin_end(now, Cause::Undone, StopMode::Detach);
        }
    }

    fn ended(&mut self, now: Timestamp, child: usize, ending: &Ending) {
        self.children[child].state = State::Down;
        // A child that was to stop anyway only ended early.
        let is_due = is_due_after(self.plan.children[child].restart, ending);
        if self.end.is_none() && is_due && !self.is_going_down(child) {
            self.fell(now, child);
        }
    }

    fn fell(&mut self, now: Timestamp, child: usize) {
        if self.end.is_some() {
            return;
        }
        let budget = self.plan.spec.budget;
        self.charged.retain(|at| now.since(*at) <= budget.window);
        self.charged.push(now);
        if self.charged.len() > budget.limit as usize {
            self.give_up(now);
            return;
        }
        let pause = self.children[child].pauses.fell(&self.plan.children[child].backoff, now);
        self.duty = Duty::Restarting { child, pause };
        // The supervisor itself reports the exact pause.
        self.form(self.restarted_with(child), pause.0, Reason::Fallen);
    }

    fn give_up(&mut self, now: Timestamp) {
        self.duty = Duty::GivingUp;
        self.begin_end(now, Cause::GaveUp, StopMode::Detach);
    }

    fn stopped(&mut self, now: Timestamp, child: usize, key: CallKey, outcome: &StopOutcome) {
        let State::Stopping { key: current, begun, .. } = self.children[child].state else { return };
        if current != key {
            return;
        }
        let is_stuck = matches!(outcome, StopOutcome::Stuck { .. });
        self.children[child].state = if is_stuck { State::Stuck } else { State::Down };
        let (may_leave, is_last_stop) = (self.may_leave(child), self.children[child].is_last_stop);
        self.children[child].is_rest_ended = is_last_stop;
        self.children[child].has_failed |=
            !matches!(outcome, StopOutcome::NotStarted | StopOutcome::Stuck { .. });
        match &mut self.end {
            // What may be left of it is ended by another, final stop.
            Some(_) if may_leave && !is_last_stop && !is_stuck => {}
            Some(end) => end.stopped.push((child, outcome.clone(), now.since(begun))),
            None if is_stuck => self.give_up(now),
            None => {}
        }
    }

    /// Everything is stopped from now on. The first cause counts, and of two modes the one that ends more.
    fn begin_end(&mut self, now: Timestamp, cause: Cause, mode: StopMode) {
        match &mut self.end {
            Some(end) if mode == StopMode::Stop => end.mode = mode,
            Some(_) => {}
            None => self.end = Some(End { cause, mode, begun: now, stopped: Vec::new() }),
        }
        self.groups.clear();
    }

    // === Required reactions ===

    fn must_go_on(&mut self) {
        match self.duty {
            Duty::Nothing => {}
            Duty::Restarting { child, .. } => {
                self.verdict.violation(Law::S1, || format!("c{child} fell, and that is not told"));
            }
            Duty::GivingUp => self.verdict.violation(Law::S1, || "it gives up, and does not tell".to_owned()),
        }
        self.duty = Duty::Nothing;
        if !self.has_found && self.end.is_none() {
            return;
        }
        if let Some(what) = self.idle_group() {
            self.verdict.violation(Law::S1, || what);
        }
        for (child, known) in self.children.iter().enumerate() {
            if let State::Up { is_watched: false, .. } = known.state {
                self.verdict.violation(Law::S1, || format!("c{child} is up, and is not watched"));
            }
        }
        let Some(end) = &self.end else { return };
        let last = (0..self.children.len()).rev().find(|child| !self.is_done(*child));
        let Some(last) = last else { return };
        let is_stopping =
            matches!(self.children[last].state, State::Stopping { mode, .. } if mode == end.mode);
        if !is_stopping {
            self.verdict.violation(Law::S3, || format!("everything is to end, and c{last} is not stopped"));
        }
        if self.may_leave(last) && !self.children[last].is_last_stop {
            self.verdict.violation(Law::S4, || format!("what c{last} leaves would not be ended"));
        }
    }

    /// It has ended: none of its children may continue to live.
    pub(super) fn ended_with(&mut self, environment: &Environment) {
        for child in 0..self.children.len() {
            if environment.is_alive(child) && !environment.is_stuck(child) {
                self.verdict.violation(Law::S4, || format!("c{child} lives on after the end"));
            }
        }
    }

    /// Whether the state is as required when no further event happens.
    pub(in super::super) fn check_calm(&mut self, environment: &Environment) {
        for child in 0..self.children.len() {
            let is_permanent = self.plan.children[child].restart == Restart::Permanent;
            if is_permanent && !environment.is_alive(child) {
                self.verdict.violation(Law::S1, || format!("c{child} is permanent, and does not live"));
            }
            if !self.children[child].has_run {
                self.verdict.violation(Law::S1, || format!("c{child} was never started"));
            }
        }
        if !self.groups.is_empty() || !self.pauses.is_empty() {
            self.verdict.violation(Law::S1, || "it never came to rest".to_owned());
        }
    }
}

impl LawChecker<Supervisor> for SupervisionLaws {
    fn rebuilt(&mut self, _: Moment, _: &Supervisor) {
        let has_run: Vec<bool> = self.children.iter().map(|known| known.has_run).collect();
        let verdict = std::mem::take(&mut self.verdict);
        *self = Self { verdict, ..Self::new(self.plan.0.clone()) };
        for (known, has_run) in self.children.iter_mut().zip(has_run) {
            known.has_run = has_run;
        }
    }

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Supervisor>,
        effects: &[Effect<Supervisor>],
        _: &Supervisor,
    ) {
        self.heard(moment, input);
        self.note_groups(moment.now);
        for effect in effects {
            match effect {
                Effect::Call { key, deadline, call } => self.calls(moment.now, *key, *deadline, *call),
                Effect::StartTimer(timer, at) => {
                    self.pauses.insert(*timer, *at);
                }
                Effect::CancelTimer(timer) => {
                    self.pauses.remove(timer);
                }
                Effect::Publish(news) => self.tells(news),
                Effect::Reply(id, answer) => self.answers(moment.now, *id, answer),
                Effect::Stop(ending) => self.ends(ending),
                Effect::Persist(_, never) => match *never {},
            }
        }
        self.must_go_on();
    }

    fn panicked(&mut self, input: &Input<Supervisor>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}

impl SupervisionLaws {
    fn tells(&mut self, news: &SupervisorNews) {
        match (news, self.duty) {
            (SupervisorNews::ChildRestarting { name, pause }, Duty::Restarting { child, pause: bounds })
                if *name == self.plan.children[child].name =>
            {
                if *pause < bounds.0 || *pause > bounds.1 {
                    self.verdict.violation(Law::S1, || format!("{name} is to wait for {pause:?}"));
                }
                if let Some(group) = self.groups.last_mut() {
                    group.pause = *pause;
                }
                self.duty = Duty::Nothing;
            }
            (SupervisorNews::ChildRestarting { name, .. }, _) => {
                self.verdict.violation(Law::S1, || format!("{name} is said to have fallen, and it has not"));
            }
            (SupervisorNews::Escalated { .. }, Duty::GivingUp) => self.duty = Duty::Nothing,
            (SupervisorNews::Escalated { reason }, _) => {
                self.verdict.violation(Law::S1, || format!("it gives up without need: {reason}"));
            }
            (
                SupervisorNews::ChildStarted { .. }
                | SupervisorNews::ChildStartFailed { .. }
                | SupervisorNews::ChildEnded { .. }
                | SupervisorNews::ChildStopped(_),
                _,
            ) => {}
        }
    }
}
