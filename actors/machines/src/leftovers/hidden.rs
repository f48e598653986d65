//! Decides which hidden processes, which this host may not inspect, may be of a run.
//!
//! The kernel shows the environment of a process only to its own user, and not even to that one if the program has more
//! privileges than its user or requested this; with `CAP_SYS_PTRACE` all are visible. A hidden process is no evidence, so
//! *nothing was found* does not prove that nothing runs as long as the task may be among the hidden ones. On the other hand
//! a machine is full of processes of others that an unprivileged host cannot read, and those must not block a task forever.
//! So a hidden process may be of a run unless one of these excludes it:
//!
//! - *Time.* It was started before the run was begun, or the run was begun in another boot. Both times are counted since the
//!   boot, on a clock that cannot be set. If the beginning of the run is unknown, time excludes nothing.
//! - *User.* This host cannot become another user (it has no `CAP_SETUID`), and the process has none of the host's users. A
//!   set-user-id program without a living parent is not found; a daemon that runs tasks as another user for such a host must
//!   be trusted. A host that may become any user may have started it as any user: which user a driver really takes, or maps
//!   it to, is unknown here.
//! - *Memory.* It was located as part of another run of this host.
//! - *Cgroup.* A part of its path is named after another task; or it is in the unit of a service, or in a login session, in
//!   which neither this host nor one of its drivers is, and the path does not mention the task. Drivers put tasks into
//!   cgroups below their own, or into those of containers.
//! - *Parents.* One of its ancestors is alive, is neither the host nor a driver or one of their parents, and is not of the
//!   run: it was begun before the run, names no task or another one and does not come from a driver, or cannot be of this
//!   run by its user. Between the two the cgroup must be the same, since monitors of containers are such parents. Orphan
//!   processes are reparented to the first process, or to a parent of the host.
//!
//! If `/proc` does not even list the processes (its option `hidepid`), none of this is visible.

use std::collections::BTreeSet;

use super::judging::{Case, Proven};
use super::seen::{Environment, Process};

/// Which processes may be of the run.
#[doc(hidden)]
#[derive(Debug)]
pub struct Suspicion<'s> {
    /// The run has no process that was started earlier, in ticks since the boot.
    pub since: u64,
    /// The users that a process of the run can have; `None` if any.
    pub users: Option<&'s BTreeSet<u32>>,
}

impl Case<'_> {
    /// The hidden processes that may be of the run, without the proven ones.
    #[must_use]
    pub fn suspects(&self, suspicion: &Suspicion<'_>, proven: &Proven) -> BTreeSet<u32> {
        let is_suspect = |process: &&Process| {
            !proven.contains_key(&process.pid)
                && suspicion.may_be(process)
                && matches!(process.environment, Environment::Hidden { .. })
                && !self.is_of_another_task(process)
                && !self.is_elsewhere(process)
                && !self.descends_from_something_else(process, suspicion)
        };
        self.candidates().filter(is_suspect).map(|process| process.pid).collect()
    }

    /// Whether its cgroup belongs to something else.
    fn is_elsewhere(&self, process: &Process) -> bool {
        let is_of_another = |path: &String| self.mark.is_of_another(path);
        let units: BTreeSet<&str> = process.groups.iter().filter_map(|path| unit(path)).collect();
        let spared = self.spared.iter().filter_map(|pid| self.processes.get(pid));
        let hosts: BTreeSet<&str> =
            spared.flat_map(|process| &process.groups).filter_map(|path| unit(path)).collect();
        process.groups.iter().any(is_of_another)
            || (!units.is_empty()
                && units.is_disjoint(&hosts)
                && !process.groups.iter().any(|path| self.mark.is_mentioned_in(path)))
    }

    fn descends_from_something_else(&self, process: &Process, suspicion: &Suspicion<'_>) -> bool {
        let until_spared = self.ancestors(process).take_while(|pid| !self.spared.contains(pid));
        let mut ancestors = until_spared.filter_map(|pid| self.processes.get(&pid));
        ancestors.any(|ancestor| {
            self.is_of_another_task(ancestor)
                || (ancestor.groups == process.groups && suspicion.is_of_something_else(ancestor))
        })
    }
}

impl Suspicion<'_> {
    /// Whether time and user permit that a process is of the run.
    fn may_be(&self, process: &Process) -> bool {
        let has_user = match (&process.environment, self.users) {
            (Environment::Hidden { users }, Some(ours)) => users.is_empty() || !users.is_disjoint(ours),
            (Environment::Hidden { .. }, None) | (Environment::Unknown | Environment::Read { .. }, _) => true,
        };
        has_user && process.started_ticks >= self.since
    }

    /// Whether a process that is not proven can be neither of the run nor a helper of a driver.
    fn is_of_something_else(&self, process: &Process) -> bool {
        let speaks = matches!(process.environment, Environment::Read { owner: None, .. });
        speaks || !self.may_be(process)
    }
}

