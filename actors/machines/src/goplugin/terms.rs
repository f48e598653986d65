//! The handshake terms that a host passes to a plugin in its environment (D3 to D9, D100).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::vocabulary::SOCKET_PATH_BYTES_MAX;

/// The version of Nomad's plugin protocol (D100).
const NOMAD_VERSION: u32 = 2;
/// The magic cookie of Nomad's plugins (D100). It is public: it prevents starting a plugin by hand and is not a secret (D3).
const NOMAD_COOKIE_KEY: &str = "NOMAD_PLUGIN_MAGIC_COOKIE";
const NOMAD_COOKIE_VALUE: &str = "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255";

/// The default port range for a plugin without Unix sockets (D4).
const PORTS: (u16, u16) = (10_000, 25_000);

/// The environment variable with the directory for the plugin's sockets (D8).
pub const SOCKET_DIR_VARIABLE: &str = "PLUGIN_UNIX_SOCKET_DIR";

/// The length that a plugin needs for the name of its socket in that directory, in bytes: a slash, `plugin`, and the digits
/// of a random 32-bit number.
const SOCKET_NAME_BYTES: usize = 1 + 6 + 10;

/// The terms under which a plugin is started and its handshake line is parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandshakeTerms {
    /// The name of the cookie variable by which the plugin recognises a host (D3).
    pub cookie_key: String,
    /// The value of the cookie.
    pub cookie_value: String,
    /// The application protocol versions that the host supports, at least one (D5).
    pub versions: Vec<u32>,
    /// The port range for a plugin that listens on TCP (D4).
    pub ports: (u16, u16),
    /// The directory for the plugin's sockets; `None`: a directory is created for its process and removed with it (D8).
    pub socket_dir: Option<PathBuf>,
    /// The group, by name or number, that gets access to the socket; `None`: unchanged (D9).
    pub socket_group: Option<String>,
}

/// Why terms are invalid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TermsError {
    /// The name or the value of the cookie is not a valid environment variable, and a plugin refuses to start without it (D36).
    #[error(
        "the cookie {key:?} with a value of {value_bytes} bytes is no environment entry; give both, without '=' in the name and without zero bytes"
    )]
    Cookie {
        /// The name.
        key: String,
        /// The length of the value.
        value_bytes: usize,
    },
    /// No version is offered, so no plugin could be accepted (D22).
    #[error("no application protocol version is offered; offer at least one")]
    NoVersion,
    /// The port range is empty (D4).
    #[error("the ports {lowest} to {highest} are no range; the lowest comes first")]
    Ports {
        /// The lowest port.
        lowest: u16,
        /// The highest port.
        highest: u16,
    },
    /// A socket in this directory could not be bound or named (D8).
    #[error("the socket directory {path:?} cannot be used: {problem}; give a short absolute path")]
    SocketDir {
        /// The path.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// The group is not a valid environment value (D9).
    #[error("the socket group {group:?} is empty or holds a zero byte; give a name or a number, or none")]
    SocketGroup {
        /// The group.
        group: String,
    },
}

impl TermsError {
    /// Whether the same terms may be accepted later: never.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }
}

impl HandshakeTerms {
    /// The terms of Nomad's plugins (D100).
    #[must_use]
    pub fn nomad(socket_dir: Option<PathBuf>) -> Self {
        Self {
            cookie_key: NOMAD_COOKIE_KEY.to_owned(),
            cookie_value: NOMAD_COOKIE_VALUE.to_owned(),
            versions: vec![NOMAD_VERSION],
            ports: PORTS,
            socket_dir,
            socket_group: None,
        }
    }

    /// Checks that a plugin could be started under these terms.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), TermsError> {
        let is_name = !self.cookie_key.is_empty() && !self.cookie_key.contains(['=', '\0']);
        if !is_name || self.cookie_value.is_empty() || self.cookie_value.contains('\0') {
            let (key, value_bytes) = (self.cookie_key.clone(), self.cookie_value.len());
            return Err(TermsError::Cookie { key, value_bytes });
        }
        if self.versions.is_empty() {
            return Err(TermsError::NoVersion);
        }
        let (lowest, highest) = self.ports;
        if lowest > highest {
            return Err(TermsError::Ports { lowest, highest });
        }
        if let Some(group) =
            self.socket_group.as_ref().filter(|group| group.is_empty() || group.contains('\0'))
        {
            return Err(TermsError::SocketGroup { group: group.clone() });
        }
        match self.socket_dir.as_deref().and_then(|dir| Some((dir, problem_of(dir)?))) {
            Some((path, problem)) => Err(TermsError::SocketDir { path: path.to_owned(), problem }),
            None => Ok(()),
        }
    }

    /// The environment variables for the handshake (D3 to D9). They override others of the same name (D2). A certificate
    /// (D7) and multiplexing (D6) are never requested: both are not implemented.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let versions: Vec<String> = self.versions.iter().map(u32::to_string).collect();
        let mut entries = BTreeMap::from([
            (self.cookie_key.clone(), self.cookie_value.clone()),
            ("PLUGIN_MIN_PORT".to_owned(), self.ports.0.to_string()),
            ("PLUGIN_MAX_PORT".to_owned(), self.ports.1.to_string()),
            ("PLUGIN_PROTOCOL_VERSIONS".to_owned(), versions.join(",")),
        ]);
        if let Some(dir) = &self.socket_dir {
            entries.insert(SOCKET_DIR_VARIABLE.to_owned(), dir.display().to_string());
        }
        if let Some(group) = &self.socket_group {
            entries.insert("PLUGIN_UNIX_SOCKET_GROUP".to_owned(), group.clone());
        }
        entries
    }
}

