//! The environment variables by which a host starts a plugin: magic cookie, versions, socket directory.

use std::path::{Path, PathBuf};

/// The variable that lists the application versions of the host (D5).
const VERSIONS: &str = "PLUGIN_PROTOCOL_VERSIONS";
/// The variable that names the directory for the plugin's socket (D8).
const SOCKET_DIR: &str = "PLUGIN_UNIX_SOCKET_DIR";
/// The variable that names the group that may use the socket (D9).
const SOCKET_GROUP: &str = "PLUGIN_UNIX_SOCKET_GROUP";
/// The variable by which the host asks for multiplexing over one connection (D6).
const MULTIPLEX: &str = "PLUGIN_MULTIPLEX_GRPC";
/// The variable with the host's certificate, if it wants mutual TLS (D7).
const CLIENT_CERT: &str = "PLUGIN_CLIENT_CERT";
/// The fallback for the socket directory.
const TEMPORARY: &str = "TMPDIR";

/// The magic cookie: it proves that a host, not a person, started the plugin (D3). It is not a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie {
    /// The name of the variable.
    pub key: &'static str,
    /// Its value.
    pub value: &'static str,
}

impl Cookie {
    /// The cookie of drivers and devices (D100).
    pub const NOMAD: Self = Self {
        key: "NOMAD_PLUGIN_MAGIC_COOKIE",
        value: "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
    };
}

/// The program was not started by a host (D36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this program is a plugin and is of no use when run by hand; start the host program that uses it, which starts its \
     plugins itself"
)]
pub struct NotAPlugin;

/// The host's settings for this plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The application versions of the host, in its order; empty if it lists none (D5).
    pub versions: Vec<u32>,
    /// The directory for the socket (D8).
    pub socket_dir: PathBuf,
    /// The group, by name or number, that may use the socket; without it, only the owner may (D9).
    pub socket_group: Option<String>,
    /// Whether the host asked for multiplexing and therefore expects an answer about it in the handshake line (D28).
    pub asks_for_multiplexing: bool,
    /// Whether the host wants certificates, which this module does not support (D7).
    pub asks_for_certificate: bool,
}

impl Environment {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// [`NotAPlugin`] if the cookie is missing or wrong.
    pub fn of_this_process(cookie: &Cookie) -> Result<Self, NotAPlugin> {
        Self::read(cookie, |name| std::env::var(name).ok())
    }

    /// Reads the settings from any source of variables. Entries of the list of versions that cannot be parsed are ignored:
    /// the host has to check the chosen version in any case (D23).
    ///
    /// # Errors
    /// [`NotAPlugin`] if the cookie is missing or wrong.
    pub fn read(cookie: &Cookie, variable: impl Fn(&str) -> Option<String>) -> Result<Self, NotAPlugin> {
        let said = |name: &str| variable(name).filter(|value| !value.is_empty());
        if said(cookie.key).as_deref() != Some(cookie.value) {
            return Err(NotAPlugin);
        }
        let versions = said(VERSIONS).unwrap_or_default();
        let socket_dir = said(SOCKET_DIR).or_else(|| said(TEMPORARY));
        Ok(Self {
            versions: versions.split(',').filter_map(|version| version.trim().parse().ok()).collect(),
            socket_dir: socket_dir.map_or_else(|| Path::new("/tmp").to_owned(), PathBuf::from),
            socket_group: said(SOCKET_GROUP),
            asks_for_multiplexing: said(MULTIPLEX).is_some(),
            asks_for_certificate: said(CLIENT_CERT).is_some(),
        })
    }

    /// Chooses the version: the highest of `offered` that the host listed, else the lowest, for old hosts that list none
    /// (D23).
    #[must_use]
    pub fn choose(&self, offered: &[u32]) -> u32 {
        let both = offered.iter().filter(|version| self.versions.contains(version)).max();
        both.or_else(|| offered.iter().min()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, NotAPlugin> {
        Environment::read(&Cookie::NOMAD, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const COOKIE: (&str, &str) = (Cookie::NOMAD.key, Cookie::NOMAD.value);

    #[test]
    fn a_program_without_the_right_cookie_is_not_run_by_a_host_d3_d36() {
        assert_eq!(read(&[]), Err(NotAPlugin));
        assert_eq!(read(&[(COOKIE.0, "wrong")]), Err(NotAPlugin));
        assert_eq!(read(&[(COOKIE.0, "")]), Err(NotAPlugin));
        assert!(read(&[COOKIE]).is_ok());
    }

    #[test]
    fn the_socket_goes_where_the_host_says_else_where_temporary_files_go_d8() {
        let directory = |variables: &[_]| read(variables).expect("a host").socket_dir;
        assert_eq!(directory(&[COOKIE]), Path::new("/tmp"));
        assert_eq!(directory(&[COOKIE, ("TMPDIR", "/t")]), Path::new("/t"));
        assert_eq!(directory(&[COOKIE, ("TMPDIR", "/t"), ("PLUGIN_UNIX_SOCKET_DIR", "/s")]), Path::new("/s"));
    }

    #[test]
    fn the_highest_common_version_is_chosen_else_the_lowest_d23() {
        for (listed, offered, chosen) in [
            ("2", &[2][..], 2),
            ("1,2,3", &[2, 3, 4], 3),
            ("3, 1 ,2", &[2, 1], 2),
            ("7", &[2, 3], 2),
            ("", &[2, 3], 2),
            ("x,,-1,2", &[2, 3], 2),
        ] {
            let environment = read(&[COOKIE, ("PLUGIN_PROTOCOL_VERSIONS", listed)]).expect("a host");
            assert_eq!(environment.choose(offered), chosen, "{listed}");
        }
    }
}
