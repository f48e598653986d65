//! Reads one output file of a process to its end, and follows it as it grows.
//!
//! The process appends to the open file independent of any reader (PRC-07): it is never blocked, and does not notice hosts
//! that end or start. Space that was read is freed by punching a hole at the front of the file, except for the last part, so
//! that no line is lost in a race of read and cut. The file's length keeps growing; its disk usage does not. On file systems
//! without holes, a file that has been read to its end is truncated instead; a line written at that moment is lost. A
//! process that writes faster than it is read loses the excess over the backlog limit: that is skipped, freed too, and
//! counted.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use super::allowance::{Allowance, Losses, Pace, TELL_EVERY, end_of_backlog, loss_of, next_data, notice_of};
use super::plugin_log::{PluginLog, Progress, Spoken};
use super::watcher::Watch;
use super::words::{LINE_BYTES_MAX, Words};
use super::{Dropped, ProcessName};
use crate::goplugin::{
    Handshake, HandshakeError, HandshakeScan, LineReader, PIECE_BYTES_MAX, is_meant_as_handshake,
};

const CHUNK_BYTES: usize = 64 * 1_024;
/// How many read bytes must accumulate before they are freed on disk.
const SURPLUS_BYTES: u64 = 1_024 * 1_024;
const BLOCK_BYTES: u64 = 4_096;
/// How many bytes from before a restart are read again, for the last words.
const PRELUDE_BYTES: u64 = 16 * 1_024;

/// How the lines of a stream are used.
pub(super) enum Use {
    /// They are scanned for the handshake, and kept in the file.
    Scan(Option<(HandshakeScan, oneshot::Sender<Result<Handshake, HandshakeError>>)>),
    /// They are logged.
    Log { plugin: ProcessName, reader: LineReader, plugin_log: PluginLog },
}

/// The state that reader and owner share.
#[derive(Debug)]
pub(super) struct Known {
    /// The offset after the last whole line that was read.
    pub(super) read: u64,
    pub(super) progress: Arc<Progress>,
    pub(super) words: Words,
    pub(super) dropped: Dropped,
    /// Whether the writers have ended, so that the end of the file is final.
    pub(super) is_closing: bool,
    /// Notified when something was read or logged.
    pub(super) advanced: Arc<Notify>,
}

pub(super) struct Tail {
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
    pub(super) watch: Rc<Watch>,
    pub(super) known: Rc<RefCell<Known>>,
    pub(super) purpose: Use,
    pub(super) kept: u64,
    /// The offset up to which the file has been freed.
    punched: u64,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    position: u64,
    allowance: Allowance,
    pace: Pace,
    losses: Losses,
    /// Whether the next bytes are the rest of a line after a skipped beginning.
    is_mid_line: bool,
    buffer: Option<Vec<u8>>,
    has_begun: bool,
}

impl Tail {
    pub(super) fn new(
        path: PathBuf,
        file: Arc<File>,
        watch: Rc<Watch>,
        known: Rc<RefCell<Known>>,
        purpose: Use,
        kept: u64,
    ) -> Self {
        let position = known.borrow().read;
        let (allowance, pace, losses) = (Allowance::full(), Pace::full(), Losses::default());
        let (partial, punched, buffer, has_begun, is_mid_line) = (Vec::new(), 0, None, false, false);
        Self {
            path,
            file,
            watch,
            known,
            purpose,
            kept,
            punched,
            partial,
            position,
            allowance,
            pace,
            losses,
            is_mid_line,
            buffer,
            has_begun,
        }
    }

    /// Goes back to the end of the last complete line, after an error.
    pub(super) fn resume(&mut self) {
        self.partial.clear();
        self.position = self.known.borrow().read;
        self.buffer = None;
        if let Use::Log { reader, .. } = &mut self.purpose {
            *reader = LineReader::default();
        }
    }

