//! Decisions about departed drivers: those that are no longer configured. A driver with tasks is set up again only to stop
//! them. Then it is ended, as is a driver without tasks.
//!
//! ```text
//!                       it has tasks                    all of them are over
//!  an earlier run ──────────────────► set up again ──────────────────────────► ended, forgotten
//!       │                                   │                                     ▲
//!       │ it has none                       │ this fails, or it cannot stop them  │
//!       └───────────────────────────────────┼─────────────────────────────────────┘
//!                                           ▼
//!                              ended; its tasks are out of reach, reported with advice
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use super::calls::*;
use super::driver_setup::SETUP_BACKOFF;
use super::kept::KeptDriver;
use super::messages::{DriverEntry, DriverProgress, HAS_ENDED, TasksNews};
use super::state::*;
use crate::kernel::{CallKey, CallLost, StepContext};
use crate::vocabulary::{AllocationId, BackoffState, DriverName};

/// The timeout of its end; each step has its own limit.
const DISMISS_TIMEOUT: Duration = Duration::from_secs(150);
/// The advice to the operator for a task that only a departed driver could end.
pub const ADVICE: &str =
    "put its [[driver]] back into the configuration and start the host again, or end it by hand";

/// The drivers of the configuration, and the departed drivers that still have remains.
pub(super) fn setups(
    options: &TasksOptions,
    tasks: &[Task],
    on_disk: BTreeMap<DriverName, KeptDriver>,
) -> BTreeMap<DriverName, DriverSetup> {
    let setup = |config_state, kept: Option<KeptDriver>, is_on_disk| DriverSetup {
        progress: DriverProgress::Asking,
        backoff: BackoffState::default(),
        config_state,
        kept,
        is_on_disk,
    };
    let departed = ConfigState::Departed { is_ended: false };
    let mut setups = BTreeMap::new();
    for (name, kept) in &options.drivers {
        let is_on_disk = on_disk.get(name) == Some(kept);
        setups.insert(name.clone(), setup(ConfigState::Configured, Some(kept.clone()), is_on_disk));
    }
    for (name, kept) in on_disk {
        setups.entry(name).or_insert_with(|| setup(departed, Some(kept), true));
    }
    for run in tasks.iter().filter_map(|task| task.durable.run.as_ref()) {
        setups.entry(run.driver.clone()).or_insert_with(|| setup(departed, None, true));
    }
    setups
}

impl Tasks {
    /// Sets up a configured driver, or brings back a departed one.
    pub(super) fn set_up(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let has_tasks = self.tasks.iter().any(|task| task.has_run_of(driver));
        let Some(setup) = self.drivers.get_mut(driver) else { return };
        match (&setup.config_state, &setup.kept) {
            (ConfigState::Configured, _) => {
                let call = TasksCall::SetUp(driver.clone());
                cx.call(CallKey::default(), setup.timeout(), call);
            }
            (ConfigState::Departed { .. }, Some(kept)) if has_tasks => {
                setup.progress = DriverProgress::Asking;
                setup.config_state = ConfigState::Departed { is_ended: false };
                let call = TasksCall::SetUpUnconfigured(driver.clone(), Box::new(kept.clone()));
                cx.call(CallKey::default(), setup.timeout(), call);
            }
            (ConfigState::Departed { .. }, Some(_)) => {
                setup.progress =
                    DriverProgress::Refused("it is not in the configuration any more".to_owned());
            }
            (ConfigState::Departed { .. }, None) => {
                let reason = "it is not in the configuration any more, and its former settings are unknown";
                setup.progress = DriverProgress::Refused(reason.to_owned());
            }
        }
    }

    /// Brings back a departed driver that was given up, since an operator wants to stop one of its tasks.
    pub(super) fn bring_back_for(&mut self, name: &AllocationId, cx: &mut StepContext<Self>) {
        let task = self.tasks.iter().find(|task| task.config.name == *name);
        let Some(driver) = task.map(|task| task.driver().clone()) else { return };
        let config_state = self.drivers.get(&driver).map(|setup| setup.config_state);
        if config_state == Some(ConfigState::Departed { is_ended: true }) {
            self.set_up(&driver, cx);
        }
    }

