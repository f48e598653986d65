//! Decides for the agent as a whole; `task.rs` and `stopping.rs` decide for one task.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::FeedItem;
use crate::allocations::{AllocationsNews, AllocationsView, StopAllocationError};
use crate::kernel::{AskId, CallKey, CallLost, Input, Machine, StepContext, StopMode, StopStep};
use crate::vocabulary::{AllocationId, Attempt, Moment};

use super::calls::{AgentCall, AgentOutcome, AgentTimer, Ended, Living};
use super::config::AllocationConfig;
use super::messages::*;
use super::state::{Agent, AgentOptions, Life, Memory, Phase, Task, Wanted};

/// The longest time before a call that waits for news is made again.
const NEWS_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The limit for looking at our own processes, which takes no time.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before a retry of a message that was not answered.
pub const RETRY_PAUSE: Duration = Duration::from_millis(100);

impl Machine for Agent {
    const KIND: &'static str = "agent";
    type Config = AgentOptions;
    type Image = BTreeMap<AllocationId, Memory>;
    type Ask = AgentAsk;
    type Answer = AgentAnswer;
    type Call = AgentCall;
    type Outcome = AgentOutcome;
    type Timer = AgentTimer;
    type Change = (AllocationId, Memory);
    type News = AgentNews;
    type View = Vec<TaskReport>;

    fn restore(options: &AgentOptions, mut image: Self::Image, moment: Moment) -> Self {
        let task = |config: &AllocationConfig| Task {
            config: config.clone(),
            phase: Phase::Stopped,
            since: moment.now,
            last_event: "not started".to_owned(),
            memory: image.remove(&config.name).unwrap_or_default(),
            askers: vec![],
            even_if_used: false,
            steps: vec![],
            step_began: moment.now,
        };
        Self {
            tasks: options.allocations.iter().map(task).collect(),
            options: options.clone(),
            life: Life::Surveying { asked: VecDeque::new(), leave: None },
            replacements: vec![],
            replacement: Attempt::new(moment.random >> 16),
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {
                listen(cx, AgentCall::Survey, SURVEY_TIMEOUT);
                listen(cx, AgentCall::AwaitEndings, NEWS_TIMEOUT);
                listen(cx, AgentCall::Follow { afresh: true }, NEWS_TIMEOUT);
            }
            Input::Asked { id, ask, .. } => self.asked(*id, ask, cx),
            Input::Returned { key, call, outcome } => match outcome {
                Ok(outcome) => self.returned(key.attempt, call, outcome, cx),
                Err(lost) => self.lost(key.attempt, call, lost, cx),
            },
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(mode) => self.leave(*mode, cx),
        }
        self.wind_down_in_order(cx);
        self.advance_replacements(cx);
        self.close_if_quiet(cx);
    }

    fn view(&self) -> Vec<TaskReport> {
        self.tasks.iter().map(Task::report).collect()
    }

    fn stops_within(&self) -> Option<Duration> {
        // Before the survey is complete, each task may have a process.
        let (survey, is_surveying) = match self.life {
            Life::Surveying { .. } => (SURVEY_TIMEOUT, true),
            Life::Serving | Life::Leaving(_) => (Duration::ZERO, false),
        };
        // Tasks that use volumes end first.
        let longest = |uses_volumes: bool| {
            let is_meant = |task: &&Task| task.uses_volumes() == uses_volumes;
            let tasks = self.tasks.iter().filter(|task| is_surveying || !task.phase.is_quiet());
            tasks.filter(is_meant).map(Task::stop_bound).max().unwrap_or_default()
        };
        let stops = longest(true) + longest(false);
        Some(if stops.is_zero() { stops } else { survey + stops })
    }

    /// The steps of the last allocation first.
    fn stop_steps(&self) -> Vec<StopStep> {
        self.tasks.iter().rev().flat_map(|task| task.steps.clone()).collect()
    }
}

/// Makes a call that belongs to no task.
fn listen(cx: &mut StepContext<Agent>, call: AgentCall, timeout: Duration) {
    cx.call(CallKey::default(), timeout, call);
}

