//! Moves the bytes of one stream: from its pipe to its stage, and from there to its files.
//!
//! During a turn a sink belongs to the thread of a disk, and may block there for as long as the disk hangs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use rustix::fs::{SeekFrom, ftruncate, seek};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice, tee};
use rustix::process::geteuid;

use super::Retention;
use super::files::{self, Written};
use super::pipes::{self, HeldDirectory};
use super::rotation::{self, Step};

/// How many bytes of one stream are written before another stream of the same disk has its turn.
const TURN_BYTES: u64 = 1 << 20;
/// The chunk size for moving, and the size of stages.
pub(super) const STAGE_BYTES: usize = 256 * 1_024;
const PIECE_BYTES: usize = 64 * 1_024;

/// Buffers of a disk thread to inspect bytes without consuming them: shared by all its streams.
#[derive(Debug)]
pub(super) struct Scratch {
    reader: File,
    writer: OwnedFd,
    bytes: Vec<u8>,
}

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Each small write takes a slot of the pipe.
        pipes::grow(&writer, 1 << 20);
        Ok(Self { reader: File::from(reader), writer, bytes: vec![0; PIECE_BYTES] })
    }

    /// The beginning of a pipe's content, at most `most` bytes, which stays in the pipe.
    fn look(&mut self, pipe: impl AsFd, most: u64) -> io::Result<&[u8]> {
        let most = usize::try_from(most).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let seen = match tee(pipe, &self.writer, most, SpliceFlags::NONBLOCK) {
            Err(Errno::AGAIN) => 0,
            seen => seen?,
        };
        self.reader.read_exact(&mut self.bytes[..seen])?;
        Ok(&self.bytes[..seen])
    }
}

#[derive(Debug)]
pub(super) struct Pumped {
    /// Whether the pipe has more content, or the write error.
    pub(super) outcome: io::Result<bool>,
    /// The number of missing bytes that the log now reports.
    pub(super) announced: u64,
}

/// The files of a stream, and its stage.
#[derive(Debug)]
pub(super) struct Sink {
    pipe: Arc<OwnedFd>,
    stage: OwnedFd,
    directory: HeldDirectory,
    prefix: String,
    retention: Retention,
    numbers: Option<BTreeSet<u64>>,
    written: Option<Written>,
    position: u64,
    /// Why bytes are missing: the message of the last fault.
    fault: String,
}

impl Sink {
    pub(super) fn new(
        pipe: Arc<OwnedFd>,
        stage: OwnedFd,
        directory: HeldDirectory,
        prefix: String,
        retention: Retention,
    ) -> Self {
        let (numbers, written, position) = (None, None, 0);
        let fault = "the disk did not answer".to_owned();
        Self { pipe, stage, directory, prefix, retention, numbers, written, position, fault }
    }

    pub(super) fn staged(&self) -> u64 {
        pipes::waiting(&self.stage).unwrap_or_default()
    }

    /// Writes the content of the stage, a line that reports the missing bytes, and then the content of the pipe, up to the
    /// size of a turn or until stopped. `advanced` is called after each step.
    pub(super) fn pump(
        &mut self,
        scratch: &mut Scratch,
        missing: u64,
        is_stopped: impl Fn() -> bool,
        advanced: impl Fn(),
    ) -> Pumped {
        let mut announced = 0;
        let outcome = self.turn(scratch, missing, &mut announced, is_stopped, advanced);
        if let Err(error) = &outcome {
            self.fault = error.to_string();
        }
        Pumped { outcome, announced }
    }

