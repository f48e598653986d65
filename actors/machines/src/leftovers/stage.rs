//! Simulated process tables for the tests of the decisions.

use std::collections::BTreeSet;

use super::judging::{Case, Helpers, Named};
use super::mark::TaskMark;
use super::seen::{Environment, Holder, Process, Processes};
use super::traces::Traces;

pub(super) fn mark(task: &str) -> TaskMark {
    TaskMark { allocation: "a".to_owned(), task: task.to_owned() }
}

/// A process in session 1, which names this task.
pub(super) fn process(pid: u32, parent: u32, task: Option<&str>) -> Process {
    let environment =
        Environment::Read { task: task.map(mark), sockets: Some("/run/p".into()), owner: Some("us".into()) };
    Process { pid, parent, session: 1, group: 1, started_ticks: 1, environment, groups: vec![] }
}

/// A process table in which the task `web` is searched for; 1 and 2 are spared.
pub(super) struct Machine {
    pub(super) processes: Processes,
    pub(super) members: BTreeSet<u32>,
    pub(super) before: BTreeSet<u32>,
    pub(super) boot: Option<&'static str>,
    pub(super) known: Traces,
    pub(super) others: BTreeSet<(u32, u64)>,
    pub(super) named: Option<Named>,
}

impl Machine {
    pub(super) fn of(processes: impl IntoIterator<Item = Process>) -> Self {
        let processes = processes.into_iter().map(|process| (process.pid, process)).collect();
        Self {
            processes,
            members: BTreeSet::new(),
            before: BTreeSet::new(),
            boot: Some("boot"),
            known: Traces::default(),
            others: BTreeSet::new(),
            named: None,
        }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&Case<'_>) -> T) -> T {
        let (mark, spared) = (mark("web"), [1, 2].into());
        let Self { processes, members, before, boot, known, others, named } = self;
        let (boot, named, begun_ticks) = (*boot, *named, Some(5));
        let (mark, spared) = (&mark, &spared);
        look(&Case { mark, processes, members, spared, before, boot, known, others, named, begun_ticks })
    }

    pub(super) fn proven(&self, holders: &[Holder], state: &[u8]) -> Vec<u32> {
        self.with(|case| {
            let mut proven = case.proven();
            case.add_executors(&Helpers { holders, state, owner: "us" }, &mut proven);
            proven.into_keys().collect()
        })
    }

    pub(super) fn traces(&self) -> Traces {
        self.with(|case| case.traces(&case.proven()))
    }
}
