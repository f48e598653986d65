//! What is to be run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::log::LogSpec;

/// Where programs are looked for when the host itself does not say.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// What it is called in logs.
    pub name: String,
    /// The program, an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Where its output goes.
    pub log: LogSpec,
}

/// The part of the host's environment that a plugin gets: `PATH`, `HOME`, `LANG` and `TZ`. Whatever else the host was
/// started with is none of a plugin's business.
#[must_use]
pub fn usual_environment() -> BTreeMap<String, String> {
    let inherited =
        ["HOME", "LANG", "TZ"].into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
    let path = std::env::var("PATH").unwrap_or_else(|_| USUAL_PATH.to_owned());
    inherited.chain([("PATH", path)]).map(|(name, value)| (name.to_owned(), value)).collect()
}
