//! Searches for leftover processes of a task, and ends them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use callboard_machines::leftovers::text::names_path;
use callboard_machines::leftovers::{
    Begun, BootTime, Case, Environment, Helpers, Named, Processes, Proven, Suspicion, TaskMark, Traces,
};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::table::{ProcessTable, members};
use crate::process::since_boot;

/// The pause before killed or unknown processes are checked again.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// How often processes without an environment, or with a hidden one, are checked again, in case they are in an `exec`.
const UNKNOWN_LOOKS: u32 = 10;
const NAMED_MAX: usize = 8;

/// The parameters of a search.
#[derive(Clone, PartialEq, Eq)]
pub struct Search {
    /// The task.
    pub mark: TaskMark,
    /// Directories of cgroups that contain only the task, if there are any.
    pub groups: Vec<PathBuf>,
    /// The driver's state of the task in its handle; empty if there is none. It is searched for paths of executors' sockets.
    pub state: Vec<u8>,
    /// The owner id of the host ([`OWNER_VARIABLE`](crate::process::OWNER_VARIABLE)), which distinguishes executors of its
    /// own drivers from those of others; empty if no executor is searched for.
    pub owner: String,
    /// The processes of drivers, which are never the task's.
    pub drivers: BTreeSet<u32>,
    /// The earlier locations of the processes of the run: evidence, also for processes that no longer name the task.
    pub known: Traces,
    /// The processes of other runs, as located since the present boot: PID and start time in ticks. Never this run's.
    pub others: BTreeSet<(u32, u64)>,
    /// The process that a driver reports as the task's.
    pub named: Option<Named>,
    /// The start of the run; `None` if unknown.
    pub begun: Option<Begun>,
    /// Whether the end of the run is uncertain. Then a hidden process that may be of the run leaves the result unsettled.
    pub is_in_doubt: bool,
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver's state may hold secrets (P6).
        let Self { mark, groups, state: _, owner, drivers, known, others: _, named, begun, is_in_doubt } =
            self;
        f.debug_struct("Search")
            .field("mark", mark)
            .field("groups", groups)
            .field("owner", owner)
            .field("drivers", drivers)
            .field("known", known)
            .field("named", named)
            .field("begun", begun)
            .field("is_in_doubt", is_in_doubt)
            .finish_non_exhaustive()
    }
}

/// Nothing is left of the task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// The PIDs that were killed, each with the proof that it was the task's. Empty if nothing was left.
    pub killed: BTreeMap<u32, &'static str>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.killed.is_empty() {
            return f.write_str("no process of it was left");
        }
        let processes = self.killed.iter().take(NAMED_MAX);
        let processes: Vec<_> = processes.map(|(pid, proof)| format!("{pid} ({proof})")).collect();
        let more = self.killed.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        write!(f, "killed what was left of it: {}{more}", processes.join(", "))
    }
}

/// Why it is unknown whether something is left of a task: it may run, and must not be started a second time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsettled {
    /// The processes cannot be inspected.
    #[error("cannot read the processes of this machine: {message}; mount /proc, or end the task by hand")]
    CannotLook {
        /// The error of the system.
        message: String,
    },
    /// Processes of the task do not end.
    #[error("its processes were killed but have not ended: {processes}; look at them with `ps`")]
    Left {
        /// The processes, with the results of the kill.
        processes: String,
    },
    /// Processes may be of the task, and are hidden from this host.
    #[error(
        "it may still run: this host lacks the permission to inspect processes that may belong to it: {processes}; end those \
        that do, or give the host CAP_SYS_PTRACE"
    )]
    Hidden {
        /// The processes and their users.
        processes: String,
    },
}

impl From<io::Error> for Unsettled {
    fn from(error: io::Error) -> Self {
        Self::CannotLook { message: error.to_string() }
    }
}

#[derive(Debug)]
struct Findings {
    proven: Proven,
    unknown: BTreeSet<u32>,
    suspects: BTreeSet<u32>,
    traces: Traces,
}

