//! Reads the process table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use callboard_machines::leftovers::{Environment, Holder, Process, Processes, text};

use crate::process::{ProcessStatus, living_directory, read_environment, users_in};

/// The depth limit for cgroups below the task's own.
const GROUPS_DEEP: usize = 16;

/// The processes of a machine, read from `/proc`.
///
/// Concurrent searches share a snapshot that began after they were requested. So a thousand tasks that end together do not
/// read the table a thousand times.
#[derive(Debug)]
pub struct ProcessTable {
    root: PathBuf,
    latest: Mutex<Option<Look>>,
}

#[derive(Debug)]
struct Look {
    began: Instant,
    processes: Arc<Processes>,
}

impl Default for ProcessTable {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl ProcessTable {
    /// The processes of this machine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), latest: Mutex::new(None) }
    }

    /// All living processes, without zombies and kernel threads.
    ///
    /// # Errors
    /// When the table cannot be read, or does not even show this process: then an empty result proves nothing.
    pub(super) fn look(&self) -> io::Result<Arc<Processes>> {
        let asked = Instant::now();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(look) = latest.as_ref().filter(|look| look.began >= asked) {
            return Ok(Arc::clone(&look.processes));
        }
        let began = Instant::now();
        let mut processes = Processes::new();
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Some(process) = self.process(pid)? {
                processes.insert(pid, process);
            }
        }
        if !processes.contains_key(&std::process::id()) {
            let problem = format!("{} does not show this process itself", self.root.display());
            return Err(io::Error::other(problem));
        }
        let processes = Arc::new(processes);
        *latest = Some(Look { began, processes: Arc::clone(&processes) });
        Ok(processes)
    }

    /// One process; `None` if there is none with this PID, or it is a zombie or a kernel thread.
    fn process(&self, pid: u32) -> io::Result<Option<Process>> {
        let Some(status) = self.status(pid) else { return Ok(None) };
        if status.is_zombie || status.is_of_kernel {
            return Ok(None);
        }
        let environment = self.environment(pid)?;
        let groups = fs::read_to_string(self.place(pid, "cgroup")).unwrap_or_default();
        // Checked again: after PID reuse, the values would belong to two processes.
        let is_same = |again: &ProcessStatus| again.started_ticks == status.started_ticks;
        if !self.status(pid).as_ref().is_some_and(is_same) {
            return Ok(None);
        }
        Ok(Some(Process {
            pid,
            parent: u32::try_from(status.parent).unwrap_or(0),
            session: status.session,
            group: status.group,
            started_ticks: status.started_ticks,
            environment,
            groups: text::groups(&groups),
        }))
    }

    fn status(&self, pid: u32) -> Option<ProcessStatus> {
        ProcessStatus::read(&fs::read(self.place(pid, "stat")).ok()?)
    }

    /// The environment of a process. An unreadable one is not evidence.
    fn environment(&self, pid: u32) -> io::Result<Environment> {
        match read_environment(&living_directory(self.root.join(pid.to_string())).join("environ")) {
            Ok(bytes) => Ok(text::environment(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let status = fs::read_to_string(self.place(pid, "status")).unwrap_or_default();
                Ok(Environment::Hidden { users: users_in(&status) })
            }
            // It has ended meanwhile.
            Err(error) if is_over(&error) => Ok(Environment::Unknown),
            Err(error) => Err(error),
        }
    }

    /// The sockets with a path that these processes hold, and their command lines.
    pub(super) fn holders(&self, pids: &BTreeSet<u32>) -> io::Result<Vec<Holder>> {
        let sockets: BTreeMap<u64, String> =
            text::sockets(&fs::read_to_string(self.root.join("net/unix"))?).into_iter().collect();
        let holder = |pid: &u32| {
            let process = living_directory(self.root.join(pid.to_string()));
            let descriptors = fs::read_dir(process.join("fd")).ok()?;
            let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
            let numbers = links.filter_map(|link| text::socket_number(link.to_str()?));
            let sockets: Vec<_> = numbers.filter_map(|number| sockets.get(&number).cloned()).collect();
            let command = fs::read(process.join("cmdline")).unwrap_or_default();
            Some(Holder { pid: *pid, sockets, command })
        };
        Ok(pids.iter().filter_map(holder).collect())
    }

    pub(super) fn socket_paths(&self) -> io::Result<Vec<String>> {
        let text = fs::read_to_string(self.root.join("net/unix"))?;
        Ok(text::sockets(&text).into_iter().map(|(_, path)| path).collect())
    }

    pub(super) fn boot(&self) -> Option<String> {
        let id = fs::read_to_string(self.root.join("sys/kernel/random/boot_id")).ok()?;
        Some(id.trim().to_owned())
    }

    /// The users that children of this host can have; `None` if any. Evaluated for the calling thread.
    pub(super) fn own_users(&self) -> io::Result<Option<BTreeSet<u32>>> {
        let status = fs::read_to_string(self.root.join("thread-self/status"))?;
        Ok((!text::may_change_user(&status)).then(|| users_in(&status)))
    }

    /// The start time of a process, in ticks since the boot; `None` if it does not live.
    pub(super) fn started(&self, pid: u32) -> Option<u64> {
        let status = self.status(pid)?;
        (!status.is_zombie).then_some(status.started_ticks)
    }

    fn place(&self, pid: u32, file: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(file)
    }
}

