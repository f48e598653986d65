//! The processes of this machine, read from `/proc`: who is who, and what each uses.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::record::{ProcessIdentity, TaskRecord};

/// The variable with the tag of a task, in the environment of every process of it.
pub(super) const TAG: &str = "CALLBOARD_EXEC_TAG";
/// The pause between two looks for what carries a tag, first and at most.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(1);

/// What `/proc/<pid>/stat` tells of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) pid: i32,
    pub(super) is_zombie: bool,
    /// Whether a signal has stopped it.
    pub(super) is_stopped: bool,
    pub(super) parent: i32,
    /// Time on a processor in user mode and in the kernel, in ticks.
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    /// When it was started, in ticks since the boot.
    pub(super) start_ticks: u64,
    /// Memory in use, in pages.
    pub(super) resident_pages: u64,
}

/// Reads one line of `/proc/<pid>/stat`. The name of the program stands in brackets and may hold anything, also brackets.
pub(super) fn parse_stat(text: &str) -> Option<ProcessStat> {
    let (pid, rest) = text.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of these is the third of the line.
    let number = |position: usize| fields.get(position - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        pid: pid.trim().parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        is_stopped: matches!(*fields.first()?, "T" | "t"),
        parent: i32::try_from(number(4)?).ok()?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        start_ticks: number(22)?,
        resident_pages: number(24)?,
    })
}

impl ProcessStat {
    const fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_ticks: self.start_ticks }
    }
}

/// Looks at one process; none if there is no such one.
pub(super) fn stat(pid: i32) -> Option<ProcessStat> {
    parse_stat(&fs::read_to_string(of(pid).join("stat")).ok()?)
}

/// The identity of a process that runs; for a child of ours that is not reaped it is always there.
pub(super) fn identity(pid: i32) -> Option<ProcessIdentity> {
    stat(pid).map(|stat| stat.identity())
}

/// The boot of this machine, by which process numbers of different boots are told apart.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Whether this very process is there and has not ended.
pub(super) fn lives(process: &ProcessIdentity) -> bool {
    stat(process.pid).is_some_and(|stat| stat.start_ticks == process.start_ticks && !stat.is_zombie)
}

/// A descriptor of this very process, if it is there. The descriptor is opened before the look, so that it cannot be one of
/// a process that took the number over.
pub(super) fn descriptor(process: &ProcessIdentity) -> Option<rustix::fd::OwnedFd> {
    let descriptor = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
    lives(process).then_some(descriptor)
}

/// Every process.
fn all() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(stat).collect()
}

/// Every descendant of a process, without itself, by number.
pub(super) fn descendants(ancestor: i32) -> BTreeMap<i32, ProcessStat> {
    let mut children: BTreeMap<i32, Vec<ProcessStat>> = BTreeMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = BTreeMap::new();
    let mut waiting = vec![ancestor];
    while let Some(parent) = waiting.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            waiting.push(child.pid);
            found.insert(child.pid, child);
        }
    }
    found
}

/// Every process that carries a tag in its environment, by number.
pub(super) fn tagged(tag: &str) -> BTreeMap<i32, ProcessStat> {
    let is_tagged = |process: &ProcessStat| !process.is_zombie && carries(process.pid, tag);
    all().into_iter().filter(is_tagged).map(|process| (process.pid, process)).collect()
}

/// The processes that are proven to be of a task whose supervisor is gone: its main process, what descends from that, and
/// whatever carries its tag. Of another boot there are none.
pub(super) fn of_task(task: &TaskRecord) -> io::Result<BTreeMap<i32, ProcessIdentity>> {
    if task.boot_id != boot_id()? {
        return Ok(BTreeMap::new());
    }
    let mut found = tagged(&task.tag);
    let descendants = descendants(task.task.pid);
    // It lives still, so the number was its own all the while.
    if lives(&task.task) {
        found.extend(descendants.into_iter().filter(|(_, process)| !process.is_zombie));
        found.extend(stat(task.task.pid).map(|main| (main.pid, main)));
    }
    Ok(found.into_iter().map(|(pid, process)| (pid, process.identity())).collect())
}

