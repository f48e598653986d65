//! Dispatches each input of an allocation's supervisor to a part of its lifecycle.

use std::time::Duration;

use super::messages::{
    AllocationAnswer, AllocationAsk, AllocationNews, AllocationStatus, Listener, MakeReady, NoteDisk,
    NoteExit, NoteHealth, NoteStart, PrepareError, StopSupervision, TaskContext, TaskEvent,
};
use super::messages::{DescribeAllocation, TaskEventKind};
use super::state::{
    Allocation, AllocationCall, AllocationConfig, AllocationOutcome, AllocationTimer, Desired, Event, Phase,
    Preparing, RegistrationState, Task,
};
use crate::kernel::{AskId, CallKey, CallLost, Input, Machine, Never, StepContext, StopMode};
use crate::vocabulary::{Attempt, Generation, Health, Moment};

impl Machine for Allocation {
    const KIND: &'static str = "allocation";
    type Config = AllocationConfig;
    type Image = ();
    type Ask = AllocationAsk;
    type Answer = AllocationAnswer;
    type Call = AllocationCall;
    type Outcome = AllocationOutcome;
    type Timer = AllocationTimer;
    type Change = Never;
    type News = AllocationNews;
    type View = AllocationStatus;

    fn restore(config: &AllocationConfig, (): (), moment: Moment) -> Self {
        Self {
            config: config.clone(),
            attempts: Attempt::default(),
            start: Generation::default(),
            phase: Phase::Prepared,
            since: moment.now,
            health: Health::Starting,
            last_event: "known, and not started yet".to_owned(),
            preparing: None,
            registration_state: RegistrationState::default(),
            told: None,
            news: Vec::new(),
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.resumed(cx),
            Input::Asked { id, ask, .. } => self.asked(*id, ask, cx),
            Input::Returned { key, call, outcome } => {
                self.returned(key.attempt, call, outcome, cx);
            }
            Input::Elapsed(timer) => self.elapsed(*timer, cx),
            Input::StopRequested(StopMode::Stop) => self.stop_with_host(cx),
            // Everything is left in place for the next start of the host.
            Input::StopRequested(StopMode::Detach) => cx.stop(),
        }
        self.tell(cx);
    }

    fn view(&self) -> AllocationStatus {
        self.status()
    }
}

impl Allocation {
    /// Resumes the work of its predecessor, if it had one.
    fn resumed(&mut self, cx: &mut StepContext<Self>) {
        match self.config.task {
            Task::NotStarted => {}
            Task::Running => self.begin_waiting(cx),
            Task::Exited => self.end_of_task("the task has ended".to_owned(), cx),
            Task::Leaving => self.begin_stopping(None, cx),
        }
    }

    fn asked(&mut self, id: AskId, ask: &AllocationAsk, cx: &mut StepContext<Self>) {
        match ask {
            AllocationAsk::MakeReady(MakeReady { listener }) => {
                self.make_ready(id, *listener, cx);
            }
            AllocationAsk::NoteStart(NoteStart) => {
                if self.is_in_service() {
                    self.begin_waiting(cx);
                }
                cx.reply(id, AllocationAnswer::NoteStart(()));
            }
            AllocationAsk::NoteExit(NoteExit { how }) => {
                if self.is_in_service() {
                    self.end_of_task(format!("the task ended: {how}"), cx);
                }
                cx.reply(id, AllocationAnswer::NoteExit(()));
            }
            AllocationAsk::NoteHealth(NoteHealth) => {
                self.look_now(cx);
                cx.reply(id, AllocationAnswer::NoteHealth(()));
            }
            AllocationAsk::NoteDisk(NoteDisk) => {
                self.try_registry_now(cx);
                cx.reply(id, AllocationAnswer::NoteDisk(()));
            }
            AllocationAsk::StopSupervision(StopSupervision) => self.begin_stopping(Some(id), cx),
            AllocationAsk::DescribeAllocation(DescribeAllocation) => {
                cx.reply(id, AllocationAnswer::DescribeAllocation(self.status()));
            }
        }
    }