fn problem_of(dir: &Path) -> Option<&'static str> {
    let Some(text) = dir.to_str() else { return Some("it is not UTF-8") };
    if !dir.is_absolute() {
        Some("it is not absolute")
    } else if text.contains(['\0', '|', '\n', '\r']) {
        Some("it holds a zero byte, a '|' or a line end, which a handshake line cannot carry")
    } else if text.len() + SOCKET_NAME_BYTES > SOCKET_PATH_BYTES_MAX {
        Some("it is too long for the name of a socket below it")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(terms: &HandshakeTerms) -> Vec<String> {
        terms.environment().iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn nomads_plugins_get_the_environment_they_expect_d3_d4_d5_d8_d100() {
        let terms = HandshakeTerms::nomad(Some("/run/p".into()));
        assert_eq!(terms.check(), Ok(()));
        assert_eq!(
            listed(&terms),
            [
                "NOMAD_PLUGIN_MAGIC_COOKIE=e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
                "PLUGIN_MAX_PORT=25000",
                "PLUGIN_MIN_PORT=10000",
                "PLUGIN_PROTOCOL_VERSIONS=2",
                "PLUGIN_UNIX_SOCKET_DIR=/run/p",
            ]
        );
    }

    #[test]
    fn several_versions_are_one_list_and_a_group_is_named_d5_d9() {
        let mut terms = HandshakeTerms::nomad(None);
        terms.versions = vec![3, 1, 2];
        terms.socket_group = Some("plugins".to_owned());
        let entries = terms.environment();
        assert_eq!(entries["PLUGIN_PROTOCOL_VERSIONS"], "3,1,2");
        assert_eq!(entries["PLUGIN_UNIX_SOCKET_GROUP"], "plugins");
    }

    #[test]
    fn neither_certificate_nor_multiplexing_is_asked_for_and_no_directory_unless_given_d6_d7_d8() {
        let entries = HandshakeTerms::nomad(None).environment();
        for absent in ["PLUGIN_CLIENT_CERT", "PLUGIN_MULTIPLEX_GRPC", "PLUGIN_UNIX_SOCKET_DIR"] {
            assert!(!entries.contains_key(absent), "{absent}");
        }
    }

    #[test]
    fn terms_under_which_no_plugin_could_start_are_refused_one_by_one_d4_d8_d9_d22_d36() {
        let altered = |alter: fn(&mut HandshakeTerms)| {
            let mut terms = HandshakeTerms::nomad(None);
            alter(&mut terms);
            terms.check().expect_err("they are refused").to_string()
        };
        let rows: [(String, &str); 10] = [
            (altered(|t| t.cookie_key.clear()), "the cookie \"\""),
            (altered(|t| t.cookie_key = "A=B".into()), "the cookie \"A=B\""),
            (altered(|t| t.cookie_value.clear()), "a value of 0 bytes"),
            (altered(|t| t.versions.clear()), "no application protocol version"),
            (altered(|t| t.ports = (9, 8)), "the ports 9 to 8"),
            (altered(|t| t.socket_group = Some(String::new())), "the socket group \"\""),
            (altered(|t| t.socket_dir = Some("run/p".into())), "not absolute"),
            (altered(|t| t.socket_dir = Some("/run/a|b".into())), "cannot carry"),
            (altered(|t| t.socket_dir = Some(format!("/{}", "x".repeat(90)).into())), "too long"),
            (altered(|t| t.socket_dir = Some("".into())), "not absolute"),
        ];
        for (told, words) in rows {
            assert!(told.contains(words), "{told}");
        }
        let error = HandshakeTerms { versions: vec![], ..HandshakeTerms::nomad(None) }.check();
        assert!(!error.expect_err("it is refused").is_transient());
        let one_port = HandshakeTerms { ports: (9, 9), ..HandshakeTerms::nomad(None) };
        assert_eq!(one_port.check(), Ok(()));
        let longest = HandshakeTerms::nomad(Some(format!("/{}", "x".repeat(89)).into()));
        assert_eq!(longest.check(), Ok(()));
    }
}
