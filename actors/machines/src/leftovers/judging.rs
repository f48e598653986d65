//! Decides which of the processes are proven to be a task's.

use std::collections::{BTreeMap, BTreeSet};

use super::mark::TaskMark;
use super::seen::{Environment, Holder, Process, Processes};
use super::text::names_path;
use super::traces::Traces;

/// The known facts when the processes of a task are searched for.
#[doc(hidden)]
#[derive(Debug)]
pub struct Case<'c> {
    /// How they are identified.
    pub mark: &'c TaskMark,
    /// All processes.
    pub processes: &'c Processes,
    /// The members of the cgroups that the host made for the task.
    pub members: &'c BTreeSet<u32>,
    /// Processes that are never the task's: the host, its ancestors, and its drivers.
    pub spared: &'c BTreeSet<u32>,
    /// The processes that were proven in an earlier round of the same search.
    pub before: &'c BTreeSet<u32>,
    /// The present boot id; `None` if unknown.
    pub boot: Option<&'c str>,
    /// Where the processes of the run were last located.
    pub known: &'c Traces,
    /// The processes of other runs, by PID and start time.
    pub others: &'c BTreeSet<(u32, u64)>,
    /// The process that a driver reports as the task's.
    pub named: Option<Named>,
    /// When the run was begun, in ticks since the boot; `None` if unknown.
    pub begun_ticks: Option<u64>,
}

/// A driver's report about a process. Trusted only for a process that the driver created since the run was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The process.
    pub pid: u32,
    /// The PID of the driver.
    pub driver: u32,
}

/// The known facts about the helpers of drivers.
#[doc(hidden)]
#[derive(Debug)]
pub struct Helpers<'c> {
    /// The processes that may be helpers.
    pub holders: &'c [Holder],
    /// The driver's state of the task; empty if unknown.
    pub state: &'c [u8],
    /// The owner id of the host of the driver with such helpers.
    pub owner: &'c str,
}

/// Processes, each with the proof that it is the task's.
#[doc(hidden)]
pub type Proven = BTreeMap<u32, &'static str>;

const BY_ENVIRONMENT: &str = "its environment names the task";
const BY_GROUP: &str = "it is in the task's control group";
const BY_TRACE: &str = "it was found to be the task's before";
const BY_DRIVER: &str = "its driver began it and says that it is the task's";
const BY_SESSION: &str = "it is in a session or process group of the task's";
const BY_PARENT: &str = "its parent is the task's";
const BY_SOCKET: &str = "it is the executor that the task's handle names";
const BY_COMMAND: &str = "it is a helper of a driver, and its command line names the task's directory";
pub(super) const BY_CHILDREN: &str = "it is the executor of the task's processes";

