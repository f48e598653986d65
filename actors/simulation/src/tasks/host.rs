//! A run of the host with its tasks, and the transport between them and the environment: it delivers the machine's effects, and the
//! world decides when an answer returns.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::driver::TaskId;
use callboard_actors::shell::{CallLost, Message, StopMode};
use callboard_actors::tasks::*;
use callboard_actors::vocabulary::{AllocationId, Moment, Timestamp};

use super::born::{Actor, actor, numbered, options};
use super::disk::{TasksDisk, is_to_rest};
use super::environment::{Environment, Work};
use super::event::TasksBounds;
use super::laws::TasksLaws;
use crate::{Law, Left, Outcome, Tamper, Verdict, Violation};

/// How long a start waits for a driver that accepts requests, as in `HostRunners`.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(5);
/// The last report about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastReport {
    pub(super) phase: TaskPhase,
    pub(super) run: Option<TaskId>,
    pub(super) restarts: u64,
}

/// The machine, its environment, and the transport between them.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) actor: Actor,
    options: Rc<TasksOptions>,
    tamper: Option<Rc<dyn Tamper<Tasks>>>,
    pub(super) environment: Environment,
    pub(super) names: Vec<AllocationId>,
    /// The starts that this run of the host has requested, as `HostRunners` keeps them.
    pub(super) starts: BTreeMap<TaskId, Asked>,
    /// The start calls that have reached the driver.
    pub(super) sent: BTreeSet<u64>,
    /// The deadlines of the other start calls, which wait for a driver.
    pub(super) timeout: BTreeMap<u64, Timestamp>,
    /// The deadlines of the calls that have one.
    deadlines: BTreeMap<u64, (Timestamp, Duration)>,
    /// The number of runs of the host; each begins with other random numbers.
    runs: u64,
    pub(super) ends: Option<StopMode>,
    askers: u64,
    pub(super) unanswered: BTreeMap<u64, AllocationId>,
    /// Whether a task is wanted to run; `None` if a crash left that unknown.
    pub(super) wants: BTreeMap<AllocationId, Option<bool>>,
    /// The last request to stop each task.
    stoppers: BTreeMap<AllocationId, u64>,
    pub(super) told: BTreeMap<AllocationId, LastReport>,
    /// The runs that the host may end: their end was reported or requested, or they cannot be recovered.
    pub(super) excused: BTreeSet<TaskId>,
    /// The runs that have ended by themselves, as their driver reported to this run of the host.
    pub(super) heard: BTreeSet<TaskId>,
    pub(super) verdict: Verdict,
}

impl Host {
    /// A host at its first start.
    pub(super) fn new(bounds: &TasksBounds, tamper: Option<Rc<dyn Tamper<Tasks>>>) -> Self {
        let names: Vec<AllocationId> = (0..bounds.tasks).map(numbered).collect();
        let options = Rc::new(options(&names, bounds.manner.survives));
        Self {
            actor: actor(&options, TasksDisk::default(), TasksLaws::default(), tamper.clone()),
            options,
            tamper,
            environment: Environment::new(bounds.manner),
            starts: BTreeMap::new(),
            sent: BTreeSet::new(),
            timeout: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            runs: 1,
            ends: None,
            askers: 0,
            unanswered: BTreeMap::new(),
            wants: names.iter().map(|name| (name.clone(), Some(true))).collect(),
            names,
            stoppers: BTreeMap::new(),
            told: BTreeMap::new(),
            excused: BTreeSet::new(),
            heard: BTreeSet::new(),
            verdict: Verdict::NONE,
        }
    }

    pub(super) const fn moment(&self, now: Timestamp) -> Moment {
        Moment { now, random: self.runs << 33 }
    }

    pub(super) fn broken(&mut self) -> Option<&Violation> {
        self.verdict.heard_of(self.actor.checker.verdict.broken());
        self.verdict.heard_of(self.environment.verdict.broken());
        self.verdict.broken()
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        let timers = self.actor.next_timer().into_iter().chain(self.actor.pauses_until());
        let deadlines = self.deadlines.values().map(|(until, _)| *until);
        timers.chain(self.timeout.values().copied()).chain(deadlines).min()
    }

