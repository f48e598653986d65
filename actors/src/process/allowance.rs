//! Limits for the output of a process, and the handling of the excess: lines that are logged, bytes that are read, and
//! unread bytes on disk (LOG-03).

use std::fs::File;
use std::time::Duration;

use rustix::fs::{SeekFrom, seek};
use tokio::time::Instant;

use crate::goplugin::{LineLevel, Origin, Part, PluginLine};
use crate::vocabulary::{self, Rate, Timestamp};

/// The rate limit of logged lines per process: a burst, and lines per minute (LOG-03).
const LINES: Rate = Rate { burst: 2_000, per_minute: 30_000 };
/// The rate limit of bytes read per stream: a burst, and bytes per second.
const BYTES_BURST: f64 = 32.0 * 1_024.0 * 1_024.0;
const BYTES_PER_SECOND: f64 = 16.0 * 1_024.0 * 1_024.0;
/// The limit of unread bytes per stream, and how many of them are kept when it is exceeded: the last are the most useful.
const BACKLOG_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
const BACKLOG_BYTES_LEFT: u64 = 1_024 * 1_024;
/// The minimal interval between two reports of skipped output, and how long a report waits for another line.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(1);

/// Where to continue in a file of this length, if its backlog exceeds the limit.
pub(super) fn end_of_backlog(position: u64, length: u64) -> Option<u64> {
    (length.saturating_sub(position) > BACKLOG_BYTES_MAX).then(|| length - BACKLOG_BYTES_LEFT)
}

/// The next offset with data at or after this one: holes that were punched unread are skipped.
pub(super) fn next_data(file: &File, position: u64) -> u64 {
    // If nothing follows, or the file system does not support it, reading shows the data.
    seek(file, SeekFrom::Data(position)).map_or(position, |found| found.max(position))
}

#[derive(Debug, Default)]
pub(super) struct Losses {
    bytes: u64,
    told_at: Option<Instant>,
}

impl Losses {
    pub(super) const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) const fn are_unsaid(&self) -> bool {
        self.bytes > 0
    }

    /// The bytes to report now; at the end of the output, all that remain.
    pub(super) fn take(&mut self, is_at_last: bool) -> Option<u64> {
        let is_early = !is_at_last && self.told_at.is_some_and(|told_at| told_at.elapsed() < TELL_EVERY);
        if self.bytes == 0 || is_early {
            return None;
        }
        self.told_at = Some(Instant::now());
        Some(std::mem::take(&mut self.bytes))
    }
}

#[derive(Debug)]
pub(super) struct Pace {
    bytes: f64,
    since: Instant,
}

impl Pace {
    pub(super) fn full() -> Self {
        Self { bytes: BYTES_BURST, since: Instant::now() }
    }

    /// Counts read bytes, and returns the pause if they exceed the limit.
    #[expect(clippy::cast_precision_loss, reason = "a chunk is small")]
    pub(super) fn take(&mut self, length: usize) -> Option<Duration> {
        let passed = self.since.elapsed();
        self.since += passed;
        self.bytes = (self.bytes + passed.as_secs_f64() * BYTES_PER_SECOND).min(BYTES_BURST) - length as f64;
        (self.bytes < 0.0).then(|| Duration::from_secs_f64(-self.bytes / BYTES_PER_SECOND))
    }
}

#[derive(Debug)]
pub(super) struct Allowance {
    lines: vocabulary::Allowance,
    began: Instant,
}

impl Allowance {
    pub(super) fn full() -> Self {
        Self { lines: vocabulary::Allowance::new(LINES, Timestamp::default()), began: Instant::now() }
    }

    pub(super) fn take(&mut self) -> bool {
        self.lines.take(Timestamp::from_epoch(self.began.elapsed()))
    }

    /// Counts lines that were dropped for another reason, or that were not reported.
    pub(super) const fn drop_some(&mut self, count: u64) {
        self.lines.leave_out(count);
    }

    /// Whether dropped lines are not reported yet.
    pub(super) const fn has_unsaid(&self) -> bool {
        self.lines.has_left_out()
    }

    /// Takes the number of dropped lines that are not reported yet.
    pub(super) fn take_unsaid(&mut self) -> Option<u64> {
        let unsaid = self.lines.take_left_out();
        (unsaid > 0).then_some(unsaid)
    }
}

pub(super) fn loss_of(bytes: u64) -> PluginLine {
    PluginLine {
        message: format!(
            "{bytes} bytes of this plugin's output were skipped unread, since it writes more than may wait on disk"
        ),
        fields: vec![("bytes_dropped".to_owned(), bytes.into())],
        ..notice_of(0)
    }
}

pub(super) fn notice_of(dropped: u64) -> PluginLine {
    PluginLine {
        level: LineLevel::Warn,
        message: format!("{dropped} lines of this plugin were dropped, since it logs too much"),
        fields: vec![("lines_dropped".to_owned(), dropped.into())],
        fields_left_out: 0,
        origin: Origin::Plain,
        part: Part::Whole,
    }
}
