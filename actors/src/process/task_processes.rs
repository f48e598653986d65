//! The processes of plugins' tasks, and the check that the listener at the socket of a plugin is one of them.
//!
//! A socket is a path in the file system: by mistake or intent another process may listen there. The kernel reports the listener
//! (`SO_PEERCRED`), and a host program that starts its workloads as processes knows the right one. Plugins run behind wrapper scripts, as
//! daemons and in containers, so a listener is refused only when it is proven to be another process:
//!
//! | the listener | |
//! |---|---|
//! | is the task's process, a descendant of it, or in its process group, session or control group | accepted |
//! | is any of these for another allocation | refused |
//! | has ended, has process ids of its own (a container), or has the same `CSI_ENDPOINT` as the task | accepted: its origin is unknown |
//! | is any other process | refused, unless any process may listen ([`ListenerRule::Any`]) |
//!
//! A process is identified by its id and start time: a task that has ended is never confused with a later process with its id. Groups
//! and sessions of the host itself prove nothing, since everything that it starts may be in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::environment::{Environment, look_until_known};
use super::listener::{Who, descends};
use super::system::ProcessStatus;
use crate::goplugin::Listener;
use crate::vocabulary::{AllocationId, ListenerRule};

/// The variable with the endpoint at which a plugin is requested to listen.
const ENDPOINT_VARIABLE: &str = "CSI_ENDPOINT";

/// The listener is not the plugin of this allocation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{who} listens there, which belongs neither to the process of allocation {allocation} (pid {task}) nor to its process group; \
     no request was sent to it. Give each plugin a socket of its own, and look what that process does there. If it is the \
     plugin, started by \
     a container runtime or systemd for instance, set listener = \"any\" for this allocation"
)]
pub struct Intruder {
    /// The process that listens.
    pub who: Who,
    /// The allocation whose socket it is.
    pub allocation: AllocationId,
    /// The process of the allocation.
    pub task: u32,
}

/// The processes of allocations, as the host program reports them. Clones share them; it can be used from any thread.
#[derive(Debug, Clone, Default)]
pub struct TaskProcesses(Arc<Mutex<Known>>);

#[derive(Debug, Clone, Default)]
struct Known {
    tasks: BTreeMap<AllocationId, Task>,
    /// Any process may listen at the sockets of these allocations.
    open: BTreeSet<AllocationId>,
    /// The processes of these allocations were asked to end; their actual end is reported separately.
    ending: BTreeSet<AllocationId>,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    pid: u32,
    /// Its start time. `None` if it had ended when it was added.
    started_ticks: Option<u64>,
}

impl TaskProcesses {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of this allocation runs in this process, in place of a former one. From now on no other process may listen at its socket.
    pub fn add(&self, allocation: AllocationId, pid: u32) {
        let started_ticks = Traits::of(pid).map(|process| process.status.started_ticks);
        let mut known = self.known();
        known.ending.remove(&allocation);
        known.tasks.insert(allocation, Task { pid, started_ticks });
    }

    /// The process of this allocation is asked to end, so the loss of its connection is not an error until the allocation has another
    /// process.
    pub fn end(&self, allocation: AllocationId) {
        self.known().ending.insert(allocation);
    }

    /// Whether the process of this allocation was asked to end, and it has no other one yet.
    #[must_use]
    pub fn is_ending(&self, allocation: &AllocationId) -> bool {
        self.known().ending.contains(allocation)
    }

    /// Sets the rule for listeners at the socket of this allocation, whichever process it has.
    pub fn set_listener(&self, allocation: AllocationId, rule: ListenerRule) {
        let open = &mut self.known().open;
        match rule {
            ListenerRule::Own => _ = open.remove(&allocation),
            ListenerRule::Any => _ = open.insert(allocation),
        }
    }

    /// This process of the allocation has ended. Another one that was added meanwhile stays.
    pub fn remove(&self, allocation: &AllocationId, pid: u32) {
        let tasks = &mut self.known().tasks;
        if tasks.get(allocation).is_some_and(|task| task.pid == pid) {
            tasks.remove(allocation);
        }
    }

