//! Determines which workloads the host itself runs or may run. The host knows this better than any client of the admin socket (V8).

use callboard_actors::process::ProcessName;
use callboard_actors::processes::ListProcesses;
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::AllocationId;

use super::tree::{DESCRIBE_DEADLINE, answered};
use crate::agent::{self, Agent};
use crate::config::process_name;
use crate::host::Host;
use crate::tasks::{self, TaskPhase, TaskReport, Tasks};

/// The allocations and tasks of the host, and the processes that survive it.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    allocations: Vec<agent::TaskReport>,
    tasks: Vec<TaskReport>,
    processes: Vec<ProcessName>,
}

impl Workloads {
    /// Asks the owners of the workloads. The agent answers only after it has found what an earlier run of the host has left.
    ///
    /// # Errors
    /// The actor that did not answer, and why: then it is unknown what runs.
    pub(super) async fn ask(
        host: &Host,
        agent: &Address<Agent>,
        tasks: &Address<Tasks>,
    ) -> Result<Self, String> {
        let (allocations, tasks, processes) = tokio::join!(
            answered(DESCRIBE_DEADLINE, agent.ask(agent::ListTasks)),
            answered(DESCRIBE_DEADLINE, tasks.ask(tasks::ListTasks)),
            answered(DESCRIBE_DEADLINE, host.processes().ask(ListProcesses)),
        );
        let processes = processes.map_err(|(_, reason)| unknown(host.processes().name(), &reason))?;
        Ok(Self {
            allocations: allocations.map_err(|(_, reason)| unknown("agent", &reason))?,
            tasks: tasks.map_err(|(_, reason)| unknown("tasks", &reason))?,
            processes: processes.into_iter().map(|process| process.name).collect(),
        })
    }

    /// What may still run of an allocation or task, and what to do about it; `None` if it is down, or not a workload of this host.
    pub(super) fn living(&self, name: &AllocationId) -> Option<String> {
        let stop = |what: String| format!("{what}; stop it with `callboard stop {name}`, and try again then");
        let allocation = self.allocation(name).and_then(living_allocation);
        let task = || self.task(name).and_then(living_task);
        let process = || self.process(name).map(|process| format!("the process {process} has not ended"));
        allocation.or_else(task).map(stop).or_else(|| Some(format!("{}; wait for its end", process()?)))
    }

    /// Whether the host runs an allocation or task of this name itself, now or later.
    pub(super) fn has(&self, name: &AllocationId) -> bool {
        self.allocation(name).is_some() || self.task(name).is_some() || self.process(name).is_some()
    }

    fn allocation(&self, name: &AllocationId) -> Option<&agent::TaskReport> {
        self.allocations.iter().find(|allocation| allocation.allocation == *name)
    }

    fn task(&self, name: &AllocationId) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| task.name == *name)
    }

    /// The surviving process of this name: its allocation may no longer be configured.
    fn process(&self, name: &AllocationId) -> Option<&ProcessName> {
        let name = process_name(name).ok()?;
        self.processes.iter().find(|process| **process == name)
    }
}

fn unknown(actor: &str, reason: &str) -> String {
    format!("it is unknown what the host runs, since {actor} does not answer: {reason}")
}

fn living_allocation(allocation: &agent::TaskReport) -> Option<String> {
    let agent::TaskReport { allocation: name, phase, pid, .. } = allocation;
    match (pid, phase) {
        (Some(pid), _) => Some(format!("allocation {name} has the process {pid}")),
        (None, agent::TaskPhase::Stopped | agent::TaskPhase::Failed) => None,
        (
            None,
            agent::TaskPhase::Starting
            | agent::TaskPhase::Running
            | agent::TaskPhase::Stopping
            | agent::TaskPhase::Waiting,
        ) => Some(format!("allocation {name} is {phase}")),
    }
}

