//! Rewrites the `:authority` header that clients send (D115).
//!
//! Some gRPC clients send the path of the socket as `:authority`, with or without percent encoding. That is not a valid host, and the HTTP
//! library refuses such a request before our code receives it. The plugin does not use the value. So each byte that a host name cannot
//! contain is replaced on the way from the socket to the library. Lengths do not change, so the frames and the HPACK tables of both sides
//! stay in step.
//!
//! ```text
//!  preface ─► frame head ─► HEADERS, CONTINUATION: field by field, the value of `:authority` is rewritten
//!                 └───────► any other: passes
//! ```
//!
//! A Huffman-coded value passes unchanged: the clients in question do not use Huffman coding.

/// The connection preface of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;
/// The name of the field, and its index in the static table of HPACK.
const NAME: &[u8] = b":authority";
const NAME_INDEX: u64 = 1;
/// The replacement for a byte that a host name cannot contain.
const SUBSTITUTE: u8 = b'-';

/// The parser's position in the byte stream of one client.
#[derive(Debug)]
pub(crate) struct AuthorityRewriter {
    place: Place,
    field: Field,
}

#[derive(Debug)]
enum Place {
    /// This many bytes of the preface have arrived.
    Preface(usize),
    /// This many bytes of the frame head have arrived.
    Head([u8; FRAME_HEAD], usize),
    /// Before the headers of a frame: whether the padding length is still to come, the remaining bytes of priority, the
    /// remaining bytes of the frame, and how many of those are padding.
    Lead { is_padding_to_come: bool, priority: usize, rest: usize, padding: usize },
    /// The remaining bytes of the header block, and the padding behind it.
    Fields { rest: usize, padding: usize },
    /// This many bytes are skipped.
    Skip(usize),
    /// Not HTTP/2, or not understood.
    Lost,
}

