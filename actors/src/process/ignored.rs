//! Signals ignored when the program began, as by `nohup` (SIGHUP), and by shells for background jobs (SIGINT, SIGQUIT).
//!
//! Ignored signals stay ignored across `exec`, and a shell cannot set a trap for them. So a task below such a host would
//! never receive its `kill_signal`. A caught signal has its default action again after `exec`; so these signals are caught
//! instead, with an empty handler.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Signals that cannot be caught, that report a fault of the program itself, or are restored for children anyway (SIGPIPE).
const LEFT: [i32; 7] = [4, 8, 9, 11, 13, 17, 19];
/// The signals that a process may ignore, except real-time signals.
const KINDS: std::ops::Range<i32> = 1..32;

/// The signals that this process ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// The signals that are ignored now; none if `/proc` cannot be read.
    #[must_use]
    pub fn now() -> Self {
        Self(std::fs::read_to_string("/proc/self/status").ok().and_then(|status| mask(&status)).unwrap_or(0))
    }

    /// Whether this signal is ignored.
    #[must_use]
    pub fn has(self, kind: SignalKind) -> bool {
        self.0 & bit(kind.as_raw_value()) != 0
    }

    /// Catches them for the lifetime of this process with an empty handler, so that children have their default action.
    ///
    /// # Errors
    /// When the system refuses to catch one.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O.
    pub fn catch(self) -> io::Result<()> {
        for number in KINDS.filter(|number| self.0 & bit(*number) != 0 && !LEFT.contains(number)) {
            // The handler stays installed after the listener is dropped.
            drop(signal(SignalKind::from_raw(number))?);
        }
        Ok(())
    }
}

/// Does the same as [`IgnoredSignals::catch`], in a process without a runtime.
///
/// # Errors
/// When the system refuses to catch one, or a runtime for signals cannot be created.
pub fn catch_ignored_signals() -> io::Result<()> {
    let ignored = IgnoredSignals::now();
    if KINDS.filter(|number| !LEFT.contains(number)).all(|number| ignored.0 & bit(number) == 0) {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { ignored.catch() })
}

const fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

fn mask(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_status_of_a_process() {
        let ignored = IgnoredSignals(mask("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n").unwrap());
        assert!(ignored.has(SignalKind::hangup()) && ignored.has(SignalKind::pipe()));
        assert!(!ignored.has(SignalKind::interrupt()));
        assert_eq!(mask("Name:\tx\n"), None);
    }
}