    fn returned(
        &mut self,
        attempt: Attempt,
        call: &AllocationCall,
        outcome: &Result<AllocationOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        match outcome {
            Ok(AllocationOutcome::Made(made)) => self.made(attempt, made, cx),
            Ok(AllocationOutcome::Found(found)) => self.found(attempt, found, cx),
            Ok(AllocationOutcome::Answered(answer)) => self.answered(attempt, answer, cx),
            Ok(AllocationOutcome::Registered(registered)) => {
                self.registered(attempt, registered, cx);
            }
            Ok(AllocationOutcome::Deregistered(deregistered)) => {
                self.deregistered(attempt, deregistered, cx);
            }
            Ok(AllocationOutcome::Health(health)) => self.health_seen(attempt, health, cx),
            Ok(AllocationOutcome::Retired(retired)) => self.retired(attempt, retired, cx),
            Ok(AllocationOutcome::Removed(left)) => self.removed(attempt, left, cx),
            Err(lost) => self.lost(attempt, call, lost, cx),
        }
    }

    /// A lost call is handled like a failed one.
    fn lost(&mut self, attempt: Attempt, call: &AllocationCall, lost: &CallLost, cx: &mut StepContext<Self>) {
        match call {
            AllocationCall::MakeDirectories(_) => {
                let error = PrepareError::Disk {
                    allocation: self.config.spec.allocation.clone(),
                    path: self.config.plan.socket_place.path(),
                    reason: format!("the file system call failed: {lost}; check its disk"),
                };
                self.made(attempt, &Err(error), cx);
            }
            AllocationCall::FindSocket | AllocationCall::Ask(_) => {
                self.question_lost(attempt, lost, cx);
            }
            AllocationCall::Register(_) | AllocationCall::Deregister(_) => {
                self.registry_failed(attempt, format!("the call to the registry failed: {lost}"), cx);
            }
            AllocationCall::AskHealth => self.round_over(attempt, cx),
            AllocationCall::AwaitRetired => self.retire_lost(attempt, lost, cx),
            AllocationCall::RemoveDirectory => {
                let path = self.config.plan.socket_place.path();
                let left = format!("{} was not removed: the file system call failed: {lost}", path.display());
                self.removed(attempt, &[left], cx);
            }
        }
    }

    fn elapsed(&mut self, timer: AllocationTimer, cx: &mut StepContext<Self>) {
        match timer {
            AllocationTimer::Look => self.look(cx),
            AllocationTimer::HealthTimeout => self.out_of_time(cx),
            AllocationTimer::Registry => {
                self.registration_state.is_pausing = false;
                self.reconcile(cx);
            }
            AllocationTimer::Round => self.begin_round(cx),
            AllocationTimer::Retire => self.retire(cx),
            AllocationTimer::StopDeadline => self.stop_deadline_passed(cx),
        }
    }

    // === Preparing (A1) ===

    fn make_ready(&mut self, id: AskId, listener: Listener, cx: &mut StepContext<Self>) {
        if !self.is_in_service() {
            let stopping = PrepareError::Stopping { allocation: self.config.spec.allocation.clone() };
            cx.reply(id, AllocationAnswer::MakeReady(Err(stopping)));
            return;
        }
        if !matches!(self.phase, Phase::Prepared) {
            self.end_of_task("the task is about to be started again".to_owned(), cx);
        }
        let deadline = self.config.options.directory_deadline;
        let attempt = self.call(AllocationCall::MakeDirectories(listener), deadline, cx);
        let mut askers = self.preparing.take().map(|before| before.askers).unwrap_or_default();
        askers.push(id);
        self.preparing = Some(Preparing { attempt, askers });
    }

    fn made(&mut self, attempt: Attempt, made: &Result<(), PrepareError>, cx: &mut StepContext<Self>) {
        let Some(preparing) = self.preparing.take_if(|preparing| preparing.attempt == attempt) else {
            return;
        };
        let context = made.clone().map(|()| self.config.plan.context.clone());
        self.last_event = match made {
            Ok(()) => "prepared".to_owned(),
            Err(error) => error.to_string(),
        };
        answer_all(preparing.askers, &context, cx);
    }

    pub(super) fn refuse_preparing(&mut self, cx: &mut StepContext<Self>) {
        let Some(preparing) = self.preparing.take() else { return };
        let stopping = PrepareError::Stopping { allocation: self.config.spec.allocation.clone() };
        answer_all(preparing.askers, &Err(stopping), cx);
    }

