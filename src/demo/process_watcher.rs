//! Watches the end of a process that is not our child.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::DemoError;

/// Watches one process by a pidfd, so PID reuse cannot confuse it with a later one.
#[derive(Debug)]
pub(super) struct ProcessWatcher {
    /// The owner of the process.
    pub(super) name: String,
    pub(super) pid: u32,
    /// `None` if the process had ended before.
    process: Option<Arc<OwnedFd>>,
}

impl ProcessWatcher {
    pub(super) fn of(name: &str, pid: u32) -> Result<Self, DemoError> {
        let failed = |source: Errno| DemoError::Watch { name: name.to_owned(), pid, source: source.into() };
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| failed(Errno::SRCH))?;
        let process = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(process) => Some(Arc::new(process)),
            Err(Errno::SRCH) => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { name: name.to_owned(), pid, process })
    }

    /// Kills it with SIGKILL; no error if it has ended.
    pub(super) fn kill(&self) -> Result<(), DemoError> {
        let Some(process) = &self.process else { return Ok(()) };
        match pidfd_send_signal(process, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(DemoError::Signal { name: self.name.clone(), pid: self.pid, source: error.into() })
            }
        }
    }

    /// Waits for its end, with a timeout. Returns whether it has ended.
    pub(super) async fn ends_within(&self, timeout: Duration) -> bool {
        let Some(process) = self.process.clone() else { return true };
        let waited = tokio::task::spawn_blocking(move || wait(&process, timeout)).await;
        matches!(waited, Ok(Ok(true)))
    }
}

/// Blocks until the process has ended, with a timeout.
fn wait(process: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let given_up = Instant::now() + timeout;
    loop {
        let left = given_up.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_process_is_seen_and_its_life_is_too() {
        let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let watcher = ProcessWatcher::of("cat", process.id()).unwrap();
        assert!(!watcher.ends_within(Duration::from_millis(20)).await);
        watcher.kill().unwrap();
        assert!(watcher.ends_within(Duration::from_secs(10)).await, "a zombie has ended");
        process.wait().unwrap();
        assert!(watcher.ends_within(Duration::from_secs(10)).await);
        watcher.kill().unwrap();
    }

    #[tokio::test]
    async fn a_process_that_is_no_more_has_ended() {
        let mut process = Command::new("true").spawn().unwrap();
        let pid = process.id();
        process.wait().unwrap();
        assert!(ProcessWatcher::of("true", pid).unwrap().ends_within(Duration::ZERO).await);
    }
}
