//! Writes a log to standard output: unchanged, unless it goes to a terminal or JSON is requested.

use std::io::{self, IsTerminal, Write};

use callboard_actors::vocabulary::text::{escaped_lines, json_for_terminals};
use serde_json::json;

use super::find::Found;
use crate::output::Reader;

/// A longer line is shown in pieces.
const LINE_BYTES_MAX: usize = 64 * 1_024;

/// The output format.
#[derive(Debug)]
enum Manner {
    /// Byte by byte.
    Raw,
    /// Line by line, without control characters for a terminal.
    Harmless,
    /// Line by line, as objects with these fields.
    Json { kind: &'static str, name: String, stream: &'static str },
}

/// Writes one log.
#[derive(Debug)]
pub(super) struct Writer {
    manner: Manner,
    /// The beginning of a line whose end has not been read.
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

    /// Writes the next bytes.
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

    /// No more bytes at present: a terminal also shows the beginning of a line.
    pub(super) fn pause(&mut self) -> io::Result<Reader> {
        match self.manner {
            Manner::Harmless => self.finish(),
            Manner::Raw | Manner::Json { .. } => Ok(Reader::Listens),
        }
    }

    /// No more bytes.
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
                let object = json!({ "kind": kind, "name": name, "stream": stream, "line": line });
                format!("{}\n", json_for_terminals(&object.to_string()))
            }
            Manner::Harmless => escaped_lines(&line),
            Manner::Raw => line.into_owned(),
        }
    }
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

    fn shown(manner: Manner, line: &str) -> String {
        Writer { manner, begun: line.as_bytes().to_vec() }.shown()
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_to_it_as_escapes_log_02() {
        let line = "\u{1b}[31mred\u{202e}\tand\n";
        assert_eq!(shown(Manner::Harmless, line), "\\u{1b}[31mred\\u{202e}\tand\n");
        let json = Manner::Json { kind: "task", name: "web".to_owned(), stream: "stdout" };
        let object = shown(json, line);
        assert!(object.contains("\\u001b[31mred\\u202e\\tand"), "{object}");
        let read: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!(read["line"], line.trim_end_matches('\n'), "a reader of JSON gets what was written");
    }
}
