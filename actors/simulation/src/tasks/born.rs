//! The initial state of the tasks in the simulation.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::agent::RestartPolicy;
use callboard_actors::tasks::{DriverProgram, KeptDriver, TaskConfig, TaskIdentities, Tasks, TasksOptions};
use callboard_actors::vocabulary::{AllocationId, DriverName};

use super::disk::TasksDisk;
use super::laws::TasksLaws;
use crate::{Rules, StandIn, Tamper};

pub(super) type Actor = StandIn<Tasks, TasksDisk, TasksLaws>;

/// The restart budget of a task.
pub(super) const RESTARTS_MAX: u32 = 4;

pub(super) fn numbered(number: u8) -> AllocationId {
    AllocationId::new(format!("t{number}")).expect("it is a name")
}

pub(super) fn options(names: &[AllocationId], survives: bool) -> TasksOptions {
    let driver = DriverName::new("driver").expect("a word is a name");
    let kept = KeptDriver {
        program: DriverProgram::Internal("exec".to_owned()),
        arguments: vec![],
        sha256: None,
        survives,
        stop_grace: Duration::from_secs(5),
        start_timeout: Duration::from_secs(60),
        had_more: false,
    };
    let task = |name: &AllocationId| Arc::new(TaskConfig::new(name.clone(), driver.clone()));
    let mut restart =
        RestartPolicy::new(RESTARTS_MAX, Duration::from_secs(24 * 3_600), Duration::from_secs(1));
    restart.backoff.jitter_percent = 0;
    TasksOptions {
        tasks: names.iter().map(task).collect(),
        drivers: [(driver.clone(), kept)].into(),
        restart,
        identities: TaskIdentities::of_owner("0123456789abcdef"),
        boot: None,
    }
}

/// A machine that reads this disk.
pub(super) fn actor(
    options: &TasksOptions,
    disk: TasksDisk,
    laws: TasksLaws,
    tamper: Option<Rc<dyn Tamper<Tasks>>>,
) -> Actor {
    StandIn::begin(options.clone(), disk, laws, Rules::default()).tampered_with(tamper)
}
