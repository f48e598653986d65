//! Ends the remains of a run in production, by evidence from the processes of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_actors::driver::DriverReport;
use callboard_actors::driver::client::{TaskId, TaskStatus};
use callboard_actors::drivers::{Drivers, ListDrivers};
use callboard_actors::leftovers::{Named, ProcessTable, Search, TaskMark, Traces};
use callboard_actors::processes::{ListProcesses, Processes};
use callboard_actors::shell::{Address, AskError};
use callboard_actors::vocabulary::DriverName;

use super::looks::Looks;
use super::{Heard, KeptHandle, RunEvidence, RunKey, Swept, Trouble, may_still_begin};

/// The timeout for killed processes to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// The attribute in which drivers built on the official packages report a task's process.
const PROCESS_ATTRIBUTE: &str = "pid";

/// Locates the processes of runs, and ends what is left of them.
#[derive(Debug, Clone)]
pub(super) struct Remains {
    table: Arc<ProcessTable>,
    looks: Looks,
    /// The owner mark of this host, which executors of its drivers carry.
    owner: Arc<str>,
    located: Arc<Mutex<Located>>,
}

/// The processes of the host itself: none of them is ever mistaken for a task's.
#[derive(Debug, Default)]
pub(super) struct Living {
    /// The drivers.
    pub(super) drivers: Vec<DriverReport>,
    /// The recorded processes of drivers and allocations.
    pub(super) recorded: BTreeSet<u32>,
}

/// The traces of the runs.
#[derive(Debug, Default)]
struct Located {
    /// The runs that are not known to be over: their processes belong to no other task.
    found: BTreeMap<TaskId, Traces>,
    /// The searches in progress, by number. A run that was ended meanwhile is no longer in it.
    under_way: BTreeMap<u64, TaskId>,
    searches: u64,
}

impl Living {
    /// Asks the owners of these processes. A driver of an earlier run that is not set up yet is only among the recorded processes.
    pub(super) fn ask(
        drivers: &Address<Drivers>,
        processes: &Address<Processes>,
    ) -> impl Future<Output = Result<Self, Trouble>> + use<> {
        let (drivers, processes) = (drivers.ask(ListDrivers), processes.ask(ListProcesses));
        async move {
            let silent = |error: AskError| Trouble::passing(error.to_string());
            let (drivers, processes) = (drivers.await.map_err(silent)?, processes.await.map_err(silent)?);
            Ok(Self { drivers, recorded: processes.iter().filter_map(|report| report.pid).collect() })
        }
    }

    /// The report of this driver.
    fn of(&self, driver: &DriverName) -> Option<&DriverReport> {
        self.drivers.iter().find(|report| report.name == *driver)
    }

    /// All process ids.
    fn pids(&self) -> BTreeSet<u32> {
        let drivers = self.drivers.iter().filter_map(|report| report.pid);
        drivers.chain(self.recorded.iter().copied()).collect()
    }
}

/// A search for a run's processes, from before its driver is asked.
#[derive(Debug)]
pub(super) struct Locating {
    run: RunKey,
    number: u64,
    located: Arc<Mutex<Located>>,
}

impl Locating {
    /// Stores the traces of the run; `false` if it was ended meanwhile. Then the traces may belong to a later run of its task.
    fn note(&self, traces: &Traces) -> bool {
        let mut located = lock(&self.located);
        let is_present = located.under_way.contains_key(&self.number);
        if is_present && !traces.is_empty() {
            located.found.insert(self.run.id.clone(), traces.clone());
        }
        is_present
    }
}

impl Drop for Locating {
    fn drop(&mut self) {
        lock(&self.located).under_way.remove(&self.number);
    }
}

