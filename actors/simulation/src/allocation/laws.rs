//! A plain model of the messages, questions and answers of an allocation's supervisor; `saying` checks its effects against it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocation::{
    Allocation, AllocationAsk, AllocationCall, AllocationConfig, AllocationOutcome, AllocationPhase, Task,
    TaskEventKind,
};
use callboard_actors::csi::{Answer, Class, Readiness};
use callboard_actors::instances::AwaitRetiredError;
use callboard_actors::registry::Deregistered;
use callboard_actors::shell::{AskError, CallLost, Effect, Input, StopMode};
use callboard_actors::vocabulary::{Attempt, Health, Identity, Moment, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Constant;

type Outcome = Result<AllocationOutcome, CallLost>;

/// Observes every step of the supervisor of one allocation in one life.
#[derive(Debug, Clone, Hash)]
pub struct AllocationLaws {
    pub(super) config: Constant<Rc<AllocationConfig>>,
    pub(super) task: Task,
    /// How often the task was started.
    pub(super) starts: u64,
    pub(super) course: Course,
    /// The questions in flight, with the start of the task that each is about.
    pub(super) questions: BTreeMap<Attempt, u64>,
    /// The latest call that creates directories.
    pub(super) making: Option<Attempt>,
    pub(super) entry: Entry,
    /// The phase that was last published.
    pub(super) shown: Option<AllocationPhase>,
    /// The message to the registry in flight.
    pub(super) message: Option<Attempt>,
    pub(super) way_out: Option<StopProgress>,
    pub(super) is_detached: bool,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

/// The state of the present start of the task.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Course {
    pub(super) began: Timestamp,
    /// The reason why it is not ready, as last reported.
    pub(super) cause: Option<String>,
    /// The time since which the file system has refused its socket without a break.
    pub(super) denied_since: Option<Timestamp>,
    /// Whether it has just answered that it is ready.
    pub(super) says_ready: bool,
    /// Its identity; then it is ready.
    pub(super) identity: Option<Identity>,
    /// Whether the host was notified that it will not become ready.
    pub(super) is_given_up: bool,
    /// Whether no instance watches it, as reported in this round.
    pub(super) is_unwatched: bool,
    /// The time since which it has been reported unhealthy without a break after it was ready, or since a restart was requested.
    pub(super) unhealthy_since: Option<Timestamp>,
    /// The time by which it must ask about the notification of its instance.
    pub(super) question_due: Option<Timestamp>,
    /// Whether the question in flight is about a notification.
    pub(super) asks_for_news: bool,
    /// Whether it was just reported unhealthy.
    pub(super) is_unwell: bool,
    /// The health that was last reported.
    pub(super) told: Option<TaskEventKind>,
}

/// The registry's knowledge, as reported.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    Unknown,
    In(Option<Arc<str>>),
    Out,
}

/// The progress of a stop.
#[derive(Debug, Clone, Hash)]
pub(super) struct StopProgress {
    pub(super) began: Timestamp,
    /// Whether the host itself ends, and remaining work is left to its next start.
    pub(super) is_last: bool,
    pub(super) was_registered: bool,
    pub(super) waiting: Option<Attempt>,
    /// Whether it was notified that calls have ended, or that this cannot be determined.
    pub(super) are_calls_over: bool,
    pub(super) removing: Option<Attempt>,
    pub(super) is_removed: bool,
    /// Whether something was not cleaned up, so that its report must mention it.
    pub(super) owes_remark: bool,
}

impl AllocationLaws {
    /// No step since this supervisor began.
    #[must_use]
    pub fn new(config: AllocationConfig, now: Timestamp) -> Self {
        let task = config.task;
        let mut course = Course { began: now, ..Course::default() };
        course.told = (config.health == Health::Healthy).then_some(TaskEventKind::Healthy);
        Self {
            config: Constant(Rc::new(config)),
            task,
            starts: 0,
            course,
            questions: BTreeMap::new(),
            making: None,
            entry: Entry::Unknown,
            shown: None,
            message: None,
            way_out: (task == Task::Leaving).then(|| StopProgress::new(now)),
            is_detached: false,
            verdict: Verdict::NONE,
        }
    }

    /// The state of the task as its supervisor knows it, unless the supervisor is stopping.
    pub(in super::super) const fn task(&self) -> Task {
        self.task
    }

    /// The time until which the present start may become ready.
    pub(super) fn ready_until(&self) -> Timestamp {
        self.course.began + self.config.spec.health_timeout
    }

    /// Whether the task runs, and may be asked.
    pub(super) fn is_looked_after(&self) -> bool {
        self.task == Task::Running && !self.course.is_given_up && self.is_in_service()
    }

