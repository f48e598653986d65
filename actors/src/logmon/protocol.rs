//! What host and log writer say to each other: one JSON object a line.
//!
//! [`Request::Hello`] and [`Request::Retire`] never change, so that a host can end a log writer of another version. Nothing is lost by
//! that, since the host holds the pipes meanwhile.

use serde::{Deserialize, Serialize};

use super::spec::{LogSpec, LogStream};

/// The version of all but the two requests that never change.
pub(super) const VERSION: u32 = 1;
/// Longest line, in bytes: more is no message of ours.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 * 1_024;

/// Which pipe it is, whatever its name is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PipeId {
    /// The device of its file system.
    pub(super) device: u64,
    /// Its number there.
    pub(super) inode: u64,
}

/// The pipes of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenLogs {
    /// What is to be collected.
    pub(super) spec: LogSpec,
    /// The pipe for standard output and the one for standard error, as they were made.
    pub(super) pipes: [PipeId; 2],
}

/// What a host asks of the log writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Asks who it is.
    Hello {
        /// The version of the host.
        version: u32,
    },
    /// Collect what comes through these pipes. What is open already goes on.
    Open(OpenLogs),
    /// The task has ended: write what is in its pipes, for so long at most, and let them go.
    Close {
        /// Whose.
        key: String,
        /// For how long, in milliseconds.
        limit_ms: u64,
    },
    /// End, after what is being written.
    Retire,
}

/// What the log writer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// Who it is.
    Welcome {
        /// Its version.
        version: u32,
        /// Its process id.
        pid: u32,
        /// Which tasks it collects already.
        open: Vec<String>,
    },
    /// These pipes are read from now on.
    Opened {
        /// Whose.
        key: String,
    },
    /// These pipes cannot be read.
    Refused {
        /// Whose.
        key: String,
        /// Why.
        reason: String,
    },
    /// These pipes are let go.
    Closed {
        /// Whose.
        key: String,
        /// How many bytes were left in them, by stream.
        left: [u64; 2],
    },
    /// How a stream fares, when that has changed.
    Fares(Fares),
}

/// How one stream fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fares {
    /// Whose.
    pub(super) key: String,
    /// Which stream.
    pub(super) stream: LogStream,
    /// Why nothing can be written at present; `None` when it can.
    pub(super) fault: Option<String>,
    /// How many bytes were dropped so far, in this life of the log writer.
    pub(super) dropped: u64,
}

/// One message as a line.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(message).expect("paths were checked to be UTF-8, and nothing else can fail");
    line.push(b'\n');
    line
}

/// Takes the next whole line out of what was received. `Err` when what comes is no message of ours.
pub(super) fn next<M: for<'m> Deserialize<'m>>(received: &mut Vec<u8>) -> Result<Option<M>, String> {
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
            Said::Fares(Fares {
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
