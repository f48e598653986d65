//! Reads one output file of a process to its end, and on from there as it grows.
//!
//! The process holds the file open and appends, whoever reads or does not (PRC-07): it is never held up, and never hears of
//! a host that goes or comes. What has been read is given back to the disk by punching a hole at the front of the file, all
//! but the last part, so that no line is lost between a look and a cut. The file's length goes on growing; the room that it
//! takes does not. Where the file system makes no holes, a file that has been read to its end is cut to nothing instead; a
//! line that is written in that very instant is lost there.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::herald::{Herald, Progress, Spoken};
use super::name::ProcessName;
use super::watcher::Watch;
use super::words::{LINE_BYTES_MAX, Words};
use crate::goplugin::{
    Handshake, HandshakeError, HandshakeScan, LineLevel, LineReader, Origin, PIECE_BYTES_MAX, Part,
    PluginLine, is_meant_as_handshake,
};

/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1_024;
/// How much of what was read has to have gathered before it is given back to the disk.
const SURPLUS_BYTES: u64 = 1_024 * 1_024;
/// Holes begin and end at multiples of this.
const BLOCK_BYTES: u64 = 4_096;
/// How much is read again of what was read before a restart, for the last words.
const PRELUDE_BYTES: u64 = 16 * 1_024;
/// How many lines a process may log in one burst, and how many each second after that (LOG-03).
const BURST: f64 = 2_000.0;
const LINES_PER_SECOND: f64 = 500.0;

/// What is done with the lines of a stream.
pub(super) enum Use {
    /// They are looked through for the handshake, and kept in the file.
    Scan(Option<(HandshakeScan, oneshot::Sender<Result<Handshake, HandshakeError>>)>),
    /// They are logged.
    Log { plugin: ProcessName, reader: LineReader, herald: Herald },
}

/// What the reader and its owner both know.
#[derive(Debug)]
pub(super) struct Known {
    /// Behind the last whole line that was read.
    pub(super) read: u64,
    /// How far the lines that were read have been told.
    pub(super) progress: Arc<Progress>,
    pub(super) words: Words,
    /// Lines that were not logged.
    pub(super) dropped: u64,
    /// Whether nothing will be written any more, so that the end of the file is the end.
    pub(super) is_closing: bool,
    /// Woken when something was read.
    pub(super) advanced: Rc<Notify>,
}