    pub(super) fn name(&self, task: u8) -> Option<&AllocationId> {
        self.names.get(usize::from(task))
    }

    // === The host's lifecycle ===

    /// Builds the machine from the disk, if it waits for that.
    pub(super) fn load(&mut self, now: Timestamp) {
        if self.actor.is_loading() {
            let image = self.actor.store.read();
            if !image.is_of_earlier_run {
                self.forget_second_chances(&image);
            }
            self.actor.loaded(self.moment(now), image);
            self.carry(now);
        }
    }

    /// Only the machine's memory records that a task stopped by an earlier run of the host starts again, until the start has
    /// begun: a machine that is rebuilt before leaves the task stopped.
    fn forget_second_chances(&mut self, image: &TasksImage) {
        let names = self.names.iter().filter(|name| is_to_rest(image, name));
        self.wants.extend(names.map(|name| (name.clone(), None)).collect::<Vec<_>>());
    }

    /// The host is killed after this many of its writes reached the disk. Another one starts from the disk.
    pub(super) fn next_run(&mut self, reached: usize) {
        let mut disk = std::mem::take(&mut self.actor.store);
        disk.begin_run(reached);
        let laws = std::mem::take(&mut self.actor.checker);
        self.actor = actor(&self.options, disk, laws, self.tamper.clone());
        self.environment.next_run();
        self.runs += 1;
        let is_unwanted = |name| self.wants.get(name) != Some(&Some(true));
        let unwanted = self.environment.copies.iter().filter(|copied| is_unwanted(&copied.name));
        self.excused.extend(unwanted.map(|copied| copied.run.clone()));
        let copies = &self.environment.copies;
        self.excused.retain(|run| copies.iter().any(|copied| copied.run == *run));
        self.excused.extend(self.actor.store.runs_to_end().cloned());
        // Tasks that were stopped, or failed, start again.
        self.wants.values_mut().for_each(|wanted| *wanted = Some(true));
        (self.ends, self.askers) = (None, 0);
        self.heard.clear();
        self.starts.clear();
        self.sent.clear();
        self.timeout.clear();
        self.deadlines.clear();
        self.stoppers.clear();
        self.unanswered.clear();
        self.told.clear();
    }

    pub(super) fn end(&mut self, now: Timestamp, mode: StopMode) {
        self.ends = Some(self.ends.map_or(mode, |first| first.stronger(mode)));
        self.wants.values_mut().for_each(|wanted| *wanted = None);
        self.actor.request_stop(self.moment(now), mode);
        self.carry(now);
    }

    pub(super) fn settle(&mut self, now: Timestamp, count: usize, outcome: Outcome) {
        if let Some(settlement) = self.actor.store.settle(count, outcome) {
            self.actor.settled(self.moment(now), settlement);
            self.carry(now);
        }
    }

    pub(super) fn disk(&mut self, now: Timestamp, is_sick: bool) {
        self.actor.disk(self.moment(now), is_sick);
        self.carry(now);
    }

    /// Fires due timers, and ends a pause that is over.
    pub(super) fn time_passes(&mut self, now: Timestamp) {
        if self.actor.pauses_until().is_some_and(|until| until <= now) {
            self.actor.wake();
        }
        self.give_up_calls(now);
        self.answer_waiting(now, |until| until <= now);
        self.actor.timers_due(self.moment(now));
        self.carry(now);
    }

    /// Calls past their deadline fail.
    fn give_up_calls(&mut self, now: Timestamp) {
        let given_up = self.deadlines.iter().filter(|(_, (until, _))| *until <= now);
        let given_up: Vec<(u64, Duration)> =
            given_up.map(|(number, (_, deadline))| (*number, *deadline)).collect();
        for (number, deadline) in given_up {
            self.actor.returned(self.moment(now), number, Err(CallLost::DeadlineExceeded(deadline)));
            self.carry(now);
        }
    }

    // === Requests of operators ===

    pub(super) fn say_start(&mut self, now: Timestamp, task: u8) {
        let Some(name) = self.name(task).cloned() else { return };
        self.ask(now, &name, StartTask { name: name.clone() });
    }

