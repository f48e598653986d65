//! Kills the processes that survive a killed host: drivers, executors and tasks, which a test must not leave behind.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The maximum number of searches: a later search finds what a killed process has started meanwhile, and a process that
/// was in the middle of an `exec` and named nothing.
const ROUNDS: usize = 20;
/// The number of searches in a row that must find nothing.
const EMPTY_ROUNDS: usize = 2;
const PAUSE: Duration = Duration::from_millis(5);

/// Kills every process whose arguments or environment name this directory, or that has a file below it open.
pub(crate) fn kill_below(directory: &Path) {
    let place = directory.display().to_string();
    let mut empty = 0;
    for _ in 0..ROUNDS {
        let found = processes(|pid| {
            let is_of_it = names(pid, &place) || has_open(pid, directory);
            if is_of_it {
                kill_if_there(pid);
            }
            is_of_it
        });
        empty = if found.is_empty() { empty + 1 } else { 0 };
        if empty == EMPTY_ROUNDS {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Kills a process, unless it has ended by itself.
pub(crate) fn kill_if_there(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    let _ = kill_process(pid, Signal::KILL);
}

/// The processes whose arguments contain this text.
pub(crate) fn processes_of(text: &str) -> Vec<u64> {
    processes(|pid| read(pid, "cmdline").contains(text))
}

/// The processes, except this one, that satisfy a condition.
pub(crate) fn processes(is_it: impl Fn(u64) -> bool) -> Vec<u64> {
    let all = fs::read_dir("/proc").expect("it is mounted").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != u64::from(std::process::id()) && is_it(*pid)).collect()
}

/// Whether the arguments or the environment of a process contain a text.
pub(crate) fn names(pid: u64, text: &str) -> bool {
    ["cmdline", "environ"].iter().any(|file| read(pid, file).contains(text))
}

/// Whether a process has a file below this directory open, as a reader of a task's pipes has.
fn has_open(pid: u64, directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut opened = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    opened.any(|path| path.starts_with(directory))
}

fn read(pid: u64, file: &str) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()).into_owned()
}
