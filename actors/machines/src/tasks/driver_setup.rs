//! Decisions about drivers and about the events of tasks: both must be ready before a driver receives a request about a task.

use std::time::Duration;

use super::behaviour::{SAY_TIMEOUT, Scene};
use super::calls::*;
use super::messages::{DriverProgress, TasksNews, UnknownDriver};
use super::state::*;
use crate::kernel::{CallKey, CallLost, Gate, StepContext};
use crate::vocabulary::{AllocationId, Backoff, DriverName};

/// A call that waits for events is renewed at least this often.
const NEWS_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The pause before a failed subscription is retried.
const WATCH_PAUSE: Duration = Duration::from_millis(200);
/// The backoff for a plugin that could not be set up.
pub(super) const SETUP_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_secs(120),
    jitter_percent: 10,
    reset_after: Duration::from_secs(60),
};

impl Scene<'_> {
    pub(super) fn survives(&self, driver: &DriverName) -> bool {
        let kept = self.drivers.get(driver).and_then(|setup| setup.kept.as_ref());
        kept.is_none_or(|kept| kept.survives)
    }

    /// Whether a driver is no longer configured.
    pub(super) fn is_unconfigured(&self, driver: &DriverName) -> bool {
        self.drivers.get(driver).is_none_or(|setup| setup.config_state != ConfigState::Configured)
    }

    /// The progress of the setup of a driver; `None` for an unknown name.
    pub(super) fn progress(&self, driver: &DriverName) -> Option<&DriverProgress> {
        self.drivers.get(driver).map(|setup| &setup.progress)
    }
}

impl Tasks {
    /// Retries a driver whose plugin was refused, since an operator wants to start one of its tasks.
    pub(super) fn set_up_again(&mut self, name: &AllocationId, cx: &mut StepContext<Self>) {
        let task = self.tasks.iter().find(|task| task.config.name == *name);
        let Some(driver) = task.map(|task| task.config.driver.clone()) else { return };
        let is_refused = |setup: &DriverSetup| matches!(setup.progress, DriverProgress::Refused(_));
        if self.drivers.get(&driver).is_some_and(is_refused) {
            self.set_up_now(&driver, cx);
        }
    }

    /// Retries a driver whose plugin could not be used.
    pub(super) fn set_up_now(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        if self.shutdown != ShutdownState::Serving {
            return;
        }
        let Some(setup) = self.drivers.get_mut(driver) else { return };
        match (setup.config_state, &setup.progress) {
            (ConfigState::Configured, DriverProgress::Refused(_) | DriverProgress::Pausing(_)) => {
                setup.progress = DriverProgress::Asking;
            }
            (
                ConfigState::Configured,
                DriverProgress::Asking | DriverProgress::Added | DriverProgress::Leaving,
            )
            | (ConfigState::Departed { .. }, _) => return,
        }
        cx.cancel_timer(TasksTimer::SetUp(driver.clone()));
        cx.call(CallKey::default(), setup.timeout(), TasksCall::SetUp(driver.clone()));
    }

    /// The progress of a driver, for a caller that asked.
    pub(super) fn told_progress(&self, driver: &DriverName) -> Result<DriverProgress, UnknownDriver> {
        let unknown =
            || UnknownDriver { name: driver.clone(), known: self.drivers.keys().cloned().collect() };
        self.drivers.get(driver).map(|setup| setup.progress.clone()).ok_or_else(unknown)
    }

    pub(super) fn setup_done(
        &mut self,
        driver: &DriverName,
        outcome: Result<(), Trouble>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(setup) = self.drivers.get_mut(driver) else { return };
        setup.progress = match outcome {
            Ok(()) => DriverProgress::Added,
            Err(trouble) if trouble.is_transient => {
                let pause = setup.backoff.failed(&SETUP_BACKOFF, cx.moment());
                cx.start_timer(TasksTimer::SetUp(driver.clone()), cx.now() + pause);
                DriverProgress::Pausing(trouble.reason)
            }
            Err(trouble) => DriverProgress::Refused(trouble.reason),
        };
        cx.publish(TasksNews::DriverChanged(setup.entry(driver)));
        let scene = Scene { options: &self.options, drivers: &self.drivers, shutdown: self.shutdown };
        for task in self.tasks.iter_mut().filter(|task| task.driver() == driver) {
            task.proceed(&scene, cx);
        }
    }
}

impl Task {
    /// Subscribes to its events, unless that is done.
    pub(super) fn ask_to_watch(&mut self, cx: &mut StepContext<Tasks>) {
        let driver = self.driver().clone();
        match &self.watch {
            Watch::On(at) if *at == driver => {}
            Watch::No | Watch::Asked(_) | Watch::On(_) => {
                self.watch = Watch::Asked(driver.clone());
                let (name, after) = (self.config.name.clone(), self.log.position.clone());
                let call = TasksCall::Watch { name, driver, after, taken: self.log.taken };
                cx.call(CallKey::default(), SAY_TIMEOUT, call);
            }
        }
    }

    pub(super) fn watched(
        &mut self,
        scene: &Scene<'_>,
        driver: &DriverName,
        watched: Result<(), Trouble>,
        cx: &mut StepContext<Tasks>,
    ) {
        if self.watch != Watch::Asked(driver.clone()) {
            return;
        }
        match watched {
            Ok(()) => {
                self.watch = Watch::On(driver.clone());
                self.read_events(cx);
                self.proceed(scene, cx);
            }
            Err(trouble) => {
                self.note(format!("its events cannot be read: {trouble}"), cx);
                self.watch_later(cx);
            }
        }
    }

    fn watch_later(&self, cx: &mut StepContext<Tasks>) {
        cx.start_timer(TasksTimer::Watch(self.config.name.clone()), cx.now() + WATCH_PAUSE);
    }

    fn read_events(&self, cx: &mut StepContext<Tasks>) {
        let (name, taken) = (self.config.name.clone(), self.log.taken);
        cx.call(CallKey::default(), NEWS_TIMEOUT, TasksCall::ReadEvents { name, taken });
    }

    /// Handles events: they are on disk with their position before more are read.
    pub(super) fn events_came(
        &mut self,
        taken: u64,
        outcome: &Result<TasksOutcome, CallLost>,
        cx: &mut StepContext<Tasks>,
    ) {
        // Stale: read before the machine took its present items.
        if taken != self.log.taken || !matches!(self.watch, Watch::On(_)) {
            return;
        }
        match outcome {
            Ok(TasksOutcome::Events(items)) if items.is_empty() => {
                self.watch = Watch::No;
                self.watch_later(cx);
            }
            Ok(TasksOutcome::Events(items)) => {
                items.iter().for_each(|item| self.log.take(cx.now(), item));
                let change = TasksChange::Log(self.config.name.clone(), Box::new(self.log.clone()));
                cx.write(Gate::Promises, change);
                cx.publish(TasksNews::TaskChanged(Box::new(self.report())));
                self.read_events(cx);
            }
            Ok(_) => {}
            Err(CallLost::DeadlineExceeded(_)) => self.read_events(cx),
            Err(CallLost::Crashed(_) | CallLost::Busy(_)) => {
                self.watch = Watch::No;
                self.watch_later(cx);
            }
        }
    }
}