/// Why a task may live. A waiting task may have been started by its driver already.
fn living_task(task: &TaskReport) -> Option<String> {
    let TaskReport { name, phase, id, .. } = task;
    match (phase, id) {
        (TaskPhase::Stopped | TaskPhase::Ended | TaskPhase::Failed, None) => None,
        (TaskPhase::Stopped | TaskPhase::Ended | TaskPhase::Failed, Some(id)) => {
            Some(format!("task {name} is {phase}, and its run {id} is not cleared"))
        }
        (
            TaskPhase::Starting
            | TaskPhase::Recovering
            | TaskPhase::Running
            | TaskPhase::Stopping
            | TaskPhase::Waiting
            | TaskPhase::OutOfReach,
            _,
        ) => Some(format!("task {name} is {phase}")),
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::allocations::RestartWhen;
    use callboard_actors::driver::client::TaskId;
    use callboard_actors::vocabulary::{Attempt, DriverName, PluginName, Probing, Role, Timestamp};

    use super::*;

    fn web() -> AllocationId {
        AllocationId::new("web").expect("a name")
    }

    fn with_allocation(phase: agent::TaskPhase, pid: Option<u32>) -> Workloads {
        let allocation = agent::TaskReport {
            allocation: web(),
            plugin: PluginName::new("zfs").expect("a name"),
            role: Role::Node,
            phase,
            since: Timestamp::default(),
            pid,
            restarts: 0,
            last_event: String::new(),
            is_wanted: false,
            attempt: Attempt::default(),
            restart_when: RestartWhen::Never,
            probing: Probing::default(),
            survives: false,
            exit: None,
            due: None,
            stopping: None,
            ended: vec![],
        };
        Workloads { allocations: vec![allocation], ..Workloads::default() }
    }

    fn with_task(phase: TaskPhase, id: Option<TaskId>) -> Workloads {
        let task = TaskReport {
            name: web(),
            driver: DriverName::new("exec").expect("a name"),
            phase,
            since: Timestamp::default(),
            attempt: Attempt::default(),
            id,
            exit: None,
            restarts: 0,
            note: String::new(),
            events: vec![],
            events_told: 0,
            events_missed: 0,
            is_configured: true,
            due: None,
            stopping: None,
            ended: vec![],
        };
        Workloads { tasks: vec![task], ..Workloads::default() }
    }

    fn with_process() -> Workloads {
        let process = process_name(&web()).expect("a name");
        Workloads { processes: vec![process], ..Workloads::default() }
    }

    fn run() -> TaskId {
        TaskId::new("run-1").expect("an id")
    }

    #[test]
    fn only_what_is_down_is_taken_to_have_no_process_v8() {
        use agent::TaskPhase as Phase;
        for (workloads, living) in [
            (
                with_allocation(Phase::Stopping, Some(7)),
                Some("allocation web has the process 7; stop it with"),
            ),
            (with_allocation(Phase::Starting, None), Some("allocation web is starting; stop it with")),
            (with_allocation(Phase::Stopping, None), Some("allocation web is stopping; stop it with")),
            (with_allocation(Phase::Waiting, None), Some("allocation web is waiting; stop it with")),
            (with_allocation(Phase::Stopped, None), None),
            (with_allocation(Phase::Failed, None), None),
            (with_task(TaskPhase::OutOfReach, None), Some("task web is out-of-reach; stop it with")),
            (with_task(TaskPhase::Starting, None), Some("task web is starting; stop it with")),
            (with_task(TaskPhase::Waiting, None), Some("task web is waiting; stop it with")),
            (with_task(TaskPhase::Failed, Some(run())), Some("task web is failed, and its run run-1 is not")),
            (with_task(TaskPhase::Failed, None), None),
            (with_task(TaskPhase::Ended, None), None),
            (with_process(), Some("the process allocation-web has not ended; wait for its end")),
            (Workloads::default(), None),
        ] {
            let told = workloads.living(&web());
            let begins = |told: &String| living.is_some_and(|living| told.starts_with(living));
            assert!(told.as_ref().map_or(living.is_none(), begins), "{workloads:?}: {told:?}");
        }
    }

    #[test]
    fn a_workload_is_told_by_its_name_also_while_it_is_down() {
        let other = AllocationId::new("db").expect("a name");
        for workloads in [
            with_allocation(agent::TaskPhase::Stopped, None),
            with_task(TaskPhase::Ended, None),
            with_process(),
        ] {
            assert!(workloads.has(&web()) && !workloads.has(&other), "{workloads:?}");
            assert_eq!(workloads.living(&other), None);
        }
    }

    #[test]
    fn what_runs_is_unknown_while_an_actor_does_not_answer_v8() {
        actix_rt::System::new().block_on(async {
            let data_dir = tempfile::tempdir().expect("a temporary directory");
            let host = Host::builder(data_dir.path()).start().await.expect("it starts");
            let (agent, tasks) = (Address::vacant("agent", 1), Address::vacant("tasks", 1));
            let unknown = Workloads::ask(&host, &agent, &tasks).await.expect_err("they do not run");
            assert!(unknown.contains("since agent does not answer: agent is not running"), "{unknown}");
            host.stop().await;
        });
    }
}