impl Case<'_> {
    /// The processes that are proven by their own properties, and their descendants.
    #[must_use]
    pub fn proven(&self) -> Proven {
        let mut proven = Proven::new();
        for process in self.candidates() {
            if let Some(proof) = self.proof(process) {
                proven.insert(process.pid, proof);
            }
        }
        self.with_descendants(&mut proven);
        proven
    }

    fn proof(&self, process: &Process) -> Option<&'static str> {
        if process.task() == Some(self.mark) {
            Some(BY_ENVIRONMENT)
        } else if self.members.contains(&process.pid) || self.is_in_own_group(process) {
            Some(BY_GROUP)
        } else if self.is_of_another_task(process) {
            None
        } else if self.known.of(self.boot, process).is_some() && !self.serves_another_task(process.pid) {
            Some(BY_TRACE)
        } else if self.is_in_remembered_group(process) {
            Some(BY_GROUP)
        } else {
            (self.is_named(process) && !self.serves_another_task(process.pid)).then_some(BY_DRIVER)
        }
    }

    /// Adds the helpers that are proven to be the task's, and their descendants.
    pub fn add_executors(&self, helpers: &Helpers<'_>, proven: &mut Proven) {
        for holder in helpers.holders {
            let Some(process) = self.processes.get(&holder.pid) else { continue };
            if proven.contains_key(&holder.pid) || self.spared.contains(&holder.pid) {
                continue;
            }
            let own = own_sockets(process, holder, helpers.owner);
            let is_named = own.iter().any(|socket| names_path(helpers.state, socket));
            if is_named && !self.serves_another_task(holder.pid) {
                proven.insert(holder.pid, BY_SOCKET);
            } else if !own.is_empty() && self.has_only_proven_children(holder.pid, proven) {
                proven.insert(holder.pid, BY_CHILDREN);
            } else if self.is_begun_for_it(process, holder, helpers.owner) {
                proven.insert(holder.pid, BY_COMMAND);
            }
        }
        self.with_descendants(proven);
    }

    /// Processes with unknown environment: they may be in the middle of an `exec`.
    #[must_use]
    pub fn unknown(&self, proven: &Proven) -> BTreeSet<u32> {
        let is_unknown = |process: &&Process| {
            process.environment == Environment::Unknown && !proven.contains_key(&process.pid)
        };
        self.candidates().filter(is_unknown).map(|process| process.pid).collect()
    }

    pub(super) fn candidates(&self) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(|process| !self.spared.contains(&process.pid))
    }

    fn is_in_own_group(&self, process: &Process) -> bool {
        process.groups.iter().any(|path| self.mark.names_group(path))
    }

    /// Whether its driver reports it as the task's, is its ancestor, and it was started since the run was begun.
    fn is_named(&self, process: &Process) -> bool {
        let Some(Named { pid, driver }) = self.named.filter(|named| named.pid == process.pid) else {
            return false;
        };
        let is_new = self.begun_ticks.is_some_and(|begun| process.started_ticks >= begun);
        is_new && pid != driver && self.ancestors(process).any(|ancestor| ancestor == driver)
    }

    /// The PIDs of a process's visible ancestors, nearest first.
    pub(super) fn ancestors(&self, process: &Process) -> impl Iterator<Item = u32> {
        let parent = |pid: &u32| Some(self.processes.get(pid)?.parent);
        // A snapshot of `/proc` that was read while processes ended may contain a cycle.
        std::iter::successors(Some(process.parent), parent).take(self.processes.len() + 1)
    }

    fn with_descendants(&self, proven: &mut Proven) {
        let held = self.held_numbers();
        loop {
            // A process of another task is excluded, regardless of its parent.
            let is_new =
                |process: &&Process| !proven.contains_key(&process.pid) && !self.is_of_another_task(process);
            let reason = |process: &Process| {
                // A living process with this id may be a case of PID reuse.
                let led = |pid: u32| self.before.contains(&pid) && !self.processes.contains_key(&pid);
                let leads = |pid: u32| proven.contains_key(&pid) || led(pid) || held.contains(&pid);
                if proven.contains_key(&process.parent) {
                    Some((process.pid, BY_PARENT))
                } else if leads(process.session) || leads(process.group) {
                    Some((process.pid, BY_SESSION))
                } else {
                    None
                }
            };
            let found: Vec<_> = self.candidates().filter(is_new).filter_map(reason).collect();
            if found.is_empty() {
                return;
            }
            proven.extend(found);
        }
    }

    /// Whether it names another task, or was located as part of another run of this host.
    pub(super) fn is_of_another_task(&self, process: &Process) -> bool {
        let is_remembered = || self.others.contains(&(process.pid, process.started_ticks));
        process.task().map_or_else(is_remembered, |task| task != self.mark)
    }

    /// Whether a process has a child of another task: a helper that tasks share is not an executor of this one.
    fn serves_another_task(&self, pid: u32) -> bool {
        self.processes.values().any(|process| process.parent == pid && self.is_of_another_task(process))
    }

    /// Whether a driver of this host started it for the task. An executor whose driver died before the start was answered has no child, and
    /// no handle names it: only its command line shows its task. Only drivers and their children have a socket directory.
    fn is_begun_for_it(&self, process: &Process, holder: &Holder, host: &str) -> bool {
        let is_ours = matches!(
            &process.environment,
            Environment::Read { owner: Some(owner), sockets: Some(_), .. } if owner == host
        );
        let is_free = !self.is_of_another_task(process) && !self.serves_another_task(process.pid);
        is_ours && is_free && self.mark.names_directory(&holder.command)
    }

    fn has_only_proven_children(&self, pid: u32, proven: &Proven) -> bool {
        let mut children = self.processes.values().filter(|process| process.parent == pid).peekable();
        children.peek().is_some() && children.all(|child| proven.contains_key(&child.pid))
    }
}