    // === Shared by the parts ===

    /// The task does not run: ends its phase, and deregisters it.
    fn end_of_task(&mut self, event: String, cx: &mut StepContext<Self>) {
        self.enter(Phase::Prepared, event, cx);
        self.health = Health::Gone;
        self.want(Desired::Out, cx);
    }

    pub(super) fn enter(&mut self, phase: Phase, event: impl Into<String>, cx: &mut StepContext<Self>) {
        match self.phase {
            Phase::Waiting(_) => {
                cx.cancel_timer(AllocationTimer::Look);
                cx.cancel_timer(AllocationTimer::HealthTimeout);
            }
            Phase::Registered(_) => cx.cancel_timer(AllocationTimer::Round),
            Phase::Stopping(_) => {
                cx.cancel_timer(AllocationTimer::Retire);
                cx.cancel_timer(AllocationTimer::StopDeadline);
            }
            Phase::Prepared | Phase::Registering | Phase::AwaitingRestart | Phase::Ended => {}
        }
        self.phase = phase;
        self.last_event = event.into();
    }

    pub(super) const fn is_in_service(&self) -> bool {
        match self.phase {
            Phase::Prepared
            | Phase::Waiting(_)
            | Phase::Registering
            | Phase::Registered(_)
            | Phase::AwaitingRestart => true,
            Phase::Stopping(_) | Phase::Ended => false,
        }
    }

    /// Makes a call under a unique number, which identifies a late outcome.
    pub(super) fn call(
        &mut self,
        call: AllocationCall,
        deadline: Duration,
        cx: &mut StepContext<Self>,
    ) -> Attempt {
        self.attempts = self.attempts.next();
        let key = CallKey { generation: self.start, attempt: self.attempts };
        cx.call(key, deadline, call);
        self.attempts
    }

    /// Adds an event for the owner of the task; published at the end of this step.
    pub(super) fn event(&mut self, event: Event) {
        let Event { kind, message } = event;
        let allocation = self.config.spec.allocation.clone();
        let task = self.config.spec.task.clone();
        self.news.push(AllocationNews::Task(TaskEvent { allocation, task, kind, message }));
    }

    /// Sets the health, with an event if its kind changed, not just its reason.
    pub(super) fn take_health(&mut self, health: Health, message: String) {
        let is_new = self.known_health().as_str() != health.as_str();
        if let Phase::Registered(watch) = &mut self.phase {
            watch.before = None;
        }
        self.health = health;
        let kind = match self.health {
            Health::Healthy => TaskEventKind::Healthy,
            Health::Unhealthy { .. } => TaskEventKind::Unhealthy,
            Health::Starting | Health::Gone => return,
        };
        if is_new {
            self.last_event.clone_from(&message);
            self.event(Event { kind, message });
        }
    }

    fn status(&self) -> AllocationStatus {
        let spec = &self.config.spec;
        AllocationStatus {
            allocation: spec.allocation.clone(),
            task: spec.task.clone(),
            plugin: spec.plugin.clone(),
            role: spec.role,
            phase: self.phase.shown(),
            health: self.health.clone(),
            socket: self.config.plan.context.socket.clone(),
            since: self.since,
            last_event: self.last_event.clone(),
        }
    }

    /// Publishes the changes of this step: the status first, then events, then the end.
    fn tell(&mut self, cx: &mut StepContext<Self>) {
        let phase = self.phase.shown();
        if self.told.as_ref().is_none_or(|told| told.phase != phase) {
            self.since = cx.now();
        }
        let status = self.status();
        if self.told.as_ref().map(AllocationStatus::says) != Some(status.says()) {
            self.told = Some(status.clone());
            cx.publish(AllocationNews::Changed(status));
        }
        std::mem::take(&mut self.news).into_iter().for_each(|news| cx.publish(news));
        if matches!(self.phase, Phase::Ended) {
            cx.stop();
        }
    }
}

fn answer_all(
    askers: Vec<AskId>,
    answer: &Result<TaskContext, PrepareError>,
    cx: &mut StepContext<Allocation>,
) {
    for id in askers {
        cx.reply(id, AllocationAnswer::MakeReady(answer.clone()));
    }
}
