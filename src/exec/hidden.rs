//! Processes that may belong to a task without proof, since this driver may not inspect them.
//!
//! The kernel hides the environment of a process, and with it the tag of the task, from a driver without `CAP_SYS_PTRACE` if the process
//! has another user, or more privileges than its user. So a scan that finds no process with the tag does not prove that none is left. A
//! hidden process may belong to the task if all of these are true:
//!
//! - it was started at the same time as the task, or later;
//! - it has the user that the task was given: real, effective or saved;
//! - it is an orphan: its parent is the init process or an ancestor of the driver; or its parent is such a process itself. Any
//!   other process is found by its parent, or does not belong to the task: a process of the task with a living parent descends
//!   from the task, and processes that the task left behind are orphans.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use callboard_actors::process::{ProcessStatus, users_in};

use super::processes;
use super::record::TaskContext;

/// The number of scans, and the pause between them: a process is hidden for a moment while it execs.
const LOOKS: u32 = 10;
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// The number of processes named in the message.
const NAMED_MAX: usize = 8;

/// The known facts about a task whose processes may be hidden.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    /// The start of the task, in ticks since the boot; none of its processes is older.
    pub(super) ticks: u64,
    /// Its user; `None` if unknown.
    pub(super) user: Option<u32>,
}

impl Since {
    /// The facts about a task with this start and this context; a task of an earlier version has no context.
    pub(super) fn new(ticks: u64, context: Option<&TaskContext>) -> Self {
        let own = || rustix::process::geteuid().as_raw();
        let user = |context: &TaskContext| context.user.as_ref().map_or_else(own, |user| user.uid);
        Self { ticks, user: context.map(user) }
    }
}

/// Lists the processes that may be left of a task and cannot be inspected; `None` if there are none.
pub(super) async fn left(since: Since) -> Option<String> {
    let mut found = BTreeSet::new();
    for look in 0..LOOKS {
        if look > 0 {
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        found = look_for(since);
        if found.is_empty() {
            return None;
        }
    }
    let named: Vec<_> = found.iter().take(NAMED_MAX).map(i32::to_string).collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "these processes may belong to it, but the driver lacks the permission to inspect them: {}{more}; end those that do, or \
        give the driver CAP_SYS_PTRACE",
        named.join(", ")
    ))
}

fn look_for(since: Since) -> BTreeSet<i32> {
    let all: BTreeMap<i32, ProcessStatus> =
        processes::all().into_iter().map(|process| (process.pid, process)).collect();
    let mut adopters = BTreeSet::from([1]);
    let mut next = Some(std::process::id().cast_signed());
    while let Some(pid) = next.filter(|pid| adopters.insert(*pid)) {
        next = all.get(&pid).map(|process| process.parent);
    }
    suspects(&all, since, &adopters, |pid| is_hidden(pid).then(|| users(pid)))
}