    pub(super) fn say_stop(&mut self, now: Timestamp, task: u8) {
        let Some(name) = self.name(task).cloned() else { return };
        self.wants.insert(name.clone(), Some(false));
        let copies = self.environment.copies.iter().filter(|copied| copied.name == name);
        self.excused.extend(copies.map(|copied| copied.run.clone()));
        self.excused.extend(self.actor.store.run(&name).map(|run| run.id.clone()));
        self.stoppers.insert(name.clone(), self.askers + 1);
        self.ask(now, &name, StopTask { name: name.clone() });
    }

    fn ask<Q: Message<Tasks>>(&mut self, now: Timestamp, name: &AllocationId, message: Q) {
        self.askers += 1;
        self.unanswered.insert(self.askers, name.clone());
        self.actor.ask(self.moment(now), self.askers, message.into_ask());
        self.carry(now);
    }

    // === Effects ===

    pub(super) fn returned(&mut self, now: Timestamp, number: u64, outcome: TasksOutcome) {
        self.actor.returned(self.moment(now), number, Ok(outcome));
        self.carry(now);
    }

    /// Delivers the effects of the machine.
    pub(super) fn carry(&mut self, now: Timestamp) {
        let mut left = Vec::new();
        loop {
            self.actor.take_left(&mut left);
            if left.is_empty() {
                break;
            }
            for one in std::mem::take(&mut left) {
                self.hear(now, one);
            }
        }
        let awaited: BTreeSet<u64> = self.actor.calls().map(|(number, _)| number).collect();
        self.sent.retain(|number| awaited.contains(number));
        self.timeout.retain(|number, _| awaited.contains(number));
        self.deadlines.retain(|number, _| awaited.contains(number));
        self.send_starts();
    }

    fn hear(&mut self, now: Timestamp, left: Left<Tasks>) {
        match left {
            Left::Call { number, deadline, call } => self.called(now, number, deadline, &call),
            Left::Answer(Some(asker), answer) => self.answered(asker, &answer),
            Left::Answer(None, answer) => {
                self.verdict
                    .violation(Law::Shell7, || format!("this answer has no waiting caller: {answer:?}"));
            }
            Left::Refused(asker, _) => {
                if let Some(name) = self.unanswered.remove(&asker) {
                    self.wants.insert(name, None);
                }
            }
            Left::News(_, TasksNews::TaskChanged(report)) => self.tell(&report),
            Left::Snapshot(_, view) => view.tasks.iter().for_each(|report| self.tell(report)),
            Left::News(
                _,
                TasksNews::TaskForgotten(_) | TasksNews::DriverChanged(_) | TasksNews::DriverForgotten(_),
            )
            | Left::Ended(_) => {}
        }
    }

    /// Answers at once the calls that have only one possible answer.
    fn called(&mut self, now: Timestamp, number: u64, deadline: Duration, call: &TasksCall) {
        let outcome = match call {
            TasksCall::SetUp(_) | TasksCall::SetUpUnconfigured(..) => TasksOutcome::SetUp(Ok(())),
            TasksCall::Dismiss { .. } => TasksOutcome::Dismissed(Ok(())),
            TasksCall::Watch { .. } => TasksOutcome::Watched(Ok(())),
            // It arrives too late.
            TasksCall::Forget { .. } | TasksCall::CallOff(_) => TasksOutcome::Forgotten,
            TasksCall::AwaitDisk { .. } => TasksOutcome::OnDisk,
            TasksCall::Locate { .. } => TasksOutcome::Located(Err(Trouble::passing("it was not looked up"))),
            TasksCall::Start(run, _) => {
                self.check_intent(run);
                if !self.environment.is_refused {
                    self.timeout.insert(number, now + DRIVER_TIMEOUT);
                    return;
                }
                TasksOutcome::Started(Started::NotAsked(Trouble::absent("the driver is refused")))
            }
            TasksCall::ReadEvents { .. } | TasksCall::Wait(_) | TasksCall::AwaitSent(_) => return,
            TasksCall::Recover(..)
            | TasksCall::Inspect(_)
            | TasksCall::ReplaceDriver(_)
            | TasksCall::Stop { .. }
            | TasksCall::Destroy(_)
            | TasksCall::Sweep { .. } => {
                self.deadlines.insert(number, (now + deadline, deadline));
                return;
            }
        };
        self.actor.returned(self.moment(now), number, Ok(outcome));
    }

