//! Writes a log to standard error. A line that cannot be written, because the disk is full or the reader is gone, is lost and counted, and
//! no actor fails because of it. A thread of its own writes the lines, so that no actor blocks on an output that accepts nothing and
//! reports nothing, such as a pipe that is not read. The log reports how many lines were lost when it accepts lines again.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::queue::Queue;

/// How long the code that logs waits for its line to be written, so that a log is up to date before the next event. Once a line takes
/// longer, no thread waits until all lines are written.
const WRITTEN_WITHIN: Duration = Duration::from_millis(50);

/// How many bytes of lines are kept while they cannot be written.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The lines that were lost, in the format of the log, with the line break.
pub(super) type Notice = fn(lines: u64, error: &io::Error) -> String;

/// Hands lines to the thread that writes them. Never fails.
#[derive(Debug, Clone)]
pub(super) struct LogWriter(Arc<Queue>);

impl LogWriter {
    /// Starts the thread, which lives as long as the process.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub(super) fn start<W: Write + Send + 'static>(out: W, notice: Notice) -> io::Result<Self> {
        let queue = Arc::new(Queue::new(KEPT_BYTES_MAX, WRITTEN_WITHIN));
        let writer = Self(Arc::clone(&queue));
        let mut place = Place { out, notice, lost: None, is_in_line: false };
        let write = move || queue.hand_out(|batch, not_taken| place.log_all(batch, not_taken));
        thread::Builder::new().name("log".to_owned()).spawn(write)?;
        Ok(writer)
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.log(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The output of the lines.
#[derive(Debug)]
struct Place<W> {
    out: W,
    notice: Notice,
    /// How many lines were lost since the last written line, and the last error.
    lost: Option<(u64, io::Error)>,
    /// Whether only a part of the last line was written.
    is_in_line: bool,
}

impl<W: Write> Place<W> {
    fn log_all(&mut self, lines: &[Vec<u8>], not_taken: u64) {
        lines.iter().for_each(|line| self.log(line));
        if not_taken > 0 {
            self.lose(not_taken, io::Error::new(io::ErrorKind::TimedOut, "none was taken for too long"));
        }
    }

    fn log(&mut self, line: &[u8]) {
        if let Err(error) = self.try_log(line) {
            self.lose(1, error);
        }
    }

    fn lose(&mut self, lines: u64, error: io::Error) {
        let before = self.lost.as_ref().map_or(0, |(lines, _)| *lines);
        self.lost = Some((before + lines, error));
    }

    fn try_log(&mut self, line: &[u8]) -> io::Result<()> {
        if let Some((lines, error)) = &self.lost {
            let line_break = if self.is_in_line { "\n" } else { "" };
            let notice = format!("{line_break}{}", (self.notice)(*lines, error));
            self.put(notice.as_bytes())?;
            self.lost = None;
        }
        self.put(line)
    }

    fn put(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    self.is_in_line = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const NOTICE: Notice = |lines, error| format!("{lines} lost: {error}\n");

    /// A disk that accepts a number of bytes, and then none until there is room again.
    #[derive(Debug)]
    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.written.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_are_not_taken_are_counted_and_told_when_there_is_room_again_p3() {
        let out = Disk { room: 9, written: Vec::new() };
        let mut place = Place { out, notice: NOTICE, lost: None, is_in_line: false };
        for line in ["first\n", "second\n", "third\n"] {
            place.log(line.as_bytes());
        }
        place.out.room = 1_000;
        place.log(b"fourth\n");
        place.log(b"fifth\n");
        let written = String::from_utf8(place.out.written).unwrap();
        assert_eq!(written, "first\nsec\n2 lost: no storage space\nfourth\nfifth\n");
    }

    /// A pipe whose reader must confirm each write.
    struct Pipe(Sender<Vec<u8>>, Receiver<()>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_logs_goes_on_while_the_log_is_not_read_and_no_line_that_was_kept_is_lost_p3() {
        let ((written, read), (reads, may_write)) = (channel(), channel());
        let mut log = LogWriter::start(Pipe(written, may_write), NOTICE).unwrap();
        let long = vec![b'x'; KEPT_BYTES_MAX / 4];
        log.write_all(b"first\n").unwrap();
        for _ in 0..5 {
            log.write_all(&long).unwrap();
        }
        // Three of them are kept beside the first line. Now the log is read.
        for _ in 0..4 {
            reads.send(()).unwrap();
        }
        assert_eq!(read.recv().unwrap(), b"first\n");
        for _ in 0..3 {
            assert_eq!(read.recv().unwrap(), long);
        }
        reads.send(()).unwrap();
        reads.send(()).unwrap();
        log.write_all(b"last\n").unwrap();
        assert_eq!(read.recv().unwrap(), b"2 lost: none was taken for too long\n");
        assert_eq!(read.recv().unwrap(), b"last\n");
    }
}
