//! Looking for what is left of a task, and ending it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::judging::{Case, Helpers, Proven};
use super::mark::TaskMark;
use super::seen::Processes;
use super::table::{ProcessTable, members};
use super::text::names_path;

/// How soon to look again at what was killed, or at what is unknown.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// How often to look again at processes that have no environment, in case they are about to execute their program.
const UNKNOWN_LOOKS: u32 = 10;
/// How many processes are named when some are left.
const NAMED_MAX: usize = 8;

/// What to look for, and what to leave alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Search {
    /// Whose processes.
    pub mark: TaskMark,
    /// Directories of control groups in which nothing but the task is, if there are any.
    pub groups: Vec<PathBuf>,
    /// What the driver keeps of the task in its handle; empty if there is none. Paths of executors' sockets are looked for in it.
    pub state: Vec<u8>,
    /// The mark of the host ([`OWNER_VARIABLE`](crate::process::OWNER_VARIABLE)), by which executors of its own drivers are told
    /// from those of others; empty if no executor is to be looked for.
    pub owner: String,
    /// The processes of drivers, which are never the task's.
    pub drivers: BTreeSet<u32>,
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a driver keeps may hold secrets (P6).
        let Self { mark, groups, state: _, owner, drivers } = self;
        f.debug_struct("Search")
            .field("mark", mark)
            .field("groups", groups)
            .field("owner", owner)
            .field("drivers", drivers)
            .finish_non_exhaustive()
    }
}

/// Nothing is left of the task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// What was killed for that: process ids, each with what proved that it was the task's. Empty if nothing was there.
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

/// Where the processes of a task are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whereabouts {
    /// Its processes.
    pub processes: BTreeSet<u32>,
    /// The control groups that they are in, as paths within their hierarchies, but for the root.
    pub groups: BTreeSet<String>,
}

/// Why it is not settled whether something is left of a task: it may run, and must not be started a second time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsettled {
    /// The processes cannot be looked at.
    #[error(
        "the processes of this machine cannot be looked at: {message}; mount /proc, or end the task by hand"
    )]
    CannotLook {
        /// What the system said.
        message: String,
    },
    /// Processes of the task do not end.
    #[error("processes of it do not end though they were killed: {processes}; look at them with `ps`")]
    Left {
        /// Which, and what came of killing them.
        processes: String,
    },
}

impl From<io::Error> for Unsettled {
    fn from(error: io::Error) -> Self {
        Self::CannotLook { message: error.to_string() }
    }
}

impl Search {
    /// For the processes of this task, without control groups, handle, executors and drivers.
    #[must_use]
    pub fn of(mark: TaskMark) -> Self {
        Self { mark, groups: vec![], state: vec![], owner: String::new(), drivers: BTreeSet::new() }
    }

