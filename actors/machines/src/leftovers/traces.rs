//! Recorded locations of a run's processes: evidence for a later search, when environments and parents are gone.

use std::collections::{BTreeMap, BTreeSet};

use super::judging::{BY_CHILDREN, Case, Proven};
use super::seen::Process;

/// The limit of recorded processes per run: session leaders first, then the oldest.
pub const TRACED_PROCESSES_MAX: usize = 128;
/// The limit of recorded cgroups per run.
pub const TRACED_GROUPS_MAX: usize = 16;

/// Where the processes of a run were last located (TH052). Valid in one boot of the machine only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traces {
    /// The boot id: in another boot the PIDs are meaningless. Empty if nothing is recorded.
    pub boot: String,
    /// The processes, by PID.
    pub processes: BTreeMap<u32, Trace>,
    /// Cgroups, as paths within their hierarchies, that contained only the run, and have random names, so are never reused.
    pub groups: BTreeSet<String>,
}

/// The record of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Its start time, in ticks since the boot: a PID that was reused has another start time.
    pub started_ticks: u64,
    /// Its session, if a process of the run created it. The kernel does not reuse the id while the process lives.
    pub session: Option<u32>,
    /// Its process group, in the same way.
    pub group: Option<u32>,
}

impl Traces {
    /// Whether nothing is recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.groups.is_empty()
    }

    /// The record of this exact process, if it is valid in the present boot.
    pub(super) fn of(&self, boot: Option<&str>, process: &Process) -> Option<&Trace> {
        let holds = boot == Some(self.boot.as_str());
        let trace = self.processes.get(&process.pid).filter(|_| holds)?;
        (trace.started_ticks == process.started_ticks).then_some(trace)
    }
}

impl Case<'_> {
    /// The record of the proven processes. Without helpers proven only by children: they may get those of other tasks.
    #[must_use]
    pub fn traces(&self, proven: &Proven) -> Traces {
        let own = proven.iter().filter(|(_, proof)| **proof != BY_CHILDREN);
        let proven: Proven = own.map(|(pid, proof)| (*pid, *proof)).collect();
        let own: Vec<_> = proven.keys().filter_map(|pid| self.processes.get(pid)).collect();
        let (Some(boot), false) = (self.boot, own.is_empty()) else { return Traces::default() };
        let groups = own.iter().flat_map(|process| &process.groups).filter_map(|path| of_one_run(path));
        let is_own = |group: &&str| self.within(group).all(|process| proven.contains_key(&process.pid));
        let groups: BTreeSet<String> = groups.filter(is_own).map(str::to_owned).collect();
        let mut own = own;
        own.sort_by_key(|process| (process.pid != process.session, process.started_ticks, process.pid));
        let held = self.held_numbers();
        let ours = |number: u32| (proven.contains_key(&number) || held.contains(&number)).then_some(number);
        let trace = |process: &&Process| Trace {
            started_ticks: process.started_ticks,
            session: ours(process.session),
            group: ours(process.group),
        };
        Traces {
            boot: boot.to_owned(),
            processes: own
                .iter()
                .take(TRACED_PROCESSES_MAX)
                .map(|process| (process.pid, trace(process)))
                .collect(),
            groups: groups.into_iter().take(TRACED_GROUPS_MAX).collect(),
        }
    }

    /// The ids of sessions and process groups that are proven by a recorded process which is still in them.
    pub(super) fn held_numbers(&self) -> BTreeSet<u32> {
        let held = self.processes.values().filter_map(|process| {
            let trace = self.known.of(self.boot, process)?;
            let session = trace.session.filter(|session| *session == process.session);
            let group = trace.group.filter(|group| *group == process.group);
            Some(session.into_iter().chain(group))
        });
        held.flatten().collect()
    }

    /// Whether a process is in a cgroup that belonged only to the run.
    pub(super) fn is_in_remembered_group(&self, process: &Process) -> bool {
        if self.boot != Some(self.known.boot.as_str()) {
            return false;
        }
        let is_of_others =
            |process: &Process| self.spared.contains(&process.pid) || self.is_of_another_task(process);
        let mut groups = self.known.groups.iter().filter(|group| is_within(process, group));
        groups.any(|group| !self.within(group).any(is_of_others))
    }

    fn within<'g>(&'g self, group: &'g str) -> impl Iterator<Item = &'g Process> {
        self.processes.values().filter(move |process| is_within(process, group))
    }
}

