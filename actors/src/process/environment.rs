//! Reads the environments of processes, which identify their owner.
//!
//! During an `exec`, and while it ends, a process has no environment for a moment: reading it returns nothing, as if it was
//! empty, or an error. So it is unknown whether the process is ours, and it is read again. A process with a really empty
//! environment is recognised by [`ProcessStatus::environment_bytes`], and not read again.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::system::{ProcessStatus, living_directory};

/// The limit of bytes read from an environment. The system permits more, and our variables would be at the end; a process
/// without our variables is not ours.
const BYTES_MAX: u64 = 4 * 1_024 * 1_024;
const USUAL_BYTES: usize = 16 * 1_024;
/// How often a process in the middle of an `exec` is read again.
const LOOKS_AGAIN_MAX: u32 = 16;
/// The first pause before such a retry, and the longest; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_LONGEST: Duration = Duration::from_millis(16);

/// The result of reading the environment of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// The entries, each followed by a zero byte.
    Read(Vec<u8>),
    /// Unknown: the process is in the middle of an `exec`, or about to end.
    Unknown,
    /// Unreadable: there is no such process, or this process has no permission.
    Closed,
}

impl Environment {
    /// Reads the environment of a process once.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        match read_environment(&process.join("environ")) {
            Ok(bytes) if !bytes.is_empty() => return Self::Read(bytes),
            Ok(_) => {}
            // It has no memory: newer kernels say so instead of showing nothing.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
            Err(_) => return Self::Closed,
        }
        match i32::try_from(pid).ok().and_then(ProcessStatus::of) {
            None => Self::Closed,
            Some(status) if status.is_zombie || status.is_of_kernel => Self::Closed,
            Some(status) if status.has_lost_first_thread => {
                match read_environment(&living_directory(process).join("environ")) {
                    Ok(bytes) if !bytes.is_empty() => Self::Read(bytes),
                    // Its last threads are about to end.
                    Ok(_) | Err(_) => Self::Unknown,
                }
            }
            // A process in the middle of repeated `exec`s never has this value.
            Some(status) if status.environment_bytes == Some(0) => Self::Read(Vec::new()),
            Some(_) => Self::Unknown,
        }
    }

    /// Reads the environment of a process once, and maps it.
    pub(super) fn look<T>(pid: u32, show: impl FnOnce(&Self) -> T) -> Option<Look<T>> {
        let found = Self::of(pid);
        Some(Look { shown: show(&found), is_unknown: found.is_unknown() })
    }

    /// Whether a retry may return more.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// The value of a variable. `None` also if the environment cannot be read.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let Self::Read(bytes) = self else { return None };
        let mut entries = bytes.split(|byte| *byte == 0);
        entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.value(name)?).ok()
    }

    /// Whether it contains this entry, also next to others of the same name.
    #[must_use]
    pub fn has(&self, name: &str, value: &str) -> bool {
        let Self::Read(bytes) = self else { return false };
        let mut entries = bytes.split(|byte| *byte == 0);
        entries.any(|entry| entry.strip_prefix(name.as_bytes()) == Some(format!("={value}").as_bytes()))
    }
}

/// Reads a file like `/proc/<pid>/environ`: completely or not at all. The result is empty for a process in the middle of an
/// `exec`, and for one that execs another program before everything is read.
///
/// # Errors
/// When the process is gone, or this process has no permission.
pub fn read_environment(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    (&file).take(BYTES_MAX).read_to_end(&mut bytes)?;
    // The file refers to the memory that the process had when it was opened. After an `exec` that memory is gone: reads end
    // early, and the first byte can no longer be read either.
    if file.read_at(&mut [0], 0)? == 0 {
        bytes.clear();
    }
    Ok(bytes)
}

#[derive(Debug)]
pub(super) struct Look<T> {
    pub(super) shown: T,
    /// Whether a retry may show more, since the process is in the middle of an `exec`.
    pub(super) is_unknown: bool,
}

/// Checks these processes, and retries those in the middle of an `exec` for a bounded time. Blocks meanwhile. For those that
/// stay unknown, the result of the last check is returned.
pub(super) fn look_until_known<T>(mut pids: Vec<u32>, look: impl Fn(u32) -> Option<Look<T>>) -> Vec<T> {
    let (mut shown, mut pause) = (Vec::new(), PAUSE_FIRST);
    for looks_left in (0..=LOOKS_AGAIN_MAX).rev() {
        let mut unknown = Vec::new();
        for pid in pids {
            match look(pid) {
                Some(look) if look.is_unknown && looks_left > 0 => unknown.push(pid),
                Some(look) => shown.push(look.shown),
                None => {}
            }
        }
        if unknown.is_empty() {
            break;
        }
        pids = unknown;
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    /// A script that execs a shell with the same script.
    const AGAIN: &str = "exec /bin/sh -c \"$0\" \"$0\"";

    #[test]
    fn of_a_process_in_the_middle_of_an_exec_nothing_is_known_and_nothing_is_denied_prc_04() {
        let mut child = Command::new("/bin/sh");
        // The longer the environment, the longer the moment without one, and the more reads are partial.
        let before = (0..5_000).map(|number| (format!("BEFORE_{number}"), "x"));
        child.args(["-c", AGAIN, AGAIN]).env_clear().envs(before).env("MARK", "ours");
        let mut child = child.spawn().expect("a shell");
        let began = Instant::now();
        let (mut read, mut unknown) = (0, 0);
        // Repeats until it has met both.
        while read < 100 || unknown < 100 {
            match Environment::of(child.id()) {
                found @ Environment::Read(_) => {
                    assert!(found.has("MARK", "ours"), "{found:?}");
                    read += 1;
                }
                Environment::Unknown => unknown += 1,
                Environment::Closed => panic!("it runs"),
            }
            assert!(began.elapsed() < Duration::from_secs(60), "read {read} times, unknown {unknown} times");
        }
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert_eq!(Environment::of(child.id()), Environment::Closed);
    }

    #[test]
    fn an_environment_that_is_really_empty_is_known() {
        let mut child = Command::new("/bin/sleep").arg("600").env_clear().spawn().expect("it starts");
        let found = look_until_known(vec![child.id()], |pid| Environment::look(pid, Environment::clone));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert_eq!(found, [Environment::Read(Vec::new())]);
    }

    #[test]
    fn an_entry_is_found_by_its_whole_name() {
        let found = Environment::Read(b"XMARK=a\0MARK=b\0MARK=c\0".to_vec());
        assert_eq!((found.value("MARK"), found.text("ARK")), (Some(&b"b"[..]), None));
        assert!(found.has("MARK", "b") && found.has("MARK", "c") && !found.has("MARK", "a"));
        assert!(!Environment::Unknown.has("MARK", "b") && Environment::Closed.value("MARK").is_none());
    }

    #[test]
    fn what_stays_unknown_is_looked_at_for_a_bounded_time_and_the_rest_once() {
        let (looks_at_first, looks_at_second) = (Cell::new(0), Cell::new(0));
        let found = look_until_known(vec![1, 2, 3], |pid| {
            let looks = match pid {
                1 => &looks_at_first,
                2 => &looks_at_second,
                _ => return None,
            };
            looks.set(looks.get() + 1);
            Some(Look { shown: pid, is_unknown: pid == 1 })
        });
        assert_eq!(found, [2, 1]);
        assert_eq!((looks_at_first.get(), looks_at_second.get()), (LOOKS_AGAIN_MAX + 1, 1));
    }
}
