//! The state that survives an incarnation of the tasks within one run of the host: events that were read and are not on disk yet, the tasks
//! that are expected back, and the runs that may exist. It ends with the host.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::shell::{StopMode, StopStep};
use callboard_actors::vocabulary::{AllocationId, DriverName};

use super::readers::Readers;
use super::{DurableState, HAS_ENDED, Run, TasksChange, TasksImage};

/// The state that restarted tasks at the same address take over.
#[derive(Clone, Default)]
pub struct TasksMemory {
    pub(super) readers: Readers,
    known: Rc<RefCell<Known>>,
}

/// The facts that are known without asking an actor.
#[derive(Debug, Default)]
struct Known {
    /// The tasks that the last incarnation stopped only because it had to end.
    returning: BTreeSet<AllocationId>,
    /// The runs that exist, or may exist.
    runs: BTreeMap<AllocationId, Run>,
    /// Whether each driver survives its host.
    survives: BTreeMap<DriverName, bool>,
}

impl fmt::Debug for TasksMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TasksMemory").field("known", &self.known).finish_non_exhaustive()
    }
}

impl TasksMemory {
    /// Records what was read from disk, and adds the tasks that are expected back. They are added only once.
    pub(super) fn read(&self, image: &mut TasksImage) {
        let mut known = self.known.borrow_mut();
        let run =
            |(name, durable): (&AllocationId, &DurableState)| Some((name.clone(), durable.run.clone()?));
        known.runs = image.states.iter().filter_map(run).collect();
        known.survives = image.drivers.iter().map(|(name, kept)| (name.clone(), kept.survives)).collect();
        image.returning = std::mem::take(&mut known.returning);
    }

    /// Records a change, at the latest when it is written.
    pub(super) fn note(&self, change: &TasksChange) {
        let Known { returning, runs, survives } = &mut *self.known.borrow_mut();
        match change {
            TasksChange::State(name, durable) => {
                runs.remove(name);
                runs.extend(durable.run.clone().map(|run| (name.clone(), run)));
            }
            TasksChange::Forget(name) => {
                runs.remove(name);
            }
            TasksChange::Returns(name) => {
                returning.insert(name.clone());
            }
            TasksChange::KeepDriver(driver, kept) => {
                survives.insert(driver.clone(), kept.survives);
            }
            TasksChange::ForgetDriver(driver) => {
                survives.remove(driver);
            }
            TasksChange::Log(..) => {}
        }
    }

    /// The tasks that may run although no actor supervises them, the last ones first. The next run of the host recovers the tasks of a
    /// driver that survives its host.
    pub(super) fn left(&self, mode: StopMode) -> Vec<StopStep> {
        let known = self.known.borrow();
        let left = known.runs.iter().rev().map(|(name, run)| {
            let survives = known.survives.get(&run.driver).copied().unwrap_or(true);
            let is_left = mode == StopMode::Stop || !survives;
            let how = match (run.known_end(), is_left) {
                (Some(_), _) => format!("it {HAS_ENDED}"),
                (None, true) => "left as it is, it may still run".to_owned(),
                (None, false) => "left as it is".to_owned(),
            };
            let ending = format!("{how}: {} with driver {}{}", run.id, run.driver, processes(run));
            StopStep { what: format!("task/{name}"), ending, took: Duration::ZERO, is_left }
        });
        left.collect()
    }
}

/// Its processes, as they were last located.
fn processes(run: &Run) -> String {
    let pids: Vec<_> = run.evidence.traces.processes.keys().map(ToString::to_string).collect();
    if pids.is_empty() { String::new() } else { format!(", last seen as pid {}", pids.join(", ")) }
}

#[cfg(test)]
mod tests {
    use callboard_actors::driver::client::{TaskEnd, TaskExit, TaskId};
    use callboard_actors::leftovers::{Trace, Traces};

    use super::super::{DriverProgram, KeptDriver, RunEvidence, RunState};
    use super::*;