    /// Ends all departed drivers that are no longer needed. A host that is stopping handles its drivers itself.
    pub(super) fn dismiss_unused_drivers(&mut self, cx: &mut StepContext<Self>) {
        if self.shutdown != ShutdownState::Serving {
            return;
        }
        let is_over = |setup: &DriverSetup| match (setup.config_state, &setup.progress) {
            (ConfigState::Configured | ConfigState::Departed { is_ended: true }, _) => false,
            (ConfigState::Departed { is_ended: false }, DriverProgress::Asking | DriverProgress::Leaving) => {
                false
            }
            (
                ConfigState::Departed { is_ended: false },
                DriverProgress::Added | DriverProgress::Pausing(_) | DriverProgress::Refused(_),
            ) => true,
        };
        let candidates = self.drivers.iter().filter(|(_, setup)| is_over(setup));
        let candidates: Vec<DriverName> = candidates.map(|(driver, _)| driver.clone()).collect();
        for driver in candidates {
            if !self.tasks.iter().any(|task| task.has_run_of(&driver) && !task.phase.is_let_be()) {
                self.dismiss(&driver, cx);
            }
        }
    }

    /// Ends a departed driver, whether it was set up again or is left over from an earlier run of the host.
    pub(super) fn dismiss(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let left = self.left_with(driver);
        let Some(setup) = self.drivers.get_mut(driver) else { return };
        setup.progress = DriverProgress::Leaving;
        cx.publish(TasksNews::DriverChanged(setup.entry(driver)));
        cx.cancel_timer(TasksTimer::SetUp(driver.clone()));
        let call = TasksCall::Dismiss { driver: driver.clone(), left };
        cx.call(CallKey::default(), DISMISS_TIMEOUT, call);
    }

    pub(super) fn dismissed(
        &mut self,
        driver: &DriverName,
        outcome: &Result<TasksOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let left = self.remains_of(driver);
        let is_needed = self.tasks.iter().any(|task| task.has_run_of(driver) && !task.phase.is_let_be());
        let Some(setup) = self.drivers.get_mut(driver) else { return };
        match outcome {
            Ok(TasksOutcome::Dismissed(Ok(()))) if is_needed => self.set_up(driver, cx),
            Ok(TasksOutcome::Dismissed(Ok(()))) if left.is_empty() => {
                self.drivers.remove(driver);
                cx.record(TasksChange::ForgetDriver(driver.clone()));
                cx.publish(TasksNews::DriverForgotten(driver.clone()));
            }
            Ok(TasksOutcome::Dismissed(Ok(()))) => {
                setup.config_state = ConfigState::Departed { is_ended: true };
                setup.progress = DriverProgress::Refused(format!(
                    "it is not in the configuration any more and was ended; {}; {ADVICE}",
                    left.join("; ")
                ));
                cx.publish(TasksNews::DriverChanged(setup.entry(driver)));
            }
            Ok(_) | Err(_) => {
                let pause = setup.backoff.failed(&SETUP_BACKOFF, cx.moment());
                cx.start_timer(TasksTimer::SetUp(driver.clone()), cx.now() + pause);
            }
        }
    }

    /// The tasks that have a run of this driver and may still run. Without it they cannot be ended.
    fn left_with(&self, driver: &DriverName) -> Vec<AllocationId> {
        let left = self.tasks.iter().filter(|task| task.has_run_of(driver) && task.known_end().is_none());
        left.map(|task| task.config.name.clone()).collect()
    }

    /// These tasks, and the tasks that have ended and may have leftovers, in words.
    fn remains_of(&self, driver: &DriverName) -> Vec<String> {
        let living: Vec<_> = self.left_with(driver).iter().map(ToString::to_string).collect();
        let ended = self.tasks.iter().filter(|task| task.has_run_of(driver) && task.known_end().is_some());
        let ended: Vec<_> = ended.map(|task| format!("task {} {HAS_ENDED}", task.config.name)).collect();
        let running =
            (!living.is_empty()).then(|| format!("what it ran may still run: {}", living.join(", ")));
        running.into_iter().chain(ended).collect()
    }
}

impl DriverSetup {
    pub(super) fn entry(&self, driver: &DriverName) -> DriverEntry {
        DriverEntry { name: driver.clone(), progress: self.progress.clone() }
    }
}

impl Task {
    pub(super) fn has_run_of(&self, driver: &DriverName) -> bool {
        self.durable.run.as_ref().is_some_and(|run| run.driver == *driver)
    }

    /// Handles that its driver is no longer configured: its run there is stopped, and the task continues with the driver that
    /// the configuration names now, if it was meant to run.
    pub(super) fn leave_its_driver(&mut self) {
        if self.is_configured && self.durable.wanted == Some(Wanted::Running) {
            self.durable.wanted = Some(Wanted::Stopped);
            self.starts_after_stop = true;
        }
    }
}