/// The parser's position in a header block.
#[derive(Debug, Clone, Copy)]
enum Field {
    Begin,
    /// An unfinished number: its purpose, its value so far, and the shift of the next bits.
    Number {
        of: Number,
        value: u64,
        shift: u32,
    },
    /// Before the length of a text.
    Length {
        of: Text,
    },
    /// The remaining bytes of a text.
    Text {
        of: Text,
        rest: u64,
        is_coded: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum Number {
    /// An indexed field, or a new table size.
    Passing,
    /// The index of a field name.
    Name,
    /// The length of a text.
    Length { of: Text, is_coded: bool },
}

#[derive(Debug, Clone, Copy)]
enum Text {
    /// A name; how many of its bytes match `:authority` so far, `None` after a mismatch.
    Name(Option<usize>),
    Value {
        is_authority: bool,
    },
}

impl Default for AuthorityRewriter {
    fn default() -> Self {
        Self { place: Place::Preface(0), field: Field::Begin }
    }
}

impl AuthorityRewriter {
    pub(crate) fn mend(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let count = self.take(bytes);
            bytes = &mut bytes[count..];
        }
    }

    /// Consumes at least one of the next bytes.
    fn take(&mut self, bytes: &mut [u8]) -> usize {
        match &mut self.place {
            Place::Preface(count) => {
                let is_right = bytes[0] == PREFACE[*count];
                let count = *count + 1;
                self.place = match (is_right, count == PREFACE.len()) {
                    (false, _) => Place::Lost,
                    (true, true) => Place::Head([0; FRAME_HEAD], 0),
                    (true, false) => Place::Preface(count),
                };
                1
            }
            Place::Head(head, count) => {
                head[*count] = bytes[0];
                *count += 1;
                if *count == FRAME_HEAD {
                    self.place = behind_head(*head);
                }
                1
            }
            Place::Lead { is_padding_to_come, priority, rest, padding } => {
                match *is_padding_to_come {
                    true => *padding = usize::from(bytes[0]),
                    false => *priority -= 1,
                }
                self.place = lead(false, *priority, *rest - 1, *padding);
                1
            }
            Place::Fields { rest, padding } => {
                let count = bytes.len().min(*rest);
                let (left, padding) = (*rest - count, *padding);
                for byte in &mut bytes[..count] {
                    self.field = self.field.behind(byte);
                }
                self.place = if left > 0 { Place::Fields { rest: left, padding } } else { skip(padding) };
                count
            }
            Place::Skip(rest) => {
                let count = bytes.len().min(*rest);
                self.place = skip(*rest - count);
                count
            }
            Place::Lost => bytes.len(),
        }
    }
}

/// The position behind a frame head.
fn behind_head(head: [u8; FRAME_HEAD]) -> Place {
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let has = |flag: u8| head[4] & flag != 0;
    match head[3] {
        HEADERS => lead(has(PADDED), if has(PRIORITY) { 5 } else { 0 }, length, 0),
        CONTINUATION => lead(false, 0, length, 0),
        _ => skip(length),
    }
}

fn lead(is_padding_to_come: bool, priority: usize, rest: usize, padding: usize) -> Place {
    let least = priority + padding + usize::from(is_padding_to_come);
    match (rest < least, is_padding_to_come || priority > 0) {
        // The library refuses such a frame and closes the connection.
        (true, _) => Place::Lost,
        (false, true) => Place::Lead { is_padding_to_come, priority, rest, padding },
        (false, false) if rest == padding => skip(padding),
        (false, false) => Place::Fields { rest: rest - padding, padding },
    }
}

const fn skip(rest: usize) -> Place {
    if rest == 0 { Place::Head([0; FRAME_HEAD], 0) } else { Place::Skip(rest) }
}

impl Field {
    /// The position behind a byte. The byte is rewritten if it belongs to the value of `:authority`.
    fn behind(self, byte: &mut u8) -> Self {
        match self {
            Self::Begin => Self::begin(*byte),
            Self::Number { of, value, shift } => {
                // The library refuses numbers longer than this.
                let value =
                    value.saturating_add(u64::from(*byte & 0x7f).checked_shl(shift).unwrap_or(u64::MAX));
                match *byte & 0x80 {
                    0 => of.known(value),
                    _ => Self::Number { of, value, shift: (shift + 7).min(63) },
                }
            }
            Self::Length { of } => Self::number(Number::Length { of, is_coded: *byte & 0x80 != 0 }, *byte, 7),
            Self::Text { of, rest, is_coded } => {
                let of = of.behind(byte, is_coded);
                Self::text(of, rest - 1, is_coded)
            }
        }
    }

    fn begin(byte: u8) -> Self {
        match byte {
            // In this order: an indexed field, a literal with indexing, a new table size, a literal without indexing.
            0x80.. => Self::number(Number::Passing, byte, 7),
            0x40..0x80 => Self::number(Number::Name, byte, 6),
            0x20..0x40 => Self::number(Number::Passing, byte, 5),
            0x00..0x20 => Self::number(Number::Name, byte, 4),
        }
    }

    /// A number that starts in the low bits of a byte.
    fn number(of: Number, byte: u8, bits: u32) -> Self {
        let most = (1 << bits) - 1;
        match byte & most {
            full if full == most => Self::Number { of, value: u64::from(most), shift: 0 },
            value => of.known(value.into()),
        }
    }

