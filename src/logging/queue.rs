//! Passes the lines of a log to the thread that writes them. The code that logs waits briefly for its line, and never for a place that
//! accepts nothing.
//!
//! Any thread logs, so `actors/tests/threads` model-checks this file with shuttle.

use std::mem;
use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Lines that are not written yet.
#[derive(Debug)]
pub(crate) struct Queue {
    /// How many bytes of lines are kept while they cannot be written.
    kept_bytes_max: usize,
    /// How long the code that logs waits for its line. Once a line takes longer, no thread waits until all lines are written.
    written_within: Duration,
    lines: Mutex<Lines>,
    has_lines: Condvar,
    are_written: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
    /// The number of lines accepted so far, and the number of those already processed.
    taken: u64,
    done: u64,
    /// Whether a line was not written in time, and others still wait behind it.
    is_late: bool,
    /// The number of lines rejected since the last batch was handed out.
    not_taken: u64,
}

impl Lines {
    /// Ends the wait for this line. That this line was written implies nothing about a later line, which may be late already.
    const fn waited_for(&mut self, number: u64) {
        self.is_late |= self.done < number;
    }
}

impl Queue {
    /// An empty queue.
    pub(crate) fn new(kept_bytes_max: usize, written_within: Duration) -> Self {
        Self {
            kept_bytes_max,
            written_within,
            lines: Mutex::default(),
            has_lines: Condvar::new(),
            are_written: Condvar::new(),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a line, unless there is no room for it, and waits until it is written, unless lines are late.
    pub(crate) fn log(&self, line: &[u8]) {
        let mut lines = self.lines();
        if lines.kept_bytes > 0 && lines.kept_bytes + line.len() > self.kept_bytes_max {
            lines.not_taken += 1;
            return;
        }
        lines.kept.push(line.to_vec());
        lines.kept_bytes += line.len();
        lines.taken += 1;
        let number = lines.taken;
        self.has_lines.notify_one();
        if lines.is_late {
            return;
        }
        let is_to_come = |lines: &mut Lines| lines.done < number;
        let waited = self.are_written.wait_timeout_while(lines, self.written_within, is_to_come);
        let (mut lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        lines.waited_for(number);
    }

    /// Hands out the lines for the life of the process: each batch, and the number of rejected lines after it.
    pub(crate) fn hand_out(&self, mut write: impl FnMut(&[Vec<u8>], u64)) {
        loop {
            let lines = self.has_lines.wait_while(self.lines(), |lines| lines.kept.is_empty());
            let mut lines = lines.unwrap_or_else(PoisonError::into_inner);
            let (batch, not_taken) = (mem::take(&mut lines.kept), mem::take(&mut lines.not_taken));
            drop(lines);
            write(&batch, not_taken);
            let mut lines = self.lines();
            lines.kept_bytes -= batch.iter().map(Vec::len).sum::<usize>();
            lines.done += batch.len() as u64;
            lines.is_late &= lines.done < lines.taken;
            self.are_written.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_written_does_not_hide_that_a_later_one_is_late() {
        let mut lines = Lines { taken: 2, done: 1, ..Lines::default() };
        lines.waited_for(2);
        assert!(lines.is_late);
        // The thread that logged the first line gets the lock only now.
        lines.waited_for(1);
        assert!(lines.is_late, "the next one would wait again");
    }
}