    fn settings(survives: bool) -> KeptDriver {
        KeptDriver {
            program: DriverProgram::Internal("exec".to_owned()),
            arguments: vec![],
            sha256: None,
            survives,
            stop_grace: Duration::from_secs(5),
            start_timeout: Duration::from_secs(60),
            had_more: false,
        }
    }

    fn name(name: &str) -> AllocationId {
        AllocationId::new(name).unwrap()
    }

    fn durable(driver: &str, id: &str, pids: &[u32]) -> Box<DurableState> {
        let trace = Trace { started_ticks: 1, session: None, group: None };
        let processes = pids.iter().map(|pid| (*pid, trace)).collect();
        let evidence = RunEvidence { traces: Traces { processes, ..Traces::default() }, begun: None };
        let (driver, id) = (DriverName::new(driver).unwrap(), TaskId::new(id).unwrap());
        let run = Run { driver, id, state: RunState::Intended, evidence };
        Box::new(DurableState { run: Some(run), ..DurableState::default() })
    }

    /// The same for a run that has ended according to its driver.
    fn ended(driver: &str, id: &str) -> Box<DurableState> {
        let mut durable = durable(driver, id, &[]);
        let exit = TaskExit { end: TaskEnd::Exited(0), oom_killed: false };
        let over = RunState::Over { exit: Some(exit), handle: None };
        durable.run.iter_mut().for_each(|run| run.state = over.clone());
        durable
    }

    fn told(memory: &TasksMemory, mode: StopMode) -> Vec<(String, String, bool)> {
        memory.left(mode).into_iter().map(|step| (step.what, step.ending, step.is_left)).collect()
    }

    #[test]
    fn what_may_run_without_an_actor_is_named_with_its_processes_s3_s4() {
        let memory = TasksMemory::default();
        let kept = |driver: &str, survives| {
            TasksChange::KeepDriver(DriverName::new(driver).unwrap(), Box::new(settings(survives)))
        };
        for change in [
            kept("exec", true),
            kept("raw", false),
            TasksChange::State(name("a"), durable("exec", "a/1", &[41, 42])),
            TasksChange::State(name("b"), durable("raw", "b/1", &[])),
            TasksChange::State(name("c"), durable("exec", "c/1", &[])),
            TasksChange::State(name("c"), Box::default()),
            TasksChange::State(name("e"), ended("raw", "e/1")),
            TasksChange::State(name("d"), durable("exec", "d/1", &[])),
            TasksChange::Forget(name("d")),
        ] {
            memory.note(&change);
        }
        let b = "left as it is, it may still run: b/1 with driver raw";
        let a = "a/1 with driver exec, last seen as pid 41, 42";
        let e = (
            "task/e",
            "it has ended, but its cleanup is not confirmed: e/1 with driver raw".to_owned(),
            true,
        );
        let detached =
            [e.clone(), ("task/b", b.to_owned(), true), ("task/a", format!("left as it is: {a}"), false)];
        let stopped = [
            e,
            ("task/b", b.to_owned(), true),
            ("task/a", format!("left as it is, it may still run: {a}"), true),
        ];
        for (mode, expected) in [(StopMode::Detach, detached), (StopMode::Stop, stopped)] {
            let expected = expected.map(|(what, ending, is_left)| (what.to_owned(), ending, is_left));
            assert_eq!(told(&memory, mode), expected);
        }
    }

    #[test]
    fn what_is_on_disk_counts_and_who_is_expected_back_is_said_once() {
        let memory = TasksMemory::default();
        memory.note(&TasksChange::State(name("a"), durable("exec", "a/1", &[])));
        memory.note(&TasksChange::Returns(name("a")));
        let states = BTreeMap::from([(name("b"), *durable("exec", "b/1", &[]))]);
        let mut image = TasksImage { states, ..TasksImage::default() };
        memory.read(&mut image);
        assert_eq!(image.returning, BTreeSet::from([name("a")]));
        assert_eq!(memory.left(StopMode::Stop).len(), 1, "a write that failed is no run");
        memory.read(&mut image);
        assert_eq!(image.returning, BTreeSet::new());
    }
}
