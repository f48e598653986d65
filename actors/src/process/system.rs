//! Facts from the system: boot id, random bytes, and process status. The only parser of them in Callboard.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The boot id of the machine: PIDs of different boots are unrelated.
///
/// # Errors
/// When the system does not provide it.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The time since the boot, including suspend. Start times of processes use this clock; it cannot be set.
#[must_use]
pub fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// Random bytes of the system.
///
/// # Errors
/// When the system does not provide them.
pub fn random_bytes<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut random = [0; BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random)
}

/// The user ids in a text such as `/proc/<pid>/status`: real, effective and saved. Empty if there are none.
#[must_use]
pub fn users_in(status: &str) -> BTreeSet<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    line.split_ascii_whitespace().take(3).filter_map(|user| user.parse().ok()).collect()
}

/// The status of one process from `/proc/<pid>/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Its PID.
    pub pid: i32,
    /// Whether it is a zombie: it has ended with all its threads, and is not reaped.
    pub is_zombie: bool,
    /// Whether its first thread has ended and others live, or are about to end. The kernel shows such a process as a zombie,
    /// without memory and without file descriptors; see [`living_directory`].
    pub has_lost_first_thread: bool,
    /// Whether a signal has stopped it.
    pub is_stopped: bool,
    /// Whether it is a kernel thread.
    pub is_of_kernel: bool,
    /// The PID of its parent.
    pub parent: i32,
    /// Its group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// CPU time in user mode, in ticks.
    pub user_ticks: u64,
    /// CPU time in the kernel, in ticks.
    pub system_ticks: u64,
    /// Its start time, in ticks since the boot.
    pub started_ticks: u64,
    /// Memory in use, in pages.
    pub resident_pages: u64,
    /// The size of its initial environment in bytes. `None` if the kernel does not report it: for a process in the middle of
    /// an `exec`, for one that has ended, and for one without permission.
    pub environment_bytes: Option<u64>,
}

impl ProcessStatus {
    /// Reads the status of a process. `None` if there is none with this PID.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        Self::read(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses such a line. The program name is in parentheses and may contain any byte, parentheses too.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        const KERNEL_THREAD: u64 = 0x0020_0000;
        let (begin, end) =
            (text.iter().position(|byte| *byte == b'(')?, text.iter().rposition(|byte| *byte == b')')?);
        let pid = std::str::from_utf8(&text[..begin]).ok()?.trim().parse().ok()?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first of these is field 3.
        let number = |position: usize| fields.get(position - 3)?.parse::<u64>().ok();
        // Field 6 of a process of another namespace may be negative or zero; such a value matches none of ours.
        let small = |position: usize| u32::try_from(number(position)?).ok();
        // The start and end of its environment in memory. In the middle of an `exec` the end is not set yet, or equals the
        // start; the end of the code is set after that.
        let environment = number(50).zip(number(51)).filter(|(_, end)| *end != 0 && number(27) != Some(0));
        let has_first_thread_ended = matches!(*fields.first()?, "Z" | "X");
        let has_other_threads = number(20)? > 1;
        Some(Self {
            pid,
            is_zombie: has_first_thread_ended && !has_other_threads,
            has_lost_first_thread: has_first_thread_ended && has_other_threads,
            is_stopped: matches!(*fields.first()?, "T" | "t"),
            is_of_kernel: number(9)? & KERNEL_THREAD != 0,
            parent: i32::try_from(number(4)?).ok()?,
            group: small(5)?,
            session: small(6)?,
            user_ticks: number(14)?,
            system_ticks: number(15)?,
            started_ticks: number(22)?,
            resident_pages: number(24)?,
            environment_bytes: environment.map(|(begin, end)| end.saturating_sub(begin)),
        })
    }
}