/// Sends a signal to each of these very processes. Gives how many were there to take it.
///
/// # Errors
/// When some were there and none could be signalled.
pub(super) fn signal_each<'a>(
    processes: impl IntoIterator<Item = &'a ProcessIdentity>,
    signal: i32,
) -> io::Result<usize> {
    let Some(signal) = Signal::from_named_raw(signal) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let (mut count, mut refused) = (0, None);
    for process in processes {
        let Some(descriptor) = descriptor(process) else { continue };
        match pidfd_send_signal(&descriptor, signal) {
            Ok(()) => count += 1,
            // It has ended since and needs no signal.
            Err(Errno::SRCH) => {}
            Err(error) => refused = Some((process.pid, error)),
        }
    }
    match refused {
        Some((pid, error)) if count == 0 => {
            let told = format!("nobody could be signalled, process {pid} for one: {error}");
            Err(io::Error::new(io::Error::from(error).kind(), told))
        }
        Some(_) | None => Ok(count),
    }
}

/// Kills each of these very processes that lives. Gives how many there were.
fn kill_each<'a>(processes: impl Iterator<Item = &'a ProcessStat>) -> usize {
    let mut count = 0;
    for process in processes.filter(|process| !process.is_zombie) {
        if let Some(descriptor) = descriptor(&process.identity()) {
            // One that has ended since needs no signal.
            let _ = pidfd_send_signal(&descriptor, Signal::KILL);
            count += 1;
        }
    }
    count
}

/// Kills all descendants of a process but one, each through a descriptor of the very process that was seen. Gives how many
/// still lived. The ancestor is the caller, or a child of the caller that is not reaped.
pub(super) fn kill_descendants(ancestor: i32, except: Option<i32>) -> usize {
    kill_each(descendants(ancestor).values().filter(|process| Some(process.pid) != except))
}

/// Kills whatever carries a tag, and comes back when none is left.
pub(super) async fn end_tagged(tag: &str) {
    let (mut empty_looks, mut pause) = (0, LOOK_PAUSE);
    // A process that is just becoming another program shows no environment for a moment; it does not do so twice.
    while empty_looks < 2 {
        empty_looks = if kill_each(tagged(tag).values()) == 0 { empty_looks + 1 } else { 0 };
        tokio::time::sleep(pause).await;
        if empty_looks == 0 {
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    }
}

/// Whether a process carries a tag. One that has ended, or that may not be looked at, does not.
fn carries(pid: i32, tag: &str) -> bool {
    let Ok(environment) = fs::read(of(pid).join("environ")) else { return false };
    let mark = format!("{TAG}={tag}");
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

fn of(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_program_is_called() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194560 120 0 0 0 11 13 0 0 20 0 1 0 9876 1000 55 1844 0 0";
        let read = parse_stat(line).expect("well formed");
        let expected = ProcessStat {
            pid: 42,
            is_zombie: false,
            is_stopped: false,
            parent: 7,
            user_ticks: 11,
            system_ticks: 13,
            start_ticks: 9876,
            resident_pages: 55,
        };
        assert_eq!(read, expected);
        for torn in ["", "42", "42 (a", "42 (a) S", "x (a) S 7 42 42 0 -1"] {
            assert_eq!(parse_stat(torn), None, "{torn}");
        }
    }

    #[test]
    fn a_process_is_itself_only_with_its_start_time_prc_01() {
        let me = identity(std::process::id().cast_signed()).expect("it runs");
        assert!(lives(&me) && descriptor(&me).is_some());
        let other = ProcessIdentity { start_ticks: me.start_ticks + 1, ..me };
        assert!(!lives(&other) && descriptor(&other).is_none());
    }
}