/// The prefix of a path up to a service unit or a login session, by systemd's names.
fn unit(path: &str) -> Option<&str> {
    let is_unit =
        |part: &str| part.ends_with(".service") || (part.starts_with("session-") && part.ends_with(".scope"));
    let ends = path.match_indices('/').map(|(place, _)| place).skip(1).chain([path.len()]);
    let ends = ends.filter(|end| path[..*end].rsplit('/').next().is_some_and(is_unit));
    ends.last().map(|end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::super::mark::TaskMark;
    use super::super::stage::{Machine, mark, process};
    use super::*;

    const OURS: u32 = 1_000;

    /// A hidden process of this user, which was started after the run was begun.
    fn hidden(pid: u32, parent: u32, user: u32) -> Process {
        let environment = Environment::Hidden { users: [user].into() };
        Process { environment, started_ticks: 50, ..process(pid, parent, None) }
    }

    /// A readable process, started as late, that names no task.
    fn read(pid: u32, parent: u32) -> Process {
        let environment = Environment::Read { task: None, sockets: None, owner: None };
        Process { environment, started_ticks: 50, ..process(pid, parent, None) }
    }

    fn within(group: &str, process: Process) -> Process {
        Process { groups: vec![group.to_owned()], ..process }
    }

    fn suspects(machine: &Machine, users: Option<u32>) -> Vec<u32> {
        let users = users.map(|user| BTreeSet::from([user]));
        let suspicion = Suspicion { since: 10, users: users.as_ref() };
        machine.with(|case| case.suspects(&suspicion, &case.proven()).into_iter().collect())
    }

    #[test]
    fn what_is_hidden_and_younger_than_the_run_may_be_of_it_th041() {
        let old = Process { started_ticks: 9, ..hidden(11, 1, 65_534) };
        let machine = Machine::of([hidden(10, 1, 65_534), old, hidden(2, 1, 0), read(12, 1)]);
        assert_eq!(suspects(&machine, None), [10], "not the older one, not the driver, not what can be read");
    }

    #[test]
    fn a_host_that_cannot_become_another_user_started_nothing_of_another_user_th041() {
        let unknown = Process { environment: Environment::Hidden { users: [].into() }, ..hidden(13, 1, 0) };
        let raised = Environment::Hidden { users: [OURS, 0].into() };
        let raised = Process { environment: raised, ..hidden(12, 1, 0) };
        let machine = Machine::of([hidden(10, 1, 0), hidden(11, 1, OURS), raised, unknown]);
        assert_eq!(suspects(&machine, Some(OURS)), [11, 12, 13]);
        assert_eq!(suspects(&machine, None), [10, 11, 12, 13]);
    }

    #[test]
    fn what_descends_from_what_is_not_of_the_run_is_not_either() {
        // A login: its parts have the user of the host, and their parent has not.
        let login = Machine::of([hidden(10, 1, 0), hidden(11, 10, OURS), read(12, 11), hidden(13, 12, OURS)]);
        assert!(suspects(&login, Some(OURS)).is_empty());
        // It is older than the run.
        let old = Process { started_ticks: 9, ..hidden(20, 1, OURS) };
        assert!(suspects(&Machine::of([old, hidden(21, 20, OURS)]), Some(OURS)).is_empty());
        // A helper of a driver, or a process without an environment, may be its parent.
        let helper = Process { started_ticks: 50, ..process(20, 1, None) };
        let empty = Process { environment: Environment::Unknown, ..read(22, 1) };
        let machine = Machine::of([helper, hidden(21, 20, OURS), empty, hidden(23, 22, OURS)]);
        assert_eq!(suspects(&machine, Some(OURS)), [21, 23]);
        // It names another task.
        let other = Process { started_ticks: 50, ..process(20, 1, Some("job")) };
        assert!(suspects(&Machine::of([other, hidden(21, 20, OURS)]), Some(OURS)).is_empty());
    }

    #[test]
    fn the_monitor_of_a_container_does_not_speak_for_what_is_in_it() {
        let monitor = within("/monitors", read(20, 1));
        let machine = Machine::of([monitor, within("/container", hidden(21, 20, 100_000))]);
        assert_eq!(suspects(&machine, None), [21]);
    }

    #[test]
    fn what_is_in_a_group_of_another_task_or_in_another_service_is_not_of_the_run() {
        let host = within("/system.slice/host.service", process(2, 1, None));
        let id = "0a1b2c3d-0a1b-8a1b-8a1b-0a1b2c3d4e5f";
        let machine = Machine::of([
            host,
            within(&format!("/nomad/{id}.job"), hidden(10, 1, 33)),
            within("/system.slice/other.service", hidden(11, 1, 33)),
            within("/user.slice/user-1000.slice/session-3.scope", hidden(12, 1, 33)),
            within("/system.slice/host.service", hidden(13, 1, 33)),
            within("/system.slice/host.service/inner", hidden(14, 1, 33)),
            within("/system.slice/task-web.service", hidden(15, 1, 33)),
            within("/machine.slice/container.scope", hidden(16, 1, 33)),
        ]);
        assert_eq!(suspects(&machine, None), [13, 14, 15, 16]);
    }

    #[test]
    fn a_task_with_a_common_name_is_not_suspected_in_every_service() {
        let machine = Machine::of([
            within("/system.slice/other.service", hidden(10, 1, 33)),
            within("/user.slice/user-1000.slice/session-3.scope", hidden(11, 1, 33)),
            within("/system.slice/system.service", hidden(12, 1, 33)),
        ]);
        for (task, expected) in [("system", vec![12]), ("s", vec![]), ("other", vec![10]), ("user", vec![])] {
            let mark = TaskMark { task: task.to_owned(), ..mark("") };
            let found = machine.with(|case| {
                let case = Case { mark: &mark, ..*case };
                case.suspects(&Suspicion { since: 10, users: None }, &case.proven())
            });
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{task}");
        }
    }

    #[test]
    fn what_is_remembered_of_another_run_is_not_of_this_one() {
        let mut machine = Machine::of([hidden(10, 1, 33), hidden(11, 10, 33)]);
        machine.others = [(10, 49)].into();
        assert_eq!(suspects(&machine, None), [10, 11], "another process had its number");
        machine.others = [(10, 50)].into();
        assert!(suspects(&machine, None).is_empty());
    }

    #[test]
    fn what_is_proven_is_no_suspect() {
        let parent = Process { started_ticks: 50, ..process(10, 1, Some("web")) };
        assert!(suspects(&Machine::of([parent, hidden(11, 10, 33)]), None).is_empty());
    }
}
