//! The processes of this machine, read from `/proc`: identity, relations and resource usage.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{fs, io};

use callboard_actors::process::{Environment, ProcessStatus, boot_id};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::record::{ProcessIdentity, TaskRecord};

/// The environment variable with the tag of a task, set in all its processes.
pub(super) const TAG: &str = "CALLBOARD_EXEC_TAG";
/// The first and the longest pause between two scans for a tag.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How many scans may find only unreadable processes, which are in the middle of an `exec`, before the search is given up.
const VAIN_LOOKS_MAX: u32 = 40;

const fn identity_of(status: &ProcessStatus) -> ProcessIdentity {
    ProcessIdentity { pid: status.pid, start_ticks: status.started_ticks }
}

/// The status of a process; `None` if it does not exist.
pub(super) fn stat(pid: i32) -> Option<ProcessStatus> {
    ProcessStatus::of(pid)
}

/// The identity of a process; always `Some` for a child that is not reaped.
pub(super) fn identity(pid: i32) -> Option<ProcessIdentity> {
    stat(pid).as_ref().map(identity_of)
}

/// Whether exactly this process exists and has not ended.
pub(super) fn lives(process: &ProcessIdentity) -> bool {
    stat(process.pid).is_some_and(|stat| stat.started_ticks == process.start_ticks && !stat.is_zombie)
}

/// A pidfd of exactly this process, if it exists. It is opened before the identity check, which excludes PID reuse.
pub(super) fn descriptor(process: &ProcessIdentity) -> Option<rustix::fd::OwnedFd> {
    let descriptor = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
    lives(process).then_some(descriptor)
}

pub(super) fn all() -> Vec<ProcessStatus> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter_map(stat).collect()
}

/// All descendants of a process, without itself, by process id.
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

pub(super) fn tagged(tag: &str) -> BTreeMap<i32, ProcessStatus> {
    look_for(tag).tagged
}

/// The result of one scan for a tag.
struct Look {
    /// The processes with the tag, without zombies and without processes that may not be inspected; `hidden` is for those.
    tagged: BTreeMap<i32, ProcessStatus>,
    /// Whether some processes are unreadable at this moment and may have the tag.
    is_any_unknown: bool,
}

fn look_for(tag: &str) -> Look {
    let mut look = Look { tagged: BTreeMap::new(), is_any_unknown: false };
    for process in all().into_iter().filter(|process| !process.is_zombie) {
        let environment = Environment::of(process.pid.cast_unsigned());
        look.is_any_unknown |= environment.is_unknown();
        if environment.has(TAG, tag) {
            look.tagged.insert(process.pid, process);
        }
    }
    look
}

/// The processes that provably belong to a task without supervisor: its main process, the descendants of that process, and all processes
/// with the tag. After a reboot there are none.
pub(super) fn of_task(task: &TaskRecord) -> io::Result<BTreeMap<i32, ProcessIdentity>> {
    if task.boot_id != boot_id()? {
        return Ok(BTreeMap::new());
    }
    let mut found = tagged(&task.tag);
    let descendants = descendants(task.task.pid);
    // It still lives, so its process id was not reused.
    if lives(&task.task) {
        found.extend(descendants.into_iter().filter(|(_, process)| !process.is_zombie));
        found.extend(stat(task.task.pid).map(|main| (main.pid, main)));
    }
    Ok(found.into_iter().map(|(pid, process)| (pid, identity_of(&process))).collect())
}

/// Sends a signal to exactly these processes. Returns how many received it.
///
/// # Errors
/// When processes exist, but none could be signalled.
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
            // It has ended since.
            Err(Errno::SRCH) => {}
            Err(error) => refused = Some((process.pid, error)),
        }
    }
    match refused {
        Some((pid, error)) if count == 0 => {
            let told = format!("no process could be signalled, for example process {pid}: {error}");
            Err(io::Error::new(io::Error::from(error).kind(), told))
        }
        Some(_) | None => Ok(count),
    }
}

/// Kills exactly these processes. Returns how many still lived.
fn kill_each<'a>(processes: impl Iterator<Item = &'a ProcessStatus>) -> usize {
    let mut count = 0;
    for process in processes.filter(|process| !process.is_zombie) {
        if let Some(descriptor) = descriptor(&identity_of(process)) {
            // Fails only if it has ended since.
            let _ = pidfd_send_signal(&descriptor, Signal::KILL);
            count += 1;
        }
    }
    count
}

/// Kills all descendants of a process except one, each through a pidfd of exactly the process that was seen. Returns how many
/// still lived. The ancestor is the caller, or a child of the caller that is not reaped.
pub(super) fn kill_descendants(ancestor: i32, except: Option<i32>) -> usize {
    kill_each(descendants(ancestor).values().filter(|process| Some(process.pid) != except))
}

/// Kills all processes of a session. The leader is an unreaped child of the caller, so its process id cannot be reused.
pub(super) fn kill_session(session: u32) {
    kill_each(all().iter().filter(|process| process.session == session));
}

/// Kills all processes with a tag, and returns when none is left.
pub(super) async fn end_tagged(tag: &str) {
    let (mut vain_looks, mut pause) = (0, LOOK_PAUSE);
    loop {
        let Look { tagged, is_any_unknown } = look_for(tag);
        kill_each(tagged.values());
        if tagged.is_empty() && (!is_any_unknown || vain_looks == VAIN_LOOKS_MAX) {
            return;
        }
        tokio::time::sleep(pause).await;
        if tagged.is_empty() {
            vain_looks += 1;
        } else {
            (vain_looks, pause) = (0, (pause * 2).min(LOOK_PAUSE_MAX));
        }
    }
}

/// The initial environment of a process, as the kernel shows it, with a NUL byte after each entry. `None` for a process that
/// has ended, may not be inspected, or is in the middle of an `exec`.
pub(super) fn environment(pid: i32) -> Option<Vec<u8>> {
    match Environment::of(pid.cast_unsigned()) {
        Environment::Read(environment) => Some(environment),
        Environment::Unknown | Environment::Closed => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_process_is_itself_only_with_its_start_time_prc_01() {
        let me = identity(std::process::id().cast_signed()).expect("it runs");
        assert!(lives(&me) && descriptor(&me).is_some());
        let other = ProcessIdentity { start_ticks: me.start_ticks + 1, ..me };
        assert!(!lives(&other) && descriptor(&other).is_none());
    }

    #[test]
    fn what_carries_a_tag_is_ended_also_in_the_middle_of_an_exec_prc_03() {
        let again = "exec /bin/sh -c \"$0\" \"$0\"";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let mut left = 0;
        for round in 0..100 {
            let tag = format!("executing-{}-{round}", std::process::id());
            let mut child = Command::new("/bin/sh");
            let mut child = child.args(["-c", again, again]).env(TAG, &tag).spawn().expect("it starts");
            while tagged(&tag).is_empty() {
                std::thread::yield_now();
            }
            runtime.block_on(end_tagged(&tag));
            // A killed process may need a moment to end.
            let deadline = Instant::now() + Duration::from_millis(500);
            while child.try_wait().expect("it is ours").is_none() && Instant::now() < deadline {
                std::thread::yield_now();
            }
            if child.try_wait().expect("it is ours").is_none() {
                left += 1;
                child.kill().expect("it is ours");
            }
            child.wait().expect("it is ours");
        }
        assert_eq!(left, 0, "of 100");
    }
}
