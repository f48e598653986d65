//! Ending what is left of a run, as it is done in production: by what the processes of this machine say of themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_actors::driver::DriverReport;
use callboard_actors::driver::client::{TaskHandle, TaskId, TaskStatus};
use callboard_actors::leftovers::{Named, ProcessTable, Search, TaskMark, Traces};

use super::calls::{Heard, RunKey, Swept, Trouble};
use super::looks::Looks;
use super::state::RunEvidence;

/// How long what was killed may take to end.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// Under which name drivers on the official packages tell the process of a task.
const PROCESS_ATTRIBUTE: &str = "pid";

/// Locates what runs, and ends what is left of it.
#[derive(Debug, Clone)]
pub(super) struct Remains {
    table: Arc<ProcessTable>,
    looks: Looks,
    /// The mark of this host, which executors of its drivers carry.
    owner: Arc<str>,
    /// Where runs were found, and are not known to be over: what is found to be of one of them is of no other.
    located: Arc<Mutex<BTreeMap<TaskId, Traces>>>,
}

impl Remains {
    /// Of the tasks of the host with this mark.
    pub(super) fn new(owner: Arc<str>) -> Self {
        Self { table: Arc::default(), looks: Looks::default(), owner, located: Arc::default() }
    }

    /// Ends what is left of a run. `reports` tells which drivers there are.
    pub(super) async fn end(
        &self,
        run: &RunKey,
        handle: Option<Box<TaskHandle>>,
        evidence: RunEvidence,
        heard: Heard,
        reports: &[DriverReport],
    ) -> Result<Swept, Trouble> {
        let Some(mark) = TaskMark::of_task_id(run.id.as_str()) else {
            return unmarked(run, heard);
        };
        if heard == Heard::NothingOfStart
            && let Some(reason) = may_still_begin(reports.iter().find(|report| report.name == run.driver))
        {
            return Err(Trouble::passing(reason));
        }
        let search = self.search(mark, run, handle, evidence, reports);
        // What a driver has seen the end of is over, whatever it may have left that cannot be looked into.
        let search = Search { is_in_doubt: heard != Heard::End, ..search };
        let table = Arc::clone(&self.table);
        let ended = self.looks.take(&run.name, move || search.end(&table, KILL_PATIENCE)).await;
        let ended = ended.map_err(Trouble::passing)?;
        let ended = ended.map_err(|error| Trouble::passing(error.to_string()))?;
        self.located().remove(&run.id);
        let has_killed = !ended.killed.is_empty();
        if has_killed {
            let RunKey { name, driver, id } = run;
            tracing::warn!(task = %name, %driver, run = %id, killed = %ended, "something was left of a run of a task");
        }
        Ok(Swept { has_killed, words: ended.to_string() })
    }

    /// Finds out where the processes of a run are. `status` is what its driver says of it now.
    pub(super) async fn locate(
        &self,
        run: &RunKey,
        handle: Option<Box<TaskHandle>>,
        evidence: RunEvidence,
        status: Option<&TaskStatus>,
        reports: &[DriverReport],
    ) -> Result<Traces, Trouble> {
        let nameless =
            || Trouble::lasting(format!("{} was begun by an older version and names no task", run.id));
        let mark = TaskMark::of_task_id(run.id.as_str()).ok_or_else(nameless)?;
        let pid = status.and_then(|status| status.attributes.get(PROCESS_ATTRIBUTE)?.parse().ok());
        let driver = reports.iter().find(|report| report.name == run.driver).and_then(|report| report.pid);
        let named = pid.zip(driver).map(|(pid, driver)| Named { pid, driver });
        let search = Search { named, ..self.search(mark, run, handle, evidence, reports) };
        let table = Arc::clone(&self.table);
        let found = self.looks.take(&run.name, move || search.locate(&table)).await;
        match found.and_then(|found| found.map_err(|error| error.to_string())) {
            Ok(traces) => {
                let count = traces.processes.len();
                tracing::debug!(task = %run.name, run = %run.id, count, "the processes of a task are located");
                if !traces.is_empty() {
                    self.located().insert(run.id.clone(), traces.clone());
                }
                Ok(traces)
            }
            Err(error) => {
                tracing::debug!(task = %run.name, run = %run.id, %error, "the processes of a task are not located");
                Err(Trouble::passing(error))
            }
        }
    }

    fn search(
        &self,
        mark: TaskMark,
        run: &RunKey,
        handle: Option<Box<TaskHandle>>,
        evidence: RunEvidence,
        reports: &[DriverReport],
    ) -> Search {
        let others = self
            .located()
            .iter()
            .filter(|(id, _)| **id != run.id)
            .map(|(_, traces)| traces.clone())
            .collect();
        Search {
            state: handle.map(|handle| handle.to_bytes()).unwrap_or_default(),
            owner: self.owner.to_string(),
            drivers: reports.iter().filter_map(|report| report.pid).collect(),
            known: evidence.traces,
            others,
            begun: evidence.begun,
            ..Search::of(mark)
        }
    }

    fn located(&self) -> MutexGuard<'_, BTreeMap<TaskId, Traces>> {
        self.located.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a driver that was told to start a run may still do so; `None` if no process that was told is there any more. One that has
/// launched a process has found before that none was left of an earlier run of the host.
fn may_still_begin(report: Option<&DriverReport>) -> Option<String> {
    match report {
        Some(DriverReport { pid: Some(pid), .. }) => {
            Some(format!("its driver (process {pid}) was told to start it and may still begin"))
        }
        Some(DriverReport { launches: 0, .. }) | None => Some(
            "its driver was told to start it, and it is not known whether a process of it is left that may still begin"
                .to_owned(),
        ),
        Some(_) => None,
    }
}

/// A run that an older version began: the environment of its processes does not name it, so that nothing is found would mean
/// nothing. As then, its driver's word has to do.
fn unmarked(run: &RunKey, heard: Heard) -> Result<Swept, Trouble> {
    let reason =
        format!("{} was begun by an older version, and its processes cannot be told from others", run.id);
    match heard {
        Heard::End | Heard::Word => {
            Ok(Swept { has_killed: false, words: format!("{reason}; its driver is believed") })
        }
        Heard::Nothing | Heard::NothingOfStart => Err(Trouble::lasting(reason)),
    }
}