fn is_within(process: &Process, group: &str) -> bool {
    let is_below =
        |path: &String| path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    process.groups.iter().any(is_below)
}

/// The prefix of a path up to a random name, such as a container id: 32 or more hex digits. Other cgroups may be reused.
fn of_one_run(path: &str) -> Option<&str> {
    const RANDOM_DIGITS: usize = 32;
    let is_random = |part: &str| {
        let mut words = part.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-');
        words.any(|word| word.bytes().filter(u8::is_ascii_hexdigit).count() >= RANDOM_DIGITS)
    };
    let ends = path.match_indices('/').map(|(place, _)| place).skip(1).chain([path.len()]);
    let ends = ends.filter(|end| path[..*end].rsplit('/').next().is_some_and(is_random));
    ends.last().map(|end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::super::judging::Helpers;
    use super::super::seen::Holder;
    use super::super::stage::{Machine, process};
    use super::*;

    const CONTAINER: &str =
        "/machine.slice/libpod-3f1c0de43f1c0de43f1c0de43f1c0de43f1c0de43f1c0de43f1c0de43f1c0de4.scope";

    fn remembered(processes: impl IntoIterator<Item = (u32, Trace)>) -> Traces {
        Traces {
            boot: "boot".to_owned(),
            processes: processes.into_iter().collect(),
            groups: BTreeSet::new(),
        }
    }

    fn since(started_ticks: u64) -> Trace {
        Trace { started_ticks, session: None, group: None }
    }

    #[test]
    fn a_remembered_process_is_the_tasks_although_it_names_it_no_more_th052() {
        let mut machine = Machine::of([process(10, 1, None), process(11, 10, None), process(12, 1, None)]);
        machine.known = remembered([(10, since(1))]);
        assert_eq!(machine.proven(&[], b""), [10, 11]);
    }

    #[test]
    fn a_process_id_that_was_given_to_another_process_is_no_evidence_th052() {
        let mut machine = Machine::of([process(10, 1, None), process(11, 10, None)]);
        machine.known = remembered([(10, since(2))]);
        assert!(machine.proven(&[], b"").is_empty());
    }

    #[test]
    fn what_is_remembered_of_another_boot_is_void_th052() {
        let in_container = |pid| Process { groups: vec![CONTAINER.to_owned()], ..process(pid, 1, None) };
        let mut machine = Machine::of([in_container(10), in_container(11)]);
        machine.known = remembered([(10, Trace { session: Some(1), ..since(1) })]);
        machine.known.groups.insert(CONTAINER.to_owned());
        assert_eq!(machine.proven(&[], b""), [10, 11]);
        machine.boot = Some("another");
        assert!(machine.proven(&[], b"").is_empty());
        // The boot id is unknown: then no record is valid.
        machine.boot = None;
        assert!(machine.proven(&[], b"").is_empty());
    }

    #[test]
    fn a_session_of_the_run_is_known_as_long_as_a_remembered_process_is_in_it() {
        let in_session = |pid, session| Process { session, group: session, ..process(pid, 1, None) };
        let trace = Trace { session: Some(9), ..since(1) };
        // The leader is gone, and so is the parent of the last of them.
        let mut machine = Machine::of([in_session(10, 9), in_session(11, 9), in_session(12, 8)]);
        machine.known = remembered([(10, trace)]);
        assert_eq!(machine.proven(&[], b""), [10, 11]);
        // No recorded process is in it, so its id may have been reused.
        let mut machine = Machine::of([in_session(10, 8), in_session(11, 9)]);
        machine.known = remembered([(10, trace)]);
        assert_eq!(machine.proven(&[], b""), [10]);
    }

    #[test]
    fn what_another_run_of_the_host_is_remembered_by_is_never_this_ones() {
        let mut machine = Machine::of([process(10, 1, Some("web")), process(11, 10, None)]);
        machine.others = [(11, 1)].into();
        assert_eq!(machine.proven(&[], b""), [10]);
    }

    #[test]
    fn what_is_remembered_names_leaders_sessions_and_only_groups_that_nothing_else_is_in() {
        let in_group =
            |pid, group: &str| Process { groups: vec![group.to_owned()], ..process(pid, 1, Some("web")) };
        let leader = Process { session: 10, group: 10, ..in_group(10, CONTAINER) };
        let child = Process { session: 10, group: 11, ..in_group(11, "/system.slice/host.service") };
        let machine = Machine::of([leader.clone(), child.clone()]);
        let traces = machine.traces();
        assert_eq!(traces.processes[&10], Trace { started_ticks: 1, session: Some(10), group: Some(10) });
        assert_eq!(traces.processes[&11], Trace { started_ticks: 1, session: Some(10), group: Some(11) });
        assert_eq!(
            traces.groups,
            [CONTAINER.to_owned()].into(),
            "a name that is not random may be anybody's"
        );
        let stranger = Process { groups: vec![format!("{CONTAINER}/inner")], ..process(12, 1, None) };
        let machine = Machine::of([leader, child, stranger]);
        assert!(machine.traces().groups.is_empty());
        assert_eq!(Machine::of([process(12, 1, None)]).traces(), Traces::default());
    }

    #[test]
    fn a_helper_that_tasks_may_share_is_neither_remembered_by_its_children_nor_ended_with_one_of_them() {
        let machine = Machine::of([process(20, 1, None), process(21, 20, Some("web"))]);
        let helper = Holder { pid: 20, sockets: vec!["/run/p/plugin20".to_owned()], command: Vec::new() };
        let traces = machine.with(|case| {
            let mut proven = case.proven();
            let helpers = Helpers { holders: &[helper], state: b"", owner: "us" };
            case.add_executors(&helpers, &mut proven);
            assert!(proven.contains_key(&20), "it is ended with them");
            case.traces(&proven)
        });
        assert_eq!(traces.processes.into_keys().collect::<Vec<_>>(), [21]);
        let mut machine = Machine::of([process(20, 1, None), process(21, 20, Some("job"))]);
        machine.known = remembered([(20, since(1))]);
        assert!(machine.proven(&[], b"").is_empty());
    }

    #[test]
    fn a_session_stays_remembered_after_its_leader_has_ended() {
        let orphan = Process { session: 9, ..process(10, 1, None) };
        let mut machine = Machine::of([orphan]);
        machine.known = remembered([(10, Trace { session: Some(9), ..since(1) })]);
        assert_eq!(machine.traces().processes[&10].session, Some(9));
    }

    #[test]
    fn of_many_processes_the_leaders_and_the_oldest_are_remembered() {
        let mut many: Vec<_> = (1_000..1_500)
            .map(|pid| Process { started_ticks: u64::from(3_000 - pid), ..process(pid, 1, Some("web")) })
            .collect();
        many.push(Process { session: 5_000, started_ticks: 9_000, ..process(5_000, 1, Some("web")) });
        let traces = Machine::of(many).traces();
        assert_eq!(traces.processes.len(), TRACED_PROCESSES_MAX);
        assert!(traces.processes.contains_key(&5_000) && traces.processes.contains_key(&1_499));
        assert!(!traces.processes.contains_key(&1_000));
    }

    #[test]
    fn a_random_name_is_told_from_one_that_was_chosen() {
        assert_eq!(of_one_run(CONTAINER), Some(CONTAINER));
        assert_eq!(of_one_run(&format!("{CONTAINER}/a/b")), Some(CONTAINER));
        let id = "0a1b2c3d-0a1b-8a1b-8a1b-0a1b2c3d4e5f";
        let path = format!("/nomad/{id}.web");
        assert_eq!(of_one_run(&path), Some(path.as_str()));
        for path in ["/", "/nomad/share", "/system.slice/host.service", "/docker/3f1c0de4"] {
            assert_eq!(of_one_run(path), None, "{path}");
        }
    }
}