/// The directory that shows the memory and the file descriptors of a process, given its directory in `/proc`: the same directory or,
/// if the process has lost its first thread, that of a living thread.
#[must_use]
pub fn living_directory(process: PathBuf) -> PathBuf {
    let status = |directory: &Path| ProcessStatus::read(&fs::read(directory.join("stat")).ok()?);
    if status(&process).is_none_or(|status| !status.has_lost_first_thread) {
        return process;
    }
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().filter_map(Result::ok);
    let lives = |thread: &PathBuf| {
        status(thread).is_some_and(|status| !status.is_zombie && !status.has_lost_first_thread)
    };
    threads.map(|thread| thread.path()).find(lives).unwrap_or(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_program_is_called() {
        let line = b"42 (a) b (c)) S 7 40 41 0 -1 4194560 120 0 0 0 11 13 0 0 20 0 1 0 9876 1000 55 1844 0 0";
        let expected = ProcessStatus {
            pid: 42,
            is_zombie: false,
            has_lost_first_thread: false,
            is_stopped: false,
            is_of_kernel: false,
            parent: 7,
            group: 40,
            session: 41,
            user_ticks: 11,
            system_ticks: 13,
            started_ticks: 9876,
            resident_pages: 55,
            environment_bytes: None,
        };
        assert_eq!(ProcessStatus::read(line), Some(expected));
        for torn in ["", "42", "42 (a", "42 (a) S", "x (a) S 7 42 42 0 -1", ") 42 ("] {
            assert_eq!(ProcessStatus::read(torn.as_bytes()), None, "{torn}");
        }
    }

    #[test]
    fn a_process_that_has_lost_only_its_first_thread_is_no_zombie_prc_01() {
        let read = |threads: u32| {
            let line = format!("1 (a) Z 7 1 1 0 -1 64 0 0 0 0 0 0 0 0 20 0 {threads} 0 9 0 5 0 0");
            let status = ProcessStatus::read(line.as_bytes()).expect("it is whole");
            (status.is_zombie, status.has_lost_first_thread)
        };
        assert_eq!((read(0), read(1), read(2)), ((true, false), (true, false), (false, true)));
    }

    #[test]
    fn an_environment_that_is_not_there_yet_is_told_from_one_that_is_empty() {
        let read = |code_end: u64, begin: u64, end: u64| {
            let (front, rest) = ("1 (a) R 7 1 1 0 -1 64 0 0 0 0 0 0 0 0 20 0 1 0 9 0 5 0 0", "0 ".repeat(22));
            let line = format!("{front} {code_end} {rest} {begin} {end} 0");
            ProcessStatus::read(line.as_bytes()).expect("it is whole").environment_bytes
        };
        assert_eq!((read(700, 4_000, 4_100), read(700, 4_000, 4_000)), (Some(100), Some(0)));
        for (code_end, begin, end) in [(0, 0, 0), (0, 4_000, 0), (0, 4_000, 4_000)] {
            assert_eq!(read(code_end, begin, end), None, "in the middle of an `exec`");
        }
        assert_eq!(read(1, 0, 0), None, "this process may not look into it");
    }

    #[test]
    fn this_process_has_an_environment_and_is_no_thread_of_the_kernel() {
        let us = i32::try_from(std::process::id()).expect("a process id");
        let status = ProcessStatus::of(us).expect("it runs");
        assert!(
            !status.is_of_kernel && status.environment_bytes.is_some_and(|bytes| bytes > 0),
            "{status:?}"
        );
    }

    #[test]
    fn a_thread_of_the_kernel_is_told_by_its_flag() {
        let line = b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0";
        assert!(ProcessStatus::read(line).expect("it is whole").is_of_kernel);
    }

    #[test]
    fn the_users_of_a_process_are_read() {
        assert_eq!(users_in("Name:\ta\nUid:\t1000\t0\t1000\t7\nGid:\t1\t1\t1\t1\n"), [0, 1_000].into());
        assert!(users_in("Name:\ta\n").is_empty());
    }

    #[test]
    fn two_draws_of_random_bytes_differ() {
        assert_ne!(
            random_bytes::<16>().expect("the system gives them"),
            random_bytes::<16>().expect("it does")
        );
    }
}
