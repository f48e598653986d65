//! Ending what is left of a run, as it is done in production: by what the processes of this machine say of themselves.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::DriverReport;
use callboard_actors::driver::client::TaskHandle;
use callboard_actors::leftovers::{ProcessTable, Search, TaskMark};

use super::calls::{Heard, RunKey, Swept, Trouble};

/// How long what was killed may take to end.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// Ends what is left of runs.
#[derive(Debug, Clone)]
pub(super) struct Remains {
    table: Arc<ProcessTable>,
    /// The mark of this host, which executors of its drivers carry.
    owner: Arc<str>,
}

impl Remains {
    /// Of the tasks of the host with this mark.
    pub(super) fn new(owner: Arc<str>) -> Self {
        Self { table: Arc::default(), owner }
    }

    /// Ends what is left of a run. `reports` tells which drivers there are.
    pub(super) async fn end(
        &self,
        run: &RunKey,
        handle: Option<Box<TaskHandle>>,
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
        let search = Search {
            state: handle.map(|handle| handle.to_bytes()).unwrap_or_default(),
            owner: self.owner.to_string(),
            drivers: reports.iter().filter_map(|report| report.pid).collect(),
            ..Search::of(mark)
        };
        let table = Arc::clone(&self.table);
        let ended = tokio::task::spawn_blocking(move || search.end(&table, KILL_PATIENCE)).await;
        let ended =
            ended.map_err(|error| Trouble::passing(format!("what is left was not looked for: {error}")))?;
        let ended = ended.map_err(|error| Trouble::passing(error.to_string()))?;
        let has_killed = !ended.killed.is_empty();
        if has_killed {
            let RunKey { name, driver, id } = run;
            tracing::warn!(task = %name, %driver, run = %id, killed = %ended, "something was left of a run of a task");
        }
        Ok(Swept { has_killed, words: ended.to_string() })
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
        Heard::Word => Ok(Swept { has_killed: false, words: format!("{reason}; its driver is believed") }),
        Heard::Nothing | Heard::NothingOfStart => Err(Trouble::lasting(reason)),
    }
}