impl Search {
    /// A search that uses only the environment of processes: without cgroups, handle, executors, drivers and earlier
    /// locations, and without doubt about hidden processes.
    #[must_use]
    pub fn of(mark: TaskMark) -> Self {
        Self {
            mark,
            groups: vec![],
            state: vec![],
            owner: String::new(),
            drivers: BTreeSet::new(),
            known: Traces::default(),
            others: BTreeSet::new(),
            named: None,
            begun: None,
            is_in_doubt: false,
        }
    }

    /// Kills all processes that are proven to be the task's, and searches again until nothing is left. Blocks meanwhile, at
    /// most for `timeout` and one search.
    ///
    /// # Errors
    /// When processes cannot be inspected, some do not end, or some may be of the task and the end of its run is in doubt.
    pub fn end(&self, table: &ProcessTable, timeout: Duration) -> Result<Ended, Unsettled> {
        let until = Instant::now() + timeout;
        let (mut killed, mut vain_looks) = (Proven::new(), 0);
        loop {
            let processes = table.look()?;
            let before = killed.keys().copied().collect();
            let Findings { proven, unknown, suspects, .. } = self.judge(table, &processes, &before)?;
            if proven.is_empty() {
                if (unknown.is_empty() && suspects.is_empty()) || vain_looks == UNKNOWN_LOOKS {
                    return match suspects.is_empty() {
                        true => Ok(Ended { killed }),
                        false => Err(Unsettled::Hidden { processes: told_hidden(&processes, &suspects) }),
                    };
                }
                vain_looks += 1;
            } else if Instant::now() >= until {
                return Err(Unsettled::Left { processes: told_left(table, &processes, &proven) });
            }
            for pid in proven.keys() {
                // A process that cannot be signalled is found again, and reported at the timeout.
                let _ = kill(table, &processes, *pid);
            }
            killed.extend(proven);
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// The present processes of the task, to be passed to a later search as [`known`](Self::known). Nothing is ended.
    ///
    /// # Errors
    /// When processes cannot be inspected.
    pub fn locate(&self, table: &ProcessTable) -> Result<Traces, Unsettled> {
        let mut looks = 0;
        loop {
            let processes = table.look()?;
            let Findings { proven, unknown, traces, .. } = self.judge(table, &processes, &BTreeSet::new())?;
            if !proven.is_empty() || unknown.is_empty() || looks == UNKNOWN_LOOKS {
                return Ok(traces);
            }
            looks += 1;
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    fn judge(
        &self,
        table: &ProcessTable,
        processes: &Processes,
        before: &BTreeSet<u32>,
    ) -> io::Result<Findings> {
        let mut in_groups = BTreeSet::new();
        for group in &self.groups {
            in_groups.extend(members(group)?);
        }
        let (spared, boot) = (self.spared(processes), table.boot());
        let case = Case {
            mark: &self.mark,
            processes,
            members: &in_groups,
            spared: &spared,
            before,
            boot: boot.as_deref(),
            known: &self.known,
            others: &self.others,
            named: self.named,
            begun_ticks: boot.as_deref().and_then(|boot| self.begun_ticks(boot)),
        };
        let mut proven = case.proven();
        let candidates = self.may_be_executors(table, processes, &proven)?;
        if !candidates.is_empty() {
            let holders = table.holders(&candidates)?;
            let helpers = Helpers { holders: &holders, state: &self.state, owner: &self.owner };
            case.add_executors(&helpers, &mut proven);
        }
        let unknown = case.unknown(&proven);
        let suspects = self.suspects(table, &case, &proven)?;
        let traces = case.traces(&proven);
        Ok(Findings { proven, unknown, suspects, traces })
    }

    fn begun_ticks(&self, boot: &str) -> Option<u64> {
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        self.begun.as_ref()?.ticks(&BootTime { boot, elapsed: since_boot(), ticks_per_second })
    }

    /// The hidden processes that may be of the run, if its end is in doubt.
    fn suspects(&self, table: &ProcessTable, case: &Case<'_>, proven: &Proven) -> io::Result<BTreeSet<u32>> {
        let is_of_another_boot =
            self.begun.as_ref().zip(case.boot).is_some_and(|(begun, boot)| begun.boot != boot);
        if !self.is_in_doubt || is_of_another_boot {
            return Ok(BTreeSet::new());
        }
        let users = table.own_users()?;
        let suspicion = Suspicion { since: case.begun_ticks.unwrap_or(0), users: users.as_ref() };
        Ok(case.suspects(&suspicion, proven))
    }

    /// The parents of proven processes, processes begun by drivers of this host, and all processes if the handle names an existing socket.
    fn may_be_executors(
        &self,
        table: &ProcessTable,
        processes: &Processes,
        proven: &Proven,
    ) -> io::Result<BTreeSet<u32>> {
        if self.owner.is_empty() {
            return Ok(BTreeSet::new());
        }
        if !self.state.is_empty() && table.socket_paths()?.iter().any(|path| names_path(&self.state, path)) {
            return Ok(processes.keys().copied().collect());
        }
        let begun = processes.values().filter_map(|process| match &process.environment {
            Environment::Read { owner: Some(owner), .. } if *owner == self.owner => Some(process.pid),
            _ => None,
        });
        Ok(proven.keys().filter_map(|pid| Some(processes.get(pid)?.parent)).chain(begun).collect())
    }

    /// This host, its ancestors, the first process, and the drivers.
    fn spared(&self, processes: &Processes) -> BTreeSet<u32> {
        let mut spared = self.drivers.clone();
        spared.insert(1);
        let mut next = Some(std::process::id());
        while let Some(pid) = next.filter(|pid| spared.insert(*pid)) {
            next = processes.get(&pid).map(|process| process.parent);
        }
        spared
    }
}

fn kill(table: &ProcessTable, processes: &Processes, pid: u32) -> Result<(), Errno> {
    let Some(seen) = processes.get(&pid) else { return Ok(()) };
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let descriptor = match pidfd_open(number, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(()),
        opened => opened?,
    };
    // After the file descriptor is open, PID reuse is impossible (T192).
    if table.started(pid) != Some(seen.started_ticks) {
        return Ok(());
    }
    match pidfd_send_signal(&descriptor, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error),
    }
}

fn told_left(table: &ProcessTable, processes: &Processes, proven: &Proven) -> String {
    let told = proven.iter().take(NAMED_MAX).map(|(pid, proof)| {
        let why = kill(table, processes, *pid).err().map(|error| format!(", {error}"));
        format!("{pid} ({proof}{})", why.unwrap_or_default())
    });
    let more = proven.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", told.collect::<Vec<_>>().join(", "))
}

fn told_hidden(processes: &Processes, suspects: &BTreeSet<u32>) -> String {
    let told = suspects.iter().take(NAMED_MAX).map(|pid| {
        let users = match processes.get(pid).map(|process| &process.environment) {
            Some(Environment::Hidden { users }) => users.iter().map(u32::to_string).collect(),
            Some(Environment::Unknown | Environment::Read { .. }) | None => Vec::new(),
        };
        format!("process {pid} (user {})", users.join(", "))
    });
    let more = suspects.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", told.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use callboard_machines::leftovers::{ALLOCATION_VARIABLE, TASK_VARIABLE, Trace};

    use super::*;
    use crate::leftovers::BootClock;
    use crate::vocabulary::Timestamp;

    fn mark() -> TaskMark {
        let random = crate::process::random_bytes::<16>().expect("the system gives them");
        TaskMark { allocation: crate::vocabulary::hex(&random), task: "web".to_owned() }
    }

    fn begin(mark: &TaskMark, script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env(ALLOCATION_VARIABLE, &mark.allocation);
        command.env(TASK_VARIABLE, &mark.task).process_group(0).spawn().expect("it starts")
    }

    fn until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < deadline, "it takes too long");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[test]
    fn what_names_the_task_is_killed_with_all_that_it_made_and_no_other_is_th041() {
        let (ours, theirs) = (mark(), mark());
        let table = ProcessTable::new();
        // One of its children has left its session and its environment behind.
        let mut own = begin(&ours, "env -i setsid sleep 600 & sleep 600 & wait");
        let mut other = begin(&theirs, "sleep 600; :");
        let search = Search::of(ours);
        until(|| search.locate(&table).expect("it can be looked at").processes.len() >= 3);
        let ended = search.end(&table, TIMEOUT).expect("they end");
        assert!(ended.killed.contains_key(&own.id()) && ended.killed.len() >= 3, "{ended}");
        assert!(ended.to_string().contains("its environment names the task"), "{ended}");
        assert_eq!(search.locate(&table).expect("it can be looked at"), Traces::default());
        own.wait().expect("it has ended");
        assert!(other.try_wait().expect("it can be asked").is_none(), "another task lives");
        let ended = Search::of(theirs).end(&table, TIMEOUT).expect("it ends");
        assert!(ended.killed.contains_key(&other.id()));
        other.wait().expect("it has ended");
    }

    #[test]
    fn where_nothing_is_left_nothing_is_killed() {
        let ended = Search::of(mark()).end(&ProcessTable::new(), TIMEOUT).expect("it can be looked at");
        assert_eq!((ended.to_string().as_str(), ended.killed.len()), ("no process of it was left", 0));
    }

    #[test]
    fn a_driver_is_spared_although_it_names_the_task_and_so_is_this_host() {
        let ours = mark();
        let mut driver = begin(&ours, "exec sleep 600");
        let search = Search { drivers: [driver.id()].into(), ..Search::of(ours.clone()) };
        let table = ProcessTable::new();
        until(|| {
            Search::of(ours.clone())
                .locate(&table)
                .expect("it can be looked at")
                .processes
                .contains_key(&driver.id())
        });
        search.end(&table, TIMEOUT).expect("nothing else is there for long");
        assert!(driver.try_wait().expect("it can be asked").is_none());
        Search::of(ours).end(&table, TIMEOUT).expect("it ends");
        driver.wait().expect("it has ended");
        let spared = search.spared(&table.look().expect("it can be read"));
        assert!(spared.contains(&std::process::id()) && spared.contains(&1));
    }

    #[test]
    fn an_executor_is_ended_with_its_task_and_a_service_that_its_handle_names_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let sockets = directory.path().join("p");
        std::fs::create_dir(&sockets).expect("it can be made");
        let path = sockets.join("plugin1");
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        // The executor inherits the socket.
        let mut executor = Command::new("/bin/sleep");
        executor.arg("600").env("PLUGIN_UNIX_SOCKET_DIR", &sockets).env("CALLBOARD_PROCESS_OWNER", "us");
        let mut executor = executor.stdin(std::os::fd::OwnedFd::from(socket)).spawn().expect("it starts");
        let mut state = b"\xb0".to_vec();
        state.extend_from_slice(path.display().to_string().as_bytes());
        state.push(0xa3);
        let (table, mark) = (ProcessTable::new(), mark());
        let holds = || table.holders(&[executor.id()].into()).is_ok_and(|holders| !holders.is_empty());
        until(holds);
        let stranger =
            Search { state: state.clone(), owner: "others".to_owned(), ..Search::of(mark.clone()) };
        assert!(stranger.end(&table, TIMEOUT).expect("nothing is left").killed.is_empty());
        let search = Search { state, owner: "us".to_owned(), ..Search::of(mark) };
        until(|| !search.locate(&table).expect("it can be looked at").processes.is_empty());
        let ended = search.end(&table, TIMEOUT).expect("it ends");
        assert_eq!(ended.killed.keys().copied().collect::<Vec<_>>(), [executor.id()]);
        executor.wait().expect("it has ended");
    }

    #[test]
    fn what_does_not_end_is_told_with_its_process_id() {
        let ours = mark();
        let mut own = begin(&ours, "sleep 600; :");
        let table = ProcessTable::new();
        let search = Search::of(ours);
        until(|| search.locate(&table).expect("it can be looked at").processes.contains_key(&own.id()));
        // With a zero timeout its end is not observed.
        let left = search.end(&table, Duration::ZERO).expect_err("it had no time");
        assert!(left.to_string().contains(&own.id().to_string()), "{left}");
        search.end(&table, TIMEOUT).expect("it ends");
        own.wait().expect("it has ended");
    }

    /// A helper program of other tests: it makes itself unreadable (not dumpable).
    #[test]
    fn a_program_that_is_closed_to_others() {
        if std::env::var_os("CALLBOARD_TEST_CLOSED").is_none() {
            return;
        }
        let closed = rustix::process::DumpableBehavior::NotDumpable;
        rustix::process::set_dumpable_behavior(closed).expect("it may");
        println!("\nit is closed");
        std::thread::sleep(Duration::from_secs(600));
    }

    /// Runs on a thread without the privilege to inspect hidden processes, whatever user runs the tests.
    fn without_the_right_to_look(body: impl FnOnce() + Send + 'static) {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let thread = std::thread::spawn(|| {
            let mut rights = capabilities(None).expect("the system tells");
            rights.effective = CapabilitySet::empty();
            set_capabilities(None, rights).expect("less is always allowed");
            body();
        });
        thread.join().expect("it goes well");
    }

    #[test]
    fn what_may_be_the_tasks_and_cannot_be_looked_into_leaves_it_unsettled_th041() {
        without_the_right_to_look(look_at_what_is_closed);
    }

    /// The PID in a printed line; the inner `None` for the line that reports it as closed, the outer one for anything else.
    fn said(line: &str) -> Option<Option<u32>> {
        let number = line.strip_prefix("number ").and_then(|number| number.parse().ok());
        (line == "it is closed").then_some(None).or(number.map(Some))
    }

    fn look_at_what_is_closed() {
        use std::io::{BufRead, BufReader};
        let (ours, table) = (mark(), ProcessTable::new());
        let mut search = Search { is_in_doubt: true, ..Search::of(ours.clone()) };
        let boot = table.boot().expect("the system tells");
        search.begun = Some(Begun { boot: boot.clone(), since_boot: since_boot() });
        let mut closed = Command::new(std::env::current_exe().expect("this program"));
        closed.args([
            "--exact",
            "--nocapture",
            "leftovers::ending::tests::a_program_that_is_closed_to_others",
        ]);
        closed.env("CALLBOARD_TEST_CLOSED", "yes").env(ALLOCATION_VARIABLE, &ours.allocation);
        closed.env(TASK_VARIABLE, &ours.task).stdout(std::process::Stdio::piped());
        // An orphan process, as if its driver had lost it: its parent has ended.
        let mut parent = Command::new("/bin/sh");
        parent
            .args(["-c", "\"$0\" \"$@\" & printf '\\nnumber %s\\n' $!"])
            .arg(closed.get_program())
            .args(closed.get_args());
        parent.envs(closed.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut parent = parent.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(parent.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let said: Vec<_> = lines.by_ref().filter_map(|line| said(&line)).take(2).collect();
        let pid = said.into_iter().flatten().next().expect("its process id");
        parent.wait().expect("it has ended");
        let unsettled = search.end(&table, TIMEOUT).expect_err("it may live");
        assert!(matches!(unsettled, Unsettled::Hidden { .. }), "{unsettled}");
        let told = unsettled.to_string();
        assert!(told.contains(&format!("process {pid} (user ")) && told.contains("CAP_SYS_PTRACE"), "{told}");
        // Its driver has seen its end, or the run was begun before a reboot.
        Search { is_in_doubt: false, ..search.clone() }.end(&table, TIMEOUT).expect("there is no doubt");
        let of_another_boot = Some(Begun { boot: "another".to_owned(), since_boot: since_boot() });
        Search { begun: of_another_boot, ..search.clone() }.end(&table, TIMEOUT).expect("nothing lives");
        // Its recorded location is sufficient.
        let started_ticks = table.started(pid).expect("it lives");
        let trace = Trace { started_ticks, session: None, group: None };
        search.known = Traces { boot, processes: [(pid, trace)].into(), groups: BTreeSet::new() };
        search.is_in_doubt = false;
        let ended = search.end(&table, TIMEOUT).expect("it ends");
        assert_eq!(ended.killed.keys().copied().collect::<Vec<_>>(), [pid]);
    }

    #[test]
    fn the_processes_of_a_run_are_younger_than_the_run_whatever_is_done_to_the_wall_clock_th041() {
        let boot = ProcessTable::new().boot().expect("the system tells");
        let minute = 60 * rustix::param::clock_ticks_per_second();
        // The wall clock is right when the host starts, or far behind, or hours ahead; later it is set.
        let present = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        let present = present.expect("the clock is set");
        for now in [present, Duration::ZERO, present + Duration::from_secs(7_200)].map(Timestamp::from_epoch)
        {
            let clock = BootClock { boot: boot.clone(), since_boot: since_boot(), now };
            let search = Search { begun: Some(clock.begun(now)), ..Search::of(mark()) };
            let begun = search.begun_ticks(&boot).expect("it is known");
            let mut process = begin(&mark(), "exec sleep 600");
            let started = ProcessTable::new().started(process.id());
            process.kill().expect("it can be ended");
            process.wait().expect("it has ended");
            let started = started.expect("it lived");
            assert!(begun <= started && started < begun + minute, "{now}: {begun} {started}");
        }
    }

    #[test]
    fn what_was_located_is_found_again_after_it_has_thrown_its_environment_away_th052() {
        let ours = mark();
        let directory = tempfile::tempdir().expect("a directory");
        let go = directory.path().join("go");
        let script = format!("until [ -e {} ]; do sleep 0.02; done; exec env -i sleep 600", go.display());
        let mut own = begin(&ours, &script);
        let (table, mut search) = (ProcessTable::new(), Search::of(ours));
        until(|| search.locate(&table).expect("it can be looked at").processes.contains_key(&own.id()));
        let known = search.locate(&table).expect("it can be looked at");
        std::fs::write(&go, "").expect("it can be written");
        let is_lost = || search.locate(&table).expect("it can be looked at").is_empty();
        until(is_lost);
        assert!(search.end(&table, TIMEOUT).expect("nothing is found").killed.is_empty());
        search.known = known;
        let ended = search.end(&table, TIMEOUT).expect("it ends");
        assert!(ended.killed.contains_key(&own.id()), "{ended}");
        own.wait().expect("it has ended");
    }

    #[test]
    fn a_process_that_has_the_number_of_a_remembered_one_is_never_touched_t192() {
        let mut bystander = begin(&mark(), "exec sleep 600");
        let table = ProcessTable::new();
        until(|| table.started(bystander.id()).is_some());
        let started_ticks = table.started(bystander.id()).expect("it lives") + 1;
        let trace = Trace { started_ticks, session: Some(bystander.id()), group: Some(bystander.id()) };
        let boot = table.boot().expect("the system tells");
        let known = Traces { boot, processes: [(bystander.id(), trace)].into(), groups: BTreeSet::new() };
        let search = Search { known, ..Search::of(mark()) };
        assert!(search.end(&table, TIMEOUT).expect("nothing is left").killed.is_empty());
        assert!(bystander.try_wait().expect("it can be asked").is_none());
        bystander.kill().expect("it can be ended");
        bystander.wait().expect("it has ended");
    }

    #[test]
    fn what_a_driver_keeps_of_a_task_is_not_shown_p6() {
        let search = Search { state: b"canary-7".to_vec(), ..Search::of(mark()) };
        assert!(!format!("{search:?}").contains("canary"));
    }
}