    /// Kills what is proven to be the task's, and looks again until nothing is left. Blocks for as long as that takes, at most
    /// for `patience` and one look.
    ///
    /// # Errors
    /// When processes cannot be looked at, or some do not end.
    pub fn end(&self, table: &ProcessTable, patience: Duration) -> Result<Ended, Unsettled> {
        let until = Instant::now() + patience;
        let (mut killed, mut unknown_looks) = (Proven::new(), 0);
        loop {
            let processes = table.look()?;
            let before = killed.keys().copied().collect();
            let (proven, unknown) = self.judge(table, &processes, &before)?;
            if proven.is_empty() {
                if unknown.is_empty() || unknown_looks == UNKNOWN_LOOKS {
                    return Ok(Ended { killed });
                }
                unknown_looks += 1;
            } else if Instant::now() >= until {
                return Err(Unsettled::Left { processes: told_left(table, &processes, &proven) });
            }
            for pid in proven.keys() {
                // What cannot be signalled is seen again, and told when the time is over.
                let _ = kill(table, &processes, *pid);
            }
            killed.extend(proven);
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Where the processes of the task are now. Nothing is ended.
    ///
    /// # Errors
    /// When processes cannot be looked at.
    pub fn locate(&self, table: &ProcessTable) -> Result<Whereabouts, Unsettled> {
        let mut looks = 0;
        loop {
            let processes = table.look()?;
            let (proven, unknown) = self.judge(table, &processes, &BTreeSet::new())?;
            if !proven.is_empty() || unknown.is_empty() || looks == UNKNOWN_LOOKS {
                let own = proven.keys().filter_map(|pid| processes.get(pid));
                let groups = own.flat_map(|process| process.groups.clone()).collect();
                return Ok(Whereabouts { processes: proven.into_keys().collect(), groups });
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
    ) -> io::Result<(Proven, BTreeSet<u32>)> {
        let mut in_groups = BTreeSet::new();
        for group in &self.groups {
            in_groups.extend(members(group)?);
        }
        let spared = self.spared(processes);
        let case = Case { mark: &self.mark, processes, members: &in_groups, spared: &spared, before };
        let mut proven = case.proven();
        let candidates = self.may_be_executors(table, processes, &proven)?;
        if !candidates.is_empty() {
            let holders = table.holders(&candidates)?;
            let helpers = Helpers { holders: &holders, state: &self.state, owner: &self.owner };
            case.add_executors(&helpers, &mut proven);
        }
        let unknown = case.unknown(&proven);
        Ok((proven, unknown))
    }

    /// The parents of what is proven; and every process, if the handle names a socket that there is.
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
        Ok(proven.keys().filter_map(|pid| Some(processes.get(pid)?.parent)).collect())
    }

    /// This host, those that it descends from, the first process, and the drivers.
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

/// Kills the very process that was seen.
fn kill(table: &ProcessTable, processes: &Processes, pid: u32) -> Result<(), Errno> {
    let Some(seen) = processes.get(&pid) else { return Ok(()) };
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let descriptor = match pidfd_open(number, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(()),
        opened => opened?,
    };
    // Behind the descriptor the number cannot pass to another process unnoticed (T192).
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::super::mark::{ALLOCATION_VARIABLE, TASK_VARIABLE};
    use super::*;

    /// A mark that no other process has.
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

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn what_names_the_task_is_killed_with_all_that_it_made_and_no_other_is_th041() {
        let (ours, theirs) = (mark(), mark());
        let table = ProcessTable::new();
        // One of its children has left its session and its environment behind.
        let mut own = begin(&ours, "env -i setsid sleep 600 & sleep 600 & wait");
        let mut other = begin(&theirs, "sleep 600; :");
        let search = Search::of(ours);
        until(|| search.locate(&table).expect("it can be looked at").processes.len() >= 3);
        let ended = search.end(&table, PATIENCE).expect("they end");
        assert!(ended.killed.contains_key(&own.id()) && ended.killed.len() >= 3, "{ended}");
        assert!(ended.to_string().contains("its environment names the task"), "{ended}");
        assert_eq!(search.locate(&table).expect("it can be looked at"), Whereabouts::default());
        own.wait().expect("it has ended");
        assert!(other.try_wait().expect("it can be asked").is_none(), "another task lives");
        let ended = Search::of(theirs).end(&table, PATIENCE).expect("it ends");
        assert!(ended.killed.contains_key(&other.id()));
        other.wait().expect("it has ended");
    }

    #[test]
    fn where_nothing_is_left_nothing_is_killed() {
        let ended = Search::of(mark()).end(&ProcessTable::new(), PATIENCE).expect("it can be looked at");
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
                .contains(&driver.id())
        });
        search.end(&table, PATIENCE).expect("nothing else is there for long");
        assert!(driver.try_wait().expect("it can be asked").is_none());
        Search::of(ours).end(&table, PATIENCE).expect("it ends");
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
        // The executor inherits the socket as one that it holds.
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
        assert!(stranger.end(&table, PATIENCE).expect("nothing is left").killed.is_empty());
        let search = Search { state, owner: "us".to_owned(), ..Search::of(mark) };
        until(|| !search.locate(&table).expect("it can be looked at").processes.is_empty());
        let ended = search.end(&table, PATIENCE).expect("it ends");
        assert_eq!(ended.killed.keys().copied().collect::<Vec<_>>(), [executor.id()]);
        executor.wait().expect("it has ended");
    }

    #[test]
    fn what_does_not_end_is_told_with_its_process_id() {
        let ours = mark();
        let mut own = begin(&ours, "sleep 600; :");
        let table = ProcessTable::new();
        let search = Search::of(ours);
        until(|| search.locate(&table).expect("it can be looked at").processes.contains(&own.id()));
        // No time at all, so it is not seen to end.
        let left = search.end(&table, Duration::ZERO).expect_err("it had no time");
        assert!(left.to_string().contains(&own.id().to_string()), "{left}");
        search.end(&table, PATIENCE).expect("it ends");
        own.wait().expect("it has ended");
    }

    #[test]
    fn what_a_driver_keeps_of_a_task_is_not_shown_p6() {
        let search = Search { state: b"canary-7".to_vec(), ..Search::of(mark()) };
        assert!(!format!("{search:?}").contains("canary"));
    }
}