/// The reader of one stream.
pub(super) struct Tail {
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
    pub(super) watch: Rc<Watch>,
    pub(super) known: Rc<RefCell<Known>>,
    pub(super) purpose: Use,
    pub(super) kept: u64,
    /// How far the file has been given back.
    punched: u64,
    /// The beginning of a line whose end has not been written.
    partial: Vec<u8>,
    /// Behind the last byte that was read.
    position: u64,
    allowance: Allowance,
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
        let allowance = Allowance { lines: BURST, since: Instant::now(), unsaid: 0 };
        let (partial, punched, buffer, has_begun) = (Vec::new(), 0, None, false);
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
            buffer,
            has_begun,
        }
    }

    /// Goes back behind the last line that was taken, after a fault.
    pub(super) fn resume(&mut self) {
        self.partial.clear();
        self.position = self.known.borrow().read;
        self.buffer = None;
        if let Use::Log { reader, .. } = &mut self.purpose {
            *reader = LineReader::default();
        }
    }

    /// Reads until the owner says that nothing more will come, and what there is has been read.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.recall_words().await?;
        }
        loop {
            // Looked at before the file is: what is written up to now is read in this round.
            let is_closing = self.known.borrow().is_closing;
            let length = self.read_chunk().await?;
            if length > 0 {
                self.known.borrow().advanced.notify_waiters();
                self.give_back().await?;
            } else if is_closing {
                self.finish();
                return Ok(());
            } else if !self.was_cut()? {
                self.watch.grown().await;
            }
        }
    }

    /// Keeps the last lines before the position, so that a process which ends right after a restart still has last words.
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

    /// Whether a line of standard output is meant as a handshake: that says where the plugin listens, and is nobody's last words.
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

    fn take(&mut self, mut bytes: &[u8]) {
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

    /// Takes a whole line, or as much of one as is told in one piece.
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
        let Use::Log { plugin, reader, herald } = &mut self.purpose else { return };
        let mut known = self.known.borrow_mut();
        if !self.allowance.take() {
            known.dropped += 1;
            return;
        }
        let notice = self.allowance.take_unsaid().map(notice_of);
        for line in notice.into_iter().chain(reader.push(piece)) {
            let progress = Arc::clone(&known.progress);
            let spoken = Spoken { plugin: plugin.clone(), line, position: self.position, progress };
            if !herald.tell(spoken, begins_at) {
                known.dropped += 1;
                self.allowance.unsaid += 1;
            }
        }
    }

    /// What is left of a line that was never ended is a line.
    fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.partial.push(b'\n');
            self.take_piece();
        }
    }

    /// Whether somebody has cut the file, so that it begins anew.
    fn was_cut(&mut self) -> io::Result<bool> {
        if self.file.metadata()?.len() >= self.position {
            return Ok(false);
        }
        tracing::warn!(path = %self.path.display(), "an output file was cut; it is read from its beginning");
        self.begin_anew();
        Ok(true)
    }

    fn begin_anew(&mut self) {
        self.partial.clear();
        (self.position, self.punched) = (0, 0);
        self.known.borrow_mut().read = 0;
    }

    /// Gives back to the disk what was read, but for the last part.
    async fn give_back(&mut self) -> io::Result<()> {
        let known = self.known.borrow().read;
        let read = self.known.borrow().progress.position(known);
        let until = read.saturating_sub(self.kept) / BLOCK_BYTES * BLOCK_BYTES;
        if until < self.punched.saturating_add(SURPLUS_BYTES) {
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

/// Says among the lines of a plugin that some of them are missing.
fn notice_of(dropped: u64) -> PluginLine {
    PluginLine {
        level: LineLevel::Warn,
        message: format!("{dropped} lines of this plugin were dropped, since it logs more than can be told"),
        fields: vec![("lines_dropped".to_owned(), dropped.to_string())],
        fields_left_out: 0,
        origin: Origin::Plain,
        part: Part::Whole,
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
        // Whoever gave up waiting does not need it.
        let _ = tell.send(outcome);
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    actix_rt::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// How many lines may be logged now.
#[derive(Debug)]
struct Allowance {
    lines: f64,
    since: Instant,
    /// Lines that were dropped and not spoken of yet.
    unsaid: u64,
}

impl Allowance {
    fn take(&mut self) -> bool {
        let passed = self.since.elapsed();
        if passed > Duration::from_millis(10) {
            self.since += passed;
            self.lines = (self.lines + passed.as_secs_f64() * LINES_PER_SECOND).min(BURST);
        }
        let is_allowed = self.lines >= 1.0;
        if is_allowed {
            self.lines -= 1.0;
        } else {
            self.unsaid += 1;
        }
        is_allowed
    }

    fn take_unsaid(&mut self) -> Option<u64> {
        let unsaid = std::mem::take(&mut self.unsaid);
        (unsaid > 0).then_some(unsaid)
    }
}

const _: () = assert!(LINE_BYTES_MAX < PIECE_BYTES_MAX, "a piece holds what is kept of a line");

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::watcher::Watcher;
    use super::*;

    fn tail(path: &std::path::Path) -> Tail {
        let known = Known {
            read: 0,
            progress: Arc::default(),
            words: Words::default(),
            dropped: 0,
            is_closing: false,
            advanced: Rc::default(),
        };
        let purpose = Use::Log {
            plugin: ProcessName::new("a").unwrap(),
            reader: LineReader::default(),
            herald: Herald::start().unwrap(),
        };
        let file = Arc::new(File::options().read(true).write(true).open(path).unwrap());
        let watch = Rc::new(Watcher::start().watch(path));
        Tail::new(path.to_owned(), file, watch, Rc::new(RefCell::new(known)), purpose, 0)
    }

    #[test]
    fn a_reader_that_is_cut_off_a_hundred_times_takes_every_line_once_and_the_writer_hears_nothing_log_04() {
        actix::System::new().block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("stderr.log");
            let mut writer = File::options().append(true).create(true).open(&path).unwrap();
            let mut tail = tail(&path);
            for round in 0..100_u32 {
                writeln!(writer, "line {round}").unwrap();
                write!(writer, "half of ").unwrap();
                let cut = Duration::from_micros(u64::from(round * 37 % 900));
                assert!(tokio::time::timeout(cut, tail.run()).await.is_err(), "it has no end of its own");
                tail.resume();
                writeln!(writer, "a line").unwrap();
            }
            tail.known.borrow_mut().is_closing = true;
            tail.run().await.unwrap();
            let known = tail.known.borrow();
            assert_eq!(known.read, path.metadata().unwrap().len());
            let expected: Vec<String> =
                (0..100).flat_map(|round| [format!("line {round}"), "half of a line".to_owned()]).collect();
            assert_eq!(known.words.lines(), expected[expected.len() - 64..]);
            assert_eq!(known.dropped, 0);
        });
    }
}
