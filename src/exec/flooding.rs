//! Floods the connection to the host on request, with HTTP/2 frames that no request calls for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tokio::net::UnixStream;

/// How long the host is served before the flood.
const BEFORE: Duration = Duration::from_secs(1);
/// How many frames are sent at once. A stream socket accepts so few bytes completely or not at all, so they split no answer of the server.
const FRAMES: usize = 16;

/// The flood. By default there is none.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ConnectionFlood {
    /// Send the host HTTP/2 frames of this kind without end, from a second after it has connected
    #[arg(long, value_name = "FRAME")]
    pub flood_connection: Option<FloodFrame>,
}

/// The frames of a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FloodFrame {
    /// PING
    Ping,
    /// WINDOW_UPDATE of the connection, by one byte
    WindowUpdate,
    /// A type that no specification knows
    Unknown,
}

impl ConnectionFlood {
    /// The function that floods a connection, if any.
    pub(super) const fn begin(self) -> Option<fn(&UnixStream)> {
        match self.flood_connection {
            Some(FloodFrame::Ping) => Some(|host| flood(host, 6, &[0; 8])),
            Some(FloodFrame::WindowUpdate) => Some(|host| flood(host, 8, &[0, 0, 0, 1])),
            Some(FloodFrame::Unknown) => Some(|host| flood(host, 0xf0, &[0; 16])),
            None => None,
        }
    }
}

/// Floods a connection beside its server, in a thread that ends with the connection.
fn flood(host: &UnixStream, kind: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).expect("it is short");
    let frame = [&[0, 0, length, kind, 0, 0, 0, 0, 0], payload].concat();
    let begun = host.as_fd().try_clone_to_owned().and_then(|host| {
        let sending = move || {
            thread::sleep(BEFORE);
            send_all(&host, &frame.repeat(FRAMES))
        };
        thread::Builder::new().name("fault".to_owned()).spawn(sending)
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "cannot flood the connection");
    }
}

/// Sends the same frames until the connection has ended.
fn send_all(host: &OwnedFd, frames: &[u8]) -> io::Result<()> {
    loop {
        match send(host, frames, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => {}
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(host, PollFlags::OUT)], None)?),
            Err(error) => return Err(error.into()),
        }
    }
}
