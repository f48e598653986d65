//! Why a plugin's handshake failed: a variant for each refusal, and what to do about it (D20 to D28, D33).

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::vocabulary::text::quoted;

/// Why there is no handshake. Each says what was read, what was expected, and what can be done.
///
/// What a plugin wrote is in it cut and escaped, so that an error can be logged as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The line has too few fields: it is no handshake (D20, D35).
    #[error(
        "\"{line}\" is no handshake line: it has {fields} of at least 4 fields (CORE|APP|NETWORK|ADDRESS); \
         check that the executable is a plugin and prints nothing else to standard output first"
    )]
    TooFewFields {
        /// What was read.
        line: String,
        /// How many fields it has.
        fields: usize,
    },
    /// The first field is not a number (D21).
    #[error(
        "the core protocol version \"{text}\" is not a number, expected 1; check that the executable is a plugin"
    )]
    CoreNotANumber {
        /// What was read.
        text: String,
    },
    /// The plugin was built with a go-plugin of another generation (D21).
    #[error(
        "the plugin speaks core protocol version {version}, expected 1; \
         build it again with a go-plugin release of core version 1"
    )]
    CoreNotSupported {
        /// What was read.
        version: i64,
    },
    /// The second field is not a number (D22).
    #[error(
        "the protocol version \"{text}\" is not a number, expected one of {offered}; report it to the plugin's vendor"
    )]
    VersionNotANumber {
        /// What was read.
        text: String,
        /// What was offered.
        offered: Versions,
    },
    /// The plugin speaks none of the versions that were offered. It answers with its lowest then (D22, D23).
    #[error(
        "the plugin speaks protocol version {version}, expected one of {offered}; \
         install a version of the plugin that was built for this host"
    )]
    VersionNotOffered {
        /// What was read.
        version: i64,
        /// What was offered.
        offered: Versions,
    },
    /// The plugin listens in a way that is not known (D24).
    #[error(
        "the plugin listens on network \"{network}\" at \"{address}\", expected unix or tcp; report it to the plugin's vendor"
    )]
    UnknownNetwork {
        /// The kind of network that was read.
        network: String,
        /// The address that was read.
        address: String,
    },
    /// The address is none that can be dialled (D25).
    #[error(
        "the plugin listens on {network} at \"{address}\", which cannot be dialled: {problem}; \
         check the socket directory it was given, or report it to the plugin's vendor"
    )]
    BadAddress {
        /// The kind of network that was read.
        network: &'static str,
        /// The address that was read.
        address: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The plugin names a socket that lies where another plugin of this host has its sockets.
    #[error(
        "the plugin says that it listens at \"{address}\", which is a place of another plugin's; \
         it has to listen on a socket of its own, below the directory that it is given"
    )]
    ForeignPlace {
        /// The address that was read.
        address: String,
    },
    /// The plugin speaks net/rpc, which is also what a line without the fifth field means (D26).
    #[error(
        "the plugin speaks net/rpc, expected grpc; build it with its gRPC server set, or install a version of it that has one"
    )]
    InsistsOnNetRpc,
    /// The plugin speaks something unknown (D26).
    #[error("the plugin speaks protocol \"{protocol}\", expected grpc; report it to the plugin's vendor")]
    UnknownProtocol {
        /// What was read.
        protocol: String,
    },
    /// The plugin wants every connection encrypted with certificates that both sides have just made (D7, D27, D44).
    #[error(
        "the plugin insists on automatic mutual TLS: it sent a certificate of {bytes} bytes although none was offered; \
         this host speaks without TLS to plugins, switch it off in the plugin"
    )]
    InsistsOnMutualTls {
        /// The length of the certificate as written.
        bytes: usize,
    },
    /// The field of the certificate is not base64 without padding (D27).
    #[error(
        "the sixth field \"{text}\" ({bytes} bytes) is no certificate, expected base64 without padding or nothing; \
         report it to the plugin's vendor"
    )]
    BadCertificate {
        /// Its beginning.
        text: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The plugin wants the broker's connections to share one socket (D6, D28).
    #[error(
        "the plugin insists on broker multiplexing although it was not asked for; \
         this host has no broker, switch multiplexing off in the plugin"
    )]
    InsistsOnMultiplexing,
    /// The field of multiplexing is not a boolean (D28).
    #[error(
        "\"{text}\" is no boolean for broker multiplexing, expected true or false; report it to the plugin's vendor"
    )]
    MultiplexingNotABoolean {
        /// What was read.
        text: String,
    },
    /// The plugin ended, or closed its standard output, before its line came. Both are one failure: which of them is seen
    /// first is chance (D33).
    #[error(
        "the plugin ended or closed its standard output before its handshake line came; {stray}; \
         look at its exit status and its standard error, and check that it can run on this machine"
    )]
    Ended {
        /// What it printed instead.
        stray: StrayLines,
    },
    /// No line came in time (D11, D33).
    #[error(
        "the plugin printed no handshake line within {waited:?}; {stray}; see in its log what it waits for, or give it more time"
    )]
    TimedOut {
        /// How long it was given.
        waited: Duration,
        /// What it printed instead.
        stray: StrayLines,
    },
    /// The plugin printed too much before its line (PRC-06, D35).
    #[error(
        "the plugin printed too much to standard output before its handshake line, at most {lines_max} lines and {bytes_max} bytes are passed over; \
         {stray}; check that the executable is a plugin, and make it log to standard error"
    )]
    TooMuchBefore {
        /// The most lines that are passed over.
        lines_max: usize,
        /// The most bytes that are passed over.
        bytes_max: usize,
        /// What it printed.
        stray: StrayLines,
    },
}

