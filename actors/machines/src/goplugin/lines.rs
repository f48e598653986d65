//! Splits a stream of bytes into lines of any length (LOG-02, D29, D70).

/// The length limit of a piece, in bytes (D70). A longer line is split into several.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The position of a piece in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The whole line.
    Whole,
    /// The first piece of a long line.
    First,
    /// A middle piece.
    Middle,
    /// The last piece.
    Last,
}

/// A line, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The bytes, without the line ending.
    pub bytes: Vec<u8>,
    /// The position in the line.
    pub part: Part,
}

impl Piece {
    /// Its bytes as text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Splits bytes into lines and long lines into pieces, incrementally. It buffers at most one piece.
#[derive(Debug, Clone)]
pub struct LineSplitter {
    piece_bytes_max: usize,
    held: Vec<u8>,
    is_within_line: bool,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(PIECE_BYTES_MAX)
    }
}

impl LineSplitter {
    /// Creates a splitter. Pieces have at most `piece_bytes_max` bytes; at least four, so that any character fits.
    #[must_use]
    pub fn new(piece_bytes_max: usize) -> Self {
        Self { piece_bytes_max: piece_bytes_max.max(4), held: Vec::new(), is_within_line: false }
    }

    /// Adds bytes and returns the lines and pieces that end in them.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while let Some(next) = bytes.first() {
            let room = self.piece_bytes_max - self.held.len();
            if room == 0 && *next != b'\n' {
                pieces.push(self.cut());
                continue;
            }
            let window = &bytes[..bytes.len().min(room + 1)];
            match window.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.held.extend_from_slice(&window[..end]);
                    bytes = &bytes[end + 1..];
                    pieces.push(self.end_line());
                }
                None => {
                    let taken = window.len().min(room);
                    self.held.extend_from_slice(&window[..taken]);
                    bytes = &bytes[taken..];
                }
            }
        }
        pieces
    }

    /// Returns the buffered rest, although it has no line ending: the stream has ended.
    pub fn finish(&mut self) -> Option<Piece> {
        (!self.held.is_empty() || self.is_within_line).then(|| self.end_line())
    }

    /// The number of bytes that were added and not returned yet. The position up to which a file was consumed excludes them.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    fn end_line(&mut self) -> Piece {
        let mut bytes = std::mem::take(&mut self.held);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let part = if self.is_within_line { Part::Last } else { Part::Whole };
        self.is_within_line = false;
        Piece { bytes, part }
    }

    /// Splits a piece off, at a character boundary.
    fn cut(&mut self) -> Piece {
        let rest = self.held.split_off(end_of_characters(&self.held));
        let bytes = std::mem::replace(&mut self.held, rest);
        let part = if self.is_within_line { Part::Middle } else { Part::First };
        self.is_within_line = true;
        Piece { bytes, part }
    }
}

/// The end of the last whole character of a piece; the end of the piece if it is not UTF-8. There are at least four bytes,
/// so a character begins after the first one.
fn end_of_characters(bytes: &[u8]) -> usize {
    let begin = (1..=3).map(|back| bytes.len() - back).find(|at| bytes[*at] & 0xc0 != 0x80);
    let Some(begin) = begin else { return bytes.len() };
    let wanted = match bytes[begin] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if begin + wanted > bytes.len() { begin } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(limit: usize, chunks: &[&str]) -> Vec<(String, Part)> {
        let mut splitter = LineSplitter::new(limit);
        let mut pieces: Vec<Piece> =
            chunks.iter().flat_map(|chunk| splitter.push(chunk.as_bytes())).collect();
        pieces.extend(splitter.finish());
        pieces.into_iter().map(|piece| (piece.text(), piece.part)).collect()
    }

    #[test]
    fn lines_are_found_wherever_the_stream_was_cut() {
        let whole = |text: &str| (text.to_owned(), Part::Whole);
        assert_eq!(pieces(10, &["on", "e\ntwo\r\n", "\nthr", "ee"]), ["one", "two", "", "three"].map(whole));
        assert_eq!(pieces(5, &["12345", "\n12345\n"]), ["12345", "12345"].map(whole));
    }

    #[test]
    fn a_long_line_comes_in_marked_pieces_and_the_next_is_whole_again_log_02_d29_d70() {
        let expected =
            [("12345", Part::First), ("67890", Part::Middle), ("1", Part::Last), ("x", Part::Whole)];
        assert_eq!(pieces(5, &["1234567", "8901\nx"]), expected.map(|(text, part)| (text.to_owned(), part)));
    }

    #[test]
    fn a_line_is_cut_between_characters_log_02() {
        let expected = [("ääa", Part::First), ("ä満", Part::Middle), ("x", Part::Last)];
        assert_eq!(pieces(5, &["ääaä満x\n"]), expected.map(|(text, part)| (text.to_owned(), part)));
        // In a full piece, the last character may be complete, or lack one byte or more.
        for (limit, line, first, last) in [
            (4, "aaäx", "aaä", "x"),
            (4, "aaaäx", "aaa", "äx"),
            (5, "aaaa満x", "aaaa", "満x"),
            (5, "aaa満x", "aaa", "満x"),
            (5, "aa満x", "aa満", "x"),
            (5, "aa\u{1f600}", "aa", "\u{1f600}"),
            (5, "a\u{1f600}x", "a\u{1f600}", "x"),
        ] {
            let expected =
                [(first, Part::First), (last, Part::Last)].map(|(text, part)| (text.to_owned(), part));
            assert_eq!(pieces(limit, &[line]), expected, "{line}");
        }
    }

    #[test]
    fn fifty_mebibytes_without_an_end_of_line_are_held_a_piece_at_a_time_log_02() {
        let mut splitter = LineSplitter::default();
        let chunk = vec![b'x'; 8 * 1024];
        let mut seen = 0;
        for _ in 0..50 * 128 {
            seen += splitter.push(&chunk).iter().map(|piece| piece.bytes.len()).sum::<usize>();
            assert!(splitter.held.capacity() <= 2 * PIECE_BYTES_MAX);
        }
        assert_eq!(seen + splitter.held_bytes(), 50 * 1024 * 1024);
        let rest = splitter.push(b"\nnext\n");
        assert_eq!(
            rest.last().map(|piece| (piece.text(), piece.part)),
            Some(("next".to_owned(), Part::Whole))
        );
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_doubled_and_no_piece_is_too_long_log_02(
            chunks in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'\n'), Just(0xe6_u8), any::<u8>()], 0..50), 0..20),
            limit in 4_usize..20,
        ) {
            let mut splitter = LineSplitter::new(limit);
            let mut told = Vec::new();
            let mut add = |piece: Piece| {
                assert!(piece.bytes.len() <= limit);
                told.extend(piece.bytes);
                if matches!(piece.part, Part::Whole | Part::Last) {
                    told.push(b'\n');
                }
            };
            for chunk in &chunks {
                splitter.push(chunk).into_iter().for_each(&mut add);
                assert!(splitter.held_bytes() <= limit);
            }
            splitter.finish().into_iter().for_each(&mut add);
            let mut all: Vec<u8> = chunks.concat();
            if all.last().is_some_and(|last| *last != b'\n') {
                all.push(b'\n');
            }
            let without_returns = |bytes: Vec<u8>| bytes.into_iter().filter(|b| *b != b'\r').collect::<Vec<_>>();
            prop_assert_eq!(without_returns(told), without_returns(all));
        }
    }
}