fn lock(located: &Mutex<Located>) -> MutexGuard<'_, Located> {
    located.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remains {
    /// The remains of tasks of the host with this owner mark.
    pub(super) fn new(owner: Arc<str>) -> Self {
        Self { table: Arc::default(), looks: Looks::default(), owner, located: Arc::default() }
    }

    /// Ends what is left of a run.
    pub(super) async fn end(
        &self,
        run: &RunKey,
        handle: Option<Box<KeptHandle>>,
        evidence: RunEvidence,
        heard: Heard,
        living: &Living,
    ) -> Result<Swept, Trouble> {
        let Some(mark) = TaskMark::of_task_id(run.id.as_str()) else {
            return unmarked(run, heard);
        };
        if heard == Heard::NothingOfStart
            && let Some(reason) = may_still_begin(living.of(&run.driver))
        {
            return Err(Trouble::passing(reason));
        }
        let search = self.search(mark, handle, evidence, living);
        // If a driver saw the run's end, the run is over; remains that cannot be inspected do not matter.
        let search = Search { is_in_doubt: heard != Heard::End, ..search };
        let table = Arc::clone(&self.table);
        let ended = self.looks.take(&run.name, move || search.end(&table, KILL_TIMEOUT)).await;
        let ended = ended.map_err(Trouble::passing)?;
        let ended = ended.map_err(|error| Trouble::passing(error.to_string()))?;
        let mut located = lock(&self.located);
        located.found.remove(&run.id);
        located.under_way.retain(|_, id| *id != run.id);
        drop(located);
        let has_killed = !ended.killed.is_empty();
        if has_killed {
            let RunKey { name, driver, id } = run;
            tracing::warn!(task = %name, %driver, run_id = %id, killed = %ended, "killed remaining processes of a run");
        }
        Ok(Swept { has_killed, words: ended.to_string(), unreleased: None })
    }

    /// Begins a search for a run's processes. Its result counts only if nothing ends the run meanwhile. Call it before the
    /// driver is asked, which may take long.
    pub(super) fn begin_locating(&self, run: &RunKey) -> Locating {
        let mut located = lock(&self.located);
        located.searches += 1;
        let number = located.searches;
        located.under_way.insert(number, run.id.clone());
        Locating { run: run.clone(), number, located: Arc::clone(&self.located) }
    }

    /// Locates the processes of a run. `status` is the present report of its driver.
    pub(super) async fn locate(
        &self,
        locating: Locating,
        handle: Option<Box<KeptHandle>>,
        evidence: RunEvidence,
        status: Option<&TaskStatus>,
        living: &Living,
    ) -> Result<Traces, Trouble> {
        let run = &locating.run;
        let nameless =
            || Trouble::lasting(format!("{} was begun by an older version and names no task", run.id));
        let mark = TaskMark::of_task_id(run.id.as_str()).ok_or_else(nameless)?;
        let pid = status.and_then(|status| status.attributes.get(PROCESS_ATTRIBUTE)?.parse().ok());
        let driver = living.of(&run.driver).and_then(|report| report.pid);
        let named = pid.zip(driver).map(|(pid, driver)| Named { pid, driver });
        let search = Search { named, ..self.search(mark, handle, evidence, living) };
        let table = Arc::clone(&self.table);
        let found = self.looks.take(&run.name, move || search.locate(&table)).await;
        match found.and_then(|found| found.map_err(|error| error.to_string())) {
            Ok(traces) => {
                let count = traces.processes.len();
                tracing::debug!(task = %run.name, run_id = %run.id, count, "located the processes of a task");
                let is_over = || Trouble::lasting(format!("{} was ended while it was located", run.id));
                locating.note(&traces).then_some(traces).ok_or_else(is_over)
            }
            Err(error) => {
                tracing::debug!(task = %run.name, run_id = %run.id, %error, "cannot locate the processes of a task");
                Err(Trouble::passing(error))
            }
        }
    }

    fn search(
        &self,
        mark: TaskMark,
        handle: Option<Box<KeptHandle>>,
        evidence: RunEvidence,
        living: &Living,
    ) -> Search {
        // Processes of an earlier run of the same task belong to this task.
        let is_of_another = |id: &TaskId| TaskMark::of_task_id(id.as_str()).as_ref() != Some(&mark);
        let located = lock(&self.located);
        let others = located.found.iter().filter(|(id, _)| is_of_another(id));
        let others = others.flat_map(|(_, traces)| &traces.processes);
        let others = others.map(|(pid, trace)| (*pid, trace.started_ticks)).collect();
        drop(located);
        Search {
            state: handle.map(|handle| handle.bytes().to_vec()).unwrap_or_default(),
            owner: self.owner.to_string(),
            drivers: living.pids(),
            known: evidence.traces,
            others,
            begun: evidence.begun,
            ..Search::of(mark)
        }
    }
}