impl HandshakeError {
    /// The refusal of a socket that lies where another plugin has its own.
    #[must_use]
    pub fn foreign_place(path: &Path) -> Self {
        Self::ForeignPlace { address: quoted(&path.display().to_string()) }
    }

    /// Whether starting the same plugin again, with nobody changing anything by hand, may succeed. A plugin that said
    /// something wrong will say it again; one that said nothing may have had its reasons.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Ended { .. } | Self::TimedOut { .. } => true,
            Self::TooFewFields { .. }
            | Self::CoreNotANumber { .. }
            | Self::CoreNotSupported { .. }
            | Self::ForeignPlace { .. }
            | Self::VersionNotANumber { .. }
            | Self::VersionNotOffered { .. }
            | Self::UnknownNetwork { .. }
            | Self::BadAddress { .. }
            | Self::InsistsOnNetRpc
            | Self::UnknownProtocol { .. }
            | Self::InsistsOnMutualTls { .. }
            | Self::BadCertificate { .. }
            | Self::InsistsOnMultiplexing
            | Self::MultiplexingNotABoolean { .. }
            | Self::TooMuchBefore { .. } => false,
        }
    }
}

/// The versions that a host offers, as they are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions(pub Vec<u32>);

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<String> = self.0.iter().map(u32::to_string).collect();
        write!(f, "[{}]", versions.join(", "))
    }
}

/// What a plugin printed to standard output instead of its handshake line (PRC-06).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StrayLines {
    lines: usize,
    bytes: usize,
    last: Vec<String>,
}

impl StrayLines {
    /// Most lines whose words are kept: the last ones, since a program says last what ended it.
    pub const KEPT_MAX: usize = 8;

    pub(super) fn add(&mut self, line: &str) {
        self.lines += 1;
        self.bytes = self.bytes.saturating_add(line.len() + 1);
        if self.last.len() == Self::KEPT_MAX {
            self.last.remove(0);
        }
        self.last.push(quoted(line));
    }

    /// How many lines there were.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines
    }

    /// How many bytes they had, ends of lines included.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The last of them, cut and escaped.
    #[must_use]
    pub fn last(&self) -> &[String] {
        &self.last
    }
}

impl fmt::Display for StrayLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            0 => return f.write_str("it printed nothing else"),
            1 => f.write_str("it printed one other line: ")?,
            lines if lines == self.last.len() => write!(f, "it printed {lines} other lines: ")?,
            lines => write!(f, "it printed {lines} other lines, the last {}: ", self.last.len())?,
        }
        for (at, line) in self.last.iter().enumerate() {
            let separator = if at == 0 { "" } else { " / " };
            write!(f, "{separator}\"{line}\"")?;
        }
        Ok(())
    }
}
