//! Locks a data directory against a second host (P5).
//!
//! The lock is a kernel lock on an open file description, so it ends with its host. The file's text only names the holder.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use tracing::warn;

use super::open::LOCK_FILE;
use super::source::open_at;

/// A host that has locked a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its PID, if the lock file names it.
    pub pid: Option<u32>,
    /// When it locked the directory, in seconds since the Unix epoch, if the lock file says so.
    pub since: Option<u64>,
}

impl Holder {
    pub(super) fn this() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { pid: Some(std::process::id()), since: Some(since) }
    }

    /// Whether the process that the lock file names has ended. False if it names none.
    pub(super) fn is_gone(&self) -> bool {
        let Some(pid) = self.pid else { return false };
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])),
            Err(error) => error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self").exists(),
        }
    }

    fn read(file: &File) -> io::Result<Self> {
        let mut text = String::new();
        file.take(1_024).read_to_string(&mut text)?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let number = |name: &str| {
            text.split_whitespace()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
        };
        Self { pid: number("pid").and_then(|pid| u32::try_from(pid).ok()), since: number("since") }
    }

    fn text(self) -> String {
        format!("pid={} since={}\n{self}\n", self.pid.unwrap_or_default(), self.since.unwrap_or_default())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("another process")?,
        }
        self.since.map_or(Ok(()), |since| write!(f, ", since {}", Utc(since)))
    }
}

/// The host that has locked a data directory now. `None` if there is none, or if the kernel does not show it: a host on another machine
/// or in another process namespace. The lock itself is not touched, since a host that starts meanwhile would not get it.
#[must_use]
pub fn holder_of(data_dir: &Path) -> Option<Holder> {
    // Never blocks, whatever file is in its place.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(data_dir.join(LOCK_FILE), flags, Mode::empty()).ok()?);
    let inode = file.metadata().ok()?.ino();
    let holder = Holder::read(&file).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().any(|line| is_lock_of(line, holder.pid, inode)).then_some(holder)
}

/// Whether a line of the kernel's list of locks is a lock of this process on this file.
fn is_lock_of(line: &str, pid: Option<u32>, inode: u64) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let is_flock = [words.next(), words.nth(1)] == [Some("FLOCK"), Some("WRITE")];
    let is_of = |word: Option<&str>, number: Option<u64>| {
        number.is_some() && word.and_then(|word| word.parse::<u64>().ok()) == number
    };
    is_flock
        && is_of(words.next(), pid.map(u64::from))
        && is_of(words.next().and_then(|file| file.rsplit(':').next()), Some(inode))
}

#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Unlocks explicitly. Closing the file descriptor is not enough: a child process between fork and exec has a copy of
    /// every descriptor, and would keep the lock for that time.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            warn!(error = %error, "cannot unlock the data directory; its lock is released when the lock file is closed");
        }
    }
}

#[derive(Debug)]
pub(super) enum Locking {
    Held(Lock),
    HeldBy(Holder),
}

/// Locks the file of this name for `holder`; creates it if it does not exist.
pub(super) fn lock(directory: &OwnedFd, name: &OsStr, holder: Holder) -> io::Result<Locking> {
    let mut file = open_at(directory, name, OFlags::RDWR | OFlags::CREATE)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Ok(Locking::HeldBy(Holder::read(&file)?));
        }
        Err(error) => return Err(error.into()),
    }
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(holder.text().as_bytes())?;
    Ok(Locking::Held(Lock { file }))
}

/// Seconds since the Unix epoch, displayed as date and time in UTC.
struct Utc(u64);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds) = (self.0 / 86_400, self.0 % 86_400);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The date `days` after 1 January 1970. Years begin in March, so that a leap day comes last.
fn date_of(days: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    const DAYS_FROM_YEAR_ZERO: u64 = 719_468;
    let from_zero = days.saturating_add(DAYS_FROM_YEAR_ZERO);
    let (era, day_of_era) = (from_zero / DAYS_IN_400_YEARS, from_zero % DAYS_IN_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_dates() {
        let dates = [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_795_251_661, "2026-11-21T09:01:01Z"),
        ];
        for (seconds, date) in dates {
            assert_eq!(Utc(seconds).to_string(), date);
        }
    }

    #[test]
    fn a_holder_is_gone_when_its_process_is_p5() {
        let holder = |pid| Holder { pid, since: None };
        assert!(!Holder::this().is_gone() && !holder(None).is_gone());
        let mut child = std::process::Command::new("/bin/true").spawn().expect("it starts");
        let pid = child.id();
        child.wait().expect("it is our child");
        assert!(holder(Some(pid)).is_gone());
    }

    #[test]
    fn who_has_locked_a_directory_is_known_while_it_has_p5() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(holder_of(directory.path()), None, "there is no lock");
        let held = OwnedFd::from(File::open(directory.path()).expect("it is there"));
        let holder = Holder::this();
        let Ok(Locking::Held(lock)) = lock(&held, LOCK_FILE.as_ref(), holder) else { panic!("it is free") };
        assert_eq!(holder_of(directory.path()), Some(holder));
        drop(lock);
        assert_eq!(holder_of(directory.path()), None, "its text is still there");
    }

    #[test]
    fn what_lies_in_the_place_of_a_lock_is_no_holder_and_not_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = directory.path().join(LOCK_FILE);
        let made = std::process::Command::new("mkfifo").arg(&place).status().expect("it runs");
        assert!(made.success());
        assert_eq!(holder_of(directory.path()), None, "opening a pipe waits for its writer");
        std::fs::remove_file(&place).expect("it is ours");
        std::os::unix::fs::symlink("/proc/self/stat", &place).expect("it is free");
        assert_eq!(holder_of(directory.path()), None, "a link is not followed");
    }

    #[test]
    fn only_the_lock_of_that_process_on_that_file_counts() {
        let line = "7: FLOCK  ADVISORY  WRITE 41 fe:00:99 0 EOF";
        assert!(is_lock_of(line, Some(41), 99));
        assert!(
            !is_lock_of(line, Some(4), 99) && !is_lock_of(line, Some(41), 9) && !is_lock_of(line, None, 99)
        );
        let waits = "7: -> FLOCK  ADVISORY  WRITE 41 fe:00:99 0 EOF";
        let others = [
            waits,
            "7: POSIX  ADVISORY  WRITE 41 fe:00:99 0 EOF",
            "7: FLOCK  ADVISORY  READ 41 fe:00:99 0 EOF",
            "",
        ];
        assert!(others.iter().all(|line| !is_lock_of(line, Some(41), 99)));
    }

    #[test]
    fn a_holder_is_read_back_from_its_text() {
        let holder = Holder { pid: Some(4711), since: Some(1_795_251_661) };
        assert_eq!(Holder::parse(&holder.text()), holder);
        assert_eq!(Holder::parse("").to_string(), "another process");
    }
}