    /// Checks the listener at the socket of an allocation. Any process may listen if the process of the allocation is unknown. May block
    /// for 200 ms: while a process executes another program, it shows nothing of itself.
    ///
    /// # Errors
    /// [`Intruder`] names both processes.
    pub fn check(&self, allocation: &AllocationId, listener: &Listener) -> Result<(), Intruder> {
        let Known { tasks, open, ending: _ } = self.known().clone();
        let (Some(task), Listener::Socket { pid: Some(pid), .. }) = (tasks.get(allocation), listener) else {
            return Ok(());
        };
        if open.contains(allocation) {
            return Ok(());
        }
        let Some(listening) = Traits::of(*pid) else { return Ok(()) };
        let ours = Traits::of(std::process::id());
        let is_of = |task: &Task| {
            let of_task = task.traits();
            of_task.is_some_and(|of_task| listening.belongs_to(&of_task, ours.as_ref()))
        };
        let is_of_another = || tasks.iter().any(|(other, task)| other != allocation && is_of(task));
        if is_of(task) || (!is_of_another() && listening.may_belong_to(task)) {
            return Ok(());
        }
        Err(Intruder { who: Who::of(*pid, false), allocation: allocation.clone(), task: task.pid })
    }
}

impl Task {
    /// The traits that the kernel shows of it while it lives.
    fn traits(&self) -> Option<Traits> {
        Traits::of(self.pid).filter(|found| Some(found.status.started_ticks) == self.started_ticks)
    }
}

/// The traits that the kernel shows of a living process.
struct Traits {
    pid: u32,
    status: ProcessStatus,
    control_groups: Option<String>,
}

impl Traits {
    fn of(pid: u32) -> Option<Self> {
        let status = ProcessStatus::of(i32::try_from(pid).ok()?).filter(|status| !status.is_zombie)?;
        let control_groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
        Some(Self { pid, status, control_groups })
    }

    fn belongs_to(&self, task: &Self, ours: Option<&Self>) -> bool {
        let shares = |trait_of: fn(&Self) -> u64| {
            trait_of(self) == trait_of(task) && ours.is_none_or(|ours| trait_of(ours) != trait_of(task))
        };
        let shares_control_groups = self.control_groups.is_some()
            && self.control_groups == task.control_groups
            && ours.is_none_or(|ours| ours.control_groups != task.control_groups);
        self.pid == task.pid
            || shares(|process| process.status.group.into())
            || shares(|process| process.status.session.into())
            || shares_control_groups
            || descends(self.pid, task.pid)
    }

    /// Whether nothing proves that it is another process.
    fn may_belong_to(&self, task: &Task) -> bool {
        let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let task = task.traits().map(|_| task.pid);
        // A task that has ended shows only that it was started here.
        let beside = task.unwrap_or_else(std::process::id);
        let namespaces: (Option<PathBuf>, _) = (namespace(self.pid), namespace(beside));
        // The namespace of another user's process cannot be read.
        if namespaces.0.is_none() || namespaces.0 != namespaces.1 {
            return true;
        }
        let Some(task) = task else { return false };
        let endpoint = |found: &Environment| found.value(ENDPOINT_VARIABLE).map(<[u8]>::to_vec);
        let endpoint_of = |pid| look_until_known(vec![pid], |pid| Environment::look(pid, endpoint)).pop();
        let endpoint = endpoint_of(self.pid).flatten();
        endpoint.is_some() && endpoint == endpoint_of(task).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn id(name: &str) -> AllocationId {
        AllocationId::new(name).expect("a good name")
    }

    fn listens(pid: u32) -> Listener {
        Listener::Socket { pid: Some(pid), user: 0, file_owner: 0 }
    }

    /// A process in a session of its own whose parent has ended, like a daemon; it writes its pid.
    fn daemon(endpoint: &str) -> u32 {
        let script = "setsid sleep 1000 >/dev/null 2>&1 & echo $!";
        let mut shell = Command::new("/bin/sh");
        let output = shell.args(["-c", script]).env(ENDPOINT_VARIABLE, endpoint).output().expect("it runs");
        let pid = String::from_utf8(output.stdout).expect("a number").trim().parse().expect("a number");
        while fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.starts_with(b"sleep")) {
            std::thread::yield_now();
        }
        pid
    }