    /// Whether it is registered, and so looked at in rounds.
    pub(super) fn has_rounds(&self) -> bool {
        self.is_looked_after() && self.shown == Some(AllocationPhase::Registered)
    }

    pub(super) const fn is_in_service(&self) -> bool {
        self.way_out.is_none() && !self.is_detached
    }

    // === Its requests ===

    fn told(&mut self, moment: Moment, ask: &AllocationAsk) {
        match ask {
            AllocationAsk::StopSupervision(_) => self.leave(moment, false),
            AllocationAsk::NoteStart(_) if self.is_in_service() => {
                self.task = Task::Running;
                self.starts += 1;
                self.course = Course { began: moment.now, ..Course::default() };
            }
            AllocationAsk::NoteExit(_) if self.is_in_service() => self.task = Task::Exited,
            // Any earlier process has ended.
            AllocationAsk::MakeReady(_) if self.is_in_service() && self.task == Task::Running => {
                self.task = Task::Exited;
            }
            AllocationAsk::NoteHealth(_) if self.has_rounds() => self.course.question_due = Some(moment.now),
            AllocationAsk::NoteStart(_)
            | AllocationAsk::NoteExit(_)
            | AllocationAsk::MakeReady(_)
            | AllocationAsk::NoteHealth(_)
            | AllocationAsk::NoteDisk(_)
            | AllocationAsk::DescribeAllocation(_) => {}
        }
    }

    fn leave(&mut self, moment: Moment, is_last: bool) {
        self.way_out.get_or_insert_with(|| StopProgress::new(moment.now)).is_last |= is_last;
    }

    // === Its notifications ===

    fn heard(&mut self, moment: Moment, attempt: Attempt, call: &AllocationCall, outcome: &Outcome) {
        match call {
            AllocationCall::FindSocket | AllocationCall::Ask(_) | AllocationCall::AskHealth => {
                let start = self.questions.remove(&attempt);
                if start == Some(self.starts) && self.is_looked_after() {
                    self.answered_news(moment, outcome);
                    self.course.heard(moment, outcome);
                }
            }
            AllocationCall::Register(_) | AllocationCall::Deregister(_) => {
                self.message.take_if(|message| *message == attempt);
                self.heard_of_registry(call, outcome);
            }
            AllocationCall::AwaitRetired => {
                if let Some(way_out) = self.way_out.as_mut().filter(|way| way.waiting == Some(attempt)) {
                    way_out.heard_of_calls(outcome);
                }
            }
            AllocationCall::RemoveDirectory => {
                if let Some(way_out) = self.way_out.as_mut().filter(|way| way.removing == Some(attempt)) {
                    way_out.is_removed = true;
                    let is_clean = matches!(outcome, Ok(AllocationOutcome::Removed(left)) if left.is_empty());
                    way_out.owes_remark |= !is_clean;
                }
            }
            // Callers that wait for them are checked when they are answered.
            AllocationCall::MakeDirectories(_) => {}
        }
    }

    /// A question about a notification that failed is retried after a short pause, not with the next round.
    fn answered_news(&mut self, moment: Moment, outcome: &Outcome) {
        let is_answered = matches!(outcome, Ok(AllocationOutcome::Health(Ok(_))));
        if std::mem::take(&mut self.course.asks_for_news) && !is_answered {
            let pauses = self.config.options.probe_pauses;
            let longest = pauses.longest * (100 + pauses.jitter_percent) / 100;
            self.course.question_due.get_or_insert(moment.now + longest);
        }
    }

    fn heard_of_registry(&mut self, call: &AllocationCall, outcome: &Outcome) {
        self.entry = match (call, outcome) {
            (AllocationCall::Register(message), Ok(AllocationOutcome::Registered(Ok(Ok(_))))) => {
                Entry::In(message.version.clone())
            }
            (_, Ok(AllocationOutcome::Deregistered(Ok(deregistered)))) => {
                if let (Deregistered::Removed(_), Some(way_out)) = (deregistered, &mut self.way_out) {
                    way_out.was_registered = true;
                }
                Entry::Out
            }
            // It may have been accepted or not.
            (_, _) => Entry::Unknown,
        };
    }
}

