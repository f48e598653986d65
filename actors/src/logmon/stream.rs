//! One stream in the log writer: its turns, its delays, and when its pipe must be drained.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::LogStream;
use super::disk::{Disk, Turn, Turned};
use super::dropping::{Hindrance, RETRY_PAUSE, has_to_drop};
use super::pipes::{drain, is_full, waiting};
use super::protocol::StreamStatus;
use super::sink::{Pumped, Sink};

#[derive(Debug)]
enum Home {
    /// There is none: everything is dropped.
    Nowhere,
    /// In the loop: nothing is being written.
    Here(Box<Sink>),
    /// With the thread of its disk.
    Away { handed: Duration, is_stopped: Arc<AtomicBool> },
}

/// Why it cannot be written, and since when.
#[derive(Debug)]
struct Refusal {
    since: Duration,
    retry_at: Duration,
    reason: String,
}

#[derive(Debug)]
pub(super) struct Stream {
    number: u64,
    key: String,
    which: LogStream,
    pipe: Arc<OwnedFd>,
    home: Home,
    refusal: Option<Refusal>,
    dropped: u64,
    /// How much of that the log does not report yet.
    missing: u64,
    told: StreamStatus,
    is_closing: bool,
    /// How many bytes are left in it, once that is done.
    closed: Option<u64>,
}

impl Stream {
    pub(super) fn new(
        number: u64,
        key: &str,
        which: LogStream,
        pipe: Arc<OwnedFd>,
        sink: Option<Sink>,
    ) -> Self {
        let home = sink.map_or(Home::Nowhere, |sink| Home::Here(Box::new(sink)));
        let told = StreamStatus { key: key.to_owned(), stream: which, fault: None, dropped: 0 };
        let (refusal, dropped, missing, is_closing, closed) = (None, 0, 0, false, None);
        let key = key.to_owned();
        Self { number, key, which, pipe, home, refusal, dropped, missing, told, is_closing, closed }
    }

    pub(super) fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    /// The pipe has content. Returns whether to poll the pipe again at once.
    pub(super) fn readable(&mut self, now: Duration, disk: &Disk, nowhere: impl AsFd) -> bool {
        if matches!(self.home, Home::Nowhere) {
            // A pipe that cannot be drained now is checked again with its next byte.
            let _ = drain(&self.pipe, nowhere);
            return true;
        }
        if self.refusal.is_none() {
            self.begin_turn(now, disk);
        }
        false
    }

    pub(super) fn begin_turn(&mut self, now: Duration, disk: &Disk) {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let away = Home::Away { handed: now, is_stopped: Arc::clone(&is_stopped) };
        match std::mem::replace(&mut self.home, away) {
            Home::Here(sink) => {
                let (stream, missing) = (self.number, self.missing);
                disk.take(Turn { stream, sink, missing, is_stopped });
            }
            before => self.home = before,
        }
    }

    /// Handles the result of a turn. Returns whether to poll the pipe again.
    pub(super) fn turned(&mut self, now: Duration, turned: Turned, disk: &Disk) -> bool {
        let Turned { sink, pumped: Pumped { outcome, announced }, .. } = turned;
        self.home = Home::Here(sink);
        self.missing = self.missing.saturating_sub(announced);
        match outcome {
            Ok(is_more) => {
                self.refusal = None;
                if is_more || self.missing > 0 {
                    self.begin_turn(now, disk);
                    return false;
                }
                if self.is_closing {
                    self.closed = Some(0);
                }
                true
            }
            Err(error) => {
                let since = self.refusal.take().map_or(now, |refusal| refusal.since);
                self.refusal =
                    Some(Refusal { since, retry_at: now + RETRY_PAUSE, reason: error.to_string() });
                false
            }
        }
    }

    pub(super) const fn is_hindered(&self) -> bool {
        self.refusal.is_some() || matches!(self.home, Home::Away { .. })
    }

    /// Retries what is due, and drains a pipe if its disk has failed or hung for too long (TH022).
    pub(super) fn tick(&mut self, now: Duration, disk: &Disk, nowhere: impl AsFd) {
        let hindrance = match (&self.refusal, &self.home) {
            (Some(refusal), _) => Hindrance::Refused { since: refusal.since },
            (None, Home::Away { handed, .. }) => {
                Hindrance::Waiting { handed: *handed, progress: disk.progress() }
            }
            (None, Home::Nowhere | Home::Here(_)) => Hindrance::None,
        };
        if has_to_drop(now, hindrance, true) && is_full(&self.pipe) {
            if let Home::Away { is_stopped, .. } = &self.home {
                is_stopped.store(true, Ordering::Release);
            }
            let drained = drain(&self.pipe, nowhere).unwrap_or_default();
            self.dropped += drained;
            self.missing += drained;
        }
        if self.refusal.as_ref().is_some_and(|refusal| refusal.retry_at <= now) {
            self.begin_turn(now, disk);
        }
    }

    pub(super) fn close(&mut self, now: Duration, disk: &Disk, nowhere: impl AsFd) {
        self.is_closing = true;
        if matches!(self.home, Home::Nowhere) {
            let _ = drain(&self.pipe, nowhere);
            self.closed = Some(0);
        } else {
            self.begin_turn(now, disk);
        }
    }

    /// How many bytes were left in the pipe, once it may be closed: when it is empty, or when the limit is over.
    pub(super) fn closed(&self, is_out_of_time: bool) -> Option<u64> {
        if self.closed.is_some() || !is_out_of_time {
            return self.closed;
        }
        // A sink that is with the disk must not be touched: it may hang.
        let staged = if let Home::Here(sink) = &self.home { sink.staged() } else { 0 };
        Some(waiting(&self.pipe).unwrap_or_default() + staged)
    }

    /// The state, if it has changed. A hanging disk is reported once it has caused a loss.
    pub(super) fn news(&mut self) -> Option<StreamStatus> {
        let fault = match (&self.refusal, &self.home) {
            (Some(refusal), _) => Some(refusal.reason.clone()),
            (None, Home::Away { is_stopped, .. }) if is_stopped.load(Ordering::Acquire) => {
                Some("the disk does not answer".to_owned())
            }
            (None, _) => None,
        };
        let now = StreamStatus { key: self.key.clone(), stream: self.which, fault, dropped: self.dropped };
        if now == self.told {
            return None;
        }
        self.told = now.clone();
        Some(now)
    }

    /// The state that was reported last.
    pub(super) const fn told(&self) -> &StreamStatus {
        &self.told
    }
}