    const fn text(of: Text, rest: u64, is_coded: bool) -> Self {
        match (rest, of) {
            (1.., _) => Self::Text { of, rest, is_coded },
            (0, Text::Name(count)) => {
                let is_authority = matches!(count, Some(count) if count == NAME.len());
                Self::Length { of: Text::Value { is_authority } }
            }
            (0, Text::Value { .. }) => Self::Begin,
        }
    }
}

impl Number {
    /// The position behind a number with this value.
    const fn known(self, value: u64) -> Field {
        match (self, value) {
            (Self::Passing, _) => Field::Begin,
            (Self::Name, 0) => Field::Length { of: Text::Name(Some(0)) },
            (Self::Name, index) => Field::Length { of: Text::Value { is_authority: index == NAME_INDEX } },
            (Self::Length { of, is_coded }, length) => Field::text(of, length, is_coded),
        }
    }
}

impl Text {
    fn behind(self, byte: &mut u8, is_coded: bool) -> Self {
        match self {
            Self::Name(count) => Self::Name(
                count.filter(|count| !is_coded && NAME.get(*count) == Some(byte)).map(|count| count + 1),
            ),
            Self::Value { is_authority } => {
                if is_authority && !is_coded && !may_be_in_a_host(*byte) {
                    *byte = SUBSTITUTE;
                }
                self
            }
        }
    }
}

/// Whether a host with its port may contain this byte. The percent sign is excluded: the library refuses it.
const fn may_be_in_a_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':' | b'[' | b']')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END_HEADERS: u8 = 4;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("a short frame");
        [&[0, 0, length, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    /// A literal field without indexing, not Huffman-coded.
    fn literal(name: &str, value: &str) -> Vec<u8> {
        let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    }

    fn mended(stream: &[u8], cut: usize) -> Vec<u8> {
        let (mut mender, mut stream) = (AuthorityRewriter::default(), stream.to_vec());
        stream.chunks_mut(cut.max(1)).for_each(|chunk| mender.mend(chunk));
        stream
    }

    fn opened(frames: &[Vec<u8>]) -> Vec<u8> {
        [PREFACE.to_vec(), frames.concat()].concat()
    }

    fn with(path: &str) -> Vec<u8> {
        let indexed = [&[0x41, u8::try_from(path.len()).expect("short")], path.as_bytes()].concat();
        let fields =
            [vec![0x83, 0x3f, 0xe1, 0x1f], indexed, literal("path", path), literal(":authority", path)];
        let fields = fields.concat();
        let (first, second) = fields.split_at(7);
        let padded = [&[3], &[0; 5][..], first, b"/%/"].concat();
        opened(&[
            frame(4, 0, b"/%/%/%"),
            frame(HEADERS, PADDED | PRIORITY, &padded),
            frame(CONTINUATION, END_HEADERS, second),
            frame(0, 1, b"/data/%2F"),
            frame(HEADERS, END_HEADERS, &literal(":authority", path)),
        ])
    }

    #[test]
    fn a_socket_path_becomes_a_host_wherever_it_stands_as_one_d115() {
        let (path, host) = ("%2Ftmp/plugin123", "-2Ftmp-plugin123");
        let expected = with(host);
        let expected = String::from_utf8_lossy(&expected).replacen(
            &format!("path\u{10}{host}"),
            &format!("path\u{10}{path}"),
            1,
        );
        for cut in 1..200 {
            assert_eq!(String::from_utf8_lossy(&mended(&with(path), cut)), expected, "in pieces of {cut}");
        }
    }

    #[test]
    fn what_is_a_host_stays_and_what_is_no_http_2_passes_d115() {
        for text in ["localhost:50051", "[::1]:80", "a-b.c_d"] {
            assert_eq!(mended(&with(text), 1_000), with(text));
        }
        let other = b"GET /a%20b HTTP/1.1\r\nHost: /x\r\n\r\n";
        assert_eq!(mended(other, 5), other);
        let coded = frame(HEADERS, END_HEADERS, &[0x41, 0x83, b'/', b'%', b'/']);
        assert_eq!(mended(&opened(std::slice::from_ref(&coded)), 9), opened(&[coded]));
    }

    proptest! {
        #[test]
        fn any_bytes_pass_in_any_pieces_and_mending_is_the_same_d115(bytes: Vec<u8>, cut in 1_usize..50) {
            let stream = opened(&[bytes]);
            prop_assert_eq!(mended(&stream, cut), mended(&stream, stream.len()));
        }
    }
}
