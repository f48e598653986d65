//! What is to be run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::goplugin::HandshakeTerms;

/// How long a process may take to say its handshake unless its spec says otherwise (D11).
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a process may take to end when asked to, unless whoever asks says otherwise (SHD-07).
pub const STOP_GRACE: Duration = Duration::from_secs(5);
/// How many bytes of each output stream are kept on disk behind what was read, unless the spec says otherwise.
pub const OUTPUT_KEPT_BYTES: u64 = 8 * 1_024 * 1_024;

/// What happens to a process when its host dies (PRC-04). There is nothing in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// The kernel ends it with the host.
    Bound,
    /// It lives on, and the next run of the host adopts it.
    Surviving,
}

impl Lifetime {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Surviving => "surviving",
        }
    }
}

/// How much ends with a process (PRC-03).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Its process group. What left the group on purpose, such as the task of a driver in a session of its own, goes on: it
    /// has to outlive the plugin that started it.
    Group,
    /// Everything that it ever made: its control group where the host may make one, and else its process group and whatever
    /// carries its tag.
    Everything,
}

impl Reach {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Everything => "everything",
        }
    }
}

/// A program, and what has to hold of its file before it is run (SEC-05, SEC-07).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// Without a root: an absolute path. With one: the name of a file in that directory, and no path.
    pub path: PathBuf,
    /// The only directory that the file may lie in. It is opened without following links, and never leaves it.
    pub root: Option<PathBuf>,
    /// The SHA-256 digest that the file has to have. What was hashed is what is run.
    pub sha256: Option<[u8; 32]>,
}

impl Executable {
    /// The program at an absolute path that the operator chose.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), root: None, sha256: None }
    }

    /// The program with this name in a directory of programs that are allowed.
    #[must_use]
    pub fn within(root: impl Into<PathBuf>, name: impl Into<PathBuf>) -> Self {
        Self { path: name.into(), root: Some(root.into()), sha256: None }
    }

    /// Where it lies, for people to read.
    #[must_use]
    pub fn place(&self) -> PathBuf {
        match &self.root {
            Some(root) => root.join(&self.path),
            None => self.path.clone(),
        }
    }
}

/// A process to be.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// What is run.
    pub executable: Executable,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Entries of its environment. Values may be secrets: they are shown and stored nowhere (SEC-06).
    pub environment: BTreeMap<String, String>,
    /// Which variables of the host it gets as well, if the host has them. Nothing else of the host's environment reaches it.
    pub inherit: Vec<String>,
    /// What happens to it when the host dies.
    pub lifetime: Lifetime,
    /// How much ends with it.
    pub reach: Reach,
    /// Where it runs.
    pub directory: PathBuf,
    /// The terms of the handshake that it has to say on its standard output before it is ready, and the entries of its
    /// environment that go with them. `None` for a process that is ready when it runs.
    pub handshake: Option<HandshakeTerms>,
    /// How long it may take to say its handshake.
    pub start_timeout: Duration,
    /// How long it may take to end when its launch fails or the host stops.
    pub stop_grace: Duration,
    /// How many bytes of each output stream are kept on disk behind what was read. With none, nothing of it is left on disk
    /// when it has ended.
    pub output_kept_bytes: u64,
}

impl ProcessSpec {
    /// A program without arguments that ends with its host, in an environment of `PATH`, `HOME`, `LANG` and `TZ`.
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
