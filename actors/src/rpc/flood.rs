//! Limits the HTTP/2 frames of a plugin that carry no data.
//!
//! A plugin may send as many answers as requested. But PING, SETTINGS, WINDOW_UPDATE, empty DATA and unknown frames cause work and carry no
//! answer, and a peer may send them without end. So each frame except DATA with contents takes from a budget. The budget grows with time,
//! with each request, and with the bytes and the messages that we send, since a peer acknowledges those. A peer that exceeds it is cut off.
//!
//! Frames are recognised by their heads as they arrive: 9 bytes with the length of the payload and the type.

use std::fmt;
use std::time::Duration;

/// The budget of a new connection, and its limit for growth by time.
const FRAMES: u64 = 1_000;
/// The growth per second.
const FRAMES_PER_SECOND: u64 = 100;
/// The growth per request: its answer takes two frames, and servers measure the connection with each.
const FRAMES_PER_REQUEST: u64 = 8;
/// The growth per DATA frame that we send: a peer may answer with a WINDOW_UPDATE and measure the connection.
const FRAMES_PER_DATA: u64 = 4;
/// The number of sent bytes for which the budget grows by one frame.
const BYTES_PER_FRAME: u64 = 1_024;
/// The limit for growth by requests and sent data.
const FRAMES_MAX: u64 = 65_536;

const HEAD_BYTES: usize = 9;
/// The bytes that we send before the first frame (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
const DATA: u8 = 0;

/// A peer has sent more frames than its budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flood {
    last: u8,
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.last {
            DATA => "empty DATA",
            1 => "HEADERS",
            2 => "PRIORITY",
            3 => "RST_STREAM",
            4 => "SETTINGS",
            6 => "PING",
            8 => "WINDOW_UPDATE",
            9 => "CONTINUATION",
            _ => "unknown",
        };
        write!(
            f,
            "the plugin floods the connection with unsolicited HTTP/2 frames, the last one {name}: more than \
             {FRAMES_PER_SECOND} a second after the first {FRAMES}; report it to the plugin's vendor"
        )
    }
}

impl std::error::Error for Flood {}

/// Counts the frames of one connection.
#[derive(Debug)]
pub(super) struct Budget {
    /// The frames added to the first [`FRAMES`], and the frames taken.
    added: u64,
    taken: u64,
    /// The age of the connection up to which growth by time was added.
    paid: Duration,
    sent: u64,
    incoming: Heads,
    outgoing: Heads,
}

/// Finds the heads of the frames in one direction, wherever the bytes are split.
#[derive(Debug, Default)]
struct Heads {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    payload_bytes: usize,
}

impl Heads {
    /// Reads up to the end of the next head. Returns its type, and whether its frame has contents; `None` when the bytes are used up.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<(u8, bool)> {
        while !bytes.is_empty() {
            let of_payload = self.payload_bytes.min(bytes.len());
            self.payload_bytes -= of_payload;
            *bytes = &bytes[of_payload..];
            let of_head = (HEAD_BYTES - self.head_bytes).min(bytes.len());
            self.head[self.head_bytes..][..of_head].copy_from_slice(&bytes[..of_head]);
            self.head_bytes += of_head;
            *bytes = &bytes[of_head..];
            if self.head_bytes == HEAD_BYTES {
                let [high, middle, low, kind, ..] = self.head;
                self.head_bytes = 0;
                self.payload_bytes = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                return Some((kind, self.payload_bytes > 0));
            }
        }
        None
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            added: 0,
            taken: 0,
            paid: Duration::ZERO,
            sent: 0,
            incoming: Heads::default(),
            outgoing: Heads { payload_bytes: PREFACE_BYTES, ..Heads::default() },
        }
    }
}

impl Budget {
    fn left(&self) -> u64 {
        (FRAMES + self.added).saturating_sub(self.taken)
    }

    fn add(&mut self, frames: u64, up_to: u64) {
        self.added += frames.min(up_to.saturating_sub(self.left()));
    }

    /// Adds the growth for a request that is about to be sent.
    pub(super) fn asked(&mut self) {
        self.add(FRAMES_PER_REQUEST, FRAMES_MAX);
    }

    /// Adds the growth for sent bytes.
    pub(super) fn sent(&mut self, mut bytes: &[u8]) {
        self.sent += bytes.len() as u64;
        self.add(self.sent / BYTES_PER_FRAME, FRAMES_MAX);
        self.sent %= BYTES_PER_FRAME;
        while let Some(frame) = self.outgoing.next(&mut bytes) {
            if frame == (DATA, true) {
                self.add(FRAMES_PER_DATA, FRAMES_MAX);
            }
        }
    }

