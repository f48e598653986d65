//! The protocol between host and log writer: one JSON object per line.
//!
//! [`Request::Hello`] and [`Request::Retire`] never change, so that a host can end a log writer of another version. Nothing
//! is lost by that, since the host holds the pipes meanwhile.

use serde::{Deserialize, Serialize};

use super::spec::{LogSpec, LogStream};

/// The version of all other messages.
pub const VERSION: u32 = 1;
pub const MESSAGE_BYTES_MAX: usize = 64 * 1_024;

/// The identity of a pipe, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipeId {
    pub device: u64,
    pub inode: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLogs {
    pub spec: LogSpec,
    /// The pipes for standard output and standard error, as they were created.
    pub pipes: [PipeId; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Asks for [`Said::Welcome`].
    Hello {
        /// The version of the host.
        version: u32,
    },
    /// Collect from these pipes. Idempotent for open ones.
    Open(OpenLogs),
    /// The task has ended: write the content of its pipes, up to a time limit, and close them.
    Close {
        /// The key of the task.
        key: String,
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// End, after the pending writes.
    Retire,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Welcome {
        version: u32,
        pid: u32,
        open: Vec<String>,
    },
    /// These pipes are read from now on.
    Opened {
        /// The key of the task.
        key: String,
    },
    /// These pipes cannot be read.
    Refused {
        /// The key of the task.
        key: String,
        /// The reason.
        reason: String,
    },
    /// These pipes are closed.
    Closed {
        key: String,
        /// The number of bytes left in them, by stream.
        left: [u64; 2],
    },
    StreamStatus(StreamStatus),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamStatus {
    pub key: String,
    pub stream: LogStream,
    /// Why it cannot be written at present; `None` if it can.
    pub fault: Option<String>,
    /// How many bytes were dropped so far, in this life of the log writer.
    pub dropped: u64,
}

pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(message).expect("paths were checked to be UTF-8, and nothing else can fail");
    line.push(b'\n');
    line
}

/// Decodes the next whole line of the received bytes. `Err` if it is not a valid message.
pub fn next<M: for<'m> Deserialize<'m>>(received: &mut Vec<u8>) -> Result<Option<M>, String> {
    let Some(end) = received.iter().position(|byte| *byte == b'\n') else {
        let is_too_long = received.len() > MESSAGE_BYTES_MAX;
        return if is_too_long { Err("a line is too long".to_owned()) } else { Ok(None) };
    };
    let line: Vec<u8> = received.drain(..=end).collect();
    serde_json::from_slice(&line).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
        let said = [
            Said::Opened { key: "web".to_owned() },
            Said::StreamStatus(StreamStatus {
                key: "web".to_owned(),
                stream: LogStream::Stderr,
                fault: Some("no space\nleft".to_owned()),
                dropped: 7,
            }),
        ];
        let bytes: Vec<u8> = said.iter().flat_map(line).collect();
        let (mut received, mut heard) = (Vec::new(), Vec::new());
        for byte in bytes {
            received.push(byte);
            heard.extend(next::<Said>(&mut received).unwrap());
        }
        assert_eq!(heard, said);
    }

    #[test]
    fn what_is_no_message_is_refused_and_does_not_fill_the_memory() {
        assert!(next::<Request>(&mut b"{\"open\": 1}\n".to_vec()).is_err());
        assert!(next::<Request>(&mut vec![b'x'; MESSAGE_BYTES_MAX + 1]).is_err());
    }
}