/// Handles a run that an older version began: the environment of its processes does not name it, so a search that finds
/// nothing proves nothing. As in that version, the driver's answer has to suffice.
fn unmarked(run: &RunKey, heard: Heard) -> Result<Swept, Trouble> {
    let reason =
        format!("{} was begun by an older version, and its processes cannot be told from others", run.id);
    match heard {
        Heard::End | Heard::Answer => {
            let words = format!("{reason}; its driver is believed");
            Ok(Swept { has_killed: false, words, unreleased: None })
        }
        Heard::Nothing | Heard::NothingOfStart => Err(Trouble::lasting(reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use callboard_actors::goplugin::SOCKET_DIR_VARIABLE;
    use callboard_actors::leftovers::{ALLOCATION_VARIABLE, TASK_VARIABLE};
    use callboard_actors::process::OWNER_VARIABLE;
    use callboard_actors::vocabulary::AllocationId;

    use super::*;

    fn run_of(allocation: &str, number: u32) -> RunKey {
        RunKey {
            name: AllocationId::new("web").unwrap(),
            driver: DriverName::new("exec").unwrap(),
            id: TaskId::new(format!("{allocation}/web/{number:08x}")).unwrap(),
        }
    }

    /// Starts a run of a task, with a child that has left its session and cleared its environment.
    fn begin(allocation: &str, directory: &Path) -> (Child, u32) {
        let said = directory.join("child");
        let script =
            r#"env -i setsid sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$0" & wait"#;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(&said).env(ALLOCATION_VARIABLE, allocation);
        command.env(TASK_VARIABLE, "web").stdin(Stdio::null()).process_group(0);
        let process = command.spawn().expect("it starts");
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            match std::fs::read_to_string(&said) {
                Ok(pid) => return (process, pid.trim().parse().expect("a number")),
                Err(error) => assert!(Instant::now() < until, "it says nothing: {error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    async fn locate(remains: &Remains, locating: Locating) -> Result<Traces, Trouble> {
        remains.locate(locating, None, RunEvidence::default(), None, &Living::default()).await
    }

    /// Locates the second run of a task, which its driver then leaves, while the first one is located late.
    async fn what_is_left_of_the_second_run_is_found(remains: &Remains, allocation: &str, late: Locating) {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut process, child) = begin(allocation, directory.path());
        locate(remains, late).await.expect_err("that run is over");
        assert!(lock(&remains.located).found.is_empty(), "nothing is noted of it");
        let second = run_of(allocation, 2);
        let traces = locate(remains, remains.begin_locating(&second)).await.expect("it is located");
        assert!(traces.processes.contains_key(&child), "{traces:?}");
        process.kill().expect("it can be ended");
        process.wait().expect("it has ended");
        let evidence = RunEvidence { begun: None, traces };
        let swept = remains
            .end(&second, None, evidence, Heard::End, &Living::default())
            .await
            .expect("nothing is left");
        assert!(swept.words.contains(&format!("{child} (")), "{}", swept.words);
    }

    fn allocation() -> String {
        let random = callboard_actors::process::random_bytes::<16>().expect("the system gives them");
        let hex = callboard_actors::vocabulary::hex(&random);
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    #[tokio::test]
    async fn a_run_that_was_ended_while_it_was_located_does_not_take_the_processes_of_the_next_one_th052() {
        let (remains, allocation) = (Remains::new("us".into()), allocation());
        let first = run_of(&allocation, 1);
        let late = remains.begin_locating(&first);
        remains
            .end(&first, None, RunEvidence::default(), Heard::End, &Living::default())
            .await
            .expect("nothing is there");
        what_is_left_of_the_second_run_is_found(&remains, &allocation, late).await;
        assert!(lock(&remains.located).under_way.is_empty());
    }

    #[tokio::test]
    async fn what_was_found_of_an_earlier_run_of_a_task_is_no_other_tasks_th052() {
        let (remains, allocation) = (Remains::new("us".into()), allocation());
        let directory = tempfile::tempdir().expect("a directory");
        let (mut process, child) = begin(&allocation, directory.path());
        let [first, second] = [1, 2].map(|number| run_of(&allocation, number));
        let traces = locate(&remains, remains.begin_locating(&first)).await.expect("it is located");
        process.kill().expect("it can be ended");
        process.wait().expect("it has ended");
        let evidence = RunEvidence { begun: None, traces };
        let swept = remains
            .end(&second, None, evidence, Heard::End, &Living::default())
            .await
            .expect("nothing is left");
        assert!(swept.words.contains(&format!("{child} (")), "{}", swept.words);
    }

    /// An executor whose driver died in the middle of a start has no child, no handle names it, and it does not name the task itself. A
    /// process that the host has a record of is a driver, whatever it looks like.
    #[tokio::test]
    async fn what_a_driver_that_died_had_begun_for_a_task_is_ended_and_no_driver_is_th041() {
        let (remains, allocation) = (Remains::new("us".into()), allocation());
        let run = run_of(&allocation, 1);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read line", "executor", &format!("/d/alloc/{allocation}/web/executor.out")]);
        command.env_clear().env(OWNER_VARIABLE, "us").env(SOCKET_DIR_VARIABLE, "/s").stdin(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let recorded = Living { recorded: [process.id()].into(), ..Living::default() };
        for (living, is_ended) in [(recorded, false), (Living::default(), true)] {
            let swept = remains.end(&run, None, RunEvidence::default(), Heard::Answer, &living).await;
            let swept = swept.expect("nothing is left");
            assert_eq!(swept.has_killed, is_ended, "{}", swept.words);
            assert_eq!(process.try_wait().expect("it is a child").is_some(), is_ended);
        }
    }
}