/// The sockets that a process holds in its own socket directory, if a driver of this host assigned that.
fn own_sockets<'h>(process: &Process, holder: &'h Holder, host: &str) -> Vec<&'h str> {
    let Environment::Read { sockets: Some(directory), owner: Some(owner), .. } = &process.environment else {
        return vec![];
    };
    if owner != host {
        return vec![];
    }
    let is_below = |path: &&str| {
        path.strip_prefix(directory.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    };
    holder.sockets.iter().map(String::as_str).filter(is_below).collect()
}

#[cfg(test)]
mod tests {
    use super::super::stage::{Machine, mark, process};
    use super::*;

    fn holds(pid: u32, socket: &str) -> Holder {
        Holder { pid, sockets: vec![socket.to_owned()], command: Vec::new() }
    }

    #[test]
    fn a_process_is_the_tasks_if_its_environment_names_the_task_and_no_other_th041() {
        let other = Process {
            environment: Environment::Read {
                task: Some(TaskMark { allocation: "b".to_owned(), ..mark("web") }),
                sockets: None,
                owner: None,
            },
            ..process(13, 1, None)
        };
        let machine = Machine::of([
            process(10, 1, Some("web")),
            process(11, 1, Some("job")),
            process(12, 1, None),
            other,
        ]);
        assert_eq!(machine.proven(&[], b""), [10]);
    }

    #[test]
    fn what_descends_from_a_proven_process_or_is_in_its_session_is_the_tasks_whatever_it_says() {
        let child = process(11, 10, None);
        let grandchild = Process { environment: Environment::Unknown, ..process(12, 11, None) };
        let orphan = Process { session: 10, ..process(13, 1, None) };
        let mut machine = Machine::of([process(10, 1, Some("web")), child, grandchild, orphan.clone()]);
        assert_eq!(machine.proven(&[], b""), [10, 11, 12, 13]);
        // Its leader was killed meanwhile.
        machine = Machine::of([orphan]);
        assert!(machine.proven(&[], b"").is_empty());
        machine.before.insert(10);
        assert_eq!(machine.proven(&[], b""), [13]);
        // PID reuse: the new process began its own session.
        machine.processes.insert(10, process(10, 1, None));
        assert!(machine.proven(&[], b"").is_empty());
    }

    #[test]
    fn what_is_in_the_control_group_of_the_task_is_the_tasks_th052() {
        let mut named = process(10, 1, None);
        named.groups = vec!["/nomad.slice/share.slice/a.web.scope".to_owned()];
        let mut machine = Machine::of([named, process(11, 1, None), process(12, 1, None)]);
        machine.members.insert(11);
        assert_eq!(machine.proven(&[], b""), [10, 11]);
    }

    #[test]
    fn an_executor_is_found_by_the_socket_that_the_handle_names_even_without_its_task() {
        let machine = Machine::of([process(20, 1, None), process(21, 1, None)]);
        let holders = [holds(20, "/run/p/plugin20"), holds(21, "/run/p/plugin21")];
        assert_eq!(machine.proven(&holders, b"\xaf/run/p/plugin20\xa3Pid"), [20]);
        assert!(
            machine.proven(&holders, b"").is_empty(),
            "without children and without a handle nothing is proven"
        );
    }

    #[test]
    fn an_executor_whose_driver_died_in_the_start_is_found_by_its_command_line_th041() {
        let begun = |pid, command: &str| Holder { pid, sockets: Vec::new(), command: command.into() };
        let executor = "drivers\0executor\0{\"LogFile\":\"/d/alloc/a/web/executor.out\"}\0";
        let machine = |process: Process| Machine::of([process]);
        let proven = |process: Process, command| machine(process).proven(&[begun(20, command)], b"");
        assert_eq!(proven(process(20, 1, None), executor), [20]);
        assert!(proven(process(20, 1, Some("job")), executor).is_empty(), "it is of another task");
        assert!(proven(process(20, 1, None), "drivers\0executor\0/d/alloc/a/webs/executor.out\0").is_empty());
        let foreign = Process {
            environment: Environment::Read { task: None, sockets: None, owner: None },
            ..process(20, 1, None)
        };
        assert!(proven(foreign, executor).is_empty(), "no driver of ours began it");
        assert!(proven(process(2, 1, None), executor).is_empty(), "a driver");
    }