    fn turn(
        &mut self,
        scratch: &mut Scratch,
        missing: u64,
        announced: &mut u64,
        is_stopped: impl Fn() -> bool,
        advanced: impl Fn(),
    ) -> io::Result<bool> {
        self.refresh()?;
        self.write_staged(scratch, &advanced)?;
        if missing > 0 {
            self.announce(missing)?;
            *announced = missing;
        }
        let mut left = TURN_BYTES;
        while left > 0 && !is_stopped() {
            let most = usize::try_from(left).unwrap_or(STAGE_BYTES).min(STAGE_BYTES);
            match splice(&self.pipe, None, &self.stage, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)
            {
                Ok(0) | Err(Errno::AGAIN) => return Ok(false),
                Ok(moved) => left = left.saturating_sub(moved as u64),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            self.write_staged(scratch, &advanced)?;
        }
        Ok(true)
    }

    /// Checks whether the file is unchanged: it may have been removed, truncated or written to by others.
    fn refresh(&mut self) -> io::Result<()> {
        let Some(written) = &self.written else { return self.open() };
        let seen = written.file.metadata()?;
        if seen.nlink() == 0 {
            return self.next_file();
        }
        if seen.len() != self.position {
            self.seek_end()?;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        let directory = &self.directory.descriptor;
        let numbers = match &mut self.numbers {
            Some(numbers) => numbers,
            None => self.numbers.insert(files::numbers(directory, &self.prefix, geteuid().as_raw())?),
        };
        self.written = Some(files::latest(directory, &self.prefix, numbers)?);
        files::prune(directory, &self.prefix, self.retention.files_max, numbers);
        self.seek_end()
    }

    fn next_file(&mut self) -> io::Result<()> {
        let Some(Written { number, .. }) = &self.written else { return self.open() };
        let numbers = self.numbers.get_or_insert_default();
        let directory = &self.directory.descriptor;
        self.written = Some(files::begin(directory, &self.prefix, number + 1, numbers)?);
        files::prune(directory, &self.prefix, self.retention.files_max, numbers);
        self.seek_end()
    }

    fn seek_end(&mut self) -> io::Result<()> {
        self.position = seek(self.file()?, SeekFrom::End(0))?;
        Ok(())
    }

    fn file(&self) -> io::Result<&File> {
        let written = self.written.as_ref().ok_or_else(|| io::Error::other("no file is open"))?;
        Ok(&written.file)
    }

    fn is_line_finished(&self) -> io::Result<bool> {
        let Some(last) = self.position.checked_sub(1) else { return Ok(true) };
        let mut byte = [0];
        self.file()?.read_exact_at(&mut byte, last)?;
        Ok(byte == [b'\n'])
    }

    fn write_staged(&mut self, scratch: &mut Scratch, advanced: &impl Fn()) -> io::Result<()> {
        let mut staged = pipes::waiting(&self.stage)?;
        while staged > 0 {
            let file_bytes_max = self.retention.file_bytes_max;
            let far = rotation::far(self.position, file_bytes_max);
            let step = if far > 0 {
                Step::Write(far.min(staged))
            } else {
                let room = file_bytes_max.saturating_sub(self.position);
                let is_line_finished = self.is_line_finished()?;
                let next = if room == 0 { &[][..] } else { scratch.look(&self.stage, room)? };
                rotation::near(self.position, file_bytes_max, is_line_finished, next)
            };
            match step {
                Step::Write(count) => staged = staged.saturating_sub(self.transfer(scratch, count)?),
                Step::Turn => self.next_file()?,
            }
            advanced();
        }
        Ok(())
    }

    /// Moves up to `count` bytes from the stage to the file, at least one.
    fn transfer(&mut self, scratch: &mut Scratch, count: u64) -> io::Result<u64> {
        let most = usize::try_from(count).unwrap_or(STAGE_BYTES);
        let moved = match splice(&self.stage, None, self.file()?, None, most, SpliceFlags::MOVE) {
            Ok(moved) => moved as u64,
            Err(Errno::INVAL) => self.copy(scratch, count)?,
            Err(error) => return Err(error.into()),
        };
        if moved == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.position += moved;
        Ok(moved)
    }

    /// Does the same on file systems without `splice`: writes before it consumes, so a full disk loses nothing.
    fn copy(&mut self, scratch: &mut Scratch, count: u64) -> io::Result<u64> {
        let next = scratch.look(&self.stage, count)?;
        let written = self.file()?.write(next)?;
        let mut taken = 0;
        while taken < written {
            taken += rustix::io::read(&self.stage, &mut scratch.bytes[..written - taken])?;
        }
        Ok(written as u64)
    }

    /// Writes a separate log line that reports the missing bytes; all of it or nothing.
    fn announce(&mut self, missing: u64) -> io::Result<()> {
        let line = format!("[callboard: {missing} bytes of this output are missing: {}]\n", self.fault);
        let room = self.retention.file_bytes_max.saturating_sub(self.position);
        if self.position > 0 && room <= line.len() as u64 {
            self.next_file()?;
        }
        let line = if self.is_line_finished()? { line } else { format!("\n{line}") };
        let position = self.position;
        let mut file = self.file()?;
        if let Err(error) = file.write_all(line.as_bytes()) {
            ftruncate(file, position)?;
            self.seek_end()?;
            return Err(error);
        }
        self.position += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    struct Stage {
        directory: tempfile::TempDir,
        pipe: Arc<OwnedFd>,
        scratch: Scratch,
    }

    impl Stage {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let held = HeldDirectory::open(directory.path(), Path::new("")).unwrap();
            let (pipe, _) = held.make_pipe("pipe", None).unwrap();
            held.make_pipe("stage", None).unwrap();
            pipes::grow(&pipe, 1 << 20);
            Self { directory, pipe: Arc::new(pipe), scratch: Scratch::new().unwrap() }
        }

        fn sink(&self, files_max: u64, file_bytes_max: u64) -> Sink {
            let held = HeldDirectory::open(self.directory.path(), Path::new("")).unwrap();
            let (stage, _) = held.open_pipe("stage", None).unwrap();
            let retention = Retention { files_max, file_bytes_max };
            Sink::new(Arc::clone(&self.pipe), stage, held, "w.".to_owned(), retention)
        }

        fn write(&self, text: &str) {
            assert_eq!(rustix::io::write(&self.pipe, text.as_bytes()).unwrap(), text.len());
        }

        fn pump(&mut self, sink: &mut Sink, missing: u64) {
            let pumped = sink.pump(&mut self.scratch, missing, || false, || {});
            assert!(!pumped.outcome.unwrap(), "everything fits into one turn");
            assert_eq!(pumped.announced, missing);
        }

        fn file(&self, number: u64) -> String {
            std::fs::read_to_string(self.directory.path().join(format!("w.{number}"))).unwrap()
        }
    }

    #[test]
    fn a_sink_goes_on_where_the_one_before_was_lost_and_its_stage_comes_first_th020() {
        let mut stage = Stage::new();
        stage.write("one\ntw");
        let mut sink = stage.sink(3, 4_096);
        stage.pump(&mut sink, 0);
        // It is dropped with bytes in its stage.
        stage.write("o\nthree\n");
        splice(&stage.pipe, None, &sink.stage, None, 4, SpliceFlags::NONBLOCK).unwrap();
        // The host holds the stage as well.
        let _host = sink.stage.try_clone().unwrap();
        drop(sink);
        let mut sink = stage.sink(3, 4_096);
        assert_eq!(sink.staged(), 4);
        stage.pump(&mut sink, 0);
        assert_eq!(stage.file(0), "one\ntwo\nthree\n");
    }

    #[test]
    fn files_are_turned_over_between_lines_and_the_oldest_go_th024() {
        let mut stage = Stage::new();
        let mut sink = stage.sink(3, 1_024);
        let lines: Vec<String> = (0..400).map(|number| format!("line {number:05}\n")).collect();
        for lines in lines.chunks(7) {
            stage.write(&lines.concat());
            stage.pump(&mut sink, 0);
        }
        let numbers = sink.numbers.clone().unwrap();
        assert_eq!(numbers.len(), 3);
        let kept: String = numbers.iter().map(|number| stage.file(*number)).collect();
        assert!(lines.concat().ends_with(&kept) && kept.starts_with("line "), "{kept}");
        assert!(numbers.iter().all(|number| stage.file(*number).len() <= 1_024));
        assert!(kept.len() > 2 * 1_000, "files are nearly full");
    }

    #[test]
    fn what_is_missing_is_said_in_a_line_of_its_own_th022() {
        let mut stage = Stage::new();
        let mut sink = stage.sink(3, 4_096);
        stage.write("half a li");
        stage.pump(&mut sink, 0);
        stage.write("after\n");
        stage.pump(&mut sink, 77);
        let told = "[callboard: 77 bytes of this output are missing: the disk did not answer]";
        assert_eq!(stage.file(0), format!("half a li\n{told}\nafter\n"));
    }

    #[test]
    fn a_file_that_was_removed_or_cut_costs_nothing_that_comes_later_t064() {
        let mut stage = Stage::new();
        let mut sink = stage.sink(3, 4_096);
        stage.write("first\n");
        stage.pump(&mut sink, 0);
        std::fs::write(stage.directory.path().join("w.0"), "").unwrap();
        stage.write("second\n");
        stage.pump(&mut sink, 0);
        assert_eq!(stage.file(0), "second\n", "there is no hole in front of it");
        std::fs::remove_file(stage.directory.path().join("w.0")).unwrap();
        stage.write("third\n");
        stage.pump(&mut sink, 0);
        assert_eq!(stage.file(1), "third\n");
    }

    #[test]
    fn a_turn_has_an_end_however_much_comes_th024() {
        let mut stage = Stage::new();
        let mut sink = stage.sink(3, 64 << 20);
        let (stopped, moved) = (std::cell::Cell::new(false), std::cell::Cell::new(0));
        stage.write(&"x".repeat(1 << 20));
        let pumped = sink.pump(
            &mut stage.scratch,
            0,
            || stopped.get(),
            || {
                moved.set(moved.get() + 1);
                stopped.set(true);
            },
        );
        assert!(pumped.outcome.unwrap(), "more waits");
        assert_eq!(moved.get(), 1);
    }
}
