//! The handshake line, by which a plugin reports its address.

use std::fmt;
use std::path::PathBuf;

/// The version of the handshake protocol (D21).
const CORE_VERSION: u32 = 1;

/// The handshake line, as Go plugins print it: `1|2|unix|/path|grpc|`, with an empty field for the certificate (D27).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeLine {
    /// The application version of the plugin (D22).
    pub app_version: u32,
    /// The path of its socket (D25).
    pub socket: PathBuf,
    /// Whether the host asked for multiplexing; if so, the line answers that it is unsupported (D28).
    pub answers_multiplexing: bool,
}

impl fmt::Display for HandshakeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { app_version, socket, answers_multiplexing } = self;
        write!(f, "{CORE_VERSION}|{app_version}|unix|{}|grpc|", socket.display())?;
        if *answers_multiplexing { f.write_str("|false") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_form_that_go_plugins_give_it_d20_d27_d28() {
        let line =
            HandshakeLine { app_version: 2, socket: "/tmp/p.sock".into(), answers_multiplexing: false };
        assert_eq!(line.to_string(), "1|2|unix|/tmp/p.sock|grpc|");
        let line = HandshakeLine { answers_multiplexing: true, ..line };
        assert_eq!(line.to_string(), "1|2|unix|/tmp/p.sock|grpc||false");
    }
}