    fn check_intent(&mut self, run: &RunKey) {
        let on_disk = self.actor.store.run(&run.name);
        let is_there = on_disk.is_some_and(|on_disk| {
            on_disk.id == run.id && on_disk.driver == run.driver && on_disk.state == RunState::Intended
        });
        if !is_there {
            self.verdict
                .violation(Law::T5, || format!("{} is to be started, and on disk is {on_disk:?}", run.id));
        }
    }

    fn answered(&mut self, asker: u64, answer: &TasksAnswer) {
        let Some(name) = self.unanswered.remove(&asker) else {
            return self
                .verdict
                .violation(Law::Shell7, || format!("asker {asker} is answered twice: {answer:?}"));
        };
        match answer {
            TasksAnswer::StartTask(Ok(())) => {
                // A stop, of the task or of the host, may have been requested before this answer was sent.
                let is_last = self.stoppers.get(&name).is_none_or(|stopper| *stopper < asker);
                if is_last && self.ends.is_none() {
                    self.wants.insert(name, Some(true));
                }
            }
            TasksAnswer::StopTask(Ok(_)) => self.check_down(&name, "is said to be stopped"),
            TasksAnswer::StartTask(Err(_))
            | TasksAnswer::StopTask(Err(_))
            | TasksAnswer::ListTasks(_)
            | TasksAnswer::SetUpDriver(_) => {}
        }
    }

    fn tell(&mut self, report: &TaskReport) {
        let told = LastReport { phase: report.phase, run: report.id.clone(), restarts: report.restarts };
        if told.is_down() {
            self.check_down(&report.name, report.phase.as_str());
        }
        if told.phase == TaskPhase::Running && self.is_to_stop(&report.name) {
            self.verdict.violation(Law::T3, || format!("{} is to stop, and is told to run", report.name));
        }
        if let (TaskPhase::Running, Some(run)) = (told.phase, &told.run)
            && !self.actor.store.has_held(run)
        {
            self.verdict
                .violation(Law::Shell1, || format!("{run} is told to run, and its handle is not on disk"));
        }
        let tried = self.environment.tried.get(&report.name).copied().unwrap_or_default();
        if told.restarts > tried {
            let what = format!("{} is charged {} restarts of {tried} starts", report.name, told.restarts);
            self.verdict.violation(Law::T2, || what);
        }
        self.told.insert(report.name.clone(), told);
    }

    /// Whether a task has to stop, and no later request to start it is open.
    fn is_to_stop(&self, name: &AllocationId) -> bool {
        let stopper = self.stoppers.get(name).copied().unwrap_or(0);
        let mut later = self.unanswered.range(stopper + 1..);
        self.wants.get(name) == Some(&Some(false)) && !later.any(|(_, other)| other == name)
    }

    /// Checks that no copy lives of a task that is reported down.
    pub(super) fn check_down(&mut self, name: &AllocationId, what: &str) {
        if self.environment.living(name) > 0 {
            let copies = &self.environment.copies;
            self.verdict.violation(Law::T3, || format!("{name} {what}, and there live {copies:?}"));
        }
    }

    /// Delivers waiting starts to the driver, if it accepts requests.
    pub(super) fn send_starts(&mut self) {
        let Some(process) = self.environment.serving_mut() else { return };
        let mut sent = Vec::new();
        for (number, call) in self.actor.calls() {
            if let TasksCall::Start(run, _) = call
                && self.sent.insert(number)
            {
                self.timeout.remove(&number);
                self.starts.insert(run.id.clone(), Asked::Unanswered(Some(process.identity())));
                sent.push(run.name.clone());
                process.works.push(Work { run: run.clone(), has_begun: false });
            }
        }
        sent.into_iter().for_each(|name| self.environment.tried(name));
    }
}

impl LastReport {
    /// Whether the report states that nothing of it runs.
    pub(super) const fn is_down(&self) -> bool {
        matches!(self.phase, TaskPhase::Stopped | TaskPhase::Ended | TaskPhase::Failed)
    }
}