    fn end(pid: u32) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    }

    fn in_its_own_group(endpoint: &str) -> Child {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/bin/sleep");
        let child = command.arg("1000").env(ENDPOINT_VARIABLE, endpoint).process_group(0).spawn();
        child.expect("a process")
    }

    #[test]
    fn a_listener_that_is_seen_to_be_another_process_is_refused_and_both_are_named_sec_02() {
        let (mut task, mut other) = (in_its_own_group("a"), in_its_own_group("a"));
        let processes = TaskProcesses::default();
        assert_eq!(processes.check(&id("a"), &listens(other.id())), Ok(()), "no process is known");
        processes.add(id("a"), task.id());
        processes.add(id("b"), other.id());
        assert_eq!(processes.check(&id("a"), &listens(task.id())), Ok(()));
        let refused = processes.check(&id("a"), &listens(other.id())).expect_err("it is of allocation b");
        let told = refused.to_string();
        assert!(told.contains(&format!("process {} (", other.id())), "{told}");
        assert!(told.contains(&format!("allocation a (pid {})", task.id())), "{told}");
        processes.remove(&id("a"), other.id());
        assert!(processes.check(&id("a"), &listens(other.id())).is_err(), "another process ended");
        processes.remove(&id("a"), task.id());
        assert_eq!(processes.check(&id("a"), &listens(other.id())), Ok(()));
        for child in [&mut task, &mut other] {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    #[test]
    fn a_daemon_that_left_its_task_is_known_by_its_endpoint_and_any_other_process_is_not() {
        let mut task = in_its_own_group("unix:///run/a.sock");
        let (its, another) = (daemon("unix:///run/a.sock"), daemon("unix:///run/b.sock"));
        let processes = TaskProcesses::default();
        processes.add(id("a"), task.id());
        let checked = [its, another].map(|pid| processes.check(&id("a"), &listens(pid)).is_ok());
        [its, another].into_iter().for_each(end);
        task.kill().expect("it runs");
        task.wait().expect("it ends");
        assert_eq!(checked, [true, false]);
    }

    #[test]
    fn a_later_process_with_the_id_of_a_task_is_not_taken_for_it_prc_01() {
        let mut task = in_its_own_group("a");
        let processes = TaskProcesses::default();
        processes.add(id("a"), task.id());
        assert_eq!(processes.check(&id("a"), &listens(task.id())), Ok(()));
        let started = processes.known().tasks[&id("a")].started_ticks.expect("it runs");
        // As if it had started at another time: process ids are reused.
        processes.known().tasks.get_mut(&id("a")).expect("it was added").started_ticks = Some(started + 1);
        let refused = processes.check(&id("a"), &listens(task.id()));
        task.kill().expect("it runs");
        task.wait().expect("it ends");
        assert!(refused.is_err_and(|intruder| intruder.who.pid == task.id()));
    }

    #[test]
    fn any_process_may_listen_where_that_is_said_and_the_refusal_names_the_choice() {
        let (mut task, stranger) = (in_its_own_group("a"), daemon("b"));
        let processes = TaskProcesses::default();
        processes.add(id("a"), task.id());
        let refused = processes.check(&id("a"), &listens(stranger));
        processes.set_listener(id("a"), ListenerRule::Any);
        let accepted = processes.check(&id("a"), &listens(stranger));
        processes.set_listener(id("a"), ListenerRule::Own);
        let again = processes.check(&id("a"), &listens(stranger));
        end(stranger);
        task.kill().expect("it runs");
        task.wait().expect("it ends");
        let told = refused.expect_err("it shows nothing of the task").to_string();
        assert!(told.contains("set listener = \"any\" for this allocation"), "{told}");
        assert_eq!(accepted, Ok(()));
        assert!(again.is_err());
    }

    #[test]
    fn what_a_task_made_and_what_is_in_its_group_are_its_own() {
        use std::os::unix::process::CommandExt;
        let mut task = in_its_own_group("a");
        let group = i32::try_from(task.id()).expect("a pid");
        let member = Command::new("/bin/sleep").arg("1000").env_clear().process_group(group).spawn();
        let mut member = member.expect("a process");
        let processes = TaskProcesses::default();
        processes.add(id("a"), task.id());
        processes.add(id("host"), std::process::id());
        assert_eq!(processes.check(&id("a"), &listens(member.id())), Ok(()), "by its group");
        assert_eq!(processes.check(&id("host"), &listens(task.id())), Ok(()), "by its parent");
        for child in [&mut task, &mut member] {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
        assert_eq!(processes.check(&id("a"), &listens(member.id())), Ok(()), "it has ended");
    }
}