impl AllocationLaws {
    /// A supervisor that waits to register does not wait for its pause when the disk takes writes again.
    fn registers_when_the_disk_is_sound(&mut self, ask: &AllocationAsk, effects: &[Effect<Allocation>]) {
        let is_due = matches!(ask, AllocationAsk::NoteDisk(_))
            && self.is_looked_after()
            && self.shown == Some(AllocationPhase::Registering)
            && self.message.is_none();
        let registers = |effect: &Effect<Allocation>| {
            matches!(effect, Effect::Call { call: AllocationCall::Register(_), .. })
        };
        if is_due && !effects.iter().any(registers) {
            let what = || "it waits to be registered although the disk takes writes again".to_owned();
            self.verdict.violation(Law::A3, what);
        }
    }
}

impl Course {
    fn heard(&mut self, moment: Moment, outcome: &Outcome) {
        let (cause, class) = match outcome {
            Ok(AllocationOutcome::Health(seen)) => {
                let is_gone = |seen: &Vec<Health>| seen.iter().all(|health| *health == Health::Gone);
                self.is_unwatched = seen.as_ref().is_ok_and(is_gone);
                if let Ok(seen) = seen {
                    self.looked_at(moment, seen);
                }
                return;
            }
            Ok(AllocationOutcome::Answered(Ok(Answer::Probe(Readiness::Ready)))) => {
                (self.says_ready, self.unhealthy_since) = (true, None);
                return;
            }
            Ok(AllocationOutcome::Answered(Ok(Answer::PluginInfo(identity)))) if self.says_ready => {
                self.identity = Some(identity.clone());
                return;
            }
            Ok(AllocationOutcome::Answered(Ok(_))) => ("not ready".to_owned(), None),
            Ok(AllocationOutcome::Answered(Err(error))) => (error.to_string(), Some(error.class())),
            Ok(AllocationOutcome::Found(Err(cause))) => (cause.to_string(), Some(cause.class())),
            Err(lost) => (lost.to_string(), None),
            Ok(_) => return,
        };
        self.says_ready = false;
        if self.identity.is_some() && outcome.is_ok() {
            self.is_seen_unwell(moment);
        }
        self.cause = Some(cause);
        let is_denied = class == Some(Class::Denied);
        self.denied_since = is_denied.then(|| self.denied_since.unwrap_or(moment.now));
    }
}

impl Course {
    /// The instances report its health.
    fn looked_at(&mut self, moment: Moment, seen: &[Health]) {
        if seen.iter().any(|health| matches!(health, Health::Unhealthy { .. })) {
            self.is_seen_unwell(moment);
        } else if seen.contains(&Health::Healthy) && !seen.contains(&Health::Starting) {
            self.unhealthy_since = None;
        }
    }

    fn is_seen_unwell(&mut self, moment: Moment) {
        self.unhealthy_since.get_or_insert(moment.now);
        self.is_unwell = true;
    }
}

impl StopProgress {
    const fn new(began: Timestamp) -> Self {
        Self {
            began,
            is_last: false,
            was_registered: false,
            waiting: None,
            are_calls_over: false,
            removing: None,
            is_removed: false,
            owes_remark: false,
        }
    }

    /// Whether it may continue although the result that it waits for has not arrived.
    pub(super) fn is_stop_deadline_passed(&self, moment: Moment, timeout: Duration) -> bool {
        moment.now.since(self.began) >= timeout
    }

    fn heard_of_calls(&mut self, outcome: &Outcome) {
        let is_over = match outcome {
            Ok(AllocationOutcome::Retired(Ok(Ok(())) | Err(AskError::NotRunning { .. }))) => true,
            Ok(AllocationOutcome::Retired(
                Ok(Err(AwaitRetiredError::TooMany { .. }))
                | Err(AskError::Busy { .. } | AskError::NotDurable { .. } | AskError::NotWritten { .. }),
            )) => false,
            Ok(_) | Err(_) => {
                self.owes_remark = true;
                true
            }
        };
        self.are_calls_over |= is_over;
    }
}

impl LawChecker<Allocation> for AllocationLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Allocation) {}

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Allocation>,
        effects: &[Effect<Allocation>],
        _machine: &Allocation,
    ) {
        self.check_news(|due| due < moment.now);
        match input {
            Input::Asked { ask, .. } => {
                self.told(moment, ask);
                self.registers_when_the_disk_is_sound(ask, effects);
            }
            Input::Returned { key, call, outcome } => self.heard(moment, key.attempt, call, outcome),
            Input::StopRequested(StopMode::Stop) => self.leave(moment, true),
            Input::StopRequested(StopMode::Detach) => self.is_detached = true,
            Input::Resumed | Input::Elapsed(_) => {}
        }
        effects.iter().for_each(|effect| self.did(moment, input, effect));
        self.check_time(moment);
        self.check_news(|due| due <= moment.now);
        self.course.is_unwell = false;
    }

    fn panicked(&mut self, input: &Input<Allocation>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
