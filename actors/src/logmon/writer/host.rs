//! A host that is connected to the log writer.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::logmon::protocol::{self, MESSAGE_BYTES_MAX, Request, Said};

/// The size limit of queued messages for a host that does not read.
const WAITING_BYTES_MAX: usize = 4 << 20;
const PIECE_BYTES: usize = 16 * 1_024;

#[derive(Debug)]
pub(super) struct HostEnd {
    stream: UnixStream,
    received: Vec<u8>,
    waiting: Vec<u8>,
}

impl HostEnd {
    /// Accepts a connection of our own user; any other one is refused.
    pub(super) fn take(stream: UnixStream) -> io::Result<Self> {
        let peer = socket_peercred(&stream)?.uid;
        if peer != geteuid() && !peer.is_root() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_nonblocking(true)?;
        Ok(Self { stream, received: Vec::new(), waiting: Vec::new() })
    }

    pub(super) const fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Reads its requests. An error means that it has disconnected, or is not a host of ours.
    pub(super) fn requests(&mut self) -> io::Result<Vec<Request>> {
        let mut requests = Vec::new();
        let mut piece = [0; PIECE_BYTES];
        loop {
            match self.stream.read(&mut piece) {
                // Its last requests are still handled; the next read finds the disconnect.
                Ok(0) if requests.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(0) => return Ok(requests),
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(requests),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            while let Some(request) = protocol::next(&mut self.received).map_err(io::Error::other)? {
                requests.push(request);
            }
        }
    }

    /// Sends a message, now or when it reads. An error means that it has disconnected, or reads nothing.
    pub(super) fn say(&mut self, said: &Said) -> io::Result<()> {
        self.waiting.extend(protocol::line(said));
        self.send()?;
        if self.waiting.len() > WAITING_BYTES_MAX + MESSAGE_BYTES_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }

    pub(super) fn send(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
