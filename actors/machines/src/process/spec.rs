//! The specification of a process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::goplugin::HandshakeTerms;

/// The default timeout for the handshake (D11).
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The default grace between SIGTERM and SIGKILL (SHD-07).
pub const STOP_GRACE: Duration = Duration::from_secs(5);
/// The default number of bytes of each output stream that are kept on disk after they were read.
pub const OUTPUT_KEPT_BYTES: u64 = 8 * 1_024 * 1_024;

/// Whether a process ends with its host (PRC-04). There is no third case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// The kernel ends it with the host.
    Bound,
    /// It survives, and the next run of the host adopts it.
    Surviving,
}

impl Lifetime {
    /// The lifetime as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Surviving => "surviving",
        }
    }
}

/// Which descendants end with a process (PRC-03).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Its process group. Processes that left the group on purpose, such as the task of a driver in its own session,
    /// continue: they must outlive the plugin that started them.
    Group,
    /// All its descendants: its cgroup if permitted, otherwise its process group and all processes with its tag.
    Everything,
}

impl Reach {
    /// The reach as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Everything => "everything",
        }
    }
}

/// A program, and the conditions for its file before it is run (SEC-05, SEC-07).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Executable {
    /// Without a root: an absolute path. With one: a plain file name in that directory.
    pub path: PathBuf,
    /// The only directory that the file may be in. The file is opened without following symlinks.
    pub root: Option<PathBuf>,
    /// The required SHA-256 digest of the file. The hashed bytes are the executed bytes.
    pub sha256: Option<[u8; 32]>,
}

impl Executable {
    /// The program at an absolute path that the operator chose.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), root: None, sha256: None }
    }

    /// The program with this name in a directory of allowed programs.
    #[must_use]
    pub fn within(root: impl Into<PathBuf>, name: impl Into<PathBuf>) -> Self {
        Self { path: name.into(), root: Some(root.into()), sha256: None }
    }

    /// Its path, for messages.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        match &self.root {
            Some(root) => root.join(&self.path),
            None => self.path.clone(),
        }
    }
}

/// The specification of a process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProcessSpec {
    /// The program.
    pub executable: Executable,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables. Values may be secrets: they are never shown or stored (SEC-06).
    pub environment: BTreeMap<String, String>,
    /// The variables of the host that it inherits, if set. It gets nothing else of the host's environment.
    pub inherit: Vec<String>,
    /// Whether it ends with the host.
    pub lifetime: Lifetime,
    /// Which descendants end with it.
    pub reach: Reach,
    /// Its working directory.
    pub directory: PathBuf,
    /// The terms of the handshake that it must print on standard output before it is ready, with the environment variables
    /// for it. `None` for a process that is ready when it runs.
    pub handshake: Option<HandshakeTerms>,
    /// The timeout for the handshake.
    pub start_timeout: Duration,
    /// The grace between SIGTERM and SIGKILL when its launch fails or the host stops.
    pub stop_grace: Duration,
    /// The number of bytes of each output stream that stay on disk after a read. With zero, its files are removed at its end.
    pub output_kept_bytes: u64,
    /// Whether its standard output is joined to its standard error, and logged with it.
    pub joins_output: bool,
}

impl ProcessSpec {
    /// A program without arguments that ends with its host, with `PATH`, `HOME`, `LANG` and `TZ` inherited.
    #[must_use]
    pub fn new(executable: Executable) -> Self {
        Self {
            executable,
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            inherit: ["PATH", "HOME", "LANG", "TZ"].map(str::to_owned).to_vec(),
            lifetime: Lifetime::Bound,
            reach: Reach::Group,
            directory: PathBuf::from("/"),
            handshake: None,
            start_timeout: START_TIMEOUT,
            stop_grace: STOP_GRACE,
            output_kept_bytes: OUTPUT_KEPT_BYTES,
            joins_output: false,
        }
    }
}

impl fmt::Debug for ProcessSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSpec")
            .field("executable", &self.executable)
            .field("arguments", &self.arguments)
            // Values may be secrets.
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .field("inherit", &self.inherit)
            .field("lifetime", &self.lifetime)
            .field("reach", &self.reach)
            .field("directory", &self.directory)
            .field("handshake", &self.handshake.is_some())
            .field("start_timeout", &self.start_timeout)
            .field("stop_grace", &self.stop_grace)
            .field("output_kept_bytes", &self.output_kept_bytes)
            .field("joins_output", &self.joins_output)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_that_is_shown_shows_no_value_of_its_environment_sec_06() {
        let mut spec = ProcessSpec::new(Executable::at("/bin/true"));
        spec.environment.insert("TOKEN".to_owned(), "canary-9".to_owned());
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("canary-9"), "{shown}");
    }

    #[test]
    fn how_far_an_end_reaches_is_told_in_a_word() {
        assert_eq!([Reach::Group, Reach::Everything].map(Reach::as_str), ["group", "everything"]);
    }
}
