//! Reading the environments of processes, by which it is told whose they are.
//!
//! In the middle of an `exec` a process has no environment for a moment, and reading it gives nothing, as if it was empty. That
//! says neither that the process is ours nor that it is not, so such a process is looked at again. One whose environment really is
//! empty is told from it by [`ProcessStatus::environment_bytes`], and is not waited for.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::system::ProcessStatus;

/// Longest environment that is read of a process. The system allows more, and our marks would come late in it; a process
/// whose marks are not found is not ours.
const BYTES_MAX: u64 = 4 * 1_024 * 1_024;
/// An environment of this length is read at once.
const USUAL_BYTES: usize = 16 * 1_024;
/// How often to look again at a process that is in the middle of an `exec`.
const LOOKS_AGAIN_MAX: u32 = 16;
/// The first pause before such a look, and the longest; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_LONGEST: Duration = Duration::from_millis(16);

/// What the environment of a process says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Environment {
    /// These entries, each followed by a zero byte.
    Read(Vec<u8>),
    /// Nothing yet: the process is in the middle of an `exec`.
    Unknown,
    /// Nothing: there is no such process, or none any more, or this process may not look into it.
    Closed,
}

impl Environment {
    /// Looks once at the environment of a process.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let Ok(bytes) = read_environment(Path::new(&format!("/proc/{pid}/environ"))) else {
            return Self::Closed;
        };
        if !bytes.is_empty() {
            return Self::Read(bytes);
        }
        match i32::try_from(pid).ok().and_then(ProcessStatus::of) {
            Some(status) if status.is_zombie || status.is_of_kernel => Self::Closed,
            // A process that executes one program after another never looks like this.
            Some(status) if status.environment_bytes == Some(0) => Self::Read(bytes),
            Some(_) => Self::Unknown,
            None => Self::Closed,
        }
    }

    /// Looks once at the environment of a process, and keeps of it what is asked for.
    pub(super) fn look<T>(pid: u32, show: impl FnOnce(&Self) -> T) -> Option<Look<T>> {
        let found = Self::of(pid);
        Some(Look { shown: show(&found), is_unknown: found.is_unknown() })
    }

    /// Whether a later look may say more.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// What it holds under this name. `None` also where it cannot be read.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let Self::Read(bytes) = self else { return None };
        let mut entries = bytes.split(|byte| *byte == 0);
        entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// The same as text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.value(name)?).ok()
    }

    /// Whether it has this entry, also beside others of the same name.
    #[must_use]
    pub fn has(&self, name: &str, value: &str) -> bool {
        let Self::Read(bytes) = self else { return false };
        let mut entries = bytes.split(|byte| *byte == 0);
        entries.any(|entry| entry.strip_prefix(name.as_bytes()) == Some(format!("={value}").as_bytes()))
    }
}

/// Reads such a file as `/proc/<pid>/environ`: all of it or nothing. Nothing is read of a process in the middle of an `exec`, nor of one
/// that executes another program before all is read.
///
/// # Errors
/// When the process is gone, or may not be looked into.
pub fn read_environment(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    (&file).take(BYTES_MAX).read_to_end(&mut bytes)?;
    // The file stands for the memory that the process had when it was opened. Once the process has left that, the end comes early, and
    // the beginning is not to be read any more either.
    if file.read_at(&mut [0], 0)? == 0 {
        bytes.clear();
    }
    Ok(bytes)
}

/// What one look at a process has shown.
#[derive(Debug)]
pub(super) struct Look<T> {
    pub(super) shown: T,
    /// Whether a later look may show more, since the process is in the middle of an `exec`.
    pub(super) is_unknown: bool,
}

/// Looks at each of these processes, and again at those that are in the middle of an `exec`, for a bounded time, in which this
/// blocks. What is unknown even then is given as the last look has shown it.
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

    /// A script that executes a shell with the same script.
    const AGAIN: &str = "exec /bin/sh -c \"$0\" \"$0\"";

    #[test]
    fn of_a_process_in_the_middle_of_an_exec_nothing_is_known_and_nothing_is_denied_prc_04() {
        let mut child = Command::new("/bin/sh");
        // The longer its environment, the longer the moment in which it has none, and the more it is read in pieces.
        let before = (0..5_000).map(|number| (format!("BEFORE_{number}"), "x"));
        child.args(["-c", AGAIN, AGAIN]).env_clear().envs(before).env("MARK", "ours");
        let mut child = child.spawn().expect("a shell");
        let began = Instant::now();
        let (mut read, mut unknown) = (0, 0);
        // As many looks as it takes to meet both.
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