impl Agent {
    pub(super) fn task(&mut self, allocation: &AllocationId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.config.name == *allocation)
    }

    fn asked(&mut self, id: AskId, ask: &AgentAsk, cx: &mut StepContext<Self>) {
        if let Life::Surveying { asked, .. } = &mut self.life {
            asked.push_back((id, ask.clone()));
            return;
        }
        match ask {
            AgentAsk::StartTask(StartTask { allocation }) => {
                let started = self.start(allocation, cx);
                cx.reply(id, AgentAnswer::StartTask(started));
            }
            AgentAsk::StopTask(StopTask { allocation, even_if_used }) => {
                let is_leaving = matches!(self.life, Life::Leaving(_));
                let answer = match self.task(allocation) {
                    Some(task) => match task.stopped_already().filter(|_| is_leaving) {
                        Some(stopped) => Some(Ok(stopped)),
                        None => task.stop_for(id, *even_if_used, cx).err().map(Err),
                    },
                    None => Some(Err(TaskError::Unknown { allocation: allocation.clone() })),
                };
                if let Some(answer) = answer {
                    cx.reply(id, AgentAnswer::StopTask(answer));
                }
            }
            AgentAsk::Replace(replace) => {
                if let Err(error) = self.replace(id, replace, cx) {
                    cx.reply(id, AgentAnswer::Replace(Err(error)));
                }
            }
            AgentAsk::ListTasks(ListTasks) => cx.reply(id, AgentAnswer::ListTasks(self.view())),
        }
    }

    pub(super) fn start(
        &mut self,
        allocation: &AllocationId,
        cx: &mut StepContext<Self>,
    ) -> Result<(), TaskError> {
        let is_serving = matches!(self.life, Life::Serving);
        let task =
            self.task(allocation).ok_or_else(|| TaskError::Unknown { allocation: allocation.clone() })?;
        if !is_serving {
            return Err(TaskError::HostStopping { allocation: allocation.clone() });
        }
        task.start_anew(cx)
    }

    fn returned(
        &mut self,
        attempt: Attempt,
        call: &AgentCall,
        outcome: &AgentOutcome,
        cx: &mut StepContext<Self>,
    ) {
        match outcome {
            AgentOutcome::Surveyed(living) => self.surveyed(living, cx),
            AgentOutcome::Endings(endings) => {
                listen(cx, AgentCall::AwaitEndings, NEWS_TIMEOUT);
                endings.iter().for_each(|ended| self.process_ended(ended, cx));
            }
            AgentOutcome::Followed(Ok(items)) => {
                listen(cx, AgentCall::Follow { afresh: false }, NEWS_TIMEOUT);
                items.iter().for_each(|item| self.hear(item, cx));
            }
            AgentOutcome::Followed(Err(_)) => {
                cx.start_timer(AgentTimer::Follow, cx.now() + RETRY_PAUSE);
            }
            AgentOutcome::AwaitedHealthy(answer) => self.health_answered(attempt, Ok(answer), cx),
            AgentOutcome::Withdrawn(Ok(Err(
                error @ (StopAllocationError::Used { .. } | StopAllocationError::Unclear { .. }),
            ))) => self.stop_refused(attempt, call, error, cx),
            AgentOutcome::Prepared(_)
            | AgentOutcome::Adopted(_)
            | AgentOutcome::Claimed(_)
            | AgentOutcome::CalledOff
            | AgentOutcome::Launched(_)
            | AgentOutcome::Announced(_)
            | AgentOutcome::Withdrawn(_)
            | AgentOutcome::EndAsked
            | AgentOutcome::Reported(_)
            | AgentOutcome::Released(_) => {
                let Self { tasks, options, .. } = self;
                let called = tasks.iter_mut().find(|task| Some(&task.config.name) == call.allocation());
                if let Some(task) = called.filter(|task| task.memory.attempt == attempt) {
                    task.returned(options, outcome, cx);
                }
            }
        }
    }

    fn lost(&mut self, attempt: Attempt, call: &AgentCall, lost: &CallLost, cx: &mut StepContext<Self>) {
        match call {
            AgentCall::Survey => listen(cx, AgentCall::Survey, SURVEY_TIMEOUT),
            AgentCall::AwaitEndings => {
                cx.start_timer(AgentTimer::AwaitEndings, cx.now() + RETRY_PAUSE);
            }
            AgentCall::Follow { .. } => cx.start_timer(AgentTimer::Follow, cx.now() + RETRY_PAUSE),
            AgentCall::AwaitHealthy(_) => self.health_answered(attempt, Err(lost), cx),
            AgentCall::Prepare(_)
            | AgentCall::Adopt(_)
            | AgentCall::Claim { .. }
            | AgentCall::CallOff(_)
            | AgentCall::Launch(_)
            | AgentCall::Announce(_)
            | AgentCall::Withdraw { .. }
            | AgentCall::End { .. }
            | AgentCall::Report { .. }
            | AgentCall::Release { .. } => {
                let Self { tasks, options, .. } = self;
                let called = tasks.iter_mut().find(|task| Some(&task.config.name) == call.allocation());
                if let Some(task) = called.filter(|task| task.memory.attempt == attempt) {
                    task.lost(options, call, lost, cx);
                }
            }
        }
    }

    fn elapsed(&mut self, timer: &AgentTimer, cx: &mut StepContext<Self>) {
        match timer {
            AgentTimer::AwaitEndings => listen(cx, AgentCall::AwaitEndings, NEWS_TIMEOUT),
            AgentTimer::Follow => listen(cx, AgentCall::Follow { afresh: true }, NEWS_TIMEOUT),
            AgentTimer::AskForHealth(number) => self.ask_for_health(*number, cx),
            AgentTimer::Start(allocation) => {
                if let Some(task) = self.task(allocation) {
                    task.start_time_has_come(cx);
                }
            }
            AgentTimer::Retry(allocation) => {
                if let Some(task) = self.task(allocation) {
                    task.say_again(cx);
                }
            }
            AgentTimer::GiveUp(allocation) => {
                if let Some(task) = self.task(allocation) {
                    task.give_up(cx);
                }
            }
        }
    }

    /// Continues each task from its process, and handles the requests that arrived during the survey.
    fn surveyed(&mut self, living: &[Living], cx: &mut StepContext<Self>) {
        let Life::Surveying { asked, leave } = &mut self.life else { return };
        let (asked, leave) = (std::mem::take(asked), leave.take());
        self.life = Life::Serving;
        for task in &mut self.tasks {
            let process = living.iter().find(|living| living.allocation == task.config.name);
            task.pick_up(process, cx);
        }
        for (id, ask) in asked {
            self.asked(id, &ask, cx);
        }
        if let Some(mode) = leave {
            self.leave(mode, cx);
        }
    }

    fn process_ended(&mut self, ended: &Ended, cx: &mut StepContext<Self>) {
        if let Some(task) = self.task(&ended.allocation) {
            if task.memory.attempt == ended.attempt {
                task.process_ended(ended, cx);
            }
            task.end_observed(ended.attempt, &ended.how, cx);
        }
    }

    fn hear(&mut self, item: &FeedItem<AllocationsNews, AllocationsView>, cx: &mut StepContext<Self>) {
        match item {
            FeedItem::Snapshot { view, .. } => {
                let is_known =
                    |task: &Task| view.allocations.iter().any(|a| a.allocation == task.config.name);
                self.tasks.iter().filter(|task| !is_known(task)).for_each(|task| task.announce_again(cx));
            }
            FeedItem::Change {
                news: AllocationsNews::RestartRequested { allocation, reason, .. }, ..
            } => {
                if let Some(task) = self.task(allocation) {
                    task.restart(reason, cx);
                }
            }
            FeedItem::Change { news: AllocationsNews::Task(event), .. } => {
                if let Some(task) = self.task(&event.allocation) {
                    task.note(&event.message, cx);
                }
            }
            // The status shows the allocations' own view of an allocation beside ours; after a lag a snapshot follows.
            FeedItem::Change {
                news: AllocationsNews::Changed(_) | AllocationsNews::Gone(_) | AllocationsNews::Refused { .. },
                ..
            }
            | FeedItem::Lagged { .. } => {}
        }
    }

    fn leave(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        if let Life::Surveying { leave, .. } = &mut self.life {
            *leave = Some(mode);
            return;
        }
        self.life = Life::Leaving(match mode {
            StopMode::Stop => Wanted::Stopped,
            StopMode::Detach => Wanted::Left,
        });
        // The steps of an earlier stop are not reported again.
        self.tasks.iter_mut().filter(|task| task.phase.is_quiet()).for_each(|task| task.steps.clear());
        self.wind_down_in_order(cx);
    }

    /// Stops, while the agent leaves, the tasks that use volumes and those that do not run. Running tasks without volumes are stopped
    /// when the tasks with volumes have ended, since they may serve their volumes (V13).
    fn wind_down_in_order(&mut self, cx: &mut StepContext<Self>) {
        let Life::Leaving(wanted) = self.life else { return };
        let has_users = self.tasks.iter().any(|task| task.uses_volumes() && !task.phase.is_quiet());
        let is_due =
            |task: &Task| !has_users || task.uses_volumes() || !matches!(task.phase, Phase::Running { .. });
        let goes_on = |task: &Task| !task.phase.is_quiet() && task.memory.wanted == Some(Wanted::Running);
        let due = self.tasks.iter_mut().rev().filter(|task| goes_on(task) && is_due(task));
        due.for_each(|task| task.stop(wanted, cx));
    }

    fn close_if_quiet(&mut self, cx: &mut StepContext<Self>) {
        if matches!(self.life, Life::Leaving(_)) && self.tasks.iter().all(|task| task.phase.is_quiet()) {
            cx.stop();
        }
    }
}