    /// Reads until the owner closes the output and everything has been read.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.recall_words().await?;
            let next = next_data(&self.file, self.position);
            self.skip_to(next);
        }
        loop {
            // Checked before the read: everything written before the close is read in this round.
            let is_closing = self.known.borrow().is_closing;
            self.skip_backlog().await?;
            let length = self.read_chunk().await?;
            self.tell_left_out(false);
            if length > 0 {
                self.known.borrow().advanced.notify_waiters();
                self.give_back().await?;
                // A faster stream exceeds what anyone can read, and would starve other work on this thread.
                if let Some(pause) = self.pace.take(length).filter(|_| !is_closing) {
                    sleep(pause).await;
                }
            } else if is_closing {
                self.finish();
                self.tell_left_out(true);
                return Ok(());
            } else if !self.was_cut()? {
                self.more().await;
            }
        }
    }

    /// Reads the last lines before the position, so that a process which ends right after a restart still has last words.
    async fn recall_words(&mut self) -> io::Result<()> {
        let from = self.position.saturating_sub(PRELUDE_BYTES);
        let length = usize::try_from(self.position - from).unwrap_or(0);
        let (file, mut bytes) = (Arc::clone(&self.file), vec![0; length]);
        if length == 0 {
            return Ok(());
        }
        let bytes = blocking(move || {
            let read = file.read_at(&mut bytes, from)?;
            bytes.truncate(read);
            Ok(bytes)
        });
        let bytes = bytes.await?;
        let mut known = self.known.borrow_mut();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != 0) {
            if !self.is_handshake(line) {
                known.words.push(line);
            }
        }
        Ok(())
    }

    /// Whether a line of standard output is a handshake: it names the endpoint, and is not part of the last words.
    fn is_handshake(&self, line: &[u8]) -> bool {
        let is_scanned = matches!(self.purpose, Use::Scan(_));
        is_scanned && is_meant_as_handshake(&String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]))
    }

    async fn read_chunk(&mut self) -> io::Result<usize> {
        let (file, position) = (Arc::clone(&self.file), self.position);
        let mut buffer = self.buffer.take().unwrap_or_else(|| vec![0; CHUNK_BYTES]);
        let (buffer, length) = blocking(move || {
            let length = file.read_at(&mut buffer, position)?;
            Ok((buffer, length))
        })
        .await?;
        self.take(&buffer[..length]);
        self.buffer = (length > 0).then_some(buffer);
        Ok(length)
    }

    /// Skips the excess over the backlog limit: the process writes faster than it is read, or no host was running.
    async fn skip_backlog(&mut self) -> io::Result<()> {
        let Some(to) = end_of_backlog(self.position, self.file.metadata()?.len()) else { return Ok(()) };
        self.skip_to(to);
        self.known.borrow().advanced.notify_waiters();
        self.punch(to.saturating_sub(self.kept) / BLOCK_BYTES * BLOCK_BYTES).await
    }

    /// Continues at this offset, and counts the bytes in between as dropped.
    fn skip_to(&mut self, to: u64) {
        let lost = to.saturating_sub(self.position);
        if lost > 0 {
            self.resume();
            (self.position, self.is_mid_line) = (to, true);
            self.lose(lost);
        }
    }

    fn lose(&mut self, bytes: u64) {
        let mut known = self.known.borrow_mut();
        known.dropped.bytes += bytes;
        known.read = self.position;
        self.losses.add(bytes);
    }

    /// Reports how much was skipped; if the stream is silent, also how many lines were dropped.
    fn tell_left_out(&mut self, is_silent: bool) {
        let Use::Log { plugin, plugin_log, .. } = &self.purpose else { return };
        let known = self.known.borrow();
        let tell = |line| {
            let (plugin, progress) = (plugin.clone(), Arc::clone(&known.progress));
            plugin_log.tell(Spoken { plugin, line, position: known.read, progress }, known.read)
        };
        if let Some(bytes) = self.losses.take(is_silent).filter(|bytes| !tell(loss_of(*bytes))) {
            self.losses.add(bytes);
        }
        let unsaid = if is_silent { self.allowance.take_unsaid() } else { None };
        if let Some(lines) = unsaid.filter(|lines| !tell(notice_of(*lines))) {
            self.allowance.drop_some(lines);
        }
    }

    /// Waits for more data. A pending report of dropped output is made after a while, also without more data.
    async fn more(&mut self) {
        let is_told = matches!(self.purpose, Use::Log { .. });
        if !is_told || !(self.allowance.has_unsaid() || self.losses.are_unsaid()) {
            self.watch.grown().await;
        } else if timeout(TELL_EVERY, self.watch.grown()).await.is_err() {
            self.tell_left_out(true);
        }
    }

    /// Skips the rest of a line after a skipped beginning.
    fn pass_over<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        self.is_mid_line = end.is_none();
        let (passed, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let passed = u64::try_from(passed.len()).unwrap_or(0);
        self.position += passed;
        self.lose(passed);
        rest
    }

    fn take(&mut self, mut bytes: &[u8]) {
        if self.is_mid_line {
            bytes = self.pass_over(bytes);
        }
        while !bytes.is_empty() {
            let room = PIECE_BYTES_MAX - self.partial.len();
            let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1).min(room);
            let (part, rest) = bytes.split_at(end);
            bytes = rest;
            self.partial.extend_from_slice(part);
            self.position += u64::try_from(part.len()).unwrap_or(0);
            if part.ends_with(b"\n") || self.partial.len() == PIECE_BYTES_MAX {
                self.take_piece();
            }
        }
    }

    /// Takes a whole line, or the maximal length that is logged in one piece.
    fn take_piece(&mut self) {
        let mut piece = std::mem::take(&mut self.partial);
        let begins_at = self.known.borrow().read;
        let line = piece.strip_suffix(b"\n").unwrap_or(&piece);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !self.is_handshake(line) {
            self.known.borrow_mut().words.push(line);
        }
        match &mut self.purpose {
            Use::Scan(scan) => look_for_handshake(scan, line),
            Use::Log { .. } => self.log(&piece, begins_at),
        }
        let held = match &self.purpose {
            Use::Scan(_) => 0,
            Use::Log { reader, .. } => u64::try_from(reader.held_bytes()).unwrap_or(0),
        };
        self.known.borrow_mut().read = self.position - held;
        piece.clear();
        self.partial = piece;
    }

    fn log(&mut self, piece: &[u8], begins_at: u64) {
        let Use::Log { plugin, reader, plugin_log } = &mut self.purpose else { return };
        let mut known = self.known.borrow_mut();
        if !self.allowance.take() {
            known.dropped.lines += 1;
            return;
        }
        let notice = self.allowance.take_unsaid().map(notice_of);
        for line in notice.into_iter().chain(reader.push(piece)) {
            let progress = Arc::clone(&known.progress);
            let spoken = Spoken { plugin: plugin.clone(), line, position: self.position, progress };
            if !plugin_log.tell(spoken, begins_at) {
                known.dropped.lines += 1;
                self.allowance.drop_some(1);
            }
        }
    }

    /// At the end, an unterminated line counts as a line.
    fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.partial.push(b'\n');
            self.take_piece();
        }
    }

    /// Whether the file was truncated by another program, so that it must be read from its beginning.
    fn was_cut(&mut self) -> io::Result<bool> {
        if self.file.metadata()?.len() >= self.position {
            return Ok(false);
        }
        tracing::warn!(path = %self.path.display(), "an output file was truncated; reading it from its beginning");
        self.begin_anew();
        Ok(true)
    }

    fn begin_anew(&mut self) {
        self.partial.clear();
        (self.position, self.punched) = (0, 0);
        self.known.borrow_mut().read = 0;
    }

    /// Frees the space that was read, except for the last part.
    async fn give_back(&mut self) -> io::Result<()> {
        let known = self.known.borrow().read;
        let read = self.known.borrow().progress.position(known);
        let until = read.saturating_sub(self.kept) / BLOCK_BYTES * BLOCK_BYTES;
        if until < self.punched.saturating_add(SURPLUS_BYTES) {
            return Ok(());
        }
        self.punch(until).await
    }

    async fn punch(&mut self, until: u64) -> io::Result<()> {
        if until <= self.punched {
            return Ok(());
        }
        let file = Arc::clone(&self.file);
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = blocking(move || Ok(fallocate(&*file, mode, 0, until))).await?;
        self.punched = until;
        match punched {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.file.metadata()?.len() == self.position => {
                ftruncate(&*self.file, 0)?;
                self.begin_anew();
                Ok(())
            }
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn look_for_handshake(
    scan: &mut Option<(HandshakeScan, oneshot::Sender<Result<Handshake, HandshakeError>>)>,
    line: &[u8],
) {
    let Some((scanning, _)) = scan else { return };
    let text = String::from_utf8_lossy(&line[..line.len().min(PIECE_BYTES_MAX)]);
    if let Some(outcome) = scanning.take(&text).transpose()
        && let Some((_, tell)) = scan.take()
    {
        // The receiver may have been dropped.
        let _ = tell.send(outcome);
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    actix_rt::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

const _: () = assert!(LINE_BYTES_MAX < PIECE_BYTES_MAX, "a piece holds what is kept of a line");

#[cfg(test)]
mod tests;