/// The members of a cgroup and its descendants. A missing cgroup is empty.
pub(super) fn members(group: &Path) -> io::Result<BTreeSet<u32>> {
    let (mut members, mut level) = (BTreeSet::new(), vec![group.to_owned()]);
    for _ in 0..GROUPS_DEEP {
        let mut below = Vec::new();
        for directory in level {
            match fs::read_to_string(directory.join("cgroup.procs")) {
                Ok(text) => members.extend(text.lines().filter_map(|line| line.parse::<u32>().ok())),
                Err(error) if is_over(&error) => continue,
                Err(error) => return Err(error),
            }
            let entries = fs::read_dir(&directory)?.filter_map(Result::ok);
            below.extend(
                entries
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                    .map(|entry| entry.path()),
            );
        }
        level = below;
    }
    Ok(members)
}

/// Whether the error means that the file is gone.
fn is_over(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

#[cfg(test)]
mod tests {
    use callboard_machines::leftovers::TaskMark;

    use super::*;

    fn table(pid: u32, state: char, flags: u32, environment: &[u8]) -> (tempfile::TempDir, ProcessTable) {
        let root = tempfile::tempdir().expect("a directory");
        let add = |pid: u32, state: char, flags: u32, environment: &[u8]| {
            let directory = root.path().join(pid.to_string());
            fs::create_dir(&directory).expect("it can be made");
            let stat =
                format!("{pid} (a) {state} 1 {pid} {pid} 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0");
            fs::write(directory.join("stat"), stat).expect("it can be written");
            fs::write(directory.join("environ"), environment).expect("it can be written");
            fs::write(directory.join("cgroup"), "0::/a.slice\n").expect("it can be written");
        };
        add(std::process::id(), 'S', 0, b"A=b\0");
        add(pid, state, flags, environment);
        let table = ProcessTable::at(root.path());
        (root, table)
    }

    #[test]
    fn a_process_is_read_with_what_its_environment_says_and_its_groups() {
        let (_root, table) = table(4_000_001, 'D', 0, b"NOMAD_ALLOC_ID=a\0NOMAD_TASK_NAME=web\0");
        let seen = table.look().expect("it can be read");
        let process = &seen[&4_000_001];
        assert_eq!(process.task(), Some(&TaskMark { allocation: "a".into(), task: "web".into() }));
        assert_eq!((process.parent, process.session, process.started_ticks), (1, 4_000_001, 77));
        assert_eq!(process.groups, ["/a.slice"]);
    }

    #[test]
    fn zombies_and_threads_of_the_kernel_do_not_live_and_an_empty_environment_is_unknown() {
        for (state, flags) in [('Z', 0), ('S', 0x0020_0000)] {
            let (_root, table) = table(4_000_001, state, flags, b"");
            assert!(!table.look().expect("it can be read").contains_key(&4_000_001), "{state} {flags}");
        }
        let (_root, table) = table(4_000_001, 'S', 0, b"");
        assert_eq!(table.look().expect("it can be read")[&4_000_001].environment, Environment::Unknown);
    }

    #[test]
    fn a_table_that_does_not_show_this_process_is_an_error_and_not_empty() {
        let root = tempfile::tempdir().expect("a directory");
        let error = ProcessTable::at(root.path()).look().expect_err("it shows nothing");
        assert!(error.to_string().contains("does not show this process"), "{error}");
        assert!(ProcessTable::at(root.path().join("none")).look().is_err());
    }

    #[test]
    fn the_members_of_a_control_group_are_those_below_it_too_and_one_that_is_gone_has_none() {
        let group = tempfile::tempdir().expect("a directory");
        fs::create_dir(group.path().join("inner")).expect("it can be made");
        fs::write(group.path().join("cgroup.procs"), "11\n12\n").expect("it can be written");
        fs::write(group.path().join("inner/cgroup.procs"), "13\n").expect("it can be written");
        assert_eq!(members(group.path()).expect("it can be read"), [11, 12, 13].into());
        assert_eq!(members(&group.path().join("gone")).expect("it is none"), [].into());
    }

    #[test]
    fn this_machine_shows_this_process_with_its_sockets() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("plugin1");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let (table, us) = (ProcessTable::new(), std::process::id());
        assert_eq!(table.started(us), Some(table.look().expect("it can be read")[&us].started_ticks));
        let holders = table.holders(&[us].into()).expect("it can be read");
        let path = path.display().to_string();
        assert!(holders[0].sockets.contains(&path), "{holders:?}");
        assert!(table.socket_paths().expect("it can be read").contains(&path));
    }
}