fn users(pid: i32) -> BTreeSet<u32> {
    users_in(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
}

/// Whether the process exists, and its environment may not be read.
fn is_hidden(pid: i32) -> bool {
    let read = fs::File::open(format!("/proc/{pid}/environ"));
    read.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// The processes that may belong to the task. `users` returns the users of a hidden process, and `None` for any other.
fn suspects(
    all: &BTreeMap<i32, ProcessStatus>,
    since: Since,
    adopters: &BTreeSet<i32>,
    users: impl Fn(i32) -> Option<BTreeSet<u32>>,
) -> BTreeSet<i32> {
    let may_be = |process: &&ProcessStatus| {
        let is_new = process.started_ticks >= since.ticks && !process.is_zombie;
        let fits =
            |users: BTreeSet<u32>| users.is_empty() || since.user.is_none_or(|user| users.contains(&user));
        is_new && !adopters.contains(&process.pid) && users(process.pid).is_some_and(fits)
    };
    let fitting: Vec<_> = all.values().filter(may_be).collect();
    let mut found = BTreeSet::new();
    loop {
        let is_new = |process: &&&ProcessStatus| {
            let is_led = adopters.contains(&process.parent) || found.contains(&process.parent);
            is_led && !found.contains(&process.pid)
        };
        let more: Vec<_> = fitting.iter().filter(is_new).map(|process| process.pid).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::super::processes::TAG;
    use super::*;

    fn process(pid: i32, parent: i32, started_ticks: u64) -> (i32, ProcessStatus) {
        let status = ProcessStatus {
            pid,
            is_zombie: false,
            has_lost_first_thread: false,
            is_stopped: false,
            is_of_kernel: false,
            parent,
            group: 1,
            session: 1,
            user_ticks: 0,
            system_ticks: 0,
            started_ticks,
            resident_pages: 0,
            environment_bytes: None,
        };
        (pid, status)
    }

    #[test]
    fn an_orphan_that_is_hidden_may_be_of_the_task_if_time_and_user_fit() {
        let all = BTreeMap::from([
            process(10, 1, 5),
            process(11, 10, 5),
            process(12, 1, 4),
            process(13, 9, 5),
            process(14, 1, 5),
            process(15, 1, 5),
            process(2, 1, 5),
        ]);
        // 14 can be read, and 15 has another user.
        let users = |pid| (pid != 14).then(|| BTreeSet::from([if pid == 15 { 7 } else { 33 }]));
        let found = |user| suspects(&all, Since { ticks: 5, user }, &[1, 2].into(), users);
        assert_eq!(found(Some(33)), [10, 11].into());
        assert_eq!(found(None), [10, 11, 15].into());
    }

    /// Not a test of its own: a program that forbids inspection.
    #[test]
    fn a_program_that_is_closed_to_its_driver() {
        if std::env::var_os("CALLBOARD_TEST_CLOSED").is_none() {
            return;
        }
        set_dumpable_behavior(DumpableBehavior::NotDumpable).expect("it may");
        println!("\nit is closed");
        std::thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn that_no_tag_is_seen_is_no_proof_where_the_driver_may_not_look() {
        let thread = std::thread::spawn(|| {
            let mut rights = capabilities(None).expect("the system tells");
            rights.effective = CapabilitySet::empty();
            set_capabilities(None, rights).expect("less is always allowed");
            look_at_what_is_closed();
        });
        thread.join().expect("it goes well");
    }

    /// Parses a line of that program: the process id, or `Some(None)` for the message that it is closed.
    fn said(line: &str) -> Option<Option<i32>> {
        let number = line.strip_prefix("number ").and_then(|number| number.parse().ok());
        (line == "it is closed").then_some(None).or(number.map(Some))
    }

    fn look_at_what_is_closed() {
        let tag = format!("closed-{}", std::process::id());
        let mut parent = Command::new("/bin/sh");
        let program = std::env::current_exe().expect("this program");
        parent.args(["-c", "\"$0\" --exact --nocapture exec::hidden::tests::a_program_that_is_closed_to_its_driver & printf '\\nnumber %s\\n' $!"]);
        parent.arg(program).env("CALLBOARD_TEST_CLOSED", "yes").env(TAG, &tag).stdout(Stdio::piped());
        let mut parent = parent.spawn().expect("it starts");
        let identity = processes::identity(parent.id().cast_signed()).expect("it runs");
        let mut lines = BufReader::new(parent.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let said: Vec<_> = lines.by_ref().filter_map(|line| said(&line)).take(2).collect();
        let pid = said.into_iter().flatten().next().expect("its process id");
        parent.wait().expect("it has ended");
        assert!(processes::tagged(&tag).is_empty(), "nothing is seen");
        let since = Since::new(identity.start_ticks, Some(&TaskContext::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let told = runtime.block_on(left(since)).expect("something may be left");
        assert!(told.contains(&pid.to_string()) && told.contains("CAP_SYS_PTRACE"), "{told}");
        let closed = processes::identity(pid).expect("it lives");
        processes::signal_each([&closed], super::super::signals::KILL).expect("it can be ended");
        let deadline = Instant::now() + Duration::from_secs(30);
        while processes::lives(&closed) {
            assert!(Instant::now() < deadline, "it takes too long");
            std::thread::sleep(LOOK_PAUSE);
        }
        assert!(!look_for(since).contains(&pid));
    }
}
