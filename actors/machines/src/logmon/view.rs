//! The state of log collection, for people and programs.

use std::collections::BTreeMap;

use super::protocol::StreamStatus;
use super::spec::{Collection, LogStream};

/// The state of the logs of all tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogsView {
    /// Why no log writer is connected at present (TH021); `None` if one is.
    pub broken: Option<String>,
    /// The PID of the log writer, if one is connected.
    pub pid: Option<u32>,
    /// The tasks with open pipes, by key.
    pub tasks: BTreeMap<String, TaskLogs>,
}

/// The state of the logs of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLogs {
    /// Whether they are collected.
    pub state: LogState,
    /// Its standard output.
    pub stdout: StreamReport,
    /// Its standard error.
    pub stderr: StreamReport,
}

/// Whether the logs of a task are collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogState {
    /// The log writer has not confirmed yet that it reads its pipes.
    Opening,
    /// They are written to files.
    Collected,
    /// They are read and dropped.
    Discarded,
    /// Its pipes are not read at present, and why. Its output is buffered in them.
    Broken(String),
}

/// The state of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamReport {
    /// Why it cannot be written at present.
    pub fault: Option<String>,
    /// How many bytes were dropped since the pipes were opened, according to this host run and log writer (TH022).
    pub dropped: u64,
    /// How many of these an earlier life of the log writer had dropped.
    #[doc(hidden)]
    pub dropped_before: u64,
}

impl TaskLogs {
    /// In this state, with nothing dropped.
    #[must_use]
    pub fn new(state: LogState) -> Self {
        Self { state, stdout: StreamReport::default(), stderr: StreamReport::default() }
    }

    /// The state of one of its streams.
    #[must_use]
    pub const fn of(&self, stream: LogStream) -> &StreamReport {
        match stream {
            LogStream::Stdout => &self.stdout,
            LogStream::Stderr => &self.stderr,
        }
    }

    const fn of_mut(&mut self, stream: LogStream) -> &mut StreamReport {
        match stream {
            LogStream::Stdout => &mut self.stdout,
            LogStream::Stderr => &mut self.stderr,
        }
    }

    /// Why its logs are incomplete at present, in a few words; `None` if they are collected.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        match &self.state {
            LogState::Broken(reason) => Some(reason),
            LogState::Opening | LogState::Collected | LogState::Discarded => {
                LogStream::ALL.iter().find_map(|stream| self.of(*stream).fault.as_deref())
            }
        }
    }

    /// How many bytes of both streams were dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.stdout.dropped + self.stderr.dropped
    }
}

impl LogsView {
    /// The log writer is gone or cannot be started: no pipe is read.
    pub fn lose(&mut self, reason: &str) {
        (self.broken, self.pid) = (Some(reason.to_owned()), None);
        for task in self.tasks.values_mut() {
            task.state = LogState::Broken(reason.to_owned());
            for stream in LogStream::ALL {
                let report = task.of_mut(stream);
                (report.fault, report.dropped_before) = (None, report.dropped);
            }
        }
    }

    /// The log writer reads the pipes of this task.
    pub fn opened(&mut self, key: &str, collection: Collection) {
        let state = match collection {
            Collection::Keep(_) => LogState::Collected,
            Collection::Discard => LogState::Discarded,
        };
        self.tasks.entry(key.to_owned()).or_insert_with(|| TaskLogs::new(LogState::Opening)).state = state;
    }

    /// Applies a report of the log writer about a stream. Returns the state before and after.
    pub fn update(&mut self, status: &StreamStatus) -> Option<(StreamReport, StreamReport)> {
        let report = self.tasks.get_mut(&status.key)?.of_mut(status.stream);
        let before = report.clone();
        report.fault.clone_from(&status.fault);
        report.dropped = report.dropped_before + status.dropped;
        Some((before, report.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_is_counted_across_lives_of_the_log_writer_th021_th022() {
        let mut view = LogsView::default();
        let keep = Collection::Keep(super::super::spec::Retention::default());
        let status = |fault: Option<&str>, dropped| StreamStatus {
            key: "web".to_owned(),
            stream: LogStream::Stdout,
            fault: fault.map(str::to_owned),
            dropped,
        };
        assert_eq!(view.update(&status(None, 1)), None, "of a task that is not open nothing is kept");
        view.opened("web", keep);
        view.update(&status(Some("no space"), 10));
        assert_eq!((view.tasks["web"].fault(), view.tasks["web"].dropped()), (Some("no space"), 10));
        view.lose("it was killed");
        assert_eq!((view.tasks["web"].fault(), view.tasks["web"].dropped()), (Some("it was killed"), 10));
        view.opened("web", keep);
        view.update(&status(None, 5));
        assert_eq!((view.tasks["web"].fault(), view.tasks["web"].dropped()), (None, 15));
    }
}
