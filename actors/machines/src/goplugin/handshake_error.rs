//! Why a plugin's handshake failed: one variant per refusal, with the remedy (D20 to D28, D33).

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::vocabulary::text::quoted;

/// Why a handshake failed. Each message names what was read, what was expected, and the remedy.
///
/// Text from the plugin is truncated and escaped, so that an error can be logged as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HandshakeError {
    /// The line has too few fields: it is not a handshake line (D20, D35).
    #[error(
        "\"{line}\" is no handshake line: it has {fields} of at least 4 fields (CORE|APP|NETWORK|ADDRESS); \
         check that the executable is a plugin and prints nothing else to standard output first"
    )]
    TooFewFields {
        /// The line.
        line: String,
        /// The number of its fields.
        fields: usize,
    },
    /// The first field is not a number (D21).
    #[error(
        "the core protocol version \"{text}\" is not a number, expected 1; check that the executable is a plugin"
    )]
    CoreNotANumber {
        /// The field.
        text: String,
    },
    /// The plugin was built with an incompatible version of go-plugin (D21).
    #[error(
        "the plugin speaks core protocol version {version}, expected 1; \
         build it again with a go-plugin release of core version 1"
    )]
    CoreNotSupported {
        /// The version.
        version: i64,
    },
    /// The second field is not a number (D22).
    #[error(
        "the protocol version \"{text}\" is not a number, expected one of {offered}; report it to the plugin's vendor"
    )]
    VersionNotANumber {
        /// The field.
        text: String,
        /// The offered versions.
        offered: Versions,
    },
    /// The plugin supports none of the offered versions. It then answers with its lowest version (D22, D23).
    #[error(
        "the plugin speaks protocol version {version}, expected one of {offered}; \
         install a version of the plugin that was built for this host"
    )]
    VersionNotOffered {
        /// The version.
        version: i64,
        /// The offered versions.
        offered: Versions,
    },
    /// The plugin listens on an unknown network type (D24).
    #[error(
        "the plugin listens on network \"{network}\" at \"{address}\", expected unix or tcp; report it to the plugin's vendor"
    )]
    UnknownNetwork {
        /// The network type.
        network: String,
        /// The address.
        address: String,
    },
    /// The address is invalid (D25).
    #[error(
        "the plugin listens on {network} at \"{address}\", which cannot be dialled: {problem}; \
         check the socket directory it was given, or report it to the plugin's vendor"
    )]
    BadAddress {
        /// The network type.
        network: &'static str,
        /// The address.
        address: String,
        /// The problem.
        problem: String,
    },
    /// The plugin names a socket in the directory of another plugin of this host.
    #[error(
        "the plugin announced the address \"{address}\", which belongs to another plugin; it has to listen on a socket of its \
        own, below the directory that it is given"
    )]
    ForeignPlace {
        /// The address.
        address: String,
    },
    /// The plugin uses net/rpc, which is also the meaning of a line without the fifth field (D26).
    #[error(
        "the plugin speaks net/rpc, expected grpc; build it with its gRPC server set, or install a version of it that has one"
    )]
    InsistsOnNetRpc,
    /// The plugin uses an unknown protocol (D26).
    #[error("the plugin speaks protocol \"{protocol}\", expected grpc; report it to the plugin's vendor")]
    UnknownProtocol {
        /// The protocol.
        protocol: String,
    },
    /// The plugin requires automatic mutual TLS (D7, D27, D44).
    #[error(
        "the plugin insists on automatic mutual TLS: it sent a certificate of {bytes} bytes although none was offered; \
         this host speaks without TLS to plugins, switch it off in the plugin"
    )]
    InsistsOnMutualTls {
        /// The length of the certificate as written.
        bytes: usize,
    },
    /// The certificate field is not base64 without padding (D27).
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
    /// The plugin requires broker multiplexing (D6, D28).
    #[error(
        "the plugin insists on broker multiplexing although it was not asked for; \
         this host has no broker, switch multiplexing off in the plugin"
    )]
    InsistsOnMultiplexing,
    /// The multiplexing field is not a boolean (D28).
    #[error(
        "\"{text}\" is no boolean for broker multiplexing, expected true or false; report it to the plugin's vendor"
    )]
    MultiplexingNotABoolean {
        /// The field.
        text: String,
    },
    /// The plugin ended, or closed its standard output, before its handshake line. Both are one failure: which of them is
    /// observed first is a race (D33).
    #[error(
        "the plugin ended or closed its standard output before its handshake line came; {stray}; \
         look at its exit status and its standard error, and check that it can run on this machine"
    )]
    Ended {
        /// The lines that it printed instead.
        stray: StrayLines,
    },
    /// The handshake timeout expired (D11, D33).
    #[error(
        "the plugin printed no handshake line within {waited:?}; {stray}; see in its log what it waits for, or give it more time"
    )]
    TimedOut {
        /// The timeout.
        waited: Duration,
        /// The lines that it printed instead.
        stray: StrayLines,
    },
    /// The plugin printed too much before its handshake line (PRC-06, D35).
    #[error(
        "the plugin printed too much to standard output before its handshake line, at most {lines_max} lines and {bytes_max} \
        bytes are skipped; \
         {stray}; check that the executable is a plugin, and make it log to standard error"
    )]
    TooMuchBefore {
        /// The limit of lines.
        lines_max: usize,
        /// The limit of bytes.
        bytes_max: usize,
        /// The lines that it printed.
        stray: StrayLines,
    },
}

impl HandshakeError {
    /// The refusal of a socket in the directory of another plugin.
    #[must_use]
    pub fn foreign_place(path: &Path) -> Self {
        Self::ForeignPlace { address: quoted(&path.display().to_string()) }
    }

    /// Whether a retry may succeed without a repair. A wrong handshake will be repeated; a missing one may be temporary.
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

/// The versions that a host offers, formatted for messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Versions(pub Vec<u32>);

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<String> = self.0.iter().map(u32::to_string).collect();
        write!(f, "[{}]", versions.join(", "))
    }
}

/// The lines that a plugin printed to standard output instead of its handshake line (PRC-06).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StrayLines {
    lines: usize,
    bytes: usize,
    last: Vec<String>,
}

impl StrayLines {
    /// How many lines are kept: the last ones, since the reason of an end is usually printed last.
    pub const KEPT_MAX: usize = 8;

    pub(super) fn add(&mut self, line: &str) {
        self.lines += 1;
        self.bytes = self.bytes.saturating_add(line.len() + 1);
        if self.last.len() == Self::KEPT_MAX {
            self.last.remove(0);
        }
        self.last.push(quoted(line));
    }

    /// The number of lines.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines
    }

    /// The number of bytes, line endings included.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The last lines, truncated and escaped.
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
