//! The description of a process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::log::LogSpec;

/// The fallback for the host's `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Its name in logs.
    pub name: String,
    /// The program, an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// The destination of its output.
    pub log: LogSpec,
}

/// The only variables that a plugin inherits from the host: `PATH`, `HOME`, `LANG` and `TZ`.
#[must_use]
pub fn usual_environment() -> BTreeMap<String, String> {
    let inherited =
        ["HOME", "LANG", "TZ"].into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
    let path = std::env::var("PATH").unwrap_or_else(|_| USUAL_PATH.to_owned());
    inherited.chain([("PATH", path)]).map(|(name, value)| (name.to_owned(), value)).collect()
}
