//! Standard error as the place of a log. A line that it does not take, because its disk is full or its reader is gone, is lost and
//! counted, and no actor fails of it. The log says how many were lost when it takes lines again.

use std::io::{self, Stderr, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The lines that were lost, in the format of the log, with the line break.
pub(super) type Notice = fn(lines: u64, error: &io::Error) -> String;

/// Writes lines to standard error. Never fails.
#[derive(Debug, Clone)]
pub(super) struct LogWriter<W = Stderr>(Arc<Mutex<State<W>>>);

#[derive(Debug)]
struct State<W> {
    out: W,
    notice: Notice,
    /// How many lines were lost since the last one that was written, and why the last of them was.
    lost: Option<(u64, io::Error)>,
    /// Whether only a part of the last line was written.
    is_in_line: bool,
}

impl<W: Write> LogWriter<W> {
    pub(super) fn new(out: W, notice: Notice) -> Self {
        Self(Arc::new(Mutex::new(State { out, notice, lost: None, is_in_line: false })))
    }

    fn state(&self) -> MutexGuard<'_, State<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> State<W> {
    fn log(&mut self, line: &[u8]) -> io::Result<()> {
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

impl<W: Write> Write for LogWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        if let Err(error) = state.log(line) {
            let before = state.lost.as_ref().map_or(0, |(lines, _)| *lines);
            state.lost = Some((before + 1, error));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a, W: Write + 'a> MakeWriter<'a> for LogWriter<W> {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, and then none until there is room again.
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
        let mut log = LogWriter::new(Disk { room: 9, written: Vec::new() }, |lines, error| {
            format!("{lines} lost: {error}\n")
        });
        let say = |log: &mut LogWriter<Disk>, line: &str| log.write_all(line.as_bytes()).unwrap();
        for line in ["first\n", "second\n", "third\n"] {
            say(&mut log, line);
        }
        log.state().out.room = 1_000;
        say(&mut log, "fourth\n");
        say(&mut log, "fifth\n");
        let written = String::from_utf8(log.state().out.written.clone()).unwrap();
        assert_eq!(written, "first\nsec\n2 lost: no storage space\nfourth\nfifth\n");
    }
}
