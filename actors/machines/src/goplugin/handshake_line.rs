//! Parses a handshake line: `CORE|APP|NETWORK|ADDRESS[|PROTOCOL[|CERT[|MUX]]]` (D20 to D28).

use core::net::SocketAddr;

use super::handshake::{Handshake, PluginEndpoint};
use super::handshake_error::{HandshakeError, Versions};
use super::terms::HandshakeTerms;
use crate::vocabulary::SocketPath;
use crate::vocabulary::text::quoted;

/// The only core protocol version (D21).
const CORE_VERSION: i64 = 1;

/// Up to this length the sixth field is not treated as a certificate: old plugins put other data there (D27).
const NO_CERTIFICATE_BYTES_MAX: usize = 50;

const EXCERPT_CHARACTERS_MAX: usize = 32;

/// Parses one line, and accepts or refuses it.
///
/// White space around the line is ignored. Fields after the seventh are reserved and ignored.
///
/// # Errors
/// One variant per refusal, the first that applies in the order of the fields.
pub fn read_line(terms: &HandshakeTerms, line: &str) -> Result<Handshake, HandshakeError> {
    let fields: Vec<&str> = line.trim().splitn(9, '|').collect();
    let [core, version, network, address, rest @ ..] = fields.as_slice() else {
        return Err(HandshakeError::TooFewFields { line: quoted(line.trim()), fields: fields.len() });
    };
    check_core(core)?;
    let app_version = read_version(terms, version)?;
    let endpoint = read_endpoint(network, address)?;
    check_protocol(rest.first().copied())?;
    check_certificate(rest.get(1).copied().unwrap_or_default())?;
    check_multiplexing(rest.get(2).copied())?;
    Ok(Handshake { app_version, endpoint })
}

/// Whether a line is meant as a handshake, so that its refusal is final, or is other output (PRC-06).
///
/// It has four fields, and either begins with two numbers or has a network type as the third: so one malformed field alone
/// does not change the decision.
#[must_use]
pub fn is_meant_as_handshake(line: &str) -> bool {
    let fields: Vec<&str> = line.trim().splitn(5, '|').collect();
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    match fields.as_slice() {
        [core, version, network, _, ..] => {
            (is_number(core) && is_number(version)) || matches!(*network, "unix" | "tcp")
        }
        _ => false,
    }
}

fn check_core(text: &str) -> Result<(), HandshakeError> {
    match text.parse::<i64>() {
        Ok(CORE_VERSION) => Ok(()),
        Ok(version) => Err(HandshakeError::CoreNotSupported { version }),
        Err(_) => Err(HandshakeError::CoreNotANumber { text: quoted(text) }),
    }
}

fn read_version(terms: &HandshakeTerms, text: &str) -> Result<u32, HandshakeError> {
    let offered = || Versions(terms.versions.clone());
    let Ok(version) = text.parse::<i64>() else {
        return Err(HandshakeError::VersionNotANumber { text: quoted(text), offered: offered() });
    };
    let found = terms.versions.iter().copied().find(|offer| i64::from(*offer) == version);
    found.ok_or_else(|| HandshakeError::VersionNotOffered { version, offered: offered() })
}

fn read_endpoint(network: &str, address: &str) -> Result<PluginEndpoint, HandshakeError> {
    match network {
        "unix" => read_socket(address),
        "tcp" => read_port(address),
        _ => Err(HandshakeError::UnknownNetwork { network: quoted(network), address: quoted(address) }),
    }
}

fn read_socket(address: &str) -> Result<PluginEndpoint, HandshakeError> {
    match SocketPath::new(address) {
        Ok(path) => Ok(PluginEndpoint::Unix(path.as_path().to_owned())),
        Err(error) => Err(HandshakeError::BadAddress {
            network: "unix",
            address: quoted(address),
            problem: quoted(&error.to_string()),
        }),
    }
}

/// Parses a TCP address. Only a local one is accepted: a plugin is a child process, and the connection is not encrypted.
fn read_port(address: &str) -> Result<PluginEndpoint, HandshakeError> {
    let problem = match address.parse::<SocketAddr>() {
        Ok(found) if found.port() == 0 => "its port is 0",
        Ok(found) if !(found.ip().is_loopback() || found.ip().is_unspecified()) => {
            "it is not an address of this machine alone"
        }
        Ok(found) => return Ok(PluginEndpoint::Tcp(found)),
        Err(_) => "it is no IP address with a port",
    };
    Err(HandshakeError::BadAddress { network: "tcp", address: quoted(address), problem: problem.to_owned() })
}

fn check_protocol(protocol: Option<&str>) -> Result<(), HandshakeError> {
    match protocol {
        Some("grpc") => Ok(()),
        None | Some("netrpc") => Err(HandshakeError::InsistsOnNetRpc),
        Some(protocol) => Err(HandshakeError::UnknownProtocol { protocol: quoted(protocol) }),
    }
}

fn check_certificate(text: &str) -> Result<(), HandshakeError> {
    let bytes = text.len();
    if bytes <= NO_CERTIFICATE_BYTES_MAX {
        return Ok(());
    }
    let is_base64 =
        bytes % 4 != 1 && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'));
    if is_base64 {
        return Err(HandshakeError::InsistsOnMutualTls { bytes });
    }
    let excerpt: String = text.chars().take(EXCERPT_CHARACTERS_MAX).collect();
    Err(HandshakeError::BadCertificate { text: quoted(&excerpt), bytes })
}

/// Parses a boolean in Go's format (D28).
fn check_multiplexing(text: Option<&str>) -> Result<(), HandshakeError> {
    match text {
        None | Some("0" | "f" | "F" | "FALSE" | "false" | "False") => Ok(()),
        Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Err(HandshakeError::InsistsOnMultiplexing),
        Some(text) => Err(HandshakeError::MultiplexingNotABoolean { text: quoted(text) }),
    }
}

#[cfg(test)]
mod tests;
