//! The processes of this machine, read from `/proc`: who is who, and what each uses.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use callboard_actors::process::{ProcessStatus, boot_id};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::record::{ProcessIdentity, TaskRecord};

/// The variable with the tag of a task, in the environment of every process of it.
pub(super) const TAG: &str = "CALLBOARD_EXEC_TAG";
/// The pause between two looks for what carries a tag, first and at most.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The identity that a look at a process tells.
const fn identity_of(status: &ProcessStatus) -> ProcessIdentity {
    ProcessIdentity { pid: status.pid, start_ticks: status.started_ticks }
}

/// Looks at one process; none if there is no such one.
pub(super) fn stat(pid: i32) -> Option<ProcessStatus> {
    ProcessStatus::of(pid)
}

/// The identity of a process that runs; for a child of ours that is not reaped it is always there.
pub(super) fn identity(pid: i32) -> Option<ProcessIdentity> {
    stat(pid).as_ref().map(identity_of)
}

/// Whether this very process is there and has not ended.
pub(super) fn lives(process: &ProcessIdentity) -> bool {
    stat(process.pid).is_some_and(|stat| stat.started_ticks == process.start_ticks && !stat.is_zombie)
}

/// A descriptor of this very process, if it is there. The descriptor is opened before the look, so that it cannot be one of
/// a process that took the number over.
pub(super) fn descriptor(process: &ProcessIdentity) -> Option<rustix::fd::OwnedFd> {
    let descriptor = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
    lives(process).then_some(descriptor)
}

/// Every process.
pub(super) fn all() -> Vec<ProcessStatus> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(stat).collect()
}

/// Every descendant of a process, without itself, by number.
pub(super) fn descendants(ancestor: i32) -> BTreeMap<i32, ProcessStatus> {
    let mut children: BTreeMap<i32, Vec<ProcessStatus>> = BTreeMap::new();
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
pub(super) fn tagged(tag: &str) -> BTreeMap<i32, ProcessStatus> {
    let is_tagged = |process: &ProcessStatus| !process.is_zombie && carries(process.pid, tag);
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
    Ok(found.into_iter().map(|(pid, process)| (pid, identity_of(&process))).collect())
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
fn kill_each<'a>(processes: impl Iterator<Item = &'a ProcessStatus>) -> usize {
    let mut count = 0;
    for process in processes.filter(|process| !process.is_zombie) {
        if let Some(descriptor) = descriptor(&identity_of(process)) {
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

/// Kills every process of a session. The leader is a child of the caller that is not reaped, so that the number is its own.
pub(super) fn kill_session(session: u32) {
    kill_each(all().iter().filter(|process| process.session == session));
}

/// Kills whatever is seen to carry a tag, and comes back when none is left.
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

/// Whether a process is seen to carry a tag. One that has ended does not; of one that may not be looked at nothing is said by
/// that, and `hidden` says which of them may be of a task.
fn carries(pid: i32, tag: &str) -> bool {
    let mark = format!("{TAG}={tag}");
    environment(pid)
        .is_some_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
}

/// The environment that a process was started with, as the kernel shows it, each entry followed by a zero; none of one that has
/// ended, or that may not be looked at.
pub(super) fn environment(pid: i32) -> Option<Vec<u8>> {
    fs::read(of(pid).join("environ")).ok()
}

fn of(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_only_with_its_start_time_prc_01() {
        let me = identity(std::process::id().cast_signed()).expect("it runs");
        assert!(lives(&me) && descriptor(&me).is_some());
        let other = ProcessIdentity { start_ticks: me.start_ticks + 1, ..me };
        assert!(!lives(&other) && descriptor(&other).is_none());
    }
}