    #[test]
    fn an_executor_is_the_parent_of_the_tasks_processes_that_holds_a_socket_and_has_no_other_children() {
        let family = [process(20, 1, None), process(21, 20, Some("web"))];
        let holders = [holds(20, "/run/p/plugin20")];
        assert_eq!(Machine::of(family.clone()).proven(&holders, b""), [20, 21]);
        // It serves another task as well.
        let shared = Machine::of(family.into_iter().chain([process(22, 20, Some("job"))]));
        assert_eq!(shared.proven(&holders, b""), [21]);
    }

    #[test]
    fn a_service_that_a_handle_names_is_no_executor_of_ours() {
        // A driver of containers stores the path of its daemon's socket.
        let daemon = Process {
            environment: Environment::Read { task: None, sockets: None, owner: None },
            ..process(30, 1, None)
        };
        let foreign = Process {
            environment: Environment::Read {
                task: None,
                sockets: Some("/run/p".into()),
                owner: Some("another host".into()),
            },
            ..process(31, 1, None)
        };
        let machine = Machine::of([daemon, foreign, process(32, 1, None)]);
        let holders = [
            holds(30, "/run/podman/podman.sock"),
            holds(31, "/run/p/plugin31"),
            holds(32, "/run/podman/podman.sock"),
        ];
        assert!(machine.proven(&holders, b"/run/podman/podman.sock\0/run/p/plugin31\0").is_empty());
    }

    #[test]
    fn the_host_and_its_drivers_are_never_the_tasks() {
        let machine = Machine::of([process(2, 1, Some("web")), process(10, 2, Some("web"))]);
        assert_eq!(machine.proven(&[holds(2, "/run/p/plugin2")], b"/run/p/plugin2"), [10]);
    }

    #[test]
    fn a_process_without_an_environment_is_unknown_and_not_no() {
        let fresh = Process { environment: Environment::Unknown, ..process(10, 1, None) };
        let machine = Machine::of([fresh, process(11, 1, None)]);
        machine.with(|case| assert_eq!(case.unknown(&case.proven()), [10].into()));
    }

    #[test]
    fn a_process_group_of_the_task_is_the_tasks() {
        let mate = Process { group: 10, ..process(11, 1, None) };
        assert_eq!(Machine::of([process(10, 1, Some("web")), mate]).proven(&[], b""), [10, 11]);
    }

    #[test]
    fn a_driver_is_believed_only_of_a_process_that_it_made_since_the_run_was_begun_th052() {
        let young = |pid, parent| Process { started_ticks: 5, ..process(pid, parent, None) };
        let named = |process: Process| {
            // 2 is the driver, 20 a helper of it.
            let mut machine = Machine::of([process.clone(), young(20, 2), process_2()]);
            machine.named = Some(Named { pid: process.pid, driver: 2 });
            machine.proven(&[], b"")
        };
        assert_eq!(named(young(10, 20)), [10]);
        assert_eq!(named(young(10, 2)), [10]);
        assert!(named(young(10, 1)).is_empty(), "it did not make that");
        assert!(
            named(Process { started_ticks: 4, ..young(10, 2) }).is_empty(),
            "that was there before the run"
        );
        let other = Process { started_ticks: 5, ..process(10, 2, Some("job")) };
        assert!(named(other).is_empty(), "that names another task");
        let shared =
            [young(10, 2), process_2(), Process { started_ticks: 6, ..process(11, 10, Some("job")) }];
        let mut machine = Machine::of(shared);
        machine.named = Some(Named { pid: 10, driver: 2 });
        assert!(machine.proven(&[], b"").is_empty(), "that is a helper which another task has as well");
        let in_a_circle = [young(10, 11), young(11, 10)];
        let mut machine = Machine::of(in_a_circle);
        machine.named = Some(Named { pid: 10, driver: 2 });
        assert!(machine.proven(&[], b"").is_empty());
    }

    fn process_2() -> Process {
        process(2, 1, None)
    }
}