    /// Counts the frames in received bytes, at this age of the connection.
    pub(super) fn received(&mut self, mut bytes: &[u8], age: Duration) -> Result<(), Flood> {
        let seconds = age.saturating_sub(self.paid).as_secs();
        self.add(seconds.saturating_mul(FRAMES_PER_SECOND), FRAMES);
        self.paid += Duration::from_secs(seconds);
        while let Some((kind, has_contents)) = self.incoming.next(&mut bytes) {
            if kind == DATA && has_contents {
                continue;
            }
            if self.left() == 0 {
                return Err(Flood { last: kind });
            }
            self.taken += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("a short payload");
        [&[0, 0, length, kind, 0, 0, 0, 0, 0], payload].concat()
    }

    /// The number of these frames that are accepted at this age.
    fn taken(budget: &mut Budget, frame: &[u8], age: Duration) -> u64 {
        (0..).find(|_| budget.received(frame, age).is_err()).expect("it ends")
    }

    #[test]
    fn a_peer_has_a_thousand_frames_and_a_hundred_more_each_second() {
        let (mut budget, ping) = (Budget::default(), frame(6, &[0; 8]));
        assert_eq!(taken(&mut budget, &ping, Duration::ZERO), 1_000);
        assert_eq!(taken(&mut budget, &ping, SECOND / 2), 0);
        assert_eq!(taken(&mut budget, &ping, SECOND), 100);
        assert_eq!(taken(&mut budget, &ping, SECOND * 5 / 2), 100);
        assert_eq!(taken(&mut budget, &ping, SECOND * 3), 100, "no part of a second is lost");
        assert_eq!(taken(&mut budget, &ping, SECOND * 1_000), 1_000, "time alone saves no more than that");
    }

    #[test]
    fn answers_cost_nothing_and_requests_and_sent_bytes_pay_for_what_a_peer_says_of_them() {
        let mut budget = Budget::default();
        let (data, headers, update) = (frame(0, b"answer"), frame(1, b"h"), frame(8, &[0, 0, 0, 1]));
        for _ in 0..100_000 {
            budget.asked();
            budget.sent(&[0; 100]);
            for frame in [&update, &update, &headers, &data, &headers] {
                budget.received(frame, Duration::ZERO).expect("it was asked");
            }
        }
        let mut budget = Budget::default();
        // The preface and one frame of an unknown type.
        let unknown = [&[0_u8; PREFACE_BYTES][..], &[0, 44, 0, 0xf0, 0, 0, 0, 0, 0], &[0; 44 * 256]].concat();
        budget.sent(&unknown);
        assert_eq!(taken(&mut budget, &update, Duration::ZERO), 1_011);
    }

    #[test]
    fn each_message_of_a_stream_pays_for_what_a_peer_says_of_it_however_short_it_is() {
        let (mut budget, data) = (Budget::default(), frame(0, b"one line"));
        budget.sent(&[0; PREFACE_BYTES]);
        for _ in 0..100_000 {
            budget.sent(&data[..5]);
            budget.sent(&data[5..]);
            for frame in
                [frame(8, &[0, 0, 0, 8]), frame(8, &[0, 0, 0, 8]), frame(6, &[0; 8]), frame(6, &[1; 8])]
            {
                budget.received(&frame, Duration::ZERO).expect("it answers a message");
            }
        }
        let mut budget = Budget::default();
        budget.sent(&[0; PREFACE_BYTES]);
        let (ping, answer) = (frame(6, &[0; 8]), frame(6, &[0; 8]));
        let flood = (0..100_000).find_map(|_| {
            budget.sent(&answer);
            budget.received(&ping, Duration::ZERO).err()
        });
        assert!(flood.is_some(), "answers to PING do not pay for more of it");
    }

    #[test]
    fn frames_are_told_apart_however_they_come_in_pieces() {
        let (data, ping) = (frame(0, &frame(6, &[0; 8])), frame(6, &frame(0, b"data")));
        for size in 1..=40 {
            let mut budget = Budget::default();
            let bytes = [&*data, &ping].concat().repeat(1_001);
            let flood = bytes.chunks(size).find_map(|piece| budget.received(piece, Duration::ZERO).err());
            assert_eq!((flood, budget.taken), (Some(Flood { last: 6 }), 1_000), "pieces of {size}");
        }
    }

    #[test]
    fn an_unknown_frame_and_empty_data_are_named() {
        let told = |kind: u8| {
            let (mut budget, frame) = (Budget::default(), frame(kind, b""));
            let flood = (0..).find_map(|_| budget.received(&frame, Duration::ZERO).err());
            flood.expect("it ends").to_string()
        };
        assert!(told(0xf0).contains("the last one unknown") && told(0).contains("empty DATA"));
    }
}
