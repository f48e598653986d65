//! The output of a plugin after its handshake line, over GRPCStdio (D30, D55).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use callboard_proto::goplugin as wire;
use tonic::{Response, Status, Streaming};
use wire::grpc_stdio_client::GrpcStdioClient;
use wire::stdio_data;

use super::PluginEndpoint;
use super::connection::{CallError, Step};
use crate::rpc::{Cause, Channel, Class, Code, cause};

/// The size limit of a piece, in bytes. By convention a piece has at most 1 KiB.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// The rule that is broken by a piece that cannot be decoded.
const UNREADABLE_RULE: &str = "D55";

const CALL: &str = "StreamStdio";

/// One of the output streams of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a plugin's output, not split at line endings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The output stream.
    pub output: Output,
    /// The bytes.
    pub data: Vec<u8>,
}

/// The output stream of a plugin.
///
/// An old plugin has no such stream: then it ends at once, which is not an error (D55).
pub struct Stdio {
    phase: Phase,
    endpoint: PluginEndpoint,
    is_supported: bool,
    dropped: u64,
}

type Opening = Pin<Box<dyn Future<Output = Result<Response<Streaming<wire::StdioData>>, Status>> + Send>>;

/// A Go server sends nothing, not even headers, until the plugin prints for the first time, so opening may never return.
enum Phase {
    Opening(Opening),
    Open(Box<Streaming<wire::StdioData>>),
    Ended,
}

impl Stdio {
    pub(super) fn new(channel: Channel, endpoint: PluginEndpoint) -> Self {
        let mut client = GrpcStdioClient::new(channel).max_decoding_message_size(PIECE_BYTES_MAX);
        let opening = Box::pin(async move { client.stream_stdio(()).await });
        Self { phase: Phase::Opening(opening), endpoint, is_supported: true, dropped: 0 }
    }

    /// Waits for the next output of the plugin. `None`: there will be no more. The first call opens the stream. Cancel-safe.
    ///
    /// # Errors
    /// When the connection is lost, or the plugin returns another error than that it has no such stream. The stream has
    /// ended then.
    pub async fn next(&mut self) -> Result<Option<Printed>, CallError> {
        loop {
            match &mut self.phase {
                Phase::Ended => return Ok(None),
                Phase::Opening(opening) => match opening.as_mut().await {
                    Ok(stream) => self.phase = Phase::Open(Box::new(stream.into_inner())),
                    Err(status) => return self.not_opened(&status),
                },
                Phase::Open(stream) => match stream.message().await {
                    Ok(Some(piece)) => {
                        if let Some(printed) = self.read(piece) {
                            return Ok(Some(printed));
                        }
                    }
                    Ok(None) => self.phase = Phase::Ended,
                    Err(status) => return Err(self.ended_by(&status)),
                },
            }
        }
    }

    /// Whether the plugin has such a stream, if known: `false` once it has answered that it has none.
    #[must_use]
    pub const fn is_supported(&self) -> bool {
        self.is_supported
    }

    /// The number of pieces that were dropped since their output stream is unknown (D55).
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn read(&mut self, piece: wire::StdioData) -> Option<Printed> {
        let output = match stdio_data::Channel::try_from(piece.channel) {
            Ok(stdio_data::Channel::Stdout) => Output::Stdout,
            Ok(stdio_data::Channel::Stderr) => Output::Stderr,
            Ok(stdio_data::Channel::Invalid) | Err(_) => {
                self.dropped += 1;
                return None;
            }
        };
        Some(Printed { output, data: piece.data })
    }

    fn not_opened(&mut self, status: &Status) -> Result<Option<Printed>, CallError> {
        let error = self.ended_by(status);
        if error.class() == Class::Unimplemented || error.code() == Some(Code::Unavailable) {
            self.is_supported = false;
            return Ok(None);
        }
        Err(error)
    }

    fn ended_by(&mut self, status: &Status) -> CallError {
        self.phase = Phase::Ended;
        let cause: Cause = cause(status, UNREADABLE_RULE);
        CallError::new(Step::Call(CALL), self.endpoint.clone(), Duration::MAX, cause)
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("endpoint", &self.endpoint)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}
