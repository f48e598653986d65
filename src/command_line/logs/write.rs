//! Writes a log to standard output: as it is, unless a person looks at it or a program wants JSON.

use std::io::{self, IsTerminal, Write};

use serde_json::json;

use super::find::Found;
use crate::output::Reader;

/// A longer line is shown in pieces.
const LINE_BYTES_MAX: usize = 64 * 1_024;

/// How it is written.
#[derive(Debug)]
enum Manner {
    /// Byte by byte.
    Raw,
    /// Line by line, without what a terminal would obey.
    Harmless,
    /// Line by line, as objects with these fields.
    Json { kind: &'static str, name: String, stream: &'static str },
}

/// Writes one log.
#[derive(Debug)]
pub(super) struct Writer {
    manner: Manner,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Writer {
    pub(super) fn new(is_json: bool, log: &Found) -> Self {
        let manner = match (is_json, io::stdout().is_terminal()) {
            (true, _) => Manner::Json { kind: log.kind, name: log.name.clone(), stream: log.stream },
            (false, true) => Manner::Harmless,
            (false, false) => Manner::Raw,
        };
        Self { manner, begun: Vec::new() }
    }

    /// Writes what comes next.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<Reader> {
        if matches!(self.manner, Manner::Raw) {
            return print(bytes);
        }
        let mut text = String::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.begun.len() >= LINE_BYTES_MAX {
                text += &self.shown();
            }
        }
        print(text.as_bytes())
    }

    /// Nothing more comes at present: a person sees the beginning of a line too.
    pub(super) fn pause(&mut self) -> io::Result<Reader> {
        match self.manner {
            Manner::Harmless => self.finish(),
            Manner::Raw | Manner::Json { .. } => Ok(Reader::Listens),
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) -> io::Result<Reader> {
        if self.begun.is_empty() {
            return Ok(Reader::Listens);
        }
        let text = self.shown();
        print(text.as_bytes())
    }

    fn shown(&mut self) -> String {
        let line = std::mem::take(&mut self.begun);
        let line = String::from_utf8_lossy(&line);
        match &self.manner {
            Manner::Json { kind, name, stream } => {
                let line = line.strip_suffix('\n').unwrap_or(&line);
                format!("{}\n", json!({ "kind": kind, "name": name, "stream": stream, "line": line }))
            }
            Manner::Raw | Manner::Harmless => harmless(&line),
        }
    }
}

/// A text without what a terminal would obey, but for tabs and the ends of lines.
fn harmless(text: &str) -> String {
    let keep = |c: char| if c.is_control() && c != '\n' && c != '\t' { '·' } else { c };
    text.chars().map(keep).collect()
}

fn print(bytes: &[u8]) -> io::Result<Reader> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Listens),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::HasLeft),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_not_shown_to_it() {
        assert_eq!(harmless("\u{1b}[31mred\r\tand\n"), "·[31mred·\tand\n");
    }
}
