//! Decisions for all tasks together; those for a single task are in `running.rs`, `ending.rs` and `stopping.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::calls::*;
use super::config::{TaskConfig, TaskRestart};
use super::departed::setups;
use super::log::EventLog;
use super::messages::*;
use super::state::*;
use crate::kernel::{AskId, CallKey, CallLost, Input, Machine, StepContext, StopStep};
use crate::vocabulary::{AllocationId, BackoffState, DriverName, Moment};

impl Machine for Tasks {
    const KIND: &'static str = "tasks";
    type Config = TasksOptions;
    type Image = TasksImage;
    type Ask = TasksAsk;
    type Answer = TasksAnswer;
    type Call = TasksCall;
    type Outcome = TasksOutcome;
    type Timer = TasksTimer;
    type Change = TasksChange;
    type News = TasksNews;
    type View = TasksView;

    fn restore(options: &TasksOptions, mut image: TasksImage, moment: Moment) -> Self {
        let mut tasks = Vec::new();
        for config in &options.tasks {
            let durable = image.states.remove(&config.name).unwrap_or_default();
            let log = image.logs.remove(&config.name).unwrap_or_default();
            let mut task = Task::new(Arc::clone(config), true, durable, log, moment);
            if image.is_of_earlier_run {
                task.begin_another_run_of_the_host();
            } else if image.returning.contains(&task.config.name) {
                task.come_back();
            }
            tasks.push(task);
        }
        // A task that is no longer configured is stopped and forgotten.
        for (name, durable) in image.states {
            let log = image.logs.remove(&name).unwrap_or_default();
            tasks.push(Task::removed(&name, durable, log, moment));
        }
        let drivers = setups(options, &tasks, image.drivers);
        for task in &mut tasks {
            let driver = task.durable.run.as_ref().and_then(|run| drivers.get(&run.driver));
            if driver.is_some_and(|setup| setup.config_state != ConfigState::Configured) {
                task.leave_its_driver();
            }
        }
        Self { drivers, options: options.clone(), tasks, shutdown: ShutdownState::Serving }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        if let ShutdownState::Closed(mode) = self.shutdown {
            return self.step_when_closed(mode, input, cx);
        }
        match input {
            Input::Resumed => self.resume(cx),
            Input::Asked { id, ask, .. } => self.asked(*id, ask, cx),
            Input::Returned { key, call, outcome } => self.returned(*key, call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(mode) => self.leave(*mode, cx),
        }
        self.forget_what_is_over(cx);
        self.dismiss_unused_drivers(cx);
        self.close_if_let_be(cx);
    }

    fn view(&self) -> TasksView {
        let drivers = self.drivers.iter();
        TasksView {
            tasks: self.tasks.iter().map(Task::report).collect(),
            drivers: drivers.map(|(name, setup)| setup.entry(name)).collect(),
        }
    }

    fn is_promise(ask: &TasksAsk) -> bool {
        matches!(ask, TasksAsk::StartTask(_))
    }

    fn is_new_promise(&self, ask: &TasksAsk) -> bool {
        // An unknown task is refused as unknown.
        matches!(ask, TasksAsk::StartTask(StartTask { name }) if self.place(name).is_some())
    }

    /// A start, a report as running, and a lost exit wait by their own call, so that a stop can overtake them.
    fn awaits_disk(call: &TasksCall) -> bool {
        matches!(call, TasksCall::AwaitDisk { .. } | TasksCall::ReadEvents { .. })
    }

    fn stops_within(&self) -> Option<Duration> {
        self.tasks.iter().map(Task::stop_bound).max()
    }

    /// The last tasks first, including tasks that are left to their driver.
    fn stop_steps(&self) -> Vec<StopStep> {
        self.tasks.iter().rev().flat_map(Task::told_steps).collect()
    }
}

impl Task {
    fn new(
        config: Arc<TaskConfig>,
        is_configured: bool,
        durable: DurableState,
        log: EventLog,
        moment: Moment,
    ) -> Self {
        Self {
            config,
            is_configured,
            starts_after_stop: false,
            phase: Phase::Stopped,
            since: moment.now,
            due: None,
            note: "not started".to_owned(),
            durable,
            log,
            watch: Watch::No,
            troubles: BackoffState::default(),
            is_unsent: false,
            is_inherited: false,
            unsure_since: moment.now,
            shares_driver: false,
            cause: String::new(),
            sweeps: 0,
            looks: 0,
            out_of_reach: BackoffState::default(),
            refusal: None,
            is_driver_absent: false,
            awaits_driver: false,
            awaits_disk: false,
            disk_waits: 0,
            askers: vec![],
            ended: None,
            unreleased: None,
            stop_began: moment.now,
        }
    }

    /// A task that is no longer configured.
    fn removed(name: &AllocationId, mut durable: DurableState, log: EventLog, moment: Moment) -> Self {
        let driver = durable.run.as_ref().map(|run| run.driver.clone());
        let driver = driver.unwrap_or_else(|| DriverName::new("none").expect("a word is a name"));
        let config =
            TaskConfig { restart: TaskRestart::None, start: false, ..TaskConfig::new(name.clone(), driver) };
        durable.wanted = Some(Wanted::Stopped);
        Self::new(Arc::new(config), false, durable, log, moment)
    }
}

impl Tasks {
    pub(super) fn place(&self, name: &AllocationId) -> Option<usize> {
        self.tasks.iter().position(|task| task.config.name == *name)
    }

    pub(super) fn with<T>(
        &mut self,
        name: &AllocationId,
        deal: impl FnOnce(&mut Task, &Scene<'_>) -> T,
    ) -> Option<T> {
        let place = self.place(name)?;
        let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
        self.tasks.get_mut(place).map(|task| deal(task, &scene))
    }

    fn resume(&mut self, cx: &mut StepContext<Self>) {
        // This is written before its process is recorded: a later run of the host may have to end the processes that the driver starts.
        for (name, setup) in self.drivers.iter_mut().filter(|(_, setup)| !setup.is_on_disk) {
            setup.is_on_disk = true;
            if let Some(kept) = &setup.kept {
                cx.record(TasksChange::KeepDriver(name.clone(), Box::new(kept.clone())));
            }
        }
        let drivers: Vec<_> = self.drivers.keys().cloned().collect();
        drivers.iter().for_each(|driver| self.set_up(driver, cx));
        let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
        for task in &mut self.tasks {
            task.pick_up(&scene, cx);
        }
    }

    fn asked(&mut self, id: AskId, ask: &TasksAsk, cx: &mut StepContext<Self>) {
        match ask {
            TasksAsk::StartTask(StartTask { name }) => {
                let started = match self.shutdown {
                    ShutdownState::Serving => self.start(name, cx),
                    ShutdownState::Leaving(_) | ShutdownState::Closed(_) => {
                        Err(TaskError::HostStopping { name: name.clone() })
                    }
                };
                cx.reply(id, TasksAnswer::StartTask(started));
            }
            TasksAsk::StopTask(StopTask { name }) => {
                self.bring_back_for(name, cx);
                let answer = self.with(name, |task, scene| match task.stopped_already(scene) {
                    Some(stopped) => Some(Ok(stopped)),
                    None => task.stop_for(id, scene, cx).err().map(Err),
                });
                let unknown = || Some(Err(TaskError::Unknown { name: name.clone() }));
                if let Some(answer) = answer.unwrap_or_else(unknown) {
                    cx.reply(id, TasksAnswer::StopTask(answer));
                }
            }
            TasksAsk::ListTasks(ListTasks) => cx.reply(id, TasksAnswer::ListTasks(self.view().tasks)),
            TasksAsk::SetUpDriver(SetUpDriver { name }) => {
                self.set_up_now(name, cx);
                cx.reply(id, TasksAnswer::SetUpDriver(self.told_progress(name)));
            }
        }
    }

    fn start(&mut self, name: &AllocationId, cx: &mut StepContext<Self>) -> Result<(), TaskError> {
        self.set_up_again(name, cx);
        let started = self.with(name, |task, scene| task.start_anew(scene, cx));
        started.unwrap_or_else(|| Err(TaskError::Unknown { name: name.clone() }))
    }

    fn returned(
        &mut self,
        key: CallKey,
        call: &TasksCall,
        outcome: &Result<TasksOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        match call {
            TasksCall::Dismiss { driver, .. } => self.dismissed(driver, outcome, cx),
            TasksCall::SetUp(driver) | TasksCall::SetUpUnconfigured(driver, _) => {
                let added = match outcome {
                    Ok(TasksOutcome::SetUp(added)) => added.clone(),
                    Ok(_) => return,
                    Err(lost) => Err(Trouble::passing(lost.to_string())),
                };
                self.setup_done(driver, added, cx);
            }
            TasksCall::Watch { name, driver, .. } => {
                let watched = match outcome {
                    Ok(TasksOutcome::Watched(watched)) => watched.clone(),
                    Ok(_) => return,
                    Err(lost) => Err(Trouble::passing(lost.to_string())),
                };
                self.with(name, |task, scene| task.watched(scene, driver, watched, cx));
            }
            TasksCall::ReadEvents { name, taken } => {
                self.with(name, |task, _| task.events_came(*taken, outcome, cx));
            }
            TasksCall::Forget { .. } | TasksCall::CallOff(_) => {}
            // It was made after everything before it was on disk, regardless of its result.
            TasksCall::AwaitDisk { run, number } => {
                self.with(&run.name, |task, scene| task.on_disk(scene, *number, cx));
            }
            // If it was not sent, the answer to the start reports that.
            TasksCall::AwaitSent(run) => {
                if matches!(outcome, Ok(TasksOutcome::Sent(true))) {
                    self.with(&run.name, |task, _| task.start_is_sent(run, cx));
                }
            }
            TasksCall::Start(run, _)
            | TasksCall::Recover(run, ..)
            | TasksCall::Inspect(run)
            | TasksCall::ReplaceDriver(run)
            | TasksCall::Wait(run)
            | TasksCall::Stop { run, .. }
            | TasksCall::Destroy(run)
            | TasksCall::Locate { run, .. }
            | TasksCall::Sweep { run, .. } => self.run_returned(key, run, call, outcome, cx),
        }
    }

    /// The answer to a call about one run. Answers about an earlier run are stale and ignored.
    fn run_returned(
        &mut self,
        key: CallKey,
        run: &RunKey,
        call: &TasksCall,
        outcome: &Result<TasksOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let shares_driver = matches!(call, TasksCall::Inspect(_)) && self.runs_others(run);
        self.with(&run.name, |task, scene| {
            let is_present = task.durable.run.as_ref().is_some_and(|present| present.id == run.id);
            if is_present && key.attempt == task.durable.attempt {
                task.shares_driver = shares_driver;
                task.returned(scene, call, outcome, cx);
            }
        });
    }

    fn elapsed(&mut self, timer: &TasksTimer, cx: &mut StepContext<Self>) {
        match timer {
            TasksTimer::SetUp(driver) => match self.drivers.get(driver).map(|setup| &setup.progress) {
                Some(DriverProgress::Leaving) => self.dismiss(driver, cx),
                Some(_) | None => self.set_up(driver, cx),
            },
            TasksTimer::Start(name) => {
                self.with(name, |task, scene| task.start_time_has_come(scene, cx));
            }
            TasksTimer::Again(name) => {
                self.with(name, |task, scene| task.speak_again(scene, cx));
            }
            TasksTimer::Watch(name) => {
                self.with(name, |task, _| task.ask_to_watch(cx));
            }
            TasksTimer::Locate(name) => {
                self.with(name, |task, _| task.locate_again(cx));
            }
            TasksTimer::GiveUp(name) => {
                self.with(name, |task, scene| task.give_up(scene, cx));
            }
            TasksTimer::LookAgain(name) => self.look_again(name, cx),
        }
    }

    fn runs_others(&self, run: &RunKey) -> bool {
        let is_started =
            |present: &Run| present.driver == run.driver && matches!(present.state, RunState::Started(_));
        let mut others = self.tasks.iter().filter(|task| task.config.name != run.name);
        others.any(|task| task.durable.run.as_ref().is_some_and(is_started))
    }

    fn forget_what_is_over(&mut self, cx: &mut StepContext<Self>) {
        let is_over =
            |task: &Task| !task.is_configured && task.phase == Phase::Stopped && task.durable.run.is_none();
        for task in self.tasks.extract_if(.., |task| is_over(task)) {
            let name = task.config.name.clone();
            cx.record(TasksChange::Forget(name.clone()));
            let driver = match task.watch {
                Watch::On(driver) | Watch::Asked(driver) => Some(driver),
                Watch::No => None,
            };
            let call = TasksCall::Forget { name: name.clone(), driver };
            cx.call(CallKey::default(), SAY_TIMEOUT, call);
            cx.publish(TasksNews::TaskForgotten(name));
        }
    }
}

/// The context of a task's decision.
#[derive(Debug)]
pub(super) struct Scene<'t> {
    pub(super) options: &'t TasksOptions,
    pub(super) drivers: &'t BTreeMap<DriverName, DriverSetup>,
    pub(super) shutdown: ShutdownState,
}

/// The timeout of a message to another actor of the host.
pub(super) const SAY_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout to resolve and identify a plugin, besides the plugin's own start and stop times.
const BRING_TIMEOUT: Duration = Duration::from_secs(150);

impl DriverSetup {
    /// The timeout of its setup.
    pub(super) fn timeout(&self) -> Duration {
        let own = |kept: &super::kept::KeptDriver| kept.start_timeout.saturating_add(kept.stop_grace * 2);
        BRING_TIMEOUT.saturating_add(self.kept.as_ref().map_or(Duration::ZERO, own))
    }
}
